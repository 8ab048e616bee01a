"""Videos: what viewers saw as a table, and the players' bit rates and buffers over time as a figure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from dragstrip.display import look, quantity
from dragstrip.display.quantity import RATES, unit_for
from dragstrip.display.table import Cell, Table
from dragstrip.report.figure import Axis, Figure, Panel, Stroke, TimeLines
from dragstrip.report.load import ColumnTable, RecordedFlow, flows_of, recording_of
from dragstrip.report.series import Curve
from dragstrip.report.timeline import WIDTHS, marks
from dragstrip.results.comparison.setups import Contender, Setup, sampled_flows
from dragstrip.results.comparison.video import SEEN, VideoColumn, plays

PLAYERS_MAX = 8
"""Curves of more players than this hide each other."""


def table(setup: Setup, columns: Sequence[VideoColumn] = SEEN) -> Table | None:
    """Return a row per contender with videos (with `LIVE`: with live ones), or None if nobody has some."""
    players = [contender for contender in setup.contenders if plays(contender, columns[0].entry)]
    if not players:
        return None
    heads = [
        ("Flow" if setup.together else "Algorithm", ""),
        *((metric.head, metric.meaning) for metric in columns),
    ]
    body = [
        [
            Cell(contender.title, colour=contender.colour, number=False),
            *(Cell(metric.text(metric.of(contender))) for metric in columns),
        ]
        for contender in players
    ]
    caption = f"Medians over {setup.repeats} runs." if setup.repeats > 1 else ""
    deciding = frozenset({heads[0][0], "Bit rate", "Stalls", "Stalled", "Frame p95", "Late"})
    return Table(heads, body, caption, [contender.cc for contender in players], deciding)


def figure(setup: Setup) -> Figure | None:
    """Draw bit rate and buffer of the players of each contender's first run; None without players."""
    return _time_lines(
        setup,
        list(_players(setup))[:PLAYERS_MAX],
        "Bit rate",
        lambda buffers: Axis("Buffer (s)", 0, max(_top(buffers), look.HEADROOM), "s"),
        "video",
        "Videos: bit rate and buffer",
        "Bit rate of the segments and the player's buffer over time",
    )


def live_figure(setup: Setup) -> Figure | None:
    """Draw target and frame delay of the live videos of each contender's first run; None without them."""
    return _time_lines(
        setup,
        list(_senders(setup))[:PLAYERS_MAX],
        "Target",
        lambda delays: Axis("Frame delay (ms)", 0, _top(delays) or 1.0, "ms"),
        "live-video",
        "Live videos: target bit rate and frame delay",
        "Target bit rate of SCReAMv2 and delay of complete frames over time",
    )


def _time_lines(
    setup: Setup,
    flows: Sequence[tuple[Contender, Curve, Curve]],
    rate_title: str,
    axis_of: Callable[[list[Stroke]], Axis],
    name: str,
    title: str,
    caption: str,
) -> Figure | None:
    """Draw a rate in steps, and below it another quantity, of each flow; None without flows."""
    if not flows:
        return None
    unit = unit_for(max(float(curve.y.max()) for _, curve, _ in flows), RATES)
    rates = [_stroke(flow, Curve(curve.x, curve.y / unit.divisor), step=True) for flow, curve, _ in flows]
    strokes = [_stroke(flow, curve) for flow, _, curve in flows]
    panels = [
        Panel(Axis(f"{rate_title} ({unit.name})", 0, _top(rates), unit.name), rates),
        Panel(axis_of(strokes), strokes),
    ]
    listed = quantity.listing(list(dict.fromkeys(flow.title for flow, _, _ in flows)))
    return Figure(
        name,
        title,
        f"{caption}: {listed}.",
        TimeLines(Axis("Time (s)", 0, setup.end_s, "s"), panels, WIDTHS[0], 120, marks(setup)),
        list(dict.fromkeys(flow.cc for flow, _, _ in flows)),
    )


def _senders(setup: Setup) -> Iterator[tuple[Contender, Curve, Curve]]:
    """Yield target in bit/s and delay in ms of each live video's complete frames, by time of capture."""
    for contender in setup.contenders:
        bout = contender.bouts[0]
        for flow in sampled_flows(flows_of(bout)):
            rows = recording_of(bout.run).frames
            if flow.flow in rows.rows:
                captured_ns = rows.column("time_ns", flow.flow)
                delay_ms = (rows.column("arrived_ns", flow.flow) - captured_ns) / 1e6
                complete = delay_ms >= 0
                if not complete.any():
                    continue
                target = Curve(captured_ns / 1e9, rows.column("target_bps", flow.flow))
                yield contender, target, Curve(captured_ns[complete] / 1e9, delay_ms[complete])


def _top(strokes: list[Stroke]) -> float:
    return max(float(curve.y.max()) for stroke in strokes for curve in stroke.curves) * look.HEADROOM


def _stroke(contender: Contender, curve: Curve, *, step: bool = False) -> Stroke:
    return Stroke(
        [curve], contender.colour, 1.3, dash=contender.dash, step=step, label=contender.title, main=True
    )


def _players(setup: Setup) -> Iterator[tuple[Contender, Curve, Curve]]:
    """Yield each player's bit rate in bit/s from when a segment was asked for, and its buffer in s."""
    for contender in setup.contenders:
        bout = contender.bouts[0]
        for flow in sampled_flows(flows_of(bout)):
            rows = recording_of(bout.run).video
            if flow.flow in rows.rows:
                asked_s = rows.column("asked_ns", flow.flow) / 1e9
                yield contender, Curve(asked_s, rows.column("rate_bps", flow.flow)), _buffer(rows, flow)


def _buffer(rows: ColumnTable, flow: RecordedFlow) -> Curve:
    """Return the buffer over time: it grows when a segment arrives, and shrinks while playback goes on."""
    arrived_s = rows.column("time_ns", flow.flow) / 1e9
    level_s = rows.column("buffer_ns", flow.flow) / 1e9
    playing = rows.column("playing", flow.flow).astype(bool)
    until_s = np.append(arrived_s[1:], max(flow.stop_s, arrived_s[-1]))
    left_s = np.where(playing, np.maximum(level_s - (until_s - arrived_s), 0.0), level_s)
    empty_s = np.where(playing, np.minimum(arrived_s + level_s, until_s), until_s)
    before_s = np.append(0.0, left_s[:-1])
    x = np.stack([arrived_s, arrived_s, empty_s], axis=1).ravel()
    y = np.stack([before_s, level_s, left_s], axis=1).ravel()
    ends = np.append(np.append(flow.start_s, x), until_s[-1])
    return Curve(ends, np.append(np.append(0.0, y), left_s[-1]))
