"""Tables for a terminal, safe for text that comes from outside."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.text import Text

from dragstrip.io.untrusted import printable


class Terminal(Console):
    """A rich console that prints strings literally: no markup, no emoji, no terminal control sequences.

    Styled output is a `Text` made from the program's own words.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """Return a cell, heading or line as it is printed."""
        return super().render_str(printable(text), **{**options, "markup": False, "emoji": False})
