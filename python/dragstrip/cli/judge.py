"""`dragstrip judge`: algorithms scored on paths that they have not seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from dragstrip.cli import completion
from dragstrip.cli.options import Workers
from dragstrip.cli.output import print_json_line, say
from dragstrip.errors import BadInputError

if TYPE_CHECKING:
    from dragstrip.studies.judge import Judgement


def judge(
    texts: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="Algorithms as texts (FILE.cc, docs/how-to/program.md), policies (FILE.json, FILE.onnx), or "
            "congestion controls by name.",
            autocompletion=completion.algorithms,
            show_default=False,
        ),
    ],
    *,
    hidden: Annotated[
        int,
        typer.Option(
            "--hidden",
            metavar="SEED",
            min=0,
            max=2**53 - 1,
            help="Seed that draws the scenarios; the author of a text should not know it.",
            show_default=False,
        ),
    ],
    quick: Annotated[bool, typer.Option("--quick", help="Draw 8 scenarios, one of each kind.")] = False,
    scenarios: Annotated[
        int | None,
        typer.Option("--scenarios", metavar="N", help="Number of scenarios.", show_default="40"),
    ] = None,
    show: Annotated[
        bool,
        typer.Option("--show", help="Show each scenario with its score and the command that replays it."),
    ] = False,
    workers: Workers = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document a line, one for each algorithm.")
    ] = False,
) -> None:
    """Score algorithms on scenarios that a seed draws and their authors have not seen.

    Rates, round trips, buffers, losses and neighbours are drawn. The score is the mean, over scenarios and
    all flows, of log2(goodput / round trip), less CUBIC's in the same place: +1 is twice as good. A text with
    an error has no score and does not end the others; the status is then 2. --json prints a line each.

    Example: dragstrip judge my.cc cubic bbr --hidden 20251 --quick

    Example: dragstrip judge programs/*.cc --hidden 7 --json
    """
    from dragstrip.studies.judge import command, console

    count = command.scenario_count(quick, scenarios)
    if not as_json:
        say(console.heading(hidden, count))

    def judged(judgement: Judgement) -> None:
        if as_json:
            print_json_line(judgement.to_dict())
        else:
            say(console.text(judgement))

    judgements = command.judge(
        texts, hidden, count=count, show=show, workers=workers, quiet=as_json, judged=judged
    )
    if unscored := [str(judgement["algorithm"]) for judgement in judgements if judgement.error]:
        explanation = f"no score for {', '.join(unscored)}: the answer says why"
        raise BadInputError("FILE", None, explanation, "command line")
