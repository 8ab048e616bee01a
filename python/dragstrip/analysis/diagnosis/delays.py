"""Round trips under load against the idle baseline: only of the same hosts and the same class of traffic.

Scope: the baseline of each series of loaded round trips, and the excess over it. Out of scope: the meaning of
the excess (`findings`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dragstrip.analysis.diagnosis.observations import (
    BEST_EFFORT,
    COMMAND_LINE,
    SIMULATION,
    Basis,
    Fact,
    Floats,
    ObservedFlow,
    PingSeries,
    Series,
    of_one_path,
)
from dragstrip.interop.readers.measurements import BOTH_WAYS, DOWNLOADING, UPLOADING

PHASES = (DOWNLOADING, UPLOADING, BOTH_WAYS)
"""The parts of a speed test that load the path."""
LOADED_PINGS_MIN = 10
"""Answered pings from which on their percentiles are used."""
LEVEL_MIN = 3
"""Least intervals or pings of a level between which the RTT steps."""
LEVEL_MS, LEVEL_SHARE = 2.0, 0.05
"""Range (5 % to 95 %) of a level that holds, or its share of the level if that is more."""
STEP_MS, STEP_SPREADS = 10.0, 5.0
"""Least step, and the least multiple of the levels' range."""
EVEN = 0.9
"""Lower over higher goodput, before and after a step, from which on both are alike."""
QUIET_PINGS = 5
"""Short round trips in a row from which on a series has a quiet time."""
SESSION_S = 3600.0
"""Seconds between two measurements from which on their round trips are not compared."""
NEAR, NEAR_MS = 1.1, 1.0
"""An idle measurement confirms a least round trip that it exceeds by no more than this factor and time."""


@dataclass(frozen=True)
class Baseline:
    """A least round trip and what it is of."""

    fact: Fact
    hosts: frozenset[str]
    traffic_class: str
    idle: bool
    """True when nothing was under way: pings outside of load, or a figure of the user's."""
    clock_s: tuple[float, float] | None = None
    """Time span of the measurement, in seconds since 1970."""


@dataclass(frozen=True)
class Step:
    """A change of the RTT between two levels, each of which holds."""

    at_s: float
    before_ms: float
    after_ms: float
    spread_ms: float
    """Larger of both levels' ranges from the 5th to the 95th percentile."""


def step_of(at_s: Floats, trips_ms: Floats) -> Step | None:
    """Return the step in round trips over time, or None if they vary otherwise."""
    valid = np.isfinite(trips_ms)
    times, trips = at_s[valid], trips_ms[valid]
    if len(trips) < 2 * LEVEL_MIN:
        return None
    cuts = range(LEVEL_MIN, len(trips) - LEVEL_MIN + 1)
    cut = max(cuts, key=lambda at: abs(float(trips[at:].mean() - trips[:at].mean())))
    before, after = trips[:cut], trips[cut:]
    spreads = [float(np.subtract(*np.percentile(level, (95, 5)))) for level in (before, after)]
    low, high = sorted((float(np.median(before)), float(np.median(after))))
    if high - low < STEP_MS or high - low < STEP_SPREADS * max(spreads):
        return None
    if max(spreads) > max(LEVEL_MS, LEVEL_SHARE * low):
        return None
    return Step(float(times[cut - 1]), float(np.median(before)), float(np.median(after)), max(spreads))


def _is_even(series: Series, step: Step) -> bool:
    """Return whether a flow's goodput is alike before and after a step, and nothing is lost."""
    before = series.end_s <= step.at_s
    lengths = series.length_s
    rates = [float(series.bytes[part].sum() / lengths[part].sum()) for part in (before, ~before)]
    has_losses = np.nan_to_num(series.retransmitted).sum() > 0
    return not has_losses and min(rates) > EVEN * max(rates)


@dataclass(frozen=True)
class Delay:
    """Round trips of one series under load, and the baseline of the same hosts and class."""

    idle: Fact
    p50: Fact
    p95: Fact
    hosts: frozenset[str]
    traffic_class: str
    certain: bool
    """True when flows were known to be busy."""
    apart: bool
    """True when the baseline was measured apart from the load, so that no standing queue hides in it."""
    smoothed: bool = False
    flow: ObservedFlow | None = None
    """The flow whose own round trips these are."""
    probe: PingSeries | None = None
    """The pings whose round trips these are."""
    foreign: bool = False
    """True when the baseline is that of a flow at another time."""

    @property
    def trips_ms(self) -> Floats:
        """The round trips over time, one by one or by intervals; empty if only a summary is known."""
        if self.probe is not None and self.probe.trip_ms is not None and not self.probe.summed_up:
            return self.probe.trip_ms
        if self.flow is not None and self.flow.series is not None:
            return self.flow.series.rtt_ms
        return np.empty(0)

    @cached_property
    def step(self) -> Step | None:
        """The change between two levels that hold, if the RTT has one."""
        if self.flow is not None and self.flow.series is not None and not self.flow.vantage:
            series = self.flow.series
            step = step_of(series.end_s, series.rtt_ms)
            return step if step is not None and _is_even(series, step) else None
        if self.probe is not None and self.probe.at_s is not None and len(self.trips_ms):
            return step_of(self.probe.at_s - self.probe.at_s[0], self.trips_ms)
        return None

    @property
    def quiet(self) -> bool:
        """True when the series has a run of short round trips, or a baseline of its own measurement."""
        probe = self.probe
        if probe is None or (self.idle.source, self.idle.place) != (probe.source, probe.place):
            return True
        trips = self.trips_ms
        near = NEAR * float(self.idle.value) + NEAR_MS
        if np.isfinite(trips).any() and np.nanmin(trips) > near:
            return True  # the baseline is of another part of the series
        short = "".join("x" if trip <= near else " " for trip in trips if np.isfinite(trip))
        return "x" * QUIET_PINGS in short

    @property
    def averaged(self) -> bool:
        """True when the central value is a mean, of which no percentile is known."""
        return self.probe is not None and self.probe.averaged

    @property
    def summed_up(self) -> bool:
        """True when no 95th percentile is known."""
        return self.probe is not None and self.probe.summed_up

    @property
    def excess_ms(self) -> float:
        """The median of the queueing delay."""
        return float(self.p50.value) - float(self.idle.value)

    @property
    def phase(self) -> str:
        """The part of a speed test that loaded the path, such as `during upload`; else empty."""
        return next((name for name in PHASES if self.p50.place.startswith(name)), "")

    @property
    def high_ms(self) -> float:
        """The 95th percentile of the queueing delay."""
        return float(self.p95.value) - float(self.idle.value)


def of_flow(flow: ObservedFlow) -> tuple[Fact, Fact] | None:
    """Return the median and the 95th percentile of a busy flow's round trips."""
    if not flow.busy or flow.rtt_p50_ms is None:
        return None
    return _pair(flow.source, flow.label, flow.rtt_p50_ms, flow.rtt_p95_ms)


def of_probe(probe: PingSeries) -> tuple[Fact, Fact] | None:
    """Return the median and the 95th percentile of pings that may have met load."""
    answers = probe.pings_sent - probe.pings_lost
    enough = answers >= LOADED_PINGS_MIN or probe.summed_up or probe.source == SIMULATION
    if probe.loaded is False or probe.rtt_p50_ms is None or not enough:
        return None
    pair = _pair(probe.source, probe.place, probe.rtt_p50_ms, probe.rtt_p95_ms)
    return (replace(pair[0], name="rtt_mean_ms"), pair[1]) if probe.averaged else pair


def _pair(source: str, place: str, middle: float, high: float | None) -> tuple[Fact, Fact]:
    how: Basis = "simulated" if source == SIMULATION else "measured"
    median = Fact("rtt_p50_ms", middle, how, source, place)
    return median, replace(median, name="rtt_p95_ms", value=middle if high is None else high)


def delays(
    flows: Sequence[ObservedFlow], probes: Sequence[PingSeries], idles: Sequence[Baseline]
) -> list[Delay]:
    """Return the queueing delays of every series under load, the longest first.

    Of pings of which nobody knows whether flows were busy, the run with the shortest median counts as idle,
    if there are several of the same target and class.
    """
    candidates = []
    for flow in flows:
        # On a simulated path the ping stands for the delay of other traffic.
        pair = None if flow.source == SIMULATION else of_flow(flow)
        if pair is not None:
            candidates.append(_delay(pair, idles, flow.hosts, "", certain=True, origin=flow))
    for probe in probes:
        pair = of_probe(probe)
        if pair is None or (probe.loaded is None and _is_quietest(probe, probes)):
            continue
        candidates.append(
            _delay(pair, idles, probe.hosts, probe.traffic_class, certain=probe.loaded is True, origin=probe)
        )
    measured = [delay for delay in candidates if delay is not None]
    return sorted(measured, key=lambda delay: (-delay.excess_ms, delay.p50.source, delay.p50.place))


def _is_quietest(probe: PingSeries, probes: Sequence[PingSeries]) -> bool:
    comparable = [
        candidate
        for candidate in probes
        if candidate.loaded is None
        and candidate.rtt_p50_ms is not None
        and candidate.traffic_class == probe.traffic_class
        and of_one_path(candidate.hosts, probe.hosts)
    ]
    comparable.sort(key=lambda candidate: (candidate.rtt_p50_ms or 0.0, candidate.source, candidate.place))
    return len(comparable) > 1 and comparable[0] is probe


def _delay(
    pair: tuple[Fact, Fact],
    idles: Sequence[Baseline],
    hosts: frozenset[str],
    traffic_class: str,
    certain: bool,
    origin: ObservedFlow | PingSeries,
) -> Delay | None:
    middle, high = pair
    flow = origin if isinstance(origin, ObservedFlow) else None
    probe = origin if isinstance(origin, PingSeries) else None
    fitting = [
        baseline
        for baseline in idles
        if of_one_path(baseline.hosts, hosts)
        and (baseline.fact.source == COMMAND_LINE or _same_class(baseline.traffic_class, traffic_class))
        and gap_s(baseline.clock_s, origin.clock_s) <= SESSION_S
    ]
    if not fitting:
        return None
    exact_baselines = [baseline for baseline in fitting if baseline.fact.basis in ("exact", "simulated")]
    least = min(
        fitting,
        key=lambda baseline: (
            float(baseline.fact.value),
            baseline not in exact_baselines,
            not baseline.idle,
            baseline.fact.source,
            baseline.fact.place,
        ),
    )
    near = NEAR * float(least.fact.value) + NEAR_MS
    apart = any(baseline.idle and float(baseline.fact.value) <= near for baseline in fitting)
    return Delay(
        least.fact,
        middle,
        high,
        hosts,
        traffic_class,
        certain,
        apart,
        bool(flow and flow.smoothed),
        flow,
        probe,
        foreign=flow is not None and not apart and gap_s(least.clock_s, flow.clock_s) > 0,
    )


def gap_s(first: tuple[float, float] | None, second: tuple[float, float] | None) -> float:
    """Return the seconds between two times; 0 if they overlap, or if one is not known."""
    if first is None or second is None:
        return 0.0
    return max(0.0, second[0] - first[1], first[0] - second[1])


def _same_class(first_class: str, second_class: str) -> bool:
    return first_class == second_class or (first_class in BEST_EFFORT and second_class in BEST_EFFORT)
