"""The coordinator, which makes the missing runs of a sweep and stores them.

It alone writes to the store, about once a second. A child that dies therefore loses only its own run, and
workers of a cluster need no shared file system.
"""

from __future__ import annotations

import contextlib
import json
import signal
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import Any

from dragstrip.engines import named
from dragstrip.engines.capture import CaptureRequest
from dragstrip.errors import DragstripError
from dragstrip.io import interruption
from dragstrip.results.claims import requests
from dragstrip.runs.local import Event, Place
from dragstrip.runs.work import FAILED, OK, REBUILT, UNWRITTEN, Order
from dragstrip.studies.sweep.build import build_of
from dragstrip.studies.sweep.figures import figures
from dragstrip.studies.sweep.plan import Index, Sweep, SweepRun
from dragstrip.studies.sweep.progress import SweepProgress, Tally
from dragstrip.studies.sweep.store import Store, result_rows

ATTEMPTS_MAX = 3
POLL_S = 0.2


class Coordinator:
    """Makes the missing runs of a sweep in a place."""

    def __init__(
        self,
        sweep: Sweep,
        index: Index,
        store: Store,
        place: Place,
        progress: SweepProgress,
        recordings: Path | None = None,
        capture: CaptureRequest | None = None,
    ) -> None:
        self.sweep = sweep
        self.index = index
        self.store = store
        self.place = place
        self.progress = progress
        self.recordings = recordings
        self.capture = capture
        self.attempts: dict[int, int] = {}
        self.again: list[SweepRun] = []
        self.runs: dict[int, SweepRun] = {}
        """Submitted runs by number."""
        self.stopping = False
        self.stopped = ""
        """Why no further run can be made; empty if runs can be made."""
        self.build = build_of(sweep.version) if named(sweep.engine).slow else ""
        """Build of an engine that may change while the sweep runs."""
        self.requests = requests(sweep.claims)
        self._point: tuple[int, list[SweepRun]] = (-1, [])

    def work(self, numbers: list[int], tally: Tally) -> None:
        """Make these runs, the heavy ones first, so that none of them is left for the end.

        Raises `DragstripError` if the sweep has to stop.
        """
        weights = self.index.weights
        numbers = sorted(numbers, key=lambda number: (-weights[number], number))
        tally.weight_total = sum(weights[number] for number in numbers)
        waiting = iter(numbers)
        tally.started = time.monotonic()
        with self._interruptible():
            try:
                while self._fill(waiting) or self.runs:
                    for event in self.place.poll(POLL_S):
                        self._ended(event, tally)
                    self.progress.update(tally)
            finally:
                self.store.flush()
        if self.stopped:
            raise DragstripError(self.stopped)
        tally.interrupted = self.stopping
        tally.wall_s = time.monotonic() - tally.started
        self.progress.update(tally)

    def _fill(self, waiting: Iterator[int]) -> bool:
        """Submit runs while there is room; return False when there are none left."""
        while not self.stopping:
            if self.place.room() <= 0:
                return True
            number = next(waiting, None)
            if number is not None:
                run = self._make(number)
            elif self.again:  # at the end: whatever killed it may have passed by then
                run = self.again.pop(0)
            else:
                return False
            self.runs[run.number] = run
            recording = str(self.recordings / run.key.hex()) if self.recordings else ""
            self.place.submit(
                Order(
                    run.number,
                    run.text,
                    self.sweep.engine,
                    self.sweep.options,
                    folder=recording,
                    build=self.build,
                    capture=self._capture(run),
                    claims=self.requests,
                )
            )
        return False

    def _capture(self, run: SweepRun) -> dict[str, Any] | None:
        return asdict(self.capture.of(json.loads(run.text))) if self.capture else None

    def _make(self, number: int) -> SweepRun:
        point, repeat = divmod(number, self.sweep.repeat)
        if self._point[0] != point:
            self._point = (point, self.sweep.at(point, checked=True))
        return self._point[1][repeat]

    def _ended(self, event: Event, tally: Tally) -> None:
        run = self.runs.pop(event.order.number)
        answer = event.answer
        if answer is None:
            count = self.attempts[run.number] = self.attempts.get(run.number, 0) + 1
            if count < ATTEMPTS_MAX:
                tally.retried += 1
                if not self.stopping:
                    self.again.append(run)
                return
            reason = f"{event.how}, {count} times"
            answer = {"status": FAILED, "reason": reason, "output": event.output}
        if answer.get("kind") in (UNWRITTEN, REBUILT):  # it would not be otherwise with the next one
            self.stopped = self.stopped or answer["reason"]
            self.stopping = True
            return
        settings_text = " ".join(f"{path}={value}" for path, value in self.sweep.settings(run.point).items())
        if answer["status"] == OK:
            if notes := answer.pop("notes", ()):
                answer["reason"] = "; ".join(note.partition(": ")[2].lstrip(": ") for note in notes)
                self.progress.note(f"run {run.number} ({settings_text}): {answer['reason']}")
            answer.update(figures(answer.pop("summary")))
        answer["attempts"] = self.attempts.pop(run.number, 0) + (event.answer is not None)
        seed = self.sweep.seed + run.repeat
        sweep = self.sweep
        self.store.add(
            result_rows(run.key, run.text, seed, sweep.engine, sweep.version, answer, sweep.measured)
        )
        tally.executed += 1
        tally.weight_made += run.weight
        tally.cpu_s += answer.get("cpu_s") or 0.0
        if answer["status"] != OK:
            tally.failed += 1
            self.progress.note(f"{answer['status']}: run {run.number} ({settings_text}): {answer['reason']}")

    @contextlib.contextmanager
    def _interruptible(self) -> Iterator[None]:
        """Let running runs finish after the first Ctrl-C, and stop at the second.

        SIGTERM counts as Ctrl-C, because job systems send it.
        """

        def stop(number: int, _frame: FrameType | None) -> None:
            interruption.note(number)
            if self.stopping:
                raise KeyboardInterrupt
            self.stopping = True
            self.progress.note("finishing the current runs (Ctrl-C again: abandon them) ...")

        before: dict[signal.Signals, Any] = {}
        for number in (signal.SIGINT, signal.SIGTERM):
            with contextlib.suppress(ValueError):  # not in the main thread: the caller's affair
                before[number] = signal.signal(number, stop)
        try:
            yield
        finally:
            for signal_number, handler in before.items():
                signal.signal(signal_number, handler)


def missing(index: Index, finished_keys: set[bytes], shard: tuple[int, int]) -> tuple[list[int], int]:
    """Return the numbers of this shard's runs that are not done, each key once, and the shard's size."""
    part, parts = shard
    shard_keys: set[bytes] = set()
    numbers = []
    mine = 0
    for number in range(len(index)):
        key = index.key(number)
        if int.from_bytes(key[:4], "big") % parts != part - 1:
            continue
        mine += 1
        if key not in finished_keys and key not in shard_keys:
            shard_keys.add(key)
            numbers.append(number)
    return numbers, mine
