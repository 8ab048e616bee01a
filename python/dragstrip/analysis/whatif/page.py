"""A verdict as one HTML file: the sentence, the run over the capture, and the tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dragstrip.analysis.inference.console import properties
from dragstrip.analysis.whatif import wording
from dragstrip.analysis.whatif.flow_trace import FlowTrace
from dragstrip.analysis.whatif.verdict import Verdict, flow_name
from dragstrip.display import quantity
from dragstrip.display.colours import BLACK, GREEN, MUTED, PALETTE, ROSE, SKY, VERMILION
from dragstrip.display.quantity import RATES, SIZES, unit_for
from dragstrip.display.table import Cell, Table, text_table
from dragstrip.model.scenario.paths import IP_BYTES, PAYLOAD_BYTES
from dragstrip.report.figure import Axis, Figure, Panel, Rule, Stroke, TimeLines
from dragstrip.report.page import figure_page, page_figure
from dragstrip.report.series import Curve, decimate, nice_bin_s

NAME = "whatif.html"
POINTS = 1200
TICKS_MAX = 400
"""Retransmissions of a verdict that are marked, at most; their count is in the table."""
VERDICTS = {"needed": VERMILION, "spurious": SKY, "unknown": ROSE}
CAPTURE, RUN = "capture", "run"
WIDTH, HEIGHT = 420, 120
DASHES = (6, 3)
OTHERS = (PALETTE[0], PALETTE[4], PALETTE[6], SKY)
"""Colours of the other algorithms; a table has those that are more."""
PATH_HEADS = ("", "value and interval, or why there is none")
CANDIDATE_HEADS = ("candidate", "score", "distance from its runs, over that of these among themselves")


def page(verdict: Verdict, document: Mapping[str, Any], addresses: bool) -> str:
    """Return the page; everything from outside is escaped, and addresses only appear if asked for."""
    flow = verdict.flow
    name = str(flow.file) if addresses else flow.file.name
    return figure_page(
        "analysis/whatif/page.html",
        title=f"{name}, {flow_name(flow, addresses)}",
        document=document,
        verdict=verdict,
        predictions=_predictions(document),
        over_time=page_figure(over_time(verdict)),
        legend=_legend(verdict),
        fit=_fit(document),
        path=text_table(PATH_HEADS, properties(flow.path)),
        answer=wording.answer(verdict.answer) if verdict.answer else "",
        candidates=_candidates(verdict),
    )


def _predictions(document: Mapping[str, Any]) -> Table | None:
    """Return a row of figures for each algorithm, or None if no run was made."""
    if not document["raced"]:
        return None
    rows = [
        (
            prediction["algorithm"],
            _span(prediction["goodput_bps"], quantity.rate),
            _span(prediction["rtt_ms_p50"], quantity.milliseconds),
            _span(prediction["rtt_ms_p95"], quantity.milliseconds),
            _span(prediction["retransmitted_share"], quantity.percent),
        )
        for prediction in document["what_if"]
    ]
    runs = document["what_if"][0]["runs"]
    where = wording.raced_path(document["changes"], "the inferred path")
    caption = f"On {where}; in small type the range over {runs} paths that it may be."
    return text_table(("", "goodput", "RTT, median", "RTT, 95 %", "retransmitted"), rows, caption)


def _span(interval: Mapping[str, float] | None, text: Callable[[float], str]) -> Cell:
    if interval is None:
        return Cell(quantity.MISSING)
    value, low, high = (text(interval[name]) for name in ("value", "low", "high"))
    return Cell(value, "" if low == high else f"{low} to {high}")


def _fit(document: Mapping[str, Any]) -> Table:
    """Return the figures of the capture and of the run, with the error of the run."""
    explains, capture = document["explains"], document["capture"]
    run, errors = explains["run"], explains["rtt_errors"] or {}
    lines = [("goodput", quantity.rate(capture["goodput_bps"]), quantity.rate(run["goodput_bps"]))]
    shares = [explains["goodput_error"]]
    for name, error in errors.items():
        theirs, ours = (quantity.milliseconds(side[f"rtt_ms_{name}"]) for side in (capture, run))
        lines.append((f"RTT, {name}", theirs, ours))
        shares.append(error)
    rows: list[Sequence[str]] = [
        (*line, f"{100 * share:+z.1f} %") for line, share in zip(lines, shares, strict=True)
    ]
    retransmissions = explains["retransmissions"]
    rows.append(("segments retransmitted", str(retransmissions["capture"]), str(retransmissions["run"]), ""))
    apart = explains["delivered_apart"]
    size, share = quantity.size(abs(apart["bytes"])), f"{100 * apart['share']:.1f} %"
    rows.append(("delivered bytes apart at most", "", size, share))
    return text_table(("", "capture", "run", "error"), rows)


def _candidates(verdict: Verdict) -> Table | None:
    """Return the scores of all candidates, or None if the algorithm was given."""
    if verdict.answer is None:
        return None
    rows = [(name, f"{score:.2f}", f"{apart:.2f}") for name, score, apart in verdict.answer.scores]
    return text_table(CANDIDATE_HEADS, rows)


# --- over time --------------------------------------------------------------------------------------


def over_time(verdict: Verdict) -> Figure:
    """Draw delivered bytes with each retransmission, RTT, rate and flight, of the capture and of the run."""
    capture, run = verdict.capture, verdict.run
    end_s = max(capture.duration_s, 1e-3)
    panels = [_delivered(verdict), _again(verdict), _rtt(verdict), _rate(verdict), _flight(verdict)]
    words = (
        f"The capture and a run of {verdict.algorithm} on the inferred path over {end_s:.3g} s: "
        f"goodput {quantity.rate(capture.goodput_bps)} and {quantity.rate(run.goodput_bps)}."
    )
    content = TimeLines(Axis("Time (s)", 0, end_s, "s"), [panel for panel in panels if panel], WIDTH, HEIGHT)
    return Figure("over-time", "Over time", words, content)


def _legend(verdict: Verdict) -> str:
    marked_verdicts = [
        name for name in VERDICTS if any(event["verdict"] == name for event in verdict.flow.events)
    ]
    ticks = (
        f" Ticks on the delivered bytes are retransmitted segments: {quantity.listing(marked_verdicts)}."
        if marked_verdicts
        else ""
    )
    return (
        f"Black: the capture. Green and dashed: the run of {verdict.algorithm}. Coloured: the other "
        "algorithms on the path as it is taken. Thin lines are the ends of the path's intervals: in the RTT "
        f"a full buffer, in the rate the bottleneck, in IP packets (goodput is the data in them).{ticks}"
    )


def _other_runs(verdict: Verdict) -> list[tuple[str, str, FlowTrace]]:
    """Return the runs of the other algorithms on the path as it is taken: name, colour and run."""
    raced = [prediction for prediction in verdict.predictions if prediction.algorithm != verdict.algorithm][
        : len(OTHERS)
    ]
    return [
        (prediction.algorithm, colour, prediction.runs[0])
        for prediction, colour in zip(raced, OTHERS, strict=False)
    ]


def _other_strokes(verdict: Verdict, curve: Callable[[FlowTrace], Curve], by: float = 1.0) -> list[Stroke]:
    """Return the other algorithms' curves, thinner than the capture's and the run's."""
    return [
        Stroke([decimate(_scaled(curve(run), by), POINTS)], colour, 1.0, 0.9, label=name, main=True)
        for name, colour, run in _other_runs(verdict)
        if len(curve(run))
    ]


def _lines(capture: Curve, run: Curve) -> list[Stroke]:
    strokes = []
    if len(capture):
        strokes.append(Stroke([decimate(capture, POINTS)], BLACK, 1.6, label=CAPTURE, main=True))
    if len(run):
        strokes.append(Stroke([decimate(run, POINTS)], GREEN, 1.2, dash=DASHES, label=RUN, main=True))
    return strokes


def _scaled(curve: Curve, by: float) -> Curve:
    return Curve(curve.x, curve.y / by)


def _delivered(verdict: Verdict) -> Panel:
    capture, run = verdict.capture, verdict.run
    runs = [capture, run, *(other_run for _, _, other_run in _other_runs(verdict))]
    top = max(1.0, *(flow.delivered_bytes for flow in runs))
    unit = unit_for(top, SIZES)
    strokes = _other_strokes(verdict, lambda flow: Curve(flow.at_s, flow.acked_bytes), unit.divisor)
    strokes += _lines(
        *(_scaled(Curve(trace.at_s, trace.acked_bytes), unit.divisor) for trace in (capture, run))
    )
    for name, colour in VERDICTS.items():
        times = _thinned([event["at_s"] for event in verdict.flow.events if event["verdict"] == name])
        at = capture.delivered_at(times) / unit.divisor
        half = 0.03 * top / unit.divisor
        ticks = [
            Curve(np.array([x, x]), np.array([max(0.0, y - half), y + half]))
            for x, y in zip(times, at, strict=True)
        ]
        if ticks:
            strokes.append(Stroke(ticks, colour, 1.0, 0.8))
    return Panel(Axis(f"Delivered ({unit.name})", 0, unit.scale(top) * 1.05, unit.name), strokes)


def _thinned(times: Sequence[float]) -> Any:
    step = max(1, -(-len(times) // TICKS_MAX))
    return np.array(times[::step], dtype=np.float64)


def _again(verdict: Verdict) -> Panel | None:
    events = verdict.flow.events
    capture = verdict.capture
    strokes = []
    for name, colour in VERDICTS.items():
        times = [event["at_s"] for event in events if event["verdict"] == name]
        if times:
            at = np.array([0.0, *times, capture.duration_s])
            counts = np.array([0.0, *range(1, len(times) + 1), len(times)])
            strokes.append(
                Stroke([decimate(Curve(at, counts), POINTS)], colour, 1.4, step=True, label=name, main=True)
            )
    if not strokes:
        return None
    run = verdict.run
    strokes.append(
        Stroke(
            [decimate(Curve(run.at_s, run.retransmits), POINTS)],
            GREEN,
            1.2,
            dash=DASHES,
            label=RUN,
            main=True,
        )
    )
    top = max(float(curve.y.max()) for stroke in strokes for curve in stroke.curves)
    return Panel(Axis("Retransmitted (segments)", 0, max(top, 1.0) * 1.05), strokes)


def _rtt(verdict: Verdict) -> Panel | None:
    capture, run, path = verdict.capture, verdict.run, verdict.flow.path
    if not len(capture.rtt_ms):
        return None
    runs = [capture, run, *(other_run for _, _, other_run in _other_runs(verdict))]
    strokes = _other_strokes(verdict, lambda flow: Curve(flow.rtt_at_s, flow.rtt_ms))
    strokes += _lines(*(Curve(trace.rtt_at_s, trace.rtt_ms) for trace in (capture, run)))
    top = max(float(flow.rtt_ms.max()) for flow in runs if len(flow.rtt_ms))
    idle = path.base_rtt_ms.value
    if idle is not None:
        full = path.buffer_ms
        strokes += _ends(capture, [idle + end for end in (full.low, full.high) if end is not None], 1.3 * top)
    rule = Rule(idle, "idle") if idle is not None else None
    return Panel(Axis("RTT (ms)", 0, top * 1.05, "ms"), strokes, rule)


def _rate(verdict: Verdict) -> Panel:
    capture, run, path = verdict.capture, verdict.run, verdict.flow.path
    link = _payload_bps(verdict)
    curves = [_per_bin(trace, capture.duration_s, link) for trace in (capture, run)]
    # A rate that the user changed is not that of the path.
    link_limit_bps = None if "rate" in verdict.changed else link

    def rate_of(flow: FlowTrace) -> Curve:
        return _per_bin(flow, capture.duration_s, link_limit_bps)

    ends = [end for end in (path.rate_bps.low, path.rate_bps.high) if end is not None]
    if path.queue == "policer":
        ends = [end for end in (path.policer_rate_bps.low, path.policer_rate_bps.high) if end is not None]
    all_curves = [*curves, *(rate_of(other_run) for _, _, other_run in _other_runs(verdict))]
    top = max(1.0, *ends, *(float(curve.y.max()) for curve in all_curves if len(curve)))
    unit = unit_for(top, RATES)
    strokes = _other_strokes(verdict, rate_of, unit.divisor)
    strokes += _lines(*(_scaled(curve, unit.divisor) for curve in curves))
    strokes += _ends(capture, [unit.scale(end) for end in ends], unit.scale(top) * 1.05)
    if path.rate_over_time:
        over = Curve(*(np.array(column) for column in zip(*path.rate_over_time, strict=True)))
        strokes.append(Stroke([decimate(_scaled(over, unit.divisor), POINTS)], MUTED, 0.8, 0.8))
    return Panel(Axis(f"Goodput ({unit.name})", 0, unit.scale(top) * 1.05, unit.name), strokes)


def _ends(capture: FlowTrace, ends: Sequence[float], most: float) -> list[Stroke]:
    """Return thin lines across the panel, at either end of an interval."""
    across = np.array([0.0, capture.duration_s])
    curves = [Curve(across, np.array([end, end])) for end in ends if end <= most]
    return [Stroke(curves, MUTED, 0.8, 0.9)] if curves else []


def _payload_bps(verdict: Verdict) -> float:
    """Return the most payload that the path's link carries in a second, by the upper end of its rate."""
    path = verdict.network.middle
    most = max(path.link_bps, verdict.flow.path.rate_bps.high or 0.0)
    return most * PAYLOAD_BYTES / IP_BYTES


def _per_bin(flow: FlowTrace, end_s: float, link_bps: float | None) -> Curve:
    """Return the delivered bytes as a rate, in bins of at least 200 ms.

    A repaired loss acknowledges at once what arrived before: bytes count when a link of `link_bps` can have
    delivered them at the latest, so that no bin exceeds it.
    """
    bin_s = nice_bin_s(end_s, 150, 0.2)
    edges = np.arange(0.0, min(flow.duration_s, end_s) + 1e-9, bin_s)
    if len(edges) < 2:
        return Curve(np.empty(0), np.empty(0))
    at, arrived = flow.at_s, flow.acked_bytes
    if link_bps is not None:
        through = link_bps / 8 * at
        arrived = np.maximum.accumulate((arrived - through)[::-1])[::-1] + through
    delivered = np.interp(edges, np.concatenate(([0.0], at)), np.concatenate(([0.0], arrived)))
    return Curve((edges[:-1] + edges[1:]) / 2, np.diff(delivered) * 8 / bin_s)


def _flight(verdict: Verdict) -> Panel | None:
    capture, run = verdict.capture, verdict.run
    runs = [capture, run, *(other_run for _, _, other_run in _other_runs(verdict))]
    top = max((float(flow.flight_bytes.max()) for flow in runs if len(flow.flight_bytes)), default=0.0)
    if top <= 0:
        return None
    unit = unit_for(top, SIZES)
    strokes = _other_strokes(verdict, lambda flow: Curve(flow.at_s, flow.flight_bytes), unit.divisor)
    strokes += _lines(
        *(_scaled(Curve(trace.at_s, trace.flight_bytes), unit.divisor) for trace in (capture, run))
    )
    return Panel(Axis(f"In flight ({unit.name})", 0, unit.scale(top) * 1.05, unit.name), strokes)
