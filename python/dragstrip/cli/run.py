"""`dragstrip run`: an experiment, or a whole publication."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragstrip.cli import words
from dragstrip.cli.capture import capture_request
from dragstrip.cli.completion import experiments
from dragstrip.cli.execute import check_twice, execute, execute_publication
from dragstrip.cli.options import (
    CaptureAt,
    Check,
    Duration,
    EngineOption,
    EnginesOrNone,
    Figures,
    JsonFlag,
    LabOption,
    Load,
    Out,
    Repeat,
    RustProgram,
    Seed,
    Snaplen,
    Strict,
    TimeLimit,
    Verbose,
    Width,
    Workers,
)
from dragstrip.cli.output import say
from dragstrip.errors import BadInputError

if TYPE_CHECKING:
    from dragstrip.studies.execution.runner import Plan


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
    program: RustProgram = None,
    strict: Strict = False,
    lab: LabOption = None,
    time_limit: TimeLimit = None,
    check: Check = False,
    capture: CaptureAt = None,
    snaplen: Snaplen = None,
    report: Annotated[
        bool | None,
        typer.Option("--report/--no-report", help="Write report.html.", show_default="not for publications"),
    ] = None,
    figures: Figures = None,
    width: Width = None,
    verbose: Verbose = False,
    as_json: JsonFlag = False,
) -> None:
    """Run an experiment or a whole publication and grade its claims.

    Example: dragstrip run caia-110729a/adsl1 --out adsl1
    """
    from dragstrip.display.progress import progress
    from dragstrip.experiment import catalogue, programs
    from dragstrip.experiment.types import rebuilt
    from dragstrip.studies.execution.runner import captured, plan

    if programs.of_files(program or []):
        expected = "an algorithm in Rust: the experiment itself names texts, in [programs]"
        raise BadInputError("--program", (program or [""])[0], expected, "command line")
    paper = words.figures(figures, width, report)
    limits = words.time_limit(time_limit)
    packets = capture_request(capture, snaplen)
    overrides = {"repeat": repeat, "seed": seed, "duration": duration, "engine": engine, "load": load}
    changed: dict[str, Any] = {key: value for key, value in overrides.items() if value is not None}
    options = words.engine_options(engine_option or [], lab)

    def planned(name: str) -> Plan:
        described, source = catalogue.load(name, engine, load)
        engine_settings = options or described.engine_options
        fields = (
            {**changed, "engine_options": words.with_strict(engine_settings, strict)}
            if options or strict
            else changed
        )
        if fields:
            described, replaced = rebuilt(described.content(), fields)
            if replaced:
                say(f"note: {name}: the engine's own stack replaces {', '.join(replaced)}", err=True)
        return captured(plan(described, source), packets)

    members = catalogue.members(experiment)
    if members and check:
        raise BadInputError("--check", None, "is for one experiment, not a whole publication", "command line")
    if check and packets:
        raise BadInputError(
            "--capture", None, "is not for --check, which keeps no recordings", "command line"
        )
    if members:
        plans = {name: planned(name) for name in members}
        execute_publication(
            experiment,
            plans,
            out,
            workers,
            limits,
            bool(report or paper.endings),
            paper,
            as_json,
        )
        return
    with progress("expanding the experiment ...", as_json):
        single = planned(experiment)
    if check:
        check_twice(single, out, workers, limits, as_json)
        return
    stem = single.experiment.name.split("/")[-1]
    execute(single, out, stem, workers, limits, report is not False, paper, as_json, verbose=verbose)
