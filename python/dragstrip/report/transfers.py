"""Transfers: times and slowdowns by size as a table, and slowdown against size as a figure."""

from __future__ import annotations

import numpy as np

from dragstrip.display import quantity
from dragstrip.display.quantity import MISSING
from dragstrip.display.table import Cell, Table
from dragstrip.model.recording.columns import Floats
from dragstrip.report.figure import Axis, Cloud, Figure, Scatter
from dragstrip.report.series import EMPTY, Curve
from dragstrip.results.comparison.setups import Setup
from dragstrip.results.comparison.transfers import Class, classes, transfers_of

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


def words(size_class: Class) -> list[str]:
    """Return the texts of a class's row, in the order of `HEADS`."""
    count = str(len(size_class.transfers)) + (
        f" ({size_class.unfinished} unfinished)" if size_class.unfinished else ""
    )
    times, slow = [], []
    for percentile in PERCENTILES:
        least = "≥ " if size_class.is_least(percentile) else ""
        times.append(least + quantity.milliseconds(1e3 * size_class.completion_s(percentile)))
        slowdown = size_class.slowdown(percentile)
        slow.append(MISSING if slowdown is None else least + quantity.digits(slowdown))
    return [size_class.name, count, *times, *slow]


def table(setup: Setup) -> Table | None:
    """Return a row per contender and class of size, or None if nobody has enough transfers."""
    body, algorithms, unfinished = [], [], False
    for contender in setup.contenders:
        for size_class in classes(contender):
            unfinished |= size_class.unfinished > 0
            name = Cell(contender.title, colour=contender.colour, number=False)
            body.append([name, *(Cell(text) for text in words(size_class))])
            algorithms.append(contender.cc)
    if not body:
        return None
    heads = [("Flow" if setup.together else "Algorithm", ""), *HEADS]
    notes = [f"Of all {setup.repeats} runs."] if setup.repeats > 1 else []
    if unfinished:
        notes.append("≥: transfers that had not finished count with the time so far.")
    caption = " ".join(notes)
    deciding = frozenset({heads[0][0], "Size", "FCT p50", "Slowdown p99"})
    return Table(heads, body, caption, algorithms, deciding)


def figure(setup: Setup) -> Figure | None:
    """Draw the slowdown of each transfer against its size, on logarithmic axes; None without transfers."""
    clouds, algorithms = [], []
    for contender in setup.contenders:
        with_slowdown = [transfer for transfer in transfers_of(contender) if transfer.slowdown]
        if not with_slowdown:
            continue
        stride = -(-len(with_slowdown) // POINTS_MAX)
        points = Curve(
            np.array([transfer.size / 1e3 for transfer in with_slowdown[::stride]]),
            np.array([transfer.slowdown for transfer in with_slowdown[::stride]], dtype=float),
        )
        middle = (
            float(np.median([transfer.size for transfer in with_slowdown])) / 1e3,
            float(np.median([transfer.slowdown for transfer in with_slowdown])),
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
    joined = np.concatenate(values)
    return Axis(label, float(joined.min()) * 0.9, float(joined.max()) * 1.1, unit, logarithmic=True)
