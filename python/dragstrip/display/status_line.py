"""A line at the bottom of a terminal that stays there while programs write above it."""

from __future__ import annotations

import os
import sys
import termios
from collections.abc import Callable

ROWS_MIN = 5
"""A terminal with fewer rows has no room for it."""


class StatusLine:
    """The last row of the terminal of standard error, kept out of what scrolls (DECSTBM).

    While a program has the terminal to itself, without echo and line editing, nothing is drawn.
    """

    def __init__(self, write: Callable[[str], object] | None = None, number: int | None = None) -> None:
        self._number = sys.stderr.fileno() if number is None else number
        self._write = write or self._to_terminal
        self._size: os.terminal_size | None = None

    @staticmethod
    def possible() -> bool:
        """True when standard error is a terminal that understands more than text."""
        return sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"

    def show(self, text: str) -> None:
        """Draw the line, cut to the terminal's width."""
        size = os.get_terminal_size(self._number)
        if size.lines < ROWS_MIN or self._is_taken():
            self._size = None  # a program that takes the terminal sets what scrolls itself
            return
        begin = "" if size == self._size else self._reserve(size)
        self._size = size
        self._write(f"{begin}\x1b7\x1b[{size.lines};1H\x1b[7m\x1b[K{text[: size.columns]}\x1b[m\x1b8")

    def close(self) -> None:
        """Give the row back, empty."""
        if self._size is not None:
            self._write(f"\x1b7\x1b[r\x1b[{self._size.lines};1H\x1b[K\x1b8")
            self._size = None

    def _reserve(self, size: os.terminal_size) -> str:
        """Have all rows but the last one scroll; what stands in the last one moves up."""
        return f"\n\x1b7\x1b[1;{size.lines - 1}r\x1b8\x1b[1A"

    def _is_taken(self) -> bool:
        _, _, _, local_flags, *_ = termios.tcgetattr(self._number)
        return not local_flags & termios.ICANON

    def _to_terminal(self, text: str) -> None:
        os.write(self._number, text.encode())
