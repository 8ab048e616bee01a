"""Windows compared reduction by reduction.

A period that differs by 1 % puts two sawtooths out of step for good, and the error over time says nothing. So
each epoch, from one reduction to the next, is stretched to the length of the other side's, and the periods
are compared on their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from dragstrip.validation.traces import Floats, FlowTrace, TimeLine, falls

POINTS = 20
"""At which a pair of epochs is compared."""


def epochs(flow: FlowTrace) -> list[Floats]:
    """The window between reductions, each as `POINTS` values; the start and the end count as borders."""
    known = np.flatnonzero(np.isfinite(flow.cwnd))
    if not known.size:
        return []
    borders = [int(known[0]), *falls(flow), int(known[-1]) + 1]
    pieces = (flow.cwnd[first:end] for first, end in pairwise(borders))
    return [_stretched(piece[np.isfinite(piece)]) for piece in pieces if np.isfinite(piece).any()]


def _stretched(values: Floats) -> Floats:
    at = np.linspace(0, values.size - 1, POINTS)
    return np.asarray(np.interp(at, np.arange(values.size), values), dtype=np.float64)


def window_error(kernel: TimeLine, other: TimeLine) -> float | None:
    """Root mean square difference in per cent of the kernel's mean window, over all pairs of epochs."""
    pairs = [
        (theirs, ours)
        for k, o in zip(kernel.flows, other.flows, strict=True)
        for theirs, ours in zip(epochs(k), epochs(o), strict=False)
    ]
    if not pairs:
        return None
    theirs, ours = (np.array(side) for side in zip(*pairs, strict=True))
    return float(np.sqrt(np.mean((theirs - ours) ** 2)) / np.mean(theirs) * 100)


def period_s(traces: Sequence[TimeLine]) -> float | None:
    """Mean time from one reduction to the next; none if no flow has three."""
    lengths = [
        np.diff(flow.t_s[at]) for trace in traces for flow in trace.flows if len(at := falls(flow)) >= 3
    ]
    return float(np.concatenate(lengths).mean()) if lengths else None
