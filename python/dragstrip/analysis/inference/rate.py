"""The bottleneck's rate while it is busy, and how it changes.

Two measurements are independent. Dispersion: segments that leave the sender closer together than they are
acknowledged were spread by the bottleneck, so bytes over gap is its rate (Dovrolis et al., "Packet-Dispersion
Techniques and a Capacity-Estimation Methodology", ToN 2004). Slope: while segments wait, that is while round
trips are longer than the base, the link is never idle, so what is delivered over time is its rate. Where
both agree, nobody else used the link. Outside busy times the rate of a flow says nothing about the link.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from dragstrip.analysis.inference.estimate import Estimate, unknown
from dragstrip.analysis.inference.series import CapturedFlow, Flags, Floats

PAIRS_MIN = 8
"""Pairs of acknowledgements whose gaps give the rate, at least."""
SPREAD = 0.6
"""A pair was spread by the bottleneck if it was sent within this share of the gap of its acknowledgements."""
AROUND, TOGETHER, ALIKE = 4, 0.3, 0.25
"""Acknowledgements before and behind, over which the mean gap is taken; the share of it below which two
arrive together; the logarithm of the ratio of neighbouring rates that agree."""
BATCH = 40
"""Segments of a window in which the slope is taken; at least a quarter of them in a shorter busy time."""
BATCHES_MIN = 3
VARIATION_MAX = 0.05
"""Variation of the slope (half the distance between its 16 % and 84 % quantiles over the median) at most."""
STEPS_MAX = 240
"""Points of the rate over time, at most."""


@dataclass(frozen=True)
class Trips:
    """Acknowledgements with a round trip: arrival, when the segment was sent, round trip, delivered bytes."""

    at_s: Floats
    sent_s: Floats
    rtt_s: Floats
    delivered: Floats
    """At the IP layer."""

    def __len__(self) -> int:
        return len(self.at_s)


def trips(flow: CapturedFlow) -> Trips:
    """Return a flow's acknowledgements that have a round trip."""
    back = flow.returned
    has_rtt = np.isfinite(back.rtt_s)
    at, rtt = back.time_s[has_rtt], back.rtt_s[has_rtt]
    return Trips(at, at - rtt, rtt, np.asarray(back.delivered[has_rtt] * flow.overhead, np.float64))


def mode(values: Floats, weights: Floats) -> float:
    """Return the value around which within 5 % most weight lies, on a logarithmic scale."""
    order = np.argsort(values)
    ranked = np.log(values[order])
    total = np.concatenate(([0.0], np.cumsum(weights[order])))
    first, last = (
        np.searchsorted(ranked, ranked - 0.05, "left"),
        np.searchsorted(ranked, ranked + 0.05, "right"),
    )
    at = int(np.argmax(total[last] - total[first]))
    part = order[first[at] : last[at]]
    return _weighted(values[part], weights[part], 0.5)


@dataclass(frozen=True)
class Pairs:
    """Rates from the gaps between acknowledgements of segments sent back to back."""

    rates_bps: Floats
    at_s: Floats
    gap_s: Floats

    @property
    def rate_bps(self) -> float | None:
        """The rate at which most time passed: compressed acknowledgements count little. None with too few."""
        return mode(self.rates_bps, self.gap_s) if len(self.rates_bps) >= PAIRS_MIN else None


def pairs(flow: CapturedFlow, samples: Trips) -> Pairs:
    """Return the rates at which segments sent close together were delivered, where neighbours agree.

    Acknowledgements that arrive together count as one. A single long gap is a delayed acknowledgement.
    """
    none = Pairs(np.zeros(0), np.zeros(0), np.zeros(0))
    if len(samples) < 2 * AROUND + 2:
        return none
    mean = np.full(len(samples), np.nan)
    mean[AROUND:-AROUND] = (samples.at_s[2 * AROUND :] - samples.at_s[: -2 * AROUND]) / (2 * AROUND)
    mean[:AROUND], mean[-AROUND:] = mean[AROUND], mean[-AROUND - 1]
    last = np.append(np.diff(samples.at_s) >= TOGETHER * mean[:-1], True)
    at, sent_s, moved = samples.at_s[last], samples.sent_s[last], np.diff(samples.delivered[last])
    gap, apart = np.diff(at), np.diff(sent_s)
    full = flow.full_bytes * flow.overhead
    near = (gap > 0) & (moved > 0.5 * full) & (moved < 12.5 * full)
    rates = np.where(near, moved * 8 / np.maximum(gap, 1e-9), np.nan)
    spread = near & (apart >= 0) & (apart <= SPREAD * gap)
    alike = np.abs(np.log(rates[1:] / rates[:-1])) < ALIKE
    agreed = np.zeros(len(rates), bool)
    agreed[1:] |= alike
    agreed[:-1] |= alike
    use = spread & agreed
    return Pairs(rates[use], at[1:][use], gap[use])


@dataclass(frozen=True)
class Slopes:
    """Rates in windows in which the bottleneck was never idle."""

    begin_s: Floats
    end_s: Floats
    rate_bps: Floats
    packets: Floats
    clean: Flags
    """Nothing of what was sent in the window was lost."""


def busy(samples: Trips, base_s: float, packet_s: float) -> Flags:
    """Return for each acknowledgement whether its segment waited for one before it at the bottleneck."""
    flags: Flags = samples.rtt_s > base_s + 1.6 * packet_s + 50e-6
    return flags


def slopes(flow: CapturedFlow, samples: Trips, base_s: float, packet_s: float) -> Slopes:
    """Return the slopes of what was delivered, in windows of the busy times."""
    full = flow.full_bytes * flow.overhead
    waits = busy(samples, base_s, packet_s)
    # A timeout or a pause is no busy time, however long the round trip that ends it.
    linked = waits[1:] & waits[:-1] & (np.diff(samples.at_s) < samples.rtt_s[1:])
    edges = np.flatnonzero(np.diff(np.concatenate(([False], linked, [False])).astype(int)))
    lost_at = np.sort(flow.segments.time_s[flow.segments.lost_bytes > 0])
    rows: list[tuple[float, float, float, float, bool]] = []
    for first, last in zip(edges[::2], edges[1::2], strict=True):
        moved = samples.delivered[first : last + 1] - samples.delivered[first]
        total = moved[-1] / full
        if total < BATCH / 4:
            continue
        pieces = max(1, int(total // BATCH))
        cuts = first + np.unique(np.searchsorted(moved, np.linspace(0, moved[-1], pieces + 1)))
        for start, stop in pairwise(cuts):
            span = samples.at_s[stop] - samples.at_s[start]
            count = samples.delivered[stop] - samples.delivered[start]
            if span <= 0 or count < full * BATCH / 8:
                continue
            hit = np.searchsorted(lost_at, [samples.sent_s[start], samples.sent_s[stop]])
            rows.append(
                (samples.at_s[start], samples.at_s[stop], count * 8 / span, count / full, hit[0] == hit[1])
            )
    table = np.array(rows, dtype=float).reshape(-1, 5)
    return Slopes(table[:, 0], table[:, 1], table[:, 2], table[:, 3], table[:, 4] > 0)


@dataclass(frozen=True)
class Capacity:
    """The rate, with what it rests on."""

    rate_bps: Estimate
    over_time: tuple[tuple[float, float], ...]
    steady: bool
    """The slope is the same at all times."""


def capacity(
    flow: CapturedFlow, samples: Trips, ack_pairs: Pairs, base_s: float, shared: str = ""
) -> Capacity:
    """Return the bottleneck's rate at the IP layer; `shared`: why other flows may have taken a part of it."""
    guess = ack_pairs.rate_bps
    if guess is None:
        return Capacity(unknown("the bottleneck was never busy long enough: capacity not reached"), (), False)
    full = flow.full_bytes * flow.overhead
    packet_s = full * 8 / guess
    windows = slopes(flow, samples, base_s, packet_s)
    if windows.packets.sum() < BATCH or len(windows.rate_bps) < BATCHES_MIN:
        reached = float(windows.rate_bps.max()) if len(windows.rate_bps) else None
        why = "the bottleneck's queue was hardly ever in use: capacity not reached"
        return Capacity(unknown(why, reached), (), False)
    over_time = _over_time(windows)
    use = windows.clean if windows.clean.sum() >= 5 else np.ones(len(windows.rate_bps), bool)
    rates, weights = windows.rate_bps[use], windows.packets[use]
    value = _weighted(rates, weights, 0.5)
    low, high = _weighted(rates, weights, 0.16), _weighted(rates, weights, 0.84)
    variation = (high - low) / 2 / value
    if shared:
        return Capacity(unknown(shared, value), over_time, False)
    if variation > VARIATION_MAX:
        why = f"the rate while busy varies by {variation * 100:.0f} %: other traffic, or a link that varies"
        return Capacity(unknown(why, low, max(high, guess)), over_time, False)
    error = max(2 * variation / np.sqrt(len(rates)), 2 / float(weights.sum()), 0.002)
    if guess > 1.5 * value and _bursts(ack_pairs, windows) > 0.5:
        # Pieces that pass faster than the whole: the gaps do not confirm the slope.
        error = max(error, 0.01)
    # A link that idles for a moment, behind a late acknowledgement, is slower in that window, never faster.
    most = max(value * (1 + error), min(high, value * (1 + VARIATION_MAX)))
    return Capacity(Estimate(value, value * (1 - error), most), over_time, True)


def _bursts(ack_pairs: Pairs, windows: Slopes) -> float:
    """Return the share of pairs in busy windows that are much faster than the window."""
    at = np.searchsorted(windows.begin_s, ack_pairs.at_s, "right") - 1
    inside = (at >= 0) & (ack_pairs.at_s <= windows.end_s[np.maximum(at, 0)])
    if not inside.any():
        return 0.0
    return float((ack_pairs.rates_bps[inside] > 1.3 * windows.rate_bps[at[inside]]).mean())


def _weighted(values: Floats, weights: Floats, share: float) -> float:
    order = np.argsort(values)
    total = np.cumsum(weights[order]) - weights[order] / 2
    return float(np.interp(share * weights.sum(), total, values[order]))


def _over_time(windows: Slopes) -> tuple[tuple[float, float], ...]:
    step = max(1, -(-len(windows.rate_bps) // STEPS_MAX))
    points = []
    for first in range(0, len(windows.rate_bps), step):
        part = slice(first, first + step)
        weight = windows.packets[part]
        middle = float((windows.begin_s[part][0] + windows.end_s[part][-1]) / 2)
        points.append(
            (round(middle, 6), round(float(weight.sum() / (weight / windows.rate_bps[part]).sum()), 1))
        )
    return tuple(points)
