"""The signal that interrupts this process: its exit status is 128 and the number of the signal."""

from __future__ import annotations

import os
import signal
from types import FrameType

_first: list[int] = []


def note(number: int) -> None:
    """Note that a signal has arrived; the first one counts."""
    _first.append(number)


def interrupt(number: int, _frame: FrameType | None) -> None:
    """Note a signal and raise `KeyboardInterrupt`: a signal handler for what ends a program politely."""
    note(number)
    raise KeyboardInterrupt


def end(number: int, _frame: FrameType | None) -> None:
    """End the process with one line: a signal handler for a program that has begun nothing."""
    os.write(2, b"error: interrupted\n")
    os._exit(128 + number)


def status() -> int:
    """Return the exit status of an interrupted process: 130 for Ctrl-C (SIGINT), 143 for SIGTERM."""
    return 128 + (_first[0] if _first else int(signal.SIGINT))
