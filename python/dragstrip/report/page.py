"""The report's page: one self-contained HTML file, made from a template."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from dragstrip.display import html, quantity
from dragstrip.display.table import Table
from dragstrip.report import across, embed, published, variable, viewer, why
from dragstrip.report.cautions import of_builds
from dragstrip.report.figure import Figure
from dragstrip.report.load import Bundle, Json, RecordedRun
from dragstrip.report.tables import overview
from dragstrip.report.why import Reason
from dragstrip.results.comparison import span
from dragstrip.results.comparison.setups import Setup, shared_words
from dragstrip.results.comparison.stats import Row
from dragstrip.results.comparison.verdict import QuantityVerdict

GRADES = {"reproduced": "good", "contradicted": "bad", "not testable here": "open"}
# Said elsewhere on the page.
NOT_SHOWN = ("experiment", "repeat")
COMMON_FIRST = ("engine", "version", "versions", "kernel", "command", "started", "start_time")


@dataclass(frozen=True)
class PageFigure:
    """A figure in the page: the data that the viewer draws, and the same numbers as a table."""

    figure: Figure
    data: Markup
    table: Table


def page_figure(figure: Figure) -> PageFigure:
    """Return the figure, ready for the template."""
    return PageFigure(figure, Markup(embed.script(figure)), embed.table(figure))  # noqa: S704 - escaped there


@dataclass(frozen=True)
class Section:
    """The section of the page on one set-up."""

    setup: Setup
    rows: list[Row]
    anchor: str
    headline: Markup
    ranking: Markup | None
    cautions: list[Markup]
    verdicts: list[QuantityVerdict]
    reasons: list[Reason]
    limits: Table | None
    capacity: bool
    reach: str
    idle: str
    path_wide: Markup
    path_tall: Markup
    links: Table
    changes: list[tuple[str, str]]
    checked: Table | None
    comparison: Table
    pings: Table | None
    videos: Table | None
    live: Table | None
    transfers: Table | None
    pictures: Mapping[str, list[PageFigure]]
    has_figures: bool
    published: bool = False
    """True when a plane has published figures."""


@dataclass(frozen=True)
class ClaimRow:
    """A published figure beside ours."""

    id: str
    source: str
    metric: str
    published: str
    tolerance: str
    measured: str
    grade: str
    look: str
    reason: str


def render(
    bundle: Bundle,
    sections: list[Section],
    colours: Mapping[str, str],
    multiples: Sequence[Figure] = (),
    agreement: Markup | None = None,
) -> str:
    """Return the whole page as HTML.

    `multiples` are small figures of many set-ups; `agreement` is a section that compares two engines.
    """
    setups = [section.setup for section in sections]
    along = variable.figure(setups)
    return figure_page(
        "report/page.html",
        title=bundle.title,
        bundle=bundle,
        sections=sections,
        agreement=agreement,
        claims=claims(bundle),
        overview=overview([(section.setup, section.rows) for section in sections]),
        shared=", ".join(shared_words(setups)),
        summed=span.sentences([(section.setup, section.rows) for section in sections]),
        common=why.common(setups),
        many_min=span.SETUPS_MIN,
        across=across.table(setups),
        across_figures=[] if along else [page_figure(figure) for figure in across.figures(setups)],
        along=[page_figure(along)] if along else [],
        multiples=[page_figure(figure) for figure in multiples],
        builds=of_builds(bundle.runs),
        tally=tally(bundle.claims),
        published_figure=_published(bundle),
        provenance=provenance(bundle.runs),
        colours=colours,
    )


def side_by_side(
    kinds: Sequence[str],
    sources: Sequence[Any],
    table: Table,
    pings: Table | None,
    pictures: Sequence[Figure],
) -> str:
    """Return the page of recordings side by side (beside.py) as HTML."""
    return figure_page(
        "report/beside.html",
        title="Side by side",
        kinds=kinds,
        sources=sources,
        flows=table,
        pings=pings,
        pictures=[page_figure(figure) for figure in pictures],
    )


def figure_page(template: str, *, title: str, **content: Any) -> str:
    """Return a page whose template extends `report/figures.html`, with what draws its figures."""
    return html.render(template, title=title, style=viewer.style(), script=viewer.script(), **content)


def claims(bundle: Bundle) -> list[ClaimRow]:
    """Return the rows of the claims, with tolerances from the experiment."""
    tolerances = published.tolerances_of(bundle.experiment)
    return [claim(entry, tolerances.get(str(entry.get("id")))) for entry in bundle.claims]


def _published(bundle: Bundle) -> PageFigure | None:
    figure = published.figure(bundle.claims, published.tolerances_of(bundle.experiment))
    return None if figure is None else page_figure(figure)


def claim(entry: Json, tolerance: Any) -> ClaimRow:
    """Return a claim's row: its figures with their unit, and its grade with the reason."""
    unit = str(entry.get("unit") or "")
    grade = str(entry.get("grade") or "not graded")
    tolerance_text = (
        f"±{tolerance}" if isinstance(tolerance, str) else _figure(tolerance, unit, "±") if tolerance else ""
    )
    return ClaimRow(
        id=str(entry.get("id") or ""),
        source=str(entry.get("source") or ""),
        metric=str(entry.get("metric") or ""),
        published=_figure(entry.get("published"), unit),
        tolerance=tolerance_text,
        measured=_figure(entry.get("measured"), unit),
        grade=grade,
        look=GRADES.get(grade, "open"),
        reason=str(entry.get("reason") or _distance(entry.get("published"), entry.get("measured"))),
    )


def _distance(published: Any, measured: Any) -> str:
    """Return how far ours is from the published figure, such as `1.1 % above`."""
    if isinstance(published, list) and len(published) == 2 and isinstance(measured, int | float):
        low, high = published
        if not isinstance(low, int | float) or low <= measured <= high:
            return "within the range" if isinstance(low, int | float) else ""
        published = low if measured < low else high
    if not isinstance(published, int | float) or not isinstance(measured, int | float):
        return ""
    if published == 0 or measured == published:
        return "equal" if measured == published else ""
    by = measured / published - 1
    return f"{quantity.percent(abs(by))} {'above' if by * published > 0 else 'below'}"


def tally(claims: list[Json]) -> str:
    """Return the number of claims by grade, such as `5 reproduced, 1 contradicted`."""
    counts: dict[str, int] = {}
    for entry in claims:
        grade = str(entry.get("grade") or "not graded")
        counts[grade] = counts.get(grade, 0) + 1
    order = [*GRADES, *sorted(set(counts) - set(GRADES))]
    return ", ".join(f"{counts[grade]} {grade}" for grade in order if grade in counts)


def _figure(value: Any, unit: str, sign: str = "") -> str:
    unit_text = unit if unit not in ("1", "order") else ""
    if value is None:
        return quantity.MISSING
    if isinstance(value, bool | str):
        return str(value)
    if isinstance(value, int | float):
        return f"{sign}{quantity.digits(float(value))} {unit_text}".strip()
    if isinstance(value, list) and len(value) == 2 and all(isinstance(v, int | float) for v in value):
        low, high = (quantity.digits(float(v)) for v in value)
        return f"{low} to {high} {unit_text}".strip()
    if isinstance(value, list):
        return " < ".join(map(str, value))
    return json.dumps(value, ensure_ascii=False)


@dataclass(frozen=True)
class Provenance:
    """Facts that all runs share, and facts that differ between them."""

    common: list[tuple[str, str]]
    heads: list[str]
    runs: list[tuple[RecordedRun, list[str]]]


def provenance(runs: list[RecordedRun]) -> Provenance:
    """Return where the figures come from, with each common fact once."""
    sources = [(run, _flat(run.recording.provenance)) for run in runs]
    keys = [
        key for key in dict.fromkeys(key for _, facts in sources for key in facts) if key not in NOT_SHOWN
    ]
    common = [key for key in keys if len({facts.get(key) for _, facts in sources}) == 1]
    if len(sources) == 1:
        common = [key for key in common if key != "seed"]
    differing = [key for key in keys if key not in common and key != "seed"]
    ranked = sorted(common, key=lambda key: _rank(key))
    return Provenance(
        [(key, sources[0][1][key]) for key in ranked],
        differing,
        [(run, [facts.get(key, "") for key in differing]) for run, facts in sources],
    )


def _rank(key: str) -> int:
    first = key.split(".")[0]
    return COMMON_FIRST.index(first) if first in COMMON_FIRST else len(COMMON_FIRST)


_ENCODER = json.JSONEncoder(ensure_ascii=False)


def _flat(document: Json, prefix: str = "") -> dict[str, str]:
    facts: dict[str, str] = {}
    for key, value in document.items():
        if isinstance(value, Mapping):
            facts.update(_flat(value, f"{prefix}{key}."))
        elif isinstance(value, list) and all(isinstance(item, str) for item in value):
            facts[prefix + key] = " ".join(value)
        else:
            facts[prefix + key] = value if isinstance(value, str) else _ENCODER.encode(value)
    return facts
