"""Errors: what can be wrong with a person's input, with the machine, or with Dragstrip itself."""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Iterable, Sequence


class DragstripError(Exception):
    """An error that the user can do something about; its text is one line."""


class BadInputError(DragstripError):
    """A value that cannot be right: where it is, what it is, and what was expected.

    `field` and `value` name the offending input and `expected` what would be right. `source` is the file or
    `command line`; the first caller that knows it fills it in.
    """

    def __init__(self, field: str, value: object, expected: str, source: str = "") -> None:
        self.field = field
        self.value: str = value_text(value)
        self.expected = expected
        self.source = source
        super().__init__(field, self.value, expected, source)

    def __str__(self) -> str:
        where = ": ".join(part for part in (self.source, self.field) if part)
        return " ".join(f"{where}: {self.explanation}".split())

    @property
    def explanation(self) -> str:
        """The value and what was expected, without the place."""
        return f"got {self.value}, expected {self.expected}" if self.value else self.expected

    def reworded(self, field: str, expected: str | None = None, source: str = "") -> BadInputError:
        """Return the same error about a field, an option or an argument of another name."""
        value = Raw(self.value) if self.value else None
        return BadInputError(field, value, self.expected if expected is None else expected, source)

    def at(self, source: str) -> BadInputError:
        """Return the same error with the file in which it was found."""
        return BadInputError(self.field, Raw(self.value), self.expected, source)


class ManyInputsError(BadInputError):
    """Several values that cannot be right, told in one line; the first one's place and words are its own."""

    def __init__(self, errors: Sequence[BadInputError]) -> None:
        first = errors[0]
        super().__init__(first.field, Raw(first.value) if first.value else None, first.expected, first.source)
        self.errors: list[BadInputError] = list(errors)

    def __str__(self) -> str:
        rest = "".join(f"; and {error.field}: {error.explanation}" for error in self.errors[1:])
        return " ".join(f"{super().__str__()}{rest}".split())


class Note(UserWarning):
    """A warning about input that is used as written but may not be what its author meant."""


def note(text: str) -> None:
    """Warn with a `Note` at the line outside this package that led here."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] == __package__:
        level, frame = level + 1, frame.f_back
    warnings.warn(text, Note, stacklevel=level)


class FaultError(DragstripError):
    """A fault of Dragstrip itself; its text asks for a report."""


class Raw(str):
    """Text that an error message shows as it is, without quotes."""

    __slots__ = ()


_BYTE = re.compile(r"(?<!\\)\\udc([89a-f][0-9a-f])")
"""Form in which `repr` writes a byte that is not UTF-8."""


def value_text(value: object) -> str:
    """Return a value as an error message shows it, at most 120 characters long."""
    if value is None:
        return ""
    text = str(value) if isinstance(value, Raw | int | float) else _BYTE.sub(r"\\x\1", repr(value))
    return text if len(text) <= 120 else text[:117] + "..."


def nearest(word: str, candidates: Iterable[str]) -> str:
    """Return `; did you mean "X"?` for the known word most similar to this one, or an empty string."""
    from dragstrip import _core  # takes time to load, and most commands have no error

    text = str(word).encode(errors="replace").decode()  # a command line may have bytes that are not UTF-8
    close = _core.nearest(text, list(candidates))
    return "" if close is None else f'; did you mean "{close}"?'


def of_system(error: OSError) -> str:
    """Return an operating system's error in words, with the path if it names one."""
    message = os.strerror(error.errno) if error.errno else str(error) or type(error).__name__
    return f"{os.fsdecode(error.filename)}: {message}" if isinstance(error.filename, str | bytes) else message


def expect_text(field: str, value: str, source: str = "command line") -> str:
    """Return the value; raises `BadInputError` if it has bytes that are not UTF-8 (surrogates, in Python)."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise BadInputError(field, value, "text in UTF-8", source) from None
    return value
