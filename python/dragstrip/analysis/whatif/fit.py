"""Fit of a run to a capture: errors, a grade, and contradictions between the capture and the path.

The limits of the grades were set for a clean path before anything was measured: an emulator fitted to a path
by many runs was within 17 % of its means (Yan et al., "Pantheon: the training ground for Internet
congestion-control research", ATC 2018), and what is predicted is no better than what is explained.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dragstrip.analysis.whatif.flow_trace import FloatArray, FlowTrace
from dragstrip.display import quantity

EXPLAINED, ROUGHLY, NOT_EXPLAINED = "explained", "roughly explained", "not explained"
GOODPUT_MAX = {EXPLAINED: 0.05, ROUGHLY: 0.15}
"""Greatest error of goodput, and of the delivered bytes at any time as a share of all."""
RTT_MAX = {EXPLAINED: 0.10, ROUGHLY: 0.25}
"""Greatest error of the median RTT."""
TAILS = 2.0
"""The 5th and 95th percentile may be wrong by so many times more than the median."""
APPLICATION_SHARE = 0.1
WINDOWS = 12
"""Parts of a flow of which RTT and flight are compared."""
FLAT, RISES = 0.1, 0.25
"""Share by which bytes in flight vary at most, and RTTs at least, where something else filled the queue."""
SILENT_MS = 1000.0
"""A sender repeats what is not acknowledged for so long (RFC 6298): no network is that slow unnoticed."""
BASE_MOVES = 0.1
"""Change of the least RTT between parts of a flow that its own queue does not explain."""


@dataclass(frozen=True)
class Fit:
    """Errors of a run against a capture; shares are of the capture's figure, positive if the run has more."""

    goodput: float
    rtt: tuple[float, float, float] | None
    """Errors of the 5th, 50th and 95th percentile; None where the capture shows no round trips."""
    retransmissions: tuple[int, int]
    """In the capture and in the run."""
    apart_bytes: float
    """Largest distance of the delivered bytes at any time."""
    apart_share: float
    """The same as a share of all bytes."""
    apart_at_s: float

    @property
    def grade(self) -> str:
        """`EXPLAINED`, `ROUGHLY` or `NOT_EXPLAINED`."""
        for grade in (EXPLAINED, ROUGHLY):
            bytes_fit = max(abs(self.goodput), self.apart_share) <= GOODPUT_MAX[grade]
            if bytes_fit and self._rtt_fits(RTT_MAX[grade]):
                return grade
        return NOT_EXPLAINED

    @property
    def error(self) -> float:
        """The greatest error as a share of what a run that explains the capture may have."""
        shares = [abs(self.goodput) / GOODPUT_MAX[EXPLAINED], self.apart_share / GOODPUT_MAX[EXPLAINED]]
        if self.rtt is not None:
            low, middle, high = (abs(error) / RTT_MAX[EXPLAINED] for error in self.rtt)
            shares += [low / TAILS, middle, high / TAILS]
        return max(shares)

    def _rtt_fits(self, most: float) -> bool:
        if self.rtt is None:
            return True
        low, middle, high = (abs(error) for error in self.rtt)
        return middle <= most and max(low, high) <= TAILS * most

    def document(self) -> dict[str, Any]:
        """Return the errors as JSON."""
        return {
            "grade": self.grade,
            "goodput_error": self.goodput,
            "rtt_errors": None
            if self.rtt is None
            else dict(zip(("p5", "p50", "p95"), self.rtt, strict=True)),
            "retransmissions": {"capture": self.retransmissions[0], "run": self.retransmissions[1]},
            "delivered_apart": {
                "bytes": self.apart_bytes,
                "share": self.apart_share,
                "at_s": self.apart_at_s,
            },
        }


def fit(capture: FlowTrace, run: FlowTrace) -> Fit:
    """Return how far a run is from a capture of the same duration."""
    times = np.linspace(0.0, min(capture.duration_s, run.duration_s), 400)
    apart = run.delivered_at(times) - capture.delivered_at(times)
    at = int(np.argmax(np.abs(apart)))
    total = max(capture.delivered_bytes, 1.0)
    theirs, ours = capture.rtt_quantiles_ms, run.rtt_quantiles_ms
    errors = None
    if theirs is not None and ours is not None:
        low, middle, high = (b / a - 1 for a, b in zip(theirs, ours, strict=True))
        errors = (low, middle, high)
    return Fit(
        run.goodput_bps / max(capture.goodput_bps, 1.0) - 1,
        errors,
        (capture.retransmitted, run.retransmitted),
        float(apart[at]),
        float(abs(apart[at])) / total,
        float(times[at]),
    )


def contradictions(
    capture: FlowTrace, run: FlowTrace, errors: Fit, flow: dict[str, Any], other_flows: int
) -> list[str]:
    """Return what in the capture a path with one bottleneck does not explain, in sentences with figures.

    `flow` is the flow in the words of `inspect`, `other_flows` the number of flows beside it.
    """
    sentences = []
    limits = flow["limited_s"]
    limited_s_total = sum(limits.values()) or 1.0
    if limits["application"] > APPLICATION_SHARE * limited_s_total:
        share = quantity.percent(limits["application"] / limited_s_total)
        sentences.append(f"the application had nothing to send for {share} of the time; the run always has")
    if other_flows:
        sentences.append(
            f"{other_flows} other flow{'s' if other_flows > 1 else ''} of the capture may share the "
            "bottleneck; the run is alone"
        )
    trips = capture.rtt_quantiles_ms
    if trips is not None and float(capture.rtt_ms.max()) > 2 * trips[2] + SILENT_MS:
        sentences.append(
            f"a round trip took {float(capture.rtt_ms.max()) / 1e3:.3g} s and nothing was sent again: "
            "the capture's clock was set, or a host slept"
        )
    sentences += _rtt_contradictions(capture, run)
    before, after = errors.retransmissions
    if before > 2 * after + 10:
        sentences.append(
            f"the capture repeats {before} segments and the run {after}: "
            "losses that no queue of the path explains"
        )
    elif after > 2 * before + 10:
        sentences.append(
            f"the run repeats {after} segments and the capture {before}: "
            "the buffer is larger, or drops otherwise"
        )
    if errors.goodput > GOODPUT_MAX[EXPLAINED]:
        sentences.append(
            f"the run delivers {quantity.percent(errors.goodput)} more: something kept the capture's sender "
            "from what the path carries"
        )
    elif errors.goodput < -GOODPUT_MAX[EXPLAINED]:
        sentences.append(
            f"the run delivers {quantity.percent(-errors.goodput)} less: the algorithm is another, or the "
            "path carries more than was inferred"
        )
    return sentences


def _rtt_contradictions(capture: FlowTrace, run: FlowTrace) -> Iterator[str]:
    """Yield what the course of the RTT over the capture has that a path with one bottleneck has not."""
    rtts, flights = parts(capture)
    if len(rtts) < 3:
        return
    least, most = float(np.percentile(rtts, 10)), float(np.percentile(rtts, 90))
    few, many = float(np.percentile(flights, 10)), float(np.percentile(flights, 90))
    if most > least * (1 + RISES) and many < few * (1 + FLAT):
        yield (
            f"the RTT rises from {least:.3g} to {most:.3g} ms while the flight stays within "
            f"{few / 1e3:.3g} to {many / 1e3:.3g} kB: cross traffic, or a route that changed"
        )
    ours, _ = parts(run)
    floors = [float(np.min(part)) for part in np.array_split(rtts, 3)]
    run_floors = [float(np.min(part)) for part in np.array_split(ours, 3)] if len(ours) >= 3 else floors
    moved, run_moved = max(floors) / min(floors) - 1, max(run_floors) / min(run_floors) - 1
    if moved > BASE_MOVES + run_moved:
        yield (
            f"the least RTT moves between {min(floors):.3g} and {max(floors):.3g} ms; "
            "in the run it stays: a route that changed, or a queue of others"
        )


def parts(flow: FlowTrace) -> tuple[FloatArray, FloatArray]:
    """Return the median RTT in ms and flight in bytes of `WINDOWS` equal parts behind the start."""
    begin = min(flow.duration_s / 5, 5.0)
    edges = np.linspace(begin, flow.duration_s, WINDOWS + 1)
    rtts, flights = [], []
    for low, high in itertools.pairwise(edges):
        trips = flow.rtt_ms[(flow.rtt_at_s >= low) & (flow.rtt_at_s < high)]
        flight = flow.flight_bytes[(flow.at_s >= low) & (flow.at_s < high)]
        if len(trips) and len(flight):
            rtts.append(float(np.median(trips)))
            flights.append(float(np.median(flight)))
    return np.array(rtts), np.array(flights)
