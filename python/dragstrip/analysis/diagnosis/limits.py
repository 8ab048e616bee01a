"""Findings about what limits a flow that is not the network: windows, the application, a closed receiver.

A window limits a flow if as many bytes are in flight all the time, fewer than the congestion window allows,
which therefore stands still, and nothing is lost. That holds for the receive window, for the send buffer, and
for an application that sends at one rate: a file without the kernel's counters or the offered windows cannot
tell which.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dragstrip.analysis.diagnosis.evidence import FRAME_OVER_PAYLOAD, Evidence
from dragstrip.analysis.diagnosis.finding import AMBIGUOUS, CAPTURE, SS, Certainty, Finding, facts_at
from dragstrip.analysis.diagnosis.observations import BUSY_BYTES, Fact, ObservedFlow, Series
from dragstrip.model.scenario import algorithms

WINDOW_SHARE = 0.3
"""Share of the time limited by a window, or by the application, from which on it is a finding."""
FILLED = 0.9
"""Share of the rate that frames take from which on the path is full."""
QUEUED = 0.25
"""Median queueing delay over the least RTT from which on the path, not a window, limits a flow."""
CLOSED_SHARE = 0.05
"""Share of the time with a closed window from which on it is a finding."""
SETTLED = 1 / 3
"""Share of the intervals, at the beginning, in which a window may still grow."""
STANDING = 1.02
"""Largest over least congestion window that stands still."""
UNUSED = 0.8
"""Bytes in flight over the congestion window below which it does not limit the flow."""
FLAT = 0.12
"""Deviation of the rate from its mean, as a share, up to which it is flat; blocks of files make steps."""
AT_IDLE = 1.1
"""Median over least RTT up to which no queue stands between a capture and the receiver."""
TRIPS_FLAT = 1.2
"""Long (95 %) over short (5 %) RTT up to which no queue builds up."""
IDLE = 0.1
"""Share of the time without anything in flight from which on an application has nothing to send: a flow that
its send buffer limits always has something in flight."""
ON_TARGET = 0.03
"""Distance of the goodput from the rate that an application was told to keep to, as a share."""
LARGE = 0.2
"""Share of the largest flow's bytes from which on a flow is looked at."""
LEVEL = 0.93
"""Least over median, and median over largest, of the bytes in flight from which on they are flat."""
NEAR_BYTES = 3_000
"""Two segments, by which a flat flight varies between an acknowledgement and what it lets go."""
WORDS = {
    "receive_window": "the receive window (tcp_rmem)",
    "send_buffer": "the send buffer (tcp_wmem)",
    "application": "the application",
    "small_queue_limit": "TCP's small-queue limit at the sender's own interface",
}
"""Limits of a flow, in the words of a sentence."""
OF_WINDOWS = frozenset(
    {
        "receiver_share",
        "application_share",
        "send_buffer_share",
        "closed_share",
        "goodput_bps",
        "idle_rtt_ms",
        "rate_bps",
        "target_bps",
    }
)
"""Facts behind a finding about windows."""


def limits(evidence: Evidence) -> Iterator[Finding]:
    """Yield what limits the largest flow of each pair of hosts in each file, if that is not the network."""
    largest: dict[tuple[frozenset[str], str], ObservedFlow] = {}
    for flow in sorted(evidence.observed.flows, key=lambda flow: (-flow.bytes, flow.source, flow.label)):
        largest.setdefault((flow.hosts, flow.source), flow)
    most = max((flow.bytes for flow in largest.values()), default=0)
    reported_causes: set[tuple[str, ...]] = set()
    for flow in largest.values():
        if flow.bytes < LARGE * most and not flow.closed_s:
            continue
        for finding in _of_flow(evidence, flow):
            if finding.causes not in reported_causes:
                reported_causes.add(finding.causes)
                yield finding


def is_full(evidence: Evidence, flow: ObservedFlow) -> bool:
    """Return whether a flow and those beside it fill the path, so that no window is too small."""
    if evidence.rate is None:
        return False
    together = sum(
        concurrent.goodput_bps for concurrent in evidence.observed.flows if concurrent.source == flow.source
    )
    return together * FRAME_OVER_PAYLOAD >= FILLED * float(evidence.rate.value)


def _of_flow(evidence: Evidence, flow: ObservedFlow) -> Iterator[Finding]:
    closed = flow.closed_s / flow.duration_s if flow.duration_s > 0 else 0.0
    if closed >= CLOSED_SHARE:
        yield Finding(
            "receiver_closed",
            "The receiver's window is closed for {closed_share} of the time: its application does not read",
            "certain",
            {"closed_share": min(1.0, closed)},
            _window_facts(evidence, flow),
            "",
            SS,
            causes=("receiver_closed",),
        )
        return
    if flow.bytes < BUSY_BYTES:
        return
    if flow.target_bps is not None and abs(flow.goodput_bps / flow.target_bps - 1) <= ON_TARGET:
        yield Finding(
            "application",
            "The application limits the flow: it was told to send {target_bps}, and {goodput_bps} arrive",
            "certain",
            {"target_bps": flow.target_bps, "goodput_bps": flow.goodput_bps},
            _window_facts(evidence, flow),
            causes=("application",),
        )
        return
    if flow.vantage in ("receiver", "between"):
        return  # what limits a sender is not seen from there
    counter_findings = (
        [] if is_full(evidence, flow) or flow.limited is None else list(_counter_findings(evidence, flow))
    )
    yield from counter_findings
    if not counter_findings and flow.series is not None:
        yield from _standing(evidence, flow, flow.series)


def _is_queued(flow: ObservedFlow) -> bool:
    """Return whether the flow's own queue makes its round trips long, so that the path limits it."""
    if flow.rtt_p50_ms is None or not flow.rtt_min_ms:
        return False
    return flow.rtt_p50_ms - flow.rtt_min_ms > max(QUEUED * flow.rtt_min_ms, 5.0)


def _counter_findings(evidence: Evidence, flow: ObservedFlow) -> Iterator[Finding]:
    """Yield what the kernel's counters, or the windows in a capture, say."""
    assert flow.limited is not None
    receiver = flow.limited.get("receiver", 0.0)
    buffered = flow.limited.get("send_buffer", 0.0)
    waiting = flow.limited.get("application", 0.0)
    facts = _window_facts(evidence, flow)
    trip = flow.rtt_p50_ms or flow.rtt_min_ms
    if receiver >= WINDOW_SHARE and trip is not None and not _is_queued(flow):
        figures: dict[str, float | str] = {
            "receiver_share": receiver,
            "goodput_bps": flow.goodput_bps,
            "rtt_p50_ms": trip,
            "window_bytes": flow.goodput_bps / 8 * trip / 1e3,
        }
        template = (
            "The receive window limits the flow for {receiver_share} of its time: {goodput_bps} at an RTT of "
            "{rtt_p50_ms} are {window_bytes} in flight"
        )
        template, figures = _needed(evidence, template, figures)
        yield Finding("receive_window", template, "certain", figures, facts, "goodput")
    if buffered >= WINDOW_SHARE and not _is_queued(flow):
        figures = {"send_buffer_share": buffered, "goodput_bps": flow.goodput_bps}
        template = "The send buffer limits the flow to {goodput_bps} for {send_buffer_share} of its time"
        template, figures = _needed(evidence, template, figures)
        yield Finding("send_buffer", template, "certain", figures, facts, "goodput")
        return
    if waiting < WINDOW_SHARE or _is_queued(flow):
        return
    figures = {"application_share": waiting}
    if flow.steady_bytes is not None:
        figures["window_bytes"] = flow.steady_bytes
        template = (
            "For {application_share} of its time the sending host sends no more than {window_bytes} per "
            "round trip, always the same: its send buffer, its small-queue limit, or an application that "
            "keeps to a rate"
        )
        template, figures = _needed(evidence, template, figures)
        causes = ("send_buffer", "application", "small_queue_limit")
        yield Finding(AMBIGUOUS, template, "likely", figures, facts, "goodput", SS, causes=causes)
        return
    if _idle_share(flow) < IDLE:
        template = (
            "For {application_share} of its time the sending host sends less than the network would take: "
            "its application, its send buffer or its small-queue limit"
        )
        causes = ("application", "send_buffer", "small_queue_limit")
        yield Finding(AMBIGUOUS, template, "likely", figures, facts, "", SS, causes=causes)
        return
    yield Finding(
        "application",
        "The application has nothing to send for {application_share} of the time",
        "likely",
        figures,
        facts,
        "",
        SS,
        causes=("application",),
    )


def _idle_share(flow: ObservedFlow) -> float:
    """Return the share of the time in which nothing is sent and nothing is in flight."""
    series = flow.series
    if series is None or not np.isfinite(series.flight_bytes).any():
        return 0.0
    return float((np.nan_to_num(series.flight_bytes) == 0).mean())


def _standing(evidence: Evidence, flow: ObservedFlow, series: Series) -> Iterator[Finding]:
    """Yield that a window, not the network, limits a flow whose flight is flat though nothing is lost."""
    first = int(len(series) * SETTLED)
    lengths = series.length_s[first:]
    trips = series.rtt_ms[first:]
    trips = trips[np.isfinite(trips)]
    if not len(trips) and flow.rtt_min_ms and flow.rtt_p50_ms and flow.rtt_p95_ms:
        trips = np.array([flow.rtt_min_ms, flow.rtt_p50_ms, flow.rtt_p95_ms])
    retransmitted = np.nan_to_num(series.retransmitted[first:]).sum()
    if retransmitted or len(trips) < 3 or lengths.min() <= 0 or algorithms.settles(flow.cc or ""):
        return
    short, long = map(float, np.percentile(trips, (5, 95)))
    if long > max(TRIPS_FLAT * short, short + 1.0):
        return
    trip = float(np.median(trips))
    flight = _flight(series, first, trip)
    cwnd = series.cwnd_bytes[first:]
    figures: dict[str, float | str] = {"goodput_bps": flow.goodput_bps, "rtt_p50_ms": trip}
    if flight is None:
        return
    figures["flight_bytes"] = flight
    template = "{goodput_bps} at an RTT of {rtt_p50_ms} are {flight_bytes} in flight, all the time, "
    if np.isfinite(cwnd).all():
        if float(cwnd.max()) > STANDING * float(cwnd.min()) or flight >= UNUSED * float(np.median(cwnd)):
            return
        figures["cwnd_bytes"] = float(np.median(cwnd))
        template += "below a congestion window of {cwnd_bytes} that stands still"
    elif flow.vantage == "sender":
        template += "although nothing is lost and a congestion window would grow"
    else:
        return
    facts = _window_facts(evidence, flow)
    if is_full(evidence, flow) and evidence.bloated:
        return  # the path's own queue is not short
    # Behind the bottleneck's queue every flow has as much in flight as the path holds, at the idle RTT.
    anywhere = flow.even and flow.rtt_min_ms is not None and trip <= AT_IDLE * flow.rtt_min_ms
    certainty: Certainty = "cannot know" if anywhere else "likely"
    elsewhere = ", or the capture was taken behind the bottleneck's queue, where any flow looks so"
    if is_full(evidence, flow):
        template += ", and that fills the path: TCP's small-queue limit keeps the sender's own queue short"
        template += elsewhere if anywhere else ""
        causes: tuple[str, ...] = ("small_queue_limit",)
        yield Finding("small_queue_limit", template, certainty, figures, facts, "", SS, causes=causes)
        return
    causes = _windows_of(evidence, flow)
    causes_text = [WORDS[cause] for cause in causes]
    template += f": {', '.join(causes_text[:-1])} or {causes_text[-1]} limits the flow"
    template += elsewhere if anywhere else ""
    template, figures = _needed(evidence, template, figures)
    yield Finding(AMBIGUOUS, template, certainty, figures, facts, "", CAPTURE, causes=causes)


def _flight(series: Series, first: int, trip_ms: float) -> float | None:
    """Return the bytes in flight if they are flat: as sampled, or as the rate makes them."""
    sampled = series.flight_bytes[first:]
    sampled = sampled[np.isfinite(sampled)]
    if len(sampled) >= 3:
        low, middle, high = np.percentile(sampled, (10, 50, 90))
        near = max(middle / LEVEL, middle + NEAR_BYTES)
        if middle > 0 and low >= min(LEVEL * middle, middle - NEAR_BYTES) and high <= near:
            return float(middle)
    rates = series.bytes[first:] / series.length_s[first:]
    if not np.isfinite(rates).all() or float(rates.std()) > FLAT * float(rates.mean()):
        return None
    rate = float(series.bytes[first:].sum() / series.length_s[first:].sum())
    return rate * trip_ms / 1e3 if rate > 0 else None


def _windows_of(evidence: Evidence, flow: ObservedFlow) -> tuple[str, ...]:
    """Return what may limit a flow with a flat flight, less what counters and offered windows exclude."""
    causes = ["receive_window", "send_buffer", "application"]
    if evidence.rate is None:
        causes.append("small_queue_limit")
    if flow.limited is not None and not flow.vantage:
        return "application", "small_queue_limit"  # the kernel counts the time of either window
    return tuple(causes)


def _window_facts(evidence: Evidence, flow: ObservedFlow) -> tuple[Fact, ...]:
    return facts_at(evidence, (flow.source, flow.label), OF_WINDOWS)


def _needed(
    evidence: Evidence, template: str, figures: dict[str, float | str]
) -> tuple[str, dict[str, float | str]]:
    bdp = evidence.bdp_bytes
    if bdp is None or evidence.rate is None:
        return template + "; how much the path would take needs its rate", figures
    return template + "; the path takes {bdp_bytes} (its BDP)", {**figures, "bdp_bytes": bdp}
