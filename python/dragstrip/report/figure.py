"""Descriptions of figures: what is drawn, in which units and with which words, but not how.

They have two readers: embed.py puts a description into the page, where the viewer draws it, and vega.py turns
it into Vega-Lite, from which render.py makes SVG, PNG and PDF for papers
(docs/decisions/0007-one-description-of-a-figure.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from dragstrip.report.load import FloatArray
from dragstrip.report.series import Curve

SOLID = (1, 0)
# Readers cannot tell more parts than this apart by a legend.
PARTS_MAX = 10


@dataclass(frozen=True)
class Axis:
    """An axis from `low` to `high` in the unit of its title; a `share` is a fraction, shown in per cent."""

    title: str
    low: float
    high: float
    unit: str = ""
    logarithmic: bool = False
    share: bool = False


@dataclass(frozen=True)
class Rule:
    """A dashed line across the plot, with its meaning."""

    at: float
    text: str


@dataclass(frozen=True)
class Line:
    """One curve, in the units of its axes; `note` is the figure beside its name."""

    label: str
    note: str
    colour: str
    curve: Curve
    dash: tuple[int, ...] = SOLID


@dataclass(frozen=True)
class Distribution:
    """Cumulative distributions: the share of samples at or below `x`."""

    x: Axis
    lines: Sequence[Line]
    rule: Rule | None = None


@dataclass(frozen=True)
class Bar:
    """A contender's figure, the ends of its range, and the figure as text."""

    label: str
    colour: str
    value: float
    least: float
    greatest: float
    text: str


@dataclass(frozen=True)
class Bars:
    """A row per contender: a bar, with its range if `ranged`, or with `interval` a tick on a band."""

    axis: Axis
    bars: Sequence[Bar]
    ranged: bool = False
    interval: bool = False
    heads: tuple[str, str, str] = ("Median", "5th percentile", "95th percentile")
    """Names of an interval's value and of its band's ends, in the figure's table."""
    band: str = "5th to 95th percentile"
    """Name of an interval's band."""
    fades: bool = True
    """True where a colour is an algorithm's, so that a row fades with it."""


@dataclass(frozen=True)
class SharePart:
    """A part of a whole: its total, its share as text, and its depth of colour from 0 to 1.

    A `pooled` part stands for all that have no part of their own.
    """

    label: str
    colour: str
    depth: float
    total: float
    note: str
    pooled: bool = False


@dataclass(frozen=True)
class Shares:
    """Stacked shares in each time bin.

    `edges_s` has one entry more than `tops` has columns. `tops` has one row more than there are parts: row
    `i` is where part `i` begins, counted from the top, and part `i - 1` ends.
    """

    time: Axis
    y: Axis
    parts: Sequence[SharePart]
    edges_s: FloatArray
    tops: FloatArray


@dataclass(frozen=True)
class Pie:
    """Shares of a whole."""

    parts: Sequence[SharePart]


@dataclass(frozen=True)
class Cloud:
    """The points of one contender, an ellipse around them (empty for few points), and their medians."""

    label: str
    note: str
    colour: str
    points: Curve
    ellipse: Curve
    middle: tuple[float, float]
    dash: tuple[int, ...] = SOLID
    link: str = ""
    """Address of the contender's own panels in the report, such as `#setup-1-timeline-2`."""
    published: tuple[float, float] | None = None
    """The published figures, where a publication has both."""


@dataclass(frozen=True)
class Scatter:
    """One quantity against another, with a cloud per contender."""

    x: Axis
    y: Axis
    clouds: Sequence[Cloud]
    rule: Rule | None = None
    corner: str = ""
    """Words in the upper left corner, such as where it is better."""


@dataclass(frozen=True)
class Stroke:
    """Curves of the same look; only those that are `main` are read out at the cursor."""

    curves: Sequence[Curve]
    colour: str
    width: float
    opacity: float = 1.0
    dash: tuple[int, ...] = SOLID
    step: bool = False
    label: str = ""
    main: bool = False


@dataclass(frozen=True)
class Panel:
    """One of several plots above each other that share the time axis."""

    y: Axis
    strokes: Sequence[Stroke]
    rule: Rule | None = None


@dataclass(frozen=True)
class TimeLines:
    """Panels over time; `width` and `height` are those of a panel on paper, in points."""

    time: Axis
    panels: Sequence[Panel]
    width: int = 340
    height: int = 78
    marks: Sequence[Rule] = ()
    """Vertical lines through all panels, labelled in the first."""
    legend: bool = True
    """False where a legend stands elsewhere, as for many small figures."""


Content: TypeAlias = Distribution | Bars | Shares | Pie | Scatter | TimeLines


@dataclass(frozen=True)
class Figure:
    """A figure with its words: `title` stands above it, `description` is its alternative text."""

    name: str
    title: str
    description: str
    content: Content
    # Algorithms that the figure shows; the page hides it with them.
    algorithms: list[str] = field(default_factory=list)
    # Colour of its contender, if the figure is about a single one.
    colour: str = ""
    anchor: str = ""
    """Name of the figure's place in the page, for links to it."""
