"""A figure's numbers as rows: every point that is drawn, in the units of its axes.

The page's button writes the same rows from the embedded data (viewer/rows.js), at the resolution of embed.py.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import TypeAlias, assert_never

import numpy as np

from dragstrip.io.untrusted import cell
from dragstrip.report.figure import Bars, Content, Distribution, Figure, Pie, Scatter, Shares, TimeLines
from dragstrip.report.series import Curve

Row: TypeAlias = tuple[str | float, ...]


def csv_text(figure: Figure) -> str:
    """Return the figure as CSV (RFC 4180, but with LF line ends): a line of headings, then the rows.

    Texts that a spreadsheet would take for formulas stand behind an apostrophe.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(map(cell, heads(figure.content)))
    for row in rows(figure.content):
        writer.writerow([cell(value) if isinstance(value, str) else f"{value:.6g}" for value in row])
    return out.getvalue()


def heads(content: Content) -> Sequence[str]:
    """Return the columns' headings."""
    match content:
        case Distribution():
            return ["name", content.x.title, "share of samples at or below"]
        case Bars():
            return ["name", content.axis.title, "least", "greatest"]
        case Shares():
            return ["name", "from (s)", "to (s)", "share"]
        case Pie():
            return ["name", "total", "share"]
        case Scatter():
            return ["name", content.x.title, content.y.title]
        case TimeLines():
            return ["panel", "name", content.time.title, "value"]
        case unknown:
            assert_never(unknown)


def rows(content: Content) -> Iterator[Row]:
    """Yield the rows, in the order in which they are drawn."""
    match content:
        case Distribution():
            for line in content.lines:
                yield from ((line.label, x, y) for x, y in _points(line.curve))
        case Bars():
            yield from ((bar.label, bar.value, bar.least, bar.greatest) for bar in content.bars)
        case Shares():
            for number, part in enumerate(content.parts):
                widths = content.tops[number] - content.tops[number + 1]
                edges = zip(content.edges_s[:-1].tolist(), content.edges_s[1:].tolist(), strict=True)
                yield from ((part.label, *edge, w) for edge, w in zip(edges, widths.tolist(), strict=True))
        case Pie():
            everything = sum(part.total for part in content.parts) or 1.0
            yield from ((part.label, part.total, part.total / everything) for part in content.parts)
        case Scatter():
            for cloud in content.clouds:
                yield from ((cloud.label, x, y) for x, y in _points(cloud.points))
        case TimeLines():
            for panel in content.panels:
                for stroke in panel.strokes:
                    for curve in stroke.curves:
                        yield from ((panel.y.title, stroke.label, x, y) for x, y in _points(curve))
        case unknown:
            assert_never(unknown)


def _points(curve: Curve) -> Iterator[tuple[float, float]]:
    finite = np.isfinite(curve.y)
    return zip(curve.x[finite].tolist(), curve.y[finite].tolist(), strict=True)
