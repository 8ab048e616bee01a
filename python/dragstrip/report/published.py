"""Published figures beside ours as a figure: for each claim, ours over the published one, and its band."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dragstrip.display import quantity
from dragstrip.display.colours import GREEN, GREY, VERMILION
from dragstrip.report.figure import Axis, Bar, Bars, Figure
from dragstrip.results.claims import CONTRADICTED, REPRODUCED, conversion, slack
from dragstrip.results.comparison.setups import Contender, Setup

COLOURS = {REPRODUCED: GREEN, CONTRADICTED: VERMILION}
"""By grade; others are grey."""
RATIO_MAX = 3.0
"""End of the axis; a figure beyond it stands at its end, with its ratio as text."""

Json = Mapping[str, Any]


def tolerances_of(experiment: Json) -> dict[str, Any]:
    """Return the tolerances of an experiment's claims, by claim."""
    return {str(claim.get("id")): claim.get("tolerance") for claim in experiment.get("claims") or []}


def figure(claims: Sequence[Json], tolerances: Mapping[str, Any]) -> Figure | None:
    """Draw each claim whose figures are numbers: ours over the published one, beside its range and tolerance.

    `tolerances` are those of the experiment, by claim. None if there is no such claim.
    """
    bars = [bar for entry in claims if (bar := _bar(entry, tolerances.get(str(entry.get("id"))))) is not None]
    if not bars:
        return None
    high = min(RATIO_MAX, max(max(bar.value, bar.greatest) for bar in bars)) * 1.15
    counts = quantity.listing([f"{bar.label} {bar.text}" for bar in bars])
    return Figure(
        "published",
        "Ours beside the published figures",
        f"Our figure as a part of the published one, beside its band: {counts}.",
        Bars(
            Axis("Ours ÷ published; band: published range and tolerance", 0, high),
            bars,
            interval=True,
            heads=("Ours ÷ published", "Band from", "Band to"),
            band="band",
            fades=False,
        ),
    )


def _bar(entry: Json, tolerance: Any) -> Bar | None:
    measured: Any = entry.get("measured")
    published: Any = entry.get("published")
    ends: list[Any] = published if isinstance(published, list) else [published, published]
    if not _are_numbers([measured, *ends]) or len(ends) != 2 or sum(ends) == 0:
        return None
    middle = sum(ends) / 2
    try:
        beyond = slack(tolerance, ends)
    except (AttributeError, ValueError):
        return None  # the file was changed by hand: the list shows its words
    low, high = sorted(((ends[0] - beyond) / middle, (ends[1] + beyond) / middle))
    ratio = measured / middle
    if ratio < 0:
        return None
    colour = COLOURS.get(str(entry.get("grade")), GREY)
    clipped = min(ratio, RATIO_MAX)
    return Bar(
        str(entry.get("id")), colour, clipped, max(0.0, low), min(high, RATIO_MAX), quantity.digits(ratio)
    )


PLANE = {"rtt_ms_p50": "ms", "goodput_bps": "bit/s"}
"""Measures of the plane of throughput and delay, with their units."""
SELECTORS = frozenset(("cc", "label", "alternative"))
"""Fields by which a claim selects a contender."""


def points(claims: Sequence[Json], setup: Setup) -> dict[str, tuple[float, float]]:
    """Return the published median RTT in ms and goodput in bit/s, by contender, where there are both.

    Claims of an experiment count that give a value, or a range of which the middle is taken, for all flows of
    one contender.
    """
    figures: dict[str, dict[str, float]] = {}
    for claim in claims:
        value = _absolute(claim)
        if value is None:
            continue
        where = claim.get("where") or {}
        titles = [contender.title for contender in setup.contenders if _selects(where, contender)]
        if len(titles) == 1:
            figures.setdefault(titles[0], {}).setdefault(str(claim["metric"]), value)
    return {
        title: (by_measure["rtt_ms_p50"], by_measure["goodput_bps"])
        for title, by_measure in figures.items()
        if len(by_measure) == len(PLANE)
    }


def _absolute(claim: Json) -> float | None:
    """Return the published figure in the plane's unit; None for another measure, a ratio or an order."""
    unit = PLANE.get(str(claim.get("metric")))
    ends = claim.get("range") or [claim.get("value")]
    is_relative = any(claim.get(field) is not None for field in ("over", "order", "until"))
    if unit is None or is_relative or not isinstance(ends, list) or not _are_numbers(ends):
        return None
    factor = conversion(unit, str(claim.get("unit")))
    return sum(ends) / len(ends) / factor if factor else None


def _selects(where: Json, contender: Contender) -> bool:
    """Return whether a claim is about a contender, in each of its runs."""
    if not where or not set(where) <= SELECTORS:
        return False
    return all(
        where.get("cc", contender.cc) == contender.cc
        and where.get("label", contender.title) == contender.title
        and where.get("alternative", bout.run.settings.get("alternative"))
        == bout.run.settings.get("alternative")
        for bout in contender.bouts
    )


def _are_numbers(values: Sequence[Any]) -> bool:
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
