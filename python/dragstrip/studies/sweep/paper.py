"""Figures of a sweep for papers: maps and line plots with their legends, and their numbers as CSV."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping
from pathlib import Path

from markupsafe import Markup

from dragstrip.display.colours import assign
from dragstrip.io.untrusted import cell as safe
from dragstrip.report import render
from dragstrip.report.paper import Paper
from dragstrip.studies.sweep.drawing import (
    NARROW,
    WIDE,
    Fill,
    drawing,
    harm_scale,
    settings_text,
    shades,
    unit_of,
    winners,
)
from dragstrip.studies.sweep.heat import GAP, sheet
from dragstrip.studies.sweep.layout import Layout
from dragstrip.studies.sweep.lines import legend, line_panels, line_plot
from dragstrip.studies.sweep.stats import Findings, UtilityScores


def write_figures(draft: Path, findings: Findings, layout: Layout, paper: Paper) -> None:
    """Write the pictures of every utility, and their numbers, into the folder `draft`."""
    usual = WIDE if len(layout.facets) == 1 else 2 * WIDE + GAP
    width = usual if paper.width_pt is None else paper.width_pt / render.PRINTED
    for name, judged in findings.judged.items():
        if "csv" in paper.endings:
            (draft / f"{name}.csv").write_text(_rows(judged, findings), encoding="utf-8")
        if not paper.pictures:
            continue
        for stem, picture in pictures(name, findings, layout, width).items():
            sized = picture if paper.width_pt is None else render.centred(picture, paper.width_pt)
            render.export(draft, stem, sized, paper)


def pictures(name: str, findings: Findings, layout: Layout, width: float) -> dict[str, str]:
    """Return the pictures of a utility by file name: its map, for harm that of each contender, and its lines.

    `width` is that of a picture in pixels; maps stand beside each other where it has room for two.
    """
    judged, colours = findings.judged[name], assign(findings.contenders)
    each = (width - GAP) / 2 if width >= 2 * NARROW + GAP and len(layout.facets) > 1 else width
    each = min(each, WIDE) if len(layout.facets) > 1 else each
    unit = unit_of(judged)

    def maps(fill: Fill, settings: Mapping[str, object]) -> list[tuple[str, Markup]]:
        return [
            (
                settings_text({**settings, **facet_settings}),
                drawing(judged, findings, layout, cells, fill, each),
            )
            for facet_settings, cells in layout.facets
        ]

    drawn = {name: sheet(maps(winners(judged, findings, colours), {}), colours, width)}
    if name == "harm":
        shaded = [
            entry
            for at, contender in enumerate(findings.contenders)
            for entry in maps(shades(judged, at), {"by": contender})
        ]
        drawn["harm-by-contender"] = sheet(shaded, {}, width, harm_scale(findings))
    panels = line_panels(findings, layout)
    if panels:
        each = (width - GAP) / 2 if width >= 2 * NARROW + GAP and len(panels) > 1 else width
        plots = [(panel.caption, line_plot(judged, findings, panel, colours, each, unit)) for panel in panels]
        drawn[f"{name}-lines"] = sheet(plots, {}, width, legend(findings.contenders, colours, width))
    return drawn


def _rows(judged: UtilityScores, findings: Findings) -> str:
    """Return every contender's figure on every path with its interval as CSV, in base units."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    figure = f"{judged.utility.short} ({judged.utility.unit})"
    heads = [*findings.paths, "contender", figure, "low", "high", "among the best"]
    writer.writerow(map(safe, heads))
    for number, settings in enumerate(findings.cells):
        levels = [safe(str(settings.get(path, ""))) for path in findings.paths]
        for at, contender in enumerate(findings.contenders):
            ends = [float(part[number, at]) for part in (judged.median, judged.low, judged.high)]
            figures = ["" if math.isnan(value) else f"{value:.6g}" for value in ends]
            best = "yes" if judged.best[number, at] else "no"
            writer.writerow([*levels, safe(contender), *figures, best])
    return out.getvalue()
