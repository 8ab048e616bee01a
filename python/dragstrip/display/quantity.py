"""Quantities as text for readers: a scaled number and its unit.

The rules are those of the explanations (`crates/measures/src/numbers.rs`) and of the viewer
(`viewer/data.js`); `tests/numbers.json` holds all three to the same texts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median as middle_of
from typing import Any

from dragstrip.display.look import LOOK

MISSING = "–"


@dataclass(frozen=True)
class Unit:
    """A unit: its size in base units, and its name."""

    divisor: float
    name: str

    def scale(self, value: float) -> float:
        """Convert `value` from base units to this unit."""
        return value / self.divisor

    def text(self, value: float | None) -> str:
        """Return `value`, given in base units, with its significant digits and the unit."""
        if value is None or not math.isfinite(value):
            return MISSING
        return f"{digits(value / self.divisor)} {self.name}"


UNITS = {kind: tuple(Unit(float(d), name) for d, name in units) for kind, units in LOOK["units"].items()}
"""Units of rates (in bit/s), sizes (in bytes), round trips over time (in ms) and shares (of 1)."""
RATES, SIZES = UNITS["rate"], UNITS["size"]
TIMES_MS = (Unit(1e-3, "µs"), Unit(1.0, "ms"), Unit(1e3, "s"))


def number(value: Any) -> float | None:
    """Return a finite number as a float, and None for anything else."""
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    return None


def median(values: Iterable[float | None]) -> float | None:
    """Return the median of the values that are not None, or None if all are."""
    present: Sequence[float] = [value for value in values if value is not None]
    return middle_of(present) if present else None


ROUNDED = 0.9995
"""Smallest share of a unit that is written in that unit: three digits round it to 1."""


def unit_for(largest: float | None, units: tuple[Unit, ...]) -> Unit:
    """Return the largest unit in which `largest` is at least 1, or else the smallest unit.

    The rule is that of crates/display; tests/numbers.json holds both.
    """
    magnitude = abs(largest) if largest is not None and math.isfinite(largest) else 0.0
    return next((unit for unit in reversed(units) if magnitude >= unit.divisor * ROUNDED), units[0])


def rate(bits_per_second: float | None) -> str:
    """Return a rate, given in bit/s, such as `9.57 Mbit/s`."""
    return unit_for(bits_per_second, RATES).text(bits_per_second)


def rates(largest_bps: float | None) -> Callable[[float | None], str]:
    """Return `rate` for a column of rates: in the unit of the largest, except below a thousandth of it."""
    unit = unit_for(largest_bps, RATES)
    return lambda value: unit.text(value) if value and abs(value) >= unit.divisor / 1e3 else rate(value)


def size(size_bytes: float | None) -> str:
    """Return a size, given in bytes, such as `200 kB`; prefixes are decimal, as for rates."""
    return unit_for(size_bytes, SIZES).text(size_bytes)


def limit(size_bytes: int) -> str:
    """Return a buffer size as tc(8) takes it, where `kb` and `mb` are 1024-based: `200 KiB`.

    Else as `size`.
    """
    for unit, name in ((1024**2, "MiB"), (1024, "KiB")):
        if size_bytes and size_bytes % unit == 0:
            return f"{count(size_bytes // unit)} {name}"
    return size(size_bytes)


def duration_ns(nanoseconds: float | None) -> str:
    """Return a duration, given in nanoseconds, such as `40 ms`."""
    return MISSING if nanoseconds is None else milliseconds(nanoseconds / 1e6)


def milliseconds(value: float | None) -> str:
    """Return a time, given in ms, such as `492 ms`, or in µs if it is below a millisecond.

    Round-trip times of seconds stay in ms, so that they can be compared.
    """
    if value is None or not math.isfinite(value):
        return MISSING
    if value == 0:
        return "0 ms"
    return (TIMES_MS[1] if value >= 0.9995 else TIMES_MS[0]).text(value)


def seconds(value: float) -> str:
    """Return a configured duration, given in seconds, as it was configured, such as `0.5 s`."""
    return f"{value:g} s"


def duration_s(value: float | None) -> str:
    """Return a measured time, given in seconds, such as `12.3 s`."""
    return MISSING if value is None else f"{digits(value)} s"


def percent(fraction: float | None) -> str:
    """Return a fraction as a percentage, such as `65.8 %`."""
    if fraction is None or not math.isfinite(fraction):
        return MISSING
    return f"{digits(fraction * 100.0)} %"


ZERO = 5e-7
"""Largest magnitude that six decimals round to zero."""


def digits(value: float) -> str:
    """Return a number with three significant digits, or two below 1.

    Larger whole parts are not rounded, whole numbers have no decimals (`40`, not `40.0`), thin spaces group
    the thousands from 10 000 on, and what six decimals round to zero is `0`.
    """
    if not math.isfinite(value):
        return MISSING
    magnitude = abs(value)
    if magnitude <= ZERO:
        return "0"
    if magnitude >= 99.95 or value == round(value):
        decimals = 0
    elif magnitude >= 9.995:
        decimals = 1
    else:
        decimals = 2
        least = 0.0995
        while magnitude < least and decimals < 6:  # two significant digits of a smaller number
            decimals += 1
            least /= 10
    return _grouped(f"{value:.{decimals}f}")


def _grouped(text: str) -> str:
    """Group the thousands of a whole part of five digits or more."""
    whole, point, fraction = text.partition(".")
    if len(whole.lstrip("-")) < 5:
        return text
    return f"{int(whole):,}".replace(",", "\u2009") + point + fraction


def plural(number: int, noun: str) -> str:
    """Return a number with its noun, such as `1 row` or `2,000 rows`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def count(value: float | None) -> str:
    """Return a count with thin spaces, such as `12 345`, with one decimal for a half.

    Halves occur where a median over repeats lies between two counts.
    """
    if value is None or not math.isfinite(value):
        return MISSING
    return _grouped(f"{value:.0f}" if value == round(value) else f"{value:.1f}")


def listing(words: list[str]) -> str:
    """Join words as in `a, b and c`."""
    if len(words) <= 1:
        return "".join(words)
    return ", ".join(words[:-1]) + " and " + words[-1]
