"""Runs a whole experiment in memory: the runs, measures and grades of `runner.execute`, without a folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragstrip.errors import BadInputError
from dragstrip.runs import Watcher, run_all
from dragstrip.studies.execution.runner import (
    PARTIAL,
    Plan,
    claimed,
    clean_up,
    document_of,
    expect_success,
    prepare,
    tasks_of,
    write_documents,
    write_report,
)

if TYPE_CHECKING:
    from dragstrip.model.recording import Recording
    from dragstrip.report.load import Bundle


@dataclass(frozen=True)
class Execution:
    """Runs that have ended, in memory."""

    document: dict[str, Any]
    """The result document (docs/reference/result-json.md)."""
    recordings: dict[str, Recording]
    """The recordings, by the folder that the document names."""


def execute_in_memory(
    planned: Plan, *, workers: int | None = None, watcher: Watcher | None = None, command: str = ""
) -> Execution:
    """Run a plan on up to `workers` threads (None: one per usable core) and keep its recordings in memory.

    Raises `BadInputError` for an experiment on two engines, whose comparison needs a folder, or with
    captures, and `DragstripError` if every run failed.
    """
    engines = planned.experiment.engines
    if len(engines) > 1:
        raise BadInputError(
            "engine", ",".join(engines), "one engine, or `out`: a folder for both engines' runs"
        )
    if planned.capture is not None:
        raise BadInputError("out", None, "a folder for the packet captures")
    recordings: dict[str, Recording] = {}
    tasks = [
        replace(task, folder=None, keep=partial(recordings.__setitem__, job.folder))
        for job, task in zip(planned.jobs, tasks_of(planned, Path(), command), strict=True)
    ]
    watcher = watcher or Watcher()
    prepare(tasks, watcher)
    outcomes = run_all(tasks, workers, watcher)
    expect_success(outcomes)
    ended = list(zip(planned.jobs, outcomes, strict=True))
    return Execution(document_of(planned, ended, recordings.__getitem__), recordings)


def write_bundle(bundle: Bundle, document: Mapping[str, Any], out: Path) -> None:
    """Write a result in memory into the folder `out`, as `runner.execute` writes it.

    Raises `BadInputError` for a folder that cannot be used, and for a result that was read from one.
    """
    from dragstrip.model.recording import write
    from dragstrip.report.load import recording_of

    recordings = {run.summary["recording"]: recording_of(run).recording for run in bundle.runs}
    if None in recordings.values():
        raise BadInputError("result", None, f"a result in memory: this one is in {bundle.folder}")
    with claimed(out) as made_here:
        try:
            for folder, recording in recordings.items():
                assert recording is not None
                write(recording, out / folder)
            write_documents(out, bundle.experiment, document)
            write_report(out)
        except BaseException:
            clean_up(out, made_here, finished=False)
            raise
        (out / PARTIAL).unlink()
