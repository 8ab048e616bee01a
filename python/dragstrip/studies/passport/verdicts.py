"""The verdict of each row: a figure held against a limit, or against the baselines of the same passport."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np

from dragstrip.results.intervals import interval
from dragstrip.studies.passport.rows import PassportRow, RowFigure, RowRule
from dragstrip.studies.passport.store import StoredRun

Verdict: TypeAlias = Literal[
    "held", "missed", "missed, as by CUBIC", "better", "same", "worse", "reported", "failed"
]
MARGIN = 0.01
"""Part of a baseline's figure by which a row may differ and is still the same."""
GOOD: frozenset[Verdict] = frozenset(("held", "better", "same", "reported"))


@dataclass(frozen=True)
class Value:
    """A row's figure with one algorithm, over all seeds."""

    median: float | None
    by_seed: tuple[float, ...] = ()
    recordings: tuple[str, ...] = ()
    """Hashes of the runs' recordings, by seed."""
    failure: str = ""
    """Why there is no figure."""
    smaller: str = ""
    """The side that has less in most runs, for a ratio of two sides; else empty."""


@dataclass(frozen=True)
class RowVerdict:
    """A row with its figures and its verdict."""

    row: PassportRow
    value: Value
    baselines: Mapping[str, Value]
    verdict: Verdict
    badness: float
    """Distance of the figure beyond its limit, as a natural logarithm of a ratio; 0 within it."""
    differences: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """The ends of the interval of the figure less the baseline's, by baseline; empty unless K compares."""


def value(row: PassportRow, results: Sequence[StoredRun]) -> Value:
    """The figure of a row over its runs; there is none if one failed or has nothing to measure."""
    summaries = []
    for result in results:
        if result.summary is None:
            return Value(None, failure=result.failure)
        summaries.append(result.summary)
    if (size := row.scenario.runs_per_figure) > 1:
        starts = range(0, len(summaries), size)
        summaries = [{"runs": summaries[start : start + size]} for start in starts]
    figures = []
    for summary in summaries:
        figure = row.figure.of(summary, row.scenario)
        if figure is None or not math.isfinite(figure):
            return Value(None, recordings=_hashes(results), failure=f"nothing to measure: {row.figure.name}")
        figures.append(figure)
    return Value(statistics.median(figures), tuple(figures), _hashes(results), smaller=_smaller(row, results))


def _smaller(row: PassportRow, results: Sequence[StoredRun]) -> str:
    if row.figure.smaller is None:
        return ""
    names = [row.figure.smaller(run.summary, row.scenario) for run in results if run.summary is not None]
    name, count = Counter(names).most_common(1)[0]
    return name if 2 * count > len(names) else ""


def _hashes(results: Sequence[StoredRun]) -> tuple[str, ...]:
    return tuple(result.sha256 for result in results)


def judge(row: PassportRow, subject_value: Value, baselines: Mapping[str, Value]) -> RowVerdict:
    """The verdict of a row; `baselines` are the figures of what it is compared with, by name."""
    if subject_value.median is None:
        return RowVerdict(row, subject_value, baselines, "failed", math.inf)
    if row.rule.kind == "R":
        return RowVerdict(row, subject_value, baselines, "reported", 0.0)
    if row.rule.kind == "K":
        return _compared(row, subject_value, baselines)
    if holds(row.rule, subject_value.median):
        return RowVerdict(row, subject_value, baselines, "held", 0.0)
    cubic = baselines.get("cubic", subject_value)
    as_cubic = cubic is not subject_value and cubic.median is not None and not holds(row.rule, cubic.median)
    verdict: Verdict = "missed, as by CUBIC" if as_cubic else "missed"
    return RowVerdict(row, subject_value, baselines, verdict, _excess(row.rule, subject_value.median))


def holds(rule: RowRule, figure: float) -> bool:
    """Returns True when a figure is within a rule's limit."""
    return (rule.most is None or figure <= rule.most) and (rule.least is None or figure >= rule.least)


def _compared(row: PassportRow, subject_value: Value, baselines: Mapping[str, Value]) -> RowVerdict:
    """The verdict against the baselines, and by how much the figure is worse than the worse of them.

    Worse: the interval of the difference from each baseline lies beyond the margin on the wrong side; better:
    beyond it on the right side of each.
    """
    differences: dict[str, tuple[float, float]] = {}
    sides: set[Verdict] = set()
    for name, baseline in baselines.items():
        if (median := baseline.median) is not None:
            low, high = differences[name] = difference(subject_value, baseline, row.id)
            sides.add(_side(row.figure, low, high, max(MARGIN * abs(median), row.figure.floor)))
    verdict: Verdict = sides.pop() if len(sides) == 1 else "same"
    badness = 0.0
    if verdict == "worse" and subject_value.median is not None:
        medians = [baseline.median for baseline in baselines.values() if baseline.median is not None]
        nearest = min(medians) if row.figure.more_is_better else max(medians)
        badness = abs(ratio(subject_value.median, nearest, row.figure.floor))
    return RowVerdict(row, subject_value, baselines, verdict, badness, differences)


def difference(first: Value, second: Value, name: str) -> tuple[float, float]:
    """The interval of the median of differences, seed by seed, between two values of the row with this name.

    A paired bootstrap at 95 % (`dragstrip.results.intervals`). A value of one run, where nothing was random,
    stands for every seed; between two of them there is no chance, and both ends are their difference.
    """
    pairs = np.subtract(*np.broadcast_arrays(np.array(first.by_seed), np.array(second.by_seed)))
    _, low, high = interval(pairs[None, :], name)
    return float(low[0]), float(high[0])


def _side(figure: RowFigure, low: float, high: float, margin: float) -> Verdict:
    """Locates the interval of a difference: beyond the margin on one side, or not."""
    if (low <= margin and high >= -margin) or figure.more_is_better is None:
        return "same"
    return "better" if (low > margin) == figure.more_is_better else "worse"


def _excess(rule: RowRule, figure: float) -> float:
    limit = rule.most if rule.most is not None and figure > rule.most else rule.least
    return abs(ratio(figure, limit if limit is not None else figure, 0.0))


def ratio(numerator: float, denominator: float, floor: float) -> float:
    """The natural logarithm of a ratio of two figures, neither below the floor or a millionth."""
    least = max(floor, 1e-6)
    return math.log(max(abs(numerator), least) / max(abs(denominator), least))


def worst(judged: Sequence[RowVerdict], count: int) -> list[RowVerdict]:
    """The rows that say most against the algorithm: failures, documents' limits, the rest by excess.

    There is one row of each scenario.
    """

    def gravity(row: RowVerdict) -> tuple[int, float, str]:
        grades = {"failed": 0, "missed": 1 if row.row.rule.kind == "P" else 2, "worse": 2}
        return grades.get(row.verdict, 3), -row.badness, row.row.id

    worst_rows: list[RowVerdict] = []
    for row in sorted((row for row in judged if row.verdict not in GOOD), key=gravity):
        if row.row.title not in (entry.row.title for entry in worst_rows):
            worst_rows.append(row)
    return worst_rows[:count]
