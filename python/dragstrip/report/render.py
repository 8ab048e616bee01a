"""Figures to pictures for papers: SVG, PNG and PDF, when somebody asks for them. No browser, no network."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from dragstrip.report import pdf, vega
from dragstrip.report.figure import Figure

# Pixels per SVG unit: 2.5 gives about 240 dpi at the size at which a figure is printed.
PNG_SCALE = 2.5
# Named, so that a newer vl-convert draws the same picture.
VEGA_LITE = "5.20"
_ATTRIBUTE = re.compile(r'="[^"]*"')
_NUMBER = re.compile(r"-?\d+\.\d{3,}(?:e-?\d+)?")
_ROLES = re.compile(r' (?:role|aria-[a-z]+|pointer-events)="[^"]*"')
_CLASSES = re.compile(r' class="(?!background)[^"]*"')
_IDS = re.compile(r'(id="|url\(#)([A-Za-z]+)(\d+)')
_SIZE = re.compile(r'<svg[^>]* width="([\d.]+)" height="([\d.]+)"')
TITLE_HEIGHT = 20
_EMPTY = re.compile(r'<path class="background" d="M0,0h0v0h0Z"/>')


def svg(figure: Figure, prefix: str = "") -> str:
    """The figure as SVG: the same bytes for the same figure, whatever was rendered before."""
    import vl_convert  # Deno's engine, 60 MB: only where a picture is asked for.

    return tidy(vl_convert.vegalite_to_svg(vega.spec(figure), vl_version=VEGA_LITE), figure, prefix)


def tidy(text: str, figure: Figure, prefix: str = "") -> str:
    """Gives the picture its words, and makes it smaller and repeatable.

    Vega numbers its clip paths through the life of the process and writes 15 digits; two pictures on
    one page must not share an id, and a hundredth of a point is enough.
    """
    text = _ROLES.sub("", text)
    text = _CLASSES.sub("", text)
    text = _EMPTY.sub("", text)
    text = _ATTRIBUTE.sub(lambda match: _NUMBER.sub(_short, match.group()), text)
    seen: dict[str, int] = {}

    def renumber(match: re.Match[str]) -> str:
        index = seen.setdefault(match.group(2) + match.group(3), len(seen))
        return f"{match.group(1)}{prefix}{figure.name}-{match.group(2)}{index}"

    text = _IDS.sub(renumber, text)
    head, body = text.split(">", 1)
    words = f"<title>{escape(figure.title)}</title><desc>{escape(figure.description)}</desc>"
    label = quoteattr(f"{figure.title}. {figure.description}")
    return f'{head} role="img" aria-label={label}>{words}{body}'


def _short(number: re.Match[str]) -> str:
    text = f"{float(number.group()):.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def export(folder: Path, name: str, picture: str, endings: Sequence[str]) -> None:
    """Writes `name` into `folder`: as SVG, as PNG (on white) or as PDF."""
    import vl_convert

    for ending in endings:
        if ending == "svg":
            content = picture.encode()
        elif ending == "png":
            content = vl_convert.svg_to_png(on_white(picture), scale=PNG_SCALE)
        else:
            content = pdf.ordered(vl_convert.svg_to_pdf(picture))
        (folder / f"{name}.{ending}").write_bytes(content)


def on_white(picture: str) -> str:
    """The same with a ground, for where the page may be dark."""
    head, body = picture.split(">", 1)
    return f'{head}><rect width="100%" height="100%" fill="#ffffff"/>{body}'


def side_by_side(pictures: list[tuple[str, str, str]], across: int) -> str:
    """One SVG of several: each with its title in its colour, at most `across` in a row."""
    sizes = [tuple(map(float, _SIZE.findall(svg)[0])) for svg, _, _ in pictures]
    wide, high = max(size[0] for size in sizes), max(size[1] for size in sizes) + TITLE_HEIGHT
    parts = []
    for number, (svg, title, colour) in enumerate(pictures):
        x, y = number % across * wide, number // across * high
        parts.append(
            f'<text x="{x + 8:g}" y="{y + 15:g}" font-family="{vega.FONT}" font-size="13" font-weight="bold" '
            f'fill="{colour}">{escape(title)}</text>'
            f'<g transform="translate({x:g},{y + TITLE_HEIGHT:g})">{svg}</g>'
        )
    rows = -(-len(pictures) // across)
    width, height = wide * min(across, len(pictures)), high * rows
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}" height="{height:g}">{"".join(parts)}</svg>'
    )
