"""Runs a whole experiment: check everything, run, measure, grade, write.

The output folder appears with a file `PARTIAL` in it; every recording lands whole by a rename; the
marker goes when the result is written. Bad input writes nothing.
"""

from __future__ import annotations

import contextlib
import itertools
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragstrip import _core
from dragstrip.claims import Finished, check, grade
from dragstrip.engines import prepare
from dragstrip.engines.pool import Outcome, Task, Watcher, run_all
from dragstrip.errors import BadInputError, DragstripError
from dragstrip.expand import Run, expand
from dragstrip.experiment import Experiment
from dragstrip.measures import Measured
from dragstrip.recording import read, write_json

PARTIAL = "PARTIAL"
"""Stands in an output folder that is being written, or whose run was interrupted."""


@dataclass(frozen=True)
class Plan:
    """An experiment, checked and expanded, that may run."""

    experiment: Experiment
    runs: list[Run]
    source: str = ""


def plan(experiment: Experiment, source: str = "") -> Plan:
    """Checks everything that can be checked before anything is written; raises `BadInputError`."""
    runs = expand(experiment, source)
    check(experiment, runs, source)
    return Plan(experiment, runs, source)


def execute(
    planned: Plan,
    out: Path,
    *,
    workers: int | None = None,
    watcher: Watcher | None = None,
    command: str = "",
    report: bool = True,
) -> dict[str, Any]:
    """Runs a plan into the folder `out` and gives the result document (docs/result-json.md).

    Raises `BadInputError` for a folder that cannot take it, `DragstripError` when every run failed.
    """
    watcher = watcher or Watcher()
    prepare(planned.experiment.engine)
    claim_folder(out)
    try:
        outcomes = run_all(_tasks(planned, out, command), workers, watcher)
    except BaseException:
        _leave(out)
        raise
    _sweep(out)
    if all(outcome.summary is None for outcome in outcomes):
        _leave(out)
        raise DragstripError(f"every run failed; the first one: {outcomes[0].failure}")
    watcher.concluding("measuring")
    document = _document(planned, outcomes, out)
    write_json(out / "experiment.json", _plain(planned.experiment))
    write_json(out / "result.json", document)
    if report:
        watcher.concluding("writing the report")
        write_report(out)
    (out / PARTIAL).unlink()
    return document


def claim_folder(out: Path) -> None:
    """Makes the output folder, or takes an empty one; raises `BadInputError` otherwise."""
    try:
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise BadInputError("--out", str(out), "a folder that is empty or does not exist yet")
        out.mkdir(parents=True, exist_ok=True)
        (out / PARTIAL).write_text("This folder is being written, or its run was interrupted.\n")
    except OSError as error:
        raise _unwritable(out, error) from None


def next_folder(parent: Path, stem: str) -> Path:
    """Makes `parent/stem-001`, or the first number that is free: two at once never get the same."""
    try:
        parent.mkdir(parents=True, exist_ok=True)
        for number in itertools.count(1):
            folder = parent / f"{stem}-{number:03d}"
            with contextlib.suppress(FileExistsError):
                folder.mkdir()
                return folder
    except OSError as error:
        raise _unwritable(parent, error) from None
    raise AssertionError("there is always a next number")


def write_report(out: Path) -> Path:
    """Writes the report of a folder with a result; gives the report's file."""
    from dragstrip.report import write_report as write

    return write(out)


def _tasks(planned: Plan, out: Path, command: str) -> list[Task]:
    return [
        Task(
            run.scenario,
            out / "runs" / run.slug,
            {
                "experiment": planned.experiment.name,
                "settings": run.settings,
                "repeat": run.repeat,
                "command": command,
            },
            planned.experiment.engine,
        )
        for run in planned.runs
    ]


def _unwritable(folder: Path, error: OSError) -> BadInputError:
    return BadInputError("--out", str(folder), f"a folder that can be written ({error.strerror})")


def _leave(out: Path) -> None:
    """Removes a folder without a single recording; one with recordings stays, marked."""
    _sweep(out)
    if not any((out / "runs").glob("[0-9]*")):
        shutil.rmtree(out, ignore_errors=True)


def _sweep(out: Path) -> None:
    """Removes the drafts of recordings whose worker was killed."""
    for draft in (out / "runs").glob(".*.partial"):
        shutil.rmtree(draft, ignore_errors=True)


def _document(planned: Plan, outcomes: Sequence[Outcome], out: Path) -> dict[str, Any]:
    lines = []
    failed = []
    for run, outcome in zip(planned.runs, outcomes, strict=True):
        if outcome.summary is None:
            failed.append({"scenario": run.name, "seed": run.scenario["seed"], "reason": outcome.failure})
            continue
        lines.append(
            {
                "scenario": run.name,
                "engine": planned.experiment.engine,
                "seed": run.scenario["seed"],
                "recording": f"runs/{run.slug}",
                **outcome.summary,
            }
        )
    return {
        "version": _core.__version__,
        "experiment": planned.experiment.name,
        "runs": lines,
        "claims": _claims(planned, outcomes, out),
        "failed": failed,
    }


def _claims(planned: Plan, outcomes: Sequence[Outcome], out: Path) -> list[dict[str, Any]]:
    if not planned.experiment.claims:
        return []
    finished = [
        Finished(run, Measured(read(out / "runs" / run.slug)))
        for run, outcome in zip(planned.runs, outcomes, strict=True)
        if outcome.summary is not None
    ]
    return [grade(claim, finished) for claim in planned.experiment.claims]


def _plain(experiment: Experiment) -> dict[str, Any]:
    dumped: dict[str, Any] = experiment.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    return dumped
