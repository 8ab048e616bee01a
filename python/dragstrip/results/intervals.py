"""Intervals of medians and of paired differences, and which contenders they show to be ahead.

Repeats are paired: every contender runs with the same seeds, so the differences per seed are compared.
Intervals are 95 % percentile bootstrap intervals of the median (Efron and Tibshirani, An Introduction to the
Bootstrap, 1993, chapter 13), drawn with a fixed seed. Below six repeats such an interval is the range of the
repeats: by the sign test it covers the median of all seeds with a probability of 75 % (three repeats), 87.5 %
(four) or 93.75 % (five). Below three repeats no two contenders are called different.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]
Centre: TypeAlias = Callable[..., Any]
"""A statistic of NumPy's that takes an array and an `axis`."""

TIE = 0.01
"""Relative difference within which two figures are called equal: one per cent."""
RESAMPLES = 1000
SEED = 19790101
REPEATS_MIN = 3
NUMBERS_AT_A_TIME = 500_000
"""Resampled figures held in memory at once."""


def among_best(
    values: Floats, *, more_is_better: bool, relative: bool = True, tie: float = TIE
) -> npt.NDArray[np.bool_]:
    """Return, per cell, which contenders are best: the best median and all that do not differ from it.

    `values` has the shape cells × contenders × repeats, with NaN for missing figures; the result has the
    shape cells × contenders. A contender differs if the interval of its differences from the best, repeat by
    repeat, lies beyond `tie` (a share of the best's figure, or with `relative=False` in the figure's unit).
    """
    median, _, _ = interval(values)
    order = np.where(np.isnan(median), -math.inf, median if more_is_better else -median)
    ahead = order.argmax(axis=1)
    leader = np.take_along_axis(values, ahead[:, None, None], axis=1)
    gap = leader - values if more_is_better else values - leader
    if relative:
        gap = gap / np.abs(leader)
    _, surely, _ = interval(gap)
    repeats = np.sum(~np.isnan(gap), axis=2)
    different = (surely > tie) & (repeats >= REPEATS_MIN)
    return np.asarray(~different & ~np.isnan(median), dtype=np.bool_)


def interval(values: Floats, name: str = "", centre: Centre = np.median) -> tuple[Floats, Floats, Floats]:
    """Return the medians over the last axis and the lower and upper ends of their intervals.

    Each has the shape of `values` without its last axis. NaN values are left out. What has another `name` is
    resampled by other random numbers, always the same for the same name. `centre` is another statistic than
    the median, such as `np.mean`.
    """
    rows = values.reshape(-1, values.shape[-1])
    estimates = np.full((3, len(rows)), math.nan)
    missing = np.isnan(rows)
    constant = ~missing.any(axis=1) & (rows.min(axis=1) == rows.max(axis=1)) if rows.size else missing[:, 0]
    estimates[:, constant] = rows[constant, 0]
    for count in range(1, rows.shape[1] + 1):
        row_indexes = np.flatnonzero(((~missing).sum(axis=1) == count) & ~constant)
        step = max(1, NUMBERS_AT_A_TIME // (RESAMPLES * count))
        for start in range(0, len(row_indexes), step):
            part = row_indexes[start : start + step]
            whole = np.stack([row[~np.isnan(row)] for row in rows[part]])
            estimates[:, part] = _bootstrap(whole, name, centre)
    median, low, high = (column.reshape(values.shape[:-1]) for column in estimates)
    return median, low, high


def _bootstrap(rows: Floats, name: str, centre: Centre) -> Floats:
    count = rows.shape[1]
    random = np.random.Generator(np.random.PCG64([SEED, count, *name.encode()]))
    medians = np.empty((len(rows), RESAMPLES))
    step = max(1, NUMBERS_AT_A_TIME // rows.size)
    for start in range(0, RESAMPLES, step):
        picks = random.integers(0, count, size=(min(step, RESAMPLES - start), count))
        medians[:, start : start + step] = centre(rows[:, picks], axis=2)
    low, high = np.percentile(medians, (2.5, 97.5), axis=1)
    return np.stack([centre(rows, axis=1), low, high])
