"""The structure of documents from outside: the answers of workers, and `result.json`.

A shape is a check of one value (`Plain`), a list with the shape of its entries, an object with the shapes of
its fields, or one of these in `optional`, `nullable`, `ByName` or `Either`. Fields that a shape does not name
are ignored. The shape of `result.json` is generated (`io/result_shape.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from dragstrip.errors import BadInputError, Raw

TEXT_MAX = 10_000
"""Characters of a name or a reason, at most."""
COUNT_MAX = 2**53
"""Largest whole number that a column of floats holds exactly, as all smaller ones."""


@dataclass(frozen=True)
class Plain:
    """The check of a single value: `holds` tests it, `expected` describes it in an error message."""

    expected: str
    holds: Callable[[Any], bool]


@dataclass(frozen=True)
class ByName:
    """An object with any names, whose values have this shape."""

    values: Shape


@dataclass(frozen=True)
class Either:
    """A value that has one of these shapes."""

    shapes: Sequence[Shape]


@dataclass(frozen=True)
class Nullable:
    """A value that has this shape, or null."""

    shape: Shape


@dataclass(frozen=True)
class Optional:
    """A field that has this shape, or is missing."""

    shape: Shape


Shape: TypeAlias = "Plain | ByName | Either | Nullable | Optional | Sequence[Shape] | Mapping[str, Shape]"


def _text(value: object) -> bool:
    if not isinstance(value, str) or len(value) > TEXT_MAX:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:  # half a surrogate pair, which JSON can write
        return False
    return True


def _number(value: object) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= COUNT_MAX


def _count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= COUNT_MAX


def optional(shape: Shape) -> Optional:
    """Return the same shape for a field that may be missing."""
    return Optional(shape)


def nullable(shape: Shape) -> Shape:
    """Return the same shape for a value that may be null."""
    if isinstance(shape, Plain):
        holds = shape.holds
        return replace(
            shape, expected=f"{shape.expected}, or null", holds=lambda value: value is None or holds(value)
        )
    return Nullable(shape)


TEXT = Plain(f"text of at most {TEXT_MAX} characters", _text)
NUMBER = Plain("a finite number", _number)
FIGURE = Plain("a finite number, or null", lambda value: value is None or _number(value))
COUNT = Plain("a whole number from 0 to 2^53", _count)
SEED = Plain(
    "a whole number from 0 to 2^64 - 1",
    lambda value: isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**64,
)
ANY = Plain("a value", lambda _value: True)
BOOLEAN = Plain("true or false", lambda value: isinstance(value, bool))
OBJECT = Plain("an object", lambda value: isinstance(value, dict))

EXPERIMENT: Mapping[str, Shape] = {"title": TEXT, "name": TEXT, "claims": [{"id": TEXT}]}
"""The shape of the fields of `experiment.json` that a report reads."""

PROVENANCE: Mapping[str, Shape] = {"engine": TEXT, "settings": OBJECT}
"""The shape of the fields of a recording's provenance that a report reads."""

SWEEP: Mapping[str, Shape] = {
    "experiment": OBJECT,
    "axes": [{"path": TEXT, "levels": [{"label": ANY, "set": OBJECT}]}],
    "claims": optional([OBJECT]),
    "repeat": COUNT,
    "seed": SEED,
    **dict.fromkeys(("engine", "name", "title", "version"), TEXT),
}
"""The shape of `sweep.json`."""


def expect(value: object, shape: Shape, source: str, field: str = "", *, partly: bool = False) -> None:
    """Raise `BadInputError` for the first value that does not match its shape.

    With `partly`, fields may be missing or null: recordings that were imported lack some.
    """
    if partly and value is None:
        return
    if isinstance(shape, Optional):
        expect(value, shape.shape, source, field, partly=partly)
    elif isinstance(shape, Nullable):
        if value is not None:
            expect(value, shape.shape, source, field, partly=partly)
    elif isinstance(shape, Plain):
        if not shape.holds(value):
            raise BadInputError(field, _printable_value(value), shape.expected, source)
    elif isinstance(shape, Either):
        _expect_either(value, shape, source, field, partly)
    elif isinstance(shape, Mapping | ByName):
        if not isinstance(value, dict):
            raise BadInputError(field, _printable_value(value), "an object", source)
        if isinstance(shape, ByName):
            for name, inner_value in value.items():
                expect(name, TEXT, source, field)
                expect(inner_value, shape.values, source, f"{field}.{name}".lstrip("."), partly=partly)
            return
        for name, inner in shape.items():
            if name in value:
                expect(value[name], inner, source, f"{field}.{name}".lstrip("."), partly=partly)
            elif not partly and not isinstance(inner, Optional):
                raise BadInputError(f"{field}.{name}".lstrip("."), None, "is missing", source)
    else:
        if not isinstance(value, list):
            raise BadInputError(field, _printable_value(value), _list_text(shape[0]), source)
        for number, entry in enumerate(value):
            expect(entry, shape[0], source, f"{field}[{number}]", partly=partly)


def _list_text(entry: Shape) -> str:
    return "a list of objects" if isinstance(entry, Mapping) else "a list"


def _expect_either(value: object, shape: Either, source: str, field: str, partly: bool) -> None:
    errors = []
    for alternative in shape.shapes:
        try:
            return expect(value, alternative, source, field, partly=partly)
        except BadInputError as error:
            errors.append(error)
    raise errors[0]


def _printable_value(value: object) -> object:
    return Raw(type(value).__name__) if isinstance(value, dict | list) else "null" if value is None else value
