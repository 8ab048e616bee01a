"""Worker processes on the cores of this machine, as a place where runs are made."""

from __future__ import annotations

import selectors
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from dragstrip.errors import BadInputError, DragstripError
from dragstrip.io.shape import COUNT, expect
from dragstrip.runs.answer import checked, refused
from dragstrip.runs.process import Limits, Process, out_of_memory
from dragstrip.runs.work import MEMORY_LIMIT, TIME_LIMIT, Answer, Order

AHEAD_BYTES = 32 << 10
"""Longest order, in bytes, that waits in the pipe of a busy process: half of what a pipe holds."""


GRACE_S = 1.0
"""Seconds that all processes ended at once have to remove their files, such as an emulator's memory."""
STILLBORN_MAX = 5
"""Number of processes in a row that may die before taking a run; more have a common cause."""
KILLED_BLAME = 0.1
"""Weight of one SIGKILL towards `STILLBORN_MAX`: it comes from outside and may recur, and only very many of
them mean that the machine is out of memory."""


@dataclass(frozen=True)
class Event:
    """A run has ended, or its process has died."""

    order: Order
    answer: Answer | None
    """The run's answer; None if its process died and the run may be tried again."""
    how: str = ""
    output: str = ""


class LostPlaceError(DragstripError):
    """The place where runs are made is gone; finished runs are kept."""


class Place(Protocol):
    """Executor of runs."""

    def room(self) -> int:
        """Return how many more runs it accepts now."""

    def submit(self, order: Order) -> None:
        """Hand it a run."""

    def poll(self, timeout_s: float | None) -> list[Event]:
        """Return what has ended, waiting up to `timeout_s` seconds for something (None: without limit)."""

    def close(self) -> None:
        """End everything that still runs."""

    def describe(self) -> str:
        """Return a description for people, such as `2 processes`."""


@dataclass
class _Slot:
    process: Process
    orders: deque[Order] = field(default_factory=deque)
    """The first order is running, the second waits in the pipe."""
    since: float = 0.0


class Local:
    """Worker processes, each with one run at work and, if runs are short, one waiting."""

    def __init__(
        self,
        workers: int,
        limits: Limits,
        *,
        ahead: bool = True,
        advanced: Callable[[int, int, int], object] | None = None,
    ) -> None:
        self.limits = limits
        self.count = workers
        self.places = (2 if ahead else 1) * workers
        self.advanced = advanced
        """Called with the number of a watched run, its virtual time in ns, and its arrived bytes."""
        self.slots: list[_Slot] = []
        self.orphaned: deque[Order] = deque()
        """Runs that waited behind one whose process died; this does not count as an attempt."""
        self.stillborn = 0.0
        """Number of processes in a row that died before they could take a run."""
        self.selector = selectors.DefaultSelector()
        for _ in range(workers):
            self._start()

    def describe(self) -> str:
        """Return a description for people, such as `2 processes`."""
        return f"{self.count} process{'es' if self.count > 1 else ''}"

    def room(self) -> int:
        """Return the free places: one run at work per worker, and one waiting so that no worker idles."""
        return self.places - sum(len(slot.orders) for slot in self.slots) - len(self.orphaned)

    def submit(self, order: Order) -> None:
        """Hand a run to an idle process, to a new one, or to a busy one's pipe."""
        idle = [slot for slot in self.slots if not slot.orders]
        if idle:
            slot = idle[0]
        elif len(self.slots) < self.count:
            slot = self._start()
        else:
            slot = min(self.slots, key=lambda slot: len(slot.orders))
            if len(order.text) > AHEAD_BYTES or len(slot.orders) > 1:
                self.orphaned.append(order)
                return
        self._give(slot, order)

    def _give(self, slot: _Slot, order: Order) -> None:
        if not slot.orders:
            slot.since = time.monotonic()
        slot.orders.append(order)
        slot.process.send(order.line())

    def _start(self) -> _Slot:
        slot = _Slot(Process(self.limits))
        self.slots.append(slot)
        self.selector.register(slot.process, selectors.EVENT_READ, slot)
        return slot

    def poll(self, timeout_s: float | None) -> list[Event]:
        """Return what has ended, waiting up to `timeout_s` seconds (None: without limit)."""
        while self.orphaned and (len(self.slots) < self.count or any(not slot.orders for slot in self.slots)):
            self.submit(self.orphaned.popleft())
        events: list[Event] = []
        for key, _ in self.selector.select(timeout_s):
            slot: _Slot = key.data
            try:
                answers = slot.process.answers()
                if answers is None:
                    events += self._bury(slot)
                    continue
                for answer in answers:
                    events += self._hear(slot, answer)
            except BadInputError as error:
                events += self._dismiss(slot, refused(str(error)))
        events += self._overdue()
        return events

    def _hear(self, slot: _Slot, answer: Answer) -> list[Event]:
        if not slot.orders:
            raise BadInputError("", None, "comes without a request", "a worker's answer")
        if "now_ns" in answer:
            expect(answer, {"now_ns": COUNT, "arrived_bytes": COUNT}, "a worker's answer")
            if self.advanced is not None:
                self.advanced(slot.orders[0].number, answer["now_ns"], answer["arrived_bytes"])
            return []
        slot.since = time.monotonic()
        order = slot.orders.popleft()
        return [Event(order, checked(order, answer))]

    def _overdue(self) -> list[Event]:
        events = []
        for slot in list(self.slots):
            if slot.orders and slot.process.overdue(slot.since, self.limits):
                events += self._dismiss(slot, too_long(self.limits))
        return events

    def _dismiss(self, slot: _Slot, answer: Answer) -> list[Event]:
        """End a process; `answer` becomes the answer to its current run."""
        order = slot.orders.popleft() if slot.orders else None
        self._remove(slot)
        _end([slot.process])
        return [] if order is None else [Event(order, answer)]

    def _bury(self, slot: _Slot) -> list[Event]:
        started = slot.process.ready_at is not None
        self._remove(slot, current_only=started)
        how, output = slot.process.end()
        blame = KILLED_BLAME if how.endswith("SIGKILL") else 1.0
        self.stillborn = 0.0 if started else self.stillborn + blame
        if self.stillborn >= STILLBORN_MAX:
            output_note = f"; its last output: {output.splitlines()[-1]}" if output else ""
            raise DragstripError(f"worker processes do not start: {how}{output_note}")
        if not started or not slot.orders:
            return []  # no run's fault
        return [death(slot.orders[0], how, output)]

    def _remove(self, slot: _Slot, current_only: bool = False) -> None:
        """Forget a process and requeue what waited behind its run."""
        self.selector.unregister(slot.process)
        self.slots.remove(slot)
        self.orphaned.extend(list(slot.orders)[1 if current_only else 0 :])

    def close(self) -> None:
        """End all processes."""
        _end([slot.process for slot in self.slots])
        self.slots = []
        self.selector.close()


def _end(processes: Sequence[Process]) -> None:
    """End processes in any state, after a moment to remove their temporary files."""
    for process in processes:
        process.ask_to_end()
    until = time.monotonic() + GRACE_S
    for process in processes:
        process.ended_within(until - time.monotonic())
        process.close()


def too_long(limits: Limits) -> Answer:
    """Return the answer for a run that has reached its time limit."""
    return {
        "status": TIME_LIMIT,
        "reason": f"it took longer than {limits.time_s:g} s",
        "wall_s": limits.time_s,
    }


def death(order: Order, how: str, output: str) -> Event:
    """Return the event of a dead process: its run's failure if it ran out of memory, else a run to retry."""
    if out_of_memory(output):
        answer = {
            "status": MEMORY_LIMIT,
            "reason": "it needed more memory than a run may take",
            "output": output,
        }
        return Event(order, answer)
    return Event(order, None, how, output)
