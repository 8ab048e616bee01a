"""Work on threads of this process, several items at once: every simulation outside a worker process.

Results come in the order of the items. Ctrl-C, an exception of a callback and an error of an item end all
of it: no item begins any more, running simulations stop at their next report of progress, and the threads
have ended when `run_parallel` returns or raises.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from dragstrip.engines.contract import Progress

Item = TypeVar("Item")
Result = TypeVar("Result")


class StoppedError(BaseException):
    """Ends an item's work at a report of progress. No `Exception`, so that no handler of errors takes it."""


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def worker_count(requested: int | None, tasks: int) -> int:
    """Return the requested number of workers, or one per usable core, but at most one per task."""
    return max(1, min(requested or cores(), tasks))


def run_parallel(
    work: Callable[[Item, Progress], Result],
    items: Sequence[Item],
    workers: int | None = None,
    *,
    started: Callable[[int], object] | None = None,
    advanced: Callable[[int, int, int], object] | None = None,
    finished: Callable[[int, Result], object] | None = None,
) -> list[Result]:
    """Call `work` with each item, on up to `workers` threads (None: one per usable core); return the results.

    Items begin in their order. `work` passes the `Progress` that it gets to the engine, which stops the run
    when that raises. The callbacks are called in the calling thread: `started` and `finished` with an item's
    index, `finished` with its result too, and `advanced` with the index, the run's virtual time in ns and its
    arrived bytes.

    An error of an item ends those after it. Those before it have begun already and go on, so that the error
    raised is that of the first item that fails in the order of the items, whatever the number of workers.
    """
    waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
    for index in range(len(items)):
        waiting.put(index)
    events: queue.SimpleQueue[Callable[[], object]] = queue.SimpleQueue()
    """Steps to take in the calling thread."""
    unfinished = set(range(len(items)))
    results: dict[int, Result] = {}
    errors: dict[int, BaseException] = {}
    end = len(items)
    """Index of the first item that does not matter any more."""

    def conclude(index: int, result: Result) -> None:
        unfinished.discard(index)
        results[index] = result
        if finished is not None:
            finished(index, result)

    def fail(index: int, error: BaseException) -> None:
        nonlocal end
        errors[index] = error
        end = min(end, index)
        unfinished.difference_update(range(end, len(items)))

    def perform(index: int) -> None:
        def progress(now_ns: int, arrived_bytes: int = 0, /) -> None:
            if index >= end:
                raise StoppedError
            if advanced is not None:
                events.put(partial(advanced, index, now_ns, arrived_bytes))

        if started is not None:
            events.put(partial(started, index))
        try:
            result = work(items[index], progress)
        except StoppedError:
            return
        except BaseException as error:  # noqa: BLE001 - raised in the calling thread
            events.put(partial(fail, index, error))
        else:
            events.put(partial(conclude, index, result))

    def take_items() -> None:
        try:
            while (index := waiting.get_nowait()) < end:
                perform(index)
        except queue.Empty:
            pass

    threads = [
        threading.Thread(target=take_items, name=f"run-{number}")
        for number in range(worker_count(workers, len(items)))
    ]
    try:
        for thread in threads:
            thread.start()
        while unfinished:
            events.get()()
    finally:
        if unfinished:
            end = 0
        for thread in threads:
            if thread.ident is not None:
                thread.join()
    if errors:
        raise errors[min(errors)]
    return [results[index] for index in range(len(items))]
