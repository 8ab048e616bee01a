"""Axes of a map: positions of levels or of sampled values, with labels in one unit that the title names."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from dragstrip.display import quantity as q
from dragstrip.studies.sweep.axes import DIGITS, quantity

LOG_RATIO = 10.0
"""Above this ratio of its ends, an axis of numbers is logarithmic."""
_BDP = re.compile(r"([0-9]{1,300}(?:\.[0-9]{1,300})?)bdp")


@dataclass(frozen=True)
class Numbers:
    """Levels as numbers in one unit, for labels: `path.rate (Mbit/s)` with 1, 10 and 100."""

    title: str
    values: list[float] | None
    """Values in the unit, one per level; None where a level is no quantity, or of another kind."""
    labels: list[str]


def numbers(path: str, levels: Sequence[Any]) -> Numbers:
    """Return the labels of an axis's levels, and its title with the unit that they have in common."""
    parsed = [_multiple(level) or quantity(level) for level in levels]
    kinds = {entry[0] for entry in parsed if entry is not None}
    if None in parsed or len(kinds) != 1:
        return Numbers(path, None, ["" if level is None else str(level) for level in levels])
    base = [entry[1] for entry in parsed if entry is not None]
    unit = _unit(kinds.pop(), [abs(value) for value in base])
    values = [unit.scale(value) for value in base]
    title = f"{path} ({unit.name})" if unit.name else path
    return Numbers(title, values, [f"{value:.{DIGITS}g}" for value in values])


def _multiple(level: object) -> tuple[str, float] | None:
    """Return the multiple of a queue such as `0.5bdp` with its unit, or None for another level."""
    multiple = _BDP.fullmatch(level.strip()) if isinstance(level, str) else None
    return None if multiple is None else ("bdp", float(multiple[1]))


def _unit(suffix: str, magnitudes: Sequence[float]) -> q.Unit:
    """Return the unit in which the levels of an axis are written."""
    middle = median(magnitudes)
    if suffix == "_bps":
        return q.unit_for(middle, q.RATES)
    if suffix == "_bytes":
        return q.unit_for(middle, q.SIZES)
    if suffix == "bdp":
        return q.Unit(1.0, "BDP")
    if suffix == "_ns":
        unit = q.unit_for(middle / 1e6, q.TIMES_MS)
        return q.Unit(unit.divisor * 1e6, unit.name)
    return q.Unit(0.01, "%") if suffix == "_share" else q.Unit(1.0, "")


@dataclass(frozen=True)
class Scale:
    """Positions along one direction in pixels, and ticks with their labels."""

    title: str
    at: Callable[[Any], float]
    ticks: list[tuple[float, str]]
    size: float
    step: float = 0.0
    """Pixels from one level to the next; 0 for continuous values."""


def stepped(path: str, values: Sequence[Any], step: float, upwards: bool) -> Scale:
    """Return a scale with a step per level; `at` gives a level's edge, ticks are in the middle of a step."""
    levels = list({repr(value): value for value in values}.values())
    texts = numbers(path, levels)
    order = range(len(levels) - 1, -1, -1) if upwards else range(len(levels))
    positions = {repr(levels[level]): place * step for place, level in enumerate(order)}
    ticks = [
        (positions[repr(level)] + step / 2, label) for level, label in zip(levels, texts.labels, strict=True)
    ]
    return Scale(texts.title, lambda value: positions[repr(value)], ticks, step * len(levels), step)


def continuous(path: str, values: Sequence[Any], size: float, upwards: bool) -> Scale:
    """Return a scale of sampled quantities, with round values at its ticks."""
    texts = numbers(path, values)
    places = dict(zip(map(repr, values), texts.values or [0.0] * len(values), strict=True))
    low, high = min(places.values()), max(places.values())
    logarithmic = low > 0 and high / low > LOG_RATIO

    def position(number: float) -> float:
        share = share_between(number, low, high, logarithmic)
        return size * (1 - share if upwards else share)

    ticks = [(position(tick), f"{tick:g}") for tick in round_values(low, high, logarithmic)]
    return Scale(texts.title, lambda value: position(places[repr(value)]), ticks, size)


def share_between(value: float, low: float, high: float, logarithmic: bool) -> float:
    """Return how far `value` is from `low` to `high`, as a share from 0 to 1."""
    if high == low:
        return 0.5
    if logarithmic:
        return math.log(value / low) / math.log(high / low)
    return (value - low) / (high - low)


def round_values(low: float, high: float, logarithmic: bool) -> list[float]:
    """Return about five round values from `low` to `high`."""
    if high <= low:
        return [low]
    if logarithmic:
        decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        for factors in ((1,), (1, 3), (1, 2, 5)):
            ticks = [factor * 10.0**power for power in decades for factor in factors]
            inside = [tick for tick in ticks if low * 0.999 <= tick <= high * 1.001]
            if len(inside) >= 3:
                return inside
        return inside
    size = 10.0 ** math.floor(math.log10((high - low) / 4))
    step = next(size * factor for factor in (1, 2, 2.5, 5, 10) if (high - low) / (size * factor) <= 5.5)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [step * number for number in range(first, last + 1)]
