"""The drawing of a map as SVG for a given width: cells with numbers, axes with units, legends, sheets.

It is drawn for a width, rather than scaled to it, so that text keeps its size on a phone and on paper.
Colours are attributes, so that a picture looks the same in a page, in a document and as PDF.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from xml.sax.saxutils import escape, quoteattr

from markupsafe import Markup

from dragstrip.display.colours import GRID, INK, MUTED
from dragstrip.display.legend import entry_places
from dragstrip.studies.sweep.scales import Scale

FONT = "Helvetica, Arial, Liberation Sans, sans-serif"
LABEL, NUMBER, INTERVAL = 11.0, 12.0, 9.5
"""Sizes of text in pixels: axes, a cell's number, and the interval below it."""
CHARACTER = 0.62
"""Width of a character in parts of the text's size, with some reserve: fonts differ."""
GAP = 12.0
"""Pixels between pictures on a sheet."""
TITLE = 18
"""Pixels for an axis title."""
BAND = 7
"""Pixels of full colour at the top of a cell that has a number."""
TINT = 0.16
"""Opacity of the colour behind a number."""
LOW, MIDDLE, HIGH = 24, 30, 44
"""Heights of a row in pixels: without numbers, with them, with intervals below them."""
STEEP = 40
"""Degrees by which labels that do not fit beside each other are turned."""
ON_DEEP = "#fefefe"
"""Text on a deep shade, in pages of both kinds."""
SHADE_STEPS = 5


def text_width(text: str, size: float) -> float:
    """Return roughly how wide a text is, in pixels."""
    return CHARACTER * size * len(text)


def text(
    x: float,
    y: float,
    words: str,
    size: float = LABEL,
    colour: str = MUTED,
    anchor: str = "middle",
    turn: float = 0,
    weight: str = "",
) -> str:
    """Return a line of text as SVG."""
    turned = f' transform="rotate({turn:g} {x:.1f} {y:.1f})"' if turn else ""
    bold = f' font-weight="{weight}"' if weight else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:g}" fill="{colour}" text-anchor="{anchor}"'
        f"{bold}{turned}>{escape(words)}</text>"
    )


@dataclass(frozen=True)
class HeatCell:
    """A cell: its place, its colours with their opacities side by side, and its texts.

    `tooltip` and `link` are empty in a picture without them.
    """

    x: object
    y: object
    fills: list[tuple[str, float]]
    number: str = ""
    interval: str = ""
    shade: bool = False
    """True where the colour's depth is the figure: it then fills the cell behind the number."""
    deep: bool = False
    """True where text on the shade must be light."""
    tooltip: str = ""
    link: str = ""


@dataclass(frozen=True)
class Frame:
    """The plot's place in a picture."""

    left: float
    top: float
    across: Scale
    upwards: Scale
    steep: bool
    """True where column labels are turned."""

    @property
    def below(self) -> float:
        """Pixels below the plot: labels and the axis title."""
        titled = TITLE if self.across.title else 0
        if not self.steep:
            return 6 + LABEL + titled
        longest = max(text_width(label, LABEL) for _, label in self.across.ticks)
        return 12 + longest * 0.66 + titled

    @property
    def width(self) -> float:
        """Width of the whole picture."""
        return self.left + self.across.size + 10

    @property
    def height(self) -> float:
        """Height of the whole picture."""
        return self.top + self.upwards.size + self.below


def margin(labels: Sequence[str]) -> float:
    """Return the pixels left of a plot that its row labels take."""
    return max((text_width(label, LABEL) for label in labels), default=0) + 10


def head(title: str) -> float:
    """Return the pixels above a plot that the title of its vertical axis takes."""
    return 6.0 + (TITLE - 4 if title else 0)


def axes(frame: Frame) -> Iterator[str]:
    """Yield labels of columns and rows, and both axis titles, the vertical one above its labels."""
    bottom = frame.top + frame.upwards.size
    for place, label in frame.across.ticks:
        x = frame.left + place
        if frame.steep:
            yield text(x + 4, bottom + 12, label, anchor="end", turn=-STEEP)
        else:
            yield text(x, bottom + LABEL + 4, label)
    for place, label in frame.upwards.ticks:
        yield text(frame.left - 5, frame.top + place + 4, label, anchor="end")
    if frame.across.title:
        x, y = frame.left + frame.across.size / 2, frame.height - 5
        yield text(x, y, frame.across.title, colour=INK)
    if frame.upwards.title:
        yield text(2, 12, frame.upwards.title, colour=INK, anchor="start")


def crowded(scale: Scale, room: float) -> bool:
    """Return whether labels of the columns would touch each other, or leave the picture at its right end."""
    ends = sorted((place, text_width(label, LABEL) / 2) for place, label in scale.ticks)
    return any(a + wa + 5 > b - wb for (a, wa), (b, wb) in pairwise(ends)) or any(
        place + half > scale.size + room for place, half in ends
    )


def picture(frame: Frame, label: str, parts: Sequence[str]) -> Markup:
    """Return a picture of these parts, with `label` for screen readers."""
    return svg(round(frame.width), round(frame.height), parts, label)


def svg(width: float, height: float, parts: Sequence[str], label: str = "") -> Markup:
    """Return escaped parts as an SVG of this size in pixels; `label` is for screen readers."""
    role = f'role="img" aria-label={quoteattr(label)} ' if label else ""
    return Markup(  # noqa: S704 - our own SVG, its texts escaped
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" '
        f'viewBox="0 0 {width:g} {height:g}" {role}font-family="{FONT}">{"".join(parts)}</svg>'
    )


def row_height(cells: Sequence[HeatCell], step: float) -> float:
    """Return the height of a row: what fits into cells `step` pixels wide decides what they show."""
    numbered, ranged = fitting(cells, step)
    return HIGH if ranged else MIDDLE if numbered else LOW


def fitting(cells: Sequence[HeatCell], step: float) -> tuple[bool, bool]:
    """Return whether each cell's number fits into it, and whether each interval does."""
    room = step - 6
    numbered = any(cell.number for cell in cells) and all(
        text_width(cell.number, NUMBER) <= room for cell in cells
    )
    ranged = any(cell.interval for cell in cells) and all(
        text_width(cell.interval, INTERVAL) <= room for cell in cells
    )
    return numbered, numbered and ranged


def boxes(frame: Frame, cells: Sequence[HeatCell]) -> Iterator[str]:
    """Yield the cells of a map with levels on both axes."""
    numbered, ranged = fitting(cells, frame.across.step)
    for cell in cells:
        x = frame.left + frame.across.at(cell.x) + 1
        y = frame.top + frame.upwards.at(cell.y) + 1
        wide, high = frame.across.step - 2, frame.upwards.step - 2
        marks = _fills(cell, x, y, wide, high, numbered)
        if numbered and cell.number:
            colour = ON_DEEP if cell.deep else INK
            band = 0 if cell.shade else BAND
            middle = y + band + (high - band) / 2
            line = middle + (-1 if ranged else 4.5)
            marks.append(text(x + wide / 2, line, cell.number, NUMBER, colour))
            if ranged and cell.interval:
                marks.append(text(x + wide / 2, line + 12, cell.interval, INTERVAL, colour))
        yield linked(cell, marks)


def _fills(cell: HeatCell, x: float, y: float, wide: float, high: float, numbered: bool) -> list[str]:
    """Return a cell's colours: full, or with a number a band above a tint of them."""
    if not cell.fills:
        return [_rect(x + 0.5, y + 0.5, wide - 1, high - 1, f'fill="none" stroke="{GRID}"')]
    marks = []
    part = wide / len(cell.fills)
    for rank, (colour, opacity) in enumerate(cell.fills):
        left = x + rank * part
        if numbered and not cell.shade:
            marks.append(_rect(left, y, part, BAND, f'fill="{colour}"'))
            tint = f'fill="{colour}" fill-opacity="{TINT}"'
            marks.append(_rect(left, y + BAND, part, high - BAND, tint))
        else:
            marks.append(_rect(left, y, part, high, f'fill="{colour}" fill-opacity="{opacity:.2f}"'))
    return marks


def dots(frame: Frame, cells: Sequence[HeatCell]) -> Iterator[str]:
    """Yield the cells of a map of sampled paths: a dot per path, with a ring where two are the best."""
    bottom, right = frame.top + frame.upwards.size, frame.left + frame.across.size
    for place, _ in frame.across.ticks:
        x = frame.left + place
        yield f'<path d="M{x:.1f},{frame.top:.1f}V{bottom:.1f}" stroke="{GRID}"/>'
    for place, _ in frame.upwards.ticks:
        y = frame.top + place
        yield f'<path d="M{frame.left:.1f},{y:.1f}H{right:.1f}" stroke="{GRID}"/>'
    for cell in cells:
        colour, opacity = cell.fills[0] if cell.fills else (MUTED, 0.0)
        ring = f' stroke="{cell.fills[1][0]}" stroke-width="2"' if len(cell.fills) > 1 else ""
        x, y = frame.left + frame.across.at(cell.x), frame.top + frame.upwards.at(cell.y)
        circle = f'cx="{x:.1f}" cy="{y:.1f}" r="5"'
        dot = f'<circle {circle} fill="{colour}" fill-opacity="{opacity:.2f}"{ring}/>'
        yield linked(cell, [dot])


def linked(cell: HeatCell, marks: Sequence[str]) -> str:
    """Return a cell's marks, as a link with a tooltip if it has one."""
    if not cell.link:
        return "".join(marks)
    return f"<a href={quoteattr(cell.link)}><title>{escape(cell.tooltip)}</title>{''.join(marks)}</a>"


def _rect(x: float, y: float, width: float, height: float, look: str) -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" {look}/>'


# --- legends and sheets -----------------------------------------------------------------------------


def shade(share: float) -> float:
    """Return the opacity of a shade for a share from 0 to 1."""
    return 0.06 + 0.94 * min(1.0, max(0.0, share))


def colour_scale(colour: str, title: str) -> Markup:
    """Return the scale of shades, with numbers in per cent."""
    wide, high, side = 46.0, 12.0, 22.0
    parts = [text(side, 12, title, colour=INK, anchor="start")]
    for step in range(SHADE_STEPS):
        opacity = shade((step + 0.5) / SHADE_STEPS)
        parts.append(
            _rect(side + step * wide, 18, wide, high, f'fill="{colour}" fill-opacity="{opacity:.2f}"')
        )
    for step in range(SHADE_STEPS + 1):
        parts.append(text(side + step * wide, 43, f"{step * 100 // SHADE_STEPS} %"))
    return svg(2 * side + wide * SHADE_STEPS, 48, parts, title)


def sheet(
    pictures: Sequence[tuple[str, Markup]],
    colours: Mapping[str, str],
    width: float,
    head: str = "",
) -> str:
    """Return one SVG of several pictures with their captions, below a legend and the picture `head`.

    As many stand side by side as fit into `width`.
    """
    sizes = [size(drawing) for _, drawing in pictures]
    wide = max(picture_size[0] for picture_size in sizes)
    across = max(1, min(len(pictures), int((width + GAP) // (wide + GAP))))
    parts, y = _legend(colours, width)
    if head:
        parts.append(_moved(head, 0, y))
        y += size(head)[1] + 4
    for first in range(0, len(pictures), across):
        row = pictures[first : first + across]
        captioned = any(caption for caption, _ in row)
        for place, (caption, drawing) in enumerate(row):
            x = place * (wide + GAP)
            if caption:
                parts.append(text(x + 4, y + 14, caption, 12, INK, "start", weight="bold"))
            parts.append(_moved(drawing, x, y + (20 if captioned else 0)))
        y += max(height for _, height in sizes[first : first + across]) + (20 if captioned else 0) + 8
    return svg(width, y, parts)


def _legend(colours: Mapping[str, str], width: float) -> tuple[list[str], float]:
    """Return the legend in as many lines as it needs, and its height."""
    parts: list[str] = []
    y = 6.0
    places = entry_places([18 + text_width(name, 12) + 14 for name in colours], 4.0, width)
    for (name, colour), (x, line) in zip(colours.items(), places, strict=True):
        y = 6.0 + 20 * line
        parts.append(_rect(x, y, 12, 12, f'fill="{colour}"'))
        parts.append(text(x + 17, y + 10.5, name, 12, INK, "start"))
    return parts, y + 24 if parts else 0.0


def size(drawing: str) -> tuple[float, float]:
    """Return width and height of a picture of this module."""
    head = drawing[: drawing.index(">")]
    return float(_attribute(head, "width")), float(_attribute(head, "height"))


def _attribute(head: str, name: str) -> str:
    return head.partition(f' {name}="')[2].partition('"')[0]


def _moved(drawing: str, x: float, y: float) -> str:
    return f'<g transform="translate({x:g},{y:g})">{drawing}</g>'
