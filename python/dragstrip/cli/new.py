"""Commands that write files to start from into a clone: `new-algorithm`, `new-qdisc`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragstrip.cli.output import say
from dragstrip.errors import BadInputError

if TYPE_CHECKING:
    from dragstrip.authoring.skeletons import WrittenFiles


def new_algorithm(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="Lowercase letters, digits and single - or _, such as my-cc."),
    ],
    bpf: Annotated[bool, typer.Option("--bpf", help="Also a BPF program for the real kernel.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FOLDER",
            help="Write the Rust file alone, into this folder; the clone stays as it is.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Add the skeleton of a congestion control to the sources (docs/how-to/new-algorithm.md).

    It writes into the clone around the current folder, compiles nothing, and leaves the rest as it is. With
    --out the file stands outside the clone; compare, run, passport, evidence and attack compile and load it.

    Example: dragstrip new-algorithm my-cc --bpf

    Example: dragstrip new-algorithm my-cc --out .
    """
    from dragstrip.authoring import skeletons

    place = skeletons.clone(
        "new-algorithm",
        "without one, write the algorithm as a text: dragstrip compare --program my-cc.cc ... reno my-cc "
        "(docs/how-to/program.md)",
    )
    if out is not None and bpf:
        raise BadInputError("--out", str(out), "without --bpf: a BPF program is in the clone", "command line")
    written_files = (
        skeletons.new_algorithm(place, name, bpf=bpf) if out is None else skeletons.new_file(place, name, out)
    )
    _say(written_files, "docs/how-to/new-algorithm.md")


def new_qdisc(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Lowercase letters, digits and single _, such as my_fifo.")
    ],
) -> None:
    """Add the skeleton of a queue discipline to the sources (docs/how-to/new-qdisc.md).

    It writes into the clone around the current folder, compiles nothing, and leaves the rest as it is.

    Example: dragstrip new-qdisc my_fifo
    """
    from dragstrip.authoring import skeletons

    _say(skeletons.new_qdisc(skeletons.clone("new-qdisc"), name), "docs/how-to/new-qdisc.md")


def _say(written_files: WrittenFiles, guide: str) -> None:
    for file in written_files.files:
        say(f"wrote {file}")
    say(f"next: {written_files.next} ({guide})")
