"""Paths that a capture leaves open: the queue's discipline, and whether losses are random.

Losses at different lengths of a queue are those of CoDel, of PIE, of random loss, or of a short buffer and
random loss together; each predicts another course of every congestion control. All are run.
"""

from __future__ import annotations

from dataclasses import replace

from dragstrip.analysis.inference.estimate import Estimate
from dragstrip.analysis.inference.path import PathEstimate
from dragstrip.analysis.whatif.network import (
    BUFFER_BDP_MAX,
    BUFFER_PACKETS_MIN,
    LOSS_MIN,
    CandidatePath,
    CandidatePaths,
)

LIKELY = 0.75
"""Random loss, as a share of its upper bound, where only the bound is known."""
DISCIPLINES = ("codel", "pie")
"""Active queue managements, with their defaults."""


def hypotheses(
    base_network: CandidatePaths, path: PathEstimate, longest_queue_bytes: float, has_losses: bool
) -> list[CandidatePaths]:
    """Return the paths that a capture leaves open, the likeliest first; only `base_network` if it leaves one.

    `longest_queue_bytes` is what the buffer held at least; `has_losses` says that segments were lost at all.
    """
    if path.queue in ("policer", "shaper"):
        return [base_network]
    if path.rate_bps.value is None and path.rate_bps.high is not None:
        base_network = _of(
            base_network, replace(base_network.middle, rate_bps=path.rate_bps.high), path.random_loss
        )
    if not has_losses:
        return [base_network]
    middle, bound = base_network.middle, path.random_loss
    loss = LIKELY * (bound.high or 0.0) if bound.value is None else bound.value
    plain = replace(middle, discipline="")
    if path.queue == "tail drop":
        lossy = [replace(plain, loss=loss)] if bound.value is None and loss >= LOSS_MIN else []
        return [base_network, *(_of(base_network, network, bound) for network in lossy)]
    least = max(BUFFER_PACKETS_MIN * middle.ip_bytes, longest_queue_bytes)
    deep = max(least, BUFFER_BDP_MAX * plain.bdp_bytes)
    managed = [replace(middle, discipline=_word(name, middle.ecn), loss=0.0) for name in DISCIPLINES]
    short, open_ = replace(plain, buffer_bytes=least), replace(plain, buffer_bytes=deep)
    networks = [replace(open_, loss=loss), replace(short, loss=0.0), replace(short, loss=loss / 2), *managed]
    if bound.value is not None:
        networks = [replace(open_, loss=loss), replace(short, loss=loss)]
    if path.queue == "aqm":
        networks = [*managed, replace(short, loss=loss)]
    return [_of(base_network, network, bound) for network in networks]


def _word(discipline: str, ecn: bool) -> str:
    return f"{discipline} ecn" if ecn else discipline


def _of(base_network: CandidatePaths, middle: CandidatePath, loss: Estimate) -> CandidatePaths:
    """Return a path around this one, with the ends of the intervals of rate, round trip and loss."""
    ends = {}
    for name, path in base_network.alternatives.items():
        if name.startswith("RTT"):
            ends[name] = replace(middle, rtt_ms=path.rtt_ms)
        elif name.startswith("rate") and base_network.middle.rate_bps == middle.rate_bps:
            ends[name] = replace(middle, rate_bps=path.rate_bps)
    if middle.loss and loss.high is not None:
        ends["loss low"] = replace(middle, loss=loss.low or 0.0)
        ends["loss high"] = replace(middle, loss=loss.high)
    return replace(base_network, middle=middle, alternatives=ends)
