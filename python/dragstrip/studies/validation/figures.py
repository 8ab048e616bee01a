"""The figures of a case, kernel beside simulator, and their errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from dragstrip.studies.validation.conditions import Conditions
from dragstrip.studies.validation.epochs import period_s, window_error
from dragstrip.studies.validation.traces import Floats, TimeLine

NARROW_MS = 0.1
"""A distribution narrower than this has only a few steps, and a shift by microseconds is a large KS
distance."""
NARROW_SHIFT = 1.0
"""Admitted shift of such a distribution, in per cent of the kernel's median."""


@dataclass(frozen=True)
class FigurePair:
    """One quantity of one case on both sides."""

    quantity: str
    kernel: float | None
    simulator: float | None
    error: float
    """The error, in the quantity's unit of error (targets.py)."""
    limit: float | None = None
    """The largest error with which the case counts as reached; None if there is no target."""
    shift: float | None = None
    """The shift of a distribution narrower than `NARROW_MS`, in per cent of the kernel's median; it replaces
    the error then."""

    @property
    def reached(self) -> bool:
        """True when the error is within the limit, up to the rounding of doubles."""
        return self.severity <= 1 + 1e-9

    @property
    def severity(self) -> float:
        """The error in units of the limit."""
        if self.limit is None:
            return 0.0
        return self.error / self.limit if self.shift is None else self.shift / NARROW_SHIFT


def figures(of: Conditions, kernel: Sequence[TimeLine], simulator: Sequence[TimeLine]) -> list[FigurePair]:
    """Return all figures of a case from the kernel's and the simulator's traces, one or more seeds each.

    Figures of several seeds are means; their distributions are pooled.
    """
    loose = of.stochastic
    candidates = [
        _relative("goodput", kernel, simulator, lambda t: t.goodput_bps, 5.0 if loose else 3.0),
        _delay("rtt", of, kernel, simulator, lambda t: t.srtt_ms),
        _delay("ping", of, kernel, simulator, lambda t: t.ping_ms),
        _distance("rtt_ks", kernel, simulator, lambda t: t.srtt_ms, 0.15 if loose else 0.10),
        _distance("ping_ks", kernel, simulator, lambda t: t.ping_ms, 0.15 if loose else 0.10),
        _transport("rtt_w1", kernel, simulator),
        _event_count(
            "reductions",
            kernel,
            simulator,
            _reductions(of, (*kernel, *simulator)),
            (0.2, 0) if loose else (0.1, 1),
        ),
        _event_count(
            "retransmits", kernel, simulator, lambda t: t.retransmits, (0.2, 0) if loose else (0.1, 3)
        ),
        *(_decided(kernel, simulator, 0.2 if loose else 0.1) if of.managed else ()),
        None if loose else _window(kernel[0], simulator[0]),
        _period(kernel, simulator),
    ]
    if len(kernel[0].flows) > 1:
        candidates.append(_shares(kernel, simulator, 5.0 if loose else 3.0))
    return [figure for figure in candidates if figure is not None]


def _relative(
    quantity: str,
    kernel: Sequence[TimeLine],
    simulator: Sequence[TimeLine],
    of: Callable[[TimeLine], float],
    limit: float,
) -> FigurePair:
    k, s = fmean(map(of, kernel)), fmean(map(of, simulator))
    return FigurePair(quantity, k, s, abs(s / k - 1) * 100 if k else float(s != k) * 100, limit)


def _delay(
    quantity: str,
    conditions: Conditions,
    kernel: Sequence[TimeLine],
    simulator: Sequence[TimeLine],
    of: Callable[[TimeLine], Floats],
) -> FigurePair | None:
    """Compare medians in ms; the limit is in per cent, and at least one packet time if nothing is random."""
    if not all(of(trace).size for trace in (*kernel, *simulator)):
        return None
    k = fmean(float(np.median(of(trace))) for trace in kernel)
    s = fmean(float(np.median(of(trace))) for trace in simulator)
    limit = 5.0 if conditions.stochastic else max(3.0, conditions.packet_ms / k * 100)
    return FigurePair(quantity, k, s, abs(s / k - 1) * 100, limit)


def _distance(
    quantity: str,
    kernel: Sequence[TimeLine],
    simulator: Sequence[TimeLine],
    of: Callable[[TimeLine], Floats],
    limit: float,
) -> FigurePair | None:
    k = np.concatenate([of(trace) for trace in kernel])
    s = np.concatenate([of(trace) for trace in simulator])
    if not k.size or not s.size:
        return None
    narrow = float(np.ptp(k)) < NARROW_MS
    shift = wasserstein(k, s) / float(np.median(k)) * 100 if narrow else None
    return FigurePair(quantity, None, None, kolmogorov_smirnov(k, s), limit, shift)


def kolmogorov_smirnov(a: Floats, b: Floats) -> float:
    """Return the largest vertical distance between the two empirical distribution functions, from 0 to 1."""
    a, b = np.sort(a), np.sort(b)
    at = np.concatenate([a, b])
    below_a = np.searchsorted(a, at, side="right") / a.size
    below_b = np.searchsorted(b, at, side="right") / b.size
    return float(np.abs(below_a - below_b).max())


def wasserstein(a: Floats, b: Floats) -> float:
    """Return the area between the two empirical distribution functions, in the samples' unit.

    This is the Wasserstein-1 distance.
    """
    a, b = np.sort(a), np.sort(b)
    at = np.sort(np.concatenate([a, b]))
    below_a = np.searchsorted(a, at[:-1], side="right") / a.size
    below_b = np.searchsorted(b, at[:-1], side="right") / b.size
    return float(np.sum(np.abs(below_a - below_b) * np.diff(at)))


def _transport(quantity: str, kernel: Sequence[TimeLine], simulator: Sequence[TimeLine]) -> FigurePair | None:
    """Compare smoothed RTTs by their shift, in per cent of the kernel's median, which KS does not show."""
    k, s = (np.concatenate([trace.srtt_ms for trace in side]) for side in (kernel, simulator))
    if not k.size or not s.size:
        return None
    return FigurePair(quantity, None, None, wasserstein(k, s) / float(np.median(k)) * 100)


def _decided(
    kernel: Sequence[TimeLine], simulator: Sequence[TimeLine], allowed: float
) -> Iterator[FigurePair]:
    """Yield a discipline's drops, and its marks if the recordings count them and there are any."""
    yield _event_count("drops", kernel, simulator, lambda t: t.drops, (allowed, 3))
    traces = (*kernel, *simulator)
    if all(trace.marks is not None for trace in traces) and any(trace.marks for trace in traces):
        yield _event_count("marks", kernel, simulator, lambda t: t.marks or 0, (allowed, 3))


def _window(kernel: TimeLine, simulator: TimeLine) -> FigurePair | None:
    error = window_error(kernel, simulator)
    return None if error is None else FigurePair("window", None, None, error)


def _period(kernel: Sequence[TimeLine], simulator: Sequence[TimeLine]) -> FigurePair | None:
    k, s = period_s(kernel), period_s(simulator)
    return None if k is None or s is None else FigurePair("period", k, s, abs(s / k - 1) * 100)


def _reductions(of: Conditions, traces: Sequence[TimeLine]) -> Callable[[TimeLine], float]:
    """Return the function that counts reductions, the same way on both sides.

    If only losses reduce the window, the endpoints' own counters are used (recoveries entered, timeouts). The
    kernel keeps no such count for an algorithm that reduces by itself, or for ECN. There the falls of the
    window in the samples are counted, on both sides; two between samples count as one.
    """
    if not of.losses_alone_reduce or any(trace.recoveries is None for trace in traces):
        return lambda trace: trace.falls
    return lambda trace: float(trace.recoveries or 0)


def _event_count(
    quantity: str,
    kernel: Sequence[TimeLine],
    simulator: Sequence[TimeLine],
    of: Callable[[TimeLine], float],
    allowed: tuple[float, float],
) -> FigurePair:
    """Compare a number of events.

    `allowed` is a fraction of the kernel's and a number, and the larger holds.
    """
    k, s = fmean(map(of, kernel)), fmean(map(of, simulator))
    # A tenth of an event where the kernel saw none: no part of nothing is above nothing.
    return FigurePair(quantity, k, s, abs(s - k), max(allowed[0] * k, allowed[1], 0.1))


def _shares(kernel: Sequence[TimeLine], simulator: Sequence[TimeLine], limit: float) -> FigurePair:
    """Compare the first flow's share in per cent; the error is the largest of any flow's, in points."""
    k, s = (np.mean([_share(trace) for trace in side], axis=0) for side in (kernel, simulator))
    return FigurePair("share", float(k[0]), float(s[0]), float(np.abs(k - s).max()), limit)


def _share(trace: TimeLine) -> Floats:
    rates = np.array([flow.goodput_bps for flow in trace.flows])
    return np.asarray(rates / rates.sum() * 100 if rates.sum() else np.zeros(len(rates)), dtype=np.float64)
