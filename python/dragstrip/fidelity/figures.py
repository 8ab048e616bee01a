"""The figures of a case, kernel beside simulator, and how far apart they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from dragstrip.fidelity.kernel import KernelRun
from dragstrip.fidelity.traces import Floats, Trace, falls

FULL_FRAME_BITS = 1514 * 8
"""What htb charges for a full segment: the frame without FCS, preamble and gap."""

CHOOSES = ("cdg", "dctcp")
"""Algorithms that reduce the window of their own accord too: losses are not all there is to count."""


@dataclass(frozen=True)
class Figure:
    """One quantity of one case."""

    quantity: str
    kernel: float | None
    simulator: float | None
    error: float
    """In the quantity's unit of error (targets.py says which)."""
    limit: float
    """What the error may be for the case to count as reached."""

    @property
    def reached(self) -> bool:
        """Within the limit; a hair above it by rounding of doubles still is."""
        return self.error <= self.limit * (1 + 1e-9)

    @property
    def severity(self) -> float:
        """The error in units of the limit."""
        return self.error / self.limit


def packet_ms(run: KernelRun) -> float:
    """Time of a full segment on the bottleneck."""
    return FULL_FRAME_BITS / float(run.scenario["bottleneck"]["rate_kbit"])


def figures(runs: Sequence[KernelRun], kernel: Sequence[Trace], simulator: Sequence[Trace]) -> list[Figure]:
    """All figures of a case: its recordings, their traces, and the simulator's for one or more seeds.

    Figures of several seeds are means; their distributions are pooled.
    """
    run, loose = runs[0], runs[0].stochastic
    found = [
        _relative("goodput", kernel, simulator, lambda t: t.goodput_bps, 5.0 if loose else 3.0),
        _delay("rtt", run, kernel, simulator, lambda t: t.srtt_ms),
        _delay("ping", run, kernel, simulator, lambda t: t.ping_ms),
        _distance("rtt_ks", kernel, simulator, lambda t: t.srtt_ms, 0.15 if loose else 0.10),
        _distance("ping_ks", kernel, simulator, lambda t: t.ping_ms, 0.15 if loose else 0.10),
        _counted("reductions", kernel, simulator, _reductions(run, kernel), (0.2, 0) if loose else (0.1, 1)),
        _counted(
            "retransmits",
            kernel,
            simulator,
            lambda t: sum(flow.retransmits_total for flow in t.flows),
            (0.2, 0) if loose else (0.1, 3),
        ),
    ]
    if len(run.flows) > 1:
        found.append(_shares(kernel, simulator, 5.0 if loose else 3.0))
    return [figure for figure in found if figure is not None]


def _relative(
    quantity: str,
    kernel: Sequence[Trace],
    simulator: Sequence[Trace],
    of: Callable[[Trace], float],
    limit: float,
) -> Figure:
    k, s = fmean(map(of, kernel)), fmean(map(of, simulator))
    return Figure(quantity, k, s, abs(s / k - 1) * 100 if k else float(s != k) * 100, limit)


def _delay(
    quantity: str,
    run: KernelRun,
    kernel: Sequence[Trace],
    simulator: Sequence[Trace],
    of: Callable[[Trace], Floats],
) -> Figure | None:
    """The median in ms; the limit is in per cent, and at least one packet time where no dice fall."""
    if not all(of(trace).size for trace in (*kernel, *simulator)):
        return None
    k = fmean(float(np.median(of(trace))) for trace in kernel)
    s = fmean(float(np.median(of(trace))) for trace in simulator)
    limit = 5.0 if run.stochastic else max(3.0, packet_ms(run) / k * 100)
    return Figure(quantity, k, s, abs(s / k - 1) * 100, limit)


def _distance(
    quantity: str,
    kernel: Sequence[Trace],
    simulator: Sequence[Trace],
    of: Callable[[Trace], Floats],
    limit: float,
) -> Figure | None:
    k = np.concatenate([of(trace) for trace in kernel])
    s = np.concatenate([of(trace) for trace in simulator])
    return Figure(quantity, None, None, kolmogorov_smirnov(k, s), limit) if k.size and s.size else None


def kolmogorov_smirnov(a: Floats, b: Floats) -> float:
    """The greatest vertical distance between the two empirical distribution functions."""
    a, b = np.sort(a), np.sort(b)
    at = np.concatenate([a, b])
    below_a = np.searchsorted(a, at, side="right") / a.size
    below_b = np.searchsorted(b, at, side="right") / b.size
    return float(np.abs(below_a - below_b).max())


def _reductions(run: KernelRun, kernel: Sequence[Trace]) -> Callable[[Trace], float]:
    """How to count reductions, the same on both sides.

    Where only losses reduce the window the endpoints' own counters tell (recoveries entered, timeouts). An
    algorithm that chooses to, or ECN, leaves no such count in the kernel: the falls of the window in the
    samples tell, of which two between samples are seen as one, on both sides.
    """
    marked = run.scenario.get("sysctl", {}).get("net.ipv4.tcp_ecn") in (1, "1")
    chosen = any(flow["cc"] in CHOOSES for flow in run.flows)
    if marked or chosen or any(trace.recoveries is None for trace in kernel):
        return lambda trace: sum(falls(flow) for flow in trace.flows)
    return lambda trace: float(trace.recoveries or 0)


def _counted(
    quantity: str,
    kernel: Sequence[Trace],
    simulator: Sequence[Trace],
    of: Callable[[Trace], float],
    allowed: tuple[float, float],
) -> Figure:
    """A number of events; allowed is a part of the kernel's or so many, whichever is more."""
    k, s = fmean(map(of, kernel)), fmean(map(of, simulator))
    # A tenth of an event where the kernel saw none: no part of nothing is above nothing.
    return Figure(quantity, k, s, abs(s - k), max(allowed[0] * k, allowed[1], 0.1))


def _shares(kernel: Sequence[Trace], simulator: Sequence[Trace], limit: float) -> Figure:
    """The first flow's share in per cent; the error is the greatest of any flow's, in points."""
    k, s = (np.mean([_share(trace) for trace in side], axis=0) for side in (kernel, simulator))
    return Figure("share", float(k[0]), float(s[0]), float(np.abs(k - s).max()), limit)


def _share(trace: Trace) -> Floats:
    rates = np.array([flow.goodput_bps for flow in trace.flows])
    return np.asarray(rates / rates.sum() * 100 if rates.sum() else np.zeros(len(rates)), dtype=np.float64)
