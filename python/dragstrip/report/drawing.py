"""Figures of a result by name, as objects that a notebook shows and that can be saved or changed."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from dragstrip.errors import BadInputError, DragstripError, nearest
from dragstrip.io.files import write_whole
from dragstrip.report import charts, plane, published, render, timeline, vega
from dragstrip.report.collect import curves_of, shares_of
from dragstrip.report.figure import Figure, Scatter
from dragstrip.report.paper import draws, paper
from dragstrip.results.comparison.setups import Setup
from dragstrip.results.comparison.stats import rows_of

FORMATS = ("svg", "png", "pdf", "json")
"""Endings of a saved figure; `json` is its Vega-Lite specification."""
VEGA_LITE_MIME = "application/vnd.vegalite.v5+json"


@dataclass(frozen=True)
class Drawing:
    """A figure. Jupyter, VS Code and marimo show it as the last value of a cell."""

    figure: Figure

    @property
    def title(self) -> str:
        """The figure's title."""
        return self.figure.title

    @property
    def description(self) -> str:
        """The figure's content in words, for those who cannot see it."""
        return self.figure.description

    @cached_property
    def _spec(self) -> dict[str, Any]:
        return {"title": self.title, "description": self.description, **vega.spec(self.figure)}

    def to_dict(self) -> dict[str, Any]:
        """Return the figure as a Vega-Lite specification, which may be changed."""
        return copy.deepcopy(self._spec)

    def altair(self) -> Any:
        """Return the figure as an Altair chart, to be changed; raises `DragstripError` without Altair."""
        try:
            import altair
        except ImportError:
            raise DragstripError("altair is not installed: pip install altair") from None
        return altair.Chart.from_dict(self.to_dict())

    def svg(self) -> str:
        """Return the figure as SVG; raises `DragstripError` without the extra `figures`.

        Throughput against delay needs no extra.
        """
        if isinstance(self.figure.content, Scatter) and not draws():
            return plane.svg(self.figure)
        return render.svg(self.figure)

    def save(self, file: str | Path, *, width: str | None = None) -> None:
        """Write the figure to `file`, whose ending is `.svg`, `.png`, `.pdf` or `.json` (Vega-Lite).

        `width` is that of the picture, such as `84mm`. Raises `BadInputError` for another ending or width,
        and where the extra `figures` is needed and not installed.
        """
        path = Path(file)
        ending = path.suffix.removeprefix(".").lower()
        if ending not in FORMATS:
            raise BadInputError(
                "file", str(file), f"a name that ends with {', '.join(f'.{e}' for e in FORMATS)}"
            )
        if ending == "json":
            if width is not None:
                raise BadInputError("width", width, "none for a Vega-Lite specification")
            import json

            content = json.dumps(self._spec, indent=1).encode()
        else:
            try:
                width_pt = paper([ending], width).width_pt
            except BadInputError as error:
                raise error.reworded(error.field.removeprefix("--")) from None
            content = render.encoded(render.svg(self.figure, width_pt=width_pt), ending, width_pt)
        write_whole(path, lambda draft: draft.write_bytes(content))

    def __repr__(self) -> str:
        return f"<Drawing: {self.title}>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        bundle: dict[str, Any] = {VEGA_LITE_MIME: self.to_dict(), "text/plain": self.description}
        if draws():
            bundle["image/svg+xml"] = self.svg()
        elif isinstance(self.figure.content, Scatter):
            bundle["text/html"] = self.svg()
            bundle["image/svg+xml"] = bundle["text/html"]
        return bundle


def _plane(setup: Setup) -> Figure | None:
    return charts.delay_throughput(setup, rows_of(setup))


def _rtt_distribution(setup: Setup) -> Figure | None:
    return charts.rtt_cdf(setup, curves_of(setup))


def _throughput_distribution(setup: Setup) -> Figure | None:
    return charts.throughput_cdf(setup, curves_of(setup))


def _shares(setup: Setup) -> Figure | None:
    figures = [figure for shares in shares_of(setup)[:1] for figure in charts.share_figures(setup, shares)]
    return figures[0] if figures else None


def _timeline(setup: Setup) -> Figure | None:
    curves = curves_of(setup)
    if len(curves) > timeline.OVERLAID_MAX:
        expected = (
            f"at most {timeline.OVERLAID_MAX} alternatives for timeline, not {len(curves)}; rtt has room"
        )
        raise BadInputError("kind", "timeline", expected)
    together = timeline.overlay(setup, curves)
    if together is not None or len(curves) > 1:
        return together
    figures = timeline.timelines(setup, curves)
    return figures[0] if figures else None


def _over_time(key: str) -> Callable[[Setup], Figure | None]:
    return lambda setup: timeline.quantity_over_time(setup, curves_of(setup), key)


KINDS: Mapping[str, Callable[[Setup], Figure | None]] = {
    "plane": _plane,
    "rtt": _over_time("rtt"),
    "throughput": _over_time("throughput"),
    "window": _over_time("cwnd"),
    "queue": _over_time("queue"),
    "timeline": _timeline,
    "ecdf": _rtt_distribution,
    "throughput-ecdf": _throughput_distribution,
    "shares": _shares,
}
"""Figures of a set-up by name."""
NAMES = (*KINDS, "claims")
"""Names of all figures."""


def draw_claims(claims: Sequence[Mapping[str, Any]], experiment: Mapping[str, Any]) -> Drawing:
    """Return our figures beside the published ones; raises `BadInputError` where no claim has numbers."""
    figure = published.figure(claims, published.tolerances_of(experiment))
    if figure is None:
        raise BadInputError("kind", "claims", "another figure: this result has no graded claim with numbers")
    return Drawing(figure)


def draw(setup: Setup, kind: str) -> Drawing:
    """Return a figure of a set-up.

    Raises `BadInputError` for an unknown name, and for a figure that the set-up cannot show.
    """
    if kind not in KINDS:
        raise BadInputError("kind", kind, f"one of {', '.join(NAMES)}{nearest(kind, NAMES)}")
    figure = KINDS[kind](setup)
    if figure is None:
        raise BadInputError("kind", kind, "another figure: this result has nothing that it could show")
    return Drawing(figure)
