"""Bars as a small SVG for a notebook, drawn without a browser and without an extra.

Texts take the colour of the page around them, so that it can be read on white and on dark.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from xml.sax.saxutils import escape, quoteattr

from markupsafe import Markup

from dragstrip.report.figure import Bars, Figure

WIDTH = 460
ROW, LINE, THICK = 12, 15, 12
"""Pixels between two rows, of a line of a label, and of a bar."""
LABEL_CHARACTERS = 26
CHARACTER = 6.8
"""Pixels of a character, on average."""


def svg(figure: Figure) -> Markup:
    """Return a figure of bars, with ranges as lines and figures beside them; labels wrap."""
    bars = figure.content
    assert isinstance(bars, Bars), figure.name
    labels = [textwrap.wrap(bar.label, LABEL_CHARACTERS) or [""] for bar in bars.bars]
    left = 12 + CHARACTER * max(len(line) for lines in labels for line in lines)
    right = 12 + CHARACTER * max(len(bar.text) for bar in bars.bars)
    scale = (WIDTH - left - right) / max(bars.axis.high, *(bar.greatest for bar in bars.bars))
    parts, y = [text(left, 14, bars.axis.title, "start", 0.8)], 26.0
    for bar, lines in zip(bars.bars, labels, strict=True):
        height = max(THICK, LINE * len(lines))
        middle = y + height / 2
        for place, line in enumerate(lines):
            parts.append(text(left - 8, middle + 4 + LINE * (place - (len(lines) - 1) / 2), line, "end"))
        box = f'x="{left:.1f}" y="{middle - THICK / 2:.1f}" height="{THICK}"'
        parts.append(f'<rect {box} width="{scale * bar.value:.1f}" fill="{bar.colour}"/>')
        end = left + scale * max(bar.value, bar.greatest)
        if bar.least != bar.greatest:
            low = left + scale * bar.least
            parts.append(f'<path d="M{low:.1f},{middle:.1f}H{end:.1f}" stroke="currentColor"/>')
        parts.append(text(end + 6, middle + 4, bar.text, "start"))
        y += height + ROW
    return drawing(y, parts, figure.description)


def drawing(height: float, parts: Sequence[str], label: str) -> Markup:
    """Return parts, whose texts are escaped, as an SVG of `WIDTH` pixels; `label` is for screen readers."""
    return Markup(  # noqa: S704 - our own SVG, its texts escaped
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" width="{WIDTH}" '
        f'height="{height:g}" style="max-width:100%;height:auto" role="img" aria-label={quoteattr(label)} '
        f'font-family="system-ui,sans-serif" font-size="12" fill="currentColor">{"".join(parts)}</svg>'
    )


def text(x: float, y: float, words: object, anchor: str = "start", opacity: float = 1.0) -> str:
    """Return a line of text as SVG."""
    fade = f' opacity="{opacity:g}"' if opacity < 1 else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{fade}>{escape(str(words))}</text>'
