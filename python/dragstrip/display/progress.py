"""Progress messages after two seconds of an activity: on standard error, or in a notebook's cell."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from dragstrip.display.progress_cell import REDRAWN_S, ProgressCell, in_notebook
from dragstrip.io.untrusted import printable

PATIENCE_S = 2.0
REPEATED_S_MAX = 60.0
"""Longest interval in seconds between two messages about one activity; they come after 2, 4, 8 ...
seconds."""


class ProgressMessages:
    """Shows messages about one activity at a time, from a thread of its own."""

    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        self._patience_s = patience_s
        self._turn = threading.Condition()
        self._activity: Callable[[], str] | None = None
        self._ended = False
        self._thread: threading.Thread | None = None
        self._cell = ProgressCell() if in_notebook() else None

    def doing(self, activity: Callable[[], str] | None) -> None:
        """Set the current activity; None means that nothing slow is running."""
        with self._turn:
            self._activity = activity
            if self._thread is None:
                self._thread = threading.Thread(target=self._print, name="progress", daemon=True)
                self._thread.start()
            self._turn.notify()

    def close(self) -> None:
        """Stop printing and end the thread."""
        with self._turn:
            self._ended = True
            self._turn.notify()
        if self._thread is not None:
            self._thread.join()
        if self._cell is not None:
            self._cell.close()

    def _print(self) -> None:
        with self._turn:
            while not self._ended:
                current, wait_s = self._activity, self._patience_s
                while self._activity is current and not self._ended:
                    notified = self._turn.wait(None if current is None else wait_s)
                    if not notified and current is not None:
                        if self._cell is None:
                            say(current())
                            wait_s = min(2 * wait_s, REPEATED_S_MAX)
                        else:
                            self._cell.show(current())
                            wait_s = REDRAWN_S


@contextmanager
def progress(activity: str, quiet: bool = False) -> Iterator[None]:
    """Show what the block does if it takes longer than `PATIENCE_S` seconds, unless `quiet`."""
    messages = ProgressMessages()
    if not quiet:
        messages.doing(lambda: activity)
    try:
        yield
    finally:
        messages.close()


def say(message: str) -> None:
    """Print one line on standard error."""
    print(printable(message), file=sys.stderr, flush=True)  # noqa: T201
