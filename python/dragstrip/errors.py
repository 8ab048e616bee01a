"""What can be wrong with what a person gave us."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable


class DragstripError(Exception):
    """Something a person can do something about; its text is one line."""


class BadInputError(DragstripError):
    """A value that cannot be right: where it stands, what it is, what would be right.

    `source` is the file or `command line`; it is filled in by whoever knows it.
    """

    def __init__(self, field: str, value: object, expected: str, source: str = "") -> None:
        self.field = field
        self.value = shown(value)
        self.expected = expected
        self.source = source
        super().__init__(field, self.value, expected, source)

    def __str__(self) -> str:
        where = ": ".join(part for part in (self.source, self.field) if part)
        return " ".join(f"{where}: {self.said}".split())

    @property
    def said(self) -> str:
        """The value and what would be right, without where it stands."""
        return f"got {self.value}, expected {self.expected}" if self.value else self.expected

    def at(self, source: str) -> BadInputError:
        """The same error, naming the file it was found in."""
        return BadInputError(self.field, Raw(self.value), self.expected, source)


class Note(UserWarning):
    """Something that is done as it was written, and that its writer may not have meant."""


class FaultError(DragstripError):
    """A fault of ours: its text asks for a report."""


class Raw(str):
    """Text that is already as it should be shown."""

    __slots__ = ()


def shown(value: object) -> str:
    """A value as an error message shows it, kept short."""
    if value is None:
        return ""
    text = str(value) if isinstance(value, Raw | int | float) else repr(value)
    return text if len(text) <= 120 else text[:117] + "..."


def nearest(word: str, known: Iterable[str]) -> str:
    """`, perhaps "X"` for the known word most like this one, or nothing."""
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f'; did you mean "{close[0]}"?' if close else ""


def of_system(error: OSError) -> str:
    """What the system refused, with the path if it named one."""
    said = os.strerror(error.errno) if error.errno else str(error) or type(error).__name__
    return f"{os.fsdecode(error.filename)}: {said}" if isinstance(error.filename, str | bytes) else said


def expect_text(field: str, value: str, source: str = "command line") -> str:
    """The value; raises `BadInputError` for bytes that are not UTF-8 (surrogates, in Python)."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise BadInputError(field, value, "text in UTF-8", source) from None
    return value
