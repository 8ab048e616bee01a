"""Quantities as people write them (tc(8)'s grammar, a unit always), for pydantic fields.

In Python they are integers in base units; they are parsed once, by the core's own parser, and
written back with a unit, so that a dumped experiment can be read again.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Annotated, TypeAlias, TypeVar

from pydantic import BeforeValidator, PlainSerializer
from pydantic_core import PydanticCustomError

from dragstrip import _core
from dragstrip.errors import Note

T = TypeVar("T")


def refuse(value: object, expected: str) -> PydanticCustomError:
    """The error of a value that cannot be read."""
    return PydanticCustomError("quantity", "{expected}", {"expected": expected, "shown": value})


def _from_text(parse: Callable[[str], T], example: str) -> Callable[[object], T]:
    def read(value: object) -> T:
        if not isinstance(value, str):
            raise refuse(value, f'text with a unit, such as "{example}"')
        try:
            return parse(value)
        except _core.InputError as error:
            raise refuse(value, error.args[2]) from None

    return read


def _rate(text: str) -> int:
    bps = _core.parse_rate(text)
    if text.lower().endswith("bps"):
        meant = f"{text[:-3].lower()}bit for bits"
        note = f"{text} is {bps / 1e6:g} Mbit/s: tc reads bps as bytes per second; {meant}"
        warnings.warn(note, Note, stacklevel=2)
    return bps


Rate: TypeAlias = Annotated[
    int,
    BeforeValidator(_from_text(_rate, "10mbit")),
    PlainSerializer(lambda bps: rate_text(bps), return_type=str),
]
"""Bits per second."""

Size: TypeAlias = Annotated[
    int,
    BeforeValidator(_from_text(_core.parse_size, "200kb")),
    PlainSerializer(lambda size: size_text(size), return_type=str),
]
"""Bytes."""

Time: TypeAlias = Annotated[
    int,
    BeforeValidator(_from_text(_core.parse_time, "40ms")),
    PlainSerializer(lambda ns: time_text(ns), return_type=str),
]
"""Nanoseconds."""

Share: TypeAlias = Annotated[
    float,
    BeforeValidator(_from_text(_core.parse_percent, "1%")),
    PlainSerializer(lambda share: f"{share * 100:.12g}%", return_type=str),
]
"""From 0 to 1."""


def _scaled(units: tuple[tuple[int, str], ...]) -> Callable[[int], str]:
    """Writes a whole number in the largest unit that leaves at most three digits behind the point."""

    def write(value: int) -> str:
        size, unit = next(
            (known for known in units if value >= known[0] and 1000 * value % known[0] == 0), units[-1]
        )
        return f"{value / size:.12g}{unit}"

    return write


time_text = _scaled(((1_000_000_000, "s"), (1_000_000, "ms"), (1000, "us"), (1, "ns")))
"""Nanoseconds as people write them: `5s`, `1.5ms`."""
rate_text = _scaled(((1_000_000_000, "gbit"), (1_000_000, "mbit"), (1000, "kbit"), (1, "bit")))
"""Bits per second as people write them."""


def size_text(size: int) -> str:
    """Bytes as people write them."""
    return f"{size}b"
