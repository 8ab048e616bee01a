"""Quantities as text for readers: a scaled number and its unit."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median as middle_of
from typing import Any

from dragstrip import _core
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
        """Return `value`, given in base units, with three significant digits and the unit."""
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


def unit_for(largest: float | None, units: tuple[Unit, ...]) -> Unit:
    """Return the largest unit in which `largest` is at least 1, or else the smallest unit."""
    return units[_core.unit_for(math.nan if largest is None else largest, [unit.divisor for unit in units])]


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
    """Return a configured duration, given in seconds, without invented digits, such as `0.5 s`."""
    return f"{value:g} s"


def percent(fraction: float | None) -> str:
    """Return a fraction as a percentage, such as `65.8 %`."""
    if fraction is None or not math.isfinite(fraction):
        return MISSING
    value = fraction * 100.0
    if value == 0 or value >= 99.95:
        return f"{value:.0f} %"
    return f"{value:.1f} %" if value >= 0.995 else f"{value:.2g} %"


def digits(value: float) -> str:
    """Return three significant digits without exponent, thousands separated by thin spaces.

    Whole numbers have no decimals: `40`, not `40.0`.
    """
    if not math.isfinite(value):
        return MISSING
    if value == 0:
        return "0"
    decimals = max(0, 2 - math.floor(math.log10(abs(float(f"{value:.2e}")))))
    if abs(value - round(value)) < 1e-9 * abs(value):
        decimals = 0
    return f"{value:,.{min(decimals, 6)}f}".replace(",", "\u2009")


def count(value: float | None) -> str:
    """Return a count with thin spaces, such as `12 345`, with one decimal for a half.

    Halves occur where a median over repeats lies between two counts.
    """
    if value is None or not math.isfinite(value):
        return MISSING
    text = f"{value:,.0f}" if value == round(value) else f"{value:,.1f}"
    return text.replace(",", "\u2009")


def listing(words: list[str]) -> str:
    """Join words as in `a, b and c`."""
    if len(words) <= 1:
        return "".join(words)
    return ", ".join(words[:-1]) + " and " + words[-1]
