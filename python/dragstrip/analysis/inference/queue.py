"""Discipline of the bottleneck's queue, and the size of its buffer.

A buffer that overflows is full whenever something is lost: the segments sent just before and after a lost one
all have waited equally long, as long as any segment ever waits. An active queue management drops earlier and
at different lengths, or marks. Losses that come as often with an empty queue as with a long one are random.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dragstrip.analysis.inference.estimate import Estimate, unknown
from dragstrip.analysis.inference.rate import Trips
from dragstrip.analysis.inference.series import CapturedFlow, Flags, Floats

FLAT = 0.04
"""Losses at a full buffer find queues that differ by this share at most, or by two packets."""
SPREAD_MAX = 0.6
"""Shortest over longest queue at losses (10 % and 95 % quantiles) of an active queue management, at most."""
EMPTY_MAX, AQM_MIN = 0.02, 12
"""Share of losses at an empty queue up to which an active queue management can be at work, and the packets
that its queue has held at least."""
EARLY_S, EARLY_PACKETS = 0.003, 1.5
"""Waits at which no active queue management drops: CoDel and PIE leave queues below 5 and 7.5 ms alone, and
so do both with a packet or two (RFC 8289, RFC 8033)."""
DEEP_MIN = 8
"""Smallest buffer that is estimated to within 10 %, in packets."""
EPISODES_MIN = 2
"""Round trips with losses, at least."""
LOSSES_MIN = 5
"""Losses of a kind, at least."""


@dataclass(frozen=True)
class Waits:
    """Waiting times at the bottleneck when segments were lost, and at all times, in bytes of queue."""

    at_s: Floats
    at_loss: Floats
    always: Floats
    longest: float
    episodes: int


def waits(
    flow: CapturedFlow, samples: Trips, base_s: float, rate_bps: float, reached: Flags | None = None
) -> Waits | None:
    """Return the queue, in bytes at the IP layer, that each lost segment found; None without round trips.

    `reached`: of the segments sent, those that can have been lost in this queue; all if None.
    """
    if len(samples) < 10:
        return None
    order = np.argsort(samples.sent_s, kind="stable")
    sent_s = samples.sent_s[order]
    queue = np.maximum(0.0, (samples.rtt_s[order] - base_s) * rate_bps / 8)
    hit = flow.segments.lost_bytes > 0 if reached is None else (flow.segments.lost_bytes > 0) & reached
    loss_times = flow.segments.time_s[hit]
    preceding = np.clip(np.searchsorted(sent_s, loss_times, "right") - 1, 0, len(sent_s) - 1)
    following = np.clip(preceding + 1, 0, len(sent_s) - 1)
    near = 0.5 * float(np.median(samples.rtt_s))
    before = np.where(np.abs(loss_times - sent_s[preceding]) <= near, queue[preceding], -1.0)
    after = np.where(np.abs(sent_s[following] - loss_times) <= near, queue[following], -1.0)
    gaps = np.diff(loss_times)
    episodes = 0 if not len(loss_times) else 1 + int((gaps > np.median(samples.rtt_s)).sum())
    queue_at_loss = np.maximum(before, after)
    has_sample = queue_at_loss >= 0  # a loss without a round trip nearby says nothing of the queue
    return Waits(loss_times[has_sample], queue_at_loss[has_sample], queue, float(queue.max()), episodes)


@dataclass(frozen=True)
class QueueEstimate:
    """The discipline with its reason, the buffer, and losses that it does not explain."""

    kind: str
    reason: str
    buffer_bytes: Estimate
    buffer_ms: Estimate
    random_loss: Estimate


def share(count: int, total: int) -> Estimate:
    """Return a share with Wilson's interval of 95 %."""
    z = 1.96
    if total == 0:
        return unknown("no segments")
    rate = count / total
    middle = (rate + z * z / (2 * total)) / (1 + z * z / total)
    half = z / (1 + z * z / total) * float(np.sqrt(rate * (1 - rate) / total + z * z / (4 * total * total)))
    return Estimate(rate, max(0.0, middle - half) if count else 0.0, min(1.0, middle + half))


EITHER = "active queue management or random loss: too few segments found no queue to tell"


def bounded_share(reason: str, count: int, total: int) -> Estimate:
    """Return a share that is not known, from nothing to what `count` of `total` allow."""
    return unknown(reason, 0.0, share(count, total).high)


def without(kind: str, reason: str, buffer: str, loss: Estimate) -> QueueEstimate:
    """Return a queue of which the buffer cannot be told."""
    return QueueEstimate(kind, reason, unknown(buffer), unknown(buffer), loss)


def at_least(queue: QueueEstimate) -> QueueEstimate:
    """Return a queue whose buffer has no upper bound: the round trip of the empty path may be shorter."""
    why = "the queue was never seen empty"
    size, time = (
        replace(estimate, high=None, reason=why) for estimate in (queue.buffer_bytes, queue.buffer_ms)
    )
    return (
        replace(queue, buffer_bytes=size, buffer_ms=time) if queue.buffer_bytes.value is not None else queue
    )


def classify(
    flow: CapturedFlow, waits: Waits, rate_bps: float, packet: float, jitter_s: float
) -> QueueEstimate:
    """Return what dropped the segments of a flow that kept a bottleneck of this rate busy."""
    segments, lost_segments = _segments(flow)
    plain = _without_judgement(flow, waits, segments, lost_segments)
    if plain is not None:
        return plain
    noise = 2 * packet + 3 * jitter_s * rate_bps / 8
    top = float(np.quantile(waits.at_loss, 0.95))
    longest = float(np.quantile(waits.always, 0.999)) if noise > 2.5 * packet else waits.longest
    room = max(noise, FLAT * top)
    full = waits.at_loss >= top - room
    at_full = float(full.mean())
    # A full buffer of a few packets is indistinguishable from jitter.
    if longest < 3 * packet:
        return without(
            "cannot tell",
            "the queue never held more than three packets",
            "the queue was hardly ever in use",
            unknown("losses cannot be told from those of a very short queue"),
        )
    rank = float(np.mean(np.searchsorted(np.sort(waits.always), waits.at_loss, "right")) / len(waits.always))
    capped = longest <= top + room and full.sum() >= LOSSES_MIN
    if capped and (at_full >= 0.9 or _two_kinds(waits, full, top, noise)):
        return _tail_drop(waits, full, rate_bps, packet, segments, noise, at_full)
    early = _without_queue(waits, segments, packet, rate_bps)
    if _is_random(waits, rank) and early.proves(share(lost_segments, segments)):
        return without(
            "cannot tell",
            "segments were lost at any length of the queue, as by random loss",
            "losses come as often with a short queue: the buffer never filled",
            share(lost_segments, segments),
        )
    if len(waits.at_loss) < LOSSES_MIN or waits.episodes < EPISODES_MIN:
        why = f"{len(waits.at_loss)} losses in {waits.episodes} round trips are too few to tell"
        return without("cannot tell", why, why, bounded_share(why, lost_segments, segments))
    empty = float((waits.at_loss <= noise).mean())
    spread = float(np.quantile(waits.at_loss, 0.1)) < SPREAD_MAX * top
    if rank > 0.6 and spread and empty <= EMPTY_MAX and longest >= AQM_MIN * packet and early.spared:
        why = "losses begin before the queue is at its longest, and come at different lengths"
        return without(
            "aqm",
            why,
            "the queue drops before its buffer is full",
            bounded_share("the queue itself drops early", lost_segments, segments),
        )
    why = (
        EITHER if early.total < early.least else "losses come neither at a full queue alone nor at any length"
    )
    return without("cannot tell", why, why, bounded_share(why, lost_segments, segments))


def _segments(flow: CapturedFlow) -> tuple[int, int]:
    """Return the full segments that a flow sent, and those that were lost."""
    packets_sent = int(np.maximum(1, np.ceil(flow.segments.bytes / flow.full_bytes)).sum())
    return packets_sent, int(np.ceil(flow.segments.lost_bytes / flow.full_bytes).sum())


def _without_judgement(
    flow: CapturedFlow, waits: Waits, segments: int, lost_segments: int
) -> QueueEstimate | None:
    """Return the queue where marks show it, or nothing was lost in it; None where losses must be judged."""
    marks = int(flow.returned.marked.sum())
    if marks >= 3:
        return without(
            "aqm",
            f"{marks} acknowledgements report congestion marks",
            "the queue marks",
            share(lost_segments, segments),
        )
    if not lost_segments:
        return without(
            "cannot tell", "nothing was lost", "nothing was lost: the buffer never filled", share(0, segments)
        )
    if not len(waits.at_loss):
        why = "nothing was lost in this queue"
        return without(
            "cannot tell", why, f"{why}: it never filled", unknown("losses are those of a link behind")
        )
    return None


@dataclass(frozen=True)
class Early:
    """Losses among the segments that hardly waited, where an active queue management never drops."""

    lost_count: int
    total: int
    elsewhere: Estimate
    """Share lost of the other segments."""

    @property
    def least(self) -> float:
        """Segments without a wait that would show random loss at the rate seen elsewhere."""
        rate = self.elsewhere.value
        return LOSSES_MIN / rate if rate else float("inf")

    @property
    def spared(self) -> bool:
        """True when fewer are lost here than elsewhere, or there are too few to say otherwise."""
        early_share = share(self.lost_count, self.total)
        if early_share.low is None or self.elsewhere.high is None or self.elsewhere.low is None:
            return True
        return early_share.low < self.elsewhere.low

    def proves(self, loss: Estimate) -> bool:
        """Return whether segments without a wait are lost as often as all are: `loss`."""
        early_share = share(self.lost_count, self.total)
        if self.lost_count < LOSSES_MIN or early_share.low is None or early_share.high is None:
            return False
        return loss.value is not None and early_share.low <= loss.value <= early_share.high


def _without_queue(waits: Waits, segments: int, packet: float, rate_bps: float) -> Early:
    short = max(EARLY_PACKETS * packet, EARLY_S * rate_bps / 8)
    total = round(segments * float((waits.always <= short).mean()))
    lost_count = int((waits.at_loss <= short).sum())
    return Early(lost_count, total, share(len(waits.at_loss) - lost_count, max(0, segments - total)))


def _is_random(waits: Waits, rank: float) -> bool:
    """Return whether losses come at lengths like any others."""
    return (
        len(waits.at_loss) >= LOSSES_MIN
        and waits.episodes >= LOSSES_MIN
        and _middling(rank, len(waits.at_loss))
    )


def _middling(rank: float, count: int) -> bool:
    """Return whether the mean rank of so many losses among all segments is that of a random choice."""
    return abs(rank - 0.5) < max(0.1, 2.5 / float(np.sqrt(12 * max(1, count))))


def unqueued(flow: CapturedFlow, why: str, waited: bool) -> QueueEstimate:
    """Return what can be said of losses where the bottleneck was not reached, or not by this flow alone.

    Random ones come as often with little under way as with much; a short queue loses what is sent at the
    highest flights. `waited` says that round trips grew: a queue, perhaps of others, may have dropped.
    """
    segments = int(np.maximum(1, np.ceil(flow.segments.bytes / flow.full_bytes)).sum())
    hit = flow.segments.lost_bytes > 0
    lost_segments = int(np.ceil(flow.segments.lost_bytes / flow.full_bytes).sum())
    fresh = ~flow.segments.again
    flights = np.sort(flow.segments.in_flight[fresh])
    ranks = np.searchsorted(flights, flow.segments.in_flight[hit & fresh], "right") / max(1, len(flights))
    even = len(ranks) >= LOSSES_MIN and _middling(float(ranks.mean()), len(ranks))
    if not lost_segments or (even and not waited):
        return without("cannot tell", why, why, share(lost_segments, segments))
    doubt = (
        "the losses may be those of a queue that others fill"
        if even
        else "the losses may be those of a short queue"
    )
    short = bounded_share(doubt, lost_segments, segments)
    return without("cannot tell", why, why, short)


def _two_kinds(waits: Waits, full: Flags, top: float, noise: float) -> bool:
    """Return whether losses that found no full queue found any length, so that two causes are at work."""
    if full.mean() < 0.4:
        return False
    rest = waits.at_loss[~full]
    return bool(len(rest) >= LOSSES_MIN and np.quantile(rest, 0.25) < 0.5 * (top - noise))


def _beside_tail(waits: Waits, full: Flags, early_losses: int, segments: int) -> Estimate:
    """Return the random loss beside a tail drop, from the losses that found a queue that was not full."""
    if not early_losses:
        return share(0, segments)
    rest = waits.at_loss[~full]
    bound = float(waits.at_loss[full].min())
    room = max(early_losses, round(segments * float((waits.always < bound).mean())))
    rank = float(np.searchsorted(np.sort(waits.always), rest, "right").mean()) / len(waits.always)
    if early_losses >= LOSSES_MIN and _middling(rank, early_losses):
        return share(early_losses, room)
    why = f"{early_losses} losses found a queue that was not full: too few, or too long a queue, to say why"
    return bounded_share(why, early_losses, room)


def _tail_drop(
    waits: Waits, full: Flags, rate_bps: float, packet: float, segments: int, noise: float, at_full: float
) -> QueueEstimate:
    at = waits.at_loss[full]
    # The last accepted packet waits for all before it: the buffer without itself, and the rest of the packet
    # that is being sent. So the buffer holds as much as is waited for, give or take a packet.
    value = float(at.max() if noise <= 2.5 * packet else np.quantile(at, 0.9))
    spread = float(np.quantile(at, 0.9) - np.quantile(at, 0.25)) if noise > 2.5 * packet else 0.0
    # The free rest of the buffer is less than a packet, and so is the rest of the one being sent.
    low, high = max(0.0, value - spread - packet), max(value, waits.longest) + 1.5 * packet
    early_losses = int((~full).sum())
    reason = f"{at_full * 100:.0f} % of {len(waits.at_loss)} losses found the queue at its longest"
    loss = _beside_tail(waits, full, early_losses, segments)
    scale = 8e3 / rate_bps
    if value < DEEP_MIN * packet:
        why = f"about {value / packet:.0f} packets, known to a packet or so"
        size, time = unknown(why, low, high), unknown(why, low * scale, high * scale)
        return QueueEstimate("tail drop", reason, size, time, loss)
    return QueueEstimate(
        "tail drop",
        reason,
        Estimate(value, low, high),
        Estimate(value * scale, low * scale, high * scale),
        loss,
    )
