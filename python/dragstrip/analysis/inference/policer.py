"""Policing: a token bucket that drops what exceeds its rate, without a queue.

A loss says that the bucket was empty, so between two losses the bucket let pass what it was given in that
time, unless it was full meanwhile. The rate is the one on which most of the traffic between neighbouring
losses agrees; the depth is the most that passed in addition. The bucket with both is then simulated over the
capture: it must be empty at losses and not at what passed (Flach et al., "An Internet-Wide Analysis of
Traffic Policing", SIGCOMM 2016). Segments that were delivered faster than the rate, or round trips that do
not grow, show that what was lost was not lost behind a queue of that rate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dragstrip.analysis.inference.series import CapturedFlow, Floats, Integers

LOSSES_MIN = 12
"""Lost segments, at least: fewer fit many buckets by chance."""
EPISODES_MIN = 3
"""Round trips with losses, at least."""
EVENTS_MAX = 400_000
"""Segments that are simulated, at most."""
RIGHT_MIN = 0.88
"""Mean of the share of losses at which the simulated bucket is empty and of the share of what passed for
which it has enough, at least."""
PASSED_MIN = 0.95
"""Share of what passed for which it has enough, at least."""
CLEAR = 0.99
"""From here on no other bucket is looked for."""
RATIO_MAX = 1.1
"""Highest over lowest rate that explains as much: beyond it the rate is not known."""
GRID_MAX = 40_000
"""Segments over which all buckets of the grid are simulated, at most."""


@dataclass(frozen=True)
class Events:
    """Arrivals at the policer: times, bytes that passed and bytes that were lost, at the IP layer."""

    time_s: Floats
    passed_bytes: Floats
    lost_bytes: Floats

    def losses(self) -> int:
        """Return the number of segments of which something was lost."""
        return int((self.lost_bytes > 0).sum())


@dataclass(frozen=True)
class Bucket:
    """A token bucket and how well it explains what was lost."""

    rate_bps: float
    low_bps: float
    high_bps: float
    burst_bytes: float
    burst_bounds: tuple[float, float | None]
    empty: float
    """Share of losses with an empty bucket."""
    enough: float
    """Share of passed segments with enough in it."""

    @property
    def right(self) -> float:
        """Share of events that it gets right, losses and passes counted alike."""
        return (self.empty + self.enough) / 2

    @property
    def explains(self) -> bool:
        """True when the losses are those of this bucket."""
        return self.right >= RIGHT_MIN and self.enough >= PASSED_MIN


def events(flows: list[CapturedFlow]) -> Events:
    """Return the segments of flows together, in the order of time."""
    origin = min(flow.origin_ns for flow in flows)
    times, passed_bytes, lost_bytes = [], [], []
    for flow in flows:
        segments = flow.segments
        # Super-segments become as many packets: each has its own headers.
        packets = np.maximum(1, np.ceil(segments.bytes / flow.full_bytes))
        whole = segments.bytes + packets * flow.header_bytes
        share = np.where(segments.bytes > 0, segments.lost_bytes / np.maximum(1, segments.bytes), 0.0)
        times.append(segments.time_s + (flow.origin_ns - origin) / 1e9)
        lost_bytes.append(whole * share)
        passed_bytes.append(whole * (1 - share))
    at = np.concatenate(times)
    order = np.argsort(at, kind="stable")[:EVENTS_MAX]
    return Events(at[order], np.concatenate(passed_bytes)[order], np.concatenate(lost_bytes)[order])


def enough(events: Events, base_s: float) -> bool:
    """Return whether there are enough losses, in enough round trips, to tell a bucket from chance."""
    hits = np.flatnonzero(events.lost_bytes > 0)
    trips = np.unique((events.time_s[hits] / max(base_s, 1e-3)).astype(np.int64))
    return len(hits) >= LOSSES_MIN and len(trips) >= EPISODES_MIN


def by_losses(events: Events, packet: float) -> Bucket | None:
    """Return the bucket that the traffic between neighbouring losses gives."""
    hits = np.flatnonzero(events.lost_bytes > 0)
    passed_between = np.diff(np.cumsum(events.passed_bytes)[hits])
    apart = np.diff(events.time_s[hits])
    use = (passed_between > 0) & (apart > 0)
    if use.sum() < 4:
        return None
    rate = _agreed(passed_between[use], apart[use], packet)
    if rate is None:
        return None
    value, low, high = rate
    for _ in range(2):
        burst, least, most = _depth(events, hits, value, packet)
        value, error = _over_chains(events, hits, value, burst, packet) or (value, high / value - 1)
        low, high = value * (1 - error), value * (1 + error)
    empty, passed = simulated(events, np.array([value]), np.array([burst]), packet)
    return Bucket(value * 8, low * 8, high * 8, burst, (least, most), float(empty[0]), float(passed[0]))


def by_grid(events: Events, packet: float) -> Bucket | None:
    """Return the best of many buckets: a shallow one is full again before the next loss."""
    part = Events(events.time_s[:GRID_MAX], events.passed_bytes[:GRID_MAX], events.lost_bytes[:GRID_MAX])
    span = float(part.time_s[-1] - part.time_s[0])
    if not part.losses() or span <= 0:
        return None
    mean = float(part.passed_bytes.sum()) / span
    rates, depths = np.geomspace(mean * 0.7, mean * 60, 90), packet * np.geomspace(1.5, 40, 24)
    rate, depth, empty, passed = _best(part, rates, depths, packet, 0.5)
    if (empty + passed).max() / 2 >= RIGHT_MIN:
        # Once more around it, with less tolerance.
        rates = np.geomspace(rate.min() / 1.06, rate.max() * 1.06, 60)
        depths = np.geomspace(depth.min() / 1.15, depth.max() * 1.15, 30)
        rate, depth, empty, passed = _best(part, rates, depths, packet, 0.1)
    # All of these explain as much: the capture does not tell them apart.
    value = float(np.exp(np.log(rate).mean()))
    deep = float(np.exp(np.log(depth).mean()))
    bounds = (float(depth.min()) - packet / 2, float(depth.max()) + packet / 2)
    low, high = float(rate.min()), float(rate.max())
    return Bucket(value * 8, low * 8, high * 8, deep, bounds, float(empty.max()), float(passed.max()))


def _best(
    events: Events, rates: Floats, depths: Floats, packet: float, slack: float
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the buckets of a grid that explain most: rates, depths, shares of losses and of passes."""
    rate, depth = (axis.ravel() for axis in np.meshgrid(rates, depths))
    empty, passed = simulated(events, rate, depth, packet, slack)
    right = empty + passed
    good = right >= right.max() - 0.005
    return rate[good], depth[good], empty[good], passed[good]


def _agreed(passed_between: Floats, apart: Floats, packet: float) -> tuple[float, float, float] | None:
    """Return the rate in bytes per second on which most bytes between losses agree, and its bounds."""
    rates = passed_between / apart
    candidates = np.geomspace(rates.min(), rates.max(), 2000) if rates.max() > rates.min() else rates[:1]
    best, agreeing = 0.0, None
    slack = 2.5 * packet
    for rate in candidates:
        near = np.abs(rate * apart - passed_between) <= slack
        score = float(np.minimum(passed_between[near], 60 * packet).sum())
        if score > best:
            best, agreeing = score, near
    if agreeing is None or passed_between[agreeing].sum() < 10 * packet:
        return None
    for _ in range(3):
        value = float(passed_between[agreeing].sum() / apart[agreeing].sum())
        agreeing = np.abs(value * apart - passed_between) <= slack
        if not agreeing.any():
            return None
    value = float(passed_between[agreeing].sum() / apart[agreeing].sum())
    error = max(0.005, 2 * packet * np.sqrt(agreeing.sum()) / float(passed_between[agreeing].sum()))
    return value, value * (1 - error), value * (1 + error)


def _over_chains(
    events: Events, hits: Integers, rate: float, burst: float, packet: float
) -> tuple[float, float] | None:
    """Return the rate over all times between losses in which the bucket was never full, and its error.

    The error is a share of the rate. Over neighbouring times what was left in the bucket cancels out. None
    where these times are short.
    """
    first, last = int(hits[0]), int(hits[-1])
    level, at = 0.0, float(events.time_s[first])
    spilled = False
    passed, begin, runs = 0.0, at, 0
    total, span_s = 0.0, 0.0
    fresh = True
    part = slice(first, last + 1)
    for time, went, lost_bytes in zip(
        events.time_s[part].tolist(),
        events.passed_bytes[part].tolist(),
        events.lost_bytes[part].tolist(),
        strict=True,
    ):
        level += rate * (time - at)
        at = time
        if level > burst:
            level, spilled = burst, True
        level = max(level - went, 0.0)
        passed += went
        if lost_bytes > 0:
            if not spilled:
                total, span_s = total + passed, span_s + time - begin
                runs += fresh
            fresh = spilled
            level, passed, begin, spilled = min(level, packet), 0.0, time, False
    if total < 100 * packet or span_s <= 0:
        return None
    return total / span_s, max(0.005, 2 * packet * float(np.sqrt(max(1, runs))) / total)


def _depth(events: Events, hits: Integers, rate: float, packet: float) -> tuple[float, float, float | None]:
    """Return the depth in bytes with bounds: the most that passed before a loss in excess of the rate."""
    excess = np.cumsum(events.passed_bytes) - rate * (events.time_s - events.time_s[0])
    most, first_loss = 0.0, 0.0
    begin = 0
    for number, hit in enumerate(hits):
        part = excess[begin : hit + 1]
        if len(part):
            before = part - np.concatenate(
                ([events.passed_bytes[begin]], np.diff(np.cumsum(events.passed_bytes[begin : hit + 1])))
            )
            grown = float(part[-1] - np.minimum(before.min(), part.min()))
            most = max(most, grown)
            if number == 0:
                first_loss = grown
        begin = int(hit) + 1
    value = max(most, packet)
    # The bucket is full before the first segment, and after any long pause.
    upper = value + 2 * packet if first_loss >= 0.8 * value else None
    return value, max(0.0, value - 2 * packet), upper


def simulated(
    events: Events, rate: Floats, depth: Floats, packet: float, tolerance: float = 0.5
) -> tuple[Floats, Floats]:
    """Return the shares of losses and of passes that token buckets (bytes per second, bytes) explain.

    A loss needs less than a packet in the bucket, a pass all of its bytes, with a tolerance in packets.
    Afterwards the bucket holds what the event says, so that an error does not last.
    """
    level, last = depth.copy(), float(events.time_s[0])
    empty, fit = np.zeros(len(rate)), np.zeros(len(rate))
    losses = passes = 0
    slack = np.minimum(tolerance * packet, 0.2 * depth)
    for time, passed, lost_bytes in zip(
        events.time_s.tolist(), events.passed_bytes.tolist(), events.lost_bytes.tolist(), strict=True
    ):
        level = np.minimum(depth, level + rate * (time - last))
        last = time
        if passed > 0:
            passes += 1
            fit += level >= passed - slack
            level = np.maximum(level - passed, 0.0)
        if lost_bytes > 0:
            losses += 1
            empty += level < min(lost_bytes, packet) + slack
            level = np.minimum(level, packet)
    return empty / max(1, losses), fit / max(1, passes)
