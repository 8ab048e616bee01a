"""What files of other programs contain, for the terminal and as a document like that of captures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dragstrip.errors import BadInputError
from dragstrip.formats.readers import read
from dragstrip.formats.readers.found import Row
from dragstrip.io.untrusted import one_line
from dragstrip.recording import Recording
from dragstrip.results import per_flow


def inspect(paths: Sequence[Path]) -> tuple[Row, dict[Path, Recording]]:
    """Return what each file contains, and each as a recording.

    Raises `BadInputError` for a file of none of the known formats.
    """
    recordings = {path: read(path) for path in paths}
    said: Row = {"files": [], "flows": [], "probes": [], "disciplines": [], "notes": []}
    for path, recording in recordings.items():
        name = str(path)
        said["files"].append({"path": name, "format": recording.provenance["engine"]})
        said["flows"] += [{"file": name, **flow} for flow in per_flow.flows(recording)]
        said["probes"] += [{"file": name, **probe} for probe in per_flow.probes(recording)]
        said["disciplines"] += [{"file": name, **it} for it in recording.provenance.get("disciplines", [])]
        said["notes"] += [f"{name}: {note}" for note in recording.provenance["notes"]]
    return said, recordings


def folders(paths: Sequence[Path], out: Path, others: Sequence[str] = ()) -> dict[Path, str]:
    """Return the name of each file's folder in `out`.

    Raises `BadInputError` if one exists, or two files or one of `others` would have the same.
    """
    names = {path: path.name.split(".")[0] for path in paths}
    for name in names.values():
        if (out / name).exists() or [*names.values(), *others].count(name) > 1:
            expected = "a folder for each file, by the first part of its name, that does not exist yet"
            raise BadInputError("--out", str(out / name), expected, "command line")
    return names


def told(said: Mapping[str, Any]) -> str:
    """Return flows and pings as a table for people, and disciplines one by one."""
    parts = [table(said)] if said["flows"] or said["probes"] else []
    return "\n".join([*parts, *(line for it in said["disciplines"] for line in _discipline(it))])


def _discipline(it: Mapping[str, Any]) -> list[str]:
    place = f"{it['device']} {it['parent']}".strip()
    what = f"{it['kind']} {it['handle']}" if it["what"] == "qdisc" else f"class {it['kind']} {it['handle']}"
    made = [one_line(f"{Path(it['file']).name} {place}: {what} {it['words']}")]
    if it["sent_bytes"] is not None:
        counts = [f"{it['sent_bytes']:,} bytes in {_shown(it['sent_packets'])} packets sent"]
        counts += [f"{_shown(it[name])} {name}" for name in ("dropped", "overlimits", "requeues")]
        if it["marked"] is not None:
            counts.append(f"{_shown(it['marked'])} marked")
        left = f"backlog {_shown(it['backlog_bytes'])} bytes, {_shown(it['backlog_packets'])} packets"
        made.append(f"  {', '.join(counts)}; {left}")
    for name, values in (("", it["statistics"]), *((tin["name"], tin) for tin in it["tins"])):
        shown = ", ".join(f"{key} {value}" for key, value in values.items() if key != "name")
        if shown:
            made.append(one_line(f"{name}: {shown}" if name else shown))
            made[-1] = f"  {made[-1]}"
    return made


def table(said: Mapping[str, Any]) -> str:
    """Return the flows as text for people."""
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
        lost = "–" if probe["lost"] is None else f"{probe['lost']} of {_shown(probe['sent'])}"
        rows.append((Path(probe["file"]).name, label, "", "", "", "", _trip(probe["rtt_ms"]), lost))
    widths = [max(len(row[at]) for row in rows) for at in range(len(heads))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def _trip(rtt: Mapping[str, Any]) -> str:
    """Return the percentiles, or of few samples the least, the mean and the largest."""
    parts = [rtt[f"p{part}"] for part in per_flow.PERCENTILES]
    if None in parts and rtt["mean"] is not None:
        said = f"{_shown(rtt['min'])} / {_shown(rtt['mean'])} / {_shown(rtt['max'])} (min, mean, max)"
    else:
        said = " / ".join(map(_shown, parts))
    return said + (" (srtt)" if rtt["method"] == "srtt" else "")


def _shown(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
