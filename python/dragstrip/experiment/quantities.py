"""Quantities in Python as a race takes them: text, numbers with their unit in the name, and time spans.

`rate="10mbit"` and `rate_bps=10e6`, `rtt="40ms"`, `rtt_ms=40` and `rtt=timedelta(milliseconds=40)` say the
same. NumPy's scalars count as numbers.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

from dragstrip.errors import BadInputError, Raw, nearest
from dragstrip.experiment.programs import Programs, by_name
from dragstrip.experiment.race import OPTIONS, RaceOptions

F = TypeVar("F", bound=Callable[..., Any])

_WORD = re.compile(r"--[a-z][a-z-]*")
"""An option's word on a command line."""
UNITS = {"bps": "bit", "s": "s", "ms": "ms", "us": "us", "percent": "%"}
"""Unit in a name: unit in the text."""
MULTIPLES = (("gbit", 10**9), ("mbit", 10**6), ("kbit", 10**3))
"""Multiples in which a whole rate is written."""
DESCRIBING = (
    "path",
    "rate",
    "medium",
    "rtt",
    "queue",
    "loss",
    "jitter",
    "up_rate",
    "up_medium",
    "up_queue",
    "ecn",
    "sysctl",
)
"""Options of a race that describe a path and its hosts."""
CHANGING = (
    "path",
    "rate",
    "rtt",
    "queue",
    "loss",
    "jitter",
    "up_rate",
    "up_queue",
    "link",
    "ecn",
    "accurate_ecn",
    "sysctl",
    "seed",
    "change",
)
"""Options of a race that change the path of a capture."""
NUMBER_MAX = 1e18
"""Numbers in any unit are below this."""
TEXTS = frozenset([*(option.name for option in OPTIONS if option.takes == "text"), "other_rtt", "timeout"])
"""Options that are quantities: of a race, the second round-trip time of an attack, a command's time."""


class RaceQuantities(RaceOptions, total=False):
    """Options of a race; quantities also as numbers with their unit in the name."""

    rate_bps: float
    up_rate_bps: float
    rtt_s: float
    rtt_ms: float
    jitter_ms: float
    duration_s: float
    loss_percent: float
    programs: Programs  # type: ignore[misc]  # the generated options have the core's form of it


def with_options(function: F) -> F:
    """Return the function with the options of a race in its docstring, as `help` shows it."""
    words = {option.word: option.name for option in OPTIONS}
    lines = []
    for option in OPTIONS:
        meaning = _WORD.sub(lambda match: words.get(match[0], match[0]), option.help)
        default = f" Default: {option.default}." if option.default else ""
        lines.append(f"    {option.name}\n        {meaning.replace('; repeatable', '')}{default}\n")
    units = ", ".join(name for name in RaceQuantities.__annotations__ if quantity_of(name) != name)
    function.__doc__ = (
        f"{inspect.cleandoc(function.__doc__ or '')}\n\n"
        f"Options:\n\n{''.join(lines)}\nQuantities as numbers: {units}."
    )
    return function


def quantity_of(name: str) -> str:
    """Return the option of a quantity with its unit in its name, `rtt` of `rtt_ms`; else the name itself."""
    base, _, unit = name.rpartition("_")
    return base if base in TEXTS and unit in UNITS else name


def expect_options(options: Mapping[str, Any], allowed: Iterable[str], function: str) -> None:
    """Raise `BadInputError` for an option that a function does not take."""
    names = list(allowed)
    for name in options:
        base, _, unit = name.rpartition("_")
        if name not in names and not (base in names and unit in UNITS):
            raise BadInputError(name, None, f"is not an option of {function}{nearest(name, names)}")


def texts(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with quantities as text, and programs as texts by name.

    Raises `BadInputError` for a quantity that is given twice, and for a program that cannot be one.
    """
    read: dict[str, Any] = {}
    for name, value in options.items():
        if name == "programs" and value is not None:
            read[name] = by_name(value)
            continue
        base, unit = quantity_of(name), name.rpartition("_")[2]
        scalar = value.item() if hasattr(value, "item") and not hasattr(value, "__len__") else value
        if base != name:
            if options.get(base) is not None:
                raise BadInputError(name, scalar, f"none beside {base}={options[base]!r}")
            if base in read:
                raise BadInputError(name, scalar, f"none beside {base}={read[base]!r}")
            if isinstance(scalar, bool) or not isinstance(scalar, int | float):
                raise BadInputError(name, scalar, f"a number, in {unit}")
            if not 0 <= scalar < NUMBER_MAX:
                raise BadInputError(name, Raw(f"{scalar:g}"[:40]), f"a number from 0, in {unit}")
            read[base] = _rate(scalar) if unit == "bps" else f"{_digits(scalar)}{UNITS[unit]}"
        elif isinstance(scalar, set | frozenset):
            raise BadInputError(name, sorted(map(str, scalar)), "a list or a tuple: a set has no order")
        elif isinstance(scalar, Path):
            read[name] = str(scalar)
        elif isinstance(scalar, timedelta):
            read[name] = f"{_digits(scalar / timedelta(microseconds=1))}us"
        else:
            read[name] = scalar
    return read


def _rate(bps: float) -> str:
    for word, size in MULTIPLES:
        if bps >= size and bps % size == 0:
            return f"{_digits(bps / size)}{word}"
    return f"{_digits(bps)}bit"


def _digits(value: float) -> str:
    """Return all digits of a number, without an exponent where it has a short form."""
    return str(int(value)) if float(value).is_integer() else repr(float(value))
