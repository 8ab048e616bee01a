"""The map: small multiples over two varied axes, coloured by who is ahead, and a ranking table."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from markupsafe import Markup

from dragstrip.display import html
from dragstrip.display import quantity as q
from dragstrip.display.colours import assign
from dragstrip.display.quantity import Unit, plural
from dragstrip.display.table import Cell, Table, text_table
from dragstrip.io.files import NotWrittenError, aside, make_folder, move_in
from dragstrip.report.paper import NO_FIGURES, Paper
from dragstrip.results.claims import CONTRADICTED
from dragstrip.results.intervals import REPEATS_MIN, RESAMPLES, TIE
from dragstrip.studies.sweep.axes import SweepAxis
from dragstrip.studies.sweep.cells import FOLDER, Pages, replay_line
from dragstrip.studies.sweep.drawing import (
    NARROW,
    WIDE,
    Fill,
    drawing,
    figure_texts,
    harm_scale,
    settings_text,
    shades,
    title,
    unit_of,
    winners,
)
from dragstrip.studies.sweep.grading import counts, figure_text, published
from dragstrip.studies.sweep.layout import Layout, lay_out
from dragstrip.studies.sweep.lines import legend, line_panels, line_plot
from dragstrip.studies.sweep.paper import write_figures
from dragstrip.studies.sweep.plan import Json, Sweep
from dragstrip.studies.sweep.stats import Findings, Rank, UtilityScores, failures, ranking

COLUMNS = ["run", "repeat", "key", "status", "reason", "seed", "flow", "label", "cc"]
COLUMNS += ["goodput_bps", "rtt_ms_p50", "retransmits"]
"""Columns of the dataset that the report needs."""

FIGURES_MAX = 600
"""Cells of a sweep, at most, whose figures stand in tables below the maps."""
FAILURES_SHOWN = 50
LEVELS_SHOWN = 40
CLAIM_ROWS_SHOWN = 200
"""Rows of a claim's table, at most; contradicted ones come first."""
UNDECIDED_SHOWN = 6
"""Contenders of a headline without a winner, at most."""
RANKING_NOTE = (
    "On how many paths a contender is among the best; in small type, on how many it alone is, and its figure "
    "over that of the best on the same path: the median over all paths, with the 95 % bootstrap interval "
    "(for delay above 100 % is worse; for harm it is the harm itself)."
)


def write_map(
    sweep: Sweep,
    folder: Path,
    data: pa.Table,
    findings: Findings,
    claims: Sequence[Json] = (),
    figures: Paper = NO_FIGURES,
) -> Path:
    """Write report.html and cells/ into a sweep's folder and return the page; raises `NotWrittenError`.

    `claims` are the graded claims of the summary document. With `figures`, pictures and tables for papers are
    written into `figures/` too.
    """
    layout = lay_out(sweep, findings)
    try:
        return _write(sweep, findings, layout, data, folder, claims, figures)
    except OSError as error:
        raise NotWrittenError(folder / "report.html", error) from error


def _write(
    sweep: Sweep,
    findings: Findings,
    layout: Layout,
    data: pa.Table,
    folder: Path,
    claims: Sequence[Json],
    figures: Paper,
) -> Path:
    report = folder / "report.html"
    with aside(report) as draft:
        pages = Pages(sweep, findings, data, folder, [cells for _, cells in layout.facets])
        draft_pages = draft / "pages"
        pages.write(draft_pages)
        with (draft / report.name).open("w", encoding="utf-8") as file:
            file.writelines(_page(sweep, findings, layout, pages, failures(data), folder, claims))
        if figures.endings and findings.axis:
            draft_figures = draft / "figures"
            (draft / "figures").mkdir()
            write_figures(draft_figures, findings, layout, figures)
            move_in(draft_figures, folder / draft_figures.name)
        make_folder(folder / FOLDER)
        move_in(draft_pages, folder / FOLDER / pages.name)
        (draft / report.name).replace(report)
    # Until here the old map led to the old pages; killed now, they stay until the next one.
    for entry in (folder / FOLDER).iterdir():
        if entry.name != pages.name:
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    return report


# --- the page ---------------------------------------------------------------------------------


def _page(
    sweep: Sweep,
    findings: Findings,
    layout: Layout,
    pages: Pages,
    failed: Sequence[Mapping[str, Any]],
    folder: Path,
    claims: Sequence[Json],
) -> Iterator[str]:
    """Yield the page, part by part."""
    colours = assign(findings.contenders) if findings.axis else {}
    return html.stream(
        "studies/sweep/map.html",
        title=sweep.title or sweep.name,
        sweep=sweep,
        findings=findings,
        failed=len(failed),
        failures=[(row, replay_line(folder, row["key"])) for row in failed[:FAILURES_SHOWN]],
        answer=answer(findings),
        colours=colours,
        single=len(layout.facets) == 1,
        sections=_sections(findings, layout, pages, colours) if findings.axis else (),
        ranking=rankings(findings, colours) if findings.axis else None,
        claims=[_claim_section(claim) for claim in claims],
        method=method(sweep, findings),
        axes=[(axis.path, _levels(axis)) for axis in sweep.axes],
        seeds=f"{sweep.seed} to {sweep.seed + sweep.repeat - 1}" if sweep.repeat > 1 else str(sweep.seed),
        dataset=folder / "dataset" / "*.parquet",
    )


def _levels(axis: SweepAxis) -> str:
    more = " …" if len(axis.levels) > LEVELS_SHOWN else ""
    return ", ".join(str(level.label) for level in axis.levels[:LEVELS_SHOWN]) + more


def headline(findings: Findings, name: str) -> str:
    """Return a line such as `Most goodput: bbr, among the best on 46 of 48 paths; then cubic, 33.`.

    With too few seeds to tell contenders apart it names no winner but lists them by their median figure.
    """
    ranks = ranking(findings, name)
    repeats = findings.runs.shape[2]
    if len(ranks) > 1 and repeats < REPEATS_MIN:
        return _undecided(findings, name, ranks, repeats)
    most = ranks[0].best_or_tied
    leaders = [rank.contender for rank in ranks if rank.best_or_tied == most]
    words = f"{title(findings, name)}: {', '.join(leaders)}, {'each ' if len(leaders) > 1 else ''}among the "
    words += f"best on {most:,} of {plural(len(findings.cells), 'path')}"
    rivals = ranks[len(leaders) :]
    return f"{words}; then {rivals[0].contender}, {rivals[0].best_or_tied:,}." if rivals else f"{words}."


def _undecided(findings: Findings, name: str, ranks: Sequence[Rank], repeats: int) -> str:
    seeds = plural(repeats, "seed")
    figure = "Median harm" if name == "harm" else "Median figure in % of the best"
    shares = ", ".join(f"{rank.contender} {_share(rank.median)}" for rank in ranks[:UNDECIDED_SHOWN])
    more = ", …" if len(ranks) > UNDECIDED_SHOWN else ""
    return (
        f"{title(findings, name)}: no algorithm is called better with {seeds}; --repeat {REPEATS_MIN} would "
        f"tell. {figure}: {shares}{more}."
    )


def answer(findings: Findings) -> list[str]:
    """Return the sentences on who is ahead, or none if no algorithms were compared."""
    return [headline(findings, name) for name in findings.judged] if findings.axis else []


@dataclass(frozen=True)
class _Map:
    """A picture for wide and for narrow screens, with the settings of the axes that it does not span."""

    caption: str
    wide: Markup
    narrow: Markup


@dataclass(frozen=True)
class _Section:
    """One utility: maps of who is best and, for harm, of how much each contender does; lines and figures."""

    name: str
    title: str
    note: str
    maps: list[_Map]
    scale: Markup
    """The scale of the shades; empty for other utilities."""
    shades: list[_Map]
    """Maps of each contender's harm; empty for other utilities."""
    lines: list[_Map]
    keys: tuple[Markup, Markup]
    """Legends of the lines for wide and for narrow screens."""
    figures: Table | None
    """Every figure with its interval; None where there are too many."""


def _sections(
    findings: Findings, layout: Layout, pages: Pages, colours: Mapping[str, str]
) -> Iterator[_Section]:
    for name, judged in findings.judged.items():

        def maps(fill: Fill, settings: Mapping[str, Any], judged: UtilityScores = judged) -> list[_Map]:
            return [
                _Map(
                    settings_text({**settings, **facet_settings}),
                    drawing(judged, findings, layout, cells, fill, WIDE, pages),
                    drawing(judged, findings, layout, cells, fill, NARROW, pages),
                )
                for facet_settings, cells in layout.facets
            ]

        unit = unit_of(judged)
        panels = line_panels(findings, layout)
        yield _Section(
            name,
            title(findings, name),
            "" if layout.sampled else _note(judged, unit),
            maps(winners(judged, findings, colours), {}),
            harm_scale(findings) if name == "harm" else Markup(""),
            [
                picture
                for at, contender in enumerate(findings.contenders if name == "harm" else [])
                for picture in maps(shades(judged, at), {"by": contender})
            ],
            [
                _Map(
                    panel.caption,
                    line_plot(judged, findings, panel, colours, WIDE, unit, pages.link),
                    line_plot(judged, findings, panel, colours, NARROW, unit, pages.link),
                )
                for panel in panels
            ],
            (legend(findings.contenders, colours, WIDE), legend(findings.contenders, colours, NARROW)),
            figures_table(judged, findings, unit) if len(findings.cells) <= FIGURES_MAX else None,
        )


def _note(judged: UtilityScores, unit: Unit) -> str:
    """Return what the numbers of a utility's maps are."""
    name = judged.utility.short
    return f"Numbers: the best one’s {name} in {unit.name}, with its 95 % interval where there is room."


# --- tables and words -------------------------------------------------------------------------


def rankings(findings: Findings, colours: Mapping[str, str]) -> Table:
    """Return a row for each contender: on how many paths it is best, and its share of the best figure."""
    paths = len(findings.cells)
    ranks = {name: {rank.contender: rank for rank in ranking(findings, name)} for name in findings.judged}
    rows = []
    for contender in [rank.contender for rank in ranking(findings, "goodput")]:
        row = [Cell(contender, colour=colours[contender], number=False)]
        for name in findings.judged:
            rank = ranks[name][contender]
            low, high = _share(rank.low), _share(rank.high)
            spread = "" if low == high else f" ({low} to {high})"
            row.append(
                Cell(
                    f"{rank.best_or_tied:,} of {paths:,}",
                    f"alone on {rank.sole_best:,}; {_share(rank.median)}{spread}",
                )
            )
        rows.append(row)
    heads = [("", ""), *((title(findings, name), "") for name in findings.judged)]
    return Table(heads, rows, RANKING_NOTE, [], frozenset())


def figures_table(judged: UtilityScores, findings: Findings, unit: Unit) -> Table:
    """Return every contender's median and interval on every path, in the unit of the map."""
    rows = []
    for cell, settings in enumerate(findings.cells):
        row = [Cell(settings_text(settings), number=False)]
        for at in range(len(findings.contenders)):
            number, interval = figure_texts(judged, cell, at, unit)
            row.append(Cell(number or q.MISSING, interval, best=bool(judged.best[cell, at])))
        rows.append(row)
    return Table([("path", ""), *((name, "") for name in findings.contenders)], rows)


def _claim_section(claim: Json) -> tuple[str, str, Table]:
    """Return a claim's heading, its counts of grades, and a table with a row for each graded combination."""
    levels = sorted(claim["levels"], key=lambda level: level["grade"] != CONTRADICTED)
    rows = []
    for level in levels[:CLAIM_ROWS_SHOWN]:
        settings = ", ".join(f"{path} {value}" for path, value in level["settings"].items())
        grade = f"{level['grade']}: {level['reason']}" if level.get("reason") else level["grade"]
        rows.append([settings or "the whole sweep", figure_text(level["measured"], claim["unit"]), grade])
    more = len(levels) - len(rows)
    caption = f"{more:,} further combinations are in the dataset." if more > 0 else ""
    heads = ["Combination", "Measured", "Grade"]
    return f"{claim['id']}: {published(claim)}", counts(claim), text_table(heads, rows, caption)


def _share(value: float) -> str:
    return q.percent(value)


def method(sweep: Sweep, findings: Findings) -> list[str]:
    """Return the sentences on how contenders were judged."""
    sentences = [
        "Every figure is the median over a path’s seeds; all contenders met the same seeds, and they are "
        "compared seed by seed. One is called different from the best only if the whole 95 % "
        f"bootstrap interval ({RESAMPLES} resamples, fixed seed) of the paired difference lies beyond "
        f"{TIE * 100:.0f} % (harm: 0.01).",
    ]
    if sweep.repeat < REPEATS_MIN:
        sentences.append(
            f"With {sweep.repeat} seed{'s' if sweep.repeat > 1 else ''} nothing is called different: "
            f"use --repeat {REPEATS_MIN} or more."
        )
    elif sweep.repeat < 6:
        coverage = {3: "75 %", 4: "87.5 %", 5: "93.75 %"}[sweep.repeat]
        sentences.append(
            f"With {sweep.repeat} seeds an interval is the range of the repeats, which holds the true "
            f"median with a probability of {coverage}, not 95 %."
        )
    if sweep.repeat > 1:
        sentences.append(
            f"Seeds made a difference in {findings.random * 100:.0f} % of the rows; elsewhere nothing on the "
            "path is random, and repeats are copies."
        )
    return sentences
