"""The page: one HTML file with the table, the heat maps, and every case's traces over each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from dragstrip.display import html
from dragstrip.display.quantity import MISSING
from dragstrip.display.table import Cell, Table, text_table
from dragstrip.io.files import adding
from dragstrip.report.page import PageFigure, figure_page, page_figure
from dragstrip.studies.validation import charts
from dragstrip.studies.validation.console import cell, floor_cell
from dragstrip.studies.validation.explain import explain
from dragstrip.studies.validation.grid import Grid
from dragstrip.studies.validation.targets import QUANTITIES, Quantity
from dragstrip.studies.validation.validate import DETERMINISTIC, STOCHASTIC, Agreement, Case

NAME = "agreement.html"
STANDING_HEADS = ("quantity", "wanted", "within", "median error", "worst")
FLOOR_NOTE = "Small: the kernel against itself, with another seed."


def write(agreement: Agreement, grid: Grid, folder: Path) -> Path:
    """Write the page into `folder`, which is made if needed, and return the page's file."""
    content = _page(agreement, grid)
    with adding(folder, folder / NAME) as draft:
        (draft / NAME).write_text(content, encoding="utf-8", errors="backslashreplace")
    return folder / NAME


def _page(agreement: Agreement, grid: Grid) -> str:
    titles = {DETERMINISTIC: False, STOCHASTIC: True}
    standings = {title.capitalize(): _standings(agreement, kind) for title, kind in titles.items()}
    return figure_page(
        "studies/validation/page.html",
        title=grid.title,
        kernel=grid.kernel,
        count=len(agreement.cases),
        standings={title: table for title, table in standings.items() if table.rows},
        heat_maps=charts.heat_maps(agreement),
        cases=_cases(agreement),
        traces=_traces(agreement, grid),
    )


def section(agreement: Agreement) -> Markup:
    """Return the section for a report of both engines: the table, and every case's traces over each other."""
    content = {"cases": _cases(agreement), "traces": _traces(agreement, None)}
    return html.part("studies/validation/section.html", **content)


def _standings(agreement: Agreement, stochastic: bool) -> Table:
    """Return a row for each quantity: how many cases are within its limit."""
    rows = []
    for row in agreement.standings(stochastic):
        look = ("good" if row.reached else "bad") if row.quantity.judged else ""
        count_cell = Cell(row.count_text, number=False, look=look)
        rows.append((row.quantity.title, row.target, count_cell, f"{row.median:.3g}", f"{row.worst:.3g}"))
    return text_table(STANDING_HEADS, rows)


def _cases(agreement: Agreement) -> Table:
    """Return a row for each case, with the error of each quantity."""
    quantities = [q for q in QUANTITIES if any(case.figure(q.key) for case in agreement.cases)]
    rows = [
        [
            Cell(case.name, number=False, link=f"#{charts.anchor(case)}"),
            *(_error(case, quantity) for quantity in quantities),
        ]
        for case in agreement.cases
    ]
    heads = ["case", *(f"{q.title}{f' ({q.unit})' if q.unit else ''}" for q in quantities)]
    return text_table(heads, rows, FLOOR_NOTE if agreement.cases[0].floor else "")


def _error(case: Case, quantity: Quantity) -> Cell:
    """Return a case's error with, in small type, that of the kernel against itself."""
    figure = case.figure(quantity.key)
    if figure is None:
        return Cell(MISSING)
    floor = case.floor_error(quantity.key)
    note = "" if floor is None else floor_cell(figure, floor)
    return Cell(cell(figure), note, look="" if figure.reached else "bad")


@dataclass(frozen=True)
class CaseTraces:
    """The traces of a case, with the event at which they diverge."""

    anchor: str
    name: str
    figure: PageFigure
    divergence: list[str]
    """Lines of text."""
    causes: list[str]
    """Known causes of errors beyond their limit."""


def _traces(agreement: Agreement, grid: Grid | None) -> Iterator[CaseTraces]:
    for case in agreement.cases:
        divergence = explain(case)
        causes = dict.fromkeys(
            grid.cause(case.name, figure.quantity) for figure in case.figures if grid and not figure.reached
        )
        yield CaseTraces(
            charts.anchor(case),
            case.name,
            page_figure(charts.traces(case)),
            divergence.words.split("\n") if divergence else ["The time lines do not part."],
            [cause for cause in causes if cause],
        )
