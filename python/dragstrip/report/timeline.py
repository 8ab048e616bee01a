"""Throughput, round-trip time, window and queue over time: one column of panels per contender."""

from __future__ import annotations

from dataclasses import dataclass

from dragstrip.report import quantity
from dragstrip.report.collect import Curves, Panel
from dragstrip.report.colours import GREY, MUTED
from dragstrip.report.figure import Figure, Spec, chart, linear, points, rows
from dragstrip.report.quantity import RATES, SIZES, TIMES_MS, Unit, unit_for
from dragstrip.report.series import Curve
from dragstrip.report.setups import Setup

# Of a panel, by how many contenders there are to stand side by side.
WIDTHS, HEIGHT = (400, 400, 250, 210, 185), 78


@dataclass(frozen=True)
class _Scale:
    """One row of panels: what it shows, its unit and its greatest value, in base units."""

    key: str
    title: str
    unit: Unit
    top: float
    rule: float | None


def timelines(setup: Setup, curves: list[Curves]) -> list[Figure]:
    """One figure per contender, all on common scales, so that they may be compared side by side."""
    scales = _common_scales(setup, curves) if curves else []
    if not scales:
        return []
    width = WIDTHS[min(len(curves), len(WIDTHS)) - 1]
    figures = []
    for number, entry in enumerate(curves, 1):
        contender = entry.contender
        panels = [_panel(setup, entry, scale, width, last=scale is scales[-1]) for scale in scales]
        reach = quantity.listing(
            [f"{s.title.lower()} up to {s.unit.text(entry.panels[s.key].greatest())}" for s in scales]
        )
        figures.append(
            Figure(
                f"timeline-{number}",
                contender.title,
                f"{contender.title} over {quantity.seconds(setup.end_s)}: {reach}.",
                chart({"vconcat": panels, "spacing": 8}),
                [contender.cc],
                contender.colour,
            )
        )
    return figures


def _common_scales(setup: Setup, curves: list[Curves]) -> list[_Scale]:
    scales = []
    for key, title, units, rule in (
        ("throughput", "Throughput", RATES, setup.path.rate_bps),
        ("rtt", "RTT", (TIMES_MS[1],), setup.path.rtt_ns / 1e6 or None),
        ("cwnd", "Window", SIZES, None),
        ("queue", "Queue", SIZES, None),
    ):
        top = max(entry.panels[key].greatest() for entry in curves)
        if top > 0:
            scales.append(
                _Scale(key, title, unit_for(top, units), top, rule if rule and rule <= top * 1.1 else None)
            )
    return scales


def _panel(setup: Setup, entry: Curves, scale: _Scale, width: int, *, last: bool) -> Spec:
    panel = entry.panels[scale.key]
    # A queue that several share has nobody's colour.
    colour = GREY if scale.key == "queue" and setup.together else entry.contender.colour
    time = {"title": "Time (s)" if last else None, "labels": last, "ticks": last, "tickCount": 6}
    value = {
        "title": f"{scale.title} ({scale.unit.name})",
        "titleFontSize": 11,
        "tickCount": 4,
        # Wide enough for any label, so that the panels of a column line up.
        "minExtent": 32,
    }
    encoding = {
        "x": linear("t", 0, setup.end_s, time),
        "y": linear("v", 0, scale.unit.scale(scale.top) * 1.05, value),
        "detail": {"field": "s", "type": "nominal"},
    }
    layers = [
        {
            "data": rows(points(lines, scale.unit)),
            "mark": {"type": "line", "color": colour, "clip": True, **style},
            "encoding": encoding,
        }
        for lines, style in _styled(panel)
    ]
    if scale.rule is not None:
        layers.insert(0, _rule(scale.unit.scale(scale.rule)))
    return {"width": width, "height": HEIGHT, "layer": layers}


def _styled(panel: Panel) -> list[tuple[list[Curve], Spec]]:
    styles: list[tuple[list[Curve], Spec]] = [
        (panel.pale, {"opacity": 0.3, "strokeWidth": 0.7}),
        (panel.dashed, {"opacity": 0.8, "strokeWidth": 1, "strokeDash": [3, 2], "interpolate": "step-after"}),
    ]
    return [entry for entry in styles if entry[0]] + [(panel.main, {"strokeWidth": 1.3})]


def _rule(at: float) -> Spec:
    return {
        "data": rows([{"v": at}]),
        "mark": {"type": "rule", "color": MUTED, "strokeDash": [3, 3]},
        "encoding": {"y": {"field": "v", "type": "quantitative"}},
    }
