"""The map: small multiples over two varied axes, coloured by who is ahead, and a ranking table."""

from __future__ import annotations

import html
import math
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from dragstrip.display import quantity as q
from dragstrip.display.colours import PALETTE, assign
from dragstrip.io.files import NotWrittenError, aside, make_folder, move_in
from dragstrip.report.page import style
from dragstrip.report.viewer import policy
from dragstrip.results.intervals import RESAMPLES, TIE
from dragstrip.studies.sweep.axes import quantity
from dragstrip.studies.sweep.cells import FOLDER, Pages, replay_line
from dragstrip.studies.sweep.plan import Sweep
from dragstrip.studies.sweep.stats import Findings, Judged, Utility, failures, ranking

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
TEXT = 'font-family="sans-serif" font-size="11" fill="#59636e"'
"""SVG attributes of text, for a picture outside the page's style sheet."""
HARM_COLOUR = "#b42318"

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


def write_map(sweep: Sweep, folder: Path, data: pa.Table, findings: Findings) -> Path:
    """Write report.html and cells/ into a sweep's folder and return the page; raises `NotWrittenError`."""
    layout = lay_out(sweep, findings)
    try:
        return _write(sweep, findings, layout, data, folder)
    except OSError as error:
        raise NotWrittenError(folder / "report.html", error) from error


def _write(sweep: Sweep, findings: Findings, layout: Layout, data: pa.Table, folder: Path) -> Path:
    report = folder / "report.html"
    with aside(report) as draft:
        pages = Pages(sweep, findings, data, folder, [cells for _, cells in layout.facets])
        draft_pages = draft / "pages"
        pages.write(draft_pages)
        with (draft / report.name).open("w", encoding="utf-8") as file:
            file.writelines(_page(sweep, findings, layout, pages, failures(data), folder))
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
) -> Iterator[str]:
    """Yield the page, part by part."""
    colours = assign(findings.contenders)
    title = sweep.title or sweep.name
    look = style() + STYLE
    yield (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy(look)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="generator" content="dragstrip {sweep.version}">'
        f"<title>{html.escape(title)} – Dragstrip</title><style>{look}</style></head><body>\n"
    )
    yield from [
        f'<header><p class="kicker">Dragstrip sweep · {sweep.runs:,} runs · {len(findings.cells):,} paths · '
        f"{len(findings.contenders)} contenders · {sweep.repeat} "
        f"{'seeds' if sweep.repeat > 1 else 'seed'} each</p><h1>{html.escape(title)}</h1></header><main>",
        _failed(failed, folder),
        _answer(findings),
        _legend(colours) if findings.axis else "",
    ]
    for judged in findings.judged.values():
        if findings.axis:
            yield _section(judged, findings, layout, pages, colours)
    if findings.axis:
        yield _rankings(findings, colours)
    yield _method(sweep, findings)
    yield _description(sweep, folder)
    yield "</main></body></html>\n"


STYLE = """
.maps{display:flex;flex-wrap:wrap;gap:10px 26px}
.maps figure{margin:0}.maps svg{display:block;max-width:100%;height:auto}
.maps text{font:11px system-ui,sans-serif;fill:var(--muted)}
.maps a:hover rect,.maps a:hover circle,.maps a:focus rect{stroke:var(--ink);stroke-width:2}
.maps .none{fill:none;stroke:var(--line)}
@media (max-width:640px){.maps figure{flex:1 1 100%}.maps svg{width:100%}}
"""


def headline(findings: Findings, name: str) -> str:
    """Return a line such as `most goodput on 288 paths: bbr (sole best on 120, best or tied on 180), ...`."""
    parts = [
        f"{rank.contender} (sole best on {rank.sole_best:,}, best or tied on {rank.best_or_tied:,})"
        for rank in ranking(findings, name)
    ]
    return f"{WORDS[name]} on {len(findings.cells):,} paths: " + ", ".join(parts)


def _answer(findings: Findings) -> str:
    if not findings.axis:
        return '<p class="caution">Nothing raced: vary flow.cc to see who wins where.</p>'
    lines = [headline(findings, name) for name in findings.judged]
    lines = [line[0].upper() + line[1:] for line in lines]
    return (
        '<section class="answer">' + "".join(f"<p>{html.escape(line)}.</p>" for line in lines) + "</section>"
    )


def _failed(failed: Sequence[Mapping[str, Any]], folder: Path) -> str:
    if not failed:
        return ""
    items = "".join(
        f"<li>run {row['run']}, seed {row['seed']}: {html.escape(str(row['status']))}: "
        f"{html.escape(str(row['reason']))} <code>{html.escape(replay_line(folder, row['key']))}</code></li>"
        for row in failed[:FAILURES_SHOWN]
    )
    more = f"<p>And {len(failed) - FAILURES_SHOWN} more.</p>" if len(failed) > FAILURES_SHOWN else ""
    return (
        f'<section class="alarm"><h2>{len(failed):,} runs have no figures</h2>'
        f"<ul>{items}</ul>{more}<p>They are missing from everything below.</p></section>"
    )


def _legend(colours: Mapping[str, str]) -> str:
    swatches = " ".join(
        f'<span class="swatch" data-colour="{colour}"></span>{html.escape(name)}&emsp;'
        for name, colour in colours.items()
    )
    return (
        f'<p>{swatches}</p><p class="note">One cell per path. Stripes: none of these is different from the '
        "best. Point at a cell for the figures and the command that makes its run again; click for all of "
        "its runs.</p>"
    )


def _section(
    judged: Judged, findings: Findings, layout: Layout, pages: Pages, colours: Mapping[str, str]
) -> str:
    utility = judged.utility
    figures = [
        _caption(
            settings, drawing(judged, findings, layout, cells, pages, stripes(judged, findings, colours))
        )
        for settings, cells in layout.facets
    ]
    parts = [f'<h2 id="{utility.name}">{_title(utility, findings)}</h2><div class="maps picture">']
    parts += [*figures, "</div>"]
    if utility.name == "harm":
        parts.append(
            f"<h3>How much, by whom</h3><p class='note'>From pale (none) to red (all of the "
            f"{html.escape(str(findings.rival))} flow’s own goodput lost).</p>"
        )
        for at, contender in enumerate(findings.contenders):
            captioned_maps = [
                _caption(
                    {"by": contender, **settings},
                    drawing(judged, findings, layout, cells, pages, _shades(judged, at)),
                )
                for settings, cells in layout.facets
            ]
            parts.append('<div class="maps picture">' + "".join(captioned_maps) + "</div>")
    return "".join(parts)


def _title(utility: Utility, findings: Findings) -> str:
    if utility.name == "harm":
        return f"Who harms a competing {html.escape(str(findings.rival))} flow least"
    return f"Who has the {WORDS[utility.name]}"


def _caption(settings: Mapping[str, Any], drawing: str) -> str:
    caption = ", ".join(f"{path} {value}" for path, value in settings.items())
    return f"<figure><figcaption>{html.escape(caption)}</figcaption>{drawing}</figure>"


# --- drawing ----------------------------------------------------------------------------------

Fill = Callable[[int], list[tuple[str, float]]]
"""Gives a cell's colours and opacities, side by side; empty if nothing is known."""


def stripes(judged: Judged, findings: Findings, colours: Mapping[str, str]) -> Fill:
    """Return a fill with the colours of all contenders that are among the best."""

    def fill(cell: int) -> list[tuple[str, float]]:
        best = np.flatnonzero(judged.best[cell])
        opacity = 1.0 if len(best) == 1 else 0.55
        return [(colours[findings.contenders[at]], opacity) for at in best]

    return fill


def _shades(judged: Judged, contender: int) -> Fill:
    def fill(cell: int) -> list[tuple[str, float]]:
        harm = judged.median[cell, contender]
        return [] if math.isnan(harm) else [(HARM_COLOUR, 0.06 + 0.94 * min(1.0, max(0.0, harm)))]

    return fill


def drawing(
    judged: Judged,
    findings: Findings,
    layout: Layout,
    cells: list[int],
    pages: Pages,
    fill: Fill,
    linked: bool = True,
) -> str:
    """Return one map as SVG; if `linked`, its cells have tooltips with figures and link to their runs."""
    across = _scale([findings.cells[cell].get(layout.x or "") for cell in cells], layout.sampled, False)
    upwards = _scale([findings.cells[cell].get(layout.y or "") for cell in cells], layout.sampled, True)
    full = len(findings.cells) <= HOVER_MAX
    marks = []
    for cell in cells:
        place = findings.cells[cell]
        x, y = across.at(place.get(layout.x or "")), upwards.at(place.get(layout.y or ""))
        shape = _dot(x, y, fill(cell)) if layout.sampled else _box(x, y, across.step, fill(cell))
        if linked:
            words = html.escape(_hover(judged, findings, cell, pages, full))
            shape = f'<a href="{pages.link(cell)}"><title>{words}</title>{shape}</a>'
        marks.append(shape)
    width, height = LEFT + across.size + 8, TOP + upwards.size + BELOW
    ticks = [
        f'<text {TEXT} x="{LEFT + place:.0f}" y="{TOP + upwards.size + 10}" text-anchor="end" '
        f'transform="rotate(-40 {LEFT + place:.0f} {TOP + upwards.size + 10})">{html.escape(text)}</text>'
        for place, text in across.ticks
    ]
    ticks += [
        f'<text {TEXT} x="{LEFT - 5}" y="{TOP + place + 4:.0f}" text-anchor="end">{html.escape(text)}</text>'
        for place, text in upwards.ticks
    ]
    label = f"{judged.utility.title}: {layout.x or ''} to the right, {layout.y or ''} upwards"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="{html.escape(label)}">'
        + "".join(marks + ticks)
        + "</svg>"
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


def _box(x: float, y: float, step: float, fills: list[tuple[str, float]]) -> str:
    x_left, top, wide, high = LEFT + x + 1, TOP + y + 1, step - 2, HIGH - 2
    if not fills:
        return f'<rect class="none" x="{x_left:.0f}" y="{top:.0f}" width="{wide:.0f}" height="{high}"/>'
    fill_px = wide / len(fills)
    return "".join(
        f'<rect x="{x_left + number * fill_px:.1f}" y="{top:.0f}" width="{fill_px:.1f}" height="{high}" '
        f'fill="{colour}" fill-opacity="{opacity:.2f}"/>'
        for number, (colour, opacity) in enumerate(fills)
    )


def _dot(x: float, y: float, fills: list[tuple[str, float]]) -> str:
    colour, opacity = fills[0] if fills else (PALETTE[-1], 0.0)
    ring = f' stroke="{fills[1][0]}" stroke-width="2"' if len(fills) > 1 else ""
    return (
        f'<circle cx="{LEFT + x:.1f}" cy="{TOP + y:.1f}" r="5" fill="{colour}" '
        f'fill-opacity="{opacity:.2f}"{ring}/>'
    )


def _hover(judged: Judged, findings: Findings, cell: int, pages: Pages, full: bool) -> str:
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


def _rankings(findings: Findings, colours: Mapping[str, str]) -> str:
    head = "".join(
        f"<th scope=col>{WORDS[name]}: sole best / best or tied</th><th scope=col class=more>"
        f"{'harm' if name == 'harm' else 'of the best'}, median [95 %]</th>"
        for name in findings.judged
    )
    ranks = {name: {rank.contender: rank for rank in ranking(findings, name)} for name in findings.judged}
    rows = []
    for contender in [rank.contender for rank in ranking(findings, "goodput")]:
        colour = colours[contender]
        cells = "".join(
            f"<td class=number>{ranks[name][contender].sole_best} "
            f"/ {ranks[name][contender].best_or_tied}</td>"
            f"<td class='number more'>{_share(ranks[name][contender].median)} "
            f"[{_share(ranks[name][contender].low)}, {_share(ranks[name][contender].high)}]</td>"
            for name in findings.judged
        )
        rows.append(
            f'<tr><th scope=row><span class="swatch" data-colour="{colour}"></span>'
            f"{html.escape(contender)}</th>{cells}</tr>"
        )
    return (
        f'<h2 id="ranking">Ranking over {len(findings.cells):,} paths</h2><div class="scroll">'
        f'<label class="every"><input type="checkbox"> all {1 + 2 * len(findings.judged)} columns</label>'
        '<table class="stacked">'
        f"<thead><tr><th></th>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
        '<p class="note">“Of the best”: the figure over that of the best contender on the same path, its '
        "median over all paths with the 95 % bootstrap interval; for delay above 100 % is worse.</p>"
    )


def _share(value: float) -> str:
    return q.MISSING if math.isnan(value) else f"{value * 100:.1f} %"


def _method(sweep: Sweep, findings: Findings) -> str:
    words = [
        "Every figure is the median over a path’s seeds; all contenders met the same seeds, and they are "
        "compared seed by seed. One is called different from the best only if the whole 95 % "
        f"bootstrap interval ({RESAMPLES} resamples, fixed seed) of the paired difference lies beyond "
        f"{TIE * 100:.0f} % (harm: 0.01).",
    ]
    if sweep.repeat < 3:
        words.append(
            f"With {sweep.repeat} seed{'s' if sweep.repeat > 1 else ''} nothing is called different: "
            "use --repeat 3 or more."
        )
    elif sweep.repeat < 6:
        coverage = {3: "75 %", 4: "87.5 %", 5: "93.75 %"}[sweep.repeat]
        words.append(
            f"With {sweep.repeat} seeds an interval is the range of the repeats, which holds the true "
            f"median with a probability of {coverage}, not 95 %."
        )
    words.append(
        f"Seeds made a difference in {findings.random * 100:.0f} % of the rows; elsewhere nothing on the "
        "path is random, and repeats are copies."
    )
    return '<h2 id="method">How this was judged</h2>' + "".join(f"<p>{word}</p>" for word in words)


def _description(sweep: Sweep, folder: Path) -> str:
    axes = "".join(
        f"<dt>{html.escape(axis.path)}</dt><dd>"
        + html.escape(", ".join(str(level.label) for level in axis.levels[:40]))
        + (" …" if len(axis.levels) > 40 else "")
        + "</dd>"
        for axis in sweep.axes
    )
    seeds = f"{sweep.seed} to {sweep.seed + sweep.repeat - 1}" if sweep.repeat > 1 else str(sweep.seed)
    return (
        f'<section id="provenance"><h2>Where this comes from</h2><dl>{axes}<dt>seeds</dt><dd>{seeds}</dd>'
        f"<dt>engine</dt><dd>{sweep.engine}, dragstrip {sweep.version}</dd>"
        f"<dt>description</dt><dd><code>sweep.json</code></dd>"
        f"<dt>dataset</dt><dd><code>{html.escape(str(folder / 'dataset' / '*.parquet'))}</code></dd></dl>"
        "</section>"
    )
