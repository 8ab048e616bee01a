"""Causes of segment loss: the predictions of each for losses over time, over the queue and over the flight.

Scope: for each cause, whether the losses of a flow show it, allow it or exclude it. Out of scope: the
sentences (`losses`).

A queue that overflows is full, so the round trips before a loss are long. A policer and a noisy link drop
without delaying. Independent losses of probability p leave N segments in a row whole with (1 - p)^N, and the
number of losses in equal intervals has a variance as large as its mean. Slow start doubles until the buffer
overflows: its losses stand together at the beginning. An active queue management drops only while a queue
stands. A policer loses what is sent above its rate, so with much under way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from dragstrip.analysis.diagnosis.evidence import Evidence
from dragstrip.analysis.diagnosis.observations import Floats, ObservedFlow, ObservedQueue
from dragstrip.model.scenario.paths import PAYLOAD_BYTES

Fit: TypeAlias = Literal["shown", "possible", "excluded"]

LOSS_SHARE = 0.001
"""Share of segments retransmitted from which on losses are worth a finding: at 0.1 % a Reno-like flow of
40 ms has some 11 Mbit/s (Mathis et al., 1997)."""
LOSSES_MIN = 5
"""Lost segments below which nothing is said about where they were lost."""
QUEUE_MS = 10.0
"""Queueing delay before losses below which no queue can have been full, unless it was very short."""
QUEUE_OF_RTT = 0.1
"""The same as a share of the idle RTT; the larger of both counts."""
SHORT = 0.5
"""Queueing delay at losses over the least RTT, as a share, up to which a buffer is short."""
AQM_MIN_MS = 4.0
"""Queueing delay, of a flow (95 %) or at its losses (median), below which no active queue management drops:
the shortest target of those that are known is CoDel's of 5 ms (RFC 8289)."""
ALL_AT_ONCE = 0.8
"""Share of the bytes in one interval from which on a file does not show when they left."""
LONG_MS = 100.0
"""Queueing delay at losses from which on a long buffer is full."""
TOP = 0.6
"""Queueing delay at losses, median over largest, from which on they may be those of a full buffer."""
EVENTS_MIN = 3
"""Intervals with losses from which on a queue at all of them excludes a policer."""
IMPLAUSIBLE = 1e-4
"""Probability of a loss-free run below which independent losses are excluded."""
BURSTY = 5.0
"""Variance over mean of the losses per interval from which on independent losses are excluded."""
BURSTY_LOSSES_MIN = 15
"""Lost segments from which on that ratio says something."""
FIRST_SHARE = 0.8
"""Share of the losses in the first burst from which on slow start's overshoot explains them."""
FIRST_S, FIRST_TRIPS = 3.0, 40
"""Seconds, or round trips if these are longer, in which slow start ends."""
GAP_TRIPS, GAP_S = 4, 0.2
"""Round trips, or seconds if these are longer, that part two bursts; intervals of files add their length."""
EMPTY_MS = 2.0
"""Queueing delay of a queue that is as good as empty."""
EMPTY_SHARE = 0.5
"""Share of losses at such a queue from which on they are not those of a standing queue."""
RANDOM_MIN = 12
"""Losses from which on their place in the queue and the flight can show that they are random."""
MIDDLE = 0.2
"""Distance from 0.5 of the mean rank of the flight at random losses, at most."""
AQM_LOSSES_MIN = 20
"""Losses from which on their places in the queue can show an active queue management."""
AQM_MAX_MS = 50.0
"""Queueing delay (median) above which no active queue management is at work."""


@dataclass(frozen=True)
class Course:
    """The losses of a flow over time."""

    losses: int
    first_share: float
    """Share of the losses in the first burst."""
    early: bool
    """True when that burst begins and ends in the time of slow start and of its losses."""
    loss_free: float
    """Segments sent after the first burst's end without a loss, at most in a row."""
    free_probability: float
    """Probability of that if losses were as frequent as in the whole flow and independent."""
    run_probability: float
    """Probability of the longest loss-free run of the flow if losses were independent."""
    dispersion: float | None
    """Variance over mean of the losses per interval; None of too few."""
    intervals: int
    """Intervals with losses."""

    rest: Course | None = None
    """The course of the losses behind an early burst, if there are enough."""

    @property
    def independent(self) -> bool:
        """True when the losses, but for those of slow start, can be independent of each other."""
        bursty = self.dispersion is not None and self.dispersion >= BURSTY
        if self.run_probability >= IMPLAUSIBLE and not bursty:
            return True
        return self.rest is not None and self.rest.independent


def course(flow: ObservedFlow) -> Course | None:
    """Return the losses of a flow over time, or None if its file has only their sum."""
    trip_s = (flow.rtt_p50_ms or flow.rtt_min_ms or 100.0) / 1e3
    if flow.lost_segments is not None and len(flow.lost_segments.sent_at_s):
        return _of_segments(flow.lost_segments.at_s, flow.lost_segments.sent_at_s, trip_s)
    series = flow.series
    if series is None or not np.isfinite(series.retransmitted).any():
        return None
    segments = np.nan_to_num(series.bytes) / PAYLOAD_BYTES
    if len(segments) >= 5 and segments.max() > ALL_AT_ONCE * segments.sum():
        # A socket's buffer took all at once: of what left when, only the mean is known.
        segments = flow.bytes / PAYLOAD_BYTES * series.length_s / series.end_s[-1]
    return _course(np.nan_to_num(series.retransmitted), segments, series.end_s, trip_s)


def _of_segments(at_s: Floats, sent_s: Floats, trip_s: float) -> Course | None:
    """Return the course of losses known segment by segment, in intervals of 100 ms or a round trip."""
    if not len(at_s):
        return None
    step = max(0.1, trip_s)
    count = max(1, int(np.ceil((float(sent_s.max()) + 1e-9) / step)))
    edges = np.arange(count + 1, dtype=np.float64) * step
    segments = np.histogram(sent_s, edges)[0].astype(np.float64)
    losses = np.histogram(at_s, edges)[0].astype(np.float64)
    return _course(losses, segments, np.asarray(edges[1:], np.float64), trip_s)


def _course(
    losses: Floats, segments: Floats, end_s: Floats, trip_s: float, begin_s: float | None = None
) -> Course | None:
    """Return the course of losses in intervals, or None without any.

    `begin_s` is when the first interval began, if slow start is over.
    """
    total = float(losses.sum())
    if total <= 0:
        return None
    hit = np.flatnonzero(losses > 0)
    lengths = np.diff(end_s, prepend=begin_s or 0.0)
    gap = max(GAP_TRIPS * trip_s, GAP_S)
    last = hit[0]
    for at in hit[1:]:
        if end_s[at] - lengths[at] - end_s[last] > gap + lengths[at]:
            break
        last = at
    first = float(losses[hit[0] : last + 1].sum())
    begins = float(end_s[hit[0]] - lengths[hit[0]])
    room = max(FIRST_S, FIRST_TRIPS * trip_s)
    transmissions = np.maximum(segments, losses)
    share = min(0.99, total / max(1.0, float(transmissions.sum())))
    places = max(1.0, total)

    def probability(run: float) -> float:
        return min(1.0, places * float(np.exp(run * np.log1p(-share))))

    free = _longest(losses, transmissions, last + 1)
    rest = None
    early = begin_s is None and begins <= room and end_s[last] <= 2 * room + lengths[last]
    settled = int(np.searchsorted(end_s, min(room, end_s[-1] / 2), "right"))
    behind = slice(last + 1 if early else settled + 1, None)
    enough = losses[behind].sum() >= max(LOSSES_MIN, LOSS_SHARE * transmissions[behind].sum())
    if begin_s is None and len(losses[behind]) >= EVENTS_MIN and enough:
        rest = _course(
            losses[behind], transmissions[behind], end_s[behind], trip_s, float(end_s[behind.start - 1])
        )
    return Course(
        losses=int(total),
        first_share=first / total,
        early=bool(early),
        loss_free=free,
        free_probability=probability(free),
        run_probability=probability(_longest(losses, transmissions, 0)),
        dispersion=_dispersion(losses, transmissions, share),
        intervals=len(hit),
        rest=rest,
    )


def _longest(losses: Floats, transmissions: Floats, begin: int) -> float:
    """Return the segments of the longest run of intervals without a loss, from an interval on."""
    longest = run = 0.0
    for interval_losses, count in zip(losses[begin:], transmissions[begin:], strict=True):
        run = 0.0 if interval_losses else run + float(count)
        longest = max(longest, run)
    return longest


def _dispersion(losses: Floats, transmissions: Floats, share: float) -> float | None:
    """Return the mean squared deviation of losses per interval over what independent losses would have."""
    if losses.sum() < BURSTY_LOSSES_MIN:
        return None
    expected = share * transmissions
    has_segments = expected > 0
    if has_segments.sum() < 3:
        return None
    deviations = (losses[has_segments] - expected[has_segments]) ** 2
    return float(deviations.sum() / expected[has_segments].sum())


@dataclass(frozen=True)
class Losses:
    """A flow that lost enough to ask why, and what is known of the losses."""

    flow: ObservedFlow
    course: Course | None
    delay_ms: float | None
    """Queueing delay at the losses, median; of files without one, the 95th percentile of the flow's own."""
    exact: bool
    """True when that is known loss by loss."""
    high_ms: float | None
    """Queueing delay of the flow, 95 %."""
    middle_ms: float | None
    """The same, median."""
    queues: tuple[ObservedQueue, ...]
    """Queues on its path that count what they drop."""

    @property
    def empty_share(self) -> float | None:
        """Share of the losses that found hardly any queue."""
        lost_segments = self.flow.lost_segments
        if lost_segments is None or not len(lost_segments.wait_ms):
            return None
        return float((lost_segments.wait_ms < EMPTY_MS).mean())

    @property
    def long(self) -> bool:
        """True when the buffer that overflowed is no short one."""
        least = max(QUEUE_MS, SHORT * (self.flow.rtt_min_ms or 0.0))
        return self.delay_ms is not None and self.delay_ms >= least

    @property
    def stood_long(self) -> bool:
        """True when, in a file without delays of single segments, a long queue stood at some time."""
        return not self.exact and self.high_ms is not None and self.high_ms >= LONG_MS

    @property
    def queued(self) -> bool:
        """True when a queue stood at the losses that is long enough to be full."""
        least = max(QUEUE_MS, QUEUE_OF_RTT * (self.flow.rtt_min_ms or 0.0))
        return self.delay_ms is not None and self.delay_ms >= least


def _supposed_ms(flow: ObservedFlow, middle: float | None, high: float | None) -> float | None:
    """Return the queueing delay at losses where only that of the flow is known; None if it varies."""
    least = max(QUEUE_MS, QUEUE_OF_RTT * (flow.rtt_min_ms or 0.0))
    if middle is not None and middle >= least:
        return middle
    return high if high is not None and high < least else None


def losses_of(evidence: Evidence, flow: ObservedFlow) -> Losses | None:
    """Return what is known of a flow's losses, or None if they are few."""
    share = flow.retransmitted_share
    if (flow.retransmitted or 0) < LOSSES_MIN or share is None or share < LOSS_SHARE:
        return None
    high: float | None = None
    middle: float | None = None
    for delay in evidence.delays:
        if delay.flow is flow:
            # Smoothed values do not show how short an empty queue makes the RTT: the delay is at least so.
            self_baselined = delay.smoothed and delay.idle.source == flow.source
            high = None if self_baselined and delay.high_ms < QUEUE_MS else delay.high_ms
            middle = delay.excess_ms
    exact = flow.lost_segments is not None and len(flow.lost_segments.wait_ms) > 0
    at_losses = _supposed_ms(flow, middle, high)
    if exact and flow.lost_segments is not None:
        at_losses = float(np.median(flow.lost_segments.wait_ms))
    return Losses(
        flow,
        course(flow),
        at_losses,
        exact,
        high,
        middle,
        tuple(queue for queue in evidence.observed.queues if queue.dropped is not None),
    )


def overshoot(losses: Losses) -> Fit:
    """Slow start overshoots into a short buffer: one burst of losses at the beginning, then none or few."""
    if not losses.flow.from_start or losses.stood_long:
        return "excluded"
    if losses.course is None:
        return "possible"
    if not losses.course.early or losses.course.first_share < 0.5 or losses.long:
        return "excluded"
    if losses.course.first_share >= FIRST_SHARE and losses.course.free_probability < IMPLAUSIBLE:
        return "shown"
    return "possible"


def random_loss(losses: Losses) -> Fit:
    """Segments are lost whatever the queue, the flight and the time."""
    flow, course_ = losses.flow, losses.course
    if course_ is not None and not course_.independent:
        return "excluded"
    if flow.path is not None and (flow.path.polices or flow.path.random_loss_share == 0.0):
        return "excluded"
    empty = losses.empty_share
    if empty is None or flow.lost_segments is None or course_ is None:
        return "possible"
    at_empty = empty * len(flow.lost_segments.wait_ms)
    if flow.path is not None and flow.path.queue == "tail drop" and at_empty >= RANDOM_MIN:
        return "shown" if flow.path.random_loss_share else "possible"
    middling = abs(flow.lost_segments.flight_rank - 0.5) <= MIDDLE
    if course_.losses >= RANDOM_MIN and empty >= EMPTY_SHARE and middling and course_.first_share < 0.5:
        return "shown"
    return "possible"


def aqm(losses: Losses) -> Fit:
    """An active queue management drops while a queue stands, before the buffer is full."""
    path, empty = losses.flow.path, losses.empty_share
    if path is not None:
        if path.marks:
            return "shown"
        if path.polices or path.queue in ("tail drop", "shaper"):
            return "excluded"
    if (
        empty is not None
        and empty >= EMPTY_SHARE
        and losses.high_ms is not None
        and losses.high_ms < AQM_MIN_MS
    ):
        return "excluded"
    drops = sum(queue.dropped or 0 for queue in losses.queues if queue.is_aqm)
    if drops >= (losses.flow.retransmitted or 0) > 0:
        return "shown"
    if path is not None and path.queue == "aqm" and (losses.flow.retransmitted or 0) >= AQM_LOSSES_MIN:
        waits = losses.flow.lost_segments.wait_ms if losses.flow.lost_segments is not None else np.empty(0)
        if len(waits) and AQM_MIN_MS <= np.median(waits) < TOP * waits.max():
            return "shown"
    if losses.middle_ms is not None and losses.middle_ms > AQM_MAX_MS:
        return "excluded"
    return "possible"


def policer(losses: Losses) -> Fit:
    """A policer drops what exceeds its rate, without a queue, and with much under way."""
    flow = losses.flow
    if flow.path is not None and flow.path.polices:
        # Seen from behind the sender, what waited before the capture looks as if nothing had.
        return "shown" if flow.lost_segments is not None else "possible"
    if flow.behind_queue:
        return "excluded"  # segments come evenly spread: they waited
    once = losses.exact and losses.course is not None and losses.course.intervals < EVENTS_MIN
    if losses.queued and not once:
        return "excluded"  # what the bucket lets pass at once may wait behind it, but not again and again
    if flow.path is not None and flow.path.queue in ("tail drop", "shaper"):
        return "excluded"
    if (
        flow.lost_segments is not None
        and (flow.retransmitted or 0) >= RANDOM_MIN
        and flow.lost_segments.flight_rank < 0.6
    ):
        return "excluded"
    return "possible"


def full_buffer(losses: Losses) -> Fit:
    """A buffer overflows: losses find a long queue, or of a short buffer as much under way as ever."""
    path = losses.flow.path
    if path is not None and path.queue in ("tail drop", "shaper"):
        return "shown"
    fifo = sum(queue.dropped or 0 for queue in losses.queues if queue.is_fifo)
    if losses.queued and (losses.delay_ms or 0.0) > LONG_MS:
        return "shown"
    if fifo >= (losses.flow.retransmitted or 0):
        return "shown"
    lost_segments = losses.flow.lost_segments
    if (
        lost_segments is None
        or not len(lost_segments.wait_ms)
        or (losses.flow.retransmitted or 0) < RANDOM_MIN
    ):
        return "possible"
    late = float(np.median(lost_segments.wait_ms)) >= TOP * float(lost_segments.wait_ms.max())
    return "possible" if late or lost_segments.flight_rank >= 0.6 else "excluded"


CAUSES = {
    "policer": policer,
    "slow_start_overshoot": overshoot,
    "random_loss": random_loss,
    "aqm": aqm,
    "full_buffer": full_buffer,
}
"""Causes of losses, and what each predicts."""


def fits(losses: Losses) -> dict[str, Fit]:
    """Return how each cause fits a flow's losses."""
    return {name: predict(losses) for name, predict in CAUSES.items()}
