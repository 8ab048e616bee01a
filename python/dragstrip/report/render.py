"""Renders figures as SVG, PNG and PDF for papers, without a browser or the network."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from markupsafe import escape

from dragstrip.display.colours import INK
from dragstrip.display.legend import entry_places
from dragstrip.errors import DragstripError
from dragstrip.report import pdf, vega
from dragstrip.report.figure import Figure, TimeLines
from dragstrip.report.paper import LIBRARY, Paper

# Pixels per SVG unit: 2.5 gives about 240 dpi at the size at which a figure is printed.
PNG_SCALE = 2.5
# With a requested width, text of 11 points is printed in 8, like a paper's captions.
PRINTED = 8 / 11
PNG_DPI = 300
# The smallest text of a figure, and the size below which it is hard to read in print.
SMALLEST_TEXT = 11
LEGIBLE_PT = 6.0
# Points beside a plot (axis, padding) to begin with, of a plot at least, and drawings per legend.
BESIDE = 50
PLOT_MIN = 70
TRIES = 4
# Columns of the figure over time, and the points that each needs.
COLUMNS_MAX = 5
COLUMN_MIN_PT = 110
# Named, so that a newer vl-convert draws the same picture.
VEGA_LITE = "5.20"
_ATTRIBUTE = re.compile(r'="[^"]*"')
_NUMBER = re.compile(r"-?\d{1,30}\.\d{3,}(?:e-?\d+)?")
_ROLES = re.compile(r' (?:role|aria-[a-z]+|pointer-events)="[^"]*"')
_CLASSES = re.compile(r' class="(?!background)[^"]*"')
_IDS = re.compile(r'(id="|url\(#)([A-Za-z]+)(\d+)')
_SIZE = re.compile(r'<svg[^<>]* width="([\d.]+)" height="([\d.]+)"')
_POINTS = re.compile(r'="([\d.]+)pt"')
TITLE_HEIGHT, TITLE_LINE = 20, 16
# Average width of a letter in a bold title of 13 points, with some reserve.
TITLE_LETTER = 7.3
_EMPTY = re.compile(r'<path class="background" d="M0,0h0v0h0Z"/>')


def svg(figure: Figure, prefix: str = "", width_pt: float | None = None) -> str:
    """Return the figure as SVG, `width_pt` points wide (None: its own width).

    The bytes do not depend on what was rendered before.
    """
    if width_pt is None:
        return _vega_svg(figure, vega.Sheet(), prefix)
    return centred(_fitted(figure, width_pt / PRINTED, prefix), width_pt)


def _vega_svg(figure: Figure, sheet: vega.Sheet, prefix: str) -> str:
    drawing = _library().vegalite_to_svg(vega.spec(figure, sheet), vl_version=VEGA_LITE)
    return tidy(drawing, figure, prefix)


def _library() -> Any:
    """Return vl-convert (Deno's engine, 88 MB), loaded for the first picture.

    Raises `DragstripError` where the extra `figures` is not installed.
    """
    try:
        import vl_convert
    except ImportError:
        raise DragstripError(f"a figure as SVG, PNG or PDF needs {LIBRARY}") from None
    return vl_convert


def _fitted(figure: Figure, width: float, prefix: str) -> str:
    """Return the figure with axes and legend in `width`, or the narrowest possible if none fits.

    The space beside the plot is known only after drawing, so the plot is widened or narrowed by the
    difference. A legend wider than that gets fewer columns.
    """
    narrowest = ""
    for columns in range(vega.Sheet().columns, 0, -1):
        plot = width - BESIDE
        for _ in range(TRIES):
            picture = _vega_svg(figure, vega.Sheet(plot, columns), prefix)
            excess = _size(picture)[0] - width
            if abs(excess) <= 1:
                return picture
            if not narrowest or _size(picture)[0] < _size(narrowest)[0]:
                narrowest = picture
            plot = max(PLOT_MIN, plot - excess)
        if _size(narrowest)[0] < width:
            break
    return narrowest


def centred(picture: str, width_pt: float) -> str:
    """Centre the picture on a sheet of that width, at the usual scale or smaller if it is too wide."""
    width, height = _size(picture)
    scale = min(PRINTED, width_pt / width)
    room = width_pt / scale
    head, body = picture.split(">", 1)
    for name, value in (
        ("viewBox", f"{_short((width - room) / 2)} 0 {_short(room)} {_short(height)}"),
        ("width", f"{_short(width_pt)}pt"),
        ("height", f"{_short(height * scale)}pt"),
    ):
        head = re.sub(rf' {name}="[^"]*"', f' {name}="{value}"', head, count=1)
    return f"{head}>{body}"


def legible(picture: str, width_pt: float) -> bool:
    """Return whether the picture's smallest text can be read at that width."""
    return SMALLEST_TEXT * min(PRINTED, width_pt / _size(picture)[0]) >= LEGIBLE_PT


def _size(picture: str) -> tuple[float, float]:
    """Return width and height of an SVG in points."""
    width, height = _SIZE.findall(picture)[0]
    return float(width), float(height)


def tidy(text: str, figure: Figure, prefix: str = "") -> str:
    """Add the figure's words to an SVG, and make it smaller and reproducible.

    Vega numbers its clip paths across the life of the process and writes 15 digits. Two pictures on one page
    must not share an id, and a hundredth of a point is precise enough.
    """
    text = _ROLES.sub("", text)
    text = _CLASSES.sub("", text)
    text = _EMPTY.sub("", text)
    text = _ATTRIBUTE.sub(
        lambda match: _NUMBER.sub(lambda number: _short(float(number.group())), match.group()), text
    )
    id_indexes: dict[str, int] = {}

    def renumber(match: re.Match[str]) -> str:
        index = id_indexes.setdefault(match.group(2) + match.group(3), len(id_indexes))
        return f"{match.group(1)}{prefix}{figure.name}-{match.group(2)}{index}"

    text = _IDS.sub(renumber, text)
    head, body = text.split(">", 1)
    words = f"<title>{escape(figure.title)}</title><desc>{escape(figure.description)}</desc>"
    label = escape(f"{figure.title}. {figure.description}")
    return f'{head} role="img" aria-label="{label}">{words}{body}'


def _short(number: float) -> str:
    text = f"{number:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def export(draft: Path, name: str, picture: str, paper: Paper) -> None:
    """Write `name` into `draft` in the requested formats: SVG, PNG (on white) or PDF."""
    for ending in paper.pictures:
        (draft / f"{name}.{ending}").write_bytes(encoded(picture, ending, paper.width_pt))


def encoded(picture: str, ending: str, width_pt: float | None) -> bytes:
    """Return an SVG as a file in this format: `svg`, `png` (on white) or `pdf`.

    A picture with a width in points has 300 dots per inch as PNG.
    """
    if ending == "svg":
        return picture.encode()
    # To the converters a number is a point, and `pt` four thirds of one.
    points = _POINTS.sub(r'="\1"', picture, count=2)
    if ending == "png":
        scale = PNG_SCALE if width_pt is None else PNG_DPI / 72
        return bytes(_library().svg_to_png(on_white(points), scale=scale, ppi=72))
    return pdf.ordered(_library().svg_to_pdf(points))


def on_white(picture: str) -> str:
    """Return the picture on a white background, for pages that may be dark."""
    head, body = picture.split(">", 1)
    return f'{head}><rect width="100%" height="100%" fill="#ffffff"/>{body}'


def timeline(figures: Sequence[Figure], prefix: str, width_pt: float | None) -> str:
    """Return the figures over time as one picture, as many in a row as fit, below their legend."""
    across = min(COLUMNS_MAX, len(figures))
    key = _common_key(figures)
    if width_pt is None:
        return side_by_side(
            [(svg(figure, prefix), figure.title, figure.colour) for figure in figures], across, key
        )
    across = max(1, min(across, int(width_pt / COLUMN_MIN_PT)))
    column = width_pt / PRINTED / across
    fitted = [(_fitted(figure, column, prefix), figure.title, figure.colour) for figure in figures]
    return centred(side_by_side(fitted, across, key), width_pt)


def _common_key(figures: Sequence[Figure]) -> dict[str, vega.Swatch]:
    """Return the looks of all curves of figures that leave their legend to the picture."""
    key: dict[str, vega.Swatch] = {}
    for figure in figures:
        if isinstance(figure.content, TimeLines) and not figure.content.legend:
            key |= vega.key_of(figure.content)
    return key


def side_by_side(
    pictures: list[tuple[str, str, str]], across: int, key: Mapping[str, vega.Swatch] | None = None
) -> str:
    """Return one SVG of several below a legend, each with its title in its colour, `across` in a row at most.

    A title takes as many lines as it needs beside the next one.
    """
    sizes = [_size(svg) for svg, _, _ in pictures]
    wide = max(size[0] for size in sizes)
    width = wide * min(across, len(pictures))
    parts, y = _key_lines(key or {}, width)
    for first in range(0, len(pictures), across):
        row = pictures[first : first + across]
        titles = [textwrap.wrap(title, int(wide / TITLE_LETTER)) or [""] for _, title, _ in row]
        head = TITLE_HEIGHT + TITLE_LINE * (max(map(len, titles)) - 1)
        for place, ((svg, _, colour), lines) in enumerate(zip(row, titles, strict=True)):
            x = place * wide
            parts += [
                f'<text x="{x + 8:g}" y="{y + 15 + TITLE_LINE * line:g}" font-family="{vega.FONT}" '
                f'font-size="13" font-weight="bold" fill="{colour or INK}">{escape(words)}</text>'
                for line, words in enumerate(lines)
            ]
            parts.append(f'<g transform="translate({x:g},{y + head:g})">{svg}</g>')
        y += head + max(size[1] for size in sizes[first : first + across])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {y:g}" '
        f'width="{width:g}" height="{y:g}">{"".join(parts)}</svg>'
    )


def _key_lines(key: Mapping[str, vega.Swatch], width: float) -> tuple[list[str], float]:
    """Return the legend of curves as pieces of them with their names, and its height."""
    parts: list[str] = []
    y = 14.0
    places = entry_places([34 + TITLE_LETTER * len(name) + 14 for name in key], 8.0, width)
    for (name, swatch), (x, line) in zip(key.items(), places, strict=True):
        y = 14.0 + 17 * line
        dash = f' stroke-dasharray="{" ".join(map(str, swatch.dash))}"' if len(swatch.dash) > 1 else ""
        parts.append(
            f'<path d="M{x:g},{y - 4:g}h28" stroke="{swatch.colour}" stroke-width="2" fill="none"{dash}/>'
            f'<text x="{x + 34:g}" y="{y:g}" font-family="{vega.FONT}" font-size="12" fill="{INK}">'
            f"{escape(name)}</text>"
        )
    return parts, y + 8 if parts else 0.0
