"""What a capture says about the path of each of its flows.

Each property has a module of its own; here they meet, and what one excludes is left out of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from dragstrip.errors import BadInputError
from dragstrip.formats import captures
from dragstrip.inference import arrivals, base, noise, policer, queue, rate, series, shaper
from dragstrip.inference.estimate import Estimate, unknown
from dragstrip.inference.series import Flow

__all__ = ["Estimate", "PathEstimate", "infer", "of_flow"]

Said = Mapping[str, Any]
Method = Callable[[policer.Events, float], policer.Bucket | None]

SEGMENTS_MIN = 20
"""Segments of a flow with which it is looked at."""
SHARED = 0.05
"""Share of a flow's bytes that others have sent meanwhile, from which they compete."""
DEEP_MIN, FASTER = 20, 1.3
"""Packets of a bucket that no short queue is taken for, at least; how much faster than a policer's rate
segments must arrive where they wait for one or two packets' time."""
BURST_MIN = 2
"""Packets that a policer's bucket lets pass at once, at least: with less it would drop every burst of two."""
WAITED = 1.15
"""Longer round trips (95 %) over the base from which a queue was in use."""
BESIDE_MAX = 3
"""Flows that may share a policer with one, at most."""
JITTER_MIN = 0.004
"""Jitter below this share of the round trip is none."""
APART = 1.05
"""Gap between the intervals of two policers' rates from which they exclude each other."""
CLOCK = "the clock of the capture was set back meanwhile: split the capture there"
AT_RECEIVER = "the capture was taken at the receiver; one at the sender shows it"
AT_QUEUE = "the capture was taken behind the bottleneck's queue; one at the sender shows it"
STEPPED = 0.95
"""Share of the handshake's round trip below which none can be, if the clock was not set."""
FLOWS_MAX = 64
"""Flows whose paths are inferred, the largest first."""


@dataclass(frozen=True)
class PathEstimate:
    """The path of a flow, as far as one capture shows it. Rates and sizes are at the IP layer."""

    file: str
    flow: str
    """As `inspect` names it."""
    place: str
    """Where the capture stands: `sender`, `receiver`, `between`, `queue` (where packets leave that of the
    bottleneck)."""
    base_rtt_ms: Estimate
    rate_bps: Estimate
    """Rate of the bottleneck, over the time at capacity."""
    rate_over_time: tuple[tuple[float, float], ...]
    """Seconds since the flow's first segment, bit/s; only while the bottleneck was busy."""
    buffer_bytes: Estimate
    buffer_ms: Estimate
    queue: str
    """`tail drop`, `aqm`, `policer`, `shaper` (which drops at its tail) or `cannot tell`."""
    queue_reason: str
    policer_rate_bps: Estimate
    policer_burst_bytes: Estimate
    shaper_burst_bytes: Estimate
    """Bucket of a shaper; its rate is the bottleneck's."""
    random_loss: Estimate
    """Share of segments that were lost for no reason of the queue's."""
    jitter_ms: Estimate
    ack_aggregation_ms: Estimate
    receiver_window_bytes: Estimate
    """Largest offered window; `reason` says whether it limited the sender."""
    notes: tuple[str, ...]


def infer(file: Path, flow: str | None = None) -> list[PathEstimate]:
    """Return what a capture says about the path of each flow, or of the one whose name contains `flow`.

    Raises `BadInputError` for a file that is no capture, and where no flow or several have that name.
    """
    found = captures.segments(file, quiet=False)
    if flow is None:
        return of_segments(file, found)
    flows = _flows(*found)
    named = [each for each in flows if flow in each.name]
    if len(named) != 1:
        names = ", ".join(each.name for each in flows[:8]) or "no flow"
        raise BadInputError("flow", flow, f"part of one flow's name of {names}", str(file))
    return [_alone(file, flows, flows.index(named[0]))]


def of_segments(file: Path, found: captures.Segments) -> list[PathEstimate]:
    """Return the path of each of a capture's largest flows from what `captures.segments` returns."""
    flows = _flows(*found)
    largest = sorted(range(len(flows)), key=lambda at: -int(flows[at].sent.bytes.sum()))[:FLOWS_MAX]
    left, known = len(flows) - len(largest), Buckets()
    paths = {flows[at].number: _path(str(file), flows[at], flows, left, known) for at in sorted(largest)}
    return [_compared(flows[at], flows, paths) for at in sorted(largest)]


def of_flow(file: Path, said: Said, rows: Sequence[Said], at: int) -> PathEstimate:
    """Return the path of the flow at this place; `said` and `rows` are what `captures.whole` returns."""
    return _alone(file, _flows(said, rows), at)


def _flows(said: Said, rows: Sequence[Said]) -> list[Flow]:
    return [series.of(one, each, said["files"][0]) for one, each in zip(said["flows"], rows, strict=True)]


def _alone(file: Path, flows: Sequence[Flow], at: int) -> PathEstimate:
    """Return the path of one flow, compared with those of the flows beside it."""
    known, flow = Buckets(), flows[at]
    path = _path(str(file), flow, flows, 0, known)
    if path.queue != "policer":
        return path
    beside = _beside(flow, flows)[:BESIDE_MAX]
    paths = {other.number: _path(str(file), other, flows, 0, known) for other in beside}
    return _compared(flow, flows, {flow.number: path, **paths})


def _compared(flow: Flow, flows: Sequence[Flow], paths: Mapping[int, PathEstimate]) -> PathEstimate:
    """Return a flow's path without a policer's rate where flows beside it give others.

    Behind one policer all have one rate: two that exclude each other are two policers, or one of them, or
    both, is wrong, and a capture does not show which.
    """
    path = paths[flow.number]
    mine = path.policer_rate_bps
    if path.queue != "policer" or mine.low is None or mine.high is None:
        return path
    others = [paths[other.number].policer_rate_bps for other in _beside(flow, flows) if other.number in paths]
    apart = [
        (other.low, other.high)
        for other in others
        if other.low is not None
        and other.high is not None
        and (other.low > APART * mine.high or APART * other.high < mine.low)
    ]
    if not apart:
        return path
    low, high = min(mine.low, *(low for low, _ in apart)), max(mine.high, *(high for _, high in apart))
    why = "flows beside it give other rates: one policer or several cannot be told"
    return replace(path, policer_rate_bps=unknown(why, low, high), policer_burst_bytes=unknown(why))


class Buckets:
    """The token buckets of sets of flows, each looked for once."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, frozenset[int]], policer.Bucket | None] = {}

    def __call__(self, flows: Sequence[Flow], method: Method) -> policer.Bucket | None:
        """Return the bucket that explains best what these flows lost together."""
        key = method.__name__, frozenset(each.number for each in flows)
        if key not in self._known:
            packet = max(each.full_bytes + each.header_bytes for each in flows)
            trip = min(rate.trips(each).rtt_s.min(initial=np.inf) for each in flows)
            events = policer.events(list(flows))
            possible = np.isfinite(trip) and policer.enough(events, float(trip))
            self._known[key] = method(events, packet) if possible else None
        return self._known[key]


def _path(file: str, flow: Flow, flows: Sequence[Flow], left: int, known: Buckets) -> PathEstimate:
    notes = []
    if left:
        notes.append(f"{left} smaller flows were not looked at")
    if flow.cut:
        notes.append("only the first three million segments and acknowledgements were looked at")
    others = _beside(flow, flows)
    if others:
        notes.append(
            f"{len(others)} other flow{'s' if len(others) > 1 else ''} of this capture ran meanwhile"
        )
    if (flow.sent.bytes > flow.full_bytes).mean() > 0.02 if len(flow.sent) else False:
        notes.append("the capture has segments joined by the sender's offload")
    seen = rate.trips(flow)
    missing = CLOCK if _stepped(flow, seen) else _refusal(flow)
    behind = not missing and arrivals.is_behind_queue(flow, others)
    place = "queue" if behind else flow.place
    if missing or place in ("receiver", "queue"):
        cannot = unknown(missing or (AT_QUEUE if behind else AT_RECEIVER))
        trip = base.elsewhere(flow) if behind else _base_alone(flow, seen)
        speed, over_time = (cannot, ()) if missing or others else arrivals.rate(flow, trip.value)
        return PathEstimate(
            file,
            flow.name,
            place,
            trip,
            speed,
            over_time,
            cannot,
            cannot,
            "cannot tell",
            cannot.reason,
            cannot,
            cannot,
            cannot,
            cannot,
            cannot,
            cannot,
            noise.receiver_window(flow),
            tuple(notes),
        )
    if flow.place == "between":
        notes.append("only what lies between the capture and the receiver is seen, but for the base RTT")
    return _before_bottleneck(file, flow, others, seen, notes, known)


def _base_alone(flow: Flow, seen: rate.Trips) -> Estimate:
    """Return the base RTT where nothing else is known."""
    if _stepped(flow, seen):
        return unknown(CLOCK)
    return base.base_rtt(flow, seen, None) if flow.place == "sender" else base.elsewhere(flow)


def _stepped(flow: Flow, seen: rate.Trips) -> bool:
    """Return whether the capture's clock was set back by so much that a round trip across it is too short.

    Captures from several queues of a network card have many small steps, which change nothing.
    """
    if not flow.clock_steps or not len(seen):
        return False
    return flow.opening_s is None or float(seen.rtt_s.min()) < STEPPED * flow.opening_s


def _refusal(flow: Flow) -> str:
    if len(flow.sent) < SEGMENTS_MIN:
        return f"{len(flow.sent)} segments are too few"
    if not len(flow.returned) or flow.returned.delivered[-1] <= flow.returned.delivered[0]:
        return "the acknowledgements are not in the capture"
    return ""


def _beside(flow: Flow, flows: Sequence[Flow]) -> list[Flow]:
    """Return the flows of the same sender that were busy while this one was."""
    begin, end = flow.origin_ns, flow.origin_ns + flow.duration_s * 1e9
    host = flow.name.split(" → ")[0].rsplit(":", 1)[0]
    total = float(flow.sent.bytes.sum())
    found = []
    for other in flows:
        if other is flow or other.name.split(" → ")[0].rsplit(":", 1)[0] != host:
            continue
        at = other.origin_ns + other.sent.time_s * 1e9
        meanwhile = float(other.sent.bytes[(at >= begin) & (at <= end)].sum())
        if meanwhile > SHARED * total:
            found.append(other)
    return found


def _before_bottleneck(
    file: str, flow: Flow, others: list[Flow], seen: rate.Trips, notes: list[str], known: Buckets
) -> PathEstimate:
    packet = flow.full_bytes * flow.overhead
    found = rate.pairs(flow, seen)
    rough = base.rough_s(flow, seen)
    first = base.base_rtt(flow, seen, found.rate_bps)
    base_s = (first.value or (rough or 0.0) * 1e3) / 1e3
    shared = "other flows of this capture took a part of it" if others else ""
    capacity = rate.capacity(flow, seen, found, base_s, shared)
    estimate = capacity.rate_bps
    trip = base.base_rtt(flow, seen, estimate.value or found.rate_bps)
    base_s = (trip.value or 0.0) / 1e3
    jitter = _jitter(seen, packet, base_s, estimate.value, found.rate_bps)
    trip = base.base_rtt(flow, seen, estimate.value or found.rate_bps, _shown(jitter, base_s))
    shaped = None if others else shaper.shaper(flow, seen, base_s, estimate, packet)
    policed = None if shaped else _policed(flow, others, packet, base_s, seen, found, known)
    if policed is not None:
        trip = base.base_rtt(flow, seen, None, _shown(jitter, base_s))
    standing = trip.value is not None and trip.low is None
    if flow.place == "between":
        trip = base.elsewhere(flow)
    rate_bps = (
        unknown("a policer limits the flow: the link behind it was not reached") if policed else estimate
    )
    none = unknown("no policer was found")
    if policed is not None:
        held = queue.without(
            "policer",
            f"{policed.empty * 100:.0f} % of the losses found the simulated bucket empty, without a queue",
            "a policer has no buffer",
            unknown("losses are the policer's"),
        )
        police = Estimate(policed.rate_bps, policed.low_bps, policed.high_bps)
        if policed.high_bps > policer.RATIO_MAX * policed.low_bps:
            why = "a shallow bucket: it was full again before each burst"
            police = unknown(why, policed.low_bps, policed.high_bps)
        least, most = policed.burst_bounds
        burst = Estimate(policed.burst_bytes, least, most)
        if others:
            burst = unknown("flows beside it take from the same bucket, which was perhaps never full")
    else:
        police = burst = none
        speed = estimate.value or (found.rate_bps if others else None)
        waits = (
            None
            if speed is None
            else queue.waits(flow, seen, base_s, speed, shaped.queued if shaped else None)
        )
        if speed is None or waits is None:
            late = float(np.quantile(seen.rtt_s, 0.95)) if len(seen) else 0.0
            held = queue.unqueued(flow, estimate.reason, late > WAITED * base_s)
        else:
            held = queue.classify(flow, waits, speed, packet, (jitter.value or 0.0) / 1e3)
            if shaped and held.kind != "aqm":
                held = replace(held, kind="shaper", reason=shaped.reason)
            if others:
                held = queue.without(held.kind, held.reason, shared, held.random_loss)
            if standing:
                held = queue.at_least(held)
    return PathEstimate(
        file=file,
        flow=flow.name,
        place=flow.place,
        base_rtt_ms=trip,
        rate_bps=rate_bps,
        rate_over_time=() if policed else capacity.over_time,
        buffer_bytes=held.buffer_bytes,
        buffer_ms=held.buffer_ms,
        queue=held.kind,
        queue_reason=held.reason,
        policer_rate_bps=police,
        policer_burst_bytes=burst,
        shaper_burst_bytes=shaped.burst_bytes if shaped else unknown("no shaper was found"),
        random_loss=held.random_loss,
        jitter_ms=jitter,
        ack_aggregation_ms=noise.aggregation(flow),
        receiver_window_bytes=noise.receiver_window(flow),
        notes=tuple(notes),
    )


def _jitter(
    seen: rate.Trips, packet: float, base_s: float, rate_bps: float | None, pairs_bps: float | None
) -> Estimate:
    """Return the jitter, by acknowledgements of a busy bottleneck too where its rate is known."""
    found = noise.jitter(seen, packet * 8 / (rate_bps or pairs_bps or np.inf), base_s)
    if rate_bps is None:
        return found
    busy = noise.busy_jitter(seen, packet, base_s, rate_bps)
    return busy if (busy.value or 0.0) > (found.value or 0.0) else found


def _shown(jitter: Estimate, base_s: float) -> float:
    """Return the jitter in seconds, or 0 where it is too small to be told from none."""
    value = (jitter.value or 0.0) / 1e3
    return value if value > JITTER_MIN * base_s else 0.0


def _policed(
    flow: Flow,
    others: list[Flow],
    packet: float,
    base_s: float,
    seen: rate.Trips,
    found: rate.Pairs,
    known: Buckets,
) -> policer.Bucket | None:
    """Return the policer that explains this flow's losses, alone or together with flows beside it."""
    beside = sorted(others, key=lambda other: -int(other.sent.bytes.sum()))[:BESIDE_MAX]
    sets = [[flow, *more] for count in range(len(beside) + 1) for more in combinations(beside, count)]
    tried = []
    for method in (policer.by_losses, policer.by_grid):
        for flows in sets:
            bucket = known(flows, method)
            if bucket is None or not bucket.explains or bucket.burst_bytes < BURST_MIN * packet:
                continue
            waits = queue.waits(flow, seen, base_s, bucket.rate_bps)
            if waits is None or not len(waits.at_loss):
                continue
            # A queue that overflows is a bucket too, but what it lets pass has waited as long as it is deep.
            # The depth is sure only if the bucket was seen full.
            waited = float(np.median(waits.at_loss))
            sure = bucket.burst_bounds[1] is not None and bucket.burst_bytes >= DEEP_MIN * packet
            faster = found.rate_bps is None or found.rate_bps > FASTER * bucket.rate_bps
            # A short queue at a link of that rate explains the same losses.
            link = not faster and (found.rate_bps or 0.0) > bucket.low_bps / FASTER
            short = not link and waited <= (2 if faster else 0.35) * packet
            if short or (sure and waited <= 0.15 * bucket.burst_bytes):
                tried.append(bucket)
                if bucket.right >= policer.CLEAR:
                    return bucket
    return max(tried, key=lambda bucket: bucket.right, default=None)
