"""Tables of a bench in a page of the docs, between two comments that say which bench writes them."""

from __future__ import annotations

from pathlib import Path

from dragstrip.io.files import write_text

Marks = tuple[str, str]
"""The comments before and after the tables."""


def write(page: Path, marks: Marks, text: str) -> None:
    """Put a text between the marks of a page, in the place of the text that is there."""
    before, rest = page.read_text(encoding="utf-8").split(marks[0], 1)
    after = rest.split(marks[1], 1)[1]
    write_text(page, f"{before}{marks[0]}\n{text}\n{marks[1]}{after}")
