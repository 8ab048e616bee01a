"""The curves of a set-up, read from the recordings, before they are drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from dragstrip.display import quantity
from dragstrip.report.load import FloatArray, RecordedFlow, RunRecording, flows_of, middle_of, recording_of
from dragstrip.report.series import EMPTY, Curve, cdf, decimate, jain, middle, nice_bin_s, rate_per_bin
from dragstrip.results.comparison.setups import Contender, Json, Run, Setup, sampled_flows
from dragstrip.results.measures import THROUGHPUT_NS, rates_bps

# A panel is about 260 points wide: two peaks and two troughs to each of them lose nothing.
POINTS_MAIN = 1200
POINTS_PALE = 240
# More lines than this in one panel: all are pale, and the median of them is drawn over them.
LINES_MAX = 4
PALE_LINES_MAX = 40
SHARE_BINS = 60
SHARES_MAX = 40


@dataclass
class CurvePanel:
    """The lines of one small panel: the main ones, and those in the background."""

    main: list[Curve] = field(default_factory=list)
    pale: list[Curve] = field(default_factory=list)
    dashed: list[Curve] = field(default_factory=list)

    def greatest(self) -> float:
        """Return the highest value of any line, or 0 if there is none."""
        return max((float(c.y.max()) for c in [*self.main, *self.pale] if len(c)), default=0.0)


@dataclass
class Curves:
    """All curves of one contender: rates in bit/s, times in ms, sizes in bytes, `x` in seconds."""

    contender: Contender
    rtt_cdf: Curve
    rtt_median_ms: float | None
    throughput_cdf: Curve
    throughput_median_bps: float | None
    panels: dict[str, CurvePanel]


@dataclass
class FlowShares:
    """Shares of the bytes that arrived, over time and in total, and their fairness."""

    bin_s: float
    time_s: FloatArray
    bps: dict[str, FloatArray]
    total: dict[str, float]
    """New bytes in the whole run, by part."""
    jain: Curve
    """Jain's index of the active flows in each bin; with `max_min`, of the ratio to the max-min rates."""
    max_min: bool = False
    title_suffix: str = ""
    """A suffix of the title that names the set of competing flows; empty if there is only one set."""


def curves_of(setup: Setup) -> list[Curves]:
    """Return the curves of every contender, in the order of the contenders."""
    return [_curves(setup, contender) for contender in setup.contenders]


def captured_curves_of(setup: Setup) -> list[Curves]:
    """Return the curves with distributions from captures at both ends, where these were recorded."""
    return [
        _captured(contender, curves)
        for contender, curves in zip(setup.contenders, curves_of(setup), strict=True)
    ]


def _captured(contender: Contender, curves: Curves) -> Curves:
    rtts = _pooled([_spp_ms(rec, flow) for rec, flow in _flows(contender)])
    rates = _pooled([_tcpstat_bps(rec, flow) for rec, flow in _flows(contender)])
    if not len(rtts):
        return curves
    return replace(
        curves,
        rtt_cdf=cdf(rtts),
        rtt_median_ms=middle_of(rtts),
        throughput_cdf=cdf(rates),
        throughput_median_bps=middle_of(rates) if len(rates) else None,
    )


def throughput_span_s(setup: Setup) -> float:
    """Return the span of one throughput sample in seconds, as in measures.py."""
    return max(THROUGHPUT_NS / 1e9, recording_of(setup.runs[0]).interval_s)


def timeline_bin_s(setup: Setup) -> float:
    """Return the bin of throughput over time in seconds."""
    return nice_bin_s(setup.duration_s, 150)


def _curves(setup: Setup, contender: Contender) -> Curves:
    rtts = _pooled([_rtt_curve(rec, flow).y for rec, flow in _flows(contender)])
    rates = _pooled([_rates_bps(rec, flow) for rec, flow in _flows(contender)])
    return Curves(
        contender=contender,
        rtt_cdf=cdf(rtts),
        rtt_median_ms=middle_of(rtts) if len(rtts) else None,
        throughput_cdf=cdf(rates),
        throughput_median_bps=middle_of(rates) if len(rates) else None,
        panels={
            "throughput": _panel(setup, contender, _throughput_line(timeline_bin_s(setup))),
            "rtt": _panel(setup, contender, _rtt_curve),
            "cwnd": _cwnd_panel(setup, contender),
            "queue": _queue_panel(setup, contender),
        },
    )


def _flows(contender: Contender) -> Iterator[tuple[RunRecording, RecordedFlow]]:
    for bout in contender.bouts:
        for flow in sampled_flows(flows_of(bout)):
            yield recording_of(bout.run), flow


def _pooled(arrays: list[FloatArray]) -> FloatArray:
    values = np.concatenate([np.empty(0), *arrays])
    return np.asarray(values[np.isfinite(values)], dtype=np.float64)


def _rate_curve(recording: RunRecording, flow: RecordedFlow, column: str, bin_s: float) -> Curve:
    received = recording.received
    return rate_per_bin(
        received.column("time_ns", flow.flow),
        received.column(column, flow.flow),
        flow.start_s,
        flow.stop_s,
        bin_s,
    )


def _rates_bps(recording: RunRecording, flow: RecordedFlow) -> FloatArray:
    """Return the arrival rate in each second of the flow's life, as `throughput_bps` in measures.py."""
    time_s = recording.received.column("time_ns", flow.flow) / 1e9
    inside = (time_s - recording.interval_s >= flow.start_s - 1e-9) & (time_s <= flow.stop_s + 1e-9)
    inside &= ~recording.is_part(time_s)
    wire_bytes = recording.received.column("wire_bytes", flow.flow)[inside]
    return rates_bps(wire_bytes, round(recording.interval_s * 1e9))


def _spp_ms(recording: RunRecording, flow: RecordedFlow) -> FloatArray:
    """Return the round trips between captures in ms, as `spp_ms` in measures.py."""
    time_s = recording.spp.column("time_ns", flow.flow) / 1e9
    inside = (time_s >= flow.start_s) & (time_s <= flow.stop_s)
    return np.asarray(recording.spp.column("rtt_ns", flow.flow)[inside] / 1e6, dtype=np.float64)


def _tcpstat_bps(recording: RunRecording, flow: RecordedFlow) -> FloatArray:
    """Return the rate per second in the receiver's capture, as `tcpstat_1s_bps` in measures.py."""
    time_s = recording.tcpstat.column("time_ns", flow.flow) / 1e9
    inside = (time_s - 1.0 >= flow.start_s - 1e-9) & (time_s <= flow.stop_s + 1e-9)
    return rates_bps(recording.tcpstat.column("ip_bytes", flow.flow)[inside], THROUGHPUT_NS)


def _throughput_line(bin_s: float) -> Callable[[RunRecording, RecordedFlow], Curve]:
    return lambda recording, flow: _rate_curve(recording, flow, "wire_bytes", bin_s)


def _rtt_curve(recording: RunRecording, flow: RecordedFlow) -> Curve:
    """Return every RTT sample, or if they were not recorded, the latest at each interval with an ACK.

    The rule is that of crates/measures/src/series.rs.
    """
    has_all = flow.flow in recording.rtts.rows
    table = recording.rtts if has_all else recording.samples
    time_s = table.column("time_ns", flow.flow) / 1e9
    inside = (time_s >= flow.start_s) & (time_s <= flow.stop_s)
    if not has_all and "bytes_acked" in table.columns:
        rows = np.flatnonzero(inside)
        acked = table.column("bytes_acked", flow.flow)[rows]
        inside[rows[1:][acked[1:] <= acked[:-1]]] = False
    return Curve(time_s[inside], table.column("rtt_ns", flow.flow)[inside] / 1e6)


def _cwnd_curve(recording: RunRecording, flow: RecordedFlow) -> Curve:
    table = recording.samples
    return Curve(table.column("time_ns", flow.flow) / 1e9, table.column("cwnd_bytes", flow.flow))


def _panel(
    setup: Setup, contender: Contender, curve: Callable[[RunRecording, RecordedFlow], Curve]
) -> CurvePanel:
    """Return the first run's flows as main lines, with the repeats pale behind them."""
    first = [
        curve(recording_of(contender.bouts[0].run), flow)
        for flow in sampled_flows(flows_of(contender.bouts[0]))
    ]
    repeat_curves = [
        curve(recording_of(bout.run), flow)
        for bout in contender.bouts[1:]
        for flow in sampled_flows(flows_of(bout))
    ]
    if len(first) > LINES_MAX:
        bold = middle(first, max(timeline_bin_s(setup), 0.5))
        return CurvePanel(main=[bold], pale=[decimate(c, POINTS_PALE) for c in first[:PALE_LINES_MAX]])
    return CurvePanel(
        main=[decimate(c, POINTS_MAIN) for c in first],
        pale=[decimate(c, POINTS_PALE) for c in repeat_curves[:PALE_LINES_MAX]],
    )


def _cwnd_panel(setup: Setup, contender: Contender) -> CurvePanel:
    """Return the window and, for a single flow, the slow-start threshold once there is one."""
    if not contender.is_tcp:
        return CurvePanel()
    panel = _panel(setup, contender, _cwnd_curve)
    bout = contender.bouts[0]
    flows = flows_of(bout)
    if len(flows) == 1:
        table, flow = recording_of(bout.run).samples, flows[0].flow
        threshold = table.column("ssthresh_bytes", flow)
        # Above twice the greatest window it is a stand-in for infinity.
        threshold = np.where(threshold <= 2 * panel.greatest(), threshold, np.nan)
        panel.dashed = [decimate(Curve(table.column("time_ns", flow) / 1e9, threshold), POINTS_PALE)]
    return panel


def _queue_panel(setup: Setup, contender: Contender) -> CurvePanel:
    link = setup.queue_link(contender)
    curves = [
        Curve(rec.queues.column("time_ns", link) / 1e9, rec.queues.column("backlog_bytes", link))
        for rec in (recording_of(bout.run) for bout in contender.bouts)
        if link is not None
    ]
    return CurvePanel(
        main=[decimate(c, POINTS_MAIN) for c in curves[:1]],
        pale=[decimate(c, POINTS_PALE) for c in curves[1:PALE_LINES_MAX]],
    )


def shares_of(setup: Setup) -> list[FlowShares]:
    """Return the shares in the first run with several flows, one entry per set of competing flows.

    Shares are by contender if several share the run, else by flow: the `SHARES_MAX` largest, and the others
    together.
    """
    run = next((r for r in setup.runs if len(r.flows) > 1), None)
    if run is None:
        return []
    sets = run.summary.get("competing") or []
    several = [competing_set for competing_set in sets if len(competing_set["flows"]) > 1]
    return [_shares(setup, run, competing_set, with_suffix=len(sets) > 1) for competing_set in several]


def _shares(setup: Setup, run: Run, competing: Json, with_suffix: bool) -> FlowShares:
    fair_bps = dict(zip(competing["flows"], competing.get("max_min_bps") or [], strict=False))
    competing_flows = set(competing["flows"])
    recording = recording_of(run)
    bin_s = nice_bin_s(run.duration_s, SHARE_BINS)
    bins = max(1, int(run.duration_s / bin_s + 1e-6))
    flows = _rates_per_bin(recording, bin_s, bins)
    titles = {
        row["flow"]: contender.title if setup.together else str(row["label"])
        for contender in setup.contenders
        for bout in contender.bouts
        if bout.run is run
        for row in bout.results
    }
    received = {row["flow"]: row.get("bytes_received") or 0 for row in run.flows}
    bps: dict[str, FloatArray] = {}
    total: dict[str, float] = {}
    alive = []
    time_s = (np.arange(bins, dtype=np.float64) + 0.5) * bin_s
    for number, flow in enumerate(recording.flows):
        if flow.flow in competing_flows:
            title = titles[flow.flow]
            bps[title] = bps.get(title, np.zeros(bins)) + flows[number]
            total[title] = total.get(title, 0.0) + received[flow.flow]
            first, last = flow.start_s - 1e-9, flow.stop_s + 1e-9
            lives = (time_s - bin_s / 2 >= first) & (time_s + bin_s / 2 <= last)
            alive.append(np.where(lives, flows[number] / fair_bps.get(flow.flow, 1.0), np.nan))
    bps, total = _largest(bps, total)
    index = jain(np.array(alive))
    finite = np.isfinite(index)
    evenness = Curve(time_s[finite], index[finite]) if finite.any() else EMPTY
    suffix = f" of {quantity.listing(list(bps)[:3])}" + (" …" if len(bps) > 3 else "") if with_suffix else ""
    return FlowShares(bin_s, time_s, bps, total, evenness, bool(fair_bps), suffix)


def _rates_per_bin(recording: RunRecording, bin_s: float, bins: int) -> FloatArray:
    """Return new data in bit/s in the shape flows × bins: `rate_per_bin` for all flows at once."""
    table, count = recording.received, len(recording.flows)
    rows = [table.rows.get(flow.flow, np.empty(0, dtype=np.intp)) for flow in recording.flows]
    owner = np.repeat(np.arange(count), [len(flow_rows) for flow_rows in rows])
    at = np.concatenate([np.empty(0, dtype=np.intp), *rows])
    index = np.ceil(table.columns["time_ns"][at] / 1e9 / bin_s - 1e-6).astype(np.int64) - 1
    inside = (index >= 0) & (index < bins)
    sums = np.bincount(
        (owner * bins + index)[inside],
        weights=table.columns["new_bytes"][at][inside],
        minlength=count * bins,
    )
    return np.asarray(sums.reshape(count, bins) * 8.0 / bin_s, dtype=np.float64)


def _largest(
    bps: dict[str, FloatArray], total: dict[str, float]
) -> tuple[dict[str, FloatArray], dict[str, float]]:
    """Return the largest shares in their order, and the sum of the others."""
    if len(bps) <= SHARES_MAX:
        return bps, total
    largest = set(sorted(bps, key=lambda title: -total[title])[:SHARES_MAX])
    rest = f"{len(bps) - len(largest)} others"
    rest_bps = np.sum([values for title, values in bps.items() if title not in largest], axis=0)
    return (
        {title: values for title, values in bps.items() if title in largest} | {rest: rest_bps},
        {title: size for title, size in total.items() if title in largest}
        | {rest: sum(size for title, size in total.items() if title not in largest)},
    )
