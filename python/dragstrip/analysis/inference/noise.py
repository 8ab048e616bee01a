"""Disturbances of a path besides its queue, and the receiver's offer: jitter, ACK aggregation, window."""

from __future__ import annotations

import numpy as np

from dragstrip.analysis.inference.estimate import Estimate, unknown
from dragstrip.analysis.inference.rate import Trips
from dragstrip.analysis.inference.series import CapturedFlow, Floats

SAMPLES_MIN = 30
BUSY_PACKETS = 3
"""Packets that wait at least while the bottleneck is taken to be busy."""


def jitter(samples: Trips, packet_s: float, base_s: float) -> Estimate:
    """Return the jitter in milliseconds: the mean change of delay between neighbours that no queue explains.

    Of two segments, the later one waits longer by at most the time that the bottleneck needs for what was
    sent in between, and shorter by at most the time between their departures.
    """
    if len(samples) < SAMPLES_MIN:
        return unknown(f"{len(samples)} round trips are too few")
    order = np.argsort(samples.sent_s, kind="stable")
    sent_s, trip = samples.sent_s[order], samples.rtt_s[order]
    apart, change = np.diff(sent_s), np.diff(trip)
    near = apart < max(0.02, base_s / 4)
    if near.sum() < SAMPLES_MIN // 2:
        return unknown("too few segments were sent close together")
    apart, change = apart[near], change[near]
    longest = 2 * packet_s
    rest = np.where(
        change > longest,
        change - longest,
        np.where(change < -apart - packet_s, -apart - packet_s - change, 0.0),
    )
    return _mean_ms(rest)


def busy_jitter(samples: Trips, packet: float, base_s: float, rate_bps: float) -> Estimate:
    """Return the jitter in milliseconds from acknowledgements while the bottleneck was busy.

    A bottleneck that is never idle releases segments at its rate, so acknowledgements are as far apart as
    what they acknowledge takes there; the rest of each gap is the change of delay behind it.
    """
    order = np.argsort(samples.at_s, kind="stable")
    at, moved = samples.at_s[order], samples.delivered[order]
    waited = (samples.rtt_s[order] - base_s) * rate_bps / 8
    gap, bytes_acked = np.diff(at), np.diff(moved)
    busy = (np.minimum(waited[1:], waited[:-1]) > BUSY_PACKETS * packet) & (bytes_acked > 0)
    busy &= bytes_acked < 8 * packet
    if busy.sum() < SAMPLES_MIN:
        return unknown("the bottleneck was hardly ever busy")
    return _mean_ms(np.abs(gap - bytes_acked * 8 / rate_bps)[busy])


def _mean_ms(changes_s: Floats) -> Estimate:
    """Return the mean of changes in milliseconds with twice its standard error, outliers cut at 98 %."""
    values = np.minimum(changes_s, np.quantile(changes_s, 0.98)) * 1e3
    value = float(values.mean())
    error = 2 * float(values.std()) / float(np.sqrt(len(values)))
    return Estimate(value, max(0.0, value - error), value + error)


def aggregation(flow: CapturedFlow) -> Estimate:
    """Return the time between bursts of acknowledgements in milliseconds, 0 if they come evenly.

    A radio or cable link collects acknowledgements, or data, and hands them over at once: most of what is
    delivered then arrives within a small part of the time.
    """
    back = flow.returned
    moved = np.diff(back.delivered)
    gaps = np.diff(back.time_s)
    advances = moved > 0
    moved, gaps = moved[advances], gaps[advances]
    if len(moved) < SAMPLES_MIN:
        return unknown(f"{len(moved)} acknowledgements are too few")
    trip = float(np.nanmedian(back.rtt_s)) if np.isfinite(back.rtt_s).any() else np.inf
    near = gaps < trip / 2
    if near.sum() < SAMPLES_MIN:
        return unknown("too few acknowledgements came close together")
    span = float(gaps[near].sum())
    mean = span / float(moved[near].sum()) * flow.full_bytes
    together = gaps < 0.25 * mean * moved / flow.full_bytes
    bursts = ~together
    packets = float(moved.sum()) / flow.full_bytes / max(1, int(bursts.sum()))
    wide = gaps[bursts & near]
    if together.mean() < 0.5 or packets < 4 or len(wide) < 10:
        return Estimate(0.0, 0.0, mean * 1e3)
    low, value, high = (float(np.quantile(wide, at)) * 1e3 for at in (0.25, 0.5, 0.75))
    return Estimate(value, low, high)


def receiver_window(flow: CapturedFlow) -> Estimate:
    """Return the largest window that the receiver offered, in bytes, and in `reason` whether it limited."""
    offered = flow.returned.window[np.isfinite(flow.returned.window)]
    if not len(offered):
        return unknown("the handshake's options, and so the window's scale, are not in the capture")
    value = float(offered.max())
    limited = flow.receiver_limited
    if limited is None:
        return Estimate(value, value, value, "whether it limited the sender cannot be seen here")
    if limited < 0.005:
        return Estimate(value, value, value, "never limited the sender")
    return Estimate(value, value, value, f"limited the sender for {limited * 100:.0f} % of the time")
