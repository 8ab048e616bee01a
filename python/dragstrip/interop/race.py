"""Races from Python: in memory, or into an output folder as the command line writes it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Unpack

from dragstrip.engines import DEFAULT
from dragstrip.engines.capture import CaptureRequest
from dragstrip.errors import BadInputError
from dragstrip.experiment.comparison import command, compare
from dragstrip.experiment.programs import Program, separated
from dragstrip.experiment.quantities import RaceQuantities, texts, with_options
from dragstrip.experiment.types import Experiment
from dragstrip.interop.arguments import named_arguments
from dragstrip.interop.result import Result
from dragstrip.runs import Watcher
from dragstrip.runs.progress import watching
from dragstrip.studies.execution.memory import execute_in_memory
from dragstrip.studies.execution.runner import captured, execute, plan


def run(
    experiment: Experiment,
    out: str | Path | None = None,
    *,
    workers: int | None = None,
    report: bool = True,
    figures: Sequence[str] = (),
    width: str | None = None,
    capture: Sequence[str] = (),
    progress: bool = False,
) -> Result:
    """Run an experiment and return its result.

    Without `out` everything stays in memory, and nothing is written. With `out`, a folder that is empty or
    does not exist yet, the recordings, `result.json` and, with `report`, `report.html` are written there, as
    the command line does; `figures` is then a selection of `svg`, `png`, `pdf` and `csv`, which are written
    with the report, for papers, and `width` is the width of each picture, such as `84mm`. `workers` limits
    the number of runs at a time (None: one per usable core). `capture` names hosts or links whose packets are
    written beside each recording in `out`, as pcapng. `progress` shows how far the runs
    are, on standard error or as a bar in a notebook's cell.

    Raises `BadInputError` for input that cannot be right; nothing is written then. Raises `DragstripError` if
    every run failed.
    """
    return _run(
        experiment,
        out,
        workers=workers,
        report=report,
        figures=figures,
        width=width,
        capture=capture,
        progress=progress,
    )


@named_arguments
def _run(
    experiment: Experiment,
    out: str | Path | None,
    *,
    workers: int | None = None,
    report: bool = True,
    figures: Sequence[str] = (),
    width: str | None = None,
    capture: Sequence[str] = (),
    progress: bool = False,
    replay: str = "",
) -> Result:
    if not isinstance(experiment, Experiment):
        expected = "an `Experiment`, as `compare` and `Experiment.read` return it"
        raise BadInputError("experiment", experiment, expected)
    planned = plan(experiment)
    if capture:
        planned = captured(planned, CaptureRequest(points=tuple(capture)))
    watched = watching(planned.runs) if progress else nullcontext(Watcher())
    if out is None:
        for name, value in (("figures", figures), ("width", width), ("capture", capture)):
            if value:
                raise BadInputError(
                    name, value, "none without `out`; `Result.plot(…).save(file)` saves a figure"
                )
        with watched as watcher:
            execution = execute_in_memory(planned, workers=workers, watcher=watcher, command="dragstrip.run")
        return Result.from_execution(execution, planned.experiment, planned.runs, replay)
    if figures and not report:
        raise BadInputError("figures", figures, "none without `report`, with which they are written")
    from dragstrip.report.paper import paper

    settings: dict[str, Any] = {"workers": workers, "report": report, "figures": paper(figures, width)}
    with watched as watcher:
        execute(planned, Path(out), **settings, watcher=watcher, command="dragstrip.run")
    return Result.read(out)


@with_options
def race(
    *algorithms: str | Program,
    out: str | Path | None = None,
    workers: int | None = None,
    engine: str = DEFAULT,
    capture: Sequence[str] = (),
    progress: bool = False,
    **options: Unpack[RaceQuantities],
) -> Result:
    """Race congestion controls over one path: `race("cubic", "bbr", path="cable")`.

    The same as `run(compare([...], ...), out)`; the options are those of `compare` and of the command line.
    `progress` shows how far the runs are. Raises `BadInputError` for input that cannot be right, and
    `DragstripError` if every run failed.
    """
    if any(not isinstance(entry, str | Program) for entry in algorithms):
        raise BadInputError("algorithms", algorithms, 'names or programs: race("cubic", "bbr", ...)')
    experiment = compare(list(algorithms), engine=engine, **options)
    names, programs = separated(algorithms)
    words = ["--engine", engine] if engine != DEFAULT else []
    words += [word for point in capture for word in ("--capture", point)]
    # A program may have no file that a command could name.
    replay = "" if programs or options.get("programs") else command(names, texts(options), words)
    return _run(experiment, out, workers=workers, capture=capture, progress=progress, replay=replay)
