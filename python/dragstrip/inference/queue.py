"""What drops at the bottleneck, and how large its buffer is.

A buffer that overflows is full whenever something is lost: the segments sent just before and after a lost one
all have waited equally long, as long as any segment ever waits. An active queue management drops earlier and
at different lengths, or marks. Losses that come as often with an empty queue as with a long one are random.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dragstrip.inference.estimate import Estimate, unknown
from dragstrip.inference.rate import Trips
from dragstrip.inference.series import Flags, Floats, Flow

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
"""Packets of a buffer that is told to 10 %, at least."""
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
    flow: Flow, seen: Trips, base_s: float, rate_bps: float, reached: Flags | None = None
) -> Waits | None:
    """Return the queue, in bytes at the IP layer, that each lost segment found; None without round trips.

    `reached`: of the segments sent, those that can have been lost in this queue; all if None.
    """
    if len(seen) < 10:
        return None
    order = np.argsort(seen.sent_s, kind="stable")
    sent = seen.sent_s[order]
    queue = np.maximum(0.0, (seen.rtt_s[order] - base_s) * rate_bps / 8)
    hit = flow.sent.lost > 0 if reached is None else (flow.sent.lost > 0) & reached
    lost = flow.sent.time_s[hit]
    left = np.clip(np.searchsorted(sent, lost, "right") - 1, 0, len(sent) - 1)
    right = np.clip(left + 1, 0, len(sent) - 1)
    near = 0.5 * float(np.median(seen.rtt_s))
    before = np.where(np.abs(lost - sent[left]) <= near, queue[left], -1.0)
    after = np.where(np.abs(sent[right] - lost) <= near, queue[right], -1.0)
    gaps = np.diff(lost)
    episodes = 0 if not len(lost) else 1 + int((gaps > np.median(seen.rtt_s)).sum())
    found = np.maximum(before, after)
    shown = found >= 0  # a loss without a round trip nearby says nothing of the queue
    return Waits(lost[shown], found[shown], queue, float(queue.max()), episodes)


@dataclass(frozen=True)
class Queue:
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


def between(reason: str, count: int, total: int) -> Estimate:
    """Return a share that is not known, from nothing to what `count` of `total` allow."""
    return unknown(reason, 0.0, share(count, total).high)


def without(kind: str, reason: str, buffer: str, loss: Estimate) -> Queue:
    """Return a queue of which the buffer cannot be told."""
    return Queue(kind, reason, unknown(buffer), unknown(buffer), loss)


def at_least(seen: Queue) -> Queue:
    """Return a queue whose buffer has no upper bound: the round trip of the empty path may be shorter."""
    why = "the queue was never seen empty"
    size, time = (replace(it, high=None, reason=why) for it in (seen.buffer_bytes, seen.buffer_ms))
    return replace(seen, buffer_bytes=size, buffer_ms=time) if seen.buffer_bytes.value is not None else seen


def classify(flow: Flow, seen: Waits, rate_bps: float, packet: float, jitter_s: float) -> Queue:
    """Return what dropped the segments of a flow that kept a bottleneck of this rate busy."""
    segments = int(np.maximum(1, np.ceil(flow.sent.bytes / flow.full_bytes)).sum())
    lost = int(np.ceil(flow.sent.lost / flow.full_bytes).sum())
    marks = int(flow.returned.marked.sum())
    if marks >= 3:
        return without(
            "aqm",
            f"{marks} acknowledgements report congestion marks",
            "the queue marks",
            share(lost, segments),
        )
    if not lost:
        return without(
            "cannot tell", "nothing was lost", "nothing was lost: the buffer never filled", share(0, segments)
        )
    if not len(seen.at_loss):
        why = "nothing was lost in this queue"
        return without(
            "cannot tell", why, f"{why}: it never filled", unknown("losses are those of a link behind")
        )
    noise = 2 * packet + 3 * jitter_s * rate_bps / 8
    top = float(np.quantile(seen.at_loss, 0.95))
    longest = float(np.quantile(seen.always, 0.999)) if noise > 2.5 * packet else seen.longest
    room = max(noise, FLAT * top)
    full = seen.at_loss >= top - room
    at_full = float(full.mean())
    # A full buffer of a few packets is no queue that can be told from jitter.
    if longest < 3 * packet:
        return without(
            "cannot tell",
            "the queue never held more than three packets",
            "the queue was hardly ever in use",
            unknown("losses cannot be told from those of a very short queue"),
        )
    rank = float(np.mean(np.searchsorted(np.sort(seen.always), seen.at_loss, "right")) / len(seen.always))
    capped = longest <= top + room and full.sum() >= LOSSES_MIN
    if capped and (at_full >= 0.9 or _two_kinds(seen, full, top, noise)):
        return _tail_drop(seen, full, rate_bps, packet, segments, noise, at_full)
    early = _without_queue(seen, segments, packet, rate_bps)
    if _is_random(seen, rank) and early.proves(share(lost, segments)):
        return without(
            "cannot tell",
            "segments were lost at any length of the queue, as by random loss",
            "losses come as often with a short queue: the buffer never filled",
            share(lost, segments),
        )
    if len(seen.at_loss) < LOSSES_MIN or seen.episodes < EPISODES_MIN:
        why = f"{len(seen.at_loss)} losses in {seen.episodes} round trips are too few to tell"
        return without("cannot tell", why, why, between(why, lost, segments))
    empty = float((seen.at_loss <= noise).mean())
    spread = float(np.quantile(seen.at_loss, 0.1)) < SPREAD_MAX * top
    if rank > 0.6 and spread and empty <= EMPTY_MAX and longest >= AQM_MIN * packet and early.spared:
        why = "losses begin before the queue is at its longest, and come at different lengths"
        return without(
            "aqm",
            why,
            "the queue drops before its buffer is full",
            between("the queue itself drops early", lost, segments),
        )
    why = (
        EITHER if early.total < early.least else "losses come neither at a full queue alone nor at any length"
    )
    return without("cannot tell", why, why, between(why, lost, segments))


@dataclass(frozen=True)
class Early:
    """Losses among the segments that hardly waited, where an active queue management never drops."""

    lost: int
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
        """Whether fewer are lost here than elsewhere, or there are too few to say otherwise."""
        here = share(self.lost, self.total)
        if here.low is None or self.elsewhere.high is None or self.elsewhere.low is None:
            return True
        return here.low < self.elsewhere.low

    def proves(self, loss: Estimate) -> bool:
        """Return whether segments without a wait are lost as often as all are: `loss`."""
        here = share(self.lost, self.total)
        if self.lost < LOSSES_MIN or here.low is None or here.high is None:
            return False
        return loss.value is not None and here.low <= loss.value <= here.high


def _without_queue(seen: Waits, segments: int, packet: float, rate_bps: float) -> Early:
    short = max(EARLY_PACKETS * packet, EARLY_S * rate_bps / 8)
    total = round(segments * float((seen.always <= short).mean()))
    lost = int((seen.at_loss <= short).sum())
    return Early(lost, total, share(len(seen.at_loss) - lost, max(0, segments - total)))


def _is_random(seen: Waits, rank: float) -> bool:
    """Return whether losses come at lengths like any others."""
    return (
        len(seen.at_loss) >= LOSSES_MIN and seen.episodes >= LOSSES_MIN and _middling(rank, len(seen.at_loss))
    )


def _middling(rank: float, count: int) -> bool:
    """Return whether the mean rank of so many losses among all segments is that of a random choice."""
    return abs(rank - 0.5) < max(0.1, 2.5 / float(np.sqrt(12 * max(1, count))))


def unqueued(flow: Flow, why: str, waited: bool) -> Queue:
    """Return what can be said of losses where the bottleneck was not reached, or not by this flow alone.

    Random ones come as often with little under way as with much; a short queue loses what is sent at the
    highest flights. `waited` says that round trips grew: a queue, perhaps of others, may have dropped.
    """
    segments = int(np.maximum(1, np.ceil(flow.sent.bytes / flow.full_bytes)).sum())
    hit = flow.sent.lost > 0
    lost = int(np.ceil(flow.sent.lost / flow.full_bytes).sum())
    fresh = ~flow.sent.again
    flights = np.sort(flow.sent.in_flight[fresh])
    ranks = np.searchsorted(flights, flow.sent.in_flight[hit & fresh], "right") / max(1, len(flights))
    even = len(ranks) >= LOSSES_MIN and _middling(float(ranks.mean()), len(ranks))
    if not lost or (even and not waited):
        return without("cannot tell", why, why, share(lost, segments))
    some = (
        "the losses may be those of a queue that others fill"
        if even
        else "the losses may be those of a short queue"
    )
    short = between(some, lost, segments)
    return without("cannot tell", why, why, short)


def _two_kinds(seen: Waits, full: Flags, top: float, noise: float) -> bool:
    """Return whether losses that found no full queue found any length, so that two causes are at work."""
    if full.mean() < 0.4:
        return False
    rest = seen.at_loss[~full]
    return bool(len(rest) >= LOSSES_MIN and np.quantile(rest, 0.25) < 0.5 * (top - noise))


def _beside_tail(seen: Waits, full: Flags, others: int, segments: int) -> Estimate:
    """Return the random loss beside a tail drop, from the losses that found a queue that was not full."""
    if not others:
        return share(0, segments)
    rest = seen.at_loss[~full]
    bound = float(seen.at_loss[full].min())
    room = max(others, round(segments * float((seen.always < bound).mean())))
    rank = float(np.searchsorted(np.sort(seen.always), rest, "right").mean()) / len(seen.always)
    if others >= LOSSES_MIN and _middling(rank, others):
        return share(others, room)
    why = f"{others} losses found a queue that was not full: too few, or too long a queue, to say why"
    return between(why, others, room)


def _tail_drop(
    seen: Waits, full: Flags, rate_bps: float, packet: float, segments: int, noise: float, at_full: float
) -> Queue:
    at = seen.at_loss[full]
    # What is accepted last waits for all before it: the buffer without itself, and the rest of what is being
    # sent. So the buffer holds as much as is waited for, give or take a packet.
    value = float(at.max() if noise <= 2.5 * packet else np.quantile(at, 0.9))
    spread = float(np.quantile(at, 0.9) - np.quantile(at, 0.25)) if noise > 2.5 * packet else 0.0
    # What is left of it is less than a packet, and so is what is left of the one being sent.
    low, high = max(0.0, value - spread - packet), max(value, seen.longest) + 1.5 * packet
    others = int((~full).sum())
    reason = f"{at_full * 100:.0f} % of {len(seen.at_loss)} losses found the queue at its longest"
    loss = _beside_tail(seen, full, others, segments)
    scale = 8e3 / rate_bps
    if value < DEEP_MIN * packet:
        why = f"about {value / packet:.0f} packets, known to a packet or so"
        size, time = unknown(why, low, high), unknown(why, low * scale, high * scale)
        return Queue("tail drop", reason, size, time, loss)
    return Queue(
        "tail drop",
        reason,
        Estimate(value, low, high),
        Estimate(value * scale, low * scale, high * scale),
        loss,
    )
