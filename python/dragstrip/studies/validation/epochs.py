"""Comparison of windows, reduction by reduction.

Periods that differ by 1 % put two sawtooths out of step for good, which makes the error over time
meaningless. Each epoch, from one reduction to the next, is therefore stretched to the length of the other
side's, and the periods are compared separately.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from dragstrip.studies.validation.traces import Floats, FlowSeries, TimeLine, falls

POINTS = 20
"""Number of points at which a pair of epochs is compared."""


def epochs(flow: FlowSeries) -> list[Floats]:
    """Return the window between reductions, each as `POINTS` values; start and end count as borders."""
    finite = np.flatnonzero(np.isfinite(flow.cwnd))
    if not finite.size:
        return []
    borders = [int(finite[0]), *falls(flow), int(finite[-1]) + 1]
    pieces = (flow.cwnd[first:end] for first, end in pairwise(borders))
    return [_stretched(piece[np.isfinite(piece)]) for piece in pieces if np.isfinite(piece).any()]


def _stretched(values: Floats) -> Floats:
    at = np.linspace(0, values.size - 1, POINTS)
    return np.asarray(np.interp(at, np.arange(values.size), values), dtype=np.float64)


def window_error(kernel: TimeLine, simulator: TimeLine) -> float | None:
    """Return the root mean square difference of windows over all pairs of epochs.

    It is in per cent of the kernel's mean window; None if there is no pair.
    """
    pairs = [
        (theirs, ours)
        for k, o in zip(kernel.flows, simulator.flows, strict=True)
        for theirs, ours in zip(epochs(k), epochs(o), strict=False)
    ]
    if not pairs:
        return None
    theirs, ours = (np.array(side) for side in zip(*pairs, strict=True))
    return float(np.sqrt(np.mean((theirs - ours) ** 2)) / np.mean(theirs) * 100)


def period_s(traces: Sequence[TimeLine]) -> float | None:
    """Return the mean time from one reduction to the next in seconds, or None if no flow has three."""
    lengths = [
        np.diff(flow.t_s[at]) for trace in traces for flow in trace.flows if len(at := falls(flow)) >= 3
    ]
    return float(np.concatenate(lengths).mean()) if lengths else None
