"""Figures of a run that rows judge, each from the run's entry of the result document alone.

A replay of a row gives the same entry (`dragstrip compare --json`), so every figure here can be checked by
hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dragstrip import _core
from dragstrip.model.scenario.paths import FRAME_BYTES, PAYLOAD_BYTES
from dragstrip.results.comparison.transfers import Class, transfers_in
from dragstrip.studies.passport.rows import RowFigure, Scenario, Summary


def subjects(summary: Summary, scenario: Scenario) -> Sequence[Summary]:
    """The entries of the algorithm's own flows."""
    flows: Sequence[Summary] = summary["flows"]
    return flows if scenario.subjects is None else flows[: scenario.subjects]


def neighbours(summary: Summary, scenario: Scenario) -> Sequence[Summary]:
    """The entries of the flows beside the algorithm's, those of UDP left out."""
    count = len(summary["flows"]) if scenario.subjects is None else scenario.subjects
    return [flow for flow in summary["flows"][count:] if flow["cc"] != "udp"]


def _total_bps(flows: Sequence[Summary]) -> float:
    return float(sum(flow["goodput_bps"] for flow in flows))


def _goodput(summary: Summary, scenario: Scenario) -> float | None:
    return _total_bps(subjects(summary, scenario)) / 1e6


def _utilisation(summary: Summary, scenario: Scenario) -> float | None:
    rate = _core.parse_rate(str(scenario.options["rate"]))
    return _total_bps(subjects(summary, scenario)) / rate


def _neighbour_goodput(summary: Summary, scenario: Scenario) -> float | None:
    return _total_bps(neighbours(summary, scenario)) / 1e6


def _resent(flows: Sequence[Summary]) -> float | None:
    segments_sent = sum(flow["segments_sent"] for flow in flows)
    return sum(flow["retransmits"] for flow in flows) / segments_sent if segments_sent else None


def _base_ms(scenario: Scenario) -> float:
    return _core.parse_time(str(scenario.options["rtt"])) / 1e6


def _rtt_ratio(summary: Summary, scenario: Scenario) -> float | None:
    median = subjects(summary, scenario)[0]["rtt_ms"]["p50"]
    return _base_ms(scenario) / median if median else None


def _queue_bdp(summary: Summary, scenario: Scenario) -> float | None:
    backlog = summary["queues"][0]["backlog_bytes"]["p50"] if summary["queues"] else None
    bdp = _core.parse_rate(str(scenario.options["rate"])) / 8 * _base_ms(scenario) / 1e3
    return None if backlog is None else backlog / bdp


def _queue_packets(summary: Summary, scenario: Scenario) -> float | None:
    backlog = summary["queues"][0]["backlog_bytes"]["p50"] if summary["queues"] else None
    return None if backlog is None else backlog / FRAME_BYTES


def _ping(percentile: str, summary: Summary) -> float | None:
    pings = summary["probes"][0] if summary["probes"] else None
    return pings["rtt_ms"][percentile] if pings else None


def _rpm(summary: Summary, scenario: Scenario) -> float | None:
    del scenario
    median = _ping("p50", summary)
    return 60000 / median if median else None


def _jain(summary: Summary, scenario: Scenario) -> float | None:
    del scenario
    figure: float | None = summary["jain"]
    return figure


def _least_share(summary: Summary, scenario: Scenario) -> float | None:
    del scenario
    shares = [flow["share"] for flow in summary["flows"] if flow["cc"] != "udp"]
    if not shares or None in shares:
        return None
    return float(min(shares)) * len(shares)


def _sides(summary: Summary, scenario: Scenario) -> list[tuple[float, str]]:
    """The mean goodput and the name of the algorithm's side and its neighbours', or of each of its flows."""
    subject_flows, neighbour_flows = subjects(summary, scenario), neighbours(summary, scenario)
    if not neighbour_flows:
        return [(flow["goodput_bps"], flow["label"]) for flow in subject_flows]
    name = "cc" if subject_flows[0]["cc"] != neighbour_flows[0]["cc"] else "label"
    return [(_total_bps(side) / len(side), side[0][name]) for side in (subject_flows, neighbour_flows)]


def _imbalance(summary: Summary, scenario: Scenario) -> float | None:
    sides = [goodput for goodput, _ in _sides(summary, scenario)]
    return max(sides) / min(sides) if min(sides) > 0 else IMBALANCE_MAX


def _smaller_side(summary: Summary, scenario: Scenario) -> str:
    return min(_sides(summary, scenario))[1]


IMBALANCE_MAX = 1e6
"""The ratio that stands for a flow without a byte."""


def _own_share(summary: Summary, scenario: Scenario) -> float | None:
    subject_bps = _total_bps(subjects(summary, scenario))
    total_bps = subject_bps + _total_bps(neighbours(summary, scenario))
    return subject_bps / total_bps if total_bps else None


def _times(flows: Sequence[Summary]) -> list[float]:
    """Seconds from start to stop, of a flow that has not finished to the end of the run."""
    return [flow["stop_s"] - flow["start_s"] for flow in flows]


def _completion(summary: Summary, scenario: Scenario) -> float | None:
    return max(_times(subjects(summary, scenario)))


def _mean_completion(flows: Sequence[Summary]) -> float | None:
    times = _times(flows)
    return sum(times) / len(times) if times else None


def _long_share(summary: Summary, scenario: Scenario) -> float | None:
    long_bps = _total_bps(subjects(summary, scenario))
    neighbour_flows = neighbours(summary, scenario)
    link_bps = long_bps + _total_bps(neighbour_flows) / len(neighbour_flows)
    return long_bps / link_bps if link_bps else None


def _slowdown(percentile: float, summary: Summary, scenario: Scenario) -> float | None:
    """A percentile, interpolated linearly, of the measure `slowdown` of the algorithm's transfers."""
    return Class("all", transfers_in(subjects(summary, scenario))).slowdown(percentile)


def _timeouts(summary: Summary, scenario: Scenario) -> float | None:
    counts = [flow.get("timeouts") for flow in subjects(summary, scenario)]
    return None if None in counts else float(sum(filter(None, counts)))


def _mos(summary: Summary, scenario: Scenario) -> float | None:
    del scenario
    pings: Any = summary["probes"][0] if summary["probes"] else None
    if pings is None or pings["rtt_ms"]["p95"] is None:
        return None
    pings_sent = summary["duration_s"] / PING_INTERVAL_S
    return mos(
        pings["rtt_ms"]["p95"] / 2 + FRAMING_MS + JITTER_BUFFER_MS, 100 * min(1.0, pings["lost"] / pings_sent)
    )


PING_INTERVAL_S = 0.2
FRAMING_MS = 20.0
JITTER_BUFFER_MS = 40.0
PACKET_LOSS_ROBUSTNESS = 4.3
"""Bpl of G.711 without concealment."""


def mos(delay_ms: float, loss_percent: float) -> float:
    """The mean opinion score of a G.711 call with this mouth-to-ear delay in ms and loss in per cent.

    Source: the E-model, ITU-T G.107, with the delay term of Cole and Rosenbluth (CCR 31(2), 2001).
    """
    delay = 0.024 * delay_ms + (0.11 * (delay_ms - 177.3) if delay_ms > 177.3 else 0.0)
    loss = 95 * loss_percent / (loss_percent + PACKET_LOSS_ROBUSTNESS)
    r = 93.2 - delay - loss
    if r <= 0:
        return 1.0
    return min(4.5, max(1.0, 1 + 0.035 * r + 7e-6 * r * (r - 60) * (100 - r)))


def _video(name: str, summary: Summary) -> float | None:
    videos = [flow["video"] for flow in summary["flows"] if flow.get("video")]
    values = [float(video[name]) for video in videos if video[name] is not None]
    return sum(values) / len(values) if values else None


def _live(name: str, summary: Summary) -> float | None:
    """The mean of a figure of the live videos over RTP among a run's flows."""
    values = [flow["rtp"][name] for flow in summary["flows"] if flow.get("rtp")]
    figures = [float(value) for value in values if value is not None]
    return sum(figures) / len(figures) if figures else None


def _breaker(summary: Summary, scenario: Scenario) -> float | None:
    del scenario
    live = [flow["rtp"] for flow in summary["flows"] if flow.get("rtp")]
    return float(sum(video["breaker_s"] is not None for video in live)) if live else None


def _recovery(summary: Summary, scenario: Scenario) -> float | None:
    del scenario
    entries = summary.get("recoveries") or []
    times = [entry["span_s"] if entry["recovery_s"] is None else entry["recovery_s"] for entry in entries]
    return sum(times) / len(times) if times else None


def _wasted(summary: Summary, scenario: Scenario) -> float | None:
    flows = subjects(summary, scenario)
    bytes_sent = sum(flow["segments_sent"] for flow in flows) * PAYLOAD_BYTES
    return max(0.0, 1 - sum(flow["bytes_received"] for flow in flows) / bytes_sent) if bytes_sent else None


GOODPUT = RowFigure("goodput", "Mbit/s", True, _goodput, "sum of the algorithm's flows[].goodput_bps")
UTILISATION = RowFigure("utilisation", "of the rate", True, _utilisation, "GOODPUT over the link's rate")
NEIGHBOUR = RowFigure("neighbour", "Mbit/s", True, _neighbour_goodput, "sum of the other flows[].goodput_bps")
RESENT = RowFigure(
    "resent",
    "of all segments",
    False,
    lambda summary, scenario: _resent(subjects(summary, scenario)),
    "retransmits over segments_sent of the algorithm's flows",
    0.001,
)
WASTED = RowFigure(
    "wasted",
    "of what is sent",
    False,
    _wasted,
    "1 less bytes_received over segments_sent of 1448 bytes: lost, or received twice",
    0.001,
)
NEIGHBOUR_RESENT = RowFigure(
    "neighbour resent",
    "of all segments",
    False,
    lambda summary, scenario: _resent(neighbours(summary, scenario)),
    "retransmits over segments_sent of the other flows",
    0.001,
)
RTT_RATIO = RowFigure("rtt ratio", "base over median", True, _rtt_ratio, "--rtt over flows[0].rtt_ms.p50")
QUEUE = RowFigure("queue", "BDP", False, _queue_bdp, "queues[0].backlog_bytes.p50 over rate x rtt", 0.01)
QUEUE_PACKETS = RowFigure(
    "queued", "packets", None, _queue_packets, "queues[0].backlog_bytes.p50 over 1514 bytes"
)
PING_P95 = RowFigure(
    "ping p95", "ms", False, lambda summary, _: _ping("p95", summary), "probes[0].rtt_ms.p95", 0.5
)
RPM = RowFigure("responsiveness", "per minute", True, _rpm, "60000 over probes[0].rtt_ms.p50", 5.0)
JAIN = RowFigure("jain", "index", True, _jain, "jain", 0.01)
LEAST = RowFigure(
    "least share", "of the fair share", True, _least_share, "least flows[].share times flows", 0.01
)
IMBALANCE = RowFigure(
    "ratio",
    "to 1",
    False,
    _imbalance,
    "greater over smaller mean goodput of both sides",
    0.01,
    smaller=_smaller_side,
)
OWN_SHARE = RowFigure("share", "of the goodput", None, _own_share, "the algorithm's part of all goodput")
COMPLETION = RowFigure(
    "completion",
    "s",
    False,
    _completion,
    "latest stop_s - start_s of the algorithm's flows",
    0.001,
)
MEAN_COMPLETION = RowFigure(
    "mean completion",
    "s",
    False,
    lambda summary, scenario: _mean_completion(subjects(summary, scenario)),
    "mean stop_s - start_s of the algorithm's flows",
    0.001,
)
NEIGHBOUR_COMPLETION = RowFigure(
    "neighbour completion",
    "s",
    False,
    lambda summary, scenario: _mean_completion(neighbours(summary, scenario)),
    "mean stop_s - start_s of the other flows",
    0.001,
)
TIMEOUTS = RowFigure("timeouts", "expiries", False, _timeouts, "sum of the algorithm's flows[].timeouts", 0.5)
MOS = RowFigure("call", "MOS", True, _mos, "E-model of probes[0].rtt_ms.p95 and probes[0].lost", 0.01)
RETRANSMITS = RowFigure(
    "retransmits",
    "segments",
    None,
    lambda summary, scenario: float(sum(flow["retransmits"] for flow in subjects(summary, scenario))),
    "sum of the algorithm's flows[].retransmits",
)
LONG = RowFigure(
    "long share", "of a link", True, _long_share, "flows[0] over itself and the others' mean", 0.01
)
SLOWDOWN_P50 = RowFigure(
    "slowdown p50",
    "times",
    False,
    lambda summary, scenario: _slowdown(50, summary, scenario),
    "median of the algorithm's flows[].transfer.slowdown",
    0.01,
)
SLOWDOWN_P99 = RowFigure(
    "slowdown p99",
    "times",
    False,
    lambda summary, scenario: _slowdown(99, summary, scenario),
    "99th percentile of the algorithm's flows[].transfer.slowdown",
    0.01,
)
VIDEO_RATE = RowFigure(
    "bit rate",
    "Mbit/s",
    True,
    lambda summary, _: None if (bps := _video("bps", summary)) is None else bps / 1e6,
    "mean flows[].video.bps of the flows that are videos",
    0.05,
)
VIDEO_STALLED = RowFigure(
    "stalled",
    "s",
    False,
    lambda summary, _: _video("stall_s", summary),
    "mean flows[].video.stall_s of the flows that are videos",
    0.1,
)
RECOVERY = RowFigure(
    "recovery",
    "s",
    False,
    _recovery,
    "mean recoveries[].recovery_s, or span_s where it is null",
    0.1,
)
LIVE_RATE = RowFigure(
    "rate",
    "Mbit/s",
    True,
    lambda summary, _: None if (bps := _live("bps", summary)) is None else bps / 1e6,
    "mean flows[].rtp.bps of the live videos",
    0.05,
)
LIVE_DELAY = RowFigure(
    "frame p95",
    "ms",
    False,
    lambda summary, _: _live("delay_ms_p95", summary),
    "mean flows[].rtp.delay_ms_p95 of the live videos",
    1.0,
)
LIVE_LATE = RowFigure(
    "late",
    "of the frames",
    False,
    lambda summary, _: _live("late_200ms", summary),
    "mean flows[].rtp.late_200ms of the live videos",
    0.005,
)
LIVE_BREAKER = RowFigure(
    "breaker",
    "tripped",
    False,
    _breaker,
    "number of flows[].rtp.breaker_s that are not null: circuit breakers of RFC 8083 4.3",
    0.5,
)
VIDEO_STARTUP = RowFigure(
    "start-up",
    "s",
    False,
    lambda summary, _: _video("startup_s", summary),
    "mean flows[].video.startup_s of the flows that are videos",
    0.05,
)
