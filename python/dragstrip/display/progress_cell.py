"""Progress in a notebook's cell: one bar with a line of text, redrawn in place and removed at the end."""

from __future__ import annotations

import importlib
import sys
import time
from typing import Any

REDRAWN_S = 0.2
"""Shortest time in seconds between two drawings."""


def in_notebook() -> bool:
    """Return whether this process is a kernel of Jupyter, whose cells show HTML."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


class ProgressCell:
    """A bar and its text in the cell that runs."""

    def __init__(self) -> None:
        self._handle: Any = None
        self._drawn_at = 0.0

    def show(self, text: str, share: float | None = None) -> None:
        """Draw the bar up to `share` of its length, or moving for None, unless it was just drawn."""
        now = time.monotonic()
        if now - self._drawn_at >= REDRAWN_S:
            from dragstrip.display import html  # with Jinja: not for a command that is refused

            self._drawn_at = now
            self._draw(html.part("display/templates/progress_cell.html", text=text, share=share))

    def close(self) -> None:
        """Remove the bar."""
        if self._handle is not None:
            self._draw("")

    def _draw(self, content: str) -> None:
        bundle = {"text/html": content, "text/plain": ""}
        if self._handle is None:
            display = importlib.import_module("IPython.display").display
            self._handle = display(bundle, raw=True, display_id=True)
        else:
            self._handle.update(bundle, raw=True)
