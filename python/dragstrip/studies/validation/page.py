"""The page: one HTML file with the table, the heat maps, and every case's traces over each other."""

from __future__ import annotations

import html
from pathlib import Path

from dragstrip import __version__
from dragstrip.io.files import adding
from dragstrip.report import viewer
from dragstrip.report.page import figure as figure_html
from dragstrip.report.page import style
from dragstrip.studies.validation import charts
from dragstrip.studies.validation.console import cell, floor_cell
from dragstrip.studies.validation.explain import explain
from dragstrip.studies.validation.grid import Grid
from dragstrip.studies.validation.targets import QUANTITIES
from dragstrip.studies.validation.validate import DETERMINISTIC, STOCHASTIC, Agreement, Case

NAME = "agreement.html"
# White: no error; yellow: at the limit; orange: `charts.FAR` limits and more.
DEPTHS = ("#f3f6f9", "#f6f1dd", "#f9ebc2", "#fce6a6", "#ffe08a", "#f5c068", "#eaa045", "#e07f23", "#d55e00")
STYLE = (
    ".heat td{padding:.15em .5em;text-align:right}.heat th{font-size:.75rem}.heat a{color:#1f2328}"
    + "".join(f".heat .depth{depth}{{background:{colour}}}" for depth, colour in enumerate(DEPTHS))
)


def write(agreement: Agreement, grid: Grid, folder: Path) -> Path:
    """Write the page into `folder`, which is made if needed, and return the page's file."""
    content = _page(agreement, grid)
    with adding(folder, folder / NAME) as draft:
        (draft / NAME).write_text(content, encoding="utf-8", errors="backslashreplace")
    return folder / NAME


def _page(agreement: Agreement, grid: Grid) -> str:
    heat = "".join(map(_heat, charts.heat_maps(agreement)))
    parts = [
        f'<p class="kicker">Dragstrip {__version__} · {len(agreement.cases)} cases</p>',
        f"<h1>{html.escape(grid.title)}</h1>",
        f'<p class="lead">Against {html.escape(grid.kernel)}. Errors beyond their limit are marked.</p>',
        *(_standings(agreement, stochastic) for stochastic in (False, True)),
        f'<h2>Errors by condition and algorithm</h2><div class="figures two">{heat}</div>',
        '<p class="note">White: no error; yellow: at its limit; orange: twice the limit and more.</p>',
        "<h2>Cases, worst first</h2>",
        _cases(agreement),
        "<h2>Traces</h2>",
        '<p class="note">Grey and wide: the kernel; narrow and coloured: the simulator (first seeds).</p>',
        *(_traces(case, grid) for case in agreement.cases),
    ]
    look, script = style() + STYLE, viewer.script()
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{viewer.policy(look, script)}">'
        f"<title>{html.escape(grid.title)} – Dragstrip</title><style>{look}</style>"
    )
    body = f'<main>{"".join(parts)}</main><script type="module">{script}</script>'
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>{body}</body></html>\n'


def section(agreement: Agreement) -> str:
    """Return the section for a report of both engines: the table, and every case's traces over each other."""
    note = "Grey and wide: the kernel; narrow and coloured: the simulator (first seeds)."
    traces = "".join(_traces(case, None) for case in agreement.cases)
    return f'{_cases(agreement)}<p class="note">{note}</p>{traces}'


def _heat(heat: charts.HeatMap) -> str:
    """Return a table whose cells link to the case's traces."""
    head = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in heat.algorithms)
    lines = []
    for condition in heat.conditions:
        cells = []
        for name in heat.algorithms:
            heat_cell = heat.cells.get((condition, name))
            if heat_cell is None:
                cells.append("<td></td>")
            else:
                cells.append(
                    f'<td class="depth{heat_cell[2]}"><a href="#{heat_cell[0]}">{heat_cell[1]}</a></td>'
                )
        lines.append(f'<tr><th scope="row">{html.escape(condition)}</th>{"".join(cells)}</tr>')
    return (
        f'<figure><figcaption>{html.escape(heat.title)}</figcaption><div class="scroll" tabindex="0">'
        f'<table class="heat"><thead><tr><td></td>{head}</tr></thead><tbody>{"".join(lines)}</tbody></table>'
        "</div></figure>"
    )


def _table(heads: list[str], body: list[list[str]]) -> str:
    top = "".join(f'<th scope="col">{head}</th>' for head in heads)
    lines = "".join(
        f'<tr><th scope="row">{line[0]}</th>{"".join(f"<td>{entry}</td>" for entry in line[1:])}</tr>'
        for line in body
    )
    return (
        f'<div class="scroll" tabindex="0"><table><thead><tr>{top}</tr></thead>'
        f"<tbody>{lines}</tbody></table></div>"
    )


def _standings(agreement: Agreement, stochastic: bool) -> str:
    lines = [
        [
            html.escape(row.quantity.title),
            html.escape(row.target),
            _grade(row.count_text, row.reached) if row.quantity.judged else row.count_text,
            f"{row.median:.3g}",
            f"{row.worst:.3g}",
        ]
        for row in agreement.standings(stochastic)
    ]
    if not lines:
        return ""
    title = STOCHASTIC if stochastic else DETERMINISTIC
    heads = ["quantity", "wanted", "within", "median error", "worst"]
    return f"<h2>{title.capitalize()}</h2>{_table(heads, lines)}"


def _grade(text: str, reached: bool) -> str:
    return f'<span class="grade {"good" if reached else "bad"}">{html.escape(text)}</span>'


def _cases(agreement: Agreement) -> str:
    quantities = [q for q in QUANTITIES if any(case.figure(q.key) for case in agreement.cases)]
    lines = []
    for case in agreement.cases:
        line = [f'<a href="#{charts.anchor(case)}">{html.escape(case.name)}</a>']
        for quantity in quantities:
            figure = case.figure(quantity.key)
            text = cell(figure) if figure else "–"
            floor = case.floor_error(quantity.key)
            floor_text = f"<small>{floor_cell(figure, floor)}</small>" if figure and floor is not None else ""
            line.append(
                f'<strong class="grade bad">{text}</strong>{floor_text}'
                if figure and not figure.reached
                else text + floor_text
            )
        lines.append(line)
    heads = ["case", *(f"{q.title}{f' ({q.unit})' if q.unit else ''}" for q in quantities)]
    floor_note = "Small: the kernel against itself, with another seed." if agreement.cases[0].floor else ""
    return _table(heads, lines) + (f'<p class="note">{floor_note}</p>' if floor_note else "")


def _traces(case: Case, grid: Grid | None) -> str:
    parting = explain(case)
    divergence_text = (
        html.escape(parting.words).replace("\n", "<br>") if parting else "The time lines do not part."
    )
    causes = dict.fromkeys(
        grid.cause(case.name, figure.quantity) for figure in case.figures if grid and not figure.reached
    )
    cause_notes = "".join(f'<p class="caution">{html.escape(cause)}</p>' for cause in causes if cause)
    return (
        f'<section id="{charts.anchor(case)}"><h3>{html.escape(case.name)}</h3>'
        f'<div class="figures two">{figure_html(charts.traces(case))}</div>'
        f'<p class="note">{divergence_text}</p>{cause_notes}'
        "</section>"
    )
