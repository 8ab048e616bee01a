"""The round trip of a full segment on the empty path.

The minimum over all clean samples and the handshake, whose packets are shorter: on a link that stores and
forwards, a full segment takes longer by the time to send the difference. The handshake may include other
delays (address resolution, a busy server), so it counts only where it is shorter. The minimum is too long if
the queue never emptied, which a capture cannot show.
"""

from __future__ import annotations

import numpy as np

from dragstrip.inference.estimate import Estimate, unknown
from dragstrip.inference.rate import Trips
from dragstrip.inference.series import Flow

SYN_BYTES = 60
"""IP packet of a SYN with the usual options."""

SURE = 0.02
"""Probability that the true round trip is shorter than the interval says, where delays vary."""


def rough_s(flow: Flow, seen: Trips) -> float | None:
    """Return the shortest round trip, in seconds, the time to send a segment included; None without any."""
    shortest = [float(seen.rtt_s.min())] if len(seen) else []
    if flow.opening_s is not None:
        shortest.append(flow.opening_s)
    return min(shortest, default=None)


def base_rtt(flow: Flow, seen: Trips, rate_bps: float | None, jitter_s: float = 0.0) -> Estimate:
    """Return the round trip of the empty path in milliseconds, from the capture to the receiver and back.

    `jitter_s` is the mean change of delay between neighbours: if each segment is delayed by anything from
    nothing to three times this (a uniform distribution), the least of few samples is too long.
    """
    shortest = rough_s(flow, seen)
    if shortest is None:
        return unknown("no handshake and no acknowledgement of data that were sent once")
    data = float(seen.rtt_s.min()) if len(seen) else np.inf
    longer = 0.0 if rate_bps is None else (flow.full_bytes + flow.header_bytes - SYN_BYTES) * 8 / rate_bps
    opening = np.inf if flow.opening_s is None else flow.opening_s + longer
    value = min(data, opening)
    low = min(shortest, value) * 0.995
    if jitter_s:
        widest = 3 * jitter_s
        near = int((seen.rtt_s < value + widest / 4).sum()) + int(opening < value + widest / 4)
        low -= widest * (1 - SURE ** (1 / max(1, near)))
    return Estimate(value * 1e3, max(0.0, low) * 1e3, value * 1.005e3)


def elsewhere(flow: Flow) -> Estimate:
    """Return the round trip of the whole path, in milliseconds, for a capture that is not the sender's."""
    if flow.opening_s is not None:
        low = min((flow.opening_s, *flow.trips_s[:1]))
        return Estimate(low * 1e3, None, flow.opening_s * 1e3)
    if flow.trips_s:
        return Estimate(flow.trips_s[0] * 1e3, None, flow.trips_s[1] * 1e3)
    return unknown("no handshake, and no round trips can be measured here")
