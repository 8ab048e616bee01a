"""Turns a figure's description into Vega-Lite, for pictures on paper.

The specifications are written as plain dictionaries. Altair copies and checks every piece at every step,
which took a second of a report's four. The tests check the finished specifications against Vega-Lite's schema
instead.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, assert_never

from dragstrip.display.colours import GRID, INK, MUTED
from dragstrip.display.look import DASHES
from dragstrip.report.figure import (
    PARTS_MAX,
    SOLID,
    Bars,
    Distribution,
    Figure,
    Panel,
    Pie,
    Rule,
    Scatter,
    SharePart,
    Shares,
    Stroke,
    TimeLines,
)
from dragstrip.report.series import Curve

SCHEMA = "https://vega.github.io/schema/vega-lite/v5.20.1.json"
FONT = "Helvetica, Arial, Liberation Sans, sans-serif"
WIDTH, HEIGHT = 340, 220
BAR_WIDTH, BAR_STEP = 220, 24
# Average width of a letter in an axis title of 12 points.
LETTER_WIDTH = 6.2
PIE_RADIUS = 90
# A thinner slice has no room for its figure.
SLICE_MIN = 0.04

Spec: TypeAlias = dict[str, Any]
Rows: TypeAlias = list[dict[str, Any]]


@dataclass(frozen=True)
class Sheet:
    """A plot's width in points (None: the usual one for its kind), and the most columns of a legend."""

    plot: float | None = None
    columns: int = 5

    def width(self, usual: float) -> float:
        """Return a plot's width, which is `usual` without a sheet."""
        return usual if self.plot is None else self.plot

    def height(self, usual: float) -> float:
        """Return a plot's height, reduced with its width, down to half of the usual one."""
        return usual * min(1.0, max(0.5, self.width(WIDTH) / WIDTH))

    def title(self, text: str, usual: float = WIDTH) -> str | list[str]:
        """Return an axis title in as many lines as it needs beside the plot."""
        lines = textwrap.wrap(text, max(10, int(self.width(usual) / LETTER_WIDTH)))
        return text if self.plot is None or len(lines) < 2 else lines


LOOK: Spec = {
    "background": "transparent",
    "aria": False,
    "font": FONT,
    "view": {"stroke": None},
    "padding": 4,
    "axis": {
        "domainColor": MUTED,
        "tickColor": MUTED,
        "gridColor": GRID,
        "labelColor": MUTED,
        "titleColor": INK,
        "labelFontSize": 11,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "labelFlush": False,
        "labelOverlap": "greedy",
        "labelSeparation": 4,
    },
    "legend": {
        "labelColor": INK,
        "titleColor": MUTED,
        "labelFontSize": 12,
        "titleFontSize": 11,
        "titleFontWeight": "normal",
        "labelLimit": 0,
        "symbolStrokeWidth": 2.5,
    },
}


def spec(figure: Figure, sheet: Sheet = Sheet()) -> Spec:
    """Return a complete specification of the figure, without its title and description."""
    match figure.content:
        case Distribution() as content:
            content_spec = _distribution(content, sheet)
        case Bars() as content:
            content_spec = _bars(content, sheet)
        case Shares() as content:
            content_spec = _shares(content, sheet)
        case Pie() as content:
            content_spec = _pie(content, sheet)
        case Scatter() as content:
            content_spec = _scatter(content, sheet)
        case TimeLines() as content:
            content_spec = _time_lines(content, sheet)
        case unknown:
            assert_never(unknown)
    return {"$schema": SCHEMA, "config": LOOK, **content_spec}


def _distribution(content: Distribution, sheet: Sheet) -> Spec:
    labels = [f"{line.label}  {line.note}" for line in content.lines]
    data: Rows = [
        {"x": round(x, 5), "y": round(y, 5), "who": label}
        for label, line in zip(labels, content.lines, strict=True)
        for x, y in zip(line.curve.x.tolist(), line.curve.y.tolist(), strict=True)
    ]
    scale: Spec = {"domain": [content.x.low, content.x.high], "nice": False}
    if content.x.logarithmic:
        scale = {"type": "log", **scale}
    share = {"title": "Share of samples at or below", "format": ".0%", "values": [0, 0.25, 0.5, 0.75, 1]}
    lines: Spec = {
        "data": _rows(data),
        "mark": {"type": "line", "interpolate": "step-after", "clip": True},
        "encoding": {
            "x": {
                "field": "x",
                "type": "quantitative",
                "scale": scale,
                "axis": {"title": sheet.title(content.x.title), "tickCount": 6},
            },
            "y": _linear("y", 0, 1, share),
            "color": _nominal(
                "who",
                labels,
                [line.colour for line in content.lines],
                _legend(len(labels), min(2, sheet.columns), "median"),
            ),
            "strokeDash": _nominal("who", labels, _dashes([line.label for line in content.lines])),
            # Lower curves are wider: they show beside upper ones that coincide with them.
            "strokeWidth": _nominal("who", labels, widths(len(labels))),
        },
    }
    layers = [*(_upright_rule(content.rule, scale, sheet) if content.rule else []), lines]
    return {"layer": layers, **_size(sheet)}


def _dashes(labels: Sequence[str]) -> list[list[int]]:
    """Return a dash pattern per label, so that curves differ in grey too; a label has it in every figure.

    With more labels than patterns (six), some have the same one, and differ in colour alone.
    """
    order = sorted(set(labels))
    return [list(DASHES[order.index(label) % len(DASHES)]) for label in labels]


def widths(curves: int) -> list[float]:
    """Return the line widths of curves drawn over each other, in drawing order."""
    return [min(3.6, 1.8 + 0.45 * above) for above in reversed(range(curves))]


def _size(sheet: Sheet) -> Spec:
    return {"width": sheet.width(WIDTH), "height": sheet.height(HEIGHT)}


def _upright_rule(rule: Rule, scale: Spec, sheet: Sheet) -> list[Spec]:
    """Return a dashed vertical line with its name along it."""
    x = {"field": "x", "type": "quantitative", "scale": scale}
    data = _rows([{"x": rule.at, "text": rule.text}])
    words = {"type": "text", "angle": 270, "baseline": "bottom", "dy": -3, "color": MUTED, "fontSize": 11}
    return [
        {"data": data, "mark": {"type": "rule", "strokeDash": [3, 3], "color": MUTED}, "encoding": {"x": x}},
        {
            "data": data,
            "mark": words,
            "encoding": {
                "x": x,
                "y": {"value": sheet.height(HEIGHT) / 2},
                "text": {"field": "text", "type": "nominal"},
            },
        },
    ]


def _bars(content: Bars, sheet: Sheet) -> Spec:
    data: Rows = [
        {
            "who": bar.label,
            "value": bar.value,
            "least": bar.least,
            "greatest": bar.greatest,
            "text": bar.text,
        }
        for bar in content.bars
    ]
    labels = [bar.label for bar in content.bars]
    colours = _nominal("who", labels, [bar.colour for bar in content.bars])
    title = {"title": sheet.title(content.axis.title, BAR_WIDTH), "tickCount": 4}
    if content.interval:
        layers: list[Spec] = [
            {
                "mark": {"type": "rule", "strokeWidth": 5, "opacity": 0.35},
                "encoding": {
                    "x": _linear("least", 0, content.axis.high, title),
                    "x2": {"field": "greatest"},
                    "color": colours,
                },
            },
            {
                "mark": {"type": "tick", "thickness": 4, "height": 15, "opacity": 1},
                "encoding": {"x": {"field": "value", "type": "quantitative"}, "color": colours},
            },
        ]
    else:
        layers = [
            {
                "mark": {"type": "bar", "height": 13},
                "encoding": {"x": _linear("value", 0, content.axis.high, title), "color": colours},
            }
        ]
        if content.ranged:
            span = {"x": {"field": "least", "type": "quantitative"}, "x2": {"field": "greatest"}}
            layers.append({"mark": {"type": "rule", "color": INK}, "encoding": span})
    text_layer: Spec = {
        "mark": {"type": "text", "align": "left", "dx": 5, "color": INK, "fontSize": 11},
        "encoding": {
            "x": {"field": "greatest", "type": "quantitative"},
            "text": {"field": "text", "type": "nominal"},
        },
    }
    names = {"title": None, "labelFontSize": 12, "labelColor": INK, "ticks": False, "domain": False}
    y = {"field": "who", "type": "nominal", "scale": {"domain": labels}, "axis": names}
    size = {"width": sheet.width(BAR_WIDTH), "height": {"step": BAR_STEP}}
    return {"data": _rows(data), "encoding": {"y": y}, "layer": [*layers, text_layer], **size}


def _shares(content: Shares, sheet: Sheet) -> Spec:
    """Return stepped areas, because bars would show seams."""
    last = content.tops.shape[1] - 1
    data: Rows = [
        {
            "t": round(edge, 4),
            "v": round(float(content.tops[rank + 1, min(i, last)]), 5),
            "v2": round(float(content.tops[rank, min(i, last)]), 5),
            "who": part.label,
        }
        for rank, part in enumerate(content.parts)
        for i, edge in enumerate(content.edges_s.tolist())
    ]
    axis = {"title": content.y.title, "format": ".0%", "values": [0, 0.25, 0.5, 0.75, 1]}
    names = [part.label for part in content.parts]
    return {
        **_size(sheet),
        "data": _rows(data),
        "mark": {"type": "area", "interpolate": "step-after", "clip": True},
        "encoding": {
            "x": _linear(
                "t", 0, content.time.high, {"title": content.time.title, "tickCount": 6, "grid": False}
            ),
            "y": _linear("v", 0, 1, axis),
            "y2": {"field": "v2"},
            **_painted(content.parts, names, min(5 if len(names) in (5, 9, 10) else 4, sheet.columns)),
        },
    }


def _painted(parts: Sequence[SharePart], names: list[str], columns: int) -> Spec:
    few = len(parts) <= PARTS_MAX
    return {
        "color": _nominal(
            "who",
            names,
            [part.colour for part in parts],
            _legend(len(names), columns, symbol="square") if few else None,
        ),
        "opacity": _nominal("who", names, [part.depth for part in parts]),
    }


def _pie(content: Pie, sheet: Sheet) -> Spec:
    everything = sum(part.total for part in content.parts)
    labels = [f"{part.label} {part.note}" for part in content.parts]
    data: Rows = [
        {
            "who": label,
            "v": part.total,
            "rank": rank,
            "text": part.note if part.total >= SLICE_MIN * everything else "",
        }
        for rank, (label, part) in enumerate(zip(labels, content.parts, strict=True))
    ]
    radius = sheet.height(PIE_RADIUS)
    arcs: Spec = {
        "mark": {"type": "arc", "outerRadius": radius, "stroke": "#ffffff", "strokeWidth": 1},
        "encoding": _painted(content.parts, labels, min(2 if len(labels) in (2, 4) else 3, sheet.columns)),
    }
    text: Spec = {
        "mark": {"type": "text", "radius": radius + 18, "fontSize": 11, "color": INK},
        "encoding": {"text": {"field": "text", "type": "nominal"}},
    }
    return {
        **_size(sheet),
        "data": _rows(data),
        "encoding": {
            "theta": {"field": "v", "type": "quantitative", "stack": True},
            "order": {"field": "rank", "type": "quantitative"},
        },
        "layer": [arcs, text] if len(data) <= PARTS_MAX else [arcs],
    }


def _scatter(content: Scatter, sheet: Sheet) -> Spec:
    """Return points, ellipses and medians with their names."""
    labels = [cloud.label for cloud in content.clouds]
    legend = _legend(len(labels), min(4, sheet.columns), symbol="circle")
    colours = _nominal("who", labels, [cloud.colour for cloud in content.clouds], legend)

    def places(curves: Sequence[tuple[str, Curve]]) -> Spec:
        return _rows(
            [
                {"x": round(x, 5), "y": round(y, 5), "who": label, "order": order}
                for label, curve in curves
                for order, (x, y) in enumerate(zip(curve.x.tolist(), curve.y.tolist(), strict=True))
            ]
        )

    xy = {
        "x": _linear(
            "x", content.x.low, content.x.high, {"title": sheet.title(content.x.title), "tickCount": 6}
        ),
        "y": _linear("y", content.y.low, content.y.high, {"title": content.y.title, "tickCount": 5}),
    }
    for name, axis in (("x", content.x), ("y", content.y)):
        if axis.logarithmic:
            xy[name]["scale"]["type"] = "log"
    middles = _rows([{"x": c.middle[0], "y": c.middle[1], "who": c.label} for c in content.clouds])
    order = {"field": "order", "type": "quantitative"}
    layers: list[Spec] = [
        {
            "data": places([(cloud.label, cloud.points) for cloud in content.clouds]),
            "mark": {"type": "circle", "size": 12, "opacity": 0.35, "clip": True},
            "encoding": {**xy, "color": colours},
        },
        {
            "data": places([(cloud.label, cloud.ellipse) for cloud in content.clouds]),
            "mark": {"type": "line", "strokeWidth": 1.4, "clip": True},
            "encoding": {**xy, "color": colours, "order": order},
        },
        {
            "data": middles,
            "mark": {"type": "circle", "size": 70, "opacity": 1},
            "encoding": {**xy, "color": colours},
        },
    ]
    published = [
        {"x": cloud.published[0], "y": cloud.published[1], "who": cloud.label}
        for cloud in content.clouds
        if cloud.published
    ]
    if published:
        hollow = {"type": "point", "size": 70, "filled": False, "strokeWidth": 1.8, "opacity": 1}
        layers.append({"data": _rows(published), "mark": hollow, "encoding": {**xy, "color": colours}})
    scale: Spec = {"domain": [content.x.low, content.x.high], "nice": False}
    rule = _upright_rule(content.rule, scale, sheet) if content.rule else []
    return {"layer": [*rule, *layers, *_corner(content.corner)], **_size(sheet)}


def _corner(words: str) -> list[Spec]:
    """Return words above the upper left corner of a plot; paper's fonts have no oblique arrow."""
    if not words:
        return []
    look = {"type": "text", "align": "left", "baseline": "bottom", "color": MUTED, "fontSize": 11}
    place = {"x": {"value": 0}, "y": {"value": -4}}
    return [
        {
            "data": _rows([{"text": words.replace("↖", "Upper left:")}]),
            "mark": look,
            "encoding": {**place, "text": {"field": "text", "type": "nominal"}},
        }
    ]


def _time_lines(content: TimeLines, sheet: Sheet) -> Spec:
    return {
        "vconcat": [
            _panel(content, panel, sheet, last=panel is content.panels[-1]) for panel in content.panels
        ],
        "spacing": 8,
    }


def _panel(content: TimeLines, panel: Panel, sheet: Sheet, *, last: bool) -> Spec:
    time = {"title": content.time.title if last else None, "labels": last, "ticks": last, "tickCount": 6}
    value = {
        "title": panel.y.title,
        "titleFontSize": 11,
        "tickCount": 4,
        # Wide enough for any label, so that the panels of a column line up.
        "minExtent": 32,
    }
    encoding = {
        "x": _linear("t", 0, content.time.high, time),
        "y": _linear("v", 0, panel.y.high, value),
        "detail": {"field": "s", "type": "nominal"},
    }
    key = key_of(content)
    legend = _legend(len(key), min(4, sheet.columns)) if content.legend else None
    layers = [
        _named_line(stroke, key, encoding, legend)
        if stroke.main and stroke.label in key
        else {
            "data": _rows(_points(stroke.curves)),
            "mark": {"type": "line", "color": stroke.colour, "clip": True, **_style(stroke)},
            "encoding": encoding,
        }
        for stroke in panel.strokes
    ]
    if panel.rule is not None:
        layers.insert(0, _level_rule(panel.rule))
    if content.marks:
        layers[:0] = _marks(content.marks, encoding["x"], content.height, labelled=panel is content.panels[0])
    return {"width": sheet.width(content.width), "height": content.height, "layer": layers}


@dataclass(frozen=True)
class Swatch:
    """The look of a contender's curve, for a legend."""

    colour: str
    dash: list[int]


def key_of(content: TimeLines) -> dict[str, Swatch]:
    """Return the look of each contender's curve by its name; empty if there are fewer than two."""
    strokes = {
        stroke.label: stroke.colour
        for panel in content.panels
        for stroke in panel.strokes
        if stroke.main and stroke.label
    }
    if len(strokes) < 2:
        return {}
    return {
        label: Swatch(colour, dash)
        for (label, colour), dash in zip(strokes.items(), _dashes(list(strokes)), strict=True)
    }


def _named_line(stroke: Stroke, key: dict[str, Swatch], encoding: Spec, legend: Spec | None) -> Spec:
    """Return a contender's curve with the look that the legend shows."""
    style = _style(stroke)
    style.pop("strokeDash", None)
    names, looks = list(key), key.values()
    rows = [{**row, "who": stroke.label} for row in _points(stroke.curves)]
    return {
        "data": _rows(rows),
        "mark": {"type": "line", "clip": True, **style},
        "encoding": {
            **encoding,
            "color": _nominal("who", names, [swatch.colour for swatch in looks], legend),
            "strokeDash": _nominal("who", names, [swatch.dash for swatch in looks], legend),
        },
    }


def _marks(marks: Sequence[Rule], x: Spec, height: int, *, labelled: bool) -> list[Spec]:
    """Return thin vertical lines with their labels along them."""
    data = _rows([{"t": round(mark.at, 4), "text": mark.text} for mark in marks])
    rule = {"type": "rule", "color": MUTED, "strokeWidth": 0.7}
    # Left of its line, but right of one beside the axis, whose numbers it would cover.
    beside = {"expr": f"datum.t < {x['scale']['domain'][1] / 20:g} ? 9 : -2"}
    words = {"type": "text", "angle": 270, "baseline": "bottom", "dy": beside, "color": MUTED, "fontSize": 8}
    text = {"x": x, "y": {"value": height / 2}, "text": {"field": "text", "type": "nominal"}}
    lines: Spec = {"data": data, "mark": rule, "encoding": {"x": x}}
    return [lines, {"data": data, "mark": words, "encoding": text}] if labelled else [lines]


def _style(stroke: Stroke) -> Spec:
    style: Spec = {"opacity": stroke.opacity} if stroke.opacity < 1 else {}
    style["strokeWidth"] = stroke.width
    if stroke.dash != SOLID:
        style["strokeDash"] = list(stroke.dash)
    if stroke.step:
        style["interpolate"] = "step-after"
    return style


def _points(curves: Iterable[Curve]) -> Rows:
    """Return rows of `t`, `v` and `s` (the curve's number), rounded to four decimals for drawing."""
    return [
        {"t": round(t, 4), "v": round(v, 4), "s": number}
        for number, curve in enumerate(curves)
        for t, v in zip(curve.x.tolist(), curve.y.tolist(), strict=True)
    ]


def _level_rule(rule: Rule) -> Spec:
    return {
        "data": _rows([{"v": rule.at}]),
        "mark": {"type": "rule", "color": MUTED, "strokeDash": [3, 3]},
        "encoding": {"y": {"field": "v", "type": "quantitative"}},
    }


def _rows(values: Rows) -> Spec:
    """Return inline data of a view."""
    return {"values": values}


def _linear(name: str, low: float, high: float, axis: Spec | None) -> Spec:
    """Return a quantitative channel from `low` to `high`."""
    return {
        "field": name,
        "type": "quantitative",
        "scale": {"domain": [low, high], "nice": False},
        "axis": axis,
    }


def _nominal(name: str, domain: Sequence[str], values: Sequence[Any], legend: Spec | None = None) -> Spec:
    """Return a channel that maps each word in `domain` to its value."""
    return {
        "field": name,
        "type": "nominal",
        # Said, as Vega-Lite would otherwise take numbers for the two ends of a range.
        "scale": {"type": "ordinal", "domain": list(domain), "range": list(values)},
        "legend": legend,
    }


def _legend(entries: int, columns: int, title: str | None = None, symbol: str = "stroke") -> Spec:
    """Return a legend below the figure."""
    return {
        "title": title,
        "orient": "bottom",
        "columns": min(columns, entries),
        "symbolType": symbol,
        # Long enough for a dash pattern.
        **({"symbolSize": 700} if symbol == "stroke" else {}),
        "columnPadding": 20,
    }
