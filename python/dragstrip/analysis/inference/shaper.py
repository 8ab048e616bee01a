"""Shaping: a token bucket with a queue, distinguished from a link by what passes before segments wait.

A link makes each segment wait for what is left of all before it: the backlog. Behind a token bucket, which is
full whenever nothing is left, the same backlog less the bucket's size waits (`tbf_dequeue`). The backlog
follows from the segments' departures and the rate alone, the wait from their round trips. Both are compared
from each time at which the backlog was nothing, for as long as the rate is known well enough. Where the
backlog exceeds the wait always by the same bytes, these are the bucket's, and segments at a shorter backlog
must not have waited.

A link whose rate falls for good soon after the flow first reaches it looks the same.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dragstrip.analysis.inference.estimate import Estimate
from dragstrip.analysis.inference.rate import Trips, mode
from dragstrip.analysis.inference.series import CapturedFlow, Flags, Floats

PACKETS_MIN = 8
"""Smallest distinguishable bucket, in packets: bursts of senders are as long."""
SAMPLES_MIN = 12
"""Round trips with a wait from which the bucket is taken, and as many before without one."""
ALIKE = 0.1
"""Share of the bucket by which eight in ten waits may say another size, or two packets."""
UNHINDERED = 0.34
"""Wait while the bucket lasts over the backlog, at most: the link behind is three times as fast."""
AS_SUCH = 0.9
"""Share of the segments while the bucket lasts that pass so, at least."""
FAST_TRIPS = 8.0
"""Base round trips in which segments may wait for the faster link before the bucket is empty, at most: a link
that was full for long, and whose rate then fell, has no bucket."""
DRIFT = 3.0
"""Packets that the rate's error may have added to the backlog, at most; later on it is not looked at."""


@dataclass(frozen=True)
class Shaper:
    """A token bucket with a queue."""

    burst_bytes: Estimate
    """At the IP layer."""
    reason: str
    queued: Flags
    """For each segment sent, whether it found the bucket empty: a link behind may have lost the others."""


def shaper(flow: CapturedFlow, samples: Trips, base_s: float, rate: Estimate, packet: float) -> Shaper | None:
    """Return the shaper of this rate that a flow met; None where a link explains as much."""
    if rate.value is None or rate.low is None or rate.high is None or len(samples) < 2 * SAMPLES_MIN:
        return None
    error = max(rate.high / rate.value - 1, 1 - rate.low / rate.value)
    longest = DRIFT * packet * 8 / (rate.value * error)
    ends = rate.value, rate.high, rate.low
    buckets = [_bucket(flow, samples, base_s, bps, longest, packet) for bps in ends]
    value, least, most = (None if bucket is None else bucket[0] for bucket in buckets)
    if value is None or least is None or most is None:
        return None
    assert buckets[0] is not None
    room = packet + buckets[0][1]
    # A segment passes at once if the bucket holds its own bytes as well.
    value, least, most = (size + packet for size in (value, least, most))
    burst = Estimate(value, min(value, least) - room, max(value, most) + room)
    if min(value, least) - room < PACKETS_MIN * packet:
        return None
    passed = buckets[0][2]
    reason = (
        f"{passed} segments did not wait until {value / packet:.0f} packets beyond the rate had passed; "
        "later ones did"
    )
    return Shaper(burst, reason, backlog(flow, rate.value)[0] >= value - room)


def backlog(flow: CapturedFlow, rate_bps: float) -> tuple[Floats, Floats]:
    """Return what a link of this rate had left to send before each segment, and whence that counts.

    In bytes at the IP layer; the second is the time at which nothing was left, for each segment.
    """
    segments = flow.segments
    packets = np.maximum(1, np.ceil(segments.bytes / flow.full_bytes))
    whole = segments.bytes + packets * flow.header_bytes
    through = whole * (
        1 - np.where(segments.bytes > 0, segments.lost_bytes / np.maximum(1, segments.bytes), 0.0)
    )
    arrived = np.concatenate(([0.0], np.cumsum(through)))[:-1]
    free = arrived - segments.time_s * rate_bps / 8
    least = np.minimum.accumulate(free)
    last = np.maximum.accumulate(np.where(free <= least, np.arange(len(free)), 0))
    return free - least, segments.time_s[last] if len(free) else np.zeros(0)


def _bucket(
    flow: CapturedFlow, samples: Trips, base_s: float, rate_bps: float, longest_s: float, packet: float
) -> tuple[float, float, int] | None:
    """Return the bucket's size, how much it varies, and how many segments passed while it lasted."""
    backlog_bytes, since = backlog(flow, rate_bps)
    at = np.searchsorted(flow.segments.time_s, samples.sent_s - 1e-9, "left")
    in_range = at < len(backlog_bytes)
    in_range[in_range] = (flow.segments.time_s - since)[at[in_range]] < longest_s
    at = at[in_range]
    ahead, when = backlog_bytes[at], flow.segments.time_s[at]
    waited = np.maximum(0.0, (samples.rtt_s[in_range] - base_s) * rate_bps / 8)
    excess, room = ahead - waited, 2 * packet
    waits = (waited > room) & (excess > packet)
    if waits.sum() < SAMPLES_MIN:
        return None
    size = mode(excess[waits], np.ones(int(waits.sum())))
    late = (ahead > size + room) & (waited > packet)
    early = (ahead > 0.2 * size) & (ahead < size - room)
    if late.sum() < SAMPLES_MIN or early.sum() < min(SAMPLES_MIN, 0.4 * size / packet) or not early.any():
        return None
    filled = when[early & (waited > room)]
    if len(filled) and filled[-1] - filled[0] > FAST_TRIPS * base_s:
        return None
    low, high = (float(edge) for edge in np.quantile(excess[late], (0.1, 0.9)))
    spread = max(high - size, size - low)
    passed = waited[early] <= np.maximum(room, UNHINDERED * ahead[early])
    if spread > max(room, ALIKE * size) or passed.mean() < AS_SUCH:
        return None
    return size, spread, int(passed.sum())
