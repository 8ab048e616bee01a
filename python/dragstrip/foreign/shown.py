"""What files of other programs say, for the terminal and as a document beside that of captures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dragstrip import files, observed
from dragstrip.errors import BadInputError
from dragstrip.foreign import read
from dragstrip.foreign.found import Row
from dragstrip.recording import Recording, write


def inspect(paths: Sequence[Path], out: Path | None = None) -> Row:
    """What each file says; with `out` each becomes the folder of a recording there."""
    recordings = {path: read(path) for path in paths}
    if out is not None:
        _write(recordings, out)
    said: Row = {"files": [], "flows": [], "probes": [], "notes": []}
    for path, recording in recordings.items():
        name = str(path)
        said["files"].append({"path": name, "format": recording.provenance["engine"]})
        said["flows"] += [{"file": name, **flow} for flow in observed.flows(recording)]
        said["probes"] += [{"file": name, **probe} for probe in observed.probes(recording)]
        said["notes"] += [f"{name}: {note}" for note in recording.provenance["notes"]]
    return said


def _write(recordings: Mapping[Path, Recording], out: Path) -> None:
    folders = {path: out / path.name.split(".")[0] for path in recordings}
    for folder in folders.values():
        if folder.exists() or list(folders.values()).count(folder) > 1:
            expected = "a folder for each file, by the first part of its name, that does not exist yet"
            raise BadInputError("--out", str(folder), expected, "command line")
    files.make_folder(out)
    for path, folder in folders.items():
        write(recordings[path], folder)


def table(said: Mapping[str, Any]) -> str:
    """For people."""
    heads = ("file", "flow", "bytes", "duration s", "Mbit/s", "retransmits", "RTT ms p5 / p50 / p95", "lost")
    rows: list[tuple[str, ...]] = [heads]
    for flow in said["flows"]:
        rate = flow["goodput_bps"]
        rows.append(
            (
                Path(flow["file"]).name,
                flow["label"],
                _shown(flow["bytes"]),
                f"{flow['duration_s']:.3g}",
                _shown(None if rate is None else rate / 1e6),
                _shown(flow["retransmissions"]["unknown"]),
                _trip(flow["rtt_ms"]),
                "",
            )
        )
    for probe in said["probes"]:
        label = f"{probe['probe']} {probe['target']}".strip()
        lost = f"{probe['lost']} of {probe['sent']}"
        rows.append((Path(probe["file"]).name, label, "", "", "", "", _trip(probe["rtt_ms"]), lost))
    widths = [max(len(row[at]) for row in rows) for at in range(len(heads))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def _trip(rtt: Mapping[str, Any]) -> str:
    return " / ".join(_shown(rtt[f"p{part}"]) for part in observed.PERCENTILES) + (
        " (srtt)" if rtt["method"] == "srtt" else ""
    )


def _shown(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
