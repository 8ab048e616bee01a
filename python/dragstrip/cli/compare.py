"""`dragstrip compare`: congestion controls on a path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from dragstrip import engines
from dragstrip.cli import words
from dragstrip.cli.capture import capture_request
from dragstrip.cli.execute import check_twice, execute
from dragstrip.cli.options import (
    CaptureAt,
    Check,
    EngineOption,
    Engines,
    Figures,
    JsonFlag,
    LabOption,
    Load,
    Out,
    Report,
    SavePath,
    Snaplen,
    Strict,
    TimeLimit,
    Verbose,
    Width,
    Workers,
)
from dragstrip.cli.output import keep
from dragstrip.cli.race import EVERY, Algorithms, Race, all_wrong, takes_race
from dragstrip.errors import BadInputError

if TYPE_CHECKING:
    from dragstrip.experiment.types import Experiment


@takes_race(EVERY)
def compare(
    algorithms: Algorithms = None,
    *,
    race: Race,
    engine: Engines = engines.DEFAULT,
    engine_option: EngineOption = None,
    load: Load = None,
    strict: Strict = False,
    lab: LabOption = None,
    time_limit: TimeLimit = None,
    check: Check = False,
    capture: CaptureAt = None,
    snaplen: Snaplen = None,
    save_path: SavePath = None,
    out: Out = None,
    workers: Workers = None,
    report: Report = True,
    figures: Figures = None,
    width: Width = None,
    show: Annotated[
        bool, typer.Option("--show", help="Print the comparison as an experiment in TOML; run nothing.")
    ] = False,
    verbose: Verbose = False,
    as_json: JsonFlag = False,
) -> None:
    """Compare congestion controls on a path, each alone or all together.

    Example: dragstrip compare --rate 10mbit --rtt 40ms --queue 'bfifo limit 200kb' --duration 30s
    reno cubic vegas cdg bbr

    Example: dragstrip compare --path "home DSL" --queue fq_codel cubic bbr
    """
    from dragstrip.experiment import saved_paths
    from dragstrip.experiment.comparison import COMMAND_LINE, reworded
    from dragstrip.experiment.comparison import compare as describe

    paper = words.figures(figures, width, report)
    limits = words.time_limit(time_limit)
    packets = capture_request(capture, snaplen)
    if not algorithms and capture and any(capture):
        names = " ".join(capture)
        expected = (
            f"is missing: --capture takes the words after it ({names}); put algorithms before --capture"
        )
        raise BadInputError("ALGORITHM", None, expected, "command line")
    if check and packets:
        raise BadInputError(
            "--capture", None, "is not for --check, which keeps no recordings", "command line"
        )
    options = words.with_strict(words.engine_options(engine_option or [], lab), strict)

    def experiment(names: list[str], race_options: Race) -> Experiment:
        return describe(
            names, engine=engine, engine_options=options, load=load or [], source=COMMAND_LINE, **race_options
        )

    def expanded(described: Experiment, *, fits_memory: bool = True) -> object:
        from dragstrip.experiment.expand import expand

        return reworded(lambda: expand(described, fits_memory=fits_memory), COMMAND_LINE)

    def checked(names: list[str], race_options: Race) -> object:
        return expanded(experiment(names, race_options))

    try:
        described = experiment(algorithms or [], race)
        if show:
            expanded(described, fits_memory=False)  # the file may be run elsewhere
    except BadInputError as error:
        raise all_wrong(error, algorithms or [], race, checked) from None
    if save_path is not None:
        keep(saved_paths.described(race, "dragstrip compare"), save_path)
    if show:
        from dragstrip.io import toml

        typer.echo(toml.toml_text(described.content()), nl=False)
        return
    from dragstrip.display.progress import progress
    from dragstrip.studies.execution.runner import captured, plan

    with progress("expanding the experiment ...", as_json):
        try:
            planned = captured(reworded(lambda: plan(described), COMMAND_LINE), packets)
        except BadInputError as error:
            raise all_wrong(error, algorithms or [], race, checked) from None
    if check:
        check_twice(planned, out, workers, limits, as_json)
    else:
        queue = described.content()["path"].get("queue", "")
        heading = "" if {"queue", "path"} & race.keys() else f"queue {queue} (the default)"
        execute(planned, out, "compare", workers, limits, report, paper, as_json, heading, verbose=verbose)
