"""Maps as pictures: the colours, numbers and axes of one utility, from a sweep's findings."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup

from dragstrip.display import quantity as q
from dragstrip.display.quantity import Unit
from dragstrip.studies.sweep.cells import Pages
from dragstrip.studies.sweep.heat import (
    Frame,
    HeatCell,
    axes,
    boxes,
    colour_scale,
    crowded,
    dots,
    head,
    margin,
    picture,
    row_height,
    shade,
)
from dragstrip.studies.sweep.layout import Layout
from dragstrip.studies.sweep.scales import continuous, numbers, stepped
from dragstrip.studies.sweep.stats import Findings, UtilityScores

WIDE, NARROW = 600.0, 362.0
"""Widths in pixels that pictures are drawn for: two fill a page beside each other, one fills a phone."""
PLOT = 260.0
"""Height of a scatter plot in pixels, for sampled axes."""
HARM_COLOUR = "#b42318"
DEEP = 0.72
"""Harm from which the text on its shade is light."""
HOVER_MAX = 4000
"""Cells of a sweep, at most, whose tooltips have every contender's figure; with more, only who is ahead."""

FORMAT: Mapping[str, Callable[[float | None], str]] = {
    "goodput": q.rate,
    "delay": q.milliseconds,
    "power": lambda value: f"{q.rate(value)} per ms",
    "harm": q.percent,
}
WORDS = {
    "goodput": "most goodput",
    "delay": "least delay",
    "power": "most power",
    "harm": "least harm",
}


def title(findings: Findings, name: str) -> str:
    """Return a utility's heading, such as `Most goodput`."""
    return f"Least harm to {findings.rival}" if name == "harm" else WORDS[name].capitalize()


def settings_text(settings: Mapping[str, Any]) -> str:
    """Return settings as `path.queue fq_codel, path.loss 1%`."""
    return ", ".join(f"{path} {value}" for path, value in settings.items())


def unit_of(judged: UtilityScores) -> Unit:
    """Return the unit in which a utility's figures are written."""
    name = judged.utility.name
    finite = np.abs(judged.median[np.isfinite(judged.median)])
    middle = float(np.median(finite)) if finite.size else 0.0
    if name == "harm":
        return Unit(0.01, "%")
    if name == "delay":
        return q.unit_for(middle, q.TIMES_MS[:2])
    unit = q.unit_for(middle, q.RATES)
    return Unit(unit.divisor, f"{unit.name} per ms") if name == "power" else unit


@dataclass(frozen=True)
class Look:
    """A cell's colours and opacities, side by side (none if nothing is known), and whose figure it shows."""

    fills: list[tuple[str, float]]
    contender: int | None = None
    shade: bool = False
    deep: bool = False


Fill = Callable[[int], Look]


def winners(judged: UtilityScores, findings: Findings, colours: Mapping[str, str]) -> Fill:
    """Return a fill with the colours of all contenders that are among the best, and the best one's figure."""
    sign = -1 if judged.utility.more_is_better else 1

    def fill(cell: int) -> Look:
        best = np.flatnonzero(judged.best[cell])
        if not len(best):
            return Look([])
        opacity = 1.0 if len(best) == 1 else 0.55
        first = best[np.argmin(sign * judged.median[cell, best])]
        return Look([(colours[findings.contenders[at]], opacity) for at in best], int(first))

    return fill


def shades(judged: UtilityScores, contender: int) -> Fill:
    """Return a fill with a contender's harm as the depth of one colour."""

    def fill(cell: int) -> Look:
        harm = float(judged.median[cell, contender])
        if math.isnan(harm):
            return Look([])
        return Look([(HARM_COLOUR, shade(harm))], contender, shade=True, deep=harm > DEEP)

    return fill


def harm_scale(findings: Findings) -> Markup:
    """Return the scale of the shades of harm."""
    return colour_scale(HARM_COLOUR, f"Goodput that {findings.rival} loses")


def drawing(
    judged: UtilityScores,
    findings: Findings,
    layout: Layout,
    cells: Sequence[int],
    fill: Fill,
    width: float,
    pages: Pages | None = None,
) -> Markup:
    """Return one map as SVG for a width in pixels.

    With `pages` its cells link to their runs and, where it is wide, have tooltips with figures.
    """
    full = len(findings.cells) <= HOVER_MAX
    unit = unit_of(judged)
    drawn = []
    for cell in cells:
        settings, look = findings.cells[cell], fill(cell)
        number, interval = figure_texts(judged, cell, look.contender, unit)
        drawn.append(
            HeatCell(
                settings.get(layout.x or ""),
                settings.get(layout.y or ""),
                look.fills,
                number,
                interval,
                look.shade,
                look.deep,
                _hover(judged, findings, cell, pages, full) if pages and width > NARROW else "",
                pages.link(cell) if pages else "",
            )
        )
    label = f"{judged.utility.title}: {layout.x or ''} to the right, {layout.y or ''} upwards"
    frame = _frame(layout, drawn, width)
    marks = dots(frame, drawn) if layout.sampled else boxes(frame, drawn)
    return picture(frame, label, [*marks, *axes(frame)])


def _frame(layout: Layout, cells: Sequence[HeatCell], width: float) -> Frame:
    """Return the plot's place in a picture of this width."""
    x_path, y_path = layout.x or "", layout.y or ""
    columns, rows = [cell.x for cell in cells], [cell.y for cell in cells]
    if layout.sampled:
        upwards = continuous(y_path, rows, PLOT, upwards=True)
        left = margin([label for _, label in upwards.ticks])
        across = continuous(x_path, columns, width - left - 16, upwards=False)
        return Frame(left, head(upwards.title), across, upwards, crowded(across, 16))
    texts = numbers(y_path, list({repr(value): value for value in rows}.values()))
    left = margin(texts.labels)
    step = (width - left - 10) / len(set(map(repr, columns)))
    across = stepped(x_path, columns, step, upwards=False)
    upwards = stepped(y_path, rows, row_height(cells, step), upwards=True)
    return Frame(left, head(upwards.title), across, upwards, crowded(across, 10))


def figure_texts(judged: UtilityScores, cell: int, contender: int | None, unit: Unit) -> tuple[str, str]:
    """Return a contender's median in a cell and its interval, in the unit of the map; empty if unknown."""
    if contender is None or math.isnan(judged.median[cell, contender]):
        return "", ""
    middle, low, high = (
        q.digits(unit.scale(float(part[cell, contender])))
        for part in (judged.median, judged.low, judged.high)
    )
    return middle, "" if low == high else f"{low}–{high}"


def _hover(judged: UtilityScores, findings: Findings, cell: int, pages: Pages, full: bool) -> str:
    format_figure = FORMAT[judged.utility.name]
    lines = [settings_text(findings.cells[cell])]
    median = judged.median[cell]
    sign = -1 if judged.utility.more_is_better else 1
    order = np.argsort(np.where(np.isnan(median), math.inf, sign * median), kind="stable")
    for at in order if full else order[:1]:
        mark = "● " if judged.best[cell, at] else "   "
        low, high = judged.low[cell, at], judged.high[cell, at]
        spread = f" ({format_figure(float(low))} to {format_figure(float(high))})" if low != high else ""
        lines.append(f"{mark}{findings.contenders[at]}: {format_figure(float(median[at]))}{spread}")
    number = int(findings.runs[cell, order[0], 0])
    lines.append(f"run {number}: {pages.replay(number)}")
    return "\n".join(lines)
