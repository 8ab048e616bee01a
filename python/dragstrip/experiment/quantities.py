"""Quantities in Python as a race takes them: text, numbers with their unit in the name, and time spans.

`rate="10mbit"` and `rate_bps=10e6`, `rtt="40ms"`, `rtt_ms=40` and `rtt=timedelta(milliseconds=40)` say the
same. NumPy's scalars count as numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from dragstrip.errors import BadInputError
from dragstrip.experiment.race import OPTIONS, RaceOptions

UNITS = {"bps": "bit", "s": "s", "ms": "ms", "us": "us", "bytes": "b", "percent": "%"}
"""Unit in a name: unit in the text."""
MULTIPLES = (("gbit", 10**9), ("mbit", 10**6), ("kbit", 10**3))
"""Multiples in which a whole rate is written."""
TEXTS = frozenset(option.name for option in OPTIONS if option.takes == "text")


class RaceQuantities(RaceOptions, total=False):
    """Options of a race; quantities also as numbers with their unit in the name."""

    rate_bps: float
    up_rate_bps: float
    rtt_s: float
    rtt_ms: float
    jitter_ms: float
    duration_s: float
    loss_percent: float


def texts(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with quantities as text; raises `BadInputError` for a quantity that is given twice."""
    read: dict[str, Any] = {}
    for name, value in options.items():
        base, _, unit = name.rpartition("_")
        scalar = value.item() if hasattr(value, "item") and not hasattr(value, "__len__") else value
        if base in TEXTS and unit in UNITS:
            if options.get(base) is not None:
                raise BadInputError(name, scalar, f"none beside {base}={options[base]!r}")
            if isinstance(scalar, bool) or not isinstance(scalar, int | float):
                raise BadInputError(name, scalar, f"a number, in {unit}")
            read[base] = _rate(scalar) if unit == "bps" else f"{_digits(scalar)}{UNITS[unit]}"
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
