"""Base of the entries of a result document (docs/reference/result-json.md) as Python objects."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from functools import partial
from typing import Any, ClassVar, Self, TypeAlias

Reader: TypeAlias = Callable[[Any], Any]
"""Turns a field's content into objects."""


@dataclass(frozen=True)
class Entry:
    """An entry of a result document; its attributes are the document's fields."""

    READERS: ClassVar[Mapping[str, Reader]] = {}
    """Readers of the fields that hold further entries."""

    @classmethod
    def read(cls, content: Mapping[str, Any]) -> Self:
        """Return the entry that a document's object describes; optional fields that it lacks are None."""
        entry = object.__new__(cls)
        for field in fields(cls):
            value = content[field.name] if field.default is MISSING else content.get(field.name)
            reader = cls.READERS.get(field.name)
            if reader is not None and value is not None:
                value = reader(value)
            object.__setattr__(entry, field.name, value)
        return entry


def entry_of(kind: type[Entry]) -> Reader:
    """Return the reader of a field that holds one entry."""
    return kind.read


def entries_of(kind: type[Entry]) -> Reader:
    """Return the reader of a field that holds a list of entries."""
    return partial(_entries, kind)


def _entries(kind: type[Entry], content: Sequence[Mapping[str, Any]]) -> tuple[Entry, ...]:
    return tuple(kind.read(entry) for entry in content)
