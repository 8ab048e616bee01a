"""The cores of this machine as a place where runs are made."""

from __future__ import annotations

import os
import selectors
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any, Protocol

from dragstrip.errors import DragstripError
from dragstrip.sweep.child import Child, Limits, out_of_memory

AHEAD_BYTES = 32 << 10
"""A run waits in the pipe of a busy child if it is no longer than this: half of what a pipe holds."""


STILLBORN_MAX = 5
"""So many children in a row that die before they can take a run have a common cause."""
KILLED_BLAME = 0.1
"""SIGKILL comes from outside, and may come again; only very many are a machine without memory."""


@dataclass(frozen=True)
class Order:
    """A run for a place."""

    number: int
    text: str
    engine: str
    recording: str = ""


@dataclass(frozen=True)
class Event:
    """A run has ended, or its process has."""

    order: Order
    answer: dict[str, Any] | None
    """None: its process died, the run may be tried again."""
    how: str = ""
    output: str = ""


class Place(Protocol):
    """Where runs are made."""

    def room(self) -> int:
        """How many more runs it takes now."""

    def submit(self, order: Order) -> None:
        """Gives it a run."""

    def poll(self, timeout_s: float) -> list[Event]:
        """What has ended since; waits for something for at most this long."""

    def close(self) -> None:
        """Ends everything that still runs."""

    def describe(self) -> str:
        """For people: `2 processes`."""


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass
class _Slot:
    child: Child
    orders: deque[Order] = field(default_factory=deque)
    """The first is running, the second waits in the pipe."""
    since: float = 0.0


class Local:
    """A child process per worker, each with one run at work and one waiting."""

    def __init__(self, workers: int, limits: Limits) -> None:
        self.limits = limits
        self.count = workers
        self.slots: list[_Slot] = []
        self.lost: deque[Order] = deque()
        """Runs that waited behind one whose child died: nobody's attempt."""
        self.stillborn = 0.0
        """Children in a row that died before they could take a run."""
        self.selector = selectors.DefaultSelector()
        for _ in range(workers):
            self._start()

    def describe(self) -> str:
        """For people."""
        return f"{self.count} process{'es' if self.count > 1 else ''}"

    def room(self) -> int:
        """Two runs for each worker: one at work, one waiting, so that it never waits for us."""
        return 2 * self.count - sum(len(slot.orders) for slot in self.slots) - len(self.lost)

    def submit(self, order: Order) -> None:
        """Gives a run to an idle child, a new one, or behind the run of a busy one."""
        idle = [slot for slot in self.slots if not slot.orders]
        if idle:
            slot = idle[0]
        elif len(self.slots) < self.count:
            slot = self._start()
        else:
            slot = min(self.slots, key=lambda slot: len(slot.orders))
            if len(order.text) > AHEAD_BYTES or len(slot.orders) > 1:
                self.lost.append(order)
                return
        self._give(slot, order)

    def _give(self, slot: _Slot, order: Order) -> None:
        if not slot.orders:
            slot.since = time.monotonic()
        slot.orders.append(order)
        slot.child.send(order.text, order.engine, order.recording)

    def _start(self) -> _Slot:
        slot = _Slot(Child(self.limits))
        self.slots.append(slot)
        self.selector.register(slot.child, selectors.EVENT_READ, slot)
        return slot

    def poll(self, timeout_s: float) -> list[Event]:
        """What has ended."""
        while self.lost and (len(self.slots) < self.count or any(not slot.orders for slot in self.slots)):
            self.submit(self.lost.popleft())
        events: list[Event] = []
        for key, _ in self.selector.select(timeout_s):
            slot: _Slot = key.data
            answers = slot.child.answers()
            if answers is None:
                events += self._bury(slot)
                continue
            for answer in answers:
                events.append(Event(slot.orders.popleft(), answer))
                slot.since = time.monotonic()
        events += self._overdue()
        return events

    def _overdue(self) -> list[Event]:
        events = []
        for slot in list(self.slots):
            if slot.orders and slot.child.overdue(slot.since, self.limits):
                order = slot.orders.popleft()
                self._remove(slot)
                slot.child.close()
                events.append(Event(order, too_long(self.limits)))
        return events

    def _bury(self, slot: _Slot) -> list[Event]:
        started = slot.child.ready_at is not None
        self._remove(slot, one=started)
        how, output = slot.child.end()
        blame = KILLED_BLAME if how.endswith("SIGKILL") else 1.0
        self.stillborn = 0.0 if started else self.stillborn + blame
        if self.stillborn >= STILLBORN_MAX:
            said = f"; its last output: {output.splitlines()[-1]}" if output else ""
            raise DragstripError(f"worker processes do not start: {how}{said}")
        if not started or not slot.orders:
            return []  # no run's fault
        return [death(slot.orders[0], how, output)]

    def _remove(self, slot: _Slot, one: bool = False) -> None:
        """Forgets a child; what waited behind its run goes elsewhere."""
        self.selector.unregister(slot.child)
        self.slots.remove(slot)
        self.lost.extend(list(slot.orders)[1 if one else 0 :])

    def close(self) -> None:
        """Kills all children."""
        for slot in self.slots:
            slot.child.close()
        self.slots = []
        self.selector.close()


def too_long(limits: Limits) -> dict[str, Any]:
    """The answer in place of a run that has had its time."""
    return {
        "status": "time limit",
        "reason": f"it took longer than {limits.time_s:g} s",
        "wall_s": limits.time_s,
    }


def death(order: Order, how: str, output: str) -> Event:
    """A child's death: by its own hunger, which would come again, or by something that may not."""
    if out_of_memory(output):
        answer = {
            "status": "memory limit",
            "reason": "it needed more memory than a run may take",
            "output": output,
        }
        return Event(order, answer)
    return Event(order, None, how, output)
