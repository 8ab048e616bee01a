"""Transfers: times and slowdowns by size as a table, and slowdown against size as a figure."""

from __future__ import annotations

import numpy as np

from dragstrip.recording.columns import Floats
from dragstrip.report.figure import Axis, Cloud, Figure, Scatter
from dragstrip.report.series import EMPTY, Curve
from dragstrip.report.tables import Cell, Table
from dragstrip.results.standings import quantity
from dragstrip.results.standings.quantity import MISSING
from dragstrip.results.standings.setups import Setup
from dragstrip.results.standings.transfers import Class, classes, transfers_of

POINTS_MAX = 1000
"""Points of one contender in the figure, at most."""

PERCENTILES = (50, 99)
HEADS = (
    ("Size", "Class of the transfer's size"),
    ("Transfers", "Number of transfers, and of those that had not finished at the end of the run"),
    ("FCT p50", "Median flow completion time, from the start until the last byte arrives"),
    ("FCT p99", "99th percentile of flow completion times"),
    ("Slowdown p50", "Median of completion times over those of the same transfer alone"),
    ("Slowdown p99", "99th percentile of slowdowns"),
)
"""Headings and what they mean, behind the contender's name."""


def words(one: Class) -> list[str]:
    """Return the texts of a class's row, in the order of `HEADS`."""
    count = str(len(one.transfers)) + (f" ({one.unfinished} unfinished)" if one.unfinished else "")
    times, slow = [], []
    for percentile in PERCENTILES:
        least = "≥ " if one.is_least(percentile) else ""
        times.append(least + quantity.milliseconds(1e3 * one.completion_s(percentile)))
        slowdown = one.slowdown(percentile)
        slow.append(MISSING if slowdown is None else least + quantity.digits(slowdown))
    return [one.name, count, *times, *slow]


def table(setup: Setup) -> Table | None:
    """Return a row per contender and class of size, or None if nobody has enough transfers."""
    body, algorithms, unfinished = [], [], False
    for contender in setup.contenders:
        for one in classes(contender):
            unfinished |= one.unfinished > 0
            name = Cell(contender.title, colour=contender.colour, number=False)
            body.append([name, *(Cell(text) for text in words(one))])
            algorithms.append(contender.cc)
    if not body:
        return None
    heads = [("Flow" if setup.together else "Algorithm", ""), *HEADS]
    told = [f"Of all {setup.repeats} runs."] if setup.repeats > 1 else []
    if unfinished:
        told.append("≥: transfers that had not finished count with the time so far.")
    caption = " ".join(told)
    deciding = frozenset({heads[0][0], "Size", "FCT p50", "Slowdown p99"})
    return Table(heads, body, caption, algorithms, deciding)


def figure(setup: Setup) -> Figure | None:
    """Draw the slowdown of each transfer against its size, on logarithmic axes; None without transfers."""
    clouds, algorithms = [], []
    for contender in setup.contenders:
        known = [it for it in transfers_of(contender) if it.slowdown]
        if not known:
            continue
        every = -(-len(known) // POINTS_MAX)
        points = Curve(
            np.array([it.size / 1e3 for it in known[::every]]),
            np.array([it.slowdown for it in known[::every]], dtype=float),
        )
        middle = (
            float(np.median([it.size for it in known])) / 1e3,
            float(np.median([it.slowdown for it in known])),
        )
        note = f"median slowdown {quantity.digits(middle[1])}"
        clouds.append(Cloud(contender.title, note, contender.colour, points, EMPTY, middle, contender.dash))
        algorithms.append(contender.cc)
    if not clouds:
        return None
    listed = quantity.listing([f"{cloud.label} {cloud.note}" for cloud in clouds])
    return Figure(
        "slowdown",
        "Slowdown by size",
        f"Slowdown against the size of each transfer, on logarithmic axes: {listed}.",
        Scatter(
            _axis("Size (kB, logarithmic)", [cloud.points.x for cloud in clouds], "kB"),
            _axis("Slowdown (times alone, logarithmic)", [cloud.points.y for cloud in clouds], "times"),
            clouds,
        ),
        algorithms,
    )


def _axis(label: str, values: list[Floats], unit: str) -> Axis:
    """Return a logarithmic axis a tenth longer than what it shows, at either end."""
    every = np.concatenate(values)
    return Axis(label, float(every.min()) * 0.9, float(every.max()) * 1.1, unit, logarithmic=True)
