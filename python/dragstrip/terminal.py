"""Tables for a terminal, made of text that may come from outside."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.text import Text

from dragstrip.outside import printable


class Terminal(Console):
    """A console that takes every string as it is: no markup, no emoji, nothing that a terminal would obey.

    What is to have a style is a `Text`, made of our own words.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """The string as it is shown, of a cell, a heading or a line."""
        return super().render_str(printable(text), **{**options, "markup": False, "emoji": False})
