"""Axes of a sweep: `path.rate=1mbit..1gbit:log:12`, `path.rtt=5ms,20ms,80ms`, `path.loss=0.01%..2%:log`.

An axis is a list of levels, or a range from which a sample is drawn. A level sets one field or, for an
alternative of the experiment's file, several fields under one name.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dragstrip import _core
from dragstrip.errors import BadInputError, expect_text
from dragstrip.experiment.comparison import path_tables
from dragstrip.experiment.expand import flat
from dragstrip.experiment.race import OPTIONS
from dragstrip.experiment.saved_paths import is_saved
from dragstrip.experiment.types import Experiment

DIGITS = 4
"""Significant digits of a level between two ends, so that `1.874mbit` can be read, typed and found again."""

POINTS_MAX = 100_000
"""Levels of an axis and points of a sample, at most."""

AGAINST = "against"
"""The axis of a competing flow."""
ALONE = "alone"


@dataclass(frozen=True)
class Level:
    """One place on an axis: its label, and the fields it sets."""

    label: Any
    assignments: Mapping[str, Any]


@dataclass(frozen=True)
class SweepAxis:
    """A list of levels."""

    path: str
    levels: tuple[Level, ...]


@dataclass(frozen=True)
class Range:
    """A continuous range from which values are sampled."""

    path: str
    low: float
    high: float
    log: bool
    write: Callable[[float], Any]

    def at(self, share: float) -> Any:
        """Return the value at a share, from 0 to 1, of the way from low to high."""
        if self.log:
            return self.write(self.low * (self.high / self.low) ** share)
        return self.write(self.low + (self.high - self.low) * share)


def parse(text: str) -> SweepAxis | Range:
    """Parse an axis from the command line; raises `BadInputError`."""
    path, equals, values = text.partition("=")
    if not (path.strip() and equals and values.strip()):
        raise BadInputError("--vary", text, "PATH=VALUES, such as path.rtt=5ms,20ms,80ms", "command line")
    expect_text("--vary", text)
    return of_text(path.strip(), values.strip(), "command line")


def of_text(path: str, values: str, source: str) -> SweepAxis | Range:
    """Parse an axis from values separated by commas, or from a range; raises `BadInputError`."""
    path = _spelled_out(path)
    if ".." not in values:
        return listed(path, [_plain(value.strip()) for value in values.split(",")], source)
    ends, *words = values.split(":")
    count = int(words.pop()[:18]) if words and words[-1].isascii() and words[-1].isdigit() else None
    kind = words.pop() if words else "lin"
    if words or kind not in ("log", "lin") or count == 0:
        raise BadInputError(
            f"vary.{path}", values, "LOW..HIGH, LOW..HIGH:log, or LOW..HIGH:log:COUNT (lin or log)", source
        )
    if count is not None and count > POINTS_MAX:
        raise BadInputError(f"vary.{path}", values, f"at most {POINTS_MAX:,} values", source)
    value_range = _range(path, *ends.split("..", 1), log=kind == "log", source=source)
    if count is None:
        return value_range
    steps = [value_range.at(step / (count - 1)) if count > 1 else value_range.at(0) for step in range(count)]
    return listed(path, list(dict.fromkeys(steps)), source)


def listed(path: str, values: Sequence[Any], source: str) -> SweepAxis:
    """Return an axis of values; raises `BadInputError` if one is empty or occurs twice."""
    if not values or any(value == "" for value in values):
        raise BadInputError(f"vary.{path}", list(values), "at least one value, and none empty", source)
    spellings = [repr(value) for value in values]
    if len(set(spellings)) < len(spellings):
        raise BadInputError(f"vary.{path}", list(values), "every value once", source)
    if path == "path":
        return SweepAxis(path, tuple(Level(value, _on_path(value)) for value in values))
    return SweepAxis(path, tuple(Level(value, {path: value}) for value in values))


def _on_path(value: Any) -> Mapping[str, Any]:
    """Return the fields that a level of the axis `path` sets: of a saved path its tables, else its name."""
    if isinstance(value, str) and is_saved(value):
        return path_tables(value)
    return {"path": value}


def of_experiment(experiment: Experiment, source: str) -> list[SweepAxis | Range]:
    """Return the axes that the experiment's own file varies; raises `BadInputError`."""
    axes: list[SweepAxis | Range] = []
    if experiment.alternatives:
        levels = tuple(Level(entry.name, dict(entry.set)) for entry in experiment.alternatives)
        axes.append(SweepAxis("alternative", levels))
    for path, values in flat(experiment.vary).items():
        if isinstance(values, str):
            axes.append(of_text(path, values, source))
        elif isinstance(values, list):
            axes.append(listed(path, values, source))
        else:
            raise BadInputError(f"vary.{path}", values, "a list of values, or a range as text", source)
    return axes


def sampled(axes: Sequence[SweepAxis | Range], sample: str | None, seed: int) -> list[SweepAxis]:
    """Return all axes as lists; all ranges together become one axis of sample points, before the others.

    Raises `BadInputError` if `sample` is neither lhs:N nor random:N, or does not fit the axes.
    """
    ranges = [axis for axis in axes if isinstance(axis, Range)]
    lists = [axis for axis in axes if isinstance(axis, SweepAxis)]
    if sample is None:
        if ranges:
            raise BadInputError(
                f"vary.{ranges[0].path}", None, "a range without a count needs --sample lhs:N or random:N"
            )
        return lists
    sample_match = re.fullmatch(r"(lhs|random):([1-9][0-9]*)", sample)
    if sample_match is None:
        raise BadInputError("--sample", sample, "lhs:N or random:N", "command line")
    if int(sample_match[2][:9]) > POINTS_MAX:
        raise BadInputError("--sample", sample, f"at most {POINTS_MAX:,} points", "command line")
    if not ranges:
        raise BadInputError("--sample", sample, "a --vary with a range, such as path.rate=1mbit..1gbit:log")
    points = list(_points(len(ranges), int(sample_match[2]), sample_match[1] == "lhs", seed))
    levels = []
    for number, point in enumerate(points):
        assignments = {axis.path: axis.at(share) for axis, share in zip(ranges, point, strict=True)}
        levels.append(Level(number, assignments))
    return [SweepAxis("sample", tuple(levels)), *lists]


def _points(dimensions: int, count: int, latin: bool, seed: int) -> Iterator[tuple[float, ...]]:
    """Yield points with coordinates in [0, 1), independent or, with `latin`, one per stratum and dimension.

    Source of the Latin hypercube: McKay, Beckman and Conover, Technometrics 21(2), 1979. Python's generator
    and its `random()` give the same numbers on every version and machine.
    """
    columns = []
    for dimension in range(dimensions):
        draws = random.Random(f"dragstrip sample {seed} {dimension}")  # noqa: S311 - not cryptography
        strata = list(range(count))
        if latin:  # Fisher and Yates, by random() alone
            for last in range(count - 1, 0, -1):
                swap_index = int(draws.random() * (last + 1))
                strata[last], strata[swap_index] = strata[swap_index], strata[last]
            columns.append([(stratum + draws.random()) / count for stratum in strata])
        else:
            columns.append([draws.random() for _ in strata])
    yield from zip(*columns, strict=True)


def _spelled_out(path: str) -> str:
    """Expand `flow.cc` to `flows.cc`, every flow's, and an option of a race, such as `rate`, to its field."""
    head, dot, rest = path.partition(".")
    if dot:
        return f"{head}s{dot}{rest}" if head in ("flow", "probe", "host") else path
    return next((option.varies for option in OPTIONS if option.varies and option.name == path), path)


def _plain(value: str) -> Any:
    """Return a number or a truth value if the text is one, else the text."""
    if re.fullmatch(r"-?[0-9]{1,18}", value):
        return int(value)
    if re.fullmatch(r"-?[0-9]{1,300}\.[0-9]{1,300}", value):
        return float(value)
    return {"true": True, "false": False}.get(value, value)


# --- ranges of quantities ---------------------------------------------------------------------


def _range(path: str, low: str, high: str, *, log: bool, source: str) -> Range:
    for read, write in _KINDS:
        ends = (read(low.strip()), read(high.strip()))
        if ends[0] is not None and ends[1] is not None:
            if not ends[0] < ends[1] or (log and ends[0] <= 0):
                expected = "a range from low to high" + (", above zero where it is log" if log else "")
                raise BadInputError(f"vary.{path}", f"{low}..{high}", expected, source)
            return Range(path, float(ends[0]), float(ends[1]), log, write)
    raise BadInputError(
        f"vary.{path}", f"{low}..{high}", "two quantities of one kind, such as 1mbit..1gbit", source
    )


def _reader(pattern: str, parse: Callable[[str], float]) -> Callable[[str], float | None]:
    def read(text: str) -> float | None:
        if not re.fullmatch(rf"-?[0-9]{{1,300}}(?:\.[0-9]{{1,300}})?\s*(?:{pattern})", text, re.IGNORECASE):
            return None
        try:
            return parse(text)
        except (_core.InputError, ValueError):
            return None

    return read


def _short(value: float) -> float:
    """Round to `DIGITS` significant digits."""
    if value == 0:
        return 0.0
    return round(value, DIGITS - 1 - math.floor(math.log10(abs(value))))


def _scaled(units: Sequence[tuple[float, str]]) -> Callable[[float], str]:
    """Return a function that writes a quantity in the largest unit in which it is at least 1."""

    def write(value: float) -> str:
        value = _short(value)
        for size, unit in units:
            if value >= size:
                return f"{value / size:.12g}{unit}"
        return f"{value / units[-1][0]:.12g}{units[-1][1]}"

    return write


def column(path: str, suffix: str = "") -> str:
    """Return the column name of a varied field, such as `path_rate_bps` for `path.rate` in bit/s."""
    plain = "".join(letter if letter.isalnum() else "_" for letter in path).strip("_")
    return plain + suffix


SUFFIXES = ("_bps", "_ns", "_bytes", "_share")
"""Suffixes of columns by quantity: bits per second, nanoseconds, bytes, and shares from 0 to 1."""


def quantity(label: object) -> tuple[str, float] | None:
    """Return a level's column suffix and its value in base units, or None if it is no quantity."""
    if isinstance(label, str):
        for (read, _), suffix in zip(_KINDS, SUFFIXES, strict=False):
            value = read(label)
            if value is not None:
                return suffix, value
    elif isinstance(label, int | float) and not isinstance(label, bool):
        return "", label
    return None


def _number(value: float) -> float | int:
    short = _short(value)
    return int(short) if short == int(short) else short


_RATE = ((1e9, "gbit"), (1e6, "mbit"), (1e3, "kbit"), (1, "bit"))
_TIME = ((1e9, "s"), (1e6, "ms"), (1e3, "us"), (1, "ns"))
_KINDS: Sequence[tuple[Callable[[str], float | None], Callable[[float], Any]]] = (
    (_reader(r"[kmgt]?i?(?:bit|bps)", _core.parse_rate), _scaled(_RATE)),
    (_reader(r"[mun]?s(?:ecs?)?", _core.parse_time), _scaled(_TIME)),
    (_reader(r"[kmg]?b", _core.parse_size), lambda value: f"{round(value)}b"),
    (_reader(r"%", _core.parse_percent), lambda share: f"{_short(share * 100):.12g}%"),
    (_reader("", float), _number),
)
