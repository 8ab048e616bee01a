"""`dragstrip inspect`: what captures and other programs' files show about their flows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dragstrip.cli.options import JsonFlag
from dragstrip.cli.output import print_json, say
from dragstrip.errors import BadInputError


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
    path: Annotated[
        bool,
        typer.Option(
            "--path",
            help="Also infer what the path is from each capture: round trip, rate, queue, policer, losses, "
            "and what cannot be told.",
        ),
    ] = False,
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

    Example: dragstrip inspect server.pcapng --path

    Example: dragstrip inspect server.pcapng --anonymise to-send.pcap
    """
    from dragstrip.analysis import captures
    from dragstrip.analysis.inference import console
    from dragstrip.analysis.inference.path import of_segments
    from dragstrip.interop import guess, readers
    from dragstrip.interop.readers import summary
    from dragstrip.io.files import adding, expect_name
    from dragstrip.model.recording import CAPTURES, write

    for folder in (file for file in files if file.is_dir()):
        raise BadInputError("", None, guess.of_folder(folder), str(folder))
    if anonymise is not None:
        if labels or path or out is not None:
            raise BadInputError(
                "--anonymise", None, "is given without --labels, --path and --out", "command line"
            )
        _anonymise(files, anonymise, as_json)
        return
    if out is not None:
        expect_name("--out", out)
    summary_files = [file for file in files if readers.is_one(file)]
    capture_files = [file for file in files if file not in summary_files]
    if capture_files and out is not None and (out / CAPTURES).exists():
        raise BadInputError("--out", str(out / CAPTURES), "a folder that does not exist", "command line")
    names = {} if out is None else summary.folders(summary_files, out, [CAPTURES] if capture_files else [])
    summaries, read = (
        summary.inspect(summary_files) if summary_files else ({"files": [], "flows": [], "notes": []}, {})
    )
    report: dict[str, Any] = {"version": 1, "files": [], "flows": [], "notes": []}
    recording, paths = None, []
    if capture_files and path:
        report, recording, segments_by_file = captures.inspect_with_segments(
            capture_files, rows=out is not None, labels=labels
        )
        paths = [
            inferred_path
            for file, segments in zip(capture_files, segments_by_file, strict=True)
            for inferred_path in of_segments(file, segments)
        ]
        places = {(inferred_path.file, inferred_path.flow): inferred_path.place for inferred_path in paths}
        for flow in report["flows"]:  # segments show more of the place than the handshake
            flow["place"] = places.get((str(capture_files[flow["file"]]), flow["label"]), flow["place"])
    elif capture_files:
        report, recording = captures.inspect(capture_files, rows=out is not None, labels=labels)
    if out is not None:
        with adding(out) as draft:
            for file, name in names.items():
                write(read[file], draft / name)
            if recording is not None:
                write(recording, draft / CAPTURES)
    if as_json:
        merged = {**report, **{key: report.get(key, []) + summaries[key] for key in summaries}}
        print_json({**merged, "paths": console.document(paths)} if path else merged)
        return
    if capture_files:
        _say(report)
    if path:
        say("")
        say(console.text(paths) if paths else "No path to infer: no capture with data.")
    if summary_files:
        say(summary.as_text(summaries))
        for note in summaries["notes"]:
            say(f"note: {note}")


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
