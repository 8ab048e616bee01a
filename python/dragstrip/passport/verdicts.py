"""The verdict of each row: a figure held against a limit, or against the baselines of the same passport."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from dragstrip.passport.rows import BASELINES, Figure, Row, Rule
from dragstrip.passport.store import Shown

Verdict: TypeAlias = Literal[
    "held", "missed", "missed, as by CUBIC", "better", "same", "worse", "reported", "failed"
]
MARGIN = 0.01
"""Part of a baseline's figure by which a row may be worse and is still the same."""
GOOD: frozenset[Verdict] = frozenset(("held", "better", "same", "reported"))


@dataclass(frozen=True)
class Value:
    """A row's figure with one algorithm, over all seeds."""

    median: float | None
    each: tuple[float, ...] = ()
    recordings: tuple[str, ...] = ()
    """Hashes of the runs' recordings, by seed."""
    failure: str = ""
    """Why there is no figure."""


@dataclass(frozen=True)
class Judged:
    """A row with its figures and its verdict."""

    row: Row
    value: Value
    baselines: Mapping[str, Value]
    verdict: Verdict
    badness: float
    """How far on the wrong side the figure is, as a natural logarithm of a ratio; 0 where it is not."""


def value(row: Row, shown: Sequence[Shown]) -> Value:
    """The figure of a row over its runs; there is none if one failed or has nothing to measure."""
    each = []
    for made in shown:
        if made.summary is None:
            return Value(None, failure=made.failure)
        figure = row.figure.of(made.summary, row.scenario)
        if figure is None or not math.isfinite(figure):
            return Value(None, recordings=_hashes(shown), failure=f"nothing to measure: {row.figure.name}")
        each.append(figure)
    return Value(statistics.median(each), tuple(each), _hashes(shown))


def _hashes(shown: Sequence[Shown]) -> tuple[str, ...]:
    return tuple(made.sha256 for made in shown)


def judge(row: Row, own: Value, baselines: Mapping[str, Value]) -> Judged:
    """The verdict of a row; `baselines` are the figures of CUBIC and Reno, by name."""
    if own.median is None:
        return Judged(row, own, baselines, "failed", math.inf)
    if row.rule.kind == "R":
        return Judged(row, own, baselines, "reported", 0.0)
    if row.rule.kind == "K":
        verdict, badness = compared(row.figure, own.median, [baselines[name].median for name in BASELINES])
        return Judged(row, own, baselines, verdict, badness)
    if holds(row.rule, own.median):
        return Judged(row, own, baselines, "held", 0.0)
    cubic = baselines["cubic"]
    as_cubic = cubic is not own and cubic.median is not None and not holds(row.rule, cubic.median)
    verdict = "missed, as by CUBIC" if as_cubic else "missed"
    return Judged(row, own, baselines, verdict, _excess(row.rule, own.median))


def holds(rule: Rule, figure: float) -> bool:
    """Whether a figure is within a rule's limit."""
    return (rule.most is None or figure <= rule.most) and (rule.least is None or figure >= rule.least)


def compared(figure: Figure, own: float, others: Sequence[float | None]) -> tuple[Verdict, float]:
    """The verdict against the baselines, and by how much the figure is worse than the worse of them.

    Worse: than the worse one by more than 1 % and the figure's floor; better: than the better one by as much.
    """
    known = [other for other in others if other is not None]
    if not known or figure.more_is_better is None:
        return "same", 0.0
    sign = 1.0 if figure.more_is_better else -1.0
    worst, best = (min(known), max(known)) if figure.more_is_better else (max(known), min(known))
    if sign * (worst - own) > max(MARGIN * abs(worst), figure.floor):
        return "worse", abs(ratio(own, worst, figure.floor))
    if sign * (own - best) > max(MARGIN * abs(best), figure.floor):
        return "better", 0.0
    return "same", 0.0


def _excess(rule: Rule, figure: float) -> float:
    limit = rule.most if rule.most is not None and figure > rule.most else rule.least
    return abs(ratio(figure, limit if limit is not None else figure, 0.0))


def ratio(one: float, other: float, floor: float) -> float:
    """The natural logarithm of a ratio of two figures, neither below the floor or a millionth."""
    least = max(floor, 1e-6)
    return math.log(max(abs(one), least) / max(abs(other), least))


def worst(judged: Sequence[Judged], count: int) -> list[Judged]:
    """The rows that say most against the algorithm: failures, documents' limits, the rest by excess.

    There is one row of each scenario.
    """

    def gravity(row: Judged) -> tuple[int, float, str]:
        grades = {"failed": 0, "missed": 1 if row.row.rule.kind == "P" else 2, "worse": 2}
        return grades.get(row.verdict, 3), -row.badness, row.row.id

    chosen: list[Judged] = []
    for row in sorted((row for row in judged if row.verdict not in GOOD), key=gravity):
        if row.row.title not in (other.row.title for other in chosen):
            chosen.append(row)
    return chosen[:count]
