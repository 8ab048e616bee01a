"""A figure: a Vega-Lite specification with a name, and the look that all figures share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import altair as alt

from dragstrip.report.colours import GRID, INK, MUTED

FONT = "Helvetica, Arial, Liberation Sans, sans-serif"

Rows = list[dict[str, Any]]

LOOK: dict[str, Any] = {
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
    "title": {"color": INK, "fontSize": 13, "fontWeight": "bold", "anchor": "start", "offset": 6},
    "header": {"labelColor": INK, "titleColor": INK},
}


@dataclass(frozen=True)
class Figure:
    """A picture with its words: `title` stands over it, `description` is read in its place."""

    name: str
    title: str
    description: str
    spec: Mapping[str, Any]
    # Which algorithms it shows; the page can hide it with them.
    algorithms: list[str] = field(default_factory=list)
    # Of the contender that it is all about, if it is about one.
    colour: str = ""
    on_page: bool = True
    on_paper: bool = True


class Sheet:
    """Collects the rows that charts refer to by name, and makes a complete specification of a chart.

    Altair checks whatever it is given against Vega-Lite's schema; thousands of rows need no check, so
    they are added afterwards.
    """

    def __init__(self) -> None:
        self._rows: dict[str, Rows] = {}

    def data(self, rows: Rows) -> alt.NamedData:
        """Keeps the rows, and answers with the name to chart them by."""
        name = f"d{len(self._rows)}"
        self._rows[name] = rows
        return alt.NamedData(name=name)

    def spec(self, chart: alt.TopLevelMixin) -> dict[str, Any]:
        """The chart, its rows and the look of all figures."""
        document: dict[str, Any] = chart.to_dict()
        document["config"] = LOOK
        document["datasets"] = self._rows
        return document
