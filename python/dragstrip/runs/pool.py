"""A list of runs, made in parallel and answered in the order of the list.

A few short runs use threads of this process, because starting workers would take longer than the runs. All
others go to worker processes; a worker that crashes fails its current run and is replaced.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragstrip.engines.contract import Progress
from dragstrip.engines.registry import DEFAULT, named
from dragstrip.errors import BadInputError, DragstripError, FaultError, Raw
from dragstrip.io.untrusted import one_line
from dragstrip.model.scenario.paths import packets
from dragstrip.runs.local import Local
from dragstrip.runs.parallel import StoppedError, cores, run_parallel, worker_count
from dragstrip.runs.process import UNLIMITED, Limits
from dragstrip.runs.work import FAILED, FAULT, OK, UNWRITTEN, Answer, Order, perform

if TYPE_CHECKING:
    from dragstrip.model.recording import Recording

THREADED_RUNS_MAX = 24
"""More runs than this use worker processes, because measuring and writing hold the interpreter's lock."""
THREADED_PACKETS_MAX = 10e6
"""Estimated packets of all runs together; larger lists use worker processes."""


@dataclass(frozen=True)
class Task:
    """One run, and the folder of its recording."""

    scenario: dict[str, Any]
    folder: Path | None
    """None: the recording is measured and not kept."""
    provenance: dict[str, Any] = field(default_factory=dict)
    engine: str = DEFAULT
    options: Mapping[str, Any] = field(default_factory=dict)
    """The engine's options."""
    recalled: bool = False
    """True if the stored recording of an earlier run may be used."""
    capture: Mapping[str, Any] | None = None
    """A `Capture` as a table, or None."""
    keep: Callable[[Recording], object] | None = None
    """Receives the recording, in the thread that made it; the run is then made in this process."""

    def order(self, number: int, in_thread: bool, cores: int) -> Order:
        """Return the task as order `number`, for a thread of this process (`in_thread`) or for a worker."""
        return Order(
            number,
            "" if in_thread else json.dumps(self.scenario),
            self.engine,
            self.options,
            "" if self.folder is None else str(self.folder),
            self.provenance,
            self.recalled,
            watched=True,
            scenario=self.scenario if in_thread else None,
            capture=self.capture,
            cores=cores,
            keep=self.keep,
        )


@dataclass(frozen=True)
class Outcome:
    """Outcome of a run: its summary, or the reason for its failure."""

    summary: dict[str, Any] | None
    failure: str = ""
    wrong: Sequence[str] = ()
    """The arguments of the `BadInputError`, if it was one."""
    kind: str = ""
    """`FAULT`, `UNWRITTEN` or empty."""
    sha256: str = ""
    """The recording's hash; empty if the run failed."""


def raise_failure(outcomes: Sequence[Outcome]) -> None:
    """Raise `BadInputError` if no run was possible and the first failed because of the user's input.

    If another run failed for another reason, the message names that too, since one correction may not do for
    all. Raises `DragstripError` if a recording could not be written, because the next could not be either,
    and `FaultError` for a fault of the program.
    """
    for outcome in outcomes:
        if outcome.kind == UNWRITTEN:
            raise DragstripError(outcome.failure)
    if outcomes[0].kind == FAULT and all(outcome.summary is None for outcome in outcomes):
        raise FaultError(outcomes[0].failure)
    if outcomes[0].wrong and all(outcome.summary is None for outcome in outcomes):
        field, value, expected, source = outcomes[0].wrong
        other_failures = (outcome.failure for outcome in outcomes if outcome.failure != outcomes[0].failure)
        if another := next(other_failures, ""):
            expected = f"{expected} (another run: {another})"
        raise BadInputError(field, Raw(value), expected, source)


class Watcher:
    """Receives the events of a list of runs; this base class ignores them."""

    def note(self, note: str) -> None:
        """Report a note about the figures."""

    def preparing(self, activity: str) -> None:
        """Report preparation before the first task that takes seconds and is done once."""

    def started(self, index: int) -> None:
        """Report that the task with this index has begun."""

    def advanced(self, index: int, now_ns: int, arrived_bytes: int = 0) -> None:
        """Report the run's virtual time in ns and, in real time, the bytes of frames that have arrived."""

    def finished(self, index: int, outcome: Outcome) -> None:
        """Report that the task with this index has ended."""

    def aside(self) -> None:
        """Stop drawing, because other output follows."""

    def concluding(self, activity: str) -> None:
        """Report what is done after all runs have ended."""


def run_all(
    tasks: Sequence[Task],
    workers: int | None = None,
    watcher: Watcher | None = None,
    limits: Limits = UNLIMITED,
) -> list[Outcome]:
    """Run all tasks, each within `limits`, and return their outcomes in the order of the tasks.

    An exception, such as Ctrl-C, ends all runs before it propagates. Recordings that are kept in memory have
    no `limits`, because a thread cannot be ended.
    """
    in_threads = any(task.keep for task in tasks) or in_this_process(tasks, limits)
    count_of_workers = worker_count(workers, len(tasks))
    cores_each = max(1, worker_count(workers, cores()) // count_of_workers)
    orders = [task.order(at, in_threads, cores_each) for at, task in enumerate(tasks)]
    if any(named(task.engine).real_time for task in tasks):
        workers = 1  # the others would take the processors that it needs
    count, watcher = worker_count(workers, len(tasks)), watcher or Watcher()
    return (
        _in_threads(orders, count, watcher) if in_threads else _in_processes(orders, count, watcher, limits)
    )


def in_this_process(tasks: Sequence[Task], limits: Limits = UNLIMITED) -> bool:
    """True if the tasks are few and short enough for threads of this process."""
    from dragstrip.model.recording import core_build  # with Arrow

    # A thread cannot be ended, and an algorithm in Rust of the user's may loop for ever.
    return (
        limits == UNLIMITED
        and len(tasks) <= THREADED_RUNS_MAX
        and all(named(task.engine).in_process for task in tasks)
        and sum(packets(task.scenario) for task in tasks) <= THREADED_PACKETS_MAX
        and not core_build.algorithm_files()
    )


def _outcome(answer: Answer) -> Outcome:
    for note in answer.get("notes", ()):
        print(one_line(note), file=sys.stderr)  # noqa: T201
    if answer["status"] == OK:
        return Outcome(answer["summary"], sha256=answer["sha256"])
    if "output" in answer and os.environ.get("DRAGSTRIP_TRACEBACK"):
        print(answer["output"], file=sys.stderr)  # noqa: T201
    return Outcome(None, answer["reason"], answer.get("wrong", ()), answer.get("kind", ""))


LOOK_S = 0.2
"""Seconds between two checks of the runs' time limit."""


def _in_processes(orders: Sequence[Order], workers: int, watcher: Watcher, limits: Limits) -> list[Outcome]:
    waiting = list(reversed(orders))
    outcomes: dict[int, Outcome] = {}
    place = Local(workers, limits, ahead=False, advanced=watcher.advanced)
    try:
        while len(outcomes) < len(orders):
            while waiting and place.room() > 0:
                order = waiting.pop()
                place.submit(order)
                watcher.started(order.number)
            for event in place.poll(None if limits == UNLIMITED else LOOK_S):
                answer = event.answer
                outcome = Outcome(None, event.how) if answer is None else _outcome(answer)
                outcomes[event.order.number] = outcome
                watcher.finished(event.order.number, outcome)
    finally:
        place.close()
    return [outcomes[order.number] for order in orders]


def _in_threads(orders: Sequence[Order], workers: int, watcher: Watcher) -> list[Outcome]:
    outcomes: dict[int, Outcome] = {}

    def started(index: int) -> None:
        from dragstrip.model import recording  # noqa: F401  (loaded while the first runs are simulated)
        from dragstrip.results import measures  # noqa: F401  (loaded while the first runs are simulated)

        watcher.started(index)

    def finished(index: int, answer: Answer) -> None:
        outcomes[index] = _outcome(answer)
        watcher.finished(index, outcomes[index])

    run_parallel(_performed, orders, workers, started=started, advanced=watcher.advanced, finished=finished)
    return [outcomes[index] for index in range(len(orders))]


def _performed(order: Order, progress: Progress) -> Answer:
    """Perform an order; an error that `perform` does not expect fails this run alone."""
    try:
        return perform(order, progress)
    except StoppedError:
        raise
    except BaseException as error:  # noqa: BLE001 - the other runs go on
        return {"status": FAILED, "reason": f"{type(error).__name__}: {error}"}
