"""The round trip of a full segment on the empty path.

The minimum over all clean samples and the handshake, whose packets are shorter: on a link that stores and
forwards, a full segment takes longer by the time to send the difference. The handshake may include other
delays (address resolution, a busy server), so it counts only where it is shorter. The minimum is too long if
the queue never emptied, which only a capture without the handshake leaves open.
"""

from __future__ import annotations

import numpy as np

from dragstrip.analysis.inference.estimate import Estimate, unknown
from dragstrip.analysis.inference.rate import Trips
from dragstrip.analysis.inference.series import CapturedFlow

SYN_BYTES = 60
"""IP packet of a SYN with the usual options."""

SAMPLES_MIN = 20
"""Round trips with which it is looked whether the queue was ever empty."""
NEAR = 1.02
"""Round trips up to this multiple of the least are as short as any."""
SELDOM = 0.1
"""Share of the shortest round trips at which the link must have been idle."""
DRAINED = 0.85
"""Rate of delivery at the shortest round trips over the rate otherwise (90 %) below which the link idled."""
QUEUED, SHARED = 1.1, 1.15
"""Round trips, over the least, at which a queue stands; high (90 %) over median rate there, from which on
other traffic shares the link, so that this flow's rate does not show whether it idles."""
SURE = 0.02
"""Probability that the true round trip is shorter than the interval says, where delays vary."""


def rough_s(flow: CapturedFlow, samples: Trips) -> float | None:
    """Return the shortest round trip, in seconds, the time to send a segment included; None without any."""
    shortest = [float(samples.rtt_s.min())] if len(samples) else []
    if flow.opening_s is not None:
        shortest.append(flow.opening_s)
    return min(shortest, default=None)


def base_rtt(flow: CapturedFlow, samples: Trips, rate_bps: float | None, jitter_s: float = 0.0) -> Estimate:
    """Return the round trip of the empty path in milliseconds, from the capture to the receiver and back.

    `jitter_s` is the mean change of delay between neighbours: if each segment is delayed by anything from
    nothing to three times this (a uniform distribution), the least of few samples is too long. Without a
    handshake, and if the queue never emptied, the value is at most that: it has no lower bound.
    """
    shortest = rough_s(flow, samples)
    standing = flow.opening_s is None and not is_drained(samples)
    if shortest is None:
        return unknown("no handshake and no acknowledgement of data that were sent once")
    data = float(samples.rtt_s.min()) if len(samples) else np.inf
    longer = 0.0 if rate_bps is None else (flow.full_bytes + flow.header_bytes - SYN_BYTES) * 8 / rate_bps
    opening = np.inf if flow.opening_s is None else flow.opening_s + longer
    value = min(data, opening)
    low = min(shortest, value) * 0.995
    if jitter_s:
        widest = 3 * jitter_s
        near = int((samples.rtt_s < value + widest / 4).sum()) + int(opening < value + widest / 4)
        low -= widest * (1 - SURE ** (1 / max(1, near)))
    if standing:
        why = "the handshake is not in the capture, and the queue was never seen empty"
        return Estimate(value * 1e3, None, value * 1.005e3, why)
    return Estimate(value * 1e3, max(0.0, low) * 1e3, value * 1.005e3)


def is_drained(samples: Trips) -> bool:
    """Return whether the bottleneck's queue was empty when the round trips were shortest.

    While a queue stands, the link delivers at its full rate. With an empty one, fewer bytes than the
    bandwidth-delay product are under way, and less is delivered in a round trip.
    False where other traffic shares the link.
    """
    if len(samples) < SAMPLES_MIN:
        return False
    order = np.argsort(samples.at_s, kind="stable")
    at, moved, trips = samples.at_s[order], samples.delivered[order], samples.rtt_s[order]
    before = np.interp(at - trips, at, moved)
    whole = at - trips >= at[0]
    if whole.sum() < SAMPLES_MIN:
        return False
    rates = (moved - before)[whole] / trips[whole]
    near = trips[whole] <= NEAR * trips.min()
    busy = rates[trips[whole] > QUEUED * trips.min()]
    if not near.any() or (len(busy) and np.quantile(busy, 0.9) > SHARED * np.median(busy)):
        return False
    return float(np.quantile(rates[near], SELDOM)) < DRAINED * float(np.quantile(rates, 0.9))


def elsewhere(flow: CapturedFlow) -> Estimate:
    """Return the round trip of the whole path, in milliseconds, for a capture that is not the sender's."""
    if flow.opening_s is not None:
        low = min((flow.opening_s, *flow.trips_s[:1]))
        return Estimate(low * 1e3, None, flow.opening_s * 1e3)
    if flow.trips_s:
        return Estimate(flow.trips_s[0] * 1e3, None, flow.trips_s[1] * 1e3)
    return unknown("no handshake, and no round trips can be measured here")
