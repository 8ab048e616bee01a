"""`dragstrip inspect`: what captures say about their flows."""

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
            help="pcap or pcapng; JSON of iperf3, irtt, flent or qlog; output of ping, fping, ss -tin or "
            "tcp_probe. As they are or packed with gzip, xz or zstd.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FOLDER",
            help="Also write the captures as one recording, and every other file as one.",
            show_default=False,
        ),
    ] = None,
    labels: Annotated[
        bool,
        typer.Option(
            "--labels",
            help="Also say what Wireshark and tcptrace call the same packets; with --json each event.",
        ),
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Say what captures of TCP show: bytes, round trips, what was sent again and why, what limited each flow.

    Several captures are vantage points of the same connections. Other programs' files speak for themselves.

    Example: dragstrip inspect server.pcapng --json

    Example: dragstrip inspect server.pcapng --labels
    """
    from dragstrip import captures, foreign
    from dragstrip.files import make_folder
    from dragstrip.foreign import shown
    from dragstrip.recording import write

    others = [file for file in files if foreign.is_one(file)]
    taken = [file for file in files if file not in others]
    told = shown.inspect(others, out) if others else {"files": [], "flows": [], "notes": []}
    said: dict[str, Any] = {"version": 1, "files": [], "flows": [], "notes": []}
    if taken:
        folder = None if out is None else out / "captures"
        if folder is not None and folder.exists():
            raise BadInputError("--out", str(folder), "a folder that does not exist", "command line")
        said, recording = captures.inspect(taken, rows=folder is not None, labels=labels)
        if folder is not None and recording is not None:
            make_folder(folder.parent)
            write(recording, folder)
    if as_json:
        print_json({**said, **{key: said.get(key, []) + told[key] for key in told}})
        return
    if taken:
        _say(said)
    if others:
        say(shown.table(told))
        for note in told["notes"]:
            say(f"note: {note}")


def _say(said: dict[str, Any]) -> None:
    """What captures show."""
    from dragstrip import captures

    say(captures.table(said) if said["flows"] else "No TCP connection with data.")
    if said["flows"] and "wireshark" in said["flows"][0]:
        say(captures.labels_table(said))
    for file in said["files"]:
        counts = ", ".join(
            f"{file[name]} {name}" for name in ("missing", "duplicates", "disorder") if file[name]
        )
        say(f"{file['path']}: {file['packets']} packets" + (f" ({counts})" if counts else ""))
    for note in said["notes"]:
        say(f"note: {note}")
