"""The pictures of a validation: the traces of both sides over each other, and the colours of heat maps."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dragstrip.display.colours import KNOWN, MUTED
from dragstrip.report.figure import Axis, Figure, Panel, Stroke, TimeLines
from dragstrip.report.series import Curve, decimate
from dragstrip.studies.validation.console import cell
from dragstrip.studies.validation.targets import QUANTITIES, Quantity
from dragstrip.studies.validation.traces import Floats, FlowSeries
from dragstrip.studies.validation.validate import Agreement, Case

TRACE_WIDTH, TRACE_HEIGHT, TRACE_POINTS = 420, 92, 300
KERNEL, SIMULATOR = "kernel", "simulator"
LOOK = {KERNEL: (MUTED, 2.2), SIMULATOR: (KNOWN["cubic"], 1.0)}
FAR = 2.0
"""Error, in units of its limit, that has the strongest colour."""
DEPTHS = 8
"""Number of colours from no error to the strongest."""


def anchor(case: Case) -> str:
    """Return the id of a case's traces on the page."""
    return f"case-{case.name}"


def heat_maps(agreement: Agreement) -> list[HeatMap]:
    """Return one heat map per quantity."""
    return [
        HeatMap(agreement, quantity)
        for quantity in QUANTITIES
        if any(case.figure(quantity.key) for case in agreement.cases)
    ]


class HeatMap:
    """Errors of one quantity, with a row per condition and a column per algorithm."""

    def __init__(self, agreement: Agreement, quantity: Quantity) -> None:
        unit = f" ({quantity.unit})" if quantity.unit else ""
        self.title = f"{quantity.title[0].upper()}{quantity.title[1:]}{unit}"
        self.algorithms = agreement.algorithms
        # (condition, algorithm) → where its traces are, its text, its depth of colour.
        self.cells: dict[tuple[str, str], tuple[str, str, int]] = {}
        for case in agreement.cases:
            figure = case.figure(quantity.key)
            if figure is not None:
                depth = round(min(figure.severity, FAR) / FAR * DEPTHS)
                self.cells[case.condition, case.group] = (anchor(case), cell(figure), depth)
        self.conditions = sorted({condition for condition, _ in self.cells}, key=_natural)


def _natural(condition: str) -> list[tuple[float, str]]:
    """Return a sort key with `2m` before `10m` and `10ms` before `160ms`."""
    parts = []
    for part in condition.split("-"):
        digits = part.rstrip("abcdefghijklmnopqrstuvwxyz")
        parts.append((float(digits) if digits.replace(".", "", 1).isdigit() else math.inf, part))
    return parts


def traces(case: Case) -> Figure:
    """Draw window, smoothed RTT and queue of the first recording and of the simulator's first seed."""
    kernel, simulator = case.kernel[0], case.simulator[0]
    end_s = case.scenario["duration_ns"] / 1e9
    panels = []
    for name, title, unit in (("cwnd", "Window", "segments"), ("srtt_ms", "Smoothed RTT", "ms")):
        sides = {KERNEL: _curves(kernel.flows, name), SIMULATOR: _curves(simulator.flows, name)}
        panels.append(_panel(sides, title, unit))
    queue = {
        side: [decimate(Curve(trace.queue_t_s, trace.queue_bytes / 1e3), TRACE_POINTS)]
        for side, trace in ((KERNEL, kernel), (SIMULATOR, simulator))
    }
    panels.append(_panel(queue, "Queue", "kB"))
    return Figure(
        f"traces-{case.name}",
        case.name,
        f"{case.name}: window, smoothed RTT and queue over time, the kernel's and the simulator's.",
        TimeLines(Axis("Time (s)", 0, end_s, "s"), panels, TRACE_WIDTH, TRACE_HEIGHT),
        [case.algorithm],
    )


def _curves(flows: Sequence[FlowSeries], name: str) -> list[Curve]:
    return [decimate(Curve(flow.t_s, _as_floats(getattr(flow, name))), TRACE_POINTS) for flow in flows]


def _as_floats(values: Floats) -> Floats:
    return np.asarray(values, dtype=np.float64)


def _panel(sides: dict[str, list[Curve]], title: str, unit: str) -> Panel:
    top = max((float(c.y.max()) for curves in sides.values() for c in curves if len(c)), default=1.0) or 1.0
    strokes = [Stroke(curves, *LOOK[side], label=side, main=True) for side, curves in sides.items()]
    return Panel(Axis(f"{title} ({unit})", 0, top * 1.05, unit), strokes)
