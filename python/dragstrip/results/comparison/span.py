"""Many set-ups summed up: who is ahead in how many of them, and between what their figures lie."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from dragstrip.display import quantity
from dragstrip.results.comparison.setups import Setup
from dragstrip.results.comparison.stats import Row, Statistic
from dragstrip.results.comparison.verdict import highest_goodput
from dragstrip.results.intervals import TIE

SETUPS_MIN = 3
"""The fewest set-ups that are summed up; of two, each has its sentence."""
NAMES_MAX = 6
"""Largest number of contenders whose figures are given."""

Entries = Sequence[tuple[Setup, Sequence[Row]]]


def sentences(entries: Entries) -> list[Markup]:
    """Return who has the highest goodput in how many set-ups, then a sentence for each TCP contender.

    That one gives the least and the greatest of its shares where flows compete in all of its set-ups, else of
    its goodputs and median RTTs, with the set-ups in which they are reached. Empty for fewer than three.
    """
    if len(entries) < SETUPS_MIN:
        return []
    candidates = [_leaders(entries), *_contenders(entries)]
    return [sentence for sentence in candidates if sentence]


def _leaders(entries: Entries) -> Markup | None:
    """Count by the contender that is ahead; set-ups of a single contender compare nothing."""
    ahead: dict[str, int] = {}
    compared = judged = 0
    for setup, rows in entries:
        verdict = highest_goodput(setup, list(rows))
        if verdict is None or len(rows) < 2:
            continue
        compared += 1
        judged += verdict.judged
        leader = quantity.listing(verdict.best) if verdict.worst else ""
        ahead[leader] = ahead.get(leader, 0) + 1
    if not compared:
        return None
    none = ahead.pop("", 0)
    parts = [
        Markup("{} {} the highest goodput in {}").format(
            _bold(leader),
            "have" if " and " in leader else "has",
            f"all {compared} setups" if count == compared else f"{count} of {compared} setups",
        )
        for leader, count in sorted(ahead.items(), key=lambda entry: -entry[1])
    ]
    if none:
        parts.append(Markup("in {} of {} no clear difference").format(none, compared))
    words = "" if judged == compared else "In these runs: "
    sentence = Markup("; ").join(parts) + "."
    return Markup(words) + (sentence if words else sentence[:1].upper() + sentence[1:])  # noqa: S704 - our words


@dataclass(frozen=True)
class _Reach:
    """The least and the greatest of a contender's figures, with what their set-ups are called."""

    least: float
    least_in: str
    greatest: float
    greatest_in: str

    def text(self, text_of: Callable[[float], str], of: str = "") -> str:
        """Write both ends and what they are a part of, or one figure where they do not differ."""
        if self.greatest - self.least <= TIE * abs(self.greatest):
            return f"{text_of(self.greatest)}{of} in each"
        return f"{text_of(self.least)} ({self.least_in}) to {text_of(self.greatest)} ({self.greatest_in}){of}"


def _contenders(entries: Entries) -> list[Markup]:
    rows: dict[str, list[tuple[Setup, Row]]] = {}
    for setup, members in entries:
        for row in members:
            if row.contender.is_tcp:
                rows.setdefault(row.contender.title, []).append((setup, row))
    several = {title: appearances for title, appearances in rows.items() if len(appearances) >= SETUPS_MIN}
    if len(several) > NAMES_MAX:
        return []
    return [
        sentence for title, appearances in several.items() if (sentence := _contender(title, appearances))
    ]


def _contender(title: str, appearances: Sequence[tuple[Setup, Row]]) -> Markup | None:
    share = _reach(appearances, lambda row: row.share)
    if share is not None and all(row.share is not None for _, row in appearances):
        return Markup("{} gets {}.").format(_bold(title), share.text(quantity.percent, " of the bytes"))
    goodput = _reach(appearances, lambda row: row.goodput_bps)
    if goodput is None:
        return None
    rtt = _reach(appearances, lambda row: row.rtt_p50_ms)
    sentence = Markup("{}: goodput {}").format(_bold(title), goodput.text(quantity.rate))
    if rtt is not None:
        sentence += Markup("; median RTT {}").format(rtt.text(quantity.milliseconds))
    return sentence + "."


def _reach(
    appearances: Sequence[tuple[Setup, Row]], figure: Callable[[Row], Statistic | None]
) -> _Reach | None:
    ends = [
        (statistic.middle, setup.short)
        for setup, row in appearances
        if (statistic := figure(row)) is not None
    ]
    if not ends:
        return None
    least, greatest = min(ends, key=lambda entry: entry[0]), max(ends, key=lambda entry: entry[0])
    return _Reach(*least, *greatest)


def _bold(title: str) -> Markup:
    return Markup("<strong>{}</strong>").format(escape(title))
