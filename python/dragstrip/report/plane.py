"""Throughput against delay as a small SVG for a notebook, drawn without a browser and without an extra.

Axes and texts take the colour of the page around them, so that it can be read on white and on dark.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from markupsafe import Markup, escape

from dragstrip.report.figure import Axis, Cloud, Figure, Scatter

WIDTH, HEIGHT = 460, 266
LEFT, RIGHT, TOP, BOTTOM = 52, 16, 20, 40
"""Margins around the plot, in pixels."""
CHARACTER = 6.6
"""Pixels of a character at the size of labels, on average."""
ABOVE, BESIDE = 8, 3
"""Pixels from a point's centre to its label."""
LINE = 14
"""Pixels between the base lines of two labels that would overlap."""


def svg(figure: Figure) -> Markup:
    """Return a figure of a scatter, with a label beside each point."""
    scatter = figure.content
    assert isinstance(scatter, Scatter), figure.name
    parts = [*_axes(scatter), *_rule(scatter)]
    for cloud in scatter.clouds:
        parts += _cloud(scatter, cloud)
    parts += _labels(scatter)
    if scatter.corner:
        parts.append(_text(LEFT + 6, TOP + 12, scatter.corner, opacity=0.7))
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
        f'height="{HEIGHT}" style="max-width:100%;height:auto" role="img" '
        f'aria-label="{escape(figure.description)}" '
        'font-family="system-ui,sans-serif" font-size="12" fill="currentColor">'
    )
    return Markup(f"{head}{''.join(parts)}</svg>")  # noqa: S704 - our own SVG, its texts escaped


def _x(scatter: Scatter, value: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * value / scatter.x.high


def _y(scatter: Scatter, value: float) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / scatter.y.high


def _text(x: float, y: float, words: str, anchor: str = "start", opacity: float = 1.0) -> str:
    fade = f' opacity="{opacity:g}"' if opacity < 1 else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{fade}>{escape(words)}</text>'


def ticks(axis: Axis) -> list[float]:
    """Return three to seven round values from 0 to the axis's end."""
    size = 10.0 ** math.floor(math.log10(axis.high / 4))
    step = next(size * factor for factor in (1, 2, 2.5, 5, 10) if axis.high / (size * factor) <= 6)
    return [step * number for number in range(int(axis.high / step + 1e-9) + 1)]


def _axes(scatter: Scatter) -> Iterator[str]:
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    for value in ticks(scatter.x):
        x = _x(scatter, value)
        yield f'<path d="M{x:.1f},{TOP}V{bottom}" stroke="currentColor" opacity="0.12"/>'
        yield _text(x, bottom + 15, f"{value:g}", "middle", 0.8)
    for value in ticks(scatter.y):
        y = _y(scatter, value)
        yield f'<path d="M{LEFT},{y:.1f}H{right}" stroke="currentColor" opacity="0.12"/>'
        yield _text(LEFT - 6, y + 4, f"{value:g}", "end", 0.8)
    yield _text((LEFT + right) / 2, HEIGHT - 6, scatter.x.title, "middle")
    middle = (TOP + bottom) / 2
    yield (
        f'<text transform="translate(13,{middle:.1f}) rotate(-90)" text-anchor="middle">'
        f"{escape(scatter.y.title)}</text>"
    )


def _rule(scatter: Scatter) -> Iterator[str]:
    if scatter.rule is None:
        return
    x = _x(scatter, scatter.rule.at)
    yield (
        f'<path d="M{x:.1f},{TOP}V{HEIGHT - BOTTOM}" stroke="currentColor" stroke-dasharray="4 3" '
        f'opacity="0.6"><title>{escape(scatter.rule.text)}</title></path>'
    )


def _cloud(scatter: Scatter, cloud: Cloud) -> Iterator[str]:
    colour = cloud.colour
    around = [
        f"{_x(scatter, float(x)):.1f},{_y(scatter, float(y)):.1f}"
        for x, y in zip(cloud.ellipse.x, cloud.ellipse.y, strict=True)
    ]
    if around:
        fill = colour if len(around) > 2 else "none"
        yield f'<path d="M{" L".join(around)}" stroke="{colour}" fill="{fill}" fill-opacity="0.12"/>'
    for x, y in zip(cloud.points.x, cloud.points.y, strict=True):
        at = f'cx="{_x(scatter, float(x)):.1f}" cy="{_y(scatter, float(y)):.1f}"'
        yield f'<circle {at} r="2" fill="{colour}" opacity="0.5"/>'
    x, y = cloud.middle
    dot = (
        f'<circle cx="{_x(scatter, x):.1f}" cy="{_y(scatter, y):.1f}" r="5" fill="{colour}">'
        f"<title>{escape(f'{cloud.label}: {cloud.note}')}</title></circle>"
    )
    if cloud.published:
        at = f'cx="{_x(scatter, cloud.published[0]):.1f}" cy="{_y(scatter, cloud.published[1]):.1f}"'
        words = escape(f"{cloud.label}, published")
        look = f'r="5" fill="none" stroke="{colour}" stroke-width="1.8"'
        yield f"<circle {at} {look}><title>{words}</title></circle>"
    yield f'<a href="{escape(cloud.link)}">{dot}</a>' if cloud.link else dot


def _labels(scatter: Scatter) -> Iterator[str]:
    """Yield each point's name, above it on the side with room; a label that would hide another moves up."""
    boxes: list[tuple[float, float, float]] = []
    """Left end, right end and base line of the labels so far."""
    for cloud in sorted(scatter.clouds, key=lambda cloud: (cloud.middle[1], cloud.middle[0])):
        x, y = _x(scatter, cloud.middle[0]), _y(scatter, cloud.middle[1]) - ABOVE
        width = CHARACTER * len(cloud.label)
        leftwards = x + BESIDE + width > WIDTH
        left = x - BESIDE - width if leftwards else x + BESIDE
        while any(
            left < right and begins < left + width and abs(y - line) < LINE - 1
            for begins, right, line in boxes
        ):
            y -= 2
        if y < LINE:
            continue  # no room: the point's own text names it
        boxes.append((left, left + width, y))
        yield _text(x - BESIDE if leftwards else x + BESIDE, y, cloud.label, "end" if leftwards else "start")
