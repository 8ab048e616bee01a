"""Results of a sweep: medians with intervals, paired differences, and who is ahead in which cell.

A cell is one combination of everything that varies except the contenders (the algorithms). Repeats are
paired: within a cell every contender runs with the same seeds, so the differences per seed are compared.
intervals.py defines the intervals and their confidence.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dragstrip.results.intervals import Floats, among_best, interval
from dragstrip.studies.sweep.axes import AGAINST, ALONE
from dragstrip.studies.sweep.plan import COMPETITOR, Sweep

CONTENDERS = ("flows.cc", "alternative")
"""Axes whose levels may compete; the first of them that varies does."""


@dataclass(frozen=True)
class Utility:
    """A figure by which contenders are compared."""

    name: str
    title: str
    short: str
    """Name on an axis."""
    unit: str
    more_is_better: bool
    relative: bool = True
    """True when differences are shares of the figure, else they are in its unit."""


UTILITIES = (
    Utility("goodput", "goodput", "goodput", "bit/s", True),
    Utility("delay", "median round-trip time", "median RTT", "ms", False),
    Utility("power", "power (goodput over median round-trip time)", "power", "bit/s per ms", True),
    Utility("harm", "harm to a competing flow", "harm", "1", False, relative=False),
)


@dataclass(frozen=True)
class UtilityScores:
    """One utility over all cells; arrays have the shape cells × contenders, with NaN for missing figures."""

    utility: Utility
    values: Floats
    """Figures in the shape cells × contenders × repeats."""
    median: Floats
    low: Floats
    high: Floats
    best: npt.NDArray[np.bool_]
    """True when a contender has the best median, or does not differ from the best."""


@dataclass(frozen=True)
class Findings:
    """A sweep's cells and the comparisons in them."""

    axis: str | None
    contenders: list[str]
    paths: list[str]
    """Dotted paths of the settings that distinguish cells."""
    cells: list[dict[str, Any]]
    """Each cell's settings."""
    runs: npt.NDArray[np.int64]
    """Numbers of the runs without a competitor, in the shape cells × contenders × repeats."""
    judged: dict[str, UtilityScores]
    rival: str | None
    random: float
    """The share of cells and contenders whose repeats differ at all."""


def judge(sweep: Sweep, data: pa.Table) -> Findings:
    """Compute everything that the report shows."""
    columns = sweep.columns()
    axis = contending(columns)
    places = _Places(sweep, axis)
    rival = next(
        (
            level.label
            for sweep_axis in sweep.axes
            if sweep_axis.path == AGAINST
            for level in sweep_axis.levels
            if level.label != ALONE
        ),
        None,
    )
    values = _values(sweep, data, places, rival)
    judged = {
        utility.name: _judge(utility, values[utility.name]) for utility in UTILITIES if utility.name in values
    }
    goodput = values["goodput"]
    spread = np.fmax.reduce(goodput, axis=2) - np.fmin.reduce(goodput, axis=2)
    return Findings(
        axis,
        places.contenders,
        [path for path in columns if path not in (axis, AGAINST)],
        places.cells(sweep),
        places.runs(sweep),
        judged,
        rival,
        float(np.mean(spread > 0)) if sweep.repeat > 1 else 0.0,
    )


class _Places:
    """The cell and contender of each combination, and whether it ran beside a rival."""

    def __init__(self, sweep: Sweep, axis: str | None) -> None:
        sizes = [len(sweep_axis.levels) for sweep_axis in sweep.axes]
        point = np.arange(sweep.points)
        self.cell = np.zeros(sweep.points, dtype=np.int64)
        self.contender = np.zeros(sweep.points, dtype=np.int64)
        self.with_rival = np.zeros(sweep.points, dtype=np.int64)
        self.contenders = ["all"]
        step = sweep.points
        for sweep_axis, size in zip(sweep.axes, sizes, strict=True):
            step //= size
            level = point // step % size
            if sweep_axis.path == axis:
                self.contender = level
                self.contenders = [str(entry.label) for entry in sweep_axis.levels]
            elif sweep_axis.path == AGAINST:
                self.with_rival = level
            else:
                self.cell = self.cell * size + level
        self.count = int(self.cell.max()) + 1
        self.skip = {axis, AGAINST}

    def cells(self, sweep: Sweep) -> list[dict[str, Any]]:
        """Return the settings of every cell."""
        _, first = np.unique(self.cell, return_index=True)
        return [
            {path: value for path, value in sweep.settings(int(point)).items() if path not in self.skip}
            for point in first
        ]

    def runs(self, sweep: Sweep) -> npt.NDArray[np.int64]:
        """Return the run without a rival of each cell, contender and repeat; -1 where there is none."""
        run_numbers = np.full((self.count, len(self.contenders), sweep.repeat), -1, dtype=np.int64)
        alone = np.flatnonzero(self.with_rival == 0)
        for repeat in range(sweep.repeat):
            run_numbers[self.cell[alone], self.contender[alone], repeat] = alone * sweep.repeat + repeat
        return run_numbers


def _values(sweep: Sweep, data: pa.Table, places: _Places, rival: str | None) -> dict[str, Floats]:
    """Return every utility in the shape cells × contenders × repeats, from the rows of the dataset."""
    shape = (places.count, len(places.contenders), sweep.repeat)
    ok = _is(data, "status", "ok")
    run = data["run"].to_numpy()
    point, repeat = np.divmod(run, sweep.repeat)
    competitor = _is(data, "label", COMPETITOR)
    has_rival = places.with_rival[point] > 0
    where = (places.cell[point], places.contender[point], repeat)
    goodput, delay = _numbers(data, "goodput_bps"), _numbers(data, "rtt_ms_p50")

    alone = ok & ~has_rival
    total = _summed(shape, where, goodput, alone)
    middle = _medians(shape, where, delay, alone)
    values = {"goodput": total, "delay": middle, "power": total / middle}
    if rival is not None:
        theirs = _summed(shape, where, goodput, ok & has_rival & competitor)
        reference = total[:, places.contenders.index(rival), :][:, None, :]
        # Ware, Mukerjee, Seshan and Sherry, Beyond Jain's fairness index, HotNets 2019: the share of what
        # a flow has alone that it loses beside the other.
        values["harm"] = (reference - theirs) / reference
    return values


def _is(data: pa.Table, name: str, value: str) -> npt.NDArray[np.bool_]:
    equal_rows = pc.equal(data[name], pa.scalar(value)).fill_null(False)
    return np.asarray(equal_rows.to_numpy(), dtype=np.bool_)


def _numbers(data: pa.Table, name: str) -> Floats:
    return np.asarray(data[name].to_numpy(), dtype=np.float64)


def _summed(shape: tuple[int, ...], where: tuple[Any, ...], values: Floats, rows: Any) -> Floats:
    sums = np.zeros(shape)
    has_row = np.zeros(shape, dtype=bool)
    row_index = tuple(index[rows] for index in where)
    np.add.at(sums, row_index, values[rows])
    has_row[row_index] = True
    return np.where(has_row, sums, math.nan)


def _medians(shape: tuple[int, ...], where: tuple[Any, ...], values: Floats, rows: Any) -> Floats:
    """Return the median over a run's flows."""
    row_index = tuple(index[rows] for index in where)
    flat = np.ravel_multi_index(row_index, shape)
    order = np.argsort(flat, kind="stable")
    sorted_values = values[rows][order]
    distinct, starts, counts = np.unique(flat[order], return_index=True, return_counts=True)
    medians = np.full(int(np.prod(shape)), math.nan)
    single = counts == 1
    medians[distinct[single]] = sorted_values[starts[single]]
    for place, start, count in zip(distinct[~single], starts[~single], counts[~single], strict=True):
        medians[place] = np.nanmedian(sorted_values[start : start + count])
    return medians.reshape(shape)


def _judge(utility: Utility, values: Floats) -> UtilityScores:
    median, low, high = interval(values)
    best = among_best(values, more_is_better=utility.more_is_better, relative=utility.relative)
    return UtilityScores(utility, values, median, low, high, best)


@dataclass(frozen=True)
class Rank:
    """A contender over all cells, by one utility."""

    contender: str
    sole_best: int
    """Cells where every other contender is different from it, and worse."""
    best_or_tied: int
    """Cells where it is the best, or not different from the best."""
    median: float
    """Median over cells of its figure divided by the best's; for harm, of harm itself."""
    low: float
    high: float


def relative(judged: UtilityScores) -> Floats:
    """Return each median divided by the best in its cell; harm is returned as it is."""
    if not judged.utility.relative:
        return judged.median
    ends = np.fmax if judged.utility.more_is_better else np.fmin
    return np.asarray(judged.median / ends.reduce(judged.median, axis=1, keepdims=True), dtype=np.float64)


def ranking(findings: Findings, name: str) -> list[Rank]:
    """Return the contenders: by cells among the best, cells where they alone are, then the median figure."""
    judged = findings.judged[name]
    best = judged.best
    middle, low, high = interval(relative(judged).T)
    sole = best & (best.sum(axis=1, keepdims=True) == 1)
    ranks = [
        Rank(contender, int(sole[:, at].sum()), int(best[:, at].sum()), *_plain(middle, low, high, at=at))
        for at, contender in enumerate(findings.contenders)
    ]
    sign = -1 if judged.utility.more_is_better else 1

    def place(rank: Rank) -> tuple[float, ...]:
        figure = math.inf if math.isnan(rank.median) else sign * rank.median
        return -rank.best_or_tied, -rank.sole_best, figure

    return sorted(ranks, key=lambda rank: (place(rank), rank.contender))


def ranked(findings: Findings) -> dict[str, Any] | None:
    """Return the rankings as `--json` and the terminal show them, or None if nothing competed."""
    if findings.axis is None:
        return None
    tables = {}
    for name in findings.judged:
        tables[name] = [
            {
                "contender": rank.contender,
                "sole_best": rank.sole_best,
                "best_or_tied": rank.best_or_tied,
                "of_best" if findings.judged[name].utility.relative else "median": _finite(rank.median),
                "low": _finite(rank.low),
                "high": _finite(rank.high),
            }
            for rank in ranking(findings, name)
        ]
    return {"paths": len(findings.cells), "repeats": findings.runs.shape[2], **tables}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _plain(*columns: Floats, at: int) -> tuple[float, float, float]:
    median, low, high = (float(column[at]) for column in columns)
    return median, low, high


def failures(data: pa.Table) -> list[Mapping[str, Any]]:
    """Return the runs without figures: number, key, status, reason and seed."""
    bad = data.filter(pc.not_equal(data["status"], pa.scalar("ok")))
    return list(bad.select(["run", "key", "status", "reason", "seed"]).to_pylist())


def cells_of_points(sweep: Sweep) -> npt.NDArray[np.int64]:
    """Return the cell of each combination, one entry per point."""
    return _Places(sweep, contending(sweep.columns())).cell


def contending(paths: Sequence[str]) -> str | None:
    """Return the path whose levels compete, or None if none of `paths` does."""
    return next((path for path in CONTENDERS if path in paths), None)
