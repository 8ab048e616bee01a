"""Path estimate of each flow of a capture.

Each property has a module of its own; here they meet, and what one excludes is left out of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from dragstrip.analysis import captures
from dragstrip.analysis.inference import arrivals, base, noise, policer, queue, rate, series, shaper
from dragstrip.analysis.inference.estimate import Estimate, unknown
from dragstrip.analysis.inference.series import CapturedFlow
from dragstrip.errors import BadInputError
from dragstrip.model.scenario.paths import FRAME_OVER_IP

__all__ = ["Estimate", "PathEstimate", "infer", "of_flow"]

Document = Mapping[str, Any]
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
    """Vantage point of the capture: `sender`, `receiver`, `between`, `queue` (where packets leave that of the
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

    def framed(self) -> PathEstimate:
        """Return the path in bytes of Ethernet frames, as queues and lines count them."""
        names = ("rate_bps", "buffer_bytes", "policer_rate_bps", "policer_burst_bytes", "shaper_burst_bytes")
        framed: dict[str, Any] = {name: getattr(self, name).times(FRAME_OVER_IP) for name in names}
        over_time = tuple((at, bps * FRAME_OVER_IP) for at, bps in self.rate_over_time)
        return replace(self, rate_over_time=over_time, **framed)

    @property
    def polices(self) -> bool:
        """True when a policer drops what exceeds its rate."""
        return self.queue == "policer"

    @property
    def marks(self) -> bool:
        """True when acknowledgements report congestion marks."""
        return "congestion marks" in self.queue_reason

    @property
    def policer_bounds_bps(self) -> tuple[float, float] | None:
        """Bounds of the policer's rate, where no more is known of it."""
        rate = self.policer_rate_bps
        if rate.value is not None or rate.low is None or rate.high is None:
            return None
        return rate.low, rate.high

    @property
    def random_loss_share(self) -> float | None:
        """The share that is lost whatever the queue; 0 where its interval begins there."""
        loss = self.random_loss
        return loss.value if loss.value is None or loss.low else 0.0


def infer(file: Path, flow: str | None = None) -> list[PathEstimate]:
    """Return what a capture says about the path of each flow, or of the one whose name contains `flow`.

    Raises `BadInputError` for a file that is no capture, and where no flow or several have that name.
    """
    segments = captures.segments(file, quiet=False)
    if flow is None:
        return of_segments(file, segments)
    flows = _flows(*segments)
    matching = [candidate for candidate in flows if flow in candidate.name]
    if len(matching) != 1:
        names = ", ".join(candidate.name for candidate in flows[:8]) or "no flow"
        raise BadInputError("flow", flow, f"part of one flow's name of {names}", str(file))
    return [_alone(file, flows, flows.index(matching[0]))]


def of_segments(file: Path, segments: captures.Segments) -> list[PathEstimate]:
    """Return the path of each of a capture's largest flows from what `captures.segments` returns."""
    flows = _flows(*segments)
    largest = sorted(range(len(flows)), key=lambda at: -int(flows[at].segments.bytes.sum()))[:FLOWS_MAX]
    small_flows, buckets = len(flows) - len(largest), Buckets()
    paths = {
        flows[at].number: _path(str(file), flows[at], flows, small_flows, buckets) for at in sorted(largest)
    }
    return [_compared(flows[at], flows, paths) for at in sorted(largest)]


def of_flow(file: Path, inspection: Document, rows: Sequence[Document], at: int) -> PathEstimate:
    """Return the path of the flow at this place; `inspection` and `rows` come from `captures.whole`."""
    return _alone(file, _flows(inspection, rows), at)


def _flows(inspection: Document, rows: Sequence[Document]) -> list[CapturedFlow]:
    return [
        series.of(row, columns, inspection["files"][0])
        for row, columns in zip(inspection["flows"], rows, strict=True)
    ]


def _alone(file: Path, flows: Sequence[CapturedFlow], at: int) -> PathEstimate:
    """Return the path of one flow, compared with those of the flows beside it."""
    buckets, flow = Buckets(), flows[at]
    path = _path(str(file), flow, flows, 0, buckets)
    if path.queue != "policer":
        return path
    concurrent = _concurrent_flows(flow, flows)[:BESIDE_MAX]
    paths = {neighbour.number: _path(str(file), neighbour, flows, 0, buckets) for neighbour in concurrent}
    return _compared(flow, flows, {flow.number: path, **paths})


def _compared(
    flow: CapturedFlow, flows: Sequence[CapturedFlow], paths: Mapping[int, PathEstimate]
) -> PathEstimate:
    """Return a flow's path without a policer's rate where flows beside it give others.

    Behind one policer all have one rate: two that exclude each other are two policers, or one of them, or
    both, is wrong, and a capture does not show which.
    """
    path = paths[flow.number]
    mine = path.policer_rate_bps
    if path.queue != "policer" or mine.low is None or mine.high is None:
        return path
    neighbour_rates = [
        paths[neighbour.number].policer_rate_bps
        for neighbour in _concurrent_flows(flow, flows)
        if neighbour.number in paths
    ]
    apart = [
        (rate_estimate.low, rate_estimate.high)
        for rate_estimate in neighbour_rates
        if rate_estimate.low is not None
        and rate_estimate.high is not None
        and (rate_estimate.low > APART * mine.high or APART * rate_estimate.high < mine.low)
    ]
    if not apart:
        return path
    low, high = min(mine.low, *(low for low, _ in apart)), max(mine.high, *(high for _, high in apart))
    why = "flows beside it give other rates: one policer or several cannot be told"
    return replace(path, policer_rate_bps=unknown(why, low, high), policer_burst_bytes=unknown(why))


class Buckets:
    """The token buckets of sets of flows, each looked for once."""

    def __init__(self) -> None:
        self._buckets: dict[tuple[str, frozenset[int]], policer.Bucket | None] = {}

    def __call__(self, flows: Sequence[CapturedFlow], method: Method) -> policer.Bucket | None:
        """Return the bucket that explains best what these flows lost together."""
        key = method.__name__, frozenset(flow.number for flow in flows)
        if key not in self._buckets:
            packet = max(flow.full_bytes + flow.header_bytes for flow in flows)
            trip = min(rate.trips(flow).rtt_s.min(initial=np.inf) for flow in flows)
            events = policer.events(list(flows))
            possible = np.isfinite(trip) and policer.enough(events, float(trip))
            self._buckets[key] = method(events, packet) if possible else None
        return self._buckets[key]


def _path(
    file: str, flow: CapturedFlow, flows: Sequence[CapturedFlow], small_flows: int, buckets: Buckets
) -> PathEstimate:
    notes = []
    if small_flows:
        notes.append(f"{small_flows} smaller flows were not looked at")
    if flow.cut:
        notes.append("only the first three million segments and acknowledgements were looked at")
    concurrent = _concurrent_flows(flow, flows)
    if concurrent:
        notes.append(
            f"{len(concurrent)} other flow{'s' if len(concurrent) > 1 else ''} of this capture ran meanwhile"
        )
    if (flow.segments.bytes > flow.full_bytes).mean() > 0.02 if len(flow.segments) else False:
        notes.append("the capture has segments joined by the sender's offload")
    samples = rate.trips(flow)
    missing = CLOCK if _stepped(flow, samples) else _refusal(flow)
    behind = not missing and arrivals.is_behind_queue(flow, concurrent)
    place = "queue" if behind else flow.place
    if missing or place in ("receiver", "queue"):
        cannot = unknown(missing or (AT_QUEUE if behind else AT_RECEIVER))
        trip = base.elsewhere(flow) if behind else _base_alone(flow, samples)
        speed, over_time = (cannot, ()) if missing or concurrent else arrivals.rate(flow, trip.value)
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
    return _before_bottleneck(file, flow, concurrent, samples, notes, buckets)


def _base_alone(flow: CapturedFlow, samples: rate.Trips) -> Estimate:
    """Return the base RTT where nothing else is known."""
    if _stepped(flow, samples):
        return unknown(CLOCK)
    return base.base_rtt(flow, samples, None) if flow.place == "sender" else base.elsewhere(flow)


def _stepped(flow: CapturedFlow, samples: rate.Trips) -> bool:
    """Return whether the capture's clock was set back by so much that a round trip across it is too short.

    Captures from several queues of a network card have many small steps, which change nothing.
    """
    if not flow.clock_steps or not len(samples):
        return False
    return flow.opening_s is None or float(samples.rtt_s.min()) < STEPPED * flow.opening_s


def _refusal(flow: CapturedFlow) -> str:
    if len(flow.segments) < SEGMENTS_MIN:
        return f"{len(flow.segments)} segments are too few"
    if not len(flow.returned) or flow.returned.delivered[-1] <= flow.returned.delivered[0]:
        return "the acknowledgements are not in the capture"
    return ""


def _concurrent_flows(flow: CapturedFlow, flows: Sequence[CapturedFlow]) -> list[CapturedFlow]:
    """Return the flows of the same sender that were busy while this one was."""
    begin, end = flow.origin_ns, flow.origin_ns + flow.duration_s * 1e9
    host = flow.name.split(" → ")[0].rsplit(":", 1)[0]
    total = float(flow.segments.bytes.sum())
    concurrent = []
    for candidate in flows:
        if candidate is flow or candidate.name.split(" → ")[0].rsplit(":", 1)[0] != host:
            continue
        at = candidate.origin_ns + candidate.segments.time_s * 1e9
        meanwhile = float(candidate.segments.bytes[(at >= begin) & (at <= end)].sum())
        if meanwhile > SHARED * total:
            concurrent.append(candidate)
    return concurrent


def _before_bottleneck(
    file: str,
    flow: CapturedFlow,
    concurrent: list[CapturedFlow],
    samples: rate.Trips,
    notes: list[str],
    buckets: Buckets,
) -> PathEstimate:
    packet = flow.full_bytes * flow.overhead
    ack_pairs = rate.pairs(flow, samples)
    rough = base.rough_s(flow, samples)
    first = base.base_rtt(flow, samples, ack_pairs.rate_bps)
    base_s = (first.value or (rough or 0.0) * 1e3) / 1e3
    shared = "other flows of this capture took a part of it" if concurrent else ""
    capacity = rate.capacity(flow, samples, ack_pairs, base_s, shared)
    estimate = capacity.rate_bps
    trip = base.base_rtt(flow, samples, estimate.value or ack_pairs.rate_bps)
    base_s = (trip.value or 0.0) / 1e3
    jitter = _jitter(samples, packet, base_s, estimate.value, ack_pairs.rate_bps)
    trip = base.base_rtt(
        flow, samples, estimate.value or ack_pairs.rate_bps, _significant_jitter_s(jitter, base_s)
    )
    shaped = None if concurrent else shaper.shaper(flow, samples, base_s, estimate, packet)
    policed = None if shaped else _policed(flow, concurrent, packet, base_s, samples, ack_pairs, buckets)
    if policed is not None:
        trip = base.base_rtt(flow, samples, None, _significant_jitter_s(jitter, base_s))
    standing = trip.value is not None and trip.low is None
    if flow.place == "between":
        trip = base.elsewhere(flow)
    rate_bps = (
        unknown("a policer limits the flow: the link behind it was not reached") if policed else estimate
    )
    if policed is not None:
        queue_estimate, police, burst = _policer_estimates(policed, bool(concurrent))
    else:
        police = burst = unknown("no policer was found")
        speed = estimate.value or (ack_pairs.rate_bps if concurrent else None)
        link = _Link(speed, estimate.reason, packet, base_s, (jitter.value or 0.0) / 1e3, standing)
        queue_estimate = _queue_estimate(flow, samples, link, shaped, shared)
    return PathEstimate(
        file=file,
        flow=flow.name,
        place=flow.place,
        base_rtt_ms=trip,
        rate_bps=rate_bps,
        rate_over_time=() if policed else capacity.over_time,
        buffer_bytes=queue_estimate.buffer_bytes,
        buffer_ms=queue_estimate.buffer_ms,
        queue=queue_estimate.kind,
        queue_reason=queue_estimate.reason,
        policer_rate_bps=police,
        policer_burst_bytes=burst,
        shaper_burst_bytes=shaped.burst_bytes if shaped else unknown("no shaper was found"),
        random_loss=queue_estimate.random_loss,
        jitter_ms=jitter,
        ack_aggregation_ms=noise.aggregation(flow),
        receiver_window_bytes=noise.receiver_window(flow),
        notes=tuple(notes),
    )


def _policer_estimates(
    policed: policer.Bucket, is_shared: bool
) -> tuple[queue.QueueEstimate, Estimate, Estimate]:
    """Return the queue in front of a policer, and the policer's rate and burst."""
    queue_estimate = queue.without(
        "policer",
        f"{policed.empty * 100:.0f} % of the losses found the simulated bucket empty, without a queue",
        "a policer has no buffer",
        unknown("losses are the policer's"),
    )
    police = Estimate(policed.rate_bps, policed.low_bps, policed.high_bps)
    if policed.high_bps > policer.RATIO_MAX * policed.low_bps:
        why = "a shallow bucket: it was full again before each burst"
        police = unknown(why, policed.low_bps, policed.high_bps)
    burst = Estimate(policed.burst_bytes, *policed.burst_bounds)
    if is_shared:
        burst = unknown("flows beside it take from the same bucket, which was perhaps never full")
    return queue_estimate, police, burst


@dataclass(frozen=True)
class _Link:
    """The bottleneck's link and round trip, by which its queue is classified."""

    rate_bps: float | None
    reason: str
    """Reason for which the rate is unknown."""
    packet: float
    """Bytes of a full packet."""
    base_s: float
    jitter_s: float
    standing: bool
    """True when the queue was never seen empty."""


def _queue_estimate(
    flow: CapturedFlow, samples: rate.Trips, link: _Link, shaped: shaper.Shaper | None, shared: str
) -> queue.QueueEstimate:
    """Return the queue of a bottleneck without a policer; `shared` says why others hide its buffer."""
    waits = None
    if link.rate_bps is not None:
        queued = shaped.queued if shaped else None
        waits = queue.waits(flow, samples, link.base_s, link.rate_bps, queued)
    if link.rate_bps is None or waits is None:
        late = float(np.quantile(samples.rtt_s, 0.95)) if len(samples) else 0.0
        return queue.unqueued(flow, link.reason, late > WAITED * link.base_s)
    estimate = queue.classify(flow, waits, link.rate_bps, link.packet, link.jitter_s)
    if shaped and estimate.kind != "aqm":
        estimate = replace(estimate, kind="shaper", reason=shaped.reason)
    if shared:
        estimate = queue.without(estimate.kind, estimate.reason, shared, estimate.random_loss)
    return queue.at_least(estimate) if link.standing else estimate


def _jitter(
    samples: rate.Trips, packet: float, base_s: float, rate_bps: float | None, pairs_bps: float | None
) -> Estimate:
    """Return the jitter, by acknowledgements of a busy bottleneck too where its rate is known."""
    sample_jitter = noise.jitter(samples, packet * 8 / (rate_bps or pairs_bps or np.inf), base_s)
    if rate_bps is None:
        return sample_jitter
    busy = noise.busy_jitter(samples, packet, base_s, rate_bps)
    return busy if (busy.value or 0.0) > (sample_jitter.value or 0.0) else sample_jitter


def _significant_jitter_s(jitter: Estimate, base_s: float) -> float:
    """Return the jitter in seconds, or 0 where it is too small to measure."""
    value = (jitter.value or 0.0) / 1e3
    return value if value > JITTER_MIN * base_s else 0.0


def _policed(
    flow: CapturedFlow,
    concurrent: list[CapturedFlow],
    packet: float,
    base_s: float,
    samples: rate.Trips,
    ack_pairs: rate.Pairs,
    buckets: Buckets,
) -> policer.Bucket | None:
    """Return the policer that explains this flow's losses, alone or together with flows beside it."""
    largest = sorted(concurrent, key=lambda neighbour: -int(neighbour.segments.bytes.sum()))[:BESIDE_MAX]
    sets = [[flow, *more] for count in range(len(largest) + 1) for more in combinations(largest, count)]
    candidates = []
    for method in (policer.by_losses, policer.by_grid):
        for flows in sets:
            bucket = buckets(flows, method)
            if bucket is None or not bucket.explains or bucket.burst_bytes < BURST_MIN * packet:
                continue
            waits = queue.waits(flow, samples, base_s, bucket.rate_bps)
            if waits is None or not len(waits.at_loss):
                continue
            # A queue that overflows is a bucket too, but what it lets pass has waited as long as it is deep.
            # The depth is sure only if the bucket was seen full.
            waited = float(np.median(waits.at_loss))
            sure = bucket.burst_bounds[1] is not None and bucket.burst_bytes >= DEEP_MIN * packet
            faster = ack_pairs.rate_bps is None or ack_pairs.rate_bps > FASTER * bucket.rate_bps
            # A short queue at a link of that rate explains the same losses.
            link = not faster and (ack_pairs.rate_bps or 0.0) > bucket.low_bps / FASTER
            short = not link and waited <= (2 if faster else 0.35) * packet
            if short or (sure and waited <= 0.15 * bucket.burst_bytes):
                candidates.append(bucket)
                if bucket.right >= policer.CLEAR:
                    return bucket
    return max(candidates, key=lambda bucket: bucket.right, default=None)
