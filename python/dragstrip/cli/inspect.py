"""`dragstrip inspect`: what captures and other programs' files show about their flows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragstrip.cli.options import JsonFlag, SavePath
from dragstrip.cli.output import keep, print_json, say
from dragstrip.errors import BadInputError

if TYPE_CHECKING:
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
    from dragstrip.analysis import inspection
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
    names = {}
    if out is not None:
        expect_name("--out", out)
        measurements = [file.path for file in inputs if file.kind == "measurements"]
        has_captures = len(measurements) < len(inputs)
        if has_captures and (out / CAPTURES).exists():
            raise BadInputError("--out", str(out / CAPTURES), "a folder that does not exist", "command line")
        names = summary.folders(measurements, out, [CAPTURES] if has_captures else [])
    inspected = inspection.inspect(
        inputs, labels=labels, infer=infer or save_path is not None, rows=out is not None
    )
    if save_path is not None:
        from dragstrip.analysis.whatif.saved_path import from_estimates

        keep(from_estimates(inspected.paths or [], "dragstrip inspect"), save_path)
    if out is not None:
        recordings = {names[file]: recording for file, recording in inspected.recordings.items()}
        _write(out, recordings, inspected.recording)
    if not infer:
        inspected = replace(inspected, paths=None)
    if as_json:
        print_json(inspected.document())
    else:
        say(inspected.text())


def _write(out: Path, recordings: Mapping[str, Recording], capture_recording: Recording | None) -> None:
    """Write a recording of each file, by its folder's name, and one of all captures."""
    from dragstrip.io.files import adding
    from dragstrip.model.recording import CAPTURES, write

    with adding(out) as draft:
        for name, recording in recordings.items():
            write(recording, draft / name)
        if capture_recording is not None:
            write(capture_recording, draft / CAPTURES)


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
