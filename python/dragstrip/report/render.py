"""Specifications to pictures: SVG for the page, SVG, PNG and PDF for papers. No browser, no network."""

from __future__ import annotations

import re
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

import vl_convert

from dragstrip.report.figure import Figure

# Pixels per SVG unit: 2.5 gives about 240 dpi at the size at which a figure is printed.
PNG_SCALE = 2.5
_NUMBER = re.compile(r"-?\d+\.\d{3,}(?:e-?\d+)?")
_ROLES = re.compile(r' (?:role|aria-[a-z]+|pointer-events)="[^"]*"')
_CLASSES = re.compile(r' class="(?!background)[^"]*"')
_IDS = re.compile(r'(id="|url\(#)([A-Za-z]+)(\d+)')
_EMPTY = re.compile(r'<path class="background" d="M0,0h0v0h0Z"/>')


def svg(figure: Figure, prefix: str = "") -> str:
    """The figure as SVG: the same bytes for the same specification, whatever was rendered before."""
    return tidy(vl_convert.vegalite_to_svg(dict(figure.spec)), figure, prefix)


def tidy(text: str, figure: Figure, prefix: str = "") -> str:
    """Gives the picture its words, and makes it smaller and repeatable.

    Vega numbers its clip paths through the life of the process and writes 15 digits; two pictures on
    one page must not share an id, and a hundredth of a point is enough.
    """
    text = _ROLES.sub("", text)
    text = _CLASSES.sub("", text)
    text = _EMPTY.sub("", text)
    text = _NUMBER.sub(lambda match: _short(match.group()), text)
    seen: dict[str, int] = {}

    def renumber(match: re.Match[str]) -> str:
        index = seen.setdefault(match.group(2) + match.group(3), len(seen))
        return f"{match.group(1)}{prefix}{figure.name}-{match.group(2)}{index}"

    text = _IDS.sub(renumber, text)
    head, body = text.split(">", 1)
    words = f"<title>{escape(figure.title)}</title><desc>{escape(figure.description)}</desc>"
    label = quoteattr(f"{figure.title}. {figure.description}")
    return f'{head} role="img" aria-label={label}>{words}{body}'


def _short(number: str) -> str:
    text = f"{float(number):.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def export(folder: Path, name: str, picture: str) -> list[Path]:
    """Writes `name` as SVG, PNG (on white) and PDF into `folder`."""
    head, body = picture.split(">", 1)
    on_white = f'{head}><rect width="100%" height="100%" fill="#ffffff"/>{body}'
    files: dict[str, bytes] = {
        "svg": picture.encode(),
        "png": vl_convert.svg_to_png(on_white, scale=PNG_SCALE),
        "pdf": vl_convert.svg_to_pdf(picture),
    }
    paths = []
    for ending, content in files.items():
        path = folder / f"{name}.{ending}"
        path.write_bytes(content)
        paths.append(path)
    return paths
