"""Assembles a report: reads the folder, describes the figures, fills in the page, writes atomically."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path

from markupsafe import Markup

from dragstrip.display import quantity
from dragstrip.display.colours import assign
from dragstrip.io.files import adding
from dragstrip.report import (
    across,
    charts,
    page,
    picture,
    published,
    render,
    rows,
    tables,
    timeline,
    transfers,
    variable,
    verified,
    video,
    why,
)
from dragstrip.report.cautions import cautions
from dragstrip.report.collect import Curves, curves_of, shares_of
from dragstrip.report.figure import Figure, Scatter
from dragstrip.report.load import Bundle, Json, load
from dragstrip.report.paper import NO_FIGURES, Paper
from dragstrip.results.comparison import path as paths
from dragstrip.results.comparison import span, verdict
from dragstrip.results.comparison.ranking import ranking
from dragstrip.results.comparison.setups import Setup, algorithms_of, setups_of
from dragstrip.results.comparison.stats import rows_of
from dragstrip.results.comparison.video import LIVE

# Figures of more setups than this would make a page that nobody scrolls through: they get their table
# only, and the page says so. A sweep's own figures are another matter.
SETUPS_DRAWN_MAX = 12

NAME_MAX = 40
"""Characters of a set-up in the name of a figure's file."""
_BETWEEN_WORDS = re.compile(r"[^a-z0-9.]+")


def write_report(
    out_dir: Path,
    figures: Paper = NO_FIGURES,
    engine_section: Callable[[Bundle], Markup | None] = lambda _: None,
    bundle: Bundle | None = None,
) -> Path:
    """Write `report.html` into an output folder of `run` or `compare`, and return its path.

    With `figures` for papers, also write the folder `figures`. `engine_section` makes the page's section on
    two engines' runs of the same experiment; `bundle` is the content of the folder, if the caller has loaded
    it. The page and the figures are made aside and moved into place. Raises `BadInputError` if the folder,
    one of its documents or one of its tables is missing or damaged; nothing is written then.
    """
    bundle = bundle or load(out_dir)
    colours = assign(algorithms_of(bundle.runs))
    setups = setups_of(bundle.runs, colours)
    curves = [curves_of(setup) for setup in setups[:SETUPS_DRAWN_MAX]]
    sections = [
        _section(setup, number, colours, setup_curves, bundle.experiment.get("claims") or [])
        for number, (setup, setup_curves) in enumerate(zip_longest(setups, curves), 1)
    ]
    multiples = []
    if len(setups) >= span.SETUPS_MIN:
        multiples = timeline.multiples(list(zip(setups, curves, strict=False)))
    html = page.render(bundle, sections, colours, multiples, engine_section(bundle))
    page_file = out_dir / "report.html"
    with adding(out_dir, page_file) as draft:
        (draft / page_file.name).write_text(html, encoding="utf-8", errors="backslashreplace")
        if figures.endings:
            pictures = draft / "figures"
            (draft / "figures").mkdir()
            _export_across(setups, multiples, pictures, figures)
            for prefix, section in zip(prefixes(setups), sections, strict=True):
                _export(section, pictures, prefix, figures)
    return page_file


def prefixes(setups: Sequence[Setup]) -> list[str]:
    """Return how the names of each set-up's figures begin: with what sets it apart; one alone needs nothing.

    Set-ups that would share a beginning have their number in it.
    """
    if len(setups) < 2:
        return [""] * len(setups)
    names = [_file_name(setup.short or setup.title) for setup in setups]
    alike = {name for name in names if not name or names.count(name) > 1}
    return [
        f"setup{number}-{name}-".replace("--", "-") if name in alike else f"{name}-"
        for number, name in enumerate(names, 1)
    ]


def _file_name(text: str) -> str:
    return _BETWEEN_WORDS.sub("-", text.lower())[:NAME_MAX].strip("-.")


def _section(
    setup: Setup,
    number: int,
    colours: dict[str, str],
    curves: list[Curves] | None,
    claims: Sequence[Json],
) -> page.Section:
    rows = rows_of(setup)
    groups = (
        {}
        if curves is None
        else charts.all_figures(setup, rows, curves, shares_of(setup), published.points(claims, setup))
    )
    groups = _linked(groups, f"setup-{number}")
    wide, tall = picture.draw(setup.scenarios, colours, setup.bottlenecks)
    return page.Section(
        setup=setup,
        rows=rows,
        anchor=f"setup-{number}",
        headline=verdict.headline(setup, rows, brief=number > 1),
        ranking=ranking(setup, rows),
        cautions=cautions(setup, rows),
        verdicts=verdict.verdicts(setup, rows),
        reasons=why.reasons(setup),
        limits=why.limits(setup),
        capacity=timeline.varies(setup),
        reach=verdict.reach(setup),
        idle=_idle(setup) + verified.idle(setup),
        path_wide=Markup(wide),  # noqa: S704 - our own SVG
        path_tall=Markup(tall),  # noqa: S704 - our own SVG
        links=tables.links(setup),
        changes=[(quantity.seconds(at), text) for at, text in paths.changes(setup.scenario)],
        checked=verified.checked(setup),
        comparison=tables.comparison(setup, rows),
        pings=tables.pings(setup),
        videos=video.table(setup),
        live=video.table(setup, LIVE),
        transfers=transfers.table(setup),
        pictures={
            group: [page.page_figure(figure) for figure in groups.get(group, [])] for group in charts.GROUPS
        },
        has_figures=curves is not None,
        published=any(
            cloud.published
            for figure in groups.get("scatter", [])
            if isinstance(figure.content, Scatter)
            for cloud in figure.content.clouds
        ),
    )


def _linked(groups: Mapping[str, list[Figure]], anchor: str) -> dict[str, list[Figure]]:
    """Return the figures with a link from each contender's point in a plane to its panels over time."""
    over_time = [replace(figure, anchor=f"{anchor}-{figure.name}") for figure in groups.get("time", [])]
    links = {figure.title: f"#{figure.anchor}" for figure in over_time}

    def linked(figure: Figure) -> Figure:
        if not isinstance(figure.content, Scatter):
            return figure
        clouds = [replace(cloud, link=links.get(cloud.label, "")) for cloud in figure.content.clouds]
        return replace(figure, content=replace(figure.content, clouds=clouds))

    planes = [linked(figure) for figure in groups.get("scatter", [])]
    return {**groups, **({"time": over_time, "scatter": planes} if groups else {})}


IDLE_MAX = 6
"""Contenders whose idle round trips are named where they differ, at most."""


def _idle(setup: Setup) -> str:
    """Return a sentence on the idle path's round-trip time, or nothing if there is no path."""
    _, words = timeline.common_idle(setup)
    if not setup.path.links:
        return ""
    if not words:
        idle_texts = [f"{c.title} {paths.idle(setup.way(c))[1]}" for c in setup.contenders[:IDLE_MAX]]
        more = ", and more" if len(setup.contenders) > IDLE_MAX else ""
        return f"The idle paths differ: {', '.join(idle_texts)}{more}."
    kind, _, time = words.partition(" ")
    return f"A ping over the idle path takes {time}." if kind == "idle" else f"Delays add up to {time}."


def _export_across(setups: Sequence[Setup], multiples: Sequence[Figure], draft: Path, paper: Paper) -> None:
    """Write the figures that compare set-ups, the small ones over time side by side in one."""
    if multiples and paper.pictures:
        render.export(draft, "multiples", render.timeline(multiples, "", paper.width_pt), paper)
    along = variable.figure(setups)
    for figure in [*([along] if along else []), *across.figures(setups)]:
        _export_rows(figure, draft, "", paper)
        if paper.pictures:
            render.export(draft, figure.name, render.svg(figure, width_pt=paper.width_pt), paper)


def _export_rows(figure: Figure, draft: Path, prefix: str, paper: Paper) -> None:
    if "csv" in paper.endings:
        (draft / f"{prefix}{figure.name}.csv").write_text(
            rows.csv_text(figure), encoding="utf-8", errors="backslashreplace"
        )


def _export(section: page.Section, draft: Path, prefix: str, paper: Paper) -> None:
    """Write the figures of a set-up for papers, those over time side by side in one."""
    if not section.has_figures:
        return
    over_time = []
    for group, pictures in section.pictures.items():
        for figure in (page_figure.figure for page_figure in pictures):
            _export_rows(figure, draft, prefix, paper)
            if group == "time":
                over_time.append(figure)
            elif paper.pictures:
                picture = render.svg(figure, prefix, paper.width_pt)
                render.export(draft, prefix + figure.name, picture, paper)
    if not paper.pictures:
        return
    if over_time:
        render.export(draft, f"{prefix}timeline", render.timeline(over_time, prefix, paper.width_pt), paper)
    path = _path(str(section.path_wide), str(section.path_tall), paper.width_pt)
    if path:
        render.export(draft, f"{prefix}path", path, paper)


def _path(wide: str, tall: str, width_pt: float | None) -> str:
    """Return the path's picture: left to right if that is legible, else top to bottom."""
    if width_pt is None or not wide:
        return wide
    return render.centred(wide if render.legible(wide, width_pt) else tall, width_pt)
