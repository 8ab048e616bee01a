"""The pictures: a heat map of errors per quantity, and the two sides' traces over each other."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dragstrip.fidelity.agree import Agreement, Case
from dragstrip.fidelity.console import cell
from dragstrip.fidelity.targets import QUANTITIES, Quantity
from dragstrip.fidelity.traces import Floats, FlowTrace
from dragstrip.report.colours import INK, KNOWN, MUTED
from dragstrip.report.figure import Figure, Rows, Spec, chart, linear, nominal, rows
from dragstrip.report.series import Curve, decimate

CELL_WIDTH, CELL_HEIGHT = 52, 16
ROOM = 24
"""Beside the labels: a browser's font can be wider than the one that they were measured with."""
TRACE_WIDTH, TRACE_HEIGHT, TRACE_POINTS = 420, 92, 300
KERNEL, SIMULATOR = "kernel", "simulator"
LOOK = {KERNEL: MUTED, SIMULATOR: KNOWN["cubic"]}
FAR = 2.0
"""Errors of so many limits have the strongest colour."""


def anchor(case: Case) -> str:
    """The id of a case's traces on the page."""
    return f"case-{case.name}"


def heat_maps(agreement: Agreement) -> list[Figure]:
    """One per quantity; a cell is a link to the case's traces."""
    return [
        _heat_map(agreement, quantity)
        for quantity in QUANTITIES
        if any(case.figure(quantity.key) for case in agreement.cases)
    ]


def _heat_map(agreement: Agreement, quantity: Quantity) -> Figure:
    data: Rows = []
    for case in agreement.cases:
        figure = case.figure(quantity.key)
        if figure is not None:
            data.append(
                {
                    "condition": case.condition,
                    "algorithm": case.group,
                    "severity": round(min(figure.severity, FAR), 3),
                    "text": cell(figure),
                    "href": f"#{anchor(case)}",
                    "beyond": not figure.reached,
                }
            )
    conditions = sorted({row["condition"] for row in data}, key=_natural)
    x = {"field": "algorithm", "type": "nominal", "axis": {"title": None, "orient": "top", "labelAngle": 0}}
    y = {
        "field": "condition",
        "type": "nominal",
        "axis": {"title": None, "labelLimit": 260, "labelFontSize": 10},
    }
    colour: Spec = {
        "field": "severity",
        "type": "quantitative",
        "scale": {
            "domain": [0, 1, FAR],
            "range": ["#f3f6f9", "#ffe08a", "#d55e00"],
            "type": "linear",
            "interpolate": "rgb",
        },
        "legend": None,
    }
    link = {"field": "href", "type": "nominal"}
    text: Spec = {
        "mark": {"type": "text", "fontSize": 10},
        "encoding": {
            "text": {"field": "text", "type": "nominal"},
            "color": {"value": "#1f2328"},
            "href": link,
        },
    }
    boxes: Spec = {"mark": {"type": "rect"}, "encoding": {"color": colour, "href": link}}
    spec = chart(
        {
            "data": rows(data),
            "encoding": {
                "x": {**x, "scale": {"domain": agreement.algorithms}},
                "y": {**y, "scale": {"domain": conditions}},
            },
            "layer": [boxes, text],
            "width": {"step": CELL_WIDTH},
            "height": {"step": CELL_HEIGHT},
            "padding": {"left": ROOM, "top": 4, "right": 4, "bottom": 4},
        }
    )
    beyond = sum(row["beyond"] for row in data)
    return Figure(
        f"heat-{quantity.key}",
        f"{quantity.title[0].upper()}{quantity.title[1:]}{f' ({quantity.unit})' if quantity.unit else ''}",
        f"Errors of {quantity.title} by condition and algorithm: {beyond} of {len(data)} beyond their limit.",
        spec,
    )


def _natural(condition: str) -> list[tuple[float, str]]:
    """`2m` before `10m`, `10ms` before `160ms`."""
    parts = []
    for part in condition.split("-"):
        digits = part.rstrip("abcdefghijklmnopqrstuvwxyz")
        parts.append((float(digits) if digits.replace(".", "", 1).isdigit() else math.inf, part))
    return parts


def traces(case: Case) -> Figure:
    """Window, smoothed RTT and queue of the first recording and the simulator's first seed."""
    kernel, simulator = case.kernel[0], case.simulator[0]
    end_s = case.scenario["duration_ns"] / 1e9
    panels = []
    for name, title in (("cwnd", "window (segments)"), ("srtt_ms", "smoothed RTT (ms)")):
        sides = {KERNEL: _curves(kernel.flows, name), SIMULATOR: _curves(simulator.flows, name)}
        panels.append(_panel(sides, title, end_s, last=False))
    queue = {
        side: [decimate(Curve(trace.queue_t_s, trace.queue_bytes / 1e3), TRACE_POINTS)]
        for side, trace in ((KERNEL, kernel), (SIMULATOR, simulator))
    }
    panels.append(_panel(queue, "queue (kB)", end_s, last=True))
    return Figure(
        f"traces-{case.name}",
        case.name,
        f"{case.name}: window, smoothed RTT and queue over time, the kernel's and the simulator's.",
        chart({"vconcat": panels, "spacing": 6}),
        [case.algorithm],
    )


def _curves(flows: Sequence[FlowTrace], name: str) -> list[Curve]:
    return [decimate(Curve(flow.t_s, _known(getattr(flow, name))), TRACE_POINTS) for flow in flows]


def _known(values: Floats) -> Floats:
    return np.asarray(values, dtype=np.float64)


def _panel(sides: dict[str, list[Curve]], title: str, end_s: float, *, last: bool) -> Spec:
    data: Rows = [
        {"t": round(float(t), 3), "v": round(float(v), 3), "who": who, "s": f"{who}{number}"}
        for who, curves in sides.items()
        for number, curve in enumerate(curves)
        for t, v in zip(curve.x, curve.y, strict=True)
    ]
    top = max((row["v"] for row in data), default=1.0) or 1.0
    time = {"title": "Time (s)" if last else None, "labels": last, "ticks": last, "tickCount": 6}
    value = {"title": title, "titleFontSize": 11, "tickCount": 4, "minExtent": 34}
    line = {
        "data": rows(data),
        "mark": {"type": "line", "strokeWidth": 1.2, "clip": True, "color": INK},
        "encoding": {
            "x": linear("t", 0, end_s, time),
            "y": linear("v", 0, top * 1.05, value),
            "detail": {"field": "s", "type": "nominal"},
            "color": nominal("who", list(LOOK), list(LOOK.values())),
            "strokeWidth": nominal("who", list(LOOK), [2.2, 1.0]),
        },
    }
    return {"width": TRACE_WIDTH, "height": TRACE_HEIGHT, **line}
