"""Round trips under load against the idle baseline: only of the same hosts and the same class of traffic.

Belongs here: which baseline belongs to which loaded round trips, and how much longer these are. Does not
belong here: what that means, which `findings` says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dragstrip.diagnosis.observations import (
    BEST_EFFORT,
    COMMAND_LINE,
    SIMULATION,
    Basis,
    Fact,
    Flow,
    Probe,
    of_one_path,
)
from dragstrip.formats.readers.measurements import BOTH_WAYS, DOWNLOADING, UPLOADING

PHASES = (DOWNLOADING, UPLOADING, BOTH_WAYS)
"""The parts of a speed test that load the path."""
LOADED_PINGS_MIN = 10
"""Answered pings from which on their percentiles are used."""
NEAR, NEAR_MS = 1.1, 1.0
"""An idle measurement confirms a least round trip that it exceeds by no more than this factor and time."""


@dataclass(frozen=True)
class Baseline:
    """A least round trip and what it is of."""

    fact: Fact
    hosts: frozenset[str]
    traffic_class: str
    idle: bool
    """Whether it is known that nothing was under way: pings outside of load, or what the user says."""


@dataclass(frozen=True)
class Delay:
    """Round trips of one series under load, and the baseline of the same hosts and class."""

    idle: Fact
    p50: Fact
    p95: Fact
    hosts: frozenset[str]
    traffic_class: str
    certain: bool
    """Whether it is known that flows were busy."""
    apart: bool
    """Whether the baseline was measured apart from the load, so that no standing queue hides in it."""
    smoothed: bool = False
    flow: Flow | None = None
    """The flow whose own round trips these are."""

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


def of_flow(flow: Flow) -> tuple[Fact, Fact] | None:
    """Return the median and the 95th percentile of a busy flow's round trips."""
    if not flow.busy or flow.rtt_p50_ms is None:
        return None
    return _pair(flow.source, flow.label, flow.rtt_p50_ms, flow.rtt_p95_ms)


def of_probe(probe: Probe) -> tuple[Fact, Fact] | None:
    """Return the median and the 95th percentile of pings that may have met load."""
    answers = probe.sent - probe.lost
    enough = answers >= LOADED_PINGS_MIN or probe.summed_up or probe.source == SIMULATION
    if probe.loaded is False or probe.rtt_p50_ms is None or not enough:
        return None
    return _pair(probe.source, probe.place, probe.rtt_p50_ms, probe.rtt_p95_ms)


def _pair(source: str, place: str, middle: float, high: float | None) -> tuple[Fact, Fact]:
    how: Basis = "simulated" if source == SIMULATION else "measured"
    one = Fact("rtt_p50_ms", middle, how, source, place)
    return one, replace(one, name="rtt_p95_ms", value=middle if high is None else high)


def delays(flows: Sequence[Flow], probes: Sequence[Probe], idles: Sequence[Baseline]) -> list[Delay]:
    """Return the queueing delays of every series under load, the longest first.

    Of pings of which nobody knows whether flows were busy, the run with the shortest median counts as idle,
    if there are several of the same target and class.
    """
    made = []
    for flow in flows:
        # Of a simulated path the ping stands for what others feel.
        pair = None if flow.source == SIMULATION else of_flow(flow)
        if pair is not None:
            made.append(_delay(pair, idles, flow.hosts, "", certain=True, flow=flow))
    for probe in probes:
        pair = of_probe(probe)
        if pair is None or (probe.loaded is None and _is_quietest(probe, probes)):
            continue
        made.append(
            _delay(pair, idles, probe.hosts, probe.traffic_class, certain=probe.loaded is True, flow=None)
        )
    known = [delay for delay in made if delay is not None]
    return sorted(known, key=lambda it: (-it.excess_ms, it.p50.source, it.p50.place))


def _is_quietest(probe: Probe, probes: Sequence[Probe]) -> bool:
    same = [
        it
        for it in probes
        if it.loaded is None
        and it.rtt_p50_ms is not None
        and it.traffic_class == probe.traffic_class
        and of_one_path(it.hosts, probe.hosts)
    ]
    same.sort(key=lambda it: (it.rtt_p50_ms or 0.0, it.source, it.place))
    return len(same) > 1 and same[0] is probe


def _delay(
    pair: tuple[Fact, Fact],
    idles: Sequence[Baseline],
    hosts: frozenset[str],
    traffic_class: str,
    certain: bool,
    flow: Flow | None,
) -> Delay | None:
    middle, high = pair
    fitting = [
        it
        for it in idles
        if of_one_path(it.hosts, hosts)
        and (it.fact.source == COMMAND_LINE or _same_class(it.traffic_class, traffic_class))
    ]
    if not fitting:
        return None
    stated = [it for it in fitting if it.fact.basis in ("exact", "simulated")]
    least = min(
        fitting,
        key=lambda it: (float(it.fact.value), it not in stated, not it.idle, it.fact.source, it.fact.place),
    )
    near = NEAR * float(least.fact.value) + NEAR_MS
    apart = any(it.idle and float(it.fact.value) <= near for it in fitting)
    return Delay(
        least.fact, middle, high, hosts, traffic_class, certain, apart, bool(flow and flow.smoothed), flow
    )


def _same_class(one: str, other: str) -> bool:
    return one == other or (one in BEST_EFFORT and other in BEST_EFFORT)
