"""Runs go to worker processes on this machine, one run at a time each.

A worker that crashes fails the run it was on and is replaced. Workers die with this process. Tasks and
answers are lines of JSON on pipes, so that a caller's script is never imported again in a worker.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dragstrip.engines.registry import DEFAULT
from dragstrip.errors import BadInputError, Raw

WORKER = "dragstrip.engines.worker"
"""The module that a worker process runs."""


@dataclass(frozen=True)
class Task:
    """One run and where its recording goes."""

    scenario: dict[str, Any]
    folder: Path
    provenance: dict[str, Any] = field(default_factory=dict)
    engine: str = DEFAULT
    options: Mapping[str, Any] = field(default_factory=dict)
    """The engine's."""
    recalled: bool = False
    """The recording of an earlier run will do."""


@dataclass(frozen=True)
class Outcome:
    """How a run ended: its summary, or why there is none."""

    summary: dict[str, Any] | None
    failure: str = ""
    wrong: Sequence[str] = ()
    """What the `BadInputError` was made of, if it was one."""


def complain(outcomes: Sequence[Outcome]) -> None:
    """Raises `BadInputError` if no run was possible, the first because of what was asked for."""
    if outcomes[0].wrong and all(outcome.summary is None for outcome in outcomes):
        field, value, expected, source = outcomes[0].wrong
        raise BadInputError(field, Raw(value), expected, source)


class Watcher:
    """Told what happens; the base class ignores it."""

    def started(self, index: int) -> None:
        """The task with this index has begun."""

    def advanced(self, index: int, now_ns: int) -> None:
        """It has come to this simulated time."""

    def finished(self, index: int, outcome: Outcome) -> None:
        """It has ended."""

    def concluding(self, what: str) -> None:
        """All runs have ended; this is done with them now."""


def worker_count(asked: int | None, tasks: int) -> int:
    """As many as asked for, or one per usable core; never more than tasks."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(asked or cores, tasks))


def run_all(
    tasks: Sequence[Task], workers: int | None = None, watcher: Watcher | None = None
) -> list[Outcome]:
    """Runs all tasks and gives their outcomes in the order of the tasks.

    On an exception (Ctrl-C included) all workers are killed before it travels on.
    """
    pool = _Pool(tasks, watcher or Watcher())
    try:
        for _ in range(worker_count(workers, len(tasks))):
            pool.add_worker()
        pool.work()
    finally:
        pool.kill()
    return [pool.outcomes[index] for index in range(len(tasks))]


class _Worker:
    """A child process, the task it is on, and the part of an answer that has arrived."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", WORKER, str(os.getpid())]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(part for part in sys.path if part)}
        self.process = subprocess.Popen(  # noqa: S603  (our own interpreter, our own module)
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )
        self.index: int | None = None
        self._partial = b""

    def give(self, index: int, task: Task) -> None:
        assert self.process.stdin is not None
        self.index = index
        content = {
            "scenario": task.scenario,
            "folder": str(task.folder),
            "provenance": task.provenance,
            "engine": task.engine,
            "options": dict(task.options),
            "recalled": task.recalled,
        }
        self.process.stdin.write(json.dumps(content).encode() + b"\n")
        self.process.stdin.flush()

    def answers(self) -> list[dict[str, Any]] | None:
        """What has arrived; none when the worker is gone."""
        assert self.process.stdout is not None
        piece = os.read(self.process.stdout.fileno(), 1 << 20)
        if not piece:
            return None
        *lines, self._partial = (self._partial + piece).split(b"\n")
        return [json.loads(line) for line in lines]

    def close(self) -> None:
        self.process.kill()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
        self.process.wait()


class _Pool:
    def __init__(self, tasks: Sequence[Task], watcher: Watcher) -> None:
        self.tasks = tasks
        self.waiting = list(reversed(range(len(tasks))))
        self.outcomes: dict[int, Outcome] = {}
        self.watcher = watcher
        self.selector = selectors.DefaultSelector()
        self.workers: list[_Worker] = []

    def add_worker(self) -> None:
        worker = _Worker()
        self.workers.append(worker)
        assert worker.process.stdout is not None
        self.selector.register(worker.process.stdout, selectors.EVENT_READ, worker)
        self.give(worker)

    def give(self, worker: _Worker) -> None:
        worker.index = None
        if not self.waiting:
            return
        index = self.waiting.pop()
        try:
            worker.give(index, self.tasks[index])
        except BrokenPipeError:
            worker.index = index  # its end will be seen as an end of file
        self.watcher.started(index)

    def work(self) -> None:
        while len(self.outcomes) < len(self.tasks):
            for key, _ in self.selector.select():
                worker: _Worker = key.data
                answers = worker.answers()
                if answers is None:
                    self.bury(worker)
                    continue
                for answer in answers:
                    self.hear(worker, answer)

    def hear(self, worker: _Worker, answer: dict[str, Any]) -> None:
        assert worker.index is not None
        match answer["kind"]:
            case "progress":
                self.watcher.advanced(worker.index, answer["now_ns"])
            case "done":
                self.finish(worker.index, Outcome(answer["summary"]))
                self.give(worker)
            case _:
                if "trace" in answer:
                    print(answer["trace"], file=sys.stderr)  # noqa: T201
                self.finish(worker.index, Outcome(None, answer["reason"], answer.get("wrong", ())))
                self.give(worker)

    def finish(self, index: int, outcome: Outcome) -> None:
        self.outcomes[index] = outcome
        self.watcher.finished(index, outcome)

    def bury(self, worker: _Worker) -> None:
        """A worker is gone: its run has failed, another worker takes its place."""
        self.selector.unregister(worker.process.stdout)  # type: ignore[arg-type]
        status = worker.process.wait()
        self.workers.remove(worker)
        worker.close()
        if worker.index is not None:
            how = f"signal {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
            self.finish(worker.index, Outcome(None, f"its process ended with {how}"))
        if self.waiting:
            self.add_worker()

    def kill(self) -> None:
        for worker in self.workers:
            worker.close()
        self.selector.close()
