"""Combined observations: rate, idle RTT, RTT under load, queues, and contradictions between files.

Scope: facts with their sources, and the choice of those that count for the path. Out of scope: their meaning
(`findings`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dragstrip import _core
from dragstrip.analysis.diagnosis.delays import (
    NEAR,
    NEAR_MS,
    SESSION_S,
    Baseline,
    Delay,
    delays,
    gap_s,
    of_flow,
    of_probe,
)
from dragstrip.analysis.diagnosis.observations import (
    BEST_EFFORT,
    BUSY_S,
    COMMAND_LINE,
    SIMULATION,
    Basis,
    Fact,
    Observations,
    ObservedFlow,
    ObservedQueue,
    PingSeries,
    of_one_path,
    sends_in_order,
)
from dragstrip.analysis.diagnosis.wording import figure
from dragstrip.analysis.inference.path import PathEstimate
from dragstrip.model.scenario.paths import FRAME_BYTES, PAYLOAD_BYTES

RANGE: tuple[Basis, Basis] = ("at least", "at most")
UNTOLD = "cannot tell"
"""The queue of an inferred path of which the capture does not show it."""
BLOAT_MS = 30.0
"""Queueing delay, median under load, from which on it is bufferbloat: twice the target of PIE
(15 ms, RFC 8033), and more than voice and games take unnoticed."""
BLOAT_PACKETS = 3
"""Full packets whose time on the line is no bufferbloat, however slow the line is."""
BELOW_SHAPER = 0.9
"""Goodput over what a shaper's rate carries below which another link is the bottleneck, under a queue."""
SAME_RATE = 0.05
"""Relative difference up to which two rates count as the same."""
HARDLY_BUSY = 0.5
"""Share of the rate of a line, in frames, below which a long queue is not the line's."""
BYPASSED = 1.1
"""Goodput over a shaper's rate from which on the traffic did not pass it, whatever its burst."""
ABOVE_RATE = 1.02
"""Goodput over a shaper's rate from which on both cannot be true."""
UNSHARED = 0.25
"""Delay of a flow (95 %) over that of pings (median), up to which they did not share a queue."""
OTHER_RUN = 2.0
"""Ratio of goodputs in one direction at two times from which on the path differed."""
OTHER_PATH, OTHER_PATH_MS = 1.5, 20.0
"""Least round trips of the same hosts that differ by more than both: another path, or a queue never empty."""
FRAME_OVER_PAYLOAD = FRAME_BYTES / PAYLOAD_BYTES
"""Ethernet frame over TCP payload of a full segment with timestamps."""


@dataclass(frozen=True)
class Evidence:
    """Everything that is known about a path."""

    observed: Observations
    facts: list[Fact]
    conflicts: list[str]
    rate: Fact | None
    """The bottleneck's rate: that which is set or given, or that which a capture shows."""
    floor: Fact | None
    """The largest goodput: the bottleneck has at least as much."""
    delays: list[Delay]
    """Queueing delays of each series under load, the longest first."""
    least: Fact | None
    """The least round trip of all, or that of the command line."""
    queue: ObservedQueue | None
    """The discipline that matters: a shaper, or the one through which most has passed."""
    upward: dict[str, Any] | None = None
    """Options of `compare` for a run with uploads, which load the return path."""
    medium: bool = False
    """True when a medium carries one of the directions of the path that options describe."""
    loading: tuple[ObservedFlow, ...] = ()
    """The flows of the largest goodput: of one host, at one time."""

    @property
    def delay(self) -> Delay | None:
        """The longest queueing delay of best-effort traffic.

        A delay of a busy path comes first, unless only pings without a known load wait long.
        """
        longest = _longest(self.delays, self.bloat_ms)
        if longest is None or longest.flow is None or longest.flow.capture_pair is not None:
            return longest
        # A flow captured at both ends shows the direction of the queue; one that runs against it does not.
        at_both_ends = (
            delay
            for delay in self.delays
            if delay.traffic_class in BEST_EFFORT
            and delay.step is None
            and delay.flow is not None
            and delay.flow.capture_pair is not None
            and delay.flow.opposes(longest.flow)
            and delay.excess_ms >= self.bloat_ms
        )
        return next(at_both_ends, longest)

    @property
    def idle(self) -> Fact | None:
        """The idle round trip that the longest queueing delay is measured against, or the least of all."""
        return self.least if self.delay is None else self.delay.idle

    @property
    def idle_is_bound(self) -> bool:
        """True when the idle round trip is of a flow whose queue was never seen empty, and so too long."""
        idle = self.idle
        return idle is not None and any(
            not flow.drained and (flow.source, flow.label) == (idle.source, idle.place)
            for flow in self.observed.flows
        )

    @property
    def excess_ms(self) -> float | None:
        """The median of the queueing delay under load, or None if it is unknown."""
        return None if self.delay is None else self.delay.excess_ms

    @property
    def bloat_ms(self) -> float:
        """The queueing delay from which on it is bufferbloat: on a slow line three packets are none."""
        line = self.carried_bps if self.rate is None else float(self.rate.value)
        return BLOAT_MS if not line else max(BLOAT_MS, BLOAT_PACKETS * FRAME_BYTES * 8e3 / line)

    @property
    def bloated(self) -> bool:
        """True when the queueing delay under load is bufferbloat."""
        return self.excess_ms is not None and self.excess_ms >= self.bloat_ms

    @property
    def slower_line(self) -> bool:
        """True when the queue is not at the shaper with an AQM, since less arrives than it sends."""
        queue = self.queue
        if queue is None or queue.shaped_bps is None or queue.is_fifo or self.floor is None:
            return False
        if not self.bloated or self.busiest is None:
            return False
        return (self.carried_bps or 0.0) < BELOW_SHAPER * queue.shaped_bps

    @property
    def elsewhere(self) -> bool:
        """True when the queue is not that of the line of `--rate`, which is hardly busy."""
        if self.rate is None or self.rate.source != COMMAND_LINE or self.shown_bps is not None:
            return False
        if self.floor is None or not self.bloated or not self.loading or self.simulated:
            return False
        return float(self.floor.value) * FRAME_OVER_PAYLOAD < HARDLY_BUSY * float(self.rate.value)

    @property
    def simulated(self) -> bool:
        """True when nothing was measured: a run on the simulator stands for it."""
        return any(fact.basis == "simulated" for fact in self.facts)

    @property
    def busiest(self) -> ObservedFlow | None:
        """The flow that carried most, of those that load the path."""
        busy = [flow for flow in self.observed.flows if flow.busy]
        if self.bloated and any(flow.busy for flow in self.loading):
            busy = [flow for flow in self.loading if flow.busy]
        return max(busy, key=lambda flow: flow.bytes, default=None)

    @property
    def shown_bps(self) -> float | None:
        """The bottleneck's rate as a capture shows it."""
        capture_rates = [fact for fact in self.facts if fact.name == "rate_bps" and fact.basis == "measured"]
        return max((float(fact.value) for fact in capture_rates), default=None)

    @property
    def carried_bps(self) -> float | None:
        """The rate that a capture shows, or what the line must have for the goodput that was seen."""
        if self.shown_bps is not None:
            return self.shown_bps
        return None if self.floor is None else float(self.floor.value) * FRAME_OVER_PAYLOAD

    @property
    def line_bps(self) -> float | None:
        """The bottleneck's rate, or what it must have for the goodput that was seen."""
        if self.rate is not None and not self.slower_line and not self.elsewhere:
            return float(self.rate.value)
        return self.carried_bps

    @property
    def bdp_bytes(self) -> float | None:
        """The bandwidth-delay product of the idle path."""
        if self.line_bps is None or self.idle is None:
            return None
        return self.line_bps / 8 * float(self.idle.value) / 1e3

    @property
    def full_ms(self) -> float | None:
        """Delay of a packet behind a full queue that is limited in bytes, in packets or by a time.

        A time is one at the nominal rate of a medium, of which ADSL's cells leave less to the packets.
        """
        if self.queue is None or self.queue.queue is None:
            return None
        if (wait := wait_ms(self.queue.queue)) is not None:
            size, carried = self.queue.limit_bytes, self.carried_bps
            if size is None or carried is None or not self.bloated:
                return wait
            full_ms = size * 8 / carried * 1e3
            return full_ms if full_ms * HARDLY_BUSY < wait else wait  # else the queue is at another line
        if self.line_bps is None:
            return None
        limit = limit_bytes(self.queue.queue)
        rate = self.queue.shaped_bps or self.line_bps
        return None if limit is None or not rate else limit * 8 / rate * 1e3


def limit_bytes(queue: str) -> float | None:
    """Return the limit of a FIFO in words that the simulator takes, packets as full frames."""
    words = queue.split()
    if "limit" not in words[:-1]:
        return None
    at = len(words) - 1 - words[::-1].index("limit")
    kind = next((word for word in reversed(words[:at]) if sends_in_order(word)), "")
    value = words[at + 1]
    if kind == "pfifo":
        return float(value) * FRAME_BYTES if value.isdigit() else None
    try:
        return float(_core.parse_size(value))
    except _core.InputError:
        return None


def wait_ms(queue: str) -> float | None:
    """Return the time of a queue whose size is a time, such as `300ms`, or None for any other."""
    try:
        return _core.parse_time(queue) / 1e6
    except _core.InputError:
        return None


def gathered(observed: Observations) -> Evidence:
    """Return what observations say together."""
    facts = [*observed.facts, *(fact for flow in observed.flows for fact in _of_flow(flow))]
    facts += [fact for probe in observed.probes for fact in _of_probe(probe)]
    facts += [fact for queue in observed.queues for fact in _of_queue(queue)]
    for attempt in observed.unanswered:
        place = f"{attempt.client} → {attempt.server}"
        facts.append(Fact("syns", attempt.syns, "measured", attempt.source, place))
    for datagrams in observed.datagrams:
        at = (datagrams.source, datagrams.label)
        facts.append(Fact("datagrams_lost_share", datagrams.lost_share, "measured", *at))
    baselines = _baselines(observed)
    rates = [fact for fact in facts if fact.name == "rate_bps"]
    stated_bps = next((float(fact.value) for fact in rates if fact.source == COMMAND_LINE), None)
    groups = concurrent(observed.flows)
    waits = [
        delay
        for delay in delays(observed.flows, observed.probes, baselines)
        if not _is_other_path(delay, groups, stated_bps)
    ]
    floor, loading = _floor(groups, _longest(waits, BLOAT_MS))
    passed = [queue for queue in observed.queues if not is_bypassed(queue, floor)]
    queue = chosen_queue(passed)
    rate = _rate([fact for fact in rates if not _is_of(fact, observed.queues, passed)], queue)
    if floor is not None:
        facts.append(floor)
    elif rate is None or rate.source == COMMAND_LINE:
        floor = next(
            (fact for fact in facts if (fact.name, fact.place) == ("goodput_bps", "all flows")), None
        )
    idles = [baseline.fact for baseline in baselines]
    least = min(
        idles,
        key=lambda fact: (fact.source != COMMAND_LINE and fact.basis != "exact", fact.value),
        default=None,
    )
    return Evidence(
        observed,
        facts,
        [
            *_rate_conflicts(rates, floor),
            *_trip_conflicts(observed),
            *_run_conflicts(groups),
            *_queue_conflicts(waits),
        ],
        rate,
        floor,
        waits,
        least,
        queue,
        loading=loading,
    )


def _longest(waits: Sequence[Delay], bloat_ms: float) -> Delay | None:
    """Return the delay that counts: the longest of a busy path, or a longer one of pings alone."""
    plain = [delay for delay in waits if delay.traffic_class in BEST_EFFORT and delay.step is None]
    busy = next((delay for delay in plain if delay.certain), None)
    longest = plain[0] if plain else None
    if busy is None or longest is None or busy.excess_ms >= bloat_ms:
        return busy or longest
    return longest if longest.excess_ms >= bloat_ms else busy


def is_bypassed(queue: ObservedQueue, floor: Fact | None) -> bool:
    """Return whether more arrives than a shaper lets pass, so that the traffic did not pass it."""
    if floor is None or queue.shaped_bps is None or queue.source == COMMAND_LINE:
        return False
    return float(floor.value) > BYPASSED * queue.shaped_bps


def _is_of(fact: Fact, queues: Sequence[ObservedQueue], passed: Sequence[ObservedQueue]) -> bool:
    """Return whether a rate is that of a shaper which the traffic did not pass."""
    place = (fact.source, fact.place)
    return any((queue.source, queue.place) == place for queue in queues if queue not in passed)


def _is_other_path(delay: Delay, groups: Sequence[Sequence[ObservedFlow]], line_bps: float | None) -> bool:
    """Return whether a flow's RTT is long and flat beside a line that is hardly busy: another path's RTT."""
    flow = delay.flow
    if flow is None or line_bps is None or flow.rtt_min_ms is None or delay.excess_ms < BLOAT_MS:
        return False
    if float(delay.p95.value) > NEAR * flow.rtt_min_ms + NEAR_MS:
        return False
    mine = next((group for group in groups if any(member is flow for member in group)), [flow])
    return _together_bps(mine) * FRAME_OVER_PAYLOAD < HARDLY_BUSY * line_bps


def _baselines(observed: Observations) -> list[Baseline]:
    """Return the least round trip of each series, with its hosts and class."""
    baselines = [
        Baseline(fact, frozenset(), "", idle=True) for fact in observed.facts if fact.name == "idle_rtt_ms"
    ]
    for flow in observed.flows:
        baselines += [
            Baseline(fact, flow.hosts, "", idle=False, clock_s=flow.clock_s)
            for fact in _of_flow(flow)
            if fact.name == "idle_rtt_ms" and not flow.smoothed
        ]
        if flow.smoothed and flow.rtt_min_ms is not None:
            fact = Fact("idle_rtt_ms", flow.rtt_min_ms, "at most", flow.source, flow.label)
            baselines.append(Baseline(fact, flow.hosts, "", idle=False, clock_s=flow.clock_s))
    quiet = [probe for probe in observed.probes if probe.loaded is False]
    for probe in observed.probes:
        several = any(
            candidate is not probe and candidate.loaded is None and of_one_path(candidate.hosts, probe.hosts)
            for candidate in observed.probes
        )
        idle = probe in quiet or (probe.loaded is None and (several or bool(observed.flows)))
        baselines += [
            Baseline(fact, probe.hosts, probe.traffic_class, idle, probe.clock_s)
            for fact in _of_probe(probe)
            if fact.name == "idle_rtt_ms" and not _is_phase(probe, quiet)
        ]
    return baselines


def _is_phase(probe: PingSeries, quiet: Sequence[PingSeries]) -> bool:
    """Return whether pings are those of a loaded phase of a test that has pings of its idle path, too."""
    return (
        bool(probe.loaded)
        and probe.summed_up
        and any(idle_probe.source == probe.source for idle_probe in quiet)
    )


def chosen_queue(queues: Sequence[ObservedQueue]) -> ObservedQueue | None:
    """Return the discipline that matters.

    That of the command line, the slowest shaper, or the one through which most has passed.
    """

    def order(queue: ObservedQueue) -> tuple[bool, bool, float, bool, int, str, str]:
        return (
            queue.source != COMMAND_LINE,
            queue.shaped_bps is None,
            queue.shaped_bps or 0.0,
            queue.queue is None,
            -queue.sent_bytes,
            queue.source,
            queue.place,
        )

    return min(queues, key=order, default=None)


def _rate(rates: Sequence[Fact], queue: ObservedQueue | None) -> Fact | None:
    """Return the rate of the bottleneck: the line's, or that of a slower shaper in front of it."""
    lines = [fact for fact in rates if fact.source == COMMAND_LINE]
    shapers = [
        fact
        for fact in rates
        if queue is not None and (fact.source, fact.place) == (queue.source, queue.place)
    ]
    exact = [fact for fact in rates if fact.basis != "measured"]
    return min([*lines, *shapers] or exact or rates, key=lambda fact: float(fact.value), default=None)


def _basis(source: str, basis: Basis) -> Basis:
    return "simulated" if source == SIMULATION else basis


def _of_flow(flow: ObservedFlow) -> list[Fact]:
    at = (flow.source, flow.label)
    measured = _basis(flow.source, "measured")
    facts = [Fact("goodput_bps", flow.goodput_bps, measured, *at)]
    if flow.rtt_min_ms is not None:
        facts.append(Fact("idle_rtt_ms", flow.rtt_min_ms, _basis(flow.source, "at most"), *at))
    facts += of_flow(flow) or ()
    if flow.retransmitted_share is not None:
        facts.append(Fact("retransmitted_share", flow.retransmitted_share, measured, *at))
    if flow.path is not None:
        facts += _of_path(flow.path, *at)
    if flow.lost_segments is not None and len(flow.lost_segments.wait_ms):
        facts.append(Fact("rtt_before_loss_ms", float(np.median(flow.lost_segments.wait_ms)), measured, *at))
    if flow.capture_pair is not None:
        facts.append(Fact("lost_between", flow.capture_pair.packets_lost, measured, *at))
        for name, value in (
            ("there", flow.capture_pair.there_p95_ms),
            ("back", flow.capture_pair.back_p95_ms),
        ):
            if value is not None:
                facts.append(Fact(f"queueing_{name}_ms", value, measured, *at))
    if flow.closed_s and flow.duration_s:
        facts.append(Fact("closed_share", min(1.0, flow.closed_s / flow.duration_s), measured, *at))
    if flow.target_bps is not None:
        facts.append(Fact("target_bps", flow.target_bps, "exact", *at))
    for limit in ("receiver", "application", "send_buffer"):
        if flow.limited is not None and flow.limited.get(limit, 0.0) >= 0.005:
            facts.append(Fact(f"{limit}_share", flow.limited[limit], measured, *at))
    if flow.ecn is not None:
        facts.append(Fact("ecn", "negotiated" if flow.ecn else "not negotiated", measured, *at))
    if flow.cc:
        facts.append(Fact("algorithm", flow.cc, measured, *at))
    return facts


def _of_path(path: PathEstimate, source: str, place: str) -> list[Fact]:
    values = (
        ("rate_bps", path.rate_bps.value),
        ("buffer_bytes", path.buffer_bytes.value),
        ("policer_bps", path.policer_rate_bps.value),
        ("burst_bytes", path.policer_burst_bytes.value),
        ("random_loss_share", path.random_loss_share),
    )
    facts = [Fact(name, value, "measured", source, place) for name, value in values if value is not None]
    for value, basis in zip(path.policer_bounds_bps or (), RANGE, strict=False):
        facts.append(Fact("policer_bps", value, basis, source, place))
    if path.queue != UNTOLD:
        facts.append(Fact("capture_queue", path.queue, "measured", source, place))
    return facts


def _of_probe(probe: PingSeries) -> list[Fact]:
    at = (probe.source, probe.place)
    facts: list[Fact] = []
    if probe.rtt_min_ms is not None and probe.source != SIMULATION:
        facts.append(Fact("idle_rtt_ms", probe.rtt_min_ms, "at most", *at))
    facts += of_probe(probe) or ()
    if probe.pings_lost:
        facts.append(
            Fact("lost_share", probe.pings_lost / probe.pings_sent, _basis(probe.source, "measured"), *at)
        )
    return facts


def _of_queue(queue: ObservedQueue) -> list[Fact]:
    at = (queue.source, queue.place)
    facts = [Fact("queue", queue.words, "exact", *at)]
    if queue.shaped_bps is not None:
        facts.append(Fact("rate_bps", queue.shaped_bps, "exact", *at))
    measured = _basis(queue.source, "measured")
    if queue.dropped is not None:
        facts.append(Fact("dropped", queue.dropped, measured, *at))
    if queue.dropped_share is not None and queue.dropped:
        facts.append(Fact("dropped_share", queue.dropped_share, measured, *at))
    if queue.passed_bps is not None:
        facts.append(Fact("passed_bps", queue.passed_bps, measured, *at))
    if queue.marked is not None:
        facts.append(Fact("marked", queue.marked, measured, *at))
    return facts


def concurrent(flows: Sequence[ObservedFlow]) -> list[list[ObservedFlow]]:
    """Return the flows that one host sent in one file at one time, in groups."""
    together: dict[tuple[str, str], list[list[ObservedFlow]]] = {}
    for flow in sorted(flows, key=lambda flow: flow.clock_s or (0.0, 0.0)):
        if flow.source == SIMULATION:
            continue
        groups = together.setdefault((flow.source, flow.sender), [])
        group = next(
            (group for group in groups if any(not gap_s(member.clock_s, flow.clock_s) for member in group)),
            None,
        )
        if group is None:
            groups.append([flow])
        else:
            group.append(flow)
    return [group for groups in together.values() for group in groups]


def _together_bps(group: Sequence[ObservedFlow]) -> float:
    """Return the goodput of concurrent flows, or that of one alone if it is more."""
    longest = max(flow.duration_s for flow in group)
    sum_bps = sum(flow.bytes for flow in group) * 8 / longest if longest > 0 else 0.0
    single = max((flow.goodput_bps for flow in group if flow.duration_s >= BUSY_S), default=0.0)
    return max(sum_bps, single)


def _floor(
    groups: Sequence[list[ObservedFlow]], delay: Delay | None
) -> tuple[Fact | None, tuple[ObservedFlow, ...]]:
    """Return the largest goodput of one host at one time, and its flows.

    Beside bufferbloat it is that of the flows which met the delay: the same direction, at the same time.
    """
    fitting = list(groups)
    if delay is not None and delay.excess_ms >= BLOAT_MS and delay.flow is not None:
        fitting = [group for group in groups if any(flow is delay.flow for flow in group)] or fitting
    elif delay is not None and delay.probe is not None and delay.probe.clock_s is not None:
        clock = delay.probe.clock_s
        near = [
            group
            for group in groups
            if any(flow.clock_s and not gap_s(flow.clock_s, clock) for flow in group)
        ]
        fitting = near or fitting
    rows: list[tuple[Fact, tuple[ObservedFlow, ...]]] = []
    for group in fitting:
        first = group[0]
        place = first.label if len(group) == 1 else f"{len(group)} flows {first.sender}".strip()
        fact = Fact("goodput_bps", _together_bps(group), "at least", first.source, place)
        rows.append((fact, tuple(group)))
    return max(rows, key=lambda row: float(row[0].value), default=(None, ()))


def unshared(delay: Delay, waits: Sequence[Delay]) -> Delay | None:
    """Return the busy flow that met no delay at the time and between the hosts of pings that did."""
    if delay.probe is None or not delay.certain or delay.excess_ms < BLOAT_MS:
        return None
    for delay_of_flow in waits:
        if delay_of_flow.flow is None or delay_of_flow.flow.clock_s is None or delay.probe.clock_s is None:
            continue
        alike = delay_of_flow.high_ms < UNSHARED * delay.excess_ms and delay_of_flow.hosts & delay.hosts
        if alike and not gap_s(delay_of_flow.flow.clock_s, delay.probe.clock_s):
            return delay_of_flow
    return None


def _queue_conflicts(waits: Sequence[Delay]) -> Iterator[str]:
    """Yield pings that wait while a flow between the same hosts does not."""
    for delay in waits:
        unshared_delay = unshared(delay, waits) if delay.traffic_class in BEST_EFFORT else None
        if unshared_delay is not None:
            yield (
                f"{delay.p50.source} has an RTT of {figure('rtt_p50_ms', delay.p50.value)} while "
                f"{unshared_delay.p50.source} has {figure('rtt_p95_ms', unshared_delay.p95.value)} (95 %): "
                "they did not share a queue"
            )


def _run_conflicts(groups: Sequence[Sequence[ObservedFlow]]) -> Iterator[str]:
    """Yield busy runs of one direction whose goodput differs by a factor of two or more at two times."""
    busy = [
        group
        for group in groups
        if any(flow.busy for flow in group) and not any(flow.target_bps for flow in group)
    ]
    for at, group in enumerate(busy):
        for later in busy[at + 1 :]:
            first, second = group[0], later[0]
            if first.sender != second.sender or not first.hosts or first.hosts != second.hosts:
                continue
            rates = _together_bps(group), _together_bps(later)
            if gap_s(first.clock_s, second.clock_s) > 0 and max(rates) >= OTHER_RUN * min(rates):
                yield (
                    f"{first.source} ({first.label}) has {figure('goodput_bps', rates[0])}, {second.source} "
                    f"({second.label}) has {figure('goodput_bps', rates[1])} at another time: the path, or "
                    "what else was on it, changed"
                )


def _rate_conflicts(rates: Sequence[Fact], floor: Fact | None) -> Iterator[str]:
    by_source: dict[str, list[Fact]] = {}
    for fact in rates:
        if fact.source == COMMAND_LINE or fact.basis == "measured":
            continue  # it is the line's, not a shaper's
        by_source.setdefault(fact.source, []).append(fact)
    sources = list(by_source)
    for at, name in enumerate(sources):
        for other_source in sources[at + 1 :]:
            pairs = [(mine, theirs) for mine in by_source[name] for theirs in by_source[other_source]]
            if not any(_rates_agree(float(mine.value), float(theirs.value)) for mine, theirs in pairs):
                mine, theirs = pairs[0]
                yield f"{_where(mine)} has {mine.text}, {_where(theirs)} has {theirs.text}"
    stated_bps = next((float(fact.value) for fact in rates if fact.source == COMMAND_LINE), None)
    for fact in rates:
        if stated_bps and fact.basis == "measured" and not _rates_agree(float(fact.value), stated_bps):
            rate_pair = f"{figure('rate_bps', fact.value)}, not of {figure('rate_bps', stated_bps)}"
            yield f"{_where(fact)} shows a bottleneck of {rate_pair}"
    most = max(rates, key=lambda fact: float(fact.value), default=None)
    if floor is not None and most is not None and float(floor.value) > ABOVE_RATE * float(most.value):
        yield f"{floor.source} has {floor.text}, more than {_where(most)}'s {most.text}: it took another way"


def _trip_conflicts(observed: Observations) -> Iterator[str]:
    """Yield what differs in the least round trips of the same hosts: of others nothing is compared."""
    idles = [baseline for baseline in _baselines(observed) if baseline.fact.source != SIMULATION]
    for source in dict.fromkeys(flow.source for flow in observed.flows):
        mine = [baseline for baseline in idles if baseline.fact.source == source]
        ends = frozenset().union(*(baseline.hosts for baseline in mine))
        comparable = [
            baseline
            for baseline in idles
            if baseline.fact.source != source
            and baseline.traffic_class in BEST_EFFORT
            and of_one_path(baseline.hosts, ends)
        ]
        comparable = (
            [baseline for baseline in comparable if gap_s(baseline.clock_s, mine[0].clock_s) <= SESSION_S]
            if mine
            else []
        )
        if not mine or not comparable:
            continue
        least = min(float(baseline.fact.value) for baseline in mine)
        low = min(comparable, key=lambda baseline: float(baseline.fact.value)).fact
        if least > OTHER_PATH * float(low.value) and least - float(low.value) > OTHER_PATH_MS:
            yield (
                f"{source} has no RTT below {figure('idle_rtt_ms', least)}, {low.source} has "
                f"{figure('idle_rtt_ms', low.value)}: another path, or a queue that was never empty"
            )

    probes = [
        baseline
        for baseline in idles
        if baseline.clock_s is not None and baseline.traffic_class in BEST_EFFORT
    ]
    for at, first in enumerate(probes):
        for second in probes[at + 1 :]:
            values = float(first.fact.value), float(second.fact.value)
            apart_s = gap_s(first.clock_s, second.clock_s)
            if first.hosts != second.hosts or apart_s <= SESSION_S:
                continue
            if max(values) > OTHER_PATH * min(values) and max(values) - min(values) > OTHER_PATH_MS:
                yield (
                    f"{first.fact.source} has an RTT of {figure('idle_rtt_ms', values[0])} at least, "
                    f"{second.fact.source} has {figure('idle_rtt_ms', values[1])} {apart_s / 3600:.3g} hours "
                    "apart: another path, or load"
                )
    stated_rtt = next((baseline.fact for baseline in idles if baseline.fact.source == COMMAND_LINE), None)
    for baseline in idles:
        if (
            stated_rtt is None
            or baseline.fact.source == COMMAND_LINE
            or baseline.traffic_class not in BEST_EFFORT
        ):
            continue
        if not baseline.idle:
            continue  # a flow's, or that of loaded pings
        values = float(baseline.fact.value), float(stated_rtt.value)
        if max(values) > OTHER_PATH * min(values) and max(values) - min(values) > OTHER_PATH_MS:
            yield (
                f"{baseline.fact.source} has an RTT of {figure('idle_rtt_ms', values[0])}, --rtt says "
                f"{figure('idle_rtt_ms', values[1])}: one of them is of another path"
            )


def _where(fact: Fact) -> str:
    return f"{fact.source} ({fact.place})" if fact.place else fact.source


def _rates_agree(first: float, second: float) -> bool:
    return abs(first - second) <= SAME_RATE * max(first, second)
