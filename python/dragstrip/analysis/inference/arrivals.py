"""The bottleneck's rate from a capture at the receiver, where each segment's arrival is seen directly.

A link that is never idle delivers segment after segment at its rate: neighbours arrive as far apart as whole
windows say. What a sender paces below the link's rate arrives as evenly. So round trips, as echoed time
stamps show them, must have been longer than the base: a queue was in use.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dragstrip.analysis.inference.estimate import Estimate, unknown
from dragstrip.analysis.inference.rate import mode
from dragstrip.analysis.inference.series import CapturedFlow

BATCH = 40
"""Segments of a window."""
WINDOWS_MIN = 5
ALIKE = 0.03
"""Rates of windows and of neighbours that agree, as a share."""
MOST = 0.5
"""Share of the windows that agree, at least."""
WAITED = 1.05
"""Longer round trips (95 %) over the base, at least."""
SPACED = 8
"""Segments over which spacing is looked at."""
SPREAD = 1.15
"""Rate of nearly all windows of `SPACED` segments (99 %) over their median up to which segments come evenly
spread; eight segments in the time of seven, beside a short packet, are."""
AT_IDLE = 1.1
"""Median over least round trip up to which no queue stands behind a capture."""


def is_spread(flows: Sequence[CapturedFlow]) -> bool:
    """Return whether the segments of flows come evenly spread, as behind a bottleneck, and never in a burst.

    Segments that were lost are left out: a capture at the queue shows them where the queue dropped them.
    """
    origin = min(flow.origin_ns for flow in flows)
    times = np.concatenate(
        [
            flow.segments.time_s[flow.segments.lost_bytes == 0] + (flow.origin_ns - origin) / 1e9
            for flow in flows
        ]
    )
    sizes = np.concatenate([flow.segments.bytes[flow.segments.lost_bytes == 0] for flow in flows])
    if len(times) <= 4 * SPACED:
        return False
    order = np.argsort(times, kind="stable")
    times, sums = times[order], np.cumsum(sizes[order])
    rates = (sums[SPACED:] - sums[:-SPACED]) / np.maximum(times[SPACED:] - times[:-SPACED], 1e-9)
    middle, high = np.percentile(rates, (50, 99))
    return bool(high <= SPREAD * middle)


def is_behind_queue(flow: CapturedFlow, concurrent: Sequence[CapturedFlow]) -> bool:
    """Return whether a capture whose handshake looks like the sender's stands behind the bottleneck's queue.

    There segments leave evenly spread although some are lost and repaired, and no round trip is long; or the
    file has the packets that the queue dropped. A sender's own bursts are faster than the bottleneck, and
    what a sender paces waits behind its capture.
    """
    if flow.place != "sender":
        return False
    if flow.queue_drops:
        return True
    if not flow.segments.again.any() or not _is_at_idle(flow):
        return False
    return is_spread([flow]) or is_spread([flow, *concurrent])


def _is_at_idle(flow: CapturedFlow) -> bool:
    """Return whether round trips are as short as ever in the median: no queue stands behind the capture."""
    trips = flow.returned.rtt_s[np.isfinite(flow.returned.rtt_s)]
    if not len(trips):
        return False
    least = float(trips.min()) if flow.opening_s is None else min(float(trips.min()), flow.opening_s)
    return float(np.median(trips)) <= AT_IDLE * least


def rate(flow: CapturedFlow, base_ms: float | None) -> tuple[Estimate, tuple[tuple[float, float], ...]]:
    """Return the bottleneck's rate at the IP layer while it was busy, and over time what arrived."""
    at, size = flow.segments.time_s, np.asarray(flow.segments.bytes * flow.overhead, np.float64)
    moved = np.concatenate(([0.0], np.cumsum(size[1:])))
    cuts = np.arange(0, len(at), BATCH)
    spans = np.diff(at[cuts])
    passed = np.diff(moved[cuts])
    use = spans > 0
    if use.sum() < WINDOWS_MIN:
        return unknown(f"{len(at)} segments are too few"), ()
    rates = passed[use] * 8 / spans[use]
    middles = (at[cuts][:-1] + at[cuts][1:])[use] / 2
    over_time = tuple(
        (round(float(when), 6), round(float(bps), 1)) for when, bps in zip(middles, rates, strict=True)
    )
    value = mode(rates, np.ones(len(rates)))
    reached = float(np.quantile(rates, 0.95))
    near = np.abs(rates / value - 1) < ALIKE
    gaps = np.diff(at)
    close = gaps > 0
    pairs = mode(size[1:][close] * 8 / gaps[close], gaps[close])
    if near.mean() < MOST or abs(pairs / value - 1) > 2 * ALIKE:
        return unknown(
            "segments do not arrive at one rate: capacity not reached, or shared", reached
        ), over_time
    if not flow.trips_s or base_ms is None or flow.trips_s[-1] * 1e3 < WAITED * base_ms:
        return unknown("round trips do not show that a queue was in use", value), over_time
    low, high = (float(end) for end in np.quantile(rates[near], (0.05, 0.95)))
    return Estimate(value, low, high, "as segments arrive"), over_time
