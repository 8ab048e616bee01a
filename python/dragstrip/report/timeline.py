"""Throughput, round-trip time, window and queue over time: one column of panels per contender."""

from __future__ import annotations

from dataclasses import dataclass

from dragstrip.report import quantity
from dragstrip.report.collect import Curves
from dragstrip.report.collect import Panel as Lines
from dragstrip.report.colours import GREY
from dragstrip.report.figure import Axis, Figure, Panel, Rule, Stroke, TimeLines
from dragstrip.report.quantity import RATES, SIZES, TIMES_MS, Unit, unit_for
from dragstrip.report.series import Curve
from dragstrip.report.setups import Setup

# Of a panel on paper, by how many contenders there are to stand side by side.
WIDTHS = (400, 400, 250, 210, 185)


@dataclass(frozen=True)
class _Scale:
    """One row of panels: what it shows, its unit and its greatest value, in base units."""

    key: str
    title: str
    unit: Unit
    top: float
    rule: Rule | None


def timelines(setup: Setup, curves: list[Curves]) -> list[Figure]:
    """One figure per contender, all on common scales, so that they may be compared side by side."""
    scales = _common_scales(setup, curves) if curves else []
    if not scales:
        return []
    width = WIDTHS[min(len(curves), len(WIDTHS)) - 1]
    time = Axis("Time (s)", 0, setup.end_s, "s")
    figures = []
    for number, entry in enumerate(curves, 1):
        contender = entry.contender
        panels = [_panel(setup, entry, scale) for scale in scales]
        reach = quantity.listing(
            [f"{s.title.lower()} up to {s.unit.text(entry.panels[s.key].greatest())}" for s in scales]
        )
        figures.append(
            Figure(
                f"timeline-{number}",
                contender.title,
                f"{contender.title} over {quantity.seconds(setup.end_s)}: {reach}.",
                TimeLines(time, panels, width),
                [contender.cc],
                contender.colour,
            )
        )
    return figures


def _common_scales(setup: Setup, curves: list[Curves]) -> list[_Scale]:
    idle_ms = setup.path.rtt_ns / 1e6
    rate_bps = setup.path.rate_bps
    scales = []
    for key, title, units, rule, text in (
        ("throughput", "Throughput", RATES, rate_bps, f"bottleneck {quantity.rate(rate_bps)}"),
        ("rtt", "RTT", (TIMES_MS[1],), idle_ms or None, f"idle {quantity.milliseconds(idle_ms)}"),
        ("cwnd", "Window", SIZES, None, ""),
        ("queue", "Queue", SIZES, None, ""),
    ):
        top = max(entry.panels[key].greatest() for entry in curves)
        if top > 0:
            unit = unit_for(top, units)
            shown = Rule(unit.scale(rule), text) if rule and rule <= top * 1.1 else None
            scales.append(_Scale(key, title, unit, top, shown))
    return scales


def _panel(setup: Setup, entry: Curves, scale: _Scale) -> Panel:
    # A queue that several share has nobody's colour.
    colour = GREY if scale.key == "queue" and setup.together else entry.contender.colour
    y = Axis(f"{scale.title} ({scale.unit.name})", 0, scale.unit.scale(scale.top) * 1.05, scale.unit.name)
    return Panel(y, _strokes(entry.panels[scale.key], colour, scale.unit), scale.rule)


def _strokes(lines: Lines, colour: str, unit: Unit) -> list[Stroke]:
    def scaled(curves: list[Curve]) -> list[Curve]:
        return [Curve(curve.x, curve.y / unit.divisor) for curve in curves]

    strokes = []
    if lines.pale:
        strokes.append(Stroke(scaled(lines.pale), colour, 0.7, opacity=0.3))
    if lines.dashed:
        threshold = scaled(lines.dashed)
        strokes.append(Stroke(threshold, colour, 1, 0.8, dash=(3, 2), step=True, label="ssthresh"))
    return [*strokes, Stroke(scaled(lines.main), colour, 1.3, main=True)]
