"""A figure's description inside the page: JSON for the viewer, and a table for readers without it.

Coordinates are whole steps of the axis, each stored as the difference from the one before: short text that
JSON.parse reads at once, finer than a pixel. Curves are decimated before (series.py) so that no peak is lost.
`python/dragstrip/report/viewer/data.js` decodes it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, TypeAlias, assert_never

import numpy as np

from dragstrip.display import quantity
from dragstrip.display.table import Cell, Table
from dragstrip.report.figure import (
    PARTS_MAX,
    Axis,
    Bars,
    Content,
    Distribution,
    Figure,
    Line,
    Pie,
    Scatter,
    SharePart,
    Shares,
    Stroke,
    TimeLines,
)
from dragstrip.report.load import FloatArray, middle_of
from dragstrip.report.series import Curve

Json: TypeAlias = dict[str, Any]

# Steps of a whole axis. A plot is at most about 560 pixels wide and, over time, 100 high.
STEPS_X, STEPS_Y = 4000, 2000
QUANTILES = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
# Rows of a table over time. What is drawn of a stretch has its least and greatest value, but not its mean.
STRETCHES = 20


_ENCODER = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def script(figure: Figure) -> str:
    """Return the description as JSON that may stand inside a script element."""
    content = {
        "name": figure.name,
        "title": figure.title,
        "words": figure.description,
        **_content(figure.content),
    }
    return _ENCODER.encode(content).replace("<", "\\u003c")


def _content(content: Content) -> Json:
    match content:
        case Distribution():
            return {
                "kind": "distribution",
                "x": _axis(content.x),
                "lines": [_line(line, content.x) for line in content.lines],
                "rule": [content.rule.at, content.rule.text] if content.rule else None,
            }
        case Bars():
            bars = [
                [bar.label, bar.colour, *(_short(v) for v in (bar.value, bar.least, bar.greatest)), bar.text]
                for bar in content.bars
            ]
            return {
                "kind": "interval" if content.interval else "bars",
                "axis": _axis(content.axis),
                "bars": bars,
                "ranged": content.ranged,
                "band": content.band,
                "fades": content.fades,
            }
        case Shares():
            return {
                "kind": "shares",
                "x": _axis(content.time),
                "y": _axis(content.y),
                "parts": [_part(part) for part in content.parts],
                "edges": steps(content.edges_s, content.time, STEPS_X),
                "tops": [steps(row, content.y, STEPS_Y) for row in content.tops],
            }
        case Pie():
            return {"kind": "pie", "parts": [_part(part) for part in content.parts]}
        case Scatter():
            clouds = [
                {
                    "label": cloud.label,
                    "note": cloud.note,
                    "colour": cloud.colour,
                    "dash": cloud.dash,
                    "points": _places(cloud.points, content.x, content.y),
                    "ellipse": _places(cloud.ellipse, content.x, content.y),
                    "middle": [_short(value) for value in cloud.middle],
                    "link": cloud.link,
                    "published": cloud.published and [_short(value) for value in cloud.published],
                }
                for cloud in content.clouds
            ]
            rule = [content.rule.at, content.rule.text] if content.rule else None
            axes = {"x": _axis(content.x), "y": _axis(content.y)}
            return {"kind": "scatter", **axes, "clouds": clouds, "rule": rule, "corner": content.corner}
        case TimeLines():
            panels = [
                {
                    "y": _axis(panel.y),
                    "rule": [panel.rule.at, panel.rule.text] if panel.rule else None,
                    "strokes": [_stroke(stroke, content.time, panel.y) for stroke in panel.strokes],
                }
                for panel in content.panels
            ]
            tall = content.height > 100
            marks = [[_short(mark.at), mark.text] for mark in content.marks]
            time = _axis(content.time)
            return {"kind": "timelines", "x": time, "marks": marks, "panels": panels, "tall": tall}
        case unknown:
            assert_never(unknown)


def _axis(axis: Axis) -> Json:
    return {
        "title": axis.title,
        "unit": axis.unit,
        "low": axis.low,
        "high": axis.high,
        "log": axis.logarithmic,
        "share": axis.share,
    }


def _line(line: Line, x: Axis) -> Json:
    y = Axis("", 0, 1)
    return {
        "label": line.label,
        "note": line.note,
        "colour": line.colour,
        "dash": line.dash,
        "x": steps(line.curve.x, x, STEPS_X),
        "y": steps(line.curve.y, y, STEPS_Y),
    }


def _part(part: SharePart) -> Json:
    return {
        "label": part.label,
        "note": part.note,
        "colour": part.colour,
        "depth": part.depth,
        "total": _short(part.total),
    }


def _stroke(stroke: Stroke, x: Axis, y: Axis) -> Json:
    return {
        "label": stroke.label,
        "colour": stroke.colour,
        "width": stroke.width,
        "opacity": stroke.opacity,
        "dash": stroke.dash,
        "step": stroke.step,
        "main": stroke.main,
        "curves": [
            [steps(curve.x, x, STEPS_X), steps(curve.y, y, STEPS_Y)] for curve in map(_finite, stroke.curves)
        ],
    }


def _places(curve: Curve, x: Axis, y: Axis) -> list[list[int]]:
    return [steps(curve.x, x, STEPS_X), steps(curve.y, y, STEPS_Y)]


def _finite(curve: Curve) -> Curve:
    finite = np.isfinite(curve.y)
    return curve if finite.all() else Curve(curve.x[finite], curve.y[finite])


def _short(value: float) -> float:
    return float(f"{value:.6g}")


def steps(values: FloatArray, axis: Axis, of: int) -> list[int]:
    """Return the positions on the axis in `of` whole steps from its lower end, as differences."""
    low, high = axis.low, axis.high
    if axis.logarithmic:
        values, low, high = np.log10(values), float(np.log10(low)), float(np.log10(high))
    places = np.rint((values - low) / ((high - low) or 1.0) * of).astype(np.int64)
    distances: list[int] = np.diff(places, prepend=0).tolist()
    return distances


# --- the same as a table --------------------------------------------------------------------------


def table(figure: Figure) -> Table:
    """Return the figure's numbers as a table of at most about twenty rows."""
    match figure.content:
        case Distribution() as content:
            heads = ["Share of samples at or below", *(line.label for line in content.lines)]
            rows = [
                [f"{level * 100:.0f} %", *(_digits(_quantile(line.curve, level)) for line in content.lines)]
                for level in QUANTILES
            ]
            return _table(heads, rows, f"In {content.x.unit}.")
        case Bars() as content:
            ranged = content.ranged or content.interval
            value, *ends = content.heads if content.interval else (content.axis.title, "Least", "Greatest")
            heads = ["Name", value, *(ends if ranged else [])]
            rows = [
                [bar.label, bar.text, *([_digits(bar.least), _digits(bar.greatest)] if ranged else [])]
                for bar in content.bars
            ]
            return _table(
                heads, rows, f"In {content.axis.unit}." if content.interval and content.axis.unit else ""
            )
        case Shares() as content:
            return _share_table(content)
        case Pie() as content:
            return _table(["Name", "Share of all"], [[part.label, part.note] for part in content.parts])
        case Scatter() as content:
            heads = ["Name", f"Median {content.x.title}", f"Median {content.y.title}", "Points"]
            rows = [
                [cloud.label, *map(_digits, cloud.middle), quantity.count(len(cloud.points))]
                for cloud in content.clouds
            ]
            return _table(heads, rows)
        case TimeLines() as content:
            return _time_table(content)
        case unknown:
            assert_never(unknown)


def _table(heads: Sequence[str], rows: list[list[str]], caption: str = "") -> Table:
    body = [[Cell(text, number=place > 0) for place, text in enumerate(row)] for row in rows]
    return Table([(head, "") for head in heads], body, caption)


def _digits(value: float) -> str:
    return quantity.digits(value)


def _quantile(curve: Curve, level: float) -> float:
    return float(curve.x[min(int(np.searchsorted(curve.y, level)), len(curve) - 1)])


def _share_table(content: Shares) -> Table:
    bins = content.tops.shape[1]
    bins_per_row = max(1, -(-bins // STRETCHES))
    unpooled = [part for part in content.parts if not part.pooled]
    many = len(unpooled) > PARTS_MAX
    rows = []
    for first in range(0, bins, bins_per_row):
        behind = min(first + bins_per_row, bins)
        parts = (content.tops[:-1, first:behind] - content.tops[1:, first:behind]).mean(axis=1)
        single, pooled = parts[: len(unpooled)], parts[len(unpooled) :]
        cell_shares = [single.min(), middle_of(single), single.max(), *pooled] if many else parts.tolist()
        rows.append(
            [_span(content.edges_s[first], content.edges_s[behind]), *map(quantity.percent, cell_shares)]
        )
    names = [part.label for part in content.parts]
    if many:
        names = ["Least", "Median", "Greatest", *names[len(unpooled) :]]
    return _table(["Time (s)", *names], rows)


def _span(start: float, end: float) -> str:
    return f"{start:g} to {end:g}"


def _time_table(content: TimeLines) -> Table:
    """Return the smallest and largest value of each panel's main curves in each stretch of the axis."""
    edges = np.linspace(content.time.low, content.time.high, STRETCHES + 1)
    columns = []
    heads = []
    for panel in content.panels:
        for stroke in panel.strokes:
            if stroke.main and len(stroke.curves):
                heads.append(f"{panel.y.title}{f', {stroke.label}' if stroke.label else ''}")
                columns.append(_stretches(stroke.curves, edges))
    rows = [
        [
            Cell(_span(float(f"{edges[i]:.4g}"), float(f"{edges[i + 1]:.4g}")), number=False),
            *(c[i] for c in columns),
        ]
        for i in range(STRETCHES)
    ]
    caption = "Minimum to maximum of each stretch."
    return Table([(content.time.title, ""), *((head, "") for head in heads)], rows, caption)


def _stretches(curves: Sequence[Curve], edges: FloatArray) -> list[Cell]:
    x = np.concatenate([curve.x for curve in curves])
    y = np.concatenate([curve.y for curve in curves])
    finite = np.isfinite(y)
    x, y = x[finite], y[finite]
    place = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, len(edges) - 2)
    cells = []
    for number in range(len(edges) - 1):
        stretch_values = y[place == number]
        cells.append(
            Cell(
                _range(float(stretch_values.min()), float(stretch_values.max()))
                if len(stretch_values)
                else quantity.MISSING
            )
        )
    return cells


def _range(least: float, greatest: float) -> str:
    low, high = _digits(least), _digits(greatest)
    return low if low == high else f"{low} to {high}"
