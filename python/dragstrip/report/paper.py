"""The requested figures for papers: which formats, and how wide."""

from __future__ import annotations

import importlib.util
import math
import re
import resource
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from dragstrip.errors import BadInputError

ENDINGS = ("svg", "png", "pdf", "csv")
LIBRARY = "the package vl-convert-python (pip install vl-convert-python)"
"""Requirement of SVG, PNG and PDF, as error messages name it."""
POINTS = {"mm": 72 / 25.4, "cm": 720 / 25.4, "in": 72.0, "pt": 1.0}
"""Points (1/72 inch, as in PDF and CSS) per unit."""
LEAST_PT, GREATEST_PT = 70 * POINTS["mm"], 1000 * POINTS["mm"]
"""Width of a picture in points: below the first a drawing of a path cannot be read; above the second no paper
is wide enough."""
_LENGTH = re.compile(r"(\d+(?:\.\d+)?|\.\d+) ?(mm|cm|in|pt)", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True)
class Paper:
    """The formats to write, none by default, and the width of each picture in points (None: its own)."""

    endings: tuple[str, ...] = ()
    width_pt: float | None = None

    @property
    def pictures(self) -> tuple[str, ...]:
        """The formats that are drawn."""
        return tuple(ending for ending in self.endings if ending != "csv")


NO_FIGURES = Paper()


def paper(endings: Sequence[str], width: str | None = None) -> Paper:
    """Return the requested formats, each once.

    Raises `BadInputError` for an unknown format or width, for pictures without the library that draws them
    (extra `figures`), and under a limit of address space (`ulimit -v`) in which that library cannot start.
    """
    for ending in endings:
        if ending not in ENDINGS:
            raise BadInputError("--figures", ending, f"one or several of {','.join(ENDINGS)}", "command line")
    requested = Paper(tuple(dict.fromkeys(endings)), None if width is None else _points(width))
    if width is not None and not requested.pictures:
        raise BadInputError("--width", None, "needs --figures with svg, png or pdf", "command line")
    if requested.pictures and not draws():
        expected = f"csv alone, or {LIBRARY}"
        raise BadInputError("--figures", ",".join(requested.pictures), expected, "command line")
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if requested.pictures and limit != resource.RLIM_INFINITY and not _starts():
        expected = (
            "csv alone, or more address space: the library that draws pictures does not start within "
            f"`ulimit -v {limit >> 10}`"
        )
        raise BadInputError("--figures", ",".join(requested.pictures), expected, "command line")
    return requested


def draws() -> bool:
    """Return whether the library that draws SVG, PNG and PDF is installed."""
    return importlib.util.find_spec("vl_convert") is not None


def _starts() -> bool:
    """Return whether the library of pictures starts under this process's limits, tried in another process.

    It reserves far more address space than it uses, and ends its process where it gets none.
    """
    drawing = "import vl_convert; vl_convert.vegalite_to_svg({'mark': 'point'})"
    command = [sys.executable, "-P", "-c", drawing]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0  # noqa: S603 - our interpreter


def _points(width: str) -> float:
    match = _LENGTH.fullmatch(width.strip())
    points = float(match[1]) * POINTS[match[2].lower()] if match else math.nan
    if not LEAST_PT - 0.01 <= points <= GREATEST_PT + 0.01:
        expected = "a width from 70mm to 1000mm, such as 84mm, 3.3in or 240pt"
        raise BadInputError("--width", width, expected, "command line")
    return points
