"""Line plots of a sweep over a factor that is a number: medians with intervals, a line per contender."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from dragstrip.display.colours import GRID, INK
from dragstrip.display.legend import entry_places
from dragstrip.display.look import DASHES
from dragstrip.display.quantity import Unit, digits
from dragstrip.studies.sweep.heat import Frame, axes, crowded, head, margin, picture, svg, text, text_width
from dragstrip.studies.sweep.layout import Layout
from dragstrip.studies.sweep.scales import (
    LOG_RATIO,
    Scale,
    numbers,
    round_values,
    share_between,
)
from dragstrip.studies.sweep.stats import Findings, UtilityScores

PANELS_MAX = 16
"""Panels of a utility, at most; of more nobody would read the lines."""
PLOT_HEIGHT = 190.0
DODGE = 3.0
"""Pixels between the intervals of two contenders at the same value."""


@dataclass(frozen=True)
class LinePanel:
    """One plot: what its cells have in common, and its cells by rising value of the factor."""

    caption: str
    factor: str
    cells: list[int]


def line_panels(findings: Findings, layout: Layout) -> list[LinePanel]:
    """Return the plots over the first axis of the map that is a number; none if there is none or too many."""
    if layout.sampled or findings.axis is None:
        return []
    for factor, other_factor in ((layout.x, layout.y), (layout.y, layout.x)):
        if factor is None:
            continue
        levels = list(dict.fromkeys(cell[factor] for cell in findings.cells))
        values = numbers(factor, levels).values
        if values is None or len(values) < 2:
            continue
        order = dict(zip(map(repr, levels), values, strict=True))
        panels = [
            LinePanel(
                ", ".join(f"{path} {value}" for path, value in {**settings, **level_name}.items()),
                factor,
                sorted(members, key=lambda cell: order[repr(findings.cells[cell][factor])]),
            )
            for settings, cells in layout.facets
            for level_name, members in _by_level(findings, cells, other_factor)
        ]
        return panels if len(panels) <= PANELS_MAX else []
    return []


def _by_level(
    findings: Findings, cells: Sequence[int], path: str | None
) -> Iterator[tuple[dict[str, Any], list[int]]]:
    """Yield each level of the other axis, with its cells."""
    groups: dict[str, tuple[dict[str, Any], list[int]]] = {}
    for cell in cells:
        settings = {} if path is None else {path: findings.cells[cell][path]}
        groups.setdefault(repr(settings), (settings, []))[1].append(cell)
    yield from groups.values()


def dashes(contenders: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Return a dash pattern for each contender, so that lines differ without colour."""
    return {name: DASHES[place % len(DASHES)] for place, name in enumerate(contenders)}


def line_plot(
    scores: UtilityScores,
    findings: Findings,
    panel: LinePanel,
    colours: Mapping[str, str],
    width: float,
    unit: Unit,
    link: Callable[[int], str] | None = None,
) -> Markup:
    """Return a plot for a width in pixels; a filled point is among the best, a bar is its interval.

    Figures are in `unit`. With `link` a point leads to its cell's runs.
    """
    factor_levels = [findings.cells[cell][panel.factor] for cell in panel.cells]
    texts = numbers(panel.factor, factor_levels)
    values = texts.values or []
    divisor = unit.divisor
    title = f"{scores.utility.short} ({unit.name})"
    low, high, logarithmic = _range(scores, panel.cells, divisor)
    y_ticks = round_values(low, high, logarithmic)
    left = margin([digits(tick) for tick in y_ticks])
    plot = width - left - 10
    log_x = min(values) > 0 and max(values) / min(values) > LOG_RATIO
    inset = 14.0

    def x_at(value: float) -> float:
        return inset + (plot - 2 * inset) * share_between(value, min(values), max(values), log_x)

    def y_at(value: float) -> float:
        return PLOT_HEIGHT * (1 - share_between(value, low, high, logarithmic))

    across = Scale(
        texts.title,
        x_at,
        [(x_at(value), label) for value, label in zip(values, texts.labels, strict=True)],
        plot,
    )
    upwards = Scale(title, y_at, [(y_at(tick), digits(tick)) for tick in y_ticks], PLOT_HEIGHT)
    frame = Frame(left, head(title) + 6, across, upwards, crowded(across, 10))
    parts = [*_grid(frame), *axes(frame)]
    styles = dashes(findings.contenders)
    for place, contender in enumerate(findings.contenders):
        shift = (place - (len(findings.contenders) - 1) / 2) * DODGE
        parts += _line(
            scores,
            panel.cells,
            place,
            [frame.left + x_at(value) + shift for value in values],
            lambda figure: frame.top + y_at(min(high, max(low, figure / divisor))),
            colours[contender],
            styles[contender],
            link,
        )
    label = f"{scores.utility.title} over {panel.factor}" + (f", {panel.caption}" if panel.caption else "")
    return picture(frame, label, parts)


def _range(scores: UtilityScores, cells: Sequence[int], divisor: float) -> tuple[float, float, bool]:
    """Return both ends of the vertical axis, and whether it is logarithmic."""
    ends = [
        float(value) / divisor
        for part in (scores.low, scores.median, scores.high)
        for value in part[cells].ravel()
        if math.isfinite(value)
    ]
    if not ends:
        return 0.0, 1.0, False
    least, greatest = min(ends), max(ends)
    if scores.utility.relative and least > 0 and greatest / least > LOG_RATIO:
        return least * 0.9, greatest * 1.1, True
    low = min(0.0, least * 1.05)
    return low, max(greatest * 1.05, low + 1e-9), False


def _grid(frame: Frame) -> Iterator[str]:
    bottom, right = frame.top + frame.upwards.size, frame.left + frame.across.size
    for place, _ in frame.upwards.ticks:
        y = frame.top + place
        yield f'<path d="M{frame.left:.1f},{y:.1f}H{right:.1f}" stroke="{GRID}"/>'
    yield f'<path d="M{frame.left:.1f},{bottom:.1f}H{right:.1f}" stroke="{INK}"/>'


def _line(
    scores: UtilityScores,
    cells: Sequence[int],
    place: int,
    xs: Sequence[float],
    y_at: Callable[[float], float],
    colour: str,
    dash: tuple[int, ...],
    link: Callable[[int], str] | None,
) -> Iterator[str]:
    """Yield a contender's line, its intervals and its points; a missing figure interrupts the line."""
    points: list[tuple[float, float, int]] = []
    runs: list[list[str]] = [[]]
    for cell, x in zip(cells, xs, strict=True):
        median = float(scores.median[cell, place])
        if math.isnan(median):
            runs.append([])
            continue
        y = y_at(median)
        runs[-1].append(f"{x:.1f},{y:.1f}")
        points.append((x, y, cell))
    pattern = _dash_attribute(dash)
    for run in runs:
        if len(run) > 1:
            yield f'<path d="M{" L".join(run)}" fill="none" stroke="{colour}" stroke-width="1.6"{pattern}/>'
    for x, y, cell in points:
        low, high = (y_at(float(part[cell, place])) for part in (scores.low, scores.high))
        mark = f'<path d="M{x:.1f},{low:.1f}V{high:.1f}" stroke="{colour}" stroke-width="2"/>'
        fill = colour if scores.best[cell, place] else "#ffffff"
        mark += (
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{fill}" stroke="{colour}" stroke-width="1.5"/>'
        )
        yield f'<a href="{link(cell)}">{mark}</a>' if link else mark


def legend(contenders: Sequence[str], colours: Mapping[str, str], width: float) -> Markup:
    """Return the names of the contenders beside pieces of their lines, in as many rows as `width` needs."""
    parts: list[str] = []
    y = 10.0
    styles = dashes(contenders)
    places = entry_places([34 + text_width(name, 12) + 16 for name in styles], 4.0, width)
    for (name, dash), (x, line) in zip(styles.items(), places, strict=True):
        y = 10.0 + 20 * line
        look = f'stroke="{colours[name]}" stroke-width="2"{_dash_attribute(dash)}'
        parts.append(f'<path d="M{x:.1f},{y:.1f}h28" {look}/>')
        parts.append(text(x + 34, y + 4, name, 12, INK, "start"))
    return svg(width, y + 10, parts, "Lines by contender")


def _dash_attribute(dash: tuple[int, ...]) -> str:
    return "" if dash == DASHES[0] else f' stroke-dasharray="{" ".join(map(str, dash))}"'
