"""The map: small multiples over two varied axes, coloured by who is ahead, and a ranking table."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from markupsafe import Markup

from dragstrip.display import html
from dragstrip.display import quantity as q
from dragstrip.display.colours import PALETTE, assign
from dragstrip.display.table import Cell, Table, text_table
from dragstrip.io.files import NotWrittenError, aside, make_folder, move_in
from dragstrip.results.claims import CONTRADICTED
from dragstrip.results.intervals import RESAMPLES, TIE
from dragstrip.studies.sweep.axes import SweepAxis, quantity
from dragstrip.studies.sweep.cells import FOLDER, Pages, replay_line
from dragstrip.studies.sweep.grading import counts, figure_text, published
from dragstrip.studies.sweep.plan import Json, Sweep
from dragstrip.studies.sweep.stats import Findings, Utility, UtilityScores, failures, ranking

COLUMNS = ["run", "repeat", "key", "status", "reason", "seed", "flow", "label", "cc"]
COLUMNS += ["goodput_bps", "rtt_ms_p50", "retransmits"]
"""Columns of the dataset that the report needs."""

WIDE, HIGH = 30, 24
ACROSS, WIDEST = 300, 100
"""Widths in pixels: a map of few columns widens them to fill the first, but none beyond the second."""
LEFT, TOP, BELOW = 62, 6, 46
PLOT = 300
"""Edge of a scatter plot in pixels, for sampled axes."""
HOVER_MAX = 4000
"""Cells of a sweep, at most, whose tooltips have every contender's figure; with more, only who is ahead."""
FAILURES_SHOWN = 50
LEVELS_SHOWN = 40
CLAIM_ROWS_SHOWN = 200
"""Rows of a claim's table, at most; contradicted ones come first."""
HARM_COLOUR = "#b42318"
RANKING_NOTE = (
    "“Of the best”: the figure over that of the best contender on the same path, its median over all paths "
    "and, in small type, the 95 % bootstrap interval; for delay above 100 % is worse."
)

FORMAT: Mapping[str, Callable[[float | None], str]] = {
    "goodput": q.rate,
    "delay": q.milliseconds,
    "power": lambda value: f"{q.rate(value)} per ms",
    "harm": q.percent,
}
WORDS = {
    "goodput": "most goodput",
    "delay": "least delay",
    "power": "most power",
    "harm": "least harm",
}


@dataclass(frozen=True)
class Layout:
    """Axes that span a map, and axes that give a map per level."""

    x: str | None
    y: str | None
    facets: list[tuple[dict[str, Any], list[int]]]
    """Settings of the other axes, and the cells that have them."""
    sampled: bool


def write_map(
    sweep: Sweep, folder: Path, data: pa.Table, findings: Findings, claims: Sequence[Json] = ()
) -> Path:
    """Write report.html and cells/ into a sweep's folder and return the page; raises `NotWrittenError`.

    `claims` are the graded claims of the summary document.
    """
    layout = lay_out(sweep, findings)
    try:
        return _write(sweep, findings, layout, data, folder, claims)
    except OSError as error:
        raise NotWrittenError(folder / "report.html", error) from error


def _write(
    sweep: Sweep,
    findings: Findings,
    layout: Layout,
    data: pa.Table,
    folder: Path,
    claims: Sequence[Json],
) -> Path:
    report = folder / "report.html"
    with aside(report) as draft:
        pages = Pages(sweep, findings, data, folder, [cells for _, cells in layout.facets])
        draft_pages = draft / "pages"
        pages.write(draft_pages)
        with (draft / report.name).open("w", encoding="utf-8") as file:
            file.writelines(_page(sweep, findings, layout, pages, failures(data), folder, claims))
        make_folder(folder / FOLDER)
        move_in(draft_pages, folder / FOLDER / pages.name)
        (draft / report.name).replace(report)
    # Until here the old map led to the old pages; killed now, they stay until the next one.
    for entry in (folder / FOLDER).iterdir():
        if entry.name != pages.name:
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    return report


def lay_out(sweep: Sweep, findings: Findings) -> Layout:
    """Choose rate as horizontal and RTT as vertical axis if they vary, else the axes with most levels."""
    sampled_paths = [
        path for axis in sweep.axes if axis.path == "sample" for path in axis.levels[0].assignments
    ]
    sizes = {axis.path: len(axis.levels) for axis in sweep.axes}
    candidates = sampled_paths or sorted(
        (path for path in findings.paths if path in sizes), key=lambda path: -sizes[path]
    )
    ordered: list[str] = [path for path in ("path.rate", "path.rtt", "path.delay") if path in candidates]
    ordered += [path for path in candidates if path not in ordered]
    x, y = (*ordered, None, None)[:2]
    rest = [path for path in findings.paths if path not in (x, y) and path not in sampled_paths]
    groups: dict[str, tuple[dict[str, Any], list[int]]] = {}
    for number, settings in enumerate(findings.cells):
        facet_settings = {path: settings[path] for path in rest}
        groups.setdefault(repr(facet_settings), (facet_settings, []))[1].append(number)
    return Layout(x, y, list(groups.values()), bool(sampled_paths))


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
        answer=_answer(findings),
        colours=colours,
        sections=_sections(findings, layout, pages, colours) if findings.axis else (),
        ranking=_rankings(findings, colours) if findings.axis else None,
        claims=[_claim_section(claim) for claim in claims],
        method=_method(sweep, findings),
        axes=[(axis.path, _levels(axis)) for axis in sweep.axes],
        seeds=f"{sweep.seed} to {sweep.seed + sweep.repeat - 1}" if sweep.repeat > 1 else str(sweep.seed),
        dataset=folder / "dataset" / "*.parquet",
    )


def _levels(axis: SweepAxis) -> str:
    more = " …" if len(axis.levels) > LEVELS_SHOWN else ""
    return ", ".join(str(level.label) for level in axis.levels[:LEVELS_SHOWN]) + more


def headline(findings: Findings, name: str) -> str:
    """Return a line such as `most goodput on 288 paths: bbr (sole best on 120, best or tied on 180), ...`."""
    parts = [
        f"{rank.contender} (sole best on {rank.sole_best:,}, best or tied on {rank.best_or_tied:,})"
        for rank in ranking(findings, name)
    ]
    return f"{WORDS[name]} on {len(findings.cells):,} paths: " + ", ".join(parts)


def _answer(findings: Findings) -> list[str]:
    """Return the sentences on who is ahead, or none if no algorithms were compared."""
    lines = [headline(findings, name) for name in findings.judged] if findings.axis else []
    return [f"{line[0].upper()}{line[1:]}." for line in lines]


@dataclass(frozen=True)
class _Map:
    """A map with its caption: the settings of the axes that it does not span."""

    caption: str
    svg: Markup


@dataclass(frozen=True)
class _Section:
    """The maps of one utility: who is best, and for harm how much each contender does."""

    name: str
    title: str
    maps: list[_Map]
    shades: list[list[_Map]]
    """Maps of each contender's harm; empty for other utilities."""


def _sections(
    findings: Findings, layout: Layout, pages: Pages, colours: Mapping[str, str]
) -> Iterator[_Section]:
    for judged in findings.judged.values():

        def maps(fill: Fill, settings: Mapping[str, Any], judged: UtilityScores = judged) -> list[_Map]:
            return [
                _Map(
                    ", ".join(f"{path} {value}" for path, value in {**settings, **facet_settings}.items()),
                    drawing(judged, findings, layout, cells, pages, fill),
                )
                for facet_settings, cells in layout.facets
            ]

        name = judged.utility.name
        contenders = findings.contenders if name == "harm" else []
        yield _Section(
            name,
            _title(judged.utility, findings),
            maps(stripes(judged, findings, colours), {}),
            [maps(_shades(judged, at), {"by": contender}) for at, contender in enumerate(contenders)],
        )


def _title(utility: Utility, findings: Findings) -> str:
    if utility.name == "harm":
        return f"Who harms a competing {findings.rival} flow least"
    return f"Who has the {WORDS[utility.name]}"


# --- drawing ----------------------------------------------------------------------------------

Fill = Callable[[int], list[tuple[str, float]]]
"""Gives a cell's colours and opacities, side by side; empty if nothing is known."""


def stripes(judged: UtilityScores, findings: Findings, colours: Mapping[str, str]) -> Fill:
    """Return a fill with the colours of all contenders that are among the best."""

    def fill(cell: int) -> list[tuple[str, float]]:
        best = np.flatnonzero(judged.best[cell])
        opacity = 1.0 if len(best) == 1 else 0.55
        return [(colours[findings.contenders[at]], opacity) for at in best]

    return fill


def _shades(judged: UtilityScores, contender: int) -> Fill:
    def fill(cell: int) -> list[tuple[str, float]]:
        harm = judged.median[cell, contender]
        return [] if math.isnan(harm) else [(HARM_COLOUR, 0.06 + 0.94 * min(1.0, max(0.0, harm)))]

    return fill


@dataclass(frozen=True)
class Mark:
    """An SVG element of a cell, with its attributes."""

    tag: str
    attributes: Mapping[str, str]


@dataclass(frozen=True)
class _CellMarks:
    """The marks of a cell; `tooltip` and `link` are empty in a picture without them."""

    marks: list[Mark]
    tooltip: str = ""
    link: str = ""


def drawing(
    judged: UtilityScores,
    findings: Findings,
    layout: Layout,
    cells: list[int],
    pages: Pages,
    fill: Fill,
    linked: bool = True,
) -> Markup:
    """Return one map as SVG; if `linked`, its cells have tooltips with figures and link to their runs."""
    across = _scale([findings.cells[cell].get(layout.x or "") for cell in cells], layout.sampled, False)
    upwards = _scale([findings.cells[cell].get(layout.y or "") for cell in cells], layout.sampled, True)
    full = len(findings.cells) <= HOVER_MAX
    cell_marks = []
    for cell in cells:
        place = findings.cells[cell]
        x, y = across.at(place.get(layout.x or "")), upwards.at(place.get(layout.y or ""))
        marks = _dot(x, y, fill(cell)) if layout.sampled else _box(x, y, across.step, fill(cell))
        tooltip = _hover(judged, findings, cell, pages, full) if linked else ""
        cell_marks.append(_CellMarks(marks, tooltip, pages.link(cell) if linked else ""))
    return html.part(
        "studies/sweep/map.svg",
        width=f"{LEFT + across.size + 8:.0f}",
        height=f"{TOP + upwards.size + BELOW:.0f}",
        label=f"{judged.utility.title}: {layout.x or ''} to the right, {layout.y or ''} upwards",
        cells=cell_marks,
        base=TOP + upwards.size + 10,
        columns=[(f"{LEFT + place:.0f}", text) for place, text in across.ticks],
        edge=LEFT - 5,
        rows=[(f"{TOP + place + 4:.0f}", text) for place, text in upwards.ticks],
    )


@dataclass(frozen=True)
class _Scale:
    at: Callable[[Any], float]
    ticks: list[tuple[float, str]]
    size: float
    step: float = 0.0
    """Pixels from one level to the next; 0 for continuous values."""


def _scale(values: Sequence[Any], continuous: bool, upwards: bool) -> _Scale:
    """Return the positions along one direction: a step per level, or continuous for sampled quantities."""
    if continuous and values[0] is not None:
        return _logarithmic(values, upwards)
    levels = {repr(value): (number, value) for number, value in reversed(list(enumerate(values)))}
    ordered = [key for key, _ in sorted(levels.items(), key=lambda item: item[1][0])]
    if upwards:
        ordered.reverse()
    step = HIGH if upwards else max(WIDE, min(WIDEST, ACROSS / len(ordered)))
    positions = {key: number * step for number, key in enumerate(ordered)}
    ticks = [
        (positions[key] + step / 2, "" if value is None else str(value)) for key, (_, value) in levels.items()
    ]
    return _Scale(lambda value: positions[repr(value)], ticks, step * len(ordered), step)


def _logarithmic(values: Sequence[Any], upwards: bool) -> _Scale:
    numbers = {repr(value): (parsed[1] if (parsed := quantity(value)) else 0.0) for value in values}
    low, high = min(numbers.values()), max(numbers.values())
    log = low > 0 and high / low > 10

    def share(value: Any) -> float:
        number = numbers[repr(value)]
        if high == low:
            return 0.5
        if log:
            return math.log(number / low) / math.log(high / low)
        return (number - low) / (high - low)

    def at(value: Any) -> float:
        return PLOT * (1 - share(value) if upwards else share(value))

    ends = sorted(set(map(str, values)), key=lambda text: numbers.get(repr(text), 0.0))
    return _Scale(at, [(at(text), text) for text in dict.fromkeys((ends[0], ends[-1]))], PLOT)


def _box(x: float, y: float, step: float, fills: list[tuple[str, float]]) -> list[Mark]:
    x_left, top, wide, high = LEFT + x + 1, f"{TOP + y + 1:.0f}", step - 2, f"{HIGH - 2}"
    if not fills:
        empty = {"class": "none", "x": f"{x_left:.0f}", "y": top, "width": f"{wide:.0f}", "height": high}
        return [Mark("rect", empty)]
    fill_px = wide / len(fills)
    return [
        Mark(
            "rect",
            {
                "x": f"{x_left + number * fill_px:.1f}",
                "y": top,
                "width": f"{fill_px:.1f}",
                "height": high,
                "fill": colour,
                "fill-opacity": f"{opacity:.2f}",
            },
        )
        for number, (colour, opacity) in enumerate(fills)
    ]


def _dot(x: float, y: float, fills: list[tuple[str, float]]) -> list[Mark]:
    colour, opacity = fills[0] if fills else (PALETTE[-1], 0.0)
    ring = {"stroke": fills[1][0], "stroke-width": "2"} if len(fills) > 1 else {}
    place = {"cx": f"{LEFT + x:.1f}", "cy": f"{TOP + y:.1f}", "r": "5"}
    return [Mark("circle", {**place, "fill": colour, "fill-opacity": f"{opacity:.2f}", **ring})]


def _hover(judged: UtilityScores, findings: Findings, cell: int, pages: Pages, full: bool) -> str:
    format_figure = FORMAT[judged.utility.name]
    lines = [", ".join(f"{path} {value}" for path, value in findings.cells[cell].items())]
    median = judged.median[cell]
    sign = -1 if judged.utility.more_is_better else 1
    order = np.argsort(np.where(np.isnan(median), math.inf, sign * median), kind="stable")
    for at in order if full else order[:1]:
        mark = "● " if judged.best[cell, at] else "   "
        low, high = judged.low[cell, at], judged.high[cell, at]
        spread = f" ({format_figure(float(low))} to {format_figure(float(high))})" if low != high else ""
        lines.append(f"{mark}{findings.contenders[at]}: {format_figure(float(median[at]))}{spread}")
    number = int(findings.runs[cell, order[0], 0])
    lines.append(f"run {number}: {pages.replay(number)}")
    return "\n".join(lines)


# --- tables and words -------------------------------------------------------------------------


def _rankings(findings: Findings, colours: Mapping[str, str]) -> Table:
    """Return a row for each contender: on how many paths it is best, and its share of the best figure."""
    counts = {name: f"{WORDS[name]}: sole best / best or tied" for name in findings.judged}
    shares = {
        name: f"{WORDS[name]}: {'harm' if name == 'harm' else 'of the best'}, median"
        for name in findings.judged
    }
    ranks = {name: {rank.contender: rank for rank in ranking(findings, name)} for name in findings.judged}
    rows = []
    for contender in [rank.contender for rank in ranking(findings, "goodput")]:
        row = [Cell(contender, colour=colours[contender], number=False)]
        for name in findings.judged:
            rank = ranks[name][contender]
            row.append(Cell(f"{rank.sole_best} / {rank.best_or_tied}"))
            row.append(Cell(_share(rank.median), f"{_share(rank.low)} to {_share(rank.high)}"))
        rows.append(row)
    heads = [("", ""), *((text, "") for name in findings.judged for text in (counts[name], shares[name]))]
    return Table(heads, rows, RANKING_NOTE, [], frozenset({"", *counts.values()}))


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


def _method(sweep: Sweep, findings: Findings) -> list[str]:
    sentences = [
        "Every figure is the median over a path’s seeds; all contenders met the same seeds, and they are "
        "compared seed by seed. One is called different from the best only if the whole 95 % "
        f"bootstrap interval ({RESAMPLES} resamples, fixed seed) of the paired difference lies beyond "
        f"{TIE * 100:.0f} % (harm: 0.01).",
    ]
    if sweep.repeat < 3:
        sentences.append(
            f"With {sweep.repeat} seed{'s' if sweep.repeat > 1 else ''} nothing is called different: "
            "use --repeat 3 or more."
        )
    elif sweep.repeat < 6:
        coverage = {3: "75 %", 4: "87.5 %", 5: "93.75 %"}[sweep.repeat]
        sentences.append(
            f"With {sweep.repeat} seeds an interval is the range of the repeats, which holds the true "
            f"median with a probability of {coverage}, not 95 %."
        )
    sentences.append(
        f"Seeds made a difference in {findings.random * 100:.0f} % of the rows; elsewhere nothing on the "
        "path is random, and repeats are copies."
    )
    return sentences
