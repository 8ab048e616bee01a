"""`dragstrip run`: an experiment, or a whole publication."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragstrip.cli import words
from dragstrip.cli.completion import experiments
from dragstrip.cli.execute import check_twice, execute, execute_publication
from dragstrip.cli.options import (
    Check,
    Duration,
    EngineOption,
    EnginesOrNone,
    Figures,
    JsonFlag,
    Load,
    Out,
    Repeat,
    Seed,
    TimeLimit,
    Workers,
)
from dragstrip.cli.output import say
from dragstrip.errors import BadInputError

if TYPE_CHECKING:
    from dragstrip.runner import Plan


def run(
    experiment: Annotated[
        str,
        typer.Argument(
            metavar="EXPERIMENT",
            help="Name in the catalogue, a TOML file, a publication, or `all` of them.",
            autocompletion=experiments,
        ),
    ],
    out: Out = None,
    workers: Workers = None,
    repeat: Repeat = None,
    seed: Seed = None,
    duration: Duration = None,
    engine: EnginesOrNone = None,
    engine_option: EngineOption = None,
    load: Load = None,
    time_limit: TimeLimit = None,
    check: Check = False,
    write_docs: Annotated[
        Path | None,
        typer.Option(
            "--write-docs",
            metavar="FILE",
            help="With `all`: write docs/catalogue.md and the publications' pages.",
        ),
    ] = None,
    report: Annotated[
        bool | None,
        typer.Option("--report/--no-report", help="Write report.html.", show_default="not of publications"),
    ] = None,
    figures: Figures = None,
    as_json: JsonFlag = False,
) -> None:
    """Run an experiment or a whole publication, and grade its claims.

    Example: dragstrip run caia-110729a/adsl1 --out adsl1
    """
    from dragstrip import catalogue
    from dragstrip.experiment import rebuilt
    from dragstrip.runner import plan

    wanted = words.figures(figures, report)
    limits = words.time_limit(time_limit)
    given = {"repeat": repeat, "seed": seed, "duration": duration, "engine": engine, "load": load}
    changed: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    if engine_option:
        changed["engine_options"] = words.engine_options(engine_option)

    def planned(name: str) -> Plan:
        described, source = catalogue.load(name)
        if changed:
            described, replaced = rebuilt(described.content(), changed)
            if replaced:
                say(f"note: {name}: the stack of {', '.join(replaced)} runs as the engine's own", err=True)
        return plan(described, source)

    if write_docs is not None and (experiment != catalogue.EVERYTHING or changed):
        expected = "needs `run all` without options that change the experiments, such as --repeat or --engine"
        raise BadInputError("--write-docs", None, expected, "command line")
    members = catalogue.members(experiment)
    if members and check:
        raise BadInputError("--check", None, "is for one experiment, not a whole publication", "command line")
    if members:
        plans = {name: planned(name) for name in members}
        execute_publication(
            experiment, plans, out, workers, limits, bool(report or wanted), wanted, write_docs, as_json
        )
        return
    single = planned(experiment)
    if check:
        check_twice(single, out, workers, limits, as_json)
        return
    stem = single.experiment.name.split("/")[-1]
    execute(single, out, stem, workers, limits, report is not False, wanted, as_json)
