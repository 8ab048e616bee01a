"""Throughput, round-trip time, window and queue over time: one column of panels per contender."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dragstrip import _core
from dragstrip.display import look, quantity
from dragstrip.display.colours import GREY
from dragstrip.display.quantity import RATES, Unit
from dragstrip.model.scenario.paths import PathFacts
from dragstrip.report.collect import CurvePanel, Curves, timeline_bin_s
from dragstrip.report.figure import Axis, Figure, Panel, Rule, Stroke, TimeLines
from dragstrip.report.series import Curve
from dragstrip.results.comparison import path as paths
from dragstrip.results.comparison.setups import Setup

# Bits that a delivery opportunity of a trace carries.
TRACE_BITS = 1500 * 8
# Widths of a panel on paper, by the number of contenders side by side.
WIDTHS = (400, 400, 250, 210, 185)


@dataclass(frozen=True)
class _TimeScale:
    """One row of panels: its axis and unit, and its greatest value in base units."""

    key: str
    axis: Axis
    unit: Unit
    top: float
    rule: Rule | None = None


def timelines(setup: Setup, curves: list[Curves]) -> list[Figure]:
    """Return one figure per contender, all on common scales, so that they can be compared."""
    scales = _common_scales(setup, curves) if curves else []
    if not scales:
        return []
    width = WIDTHS[min(len(curves), len(WIDTHS)) - 1]
    time = Axis("Time (s)", 0, setup.end_s, "s")
    figures = []
    for number, entry in enumerate(curves, 1):
        contender = entry.contender
        panels = [_panel(setup, entry, _ruled(setup, [entry], scale)) for scale in scales]
        reach = quantity.listing(
            [f"{_in_words(s)} up to {s.unit.text(entry.panels[s.key].greatest())}" for s in scales]
        )
        figures.append(
            Figure(
                f"timeline-{number}",
                contender.title,
                f"{contender.title} over {quantity.seconds(setup.end_s)}: {reach}.",
                TimeLines(time, panels, width, marks=marks(setup)),
                [contender.cc],
                contender.colour,
            )
        )
    return figures


def _in_words(scale: _TimeScale) -> str:
    title, _ = look.panel(scale.key)
    return title if title.isupper() else title.lower()


# Curves of more contenders than this in one panel hide each other.
OVERLAID_MAX = 8


def overlay(setup: Setup, curves: list[Curves]) -> Figure | None:
    """Return a figure of all contenders on common axes, or None for one contender or too many."""
    if not 2 <= len(curves) <= OVERLAID_MAX:
        return None
    scales = [s for s in _common_scales(setup, curves) if not (s.key == "queue" and setup.together)]
    if not scales:
        return None
    panels = [_overlaid(setup, curves, _ruled(setup, curves, scale)) for scale in scales]
    return Figure(
        "overlay",
        "All on one axis",
        f"{quantity.listing([entry.contender.title for entry in curves])} over "
        f"{quantity.seconds(setup.end_s)}, on common axes.",
        TimeLines(
            Axis("Time (s)", 0, setup.end_s, "s"), panels, WIDTHS[0], 120, [*marks(setup), *moments(setup)]
        ),
        list(dict.fromkeys(entry.contender.cc for entry in curves)),
    )


def quantity_over_time(setup: Setup, curves: list[Curves], key: str) -> Figure | None:
    """Return a figure of one quantity over time, all contenders on one axis.

    `key` is `cwnd`, `rtt`, `throughput` or `queue`. None if there is nothing to draw.
    """
    scale = next((scale for scale in _common_scales(setup, curves) if scale.key == key), None)
    if scale is None:
        return None
    visible = curves[:1] if key == "queue" and setup.together else curves
    panel = _overlaid(setup, visible, _ruled(setup, curves, scale))
    title, _ = look.panel(key)
    return Figure(
        f"{key}-over-time",
        title,
        f"{title} of {quantity.listing([entry.contender.title for entry in visible])} over "
        f"{quantity.seconds(setup.end_s)}.",
        TimeLines(
            Axis("Time (s)", 0, setup.end_s, "s"), [panel], WIDTHS[0], 160, [*marks(setup), *moments(setup)]
        ),
        list(dict.fromkeys(entry.contender.cc for entry in curves)),
    )


MULTIPLES = ("rtt", "throughput")
"""Panels of the small figure of each of many set-ups."""


def multiples(setup_curves: Sequence[tuple[Setup, list[Curves]]]) -> list[Figure]:
    """Return one small figure per set-up, with all its contenders, on scales that all figures have in common.

    Empty if a set-up has more contenders than one panel can show, or if there is nothing to draw.
    """
    if not all(1 <= len(curves) <= OVERLAID_MAX for _, curves in setup_curves):
        return []
    scales = [{s.key: s for s in _common_scales(setup, curves)} for setup, curves in setup_curves]
    keys = [key for key in MULTIPLES if all(key in by_key for by_key in scales)]
    common = _scales([(key, max(by_key[key].top for by_key in scales)) for key in keys])
    end_s = max(setup.end_s for setup, _ in setup_curves)
    figures = []
    for number, (setup, curves) in enumerate(setup_curves, 1):
        panels = [_overlaid(setup, curves, scale) for scale in common]
        names = quantity.listing([entry.contender.title for entry in curves])
        figures.append(
            Figure(
                f"multiple-{number}",
                setup.short,
                f"{names} over {quantity.seconds(setup.end_s)}; {setup.title}.",
                TimeLines(Axis("Time (s)", 0, end_s, "s"), panels, WIDTHS[2], 60, marks(setup), legend=False),
                list(dict.fromkeys(entry.contender.cc for entry in curves)),
            )
        )
    return figures if keys else []


def _overlaid(setup: Setup, curves: list[Curves], scale: _TimeScale) -> Panel:
    """Return a panel with a curve per contender."""
    strokes = _capacities(setup, curves, scale.unit) if scale.key == "throughput" else []
    for entry in curves:
        lines, contender = entry.panels[scale.key], entry.contender
        scaled = [Curve(curve.x, curve.y / scale.unit.divisor) for curve in lines.main]
        if scaled:
            strokes.append(
                Stroke(scaled, contender.colour, 1.3, dash=contender.dash, label=contender.title, main=True)
            )
    return Panel(scale.axis, strokes, scale.rule)


# More than these would be a curtain; a trace of values shows in the curve of the capacity.
MARKS_MAX = 12


def marks(setup: Setup) -> list[Rule]:
    """Return a line at each time when links change, labelled with the change."""
    changes = paths.changes(setup.scenario)
    return [Rule(at_s, text) for at_s, text in changes] if len(changes) <= MARKS_MAX else []


def moments(setup: Setup) -> list[Rule]:
    """Return lines at the instants that the explanation of the first run names, labelled with the event."""
    if not setup.together or not setup.runs:
        return []
    rules = []
    for finding in setup.runs[0].summary.get("why") or []:
        flows = [str(flow) for flow in finding.get("flows") or []]
        values = {name: quantity.number(value) for name, value in (finding.get("figures") or {}).items()}
        figures = {name: value for name, value in values.items() if value is not None}
        if mark := _core.finding_mark(flows, figures):
            rules.append(Rule(*mark))
    return rules[:MARKS_MAX]


def _rates(setup: Setup, path: PathFacts, unit: Unit) -> list[Stroke]:
    """Return the bottleneck's rate over time if it changes; it is 0 while the link is down."""
    if path.bottleneck is None or path.rate_bps is None or not paths.rate_changes(path):
        return []
    rate, up = float(path.rate_bps), True
    times, rates = [0.0], [rate]
    for change in sorted(path.changes, key=lambda change: change["at_ns"]):
        if change["link"] != path.bottleneck["name"]:
            continue
        rate = float(change.get("rate_bps") or rate)
        up = bool(change.get("up", up))
        times.append(change["at_ns"] / 1e9)
        rates.append(rate if up else 0.0)
    times.append(setup.end_s)
    rates.append(rates[-1])
    curve = Curve(np.asarray(times), np.asarray(rates) / unit.divisor)
    return [Stroke([curve], GREY, 1.0, 0.7, step=True, label="capacity")]


def capacity(setup: Setup, path: PathFacts, unit: Unit) -> list[Stroke]:
    """Return what a path's bottleneck could have carried, where that varies: a line behind the throughput.

    Empty if the link neither follows a trace nor changes its rate.
    """
    if changing := _rates(setup, path, unit):
        return changing
    # The loader has put the medium into the link.
    medium = (path.bottleneck or (path.forward[0] if path.forward else {})).get("medium") or {}
    opportunities = np.asarray(medium.get("opportunities_ms") or [], dtype=np.float64) / 1e3
    if medium.get("kind") != "trace" or not len(opportunities) or opportunities[-1] <= 0:
        return []
    bin_s = timeline_bin_s(setup)
    bins = max(1, round(setup.end_s / bin_s))
    # A trace that is over begins again.
    rounds = math.ceil(bins * bin_s / opportunities[-1])
    times = (opportunities[None, :] + opportunities[-1] * np.arange(rounds)[:, None]).ravel()
    counts, edges = np.histogram(times, bins=bins, range=(0.0, bins * bin_s))
    rates = counts * TRACE_BITS / bin_s / unit.divisor
    return [Stroke([Curve(edges[1:] - bin_s / 2, rates)], GREY, 1.0, 0.7, step=False, label="capacity")]


def varies(setup: Setup) -> bool:
    """Return whether any contender's figures have a line of capacity."""
    return any(capacity(setup, setup.way(contender), RATES[0]) for contender in setup.contenders)


def _capacities(setup: Setup, curves: Sequence[Curves], unit: Unit) -> list[Stroke]:
    """Return the capacity that these contenders have in common, if it varies."""
    paths_of = [setup.way(entry.contender) for entry in curves]
    links = {path.bottleneck and path.bottleneck["name"] for path in paths_of}
    return capacity(setup, paths_of[0], unit) if len(links) == 1 else []


def common_idle(setup: Setup) -> tuple[float, str]:
    """Return the idle round-trip time that all contenders have in common, in ms, and its text; else 0."""
    times = list(dict.fromkeys(paths.idle(setup.way(contender)) for contender in setup.contenders))
    return times[0] if len(times) == 1 else (0.0, "")


def _rule(setup: Setup, path: PathFacts, key: str) -> tuple[float, str] | None:
    """Return a panel's line in base units, and its text: the idle RTT, or the rate where the flow queues."""
    if key == "rtt":
        idle_ms, words = paths.idle(path)
        return (idle_ms, words) if idle_ms else None
    if key == "throughput" and path.rate_bps and not paths.rate_changes(path):
        names_link = setup.several and path.bottleneck is not None
        link = str(path.bottleneck["name"]) if names_link and path.bottleneck else "bottleneck"
        return float(path.rate_bps), f"{link} {quantity.rate(path.rate_bps)}"
    return None


def _ruled(setup: Setup, curves: Sequence[Curves], scale: _TimeScale) -> _TimeScale:
    """Return the scale with the line that these contenders have in common."""
    rules = list(dict.fromkeys(_rule(setup, setup.way(entry.contender), scale.key) for entry in curves))
    if len(rules) != 1 or rules[0] is None or rules[0][0] > scale.top * 1.1:
        return scale
    return replace(scale, rule=Rule(scale.unit.scale(rules[0][0]), rules[0][1]))


def _common_scales(setup: Setup, curves: list[Curves]) -> list[_TimeScale]:
    tops = []
    for key in ("cwnd", "rtt", "throughput", "queue"):
        top = max(entry.panels[key].greatest() for entry in curves)
        if key == "throughput":
            strokes = [s for e in curves for s in capacity(setup, setup.way(e.contender), RATES[0])]
            capacities = [float(curve.y.max()) for stroke in strokes for curve in stroke.curves]
            top = max(top, *capacities) if top > 0 and capacities else top
        if top > 0:
            tops.append((key, top))
    return _scales(tops)


def _scales(tops: list[tuple[str, float]]) -> list[_TimeScale]:
    """Return the scales of panels with these greatest values, by key, in base units."""
    return [
        _TimeScale(key, Axis(title, 0, high, name), Unit(divisor, name), top)
        for (key, top), (title, name, divisor, high) in zip(tops, _core.panel_axes(tops), strict=True)
    ]


def _panel(setup: Setup, entry: Curves, scale: _TimeScale) -> Panel:
    # A queue that several share has nobody's colour.
    colour = GREY if scale.key == "queue" and setup.together else entry.contender.colour
    behind = _capacities(setup, [entry], scale.unit) if scale.key == "throughput" else []
    strokes = _strokes(entry.panels[scale.key], colour, scale.unit)
    return Panel(scale.axis, [*behind, *strokes], scale.rule)


def _strokes(lines: CurvePanel, colour: str, unit: Unit) -> list[Stroke]:
    def scaled(curves: list[Curve]) -> list[Curve]:
        return [Curve(curve.x, curve.y / unit.divisor) for curve in curves]

    strokes = []
    if lines.pale:
        strokes.append(Stroke(scaled(lines.pale), colour, 0.7, opacity=0.3))
    if lines.dashed:
        threshold = scaled(lines.dashed)
        strokes.append(
            Stroke(threshold, colour, 1, 0.8, dash=tuple(look.LOOK["threshold"]), step=True, label="ssthresh")
        )
    return [*strokes, Stroke(scaled(lines.main), colour, 1.3, main=True)]
