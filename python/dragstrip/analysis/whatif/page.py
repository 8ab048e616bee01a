"""A verdict as one HTML file: the sentence, the run over the capture, and the tables."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from dragstrip import __version__
from dragstrip.analysis.inference.console import properties
from dragstrip.analysis.whatif import wording
from dragstrip.analysis.whatif.flow_trace import FlowTrace
from dragstrip.analysis.whatif.verdict import Verdict, flow_name
from dragstrip.display import quantity
from dragstrip.display.colours import BLACK, GREEN, MUTED, PALETTE, ROSE, SKY, VERMILION
from dragstrip.display.quantity import RATES, SIZES, unit_for
from dragstrip.model.scenario.paths import IP_BYTES, PAYLOAD_BYTES
from dragstrip.report import viewer
from dragstrip.report.figure import Axis, Figure, Panel, Rule, Stroke, TimeLines
from dragstrip.report.page import figure as drawn
from dragstrip.report.page import style
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


def page(verdict: Verdict, document: Mapping[str, Any], addresses: bool) -> str:
    """Return the page; everything from outside is escaped, and addresses only appear if asked for."""
    flow = verdict.flow
    name = str(flow.file) if addresses else flow.file.name
    title = f"{name}, {flow_name(flow, addresses)}"
    parts = [
        f'<p class="kicker">Dragstrip {__version__} · what if</p>',
        f"<h1>{_text(title)}</h1>",
        f'<p class="lead">{_text(document["sentence"])}</p>',
        "<h2>What others would have done</h2>",
        _what_if(document),
        "<h2>The capture, and a run on the inferred path</h2>",
        f'<div class="figures one">{drawn(over_time(verdict))}</div>',
        f'<p class="note">{_text(_legend(verdict))}</p>',
        f"<h2>How well the run explains it: {_text(verdict.fit.grade)}</h2>",
        _fit(document),
        _list(verdict.reasons),
        "<h2>The path</h2>",
        _path(verdict),
        _list(verdict.network.assumed),
        "<h2>Congestion control</h2>",
        _algorithm(verdict),
        "<h2>Again</h2>",
        f"<p><code>{_text(document['experiment'])}</code></p>",
    ]
    look, script = style(), viewer.script()
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f'<meta http-equiv="Content-Security-Policy" content="{viewer.policy(look, script)}">'
        f"<title>{_text(title)} – Dragstrip</title><style>{look}</style>"
    )
    body = f'<main>{"".join(parts)}</main><script type="module">{script}</script>'
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>{body}</body></html>\n'


def _text(content: object) -> str:
    return html.escape(str(content))


def _table(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    top = "".join(f'<th scope="col">{_text(head)}</th>' for head in heads)
    rows = "".join(f"<tr>{_row(line)}</tr>" for line in lines)
    table = f"<table><thead><tr>{top}</tr></thead><tbody>{rows}</tbody></table>"
    return f'<div class="scroll" tabindex="0">{table}</div>'


def _row(line: Sequence[str]) -> str:
    cells = "".join(f"<td>{_text(cell)}</td>" for cell in line[1:])
    return f'<th scope="row">{_text(line[0])}</th>{cells}'


def _list(items: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{_text(item)}</li>' for item in items)}</ul>" if items else ""


def _what_if(document: Mapping[str, Any]) -> str:
    if not document["raced"]:
        return "<p>Nothing was raced on a path that does not explain the capture.</p>"
    lines = [
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
    changes = "".join(f", {name.replace('_', ' ')} {value}" for name, value in document["changes"].items())
    note = f"On the inferred path{changes}; in brackets the range over {runs} paths that it may be."
    heads = ("", "goodput", "RTT, median", "RTT, 95 %", "retransmitted")
    return f'{_table(heads, lines)}<p class="note">{_text(note)}</p>'


def _span(interval: Mapping[str, float] | None, text: Any) -> str:
    if interval is None:
        return "–"
    value, low, high = (text(interval[name]) for name in ("value", "low", "high"))
    return str(value) if low == high else f"{value} ({low} to {high})"


def _fit(document: Mapping[str, Any]) -> str:
    explains, capture = document["explains"], document["capture"]
    run, errors = explains["run"], explains["rtt_errors"] or {}
    lines = [("goodput", quantity.rate(capture["goodput_bps"]), quantity.rate(run["goodput_bps"]))]
    shares = [explains["goodput_error"]]
    for name, error in errors.items():
        theirs, ours = (quantity.milliseconds(side[f"rtt_ms_{name}"]) for side in (capture, run))
        lines.append((f"RTT, {name}", theirs, ours))
        shares.append(error)
    cells: list[Sequence[str]] = [
        (*line, f"{100 * share:+z.1f} %") for line, share in zip(lines, shares, strict=True)
    ]
    again = explains["retransmissions"]
    cells.append(("segments retransmitted", str(again["capture"]), str(again["run"]), ""))
    apart = explains["delivered_apart"]
    cells.append(
        (
            "delivered bytes apart at most",
            "",
            quantity.size(abs(apart["bytes"])),
            f"{100 * apart['share']:.1f} %",
        )
    )
    return _table(("", "capture", "run", "error"), cells)


def _path(verdict: Verdict) -> str:
    path = verdict.flow.path
    table = _table(("", "value and interval, or why there is none"), properties(path))
    return table + _list(path.notes)


def _algorithm(verdict: Verdict) -> str:
    if verdict.answer is None:
        return f"<p>{_text(verdict.algorithm)}, as given.</p>"
    lines = [(name, f"{score:.2f}", f"{apart:.2f}") for name, score, apart in verdict.answer.scores]
    table = _table(
        ("candidate", "score", "distance from its runs, over that of these among themselves"), lines
    )
    sentence = _text(wording.answer(verdict.answer))
    return f"<p>{sentence}</p><details><summary>All candidates</summary>{table}</details>"


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
