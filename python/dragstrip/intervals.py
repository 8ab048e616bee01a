"""Who is ahead, and whether repeats bear it out: intervals of medians and of paired differences.

Repeats are paired: every contender met the same seeds, so the differences seed by seed are what is judged.
Intervals are 95 % percentile bootstrap intervals of the median (Efron and Tibshirani, An Introduction to the
Bootstrap, 1993, chapter 13) with a seed of their own. Below six repeats such an interval is just the range of
the repeats: it holds the median of all seeds with a probability of 75 % (three repeats), 87.5 % (four) or
93.75 % (five), by the sign test. Below three nothing is called different.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]

TIE = 0.01
"""Two figures within one per cent of each other are called equal."""
RESAMPLES = 1000
SEED = 19790101
REPEATS_MIN = 3
NUMBERS_AT_A_TIME = 500_000
"""Resampled figures in memory at once."""


def among_best(
    values: Floats, *, more_is_better: bool, relative: bool = True, tie: float = TIE
) -> npt.NDArray[np.bool_]:
    """Of each cell the contender with the best median, and every one that is not different from it.

    `values` are cells × contenders × repeats, NaN where there is nothing. A contender is different if the
    interval of its differences from the best, repeat by repeat, lies beyond `tie` (a share of the best's
    figure; with `relative=False` in the figure's unit).
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


def interval(values: Floats) -> tuple[Floats, Floats, Floats]:
    """Median over the last axis with the ends of its interval; values that are missing are left out."""
    rows = values.reshape(-1, values.shape[-1])
    made = np.full((3, len(rows)), math.nan)
    missing = np.isnan(rows)
    constant = ~missing.any(axis=1) & (rows.min(axis=1) == rows.max(axis=1)) if rows.size else missing[:, 0]
    made[:, constant] = rows[constant, 0]
    for count in range(1, rows.shape[1] + 1):
        chosen = np.flatnonzero(((~missing).sum(axis=1) == count) & ~constant)
        step = max(1, NUMBERS_AT_A_TIME // (RESAMPLES * count))
        for start in range(0, len(chosen), step):
            part = chosen[start : start + step]
            whole = np.stack([row[~np.isnan(row)] for row in rows[part]])
            made[:, part] = _bootstrap(whole)
    median, low, high = (column.reshape(values.shape[:-1]) for column in made)
    return median, low, high


def _bootstrap(rows: Floats) -> Floats:
    count = rows.shape[1]
    random = np.random.Generator(np.random.PCG64([SEED, count]))
    medians = np.empty((len(rows), RESAMPLES))
    step = max(1, NUMBERS_AT_A_TIME // rows.size)
    for start in range(0, RESAMPLES, step):
        picks = random.integers(0, count, size=(min(step, RESAMPLES - start), count))
        medians[:, start : start + step] = np.median(rows[:, picks], axis=2)
    low, high = np.percentile(medians, (2.5, 97.5), axis=1)
    return np.stack([np.median(rows, axis=1), low, high])
