"""`dragstrip diagnose`: what is wrong on a path, how sure that is, and what to change."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from dragstrip.cli import completion
from dragstrip.cli.options import Addresses, JsonFlag, SavePath
from dragstrip.cli.output import keep, print_json, say
from dragstrip.cli.race import Race, takes_race
from dragstrip.experiment.quantities import DESCRIBING

Files = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="[FILE...]",
        help="What was measured: scripts of tc commands, listings of tc -s qdisc show, captures (pcap, "
        "pcapng), files of iperf3, flent, ping, fping, irtt or ss -tin.",
        show_default=False,
    ),
]


@takes_race(DESCRIBING)
def diagnose(
    files: Files = None,
    *,
    race: Race,
    sender_algorithm: Annotated[
        str | None,
        typer.Option(
            "--sender-algorithm",
            metavar="NAME",
            help="Congestion control of the senders; default: the one in the files, else cubic.",
            autocompletion=completion.algorithms,
            show_default=False,
        ),
    ] = None,
    save_path: SavePath = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FOLDER",
            help="Also write the diagnosis as JSON, and the reports of its runs.",
            show_default=False,
        ),
    ] = None,
    addresses: Addresses = False,
    as_json: JsonFlag = False,
) -> None:
    """Say what is wrong on a path, how sure that is, and which change helps by how much.

    Takes any number of files that show the path, and options that describe it. Each change is tried on the
    simulator, on the path as it was found. With a path alone, a run of it stands for measurements.

    Example: dragstrip diagnose router.sh loaded.txt iperf3.json

    Example: dragstrip diagnose --path "home DSL"
    """
    from dragstrip.analysis.diagnosis import console, walk
    from dragstrip.display import glossary

    kept = None if save_path is None else partial(keep, name=save_path)
    document = walk.diagnose(
        files or [], race, sender_algorithm, out, quiet=as_json, addresses=addresses, keep=kept
    )
    if as_json:
        print_json(document)
        return
    say(console.text(document))
    terms = [finding["name"].removesuffix("_up") for finding in document["findings"]]
    if hint := glossary.hint(*terms):
        say(f"\n{hint}")
    if out is not None:
        say(f"\nWritten: {out}")
