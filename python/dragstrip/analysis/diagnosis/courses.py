"""Findings about the course over time: outages, lost packets, path changes, partial delay.

Scope: symptoms that an average hides, and traffic that did not pass a listed shaper. Out of scope: the
causes of TCP's losses, which `losses` has.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dragstrip.analysis.diagnosis.delays import Delay
from dragstrip.analysis.diagnosis.evidence import Evidence, is_bypassed
from dragstrip.analysis.diagnosis.finding import LOADED_PING, NOISY, PINGS, Finding, facts_at
from dragstrip.analysis.diagnosis.loss_causes import LOSS_SHARE, LOSSES_MIN
from dragstrip.analysis.diagnosis.observations import BEST_EFFORT, SIMULATION, Fact, ObservedFlow, PingSeries

OUTAGE_S = 1.0
"""Shortest time without a byte that is an outage."""
BLOCK_BYTES = 131_072
"""iperf3's block, which its client counts when the socket accepts it."""
BLOCKS = 3
"""Times of a block at the mean rate within which an interval without a byte is no outage."""
SOCKET_BYTES = 8_000_000
"""Bytes that a socket's send buffer takes before the path carries them, at most: twice Linux's tcp_wmem."""
RTO_BYTES = 3_000
"""Congestion window after a retransmission timeout: one segment, or two."""
LOST_MIN, LOST_SHARE = 2, 0.01
"""Unanswered pings, and their share, from which on loss is a finding: one may be the last before the end."""
SILENT_MIN = 3
"""Pings without any answer from which on a host does not answer."""
PART = 0.25
"""Share of a flow's time with a long delay from which on it is a finding."""


def lost_pings(evidence: Evidence) -> Iterator[Finding]:
    """Yield pings without an answer: some, or all of a series."""
    series: dict[tuple[str, str], list[PingSeries]] = {}
    for probe in evidence.observed.probes:
        if probe.source != SIMULATION:
            series.setdefault((probe.source, probe.place), []).append(probe)
    for parts in series.values():
        probe = parts[0]
        pings_sent = sum(part.pings_sent for part in parts)
        pings_lost = sum(part.pings_lost for part in parts)
        if probe.of_all is not None:
            pings_sent, pings_lost = probe.of_all
        if pings_sent < SILENT_MIN:
            continue
        facts = facts_at(evidence, (probe.source, probe.place), ("lost_share",))[:1]
        figures: dict[str, float | str] = {
            "lost": pings_lost,
            "sent": pings_sent,
            "target": _bare(probe.target),
        }
        if pings_lost == pings_sent:
            text = "No answer from {target}: {lost} of {sent} pings are lost"
            if any(flow.busy and flow.hosts & probe.hosts for flow in evidence.observed.flows):
                text += ", while TCP passes to the same host: it is filtered, or was down at that time"
            else:
                text += ": the host is down, unreachable, or filters pings"
            yield Finding("unreachable", text, "certain", figures, facts, "", PINGS)
        elif pings_lost >= LOST_MIN and pings_lost >= LOST_SHARE * pings_sent:
            figures["lost_share"] = pings_lost / pings_sent
            text = "Packet loss: {lost} of {sent} pings to {target} ({lost_share}) have no answer"
            states = {part.loaded for part in parts if part.pings_lost}
            if states == {False}:
                text += ", while no flow of the files was busy"
            elif states == {True}:
                text += ", while flows were busy"
            yield Finding("packet_loss", text, "certain", figures, facts, "", PINGS)


def _bare(target: str) -> str:
    """Return an address without the parentheses in which ping prints it."""
    return target[1:-1] if target.startswith("(") and target.endswith(")") else target


def lost_datagrams(evidence: Evidence) -> Iterator[Finding]:
    """Yield datagrams that a test's receiver counts as lost."""
    for row in evidence.observed.datagrams:
        if row.lost_share < LOSS_SHARE or (
            row.datagrams_lost is not None and row.datagrams_lost < LOSSES_MIN
        ):
            continue
        figures: dict[str, float | str] = {"lost_share": row.lost_share}
        text = "Packet loss: {lost_share} of {label} are lost"
        if row.datagrams_lost is not None and row.datagrams_sent is not None:
            figures |= {"lost": row.datagrams_lost, "sent": row.datagrams_sent}
            text = "Packet loss: {lost} of {sent} datagrams of {label} ({lost_share}) are lost"
        figures["label"] = row.label
        text += (
            "; whether they were sent faster than the path carries, or a link loses them, a lower rate shows"
        )
        facts = facts_at(evidence, (row.source, row.label), ("datagrams_lost_share",))
        yield Finding("packet_loss", text, "certain", figures, facts, "", NOISY)


def outage_of(flow: ObservedFlow) -> tuple[float, float, bool] | None:
    """Return the longest time without a byte of a flow, begin and end in s, and whether a timeout shows it.

    A client's intervals count what its socket accepts: a block at a low rate, or a send buffer that fills at
    once and then drains, leaves intervals without a byte and is no outage. Captures show their own reasons.
    """
    if flow.vantage or flow.source == SIMULATION or flow.duration_s < OUTAGE_S:
        return None
    series = flow.series
    if not flow.bytes:
        nothing = series is not None and not np.nansum(series.bytes)
        return (0.0, flow.duration_s, True) if nothing else None
    if series is None or not np.isfinite(series.bytes).all():
        return None
    empty = series.bytes <= 0
    ends = np.append(0.0, series.end_s)
    longest: tuple[int, int] | None = None
    at = 0
    while at < len(empty):
        if not empty[at]:
            at += 1
            continue
        stop = at + int(np.argmin(np.append(empty[at:], False)))
        if longest is None or ends[stop] - ends[at] > ends[longest[1]] - ends[longest[0]]:
            longest = at, stop
        at = stop
    if longest is None or longest[0] == 0:
        return None
    first, stop = longest
    length = float(ends[stop] - ends[first])
    per_s = flow.bytes / float(ends[-1])
    surplus = float(series.bytes[:first].sum()) - per_s * float(ends[first])
    if length < OUTAGE_S or min(surplus, SOCKET_BYTES) >= per_s * length:
        return None
    if length < BLOCKS * BLOCK_BYTES / per_s:
        return None
    flight = series.flight_bytes[first:stop]
    if np.isfinite(flight).any() and np.nanmax(flight) <= 0:
        return None  # nothing was under way
    cwnd = series.cwnd_bytes[first:stop]
    timeout = bool(np.isfinite(cwnd).any() and np.nanmin(cwnd) <= RTO_BYTES)
    return float(ends[first]), float(ends[stop]), timeout


def outages(evidence: Evidence) -> Iterator[Finding]:
    """Yield the time in which nothing of a flow arrived."""
    for flow in evidence.observed.flows:
        span = outage_of(flow)
        if span is None:
            continue
        begin, end, timeout = span
        facts = facts_at(evidence, (flow.source, flow.label), ("goodput_bps",))[:1]
        text = "Outage: nothing of {flow} arrived from {begin} s to {end} s"
        if timeout:
            text += (
                ", and its congestion window was one segment: retransmission timeouts" if flow.bytes else ""
            )
        else:
            text += ": the path, the sender or a receiver that does not read stood still"
        figures: dict[str, float | str] = {"flow": flow.label, "begin": begin, "end": end}
        certainty = "certain" if timeout else "likely"
        yield Finding("outage", text, certainty, figures, facts, "", PINGS)  # type: ignore[arg-type]


def path_changes(evidence: Evidence) -> Iterator[Finding]:
    """Yield steps of the RTT between two levels that hold: the path's own delay changed."""
    for delay in evidence.delays:
        step = delay.step
        if step is None or delay.traffic_class not in BEST_EFFORT:
            continue
        yield Finding(
            "path_change",
            "The path's own delay changes: the RTT steps from {before_ms} to {after_ms} after {after_s} s, "
            "and either level holds within {spread_ms}, which a queue under load does not",
            "likely",
            {
                "before_ms": step.before_ms,
                "after_ms": step.after_ms,
                "after_s": f"{step.at_s:.3g}",
                "spread_ms": step.spread_ms,
            },
            (delay.p50, delay.p95),
            measure="ping -D -i 0.2 -c 600 HOST    # while nothing else runs, and mtr beside it",
            causes=("path_change",),
        )


def delay_in_a_part(evidence: Evidence) -> Iterator[Finding]:
    """Yield a long delay in a part of the time, which the median hides."""
    if evidence.bloated or evidence.simulated:
        return
    for delay in evidence.delays:
        share = _late_share(delay, evidence.bloat_ms)
        if delay.step is not None or not delay.certain or share < PART or share >= 0.5:
            continue
        if delay.traffic_class not in BEST_EFFORT:
            continue
        yield Finding(
            "bufferbloat",
            "Bufferbloat in a part of the time: for {late_share} of it the RTT is {excess_ms} or more above "
            "the {idle_rtt_ms} idle; the 95th percentile is {rtt_p95_ms}",
            "likely",
            {
                "late_share": share,
                "excess_ms": evidence.bloat_ms,
                "idle_rtt_ms": float(delay.idle.value),
                "rtt_p95_ms": float(delay.p95.value),
            },
            (delay.idle, delay.p50, delay.p95),
            "",
            LOADED_PING,
            causes=("bufferbloat", "bufferbloat_up", "ack_path"),
        )
        return


def _late_share(delay: Delay, bloat_ms: float) -> float:
    """Return the share of a flow's intervals, or of pings, whose delay is long."""
    trips = delay.trips_ms
    trips = trips[np.isfinite(trips)]
    return float((trips - float(delay.idle.value) >= bloat_ms).mean()) if len(trips) else 0.0


def bypassed_shaper(evidence: Evidence) -> Iterator[Finding]:
    """Yield a listed shaper that lets less pass than arrives."""
    floor = evidence.floor
    for queue in evidence.observed.queues:
        if floor is None or not is_bypassed(queue, floor):
            continue
        facts: list[Fact] = [*facts_at(evidence, (queue.source, queue.place), ("queue", "rate_bps")), floor]
        yield Finding(
            "shaper_bypassed",
            "The traffic did not pass the shaper of {shaper_bps} on {device}: {goodput_bps} arrive. It is of "
            "another interface or direction",
            "certain",
            {
                "shaper_bps": queue.shaped_bps or 0.0,
                "device": queue.device or "the interface",
                "goodput_bps": float(floor.value),
            },
            tuple(facts),
        )
