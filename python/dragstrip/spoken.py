"""What is being done, said on standard error once it takes longer than a person waits without a word."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from dragstrip.outside import printable

PATIENCE_S = 2.0
REPEATED_S_MAX = 60.0
"""Between two lines about one activity at most; they come at 2, 4, 8 ... seconds."""


class Spoken:
    """Speaks of one activity at a time, from a thread of its own."""

    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        self._patience_s = patience_s
        self._turn = threading.Condition()
        self._what: Callable[[], str] | None = None
        self._ended = False
        self._thread: threading.Thread | None = None

    def doing(self, what: Callable[[], str] | None) -> None:
        """From now on this is being done; none: nothing that takes time."""
        with self._turn:
            self._what = what
            if self._thread is None:
                self._thread = threading.Thread(target=self._speak, name="spoken", daemon=True)
                self._thread.start()
            self._turn.notify()

    def close(self) -> None:
        """Says no more."""
        with self._turn:
            self._ended = True
            self._turn.notify()
        if self._thread is not None:
            self._thread.join()

    def _speak(self) -> None:
        with self._turn:
            while not self._ended:
                current, wait_s = self._what, self._patience_s
                while self._what is current and not self._ended:
                    notified = self._turn.wait(None if current is None else wait_s)
                    if not notified and current is not None:
                        say(current())
                        wait_s = min(2 * wait_s, REPEATED_S_MAX)


@contextmanager
def spoken(what: str, quiet: bool = False) -> Iterator[None]:
    """Says what the block does if it takes long."""
    speaker = Spoken()
    if not quiet:
        speaker.doing(lambda: what)
    try:
        yield
    finally:
        speaker.close()


def say(what: str) -> None:
    """One line on standard error."""
    print(printable(what), file=sys.stderr, flush=True)  # noqa: T201
