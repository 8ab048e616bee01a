"""Contents of captures and of other programs' files together, for the command line and for Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dragstrip.analysis import captures
from dragstrip.analysis.inference import console
from dragstrip.analysis.inference.path import PathEstimate, of_segments
from dragstrip.interop.inputs import Input
from dragstrip.interop.readers import summary
from dragstrip.model.recording import Recording


@dataclass(frozen=True)
class InspectedFiles:
    """Contents of files: a report of all captures together, and one of the other files."""

    captures: dict[str, Any]
    """Document of the captures; without flows where there are none."""
    measurements: Mapping[str, Any]
    """Document of the other files; empty where there are none."""
    recording: Recording | None = None
    """Recording of the captures, if it was asked for."""
    recordings: Mapping[Path, Recording] = field(default_factory=dict)
    """Recordings of the other files."""
    paths: Sequence[PathEstimate] | None = None
    """Path of each flow of each capture; None if nobody asked."""

    def document(self) -> dict[str, Any]:
        """Return one document of all files, as docs/how-to/captures.md describes it."""
        merged = dict(self.captures)
        for key, rows in self.measurements.items():
            merged[key] = merged.get(key, []) + rows
        return merged if self.paths is None else {**merged, "paths": console.document(self.paths)}

    def text(self) -> str:
        """Return the text that the command prints."""
        parts = _capture_lines(self.captures) if self.captures["files"] else []
        if self.paths is not None:
            parts += ["", console.text(self.paths) or "No path to infer: no capture with data."]
        if self.measurements:
            parts.append(summary.as_text(self.measurements))
            parts += [f"note: {note}" for note in self.measurements["notes"]]
        return "\n".join(parts)


def inspect(
    files: Sequence[Input],
    *,
    labels: bool = False,
    infer: bool = False,
    rows: bool = False,
    quiet: bool = False,
) -> InspectedFiles:
    """Return the contents of files, captures as vantage points of the same connections.

    `labels` adds Wireshark's and tcptrace's labels, `infer` the path of each flow, `rows` a recording of the
    captures. Raises `BadInputError` for a folder, and for a file that is missing or of no known format.
    """
    for file in files:
        file.expect_file()
    recordings = {file.path: file.recording() for file in files if file.kind == "measurements"}
    measurements = summary.inspect(recordings) if recordings else {}
    capture_files = [file.path for file in files if file.kind != "measurements"]
    if not capture_files:
        report: dict[str, Any] = {"version": 1, "files": [], "flows": [], "notes": []}
        return InspectedFiles(report, measurements, None, recordings, [] if infer else None)
    if not infer:
        document, recording = captures.inspect(capture_files, rows=rows, labels=labels, quiet=quiet)
        return InspectedFiles(document, measurements, recording, recordings)
    report, recording, segments_by_file = captures.inspect_with_segments(
        capture_files, rows=rows, labels=labels, quiet=quiet
    )
    paths = [
        estimate
        for file, segments in zip(capture_files, segments_by_file, strict=True)
        for estimate in of_segments(file, segments)
    ]
    places = {(estimate.file, estimate.flow): estimate.place for estimate in paths}
    for flow in report["flows"]:  # segments show more of the place than the handshake
        name = str(capture_files[flow["file"]]), flow["label"]
        flow["place"] = places.get(name, flow["place"])
    return InspectedFiles(report, measurements, recording, recordings, paths)


def _capture_lines(report: dict[str, Any]) -> list[str]:
    """Return the flows of captures as a table, the details of each, and each file's packets."""
    flows = report["flows"]
    lines = [captures.table(report) if flows else captures.empty_text(report)]
    if flows and "wireshark" in flows[0]:
        lines.append(captures.labels_table(report))
    lines += captures.details(report)
    for file in report["files"]:
        counts = ", ".join(
            f"{file[name]} {name}" for name in ("missing", "duplicates", "disorder", "repeated") if file[name]
        )
        lines.append(f"{file['path']}: {file['packets']} packets" + (f" ({counts})" if counts else ""))
    return [*lines, *(f"note: {note}" for note in report["notes"])]
