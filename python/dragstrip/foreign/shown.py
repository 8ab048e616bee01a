"""What files of other programs say, for the terminal and as a document beside that of captures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dragstrip import files
from dragstrip.errors import BadInputError
from dragstrip.foreign import read
from dragstrip.foreign.found import Row
from dragstrip.recording import Recording, write

PERCENTILES = (5, 50, 95)


def inspect(paths: Sequence[Path], out: Path | None = None) -> Row:
    """What each file says; with `out` each becomes the folder of a recording there."""
    recordings = {path: read(path) for path in paths}
    if out is not None:
        _write(recordings, out)
    said: Row = {"files": [], "flows": [], "probes": [], "notes": []}
    for path, recording in recordings.items():
        name = str(path)
        said["files"].append({"path": name, "format": recording.provenance["engine"]})
        said["flows"] += [{"file": name, **flow} for flow in flows(recording)]
        said["probes"] += [{"file": name, **probe} for probe in _probes(recording)]
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


def flows(recording: Recording) -> list[Row]:
    """Of each flow what `inspect --json` says of a captured one; what the file does not say is null."""
    samples, received = recording["samples"].to_pylist(), recording["received"].to_pylist()
    made = []
    for flow in recording["flows"].to_pylist():
        mine = [row for row in samples if row["flow"] == flow["flow"]]
        arrived = [row for row in received if row["flow"] == flow["flow"]]
        times = [row["time_ns"] for row in (*mine, *arrived)]
        begin = flow["start_ns"] if flow["start_ns"] is not None else min(times, default=0)
        end = flow["stop_ns"] if flow["stop_ns"] is not None else max(times, default=0)
        size = _bytes(flow, mine, arrived)
        duration = (end - begin) / 1e9
        rtts = [row["srtt_ns"] for row in mine if row["srtt_ns"] is not None]
        again = flow["retransmits"]
        if again is None:
            again = next(
                (row["retransmits"] for row in reversed(mine) if row["retransmits"] is not None), None
            )
        made.append(
            {
                "flow": flow["flow"],
                "label": flow["label"],
                "cc": flow["cc"] or None,
                "bytes": size,
                "duration_s": duration,
                "goodput_bps": None if size is None or duration <= 0 else size * 8 / duration,
                "rtt_ms": _rtts(rtts, "srtt"),
                "segments": flow["segments_sent"],
                "retransmissions": {"needed": None, "spurious": None, "unknown": again},
                "reordered": None,
                "limited_s": None,
                "ecn": None,
            }
        )
    return made


def _bytes(flow: Row, samples: Sequence[Row], arrived: Sequence[Row]) -> int | None:
    """What arrived, or was acknowledged while somebody looked."""
    if flow["bytes_received"] is not None:
        return int(flow["bytes_received"])
    if arrived:
        return sum(row["new_bytes"] or 0 for row in arrived)
    acked = [row["bytes_acked"] for row in samples if row["bytes_acked"] is not None]
    return acked[-1] - acked[0] if acked else None


def _rtts(rtts: Sequence[int], method: str) -> Row:
    values = (
        [float(value) for value in np.percentile(rtts, PERCENTILES)] if rtts else [None] * len(PERCENTILES)
    )
    shown = {
        f"p{part}": None if value is None else value / 1e6
        for part, value in zip(PERCENTILES, values, strict=True)
    }
    return {"method": method if rtts else None, "samples": len(rtts), **shown}


def _probes(recording: Recording) -> list[Row]:
    rows = recording["probes"].to_pylist()
    made = []
    for probe, target in dict.fromkeys((row["probe"], row["target"]) for row in rows):
        mine = [row for row in rows if (row["probe"], row["target"]) == (probe, target)]
        answered = [row["rtt_ns"] for row in mine if not row["lost"]]
        lost = len(mine) - len(answered)
        made.append(
            {
                "probe": probe,
                "target": target,
                "sent": len(mine),
                "lost": lost,
                "rtt_ms": _rtts(answered, "echo"),
            }
        )
    return made


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
    return " / ".join(_shown(rtt[f"p{part}"]) for part in PERCENTILES) + (
        " (srtt)" if rtt["method"] == "srtt" else ""
    )


def _shown(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
