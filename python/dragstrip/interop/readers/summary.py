"""Contents of other programs' files, for the terminal and as a document like that of captures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dragstrip.errors import BadInputError
from dragstrip.interop.readers.measurements import Row
from dragstrip.io.untrusted import one_line
from dragstrip.model.recording import Recording
from dragstrip.results import measures


def inspect(recordings: Mapping[Path, Recording]) -> Row:
    """Return what the recording of each file contains."""
    document: Row = {"files": [], "flows": [], "probes": [], "disciplines": [], "notes": []}
    for path, recording in recordings.items():
        name = str(path)
        document["files"].append({"path": name, "format": recording.provenance["engine"]})
        document["flows"] += [{"file": name, **flow} for flow in measures.flow_figures(recording)]
        document["probes"] += [{"file": name, **probe} for probe in measures.probe_figures(recording)]
        document["disciplines"] += [
            {"file": name, **discipline} for discipline in recording.provenance.get("disciplines", [])
        ]
        document["notes"] += [f"{name}: {note}" for note in recording.provenance["notes"]]
    return document


def folders(paths: Sequence[Path], out: Path, reserved: Sequence[str] = ()) -> dict[Path, str]:
    """Return the name of each file's folder in `out`.

    Raises `BadInputError` if one exists, or two files or one of `reserved` would have the same.
    """
    names = {path: path.name.split(".")[0] for path in paths}
    for name in names.values():
        if (out / name).exists() or [*names.values(), *reserved].count(name) > 1:
            expected = "a folder for each file, by the first part of its name, that does not exist yet"
            raise BadInputError("--out", str(out / name), expected, "command line")
    return names


def as_text(document: Mapping[str, Any]) -> str:
    """Return flows and pings as a table for people, and disciplines one by one."""
    parts = [table(document)] if document["flows"] or document["probes"] else []
    return "\n".join(
        [*parts, *(line for discipline in document["disciplines"] for line in _discipline(discipline))]
    )


def _discipline(discipline: Mapping[str, Any]) -> list[str]:
    place = f"{discipline['device']} {discipline['parent']}".strip()
    title = (
        f"{discipline['kind']} {discipline['handle']}"
        if discipline["what"] == "qdisc"
        else f"class {discipline['kind']} {discipline['handle']}"
    )
    lines = [one_line(f"{Path(discipline['file']).name} {place}: {title} {discipline['words']}")]
    if discipline["sent_bytes"] is not None:
        counts = [
            f"{discipline['sent_bytes']:,} bytes in {_figure_text(discipline['sent_packets'])} packets sent"
        ]
        counts += [
            f"{_figure_text(discipline[name])} {name}" for name in ("dropped", "overlimits", "requeues")
        ]
        if discipline["marked"] is not None:
            counts.append(f"{_figure_text(discipline['marked'])} marked")
        size, packets = (_figure_text(discipline[f"backlog_{unit}"]) for unit in ("bytes", "packets"))
        backlog = f"backlog {size} bytes, {packets} packets"
        lines.append(f"  {', '.join(counts)}; {backlog}")
    for name, values in (("", discipline["statistics"]), *((tin["name"], tin) for tin in discipline["tins"])):
        statistics = ", ".join(f"{key} {value}" for key, value in values.items() if key != "name")
        if statistics:
            lines.append(one_line(f"{name}: {statistics}" if name else statistics))
            lines[-1] = f"  {lines[-1]}"
    return lines


def table(document: Mapping[str, Any]) -> str:
    """Return the flows as text for people."""
    heads = ("file", "flow", "bytes", "duration s", "Mbit/s", "retransmits", "RTT ms p5 / p50 / p95", "lost")
    rows: list[tuple[str, ...]] = [heads]
    for flow in document["flows"]:
        rate = flow["goodput_bps"]
        rows.append(
            (
                Path(flow["file"]).name,
                flow["label"],
                _figure_text(flow["bytes"]),
                f"{flow['duration_s']:.3g}",
                _figure_text(None if rate is None else rate / 1e6),
                _figure_text(flow["retransmissions"]["unknown"]),
                _trip(flow["rtt_ms"]),
                "",
            )
        )
    for probe in document["probes"]:
        label = f"{probe['probe']} {probe['target']}".strip()
        loss = "–" if probe["lost"] is None else f"{probe['lost']} of {_figure_text(probe['sent'])}"
        rows.append((Path(probe["file"]).name, label, "", "", "", "", _trip(probe["rtt_ms"]), loss))
    widths = [max(len(row[at]) for row in rows) for at in range(len(heads))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def _trip(rtt: Mapping[str, Any]) -> str:
    """Return the percentiles, or of few samples the least, the mean and the largest."""
    parts = [rtt[name] for name in ("p5", "p50", "p95")]
    if None in parts and rtt["mean"] is not None:
        figures = " / ".join(_figure_text(rtt[name]) for name in ("min", "mean", "max")) + " (min, mean, max)"
    else:
        figures = " / ".join(map(_figure_text, parts))
    return figures + (" (srtt)" if rtt["method"] == "srtt" else "")


def _figure_text(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
