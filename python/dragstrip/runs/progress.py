"""Progress of runs: a bar in a notebook or on a terminal, else a line of standard error per finished run."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from dragstrip.display import quantity
from dragstrip.display.progress import ProgressMessages, say
from dragstrip.display.progress_cell import ProgressCell, in_notebook
from dragstrip.display.terminal import Terminal
from dragstrip.engines.registry import named
from dragstrip.experiment.expand import PlannedRun
from dragstrip.runs import Outcome, Watcher

STALLED_S = 30.0
"""Seconds without progress after which that is said."""


@contextmanager
def watching(runs: Sequence[PlannedRun], quiet: bool = False) -> Iterator[Watcher]:
    """Yield a watcher: a bar in a notebook or on a terminal, else a line per run, and nothing if quiet."""
    if quiet:
        yield _Quiet()
        return
    watcher = _CellBar(runs) if in_notebook() else _Bar(runs) if sys.stderr.isatty() else _Lines(runs)
    try:
        yield watcher
    finally:
        watcher.close()


class Speed:
    """The throughput of all flows of a run in real time over its last whole second."""

    def __init__(self) -> None:
        self.index, self.since_ns, self.bytes = -1, 0, 0
        self.bps: float | None = None

    def arrived(self, index: int, now_ns: int, arrived_bytes: int) -> None:
        """Record the bytes that have arrived by `now_ns`; 0 means that the engine does not count them."""
        if index != self.index:
            self.index, self.since_ns, self.bytes, self.bps = index, 0, 0, None
        if arrived_bytes and now_ns - self.since_ns >= 1_000_000_000:
            self.bps = (arrived_bytes - self.bytes) * 8e9 / (now_ns - self.since_ns)
            self.since_ns, self.bytes = now_ns, arrived_bytes

    def words(self) -> str:
        """Return the throughput for a progress line, or an empty string if it is unknown."""
        return "" if self.bps is None else f", throughput {quantity.rate(self.bps)}"


class _Quiet(Watcher):
    def note(self, note: str) -> None:
        say(note)


class _Lines(_Quiet):
    """Prints a line per finished run, and progress messages in between."""

    def __init__(self, runs: Sequence[PlannedRun]) -> None:
        self.runs = runs
        self.several = len({run.engine for run in runs}) > 1
        self.finished_count = 0
        self.reached = [0.0] * len(runs)
        self.total = sum(run.scenario["duration_ns"] for run in runs) / 1e9
        real = any(named(run.engine).real_time for run in runs)
        self.unit = "seconds" if real else "simulated seconds"
        self.speed = Speed()
        self.moved_at = time.monotonic()
        self.messages = ProgressMessages()
        self.messages.doing(lambda: "checking what is to run ...")

    def preparing(self, activity: str) -> None:
        say(activity)
        self.messages.doing(lambda: f"still {activity}")

    def started(self, index: int) -> None:
        if not any(self.reached):
            self.messages.doing(self._running)

    def _running(self) -> str:
        reached, runs = sum(self.reached), len(self.runs)
        times = f"{quantity.digits(reached)} of {quantity.digits(self.total)} {self.unit}"
        return f"[{self.finished_count}/{runs}] {times}{self.speed.words()} ...{self._stalled()}"

    def _stalled(self) -> str:
        """Return a remark on runs that have stood still for long."""
        still_s = time.monotonic() - self.moved_at
        if still_s < STALLED_S:
            return ""
        return f" (no progress for {still_s:.0f} s: an endless loop? --time-limit ends such a run)"

    def advanced(self, index: int, now_ns: int, arrived_bytes: int = 0) -> None:
        if self.reached[index] != now_ns / 1e9:
            self.moved_at = time.monotonic()
        self.reached[index] = now_ns / 1e9
        self.speed.arrived(index, now_ns, arrived_bytes)

    def finished(self, index: int, outcome: Outcome) -> None:
        self.finished_count += 1
        self.moved_at = time.monotonic()
        self.reached[index] = self.runs[index].scenario["duration_ns"] / 1e9
        # Why it failed is said once, at the end.
        ending = "done" if outcome.summary is not None else "failed"
        run = self.runs[index]
        name = f"{run.name} ({run.engine})" if self.several else run.name
        self.tell(f"[{self.finished_count}/{len(self.runs)}] {name}: {ending}", outcome)

    def tell(self, line: str, outcome: Outcome) -> None:
        say(line)

    def concluding(self, activity: str) -> None:
        self.messages.doing(lambda: f"{activity} ...")

    def close(self) -> None:
        self.messages.close()


class _Bar(_Lines):
    """Shows one bar over the seconds of all runs, then lines once it is gone."""

    def __init__(self, runs: Sequence[PlannedRun]) -> None:
        super().__init__(runs)
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=Terminal(stderr=True),
            transient=True,
        )
        self.bar = self.progress.add_task(self.unit, total=round(self.total))
        self.progress.start()

    def preparing(self, activity: str) -> None:
        self.progress.console.print(activity, highlight=False)
        self.messages.doing(None)

    def started(self, index: int) -> None:
        self.messages.doing(None)

    def advanced(self, index: int, now_ns: int, arrived_bytes: int = 0) -> None:
        super().advanced(index, now_ns, arrived_bytes)
        self._show()

    def finished(self, index: int, outcome: Outcome) -> None:
        super().finished(index, outcome)
        self._show()

    def tell(self, line: str, outcome: Outcome) -> None:
        if outcome.summary is None:
            self.progress.console.print(line, highlight=False)

    def aside(self) -> None:
        self.progress.stop()

    def concluding(self, activity: str) -> None:
        if self.progress.live.is_started:
            self.progress.update(self.bar, description=activity)
        else:
            say(f"{activity} ...")

    def close(self) -> None:
        super().close()
        self.progress.stop()

    def _show(self) -> None:
        words = self.unit + self.speed.words()
        self.progress.update(self.bar, completed=round(sum(self.reached)), description=words)


class _CellBar(_Lines):
    """Shows one bar over the seconds of all runs in a notebook's cell, and a line for each failure."""

    def __init__(self, runs: Sequence[PlannedRun]) -> None:
        super().__init__(runs)
        self.messages.doing(None)
        self.cell = ProgressCell()

    def preparing(self, activity: str) -> None:
        self.cell.show(activity)

    def started(self, index: int) -> None:
        self._show()

    def advanced(self, index: int, now_ns: int, arrived_bytes: int = 0) -> None:
        super().advanced(index, now_ns, arrived_bytes)
        self._show()

    def tell(self, line: str, outcome: Outcome) -> None:
        self._show()
        if outcome.summary is None:
            say(line)

    def concluding(self, activity: str) -> None:
        self.cell.show(activity)

    def close(self) -> None:
        super().close()
        self.cell.close()

    def _show(self) -> None:
        reached = sum(self.reached)
        times = f"{quantity.digits(reached)} of {quantity.digits(self.total)} {self.unit}"
        self.cell.show(f"{times}{self.speed.words()}", min(1.0, reached / self.total))
