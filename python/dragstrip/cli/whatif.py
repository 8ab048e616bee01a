"""`dragstrip whatif` and `dragstrip identify`: what explains a capture, and which algorithm it shows."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from dragstrip.cli import completion
from dragstrip.cli.options import Addresses, JsonFlag, SavePath
from dragstrip.cli.output import keep, print_json, say
from dragstrip.cli.race import Race, takes_race
from dragstrip.experiment.quantities import CHANGING

File = Annotated[
    Path,
    typer.Argument(
        metavar="CAPTURE",
        help="A capture at the sender: pcap or pcapng, compressed or not.",
        show_default=False,
    ),
]
FileFromAnywhere = Annotated[
    Path,
    typer.Argument(
        metavar="CAPTURE",
        help="A capture at the sender, at a router or at the receiver: pcap or pcapng, compressed or not.",
        show_default=False,
    ),
]
FlowName = Annotated[
    str | None,
    typer.Option(
        "--flow",
        metavar="TEXT",
        help="A part of the flow's name as `inspect` shows it, such as a port; default: the largest.",
        show_default=False,
    ),
]


@takes_race(CHANGING)
def whatif(
    capture: File,
    algorithms: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ALGORITHM...]",
            help="What else to race on the path; default: cubic bbr reno.",
            autocompletion=completion.algorithms,
            show_default=False,
        ),
    ] = None,
    *,
    race: Race,
    sender_algorithm: Annotated[
        str | None,
        typer.Option(
            "--sender-algorithm",
            metavar="NAME",
            help="Congestion control of the senders; default: the one that `identify` finds.",
            autocompletion=completion.algorithms,
            show_default=False,
        ),
    ] = None,
    flow: FlowName = None,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Race on a path that does not explain the capture, too.")
    ] = False,
    save_path: SavePath = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FOLDER",
            help="Also write the experiment, the verdict as JSON, and a page.",
            show_default=False,
        ),
    ] = None,
    addresses: Addresses = False,
    as_json: JsonFlag = False,
) -> None:
    """Say what other congestion controls would have done in the place of a capture's own.

    Infers the path, runs the capture's algorithm on it, says how well that explains the capture, and races
    others there. Options such as --queue change the path for the race; --path replaces it.

    Example: dragstrip whatif server.pcapng bbr

    Example: dragstrip whatif server.pcapng cubic bbr --queue fq_codel --out verdict

    Example: dragstrip whatif server.pcapng cubic bbr --path LTE
    """
    from dragstrip.analysis.whatif import console, document, page, walk
    from dragstrip.analysis.whatif.experiment_text import experiment
    from dragstrip.io.files import adding, expect_folder, write_json, write_text

    if out is not None:
        expect_folder("--out", out)
    verdict = walk.whatif(
        capture,
        algorithms or [],
        sender_algorithm=sender_algorithm,
        name=flow,
        changes=race,
        anyway=anyway,
        quiet=as_json,
    )
    verdict_document = document.document(verdict, addresses)
    if save_path is not None:
        from dragstrip.analysis.whatif.saved_path import from_network

        keep(from_network(verdict.network, capture.name, "dragstrip whatif"), save_path)
    if out is not None:
        with adding(out) as draft:
            write_text(draft / "path.toml", experiment(verdict))
            write_json(draft / "whatif.json", verdict_document)
            write_text(draft / page.NAME, page.page(verdict, verdict_document, addresses))
    if as_json:
        print_json(verdict_document)
        return
    say(console.text(verdict, addresses))
    if out is not None:
        say(f"\nWritten: {out / 'path.toml'} {out / 'whatif.json'} {out / page.NAME}")
        say(f"To watch these races: dragstrip play {shlex.quote(str(out / 'path.toml'))}")


def identify(
    capture: FileFromAnywhere,
    *,
    flow: FlowName = None,
    addresses: Addresses = False,
    as_json: JsonFlag = False,
) -> None:
    """Say which congestion control a capture shows, or why it cannot be told.

    Runs Linux's congestion controls and some others on the path that the capture shows, and compares.

    Example: dragstrip identify server.pcapng

    Example: dragstrip identify server.pcapng --flow :443 --json
    """
    from dragstrip.analysis.whatif import console, document, walk

    subject, _, answer = walk.identify(capture, flow, quiet=as_json)
    if as_json:
        print_json(document.identification(subject, answer, addresses))
    else:
        say(console.identified(subject, answer, addresses))
