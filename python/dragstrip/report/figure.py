"""A figure: a Vega-Lite specification with a name, the look that all share, and the pieces they are made of.

The specifications are written as the dictionaries that they are. Building them with Altair was tried: it
copies and checks every piece at every step, which took a second of a report's four. The tests check the
finished specifications against Vega-Lite's schema instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from dragstrip.report.colours import GRID, INK, MUTED
from dragstrip.report.quantity import Unit
from dragstrip.report.series import Curve

SCHEMA = "https://vega.github.io/schema/vega-lite/v5.20.1.json"
FONT = "Helvetica, Arial, Liberation Sans, sans-serif"

Spec: TypeAlias = dict[str, Any]
Rows: TypeAlias = list[dict[str, Any]]

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


@dataclass(frozen=True)
class Figure:
    """A picture with its words: `title` stands over it, `description` is read in its place."""

    name: str
    title: str
    description: str
    spec: Mapping[str, Any]
    # Which algorithms it shows; the page hides it with them.
    algorithms: list[str] = field(default_factory=list)
    # Of the contender that it is all about, if it is about one.
    colour: str = ""


def chart(content: Spec) -> Spec:
    """A complete specification of a view, a layer or a concatenation."""
    return {"$schema": SCHEMA, "config": LOOK, **content}


def rows(values: Rows) -> Spec:
    """Data of a view."""
    return {"values": values}


def points(curves: Sequence[Curve], unit: Unit) -> Rows:
    """Rows of `t`, `v` (in the unit) and `s`, the number of the curve; four decimals are enough to draw."""
    return [
        {"t": round(float(t), 4), "v": round(unit.scale(float(v)), 4), "s": number}
        for number, curve in enumerate(curves)
        for t, v in zip(curve.x, curve.y, strict=True)
    ]


def linear(name: str, low: float, high: float, axis: Spec | None) -> Spec:
    """A quantitative channel from `low` to `high`."""
    return {
        "field": name,
        "type": "quantitative",
        "scale": {"domain": [low, high], "nice": False},
        "axis": axis,
    }


def nominal(name: str, domain: Sequence[str], values: Sequence[Any], legend: Spec | None = None) -> Spec:
    """A channel that gives each of the words in `domain` its own value."""
    return {
        "field": name,
        "type": "nominal",
        # Said, as Vega-Lite would otherwise take numbers for the two ends of a range.
        "scale": {"type": "ordinal", "domain": list(domain), "range": list(values)},
        "legend": legend,
    }


def legend(entries: int, columns: int, title: str | None = None, symbol: str = "stroke") -> Spec:
    """A legend beneath the figure."""
    return {
        "title": title,
        "orient": "bottom",
        "columns": min(columns, entries),
        "symbolType": symbol,
        "columnPadding": 20,
    }
