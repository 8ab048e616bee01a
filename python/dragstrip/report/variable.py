"""The figure along a number in which set-ups differ: goodput, RTT and loss against rate, RTT or buffer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dragstrip.display import look, quantity
from dragstrip.display.quantity import RATES, SIZES, TIMES_MS, Unit, unit_for
from dragstrip.report.across import MEASURES, contender_of, values_of
from dragstrip.report.figure import Axis, Figure, Panel, Stroke, TimeLines
from dragstrip.report.load import middle_of
from dragstrip.report.series import Curve
from dragstrip.report.timeline import OVERLAID_MAX, WIDTHS
from dragstrip.results.comparison.path import limit_bytes
from dragstrip.results.comparison.setups import Setup

SETUPS_MIN = 3
"""The fewest set-ups that are drawn along a number; bars side by side say as much of fewer."""


def _rate(setup: Setup) -> float | None:
    return setup.path.rate_bps


def _rtt(setup: Setup) -> float | None:
    return setup.path.rtt_ns / 1e6 or None


def _buffer(setup: Setup) -> float | None:
    return limit_bytes(_queue(setup))


def _queue(setup: Setup) -> Mapping[str, Any]:
    """Return the bottleneck's queue, without the shaper before it."""
    queue: Mapping[str, Any] = (setup.path.bottleneck or {}).get("qdisc") or {}
    while queue.get("leaf"):
        queue = queue["leaf"]
    return queue


NUMBERS: tuple[tuple[str, Callable[[Setup], float | None], tuple[Unit, ...]], ...] = (
    ("rate", _rate, RATES),
    ("RTT without queueing", _rtt, (TIMES_MS[1],)),
    ("buffer", _buffer, SIZES),
)
"""Numbers in which set-ups may differ. A buffer often follows from the other two and is last."""


def figure(setups: Sequence[Setup]) -> Figure | None:
    """Return a panel per measure, with a curve per contender along the number in which the set-ups differ.

    None for fewer than three set-ups, if a number is unknown, if they differ in both rate and RTT or in none
    of rate, RTT and buffer, if their queue disciplines differ, and for too many contenders to distinguish.
    """
    variable = _number(setups)
    titles = [contender.title for setup in setups for contender in setup.contenders if contender.is_tcp]
    names = [name for name in dict.fromkeys(titles) if titles.count(name) >= SETUPS_MIN]
    if variable is None or not 1 <= len(names) <= OVERLAID_MAX:
        return None
    title, unit, places = variable
    panels = []
    for measure in MEASURES:
        curves = []
        for name in names:
            points = []
            for place, setup in zip(places, setups, strict=True):
                contender = contender_of(setup, name)
                values = list(values_of(contender, measure).values())
                if contender and values:
                    points.append((place, middle_of(values)))
            if points:
                line_contender = next(
                    candidate for candidate in (contender_of(setup, name) for setup in setups) if candidate
                )
                curves.append((line_contender, np.array(sorted(points), dtype=np.float64)))
        top = max((float(points[:, 1].max()) for _, points in curves), default=0.0)
        if top <= 0:
            continue
        panel_unit = unit_for(top, measure.units)
        strokes = [
            Stroke(
                [Curve(points[:, 0], points[:, 1] / panel_unit.divisor)],
                line_contender.colour,
                1.3,
                dash=line_contender.dash,
                label=line_contender.title,
                main=True,
            )
            for line_contender, points in curves
        ]
        axis = Axis(
            f"{measure.title} ({panel_unit.name})", 0, panel_unit.scale(top) * look.HEADROOM, panel_unit.name
        )
        panels.append(Panel(axis, strokes))
    if not panels:
        return None
    along = Axis(f"{title[0].upper()}{title[1:]} ({unit.name})", 0, max(places), unit.name)
    words = f"{quantity.listing(names)} along {len(setups)} set-ups: the median of the repeats of each."
    ccs = [candidate.cc for setup in setups for candidate in setup.contenders if candidate.title in names]
    return Figure(
        "along", f"By {title}", words, TimeLines(along, panels, WIDTHS[0], 120), list(dict.fromkeys(ccs))
    )


def _number(setups: Sequence[Setup]) -> tuple[str, Unit, list[float]] | None:
    """Return the title of the number in which set-ups differ, its unit, and each set-up's value in it."""
    if len(setups) < SETUPS_MIN:
        return None
    # Another discipline is more than another number.
    kinds = {str(_queue(setup).get("kind")) for setup in setups}
    read = [[number(setup) for setup in setups] for _, number, _ in NUMBERS]
    differ = [at for at, values in enumerate(read) if len(set(values)) > 1]
    if len(kinds) > 1 or not differ or differ[:2] == [0, 1]:
        return None
    title, _, units = NUMBERS[differ[0]]
    values = [float(value) for value in read[differ[0]] if value is not None]
    if len(values) != len(setups) or len(set(values)) < SETUPS_MIN:
        return None
    unit = unit_for(max(values), units)
    return title, unit, [unit.scale(value) for value in values]
