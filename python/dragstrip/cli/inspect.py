"""`dragstrip inspect`: what captures and other programs' files show about their flows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragstrip.cli.options import JsonFlag, SavePath
from dragstrip.cli.output import keep, print_json, say
from dragstrip.errors import BadInputError

if TYPE_CHECKING:
    from dragstrip.analysis.inference.path import PathEstimate
    from dragstrip.model.recording import Recording


def inspect(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="pcap or pcapng; JSON of iperf3, irtt, flent or qlog; output of ping, fping, ss -tin, "
            "tcp_probe or tc -s qdisc show. Plain or compressed with gzip, xz or zstd.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FOLDER",
            help="Also write one recording of the captures, and one of each other file.",
            show_default=False,
        ),
    ] = None,
    labels: Annotated[
        bool,
        typer.Option(
            "--labels",
            help="Also show Wireshark's and tcptrace's labels of the packets; with --json of each event.",
        ),
    ] = False,
    infer: Annotated[
        bool,
        typer.Option(
            "--infer",
            help="Also infer what the path is from each capture: round trip, rate, queue, policer, losses, "
            "and what cannot be told.",
        ),
    ] = False,
    save_path: SavePath = None,
    anonymise: Annotated[
        Path | None,
        typer.Option(
            "--anonymise",
            metavar="FILE",
            help="Write the capture's TCP segments without payload and addresses, and nothing else.",
            show_default=False,
        ),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Report what captures of TCP show: bytes, round trips, retransmissions and limits of each flow.

    Several captures are vantage points of the same connections. Other programs' files are shown one by one.

    Example: dragstrip inspect server.pcapng --json

    Example: dragstrip inspect server.pcapng --labels

    Example: dragstrip inspect server.pcapng --infer

    Example: dragstrip inspect server.pcapng --anonymise to-send.pcap
    """
    from dragstrip.interop.inputs import input_of
    from dragstrip.interop.readers import summary
    from dragstrip.io.files import expect_name
    from dragstrip.model.recording import CAPTURES

    if anonymise is not None and (labels or infer or save_path or out is not None):
        expected = "is given without --labels, --infer, --save-path and --out"
        raise BadInputError("--anonymise", None, expected, "command line")
    inputs = [input_of(file) for file in files]
    for file in inputs:
        file.expect_file()
    if anonymise is not None:
        _anonymise(files, anonymise, as_json)
        return
    if out is not None:
        expect_name("--out", out)
    measurements = [file for file in inputs if file.kind == "measurements"]
    capture_files = [file.path for file in inputs if file.kind != "measurements"]
    if capture_files and out is not None and (out / CAPTURES).exists():
        raise BadInputError("--out", str(out / CAPTURES), "a folder that does not exist", "command line")
    names = {}
    if out is not None:
        reserved = [CAPTURES] if capture_files else []
        names = summary.folders([file.path for file in measurements], out, reserved)
    recordings = {file.path: file.recording() for file in measurements}
    summaries = summary.inspect(recordings)
    wants_path = infer or save_path is not None
    report, recording, paths = _captures(capture_files, wants_path, labels, out is not None)
    if save_path is not None:
        from dragstrip.analysis.whatif.saved_path import from_estimates

        keep(from_estimates(paths, "dragstrip inspect"), save_path)
    if out is not None:
        _write(out, {name: recordings[file] for file, name in names.items()}, recording)
    if as_json:
        _print_json(report, summaries if measurements else {}, paths if infer else None)
        return
    if capture_files:
        _say(report)
    if infer:
        from dragstrip.analysis.inference import console

        say("")
        say(console.text(paths) if paths else "No path to infer: no capture with data.")
    if measurements:
        say(summary.as_text(summaries))
        for note in summaries["notes"]:
            say(f"note: {note}")


def _captures(
    files: list[Path], path: bool, labels: bool, rows: bool
) -> tuple[dict[str, Any], Recording | None, list[PathEstimate]]:
    """Return the document of captures, their recording if `rows`, and the path of each flow if `path`."""
    from dragstrip.analysis import captures
    from dragstrip.analysis.inference.path import of_segments

    if not files:
        return {"version": 1, "files": [], "flows": [], "notes": []}, None, []
    if not path:
        return *captures.inspect(files, rows=rows, labels=labels), []
    report, recording, segments_by_file = captures.inspect_with_segments(files, rows=rows, labels=labels)
    paths = [
        estimate
        for file, segments in zip(files, segments_by_file, strict=True)
        for estimate in of_segments(file, segments)
    ]
    places = {(estimate.file, estimate.flow): estimate.place for estimate in paths}
    for flow in report["flows"]:  # segments show more of the place than the handshake
        flow["place"] = places.get((str(files[flow["file"]]), flow["label"]), flow["place"])
    return report, recording, paths


def _write(out: Path, recordings: Mapping[str, Recording], capture_recording: Recording | None) -> None:
    """Write a recording of each file, by its folder's name, and one of all captures."""
    from dragstrip.io.files import adding
    from dragstrip.model.recording import CAPTURES, write

    with adding(out) as draft:
        for name, recording in recordings.items():
            write(recording, draft / name)
        if capture_recording is not None:
            write(capture_recording, draft / CAPTURES)


def _print_json(
    report: Mapping[str, Any], summaries: Mapping[str, Any], paths: list[PathEstimate] | None
) -> None:
    """Print one document of captures and other files."""
    from dragstrip.analysis.inference import console

    merged = {**report, **{key: report.get(key, []) + rows for key, rows in summaries.items()}}
    print_json(merged if paths is None else {**merged, "paths": console.document(paths)})


def _anonymise(files: list[Path], out: Path, as_json: bool) -> None:
    """Write one capture without payload and addresses, and say how much of it is left."""
    from dragstrip.analysis.anonymisation import anonymise
    from dragstrip.io.files import expect_file

    if len(files) != 1:
        raise BadInputError("--anonymise", len(files), "one capture", "command line")
    if out.exists() and out.samefile(files[0]):
        raise BadInputError("--anonymise", str(out), "another file than the capture", "command line")
    expect_file("--anonymise", out)
    packets, segment_count = anonymise(files[0], out, quiet=as_json)
    if as_json:
        print_json({"version": 1, "file": str(out), "packets": packets, "kept": segment_count})
    else:
        say(f"{out}: {segment_count} TCP segments of {packets} packets")


def _say(report: dict[str, Any]) -> None:
    """Print what captures show."""
    from dragstrip.analysis import captures

    say(captures.table(report) if report["flows"] else captures.empty_text(report))
    if report["flows"] and "wireshark" in report["flows"][0]:
        say(captures.labels_table(report))
    for line in captures.details(report):
        say(line)
    for file in report["files"]:
        counts = ", ".join(
            f"{file[name]} {name}" for name in ("missing", "duplicates", "disorder", "repeated") if file[name]
        )
        say(f"{file['path']}: {file['packets']} packets" + (f" ({counts})" if counts else ""))
    for note in report["notes"]:
        say(f"note: {note}")
