"""The round trip of the empty path.

The minimum over the handshake and all clean samples. A link that stores whole packets before it forwards
them delays each by the time to send it, a shaper with tokens in store does not: the handshake's small packets
beside the data's tell which. The minimum is too long if the queue never emptied, which a capture cannot show.
"""

from __future__ import annotations

import numpy as np

from dragstrip.inference.estimate import Estimate, unknown
from dragstrip.inference.rate import Trips
from dragstrip.inference.series import Flow

SYN_BYTES = 60
"""IP packet of a SYN with the usual options."""


def rough_s(flow: Flow, seen: Trips) -> float | None:
    """Return the shortest round trip, in seconds, the time to send a segment included; None without any."""
    shortest = [float(seen.rtt_s.min())] if len(seen) else []
    if flow.opening_s is not None:
        shortest.append(flow.opening_s)
    return min(shortest, default=None)


def base_rtt(flow: Flow, seen: Trips, rate_bps: float | None) -> Estimate:
    """Return the round trip of the empty path in milliseconds, from the capture to the receiver and back."""
    raw = rough_s(flow, seen)
    if raw is None:
        return unknown("no handshake and no acknowledgement of data that were sent once")
    if rate_bps is None:
        # Without the rate only the handshake's small packets are nearly free of the time to send them.
        return Estimate(raw * 1e3, None if flow.opening_s is None else raw * 0.9e3, raw * 1e3)
    full_s = flow.full_bytes * flow.overhead * 8 / rate_bps
    syn_s = SYN_BYTES * 8 / rate_bps
    data = float(seen.rtt_s.min()) if len(seen) else np.inf
    opening = np.inf if flow.opening_s is None else flow.opening_s
    low = max(0.0, min(data - full_s, opening - syn_s, raw * 0.99))
    # A link that stores and forwards delays a full segment more than a SYN, and the SYN by the rest.
    stores = abs(data - opening - (full_s - syn_s)) < 0.25 * full_s
    value = max(low, opening - syn_s) if stores else raw
    return Estimate(value * 1e3, low * 1e3, raw * 1e3)


def elsewhere(flow: Flow) -> Estimate:
    """Return the round trip of the whole path, in milliseconds, for a capture that is not the sender's."""
    if flow.opening_s is not None:
        low = min((flow.opening_s, *flow.trips_s[:1]))
        return Estimate(low * 1e3, None, flow.opening_s * 1e3)
    if flow.trips_s:
        return Estimate(flow.trips_s[0] * 1e3, None, flow.trips_s[1] * 1e3)
    return unknown("no handshake, and no round trips can be measured here")
