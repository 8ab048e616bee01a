"""Facts with their sources, and what they say together: rate, idle RTT, RTT under load, queues, losses.

Belongs here: what was seen, merged, and contradictions between files. Does not belong here: what it means,
which `findings` says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from dragstrip import _core
from dragstrip.diagnosis.losses import Pattern
from dragstrip.diagnosis.wording import shown
from dragstrip.scenario.paths import FRAME_BYTES, PAYLOAD_BYTES

Basis: TypeAlias = Literal["exact", "at least", "at most", "measured", "simulated"]
RANGE: tuple[Basis, Basis] = ("at least", "at most")

COMMAND_LINE = "command line"
SIMULATION = "simulation"
UNTOLD = "cannot tell"
"""The queue of an inferred path of which the capture does not show it."""
BUSY_BYTES = 150_000
"""Bytes, about a hundred segments, from which on a flow can load a path."""
BUSY_S = 1.0
"""Seconds from which on a flow can load a path."""
BUSY_SHARE = 0.5
"""Share of its time in which the network or the receiver, not the application, limits a flow that loads."""
BLOAT_MS = 30.0
"""Queueing delay, median under load, from which on it is bufferbloat: twice the target of PIE
(15 ms, RFC 8033), and more than voice and games take unnoticed."""
BELOW_SHAPER = 0.9
"""Goodput over what a shaper's rate carries below which another link is the bottleneck, under a queue."""
LOADED_PINGS_MIN = 10
"""Answered pings from which on their percentiles are used."""
SAME_RATE = 0.05
"""Relative difference up to which two rates count as the same."""
ABOVE_RATE = 1.02
"""Goodput over a shaper's rate from which on both cannot be true."""
OTHER_PATH_MS = 20.0
OTHER_PATH = 1.5
"""Least round trips of two files that differ by more than both are of different paths, or never idle."""
ONE_WAY = 3.0
ONE_WAY_MS = 1.0
"""A queueing delay is of one direction if it is this many times that of the other, or of a millisecond."""
FRAME_OVER_PAYLOAD = FRAME_BYTES / PAYLOAD_BYTES
"""Ethernet frame over TCP payload of a full segment with timestamps."""
FIFOS = frozenset({"pfifo", "bfifo", "pfifo_fast", "tbf"})
"""Disciplines that send in order of arrival and drop what does not fit; of a tbf, where it has no leaf."""
AQMS = frozenset({"codel", "fq_codel", "cake", "pie", "fq_pie", "dualpi2", "red", "sfb", "choke"})
"""Disciplines that drop or mark before the queue is full."""


@dataclass(frozen=True)
class Fact:
    """One figure or setting: what it is, how it is meant, and where it stands."""

    name: str
    value: float | str
    basis: Basis
    source: str
    place: str = ""

    @property
    def text(self) -> str:
        """The fact for people, such as `idle RTT at most 28.3 ms`."""
        meant = {"at least": "at least ", "at most": "at most "}.get(self.basis, "")
        return f"{NAMES[self.name]} {meant}{shown(self.name, self.value)}"


NAMES = {
    "rate_bps": "rate",
    "goodput_bps": "goodput",
    "idle_rtt_ms": "idle RTT",
    "rtt_p50_ms": "RTT, median",
    "rtt_p95_ms": "RTT, 95 %",
    "queue": "queue",
    "up_rtt_p50_ms": "RTT, median",
    "up_rtt_p95_ms": "RTT, 95 %",
    "up_rate_bps": "rate of the return path",
    "lost_between": "packets lost between the captures",
    "queueing_there_ms": "queueing delay in the data's direction, 95 %",
    "queueing_back_ms": "queueing delay on the way back, 95 %",
    "dropped": "drops",
    "marked": "marks",
    "retransmitted_share": "retransmitted",
    "capture_queue": "queue by its losses",
    "buffer_bytes": "buffer",
    "policer_bps": "the policer's rate",
    "burst_bytes": "its burst",
    "random_loss_share": "lost at random",
    "lost_share": "pings lost",
    "receiver_share": "time limited by the receive window",
    "application_share": "time limited by the sending host",
    "send_buffer_share": "time limited by the send buffer",
    "rtt_before_loss_ms": "queueing delay before losses",
    "burstiness": "variance over mean of the losses per 100 ms",
    "algorithm": "algorithm",
    "ecn": "ECN",
}


@dataclass(frozen=True)
class Between:
    """What captures at two points show of the way between them."""

    lost: int
    """Packets of the data's direction that the second point did not see."""
    there_p95_ms: float | None
    """Queueing delay in the data's direction."""
    back_p95_ms: float | None

    @property
    def direction(self) -> str:
        """Where the queue is, if it is much longer one way than the other: there, back or nothing."""
        there, back = self.there_p95_ms or 0.0, self.back_p95_ms or 0.0
        if max(there, back) < ONE_WAY * max(min(there, back), ONE_WAY_MS):
            return ""
        return "there" if there > back else "back"


@dataclass(frozen=True)
class Inferred:
    """What a capture says of a flow's path (`inference`), in bytes of frames; None where it cannot tell."""

    rate_bps: float | None
    queue: str
    """As `PathEstimate.queue`."""
    buffer_bytes: float | None
    policer_bps: float | None
    policer_range_bps: tuple[float, float] | None
    """What the policer's rate lies between, where no more is known of it."""
    burst_bytes: float | None
    random_loss_share: float | None
    """The share that is lost for no reason of the queue's; 0 where its interval begins there."""

    @property
    def explains_losses(self) -> bool:
        """Whether it is known why segments were lost."""
        return self.polices or self.random_loss_share is not None

    @property
    def polices(self) -> bool:
        """Whether a policer drops what exceeds its rate."""
        return self.queue == "policer"


@dataclass(frozen=True)
class Flow:
    """A flow as a file shows it; None is what the file does not show."""

    source: str
    label: str
    sender: str
    bytes: int
    duration_s: float
    goodput_bps: float
    segments: int | None = None
    retransmitted: int | None = None
    rtt_min_ms: float | None = None
    rtt_p50_ms: float | None = None
    rtt_p95_ms: float | None = None
    smoothed: bool = False
    """Whether the least RTT is that of smoothed values (srtt) alone."""
    limited: dict[str, float] | None = None
    """Shares of the time by what limited the sender."""
    ecn: bool | None = None
    cc: str | None = None
    losses: Pattern | None = None
    steady_bytes: float | None = None
    """Bytes in flight, if they hardly change."""
    between: Between | None = None
    inferred: Inferred | None = None

    @property
    def busy(self) -> bool:
        """Whether the flow loads its path."""
        if self.bytes < BUSY_BYTES or self.duration_s < BUSY_S:
            return False
        if self.limited is None:
            return True
        busy = ("cwnd", "receiver", "small_queue")
        return sum(self.limited.get(limit, 0.0) for limit in busy) >= BUSY_SHARE

    @property
    def retransmitted_share(self) -> float | None:
        """Segments sent again over segments sent; where these were not counted, of full segments."""
        if self.retransmitted is None:
            return None
        segments = self.segments or self.bytes / PAYLOAD_BYTES
        share = self.retransmitted / segments if segments else 1.0
        return share if share < 1 else None  # bytes and retransmissions of different times


@dataclass(frozen=True)
class Probe:
    """Pings to a target, or those of one part of the time."""

    source: str
    target: str
    sent: int
    lost: int
    rtt_min_ms: float | None
    rtt_p50_ms: float | None
    rtt_p95_ms: float | None
    loaded: bool | None
    """Whether flows were busy meanwhile; None where the file does not say."""


@dataclass(frozen=True)
class Queue:
    """A queue discipline of a script, a listing or the command line."""

    source: str
    place: str
    device: str
    words: str
    queue: str | None
    """The discipline in words that the simulator takes."""
    kind: str
    """The discipline that holds the packets: of a shaper, its leaf."""
    shaped_bps: float | None = None
    dropped: int | None = None
    marked: int | None = None
    sent_bytes: int = 0

    @property
    def is_fifo(self) -> bool:
        """Whether packets leave in order of arrival and are dropped only when there is no room."""
        return self.kind in FIFOS

    @property
    def is_aqm(self) -> bool:
        """Whether packets are dropped or marked before there is no room."""
        return self.kind in AQMS

    @property
    def polices(self) -> bool:
        """Whether what exceeds a rate is dropped without waiting."""
        return self.queue is not None and self.queue.split()[0] == "police"

    @property
    def marks(self) -> bool:
        """Whether the discipline marks packets of flows with ECN."""
        return self.kind in ("cake", "dualpi2") or "ecn" in self.words.split()


@dataclass(frozen=True)
class Seen:
    """What files show, before it is merged."""

    files: list[tuple[str, str]] = field(default_factory=list)
    flows: list[Flow] = field(default_factory=list)
    probes: list[Probe] = field(default_factory=list)
    queues: list[Queue] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)
    """Facts beside those of flows, probes and queues: those of the command line."""
    notes: list[str] = field(default_factory=list)

    def __add__(self, other: Seen) -> Seen:
        return Seen(
            *(
                getattr(self, name) + getattr(other, name)
                for name in ("files", "flows", "probes", "queues", "facts", "notes")
            )
        )


@dataclass(frozen=True)
class Loaded:
    """Round trips under load."""

    p50: Fact
    p95: Fact
    certain: bool
    """Whether it is known that flows were busy."""


@dataclass(frozen=True)
class Evidence:
    """Everything that is known about a path."""

    seen: Seen
    facts: list[Fact]
    conflicts: list[str]
    rate: Fact | None
    """The bottleneck's rate: that which is set or given, or that which a capture shows."""
    floor: Fact | None
    """The largest goodput: the bottleneck has at least as much."""
    idle: Fact | None
    loaded: Loaded | None
    queue: Queue | None
    """The discipline that matters: a shaper, or the one through which most has passed."""
    upward: dict[str, Any] | None = None
    """Options of `compare` for a run with uploads, which load the return path."""
    medium: bool = False
    """Whether a medium carries one of the directions of the path that options describe."""

    @property
    def excess_ms(self) -> float | None:
        """The median of the queueing delay under load, or None if it is unknown."""
        if self.idle is None or self.loaded is None:
            return None
        return float(self.loaded.p50.value) - float(self.idle.value)

    @property
    def slower_line(self) -> bool:
        """Whether the queue is not where a shaper with an AQM is, since less arrives than it sends."""
        queue, excess = self.queue, self.excess_ms
        if queue is None or queue.shaped_bps is None or queue.is_fifo or self.floor is None:
            return False
        if excess is None or excess < BLOAT_MS or self.busiest is None:
            return False
        return (self.carried_bps or 0.0) < BELOW_SHAPER * queue.shaped_bps

    @property
    def simulated(self) -> bool:
        """Whether nothing was measured: a run on the simulator stands for it."""
        return any(fact.basis == "simulated" for fact in self.facts)

    @property
    def busiest(self) -> Flow | None:
        """The flow that carried most, of those that load the path."""
        busy = [flow for flow in self.seen.flows if flow.busy]
        return max(busy, key=lambda flow: flow.bytes, default=None)

    @property
    def shown_bps(self) -> float | None:
        """The bottleneck's rate as a capture shows it."""
        shown = [fact for fact in self.facts if fact.name == "rate_bps" and fact.basis == "measured"]
        return max((float(fact.value) for fact in shown), default=None)

    @property
    def carried_bps(self) -> float | None:
        """The rate that a capture shows, or what the line must have for the goodput that was seen."""
        if self.shown_bps is not None:
            return self.shown_bps
        return None if self.floor is None else float(self.floor.value) * FRAME_OVER_PAYLOAD

    @property
    def line_bps(self) -> float | None:
        """The bottleneck's rate, or what it must have for the goodput that was seen."""
        if self.rate is not None and not self.slower_line:
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
        """How long a packet waits behind a full queue that is limited in bytes or packets."""
        if self.queue is None or self.queue.queue is None:
            return None
        if (wait := wait_ms(self.queue.queue)) is not None:
            return wait
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
    kind = next((word for word in reversed(words[:at]) if word in FIFOS), "")
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


def gathered(seen: Seen) -> Evidence:
    """Merge what files show."""
    facts = [*seen.facts, *(fact for flow in seen.flows for fact in _of_flow(flow))]
    facts += [fact for probe in seen.probes for fact in _of_probe(probe)]
    facts += [fact for queue in seen.queues for fact in _of_queue(queue)]
    queue = chosen_queue(seen.queues)
    rates = [fact for fact in facts if fact.name == "rate_bps"]
    rate = _rate(rates, queue)
    floor = _floor(seen.flows)
    if floor is not None:
        facts.append(floor)
    elif rate is None:
        floor = next(
            (fact for fact in facts if (fact.name, fact.place) == ("goodput_bps", "all flows")), None
        )
    idles = [fact for fact in facts if fact.name == "idle_rtt_ms"]
    idle = min(
        idles,
        key=lambda fact: (fact.source != COMMAND_LINE and fact.basis != "exact", fact.value),
        default=None,
    )
    if idle is not None and any(float(fact.value) < float(idle.value) for fact in idles):
        idle = min(idles, key=lambda fact: float(fact.value))  # what was measured cannot be below the truth
    return Evidence(
        seen, facts, _conflicts(rates, floor, idles, seen.flows), rate, floor, idle, _loaded(seen), queue
    )


def chosen_queue(queues: Sequence[Queue]) -> Queue | None:
    """Return the discipline that matters.

    That of the command line, the slowest shaper, or the one through which most has passed.
    """

    def order(queue: Queue) -> tuple[bool, bool, float, bool, int]:
        return (
            queue.source != COMMAND_LINE,
            queue.shaped_bps is None,
            queue.shaped_bps or 0.0,
            queue.queue is None,
            -queue.sent_bytes,
        )

    return min(queues, key=order, default=None)


def _rate(rates: Sequence[Fact], queue: Queue | None) -> Fact | None:
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


def _of_flow(flow: Flow) -> list[Fact]:
    at = (flow.source, flow.label)
    measured = _basis(flow.source, "measured")
    made = [Fact("goodput_bps", flow.goodput_bps, measured, *at)]
    if flow.rtt_min_ms is not None:
        made.append(Fact("idle_rtt_ms", flow.rtt_min_ms, _basis(flow.source, "at most"), *at))
    if flow.busy and flow.rtt_p50_ms is not None:
        made.append(Fact("rtt_p50_ms", flow.rtt_p50_ms, measured, *at))
        if flow.rtt_p95_ms is not None:
            made.append(Fact("rtt_p95_ms", flow.rtt_p95_ms, measured, *at))
    if flow.retransmitted_share is not None:
        made.append(Fact("retransmitted_share", flow.retransmitted_share, measured, *at))
    if flow.inferred is not None:
        made += _of_inferred(flow.inferred, *at)
    if flow.losses is not None and flow.losses.delay_ms is not None:
        made.append(Fact("rtt_before_loss_ms", flow.losses.delay_ms, measured, *at))
        made.append(Fact("burstiness", flow.losses.burstiness, measured, *at))
    if flow.between is not None:
        made.append(Fact("lost_between", flow.between.lost, measured, *at))
        for name, value in (("there", flow.between.there_p95_ms), ("back", flow.between.back_p95_ms)):
            if value is not None:
                made.append(Fact(f"queueing_{name}_ms", value, measured, *at))
    for what in ("receiver", "application", "send_buffer"):
        if flow.limited is not None and flow.limited.get(what, 0.0) >= 0.005:
            made.append(Fact(f"{what}_share", flow.limited[what], measured, *at))
    if flow.ecn is not None:
        made.append(Fact("ecn", "negotiated" if flow.ecn else "not negotiated", measured, *at))
    if flow.cc:
        made.append(Fact("algorithm", flow.cc, measured, *at))
    return made


def _of_inferred(path: Inferred, source: str, place: str) -> list[Fact]:
    names = ("rate_bps", "buffer_bytes", "policer_bps", "burst_bytes", "random_loss_share")
    values = [(name, getattr(path, name)) for name in names]
    made = [Fact(name, value, "measured", source, place) for name, value in values if value is not None]
    for value, basis in zip(path.policer_range_bps or (), RANGE, strict=False):
        made.append(Fact("policer_bps", value, basis, source, place))
    if path.queue != UNTOLD:
        made.append(Fact("capture_queue", path.queue, "measured", source, place))
    return made


def _of_probe(probe: Probe) -> list[Fact]:
    at = (probe.source, " ".join(filter(None, ("ping", probe.target))))
    made: list[Fact] = []
    if probe.rtt_min_ms is not None and probe.source != SIMULATION:
        made.append(Fact("idle_rtt_ms", probe.rtt_min_ms, "at most", *at))
    answered = probe.sent - probe.lost >= LOADED_PINGS_MIN or probe.source == SIMULATION
    if probe.rtt_p50_ms is not None and probe.loaded is not False and answered:
        made.append(Fact("rtt_p50_ms", probe.rtt_p50_ms, _basis(probe.source, "measured"), *at))
        if probe.rtt_p95_ms is not None:
            made.append(Fact("rtt_p95_ms", probe.rtt_p95_ms, _basis(probe.source, "measured"), *at))
    if probe.lost:
        made.append(Fact("lost_share", probe.lost / probe.sent, _basis(probe.source, "measured"), *at))
    return made


def _of_queue(queue: Queue) -> list[Fact]:
    at = (queue.source, queue.place)
    made = [Fact("queue", queue.words, "exact", *at)]
    if queue.shaped_bps is not None:
        made.append(Fact("rate_bps", queue.shaped_bps, "exact", *at))
    measured = _basis(queue.source, "measured")
    if queue.dropped is not None:
        made.append(Fact("dropped", queue.dropped, measured, *at))
    if queue.marked is not None:
        made.append(Fact("marked", queue.marked, measured, *at))
    return made


def _floor(flows: Sequence[Flow]) -> Fact | None:
    """Return the largest goodput of what one host sent in one file, all its flows together or one alone."""
    together: dict[tuple[str, str], list[Flow]] = {}
    for flow in flows:
        if flow.source != SIMULATION:
            together.setdefault((flow.source, flow.sender), []).append(flow)
    found: list[Fact] = []
    for (source, sender), mine in together.items():
        longest = max(flow.duration_s for flow in mine)
        sum_bps = sum(flow.bytes for flow in mine) * 8 / longest if longest > 0 else 0.0
        single = max((flow.goodput_bps for flow in mine if flow.duration_s >= BUSY_S), default=0.0)
        place = mine[0].label if len(mine) == 1 else f"{len(mine)} flows {sender}".strip()
        found.append(Fact("goodput_bps", max(sum_bps, single), "at least", source, place))
    return max(found, key=lambda fact: float(fact.value), default=None)


def _loaded(seen: Seen) -> Loaded | None:
    """Return the longest round trips of those under load, or where none is known to be, of any."""
    known: list[Loaded] = []
    unknown: list[Loaded] = []
    for flow in seen.flows:
        # Of a simulated path the ping stands for what others feel.
        if flow.busy and flow.source != SIMULATION:
            known += _pair(_of_flow(flow), True)
    free = [probe for probe in seen.probes if probe.loaded is None and probe.rtt_p50_ms is not None]
    free.sort(key=lambda probe: probe.rtt_p50_ms or 0.0)
    for probe in seen.probes:
        if probe.loaded:
            known += _pair(_of_probe(probe), True)
    for probe in free[1:] if len(free) > 1 else free:
        unknown += _pair(_of_probe(probe), False)
    chosen = known or unknown
    return max(chosen, key=lambda it: (float(it.p50.value), float(it.p95.value)), default=None)


def _pair(facts: Sequence[Fact], certain: bool) -> list[Loaded]:
    by_name = {fact.name: fact for fact in facts}
    middle = by_name.get("rtt_p50_ms")
    if middle is None:
        return []
    high = by_name.get("rtt_p95_ms") or replace(middle, name="rtt_p95_ms")
    return [Loaded(middle, high, certain)]


def _conflicts(
    rates: Sequence[Fact], floor: Fact | None, idles: Sequence[Fact], flows: Sequence[Flow]
) -> list[str]:
    made = []
    by_source: dict[str, list[Fact]] = {}
    for fact in rates:
        if fact.source == COMMAND_LINE or fact.basis == "measured":
            continue  # it is the line's, not a shaper's
        by_source.setdefault(fact.source, []).append(fact)
    sources = list(by_source)
    for at, one in enumerate(sources):
        for other in sources[at + 1 :]:
            pairs = [(mine, theirs) for mine in by_source[one] for theirs in by_source[other]]
            if not any(_same(float(mine.value), float(theirs.value)) for mine, theirs in pairs):
                mine, theirs = pairs[0]
                made.append(f"{_where(mine)} has {mine.text}, {_where(theirs)} has {theirs.text}")
    given = next((float(fact.value) for fact in rates if fact.source == COMMAND_LINE), None)
    for fact in rates:
        if given and fact.basis == "measured" and not _same(float(fact.value), given):
            told = f"{shown('rate_bps', fact.value)}, not of {shown('rate_bps', given)}"
            made.append(f"{_where(fact)} shows a bottleneck of {told}")
    most = max(rates, key=lambda fact: float(fact.value), default=None)
    if floor is not None and most is not None and float(floor.value) > ABOVE_RATE * float(most.value):
        made.append(
            f"{floor.source} has {floor.text}, more than {_where(most)}'s {most.text}: it took another way"
        )
    low = min(idles, key=lambda fact: float(fact.value), default=None)
    if low is None:
        return made
    for source in dict.fromkeys(flow.source for flow in flows):
        least = min((float(fact.value) for fact in idles if fact.source == source), default=0.0)
        if least > OTHER_PATH * float(low.value) and least - float(low.value) > OTHER_PATH_MS:
            made.append(
                f"{source} has no RTT below {shown('idle_rtt_ms', least)}, {low.source} has "
                f"{shown('idle_rtt_ms', low.value)}: another path, or a queue that was never empty"
            )
    return made


def _where(fact: Fact) -> str:
    return f"{fact.source} ({fact.place})" if fact.place else fact.source


def _same(one: float, other: float) -> bool:
    return abs(one - other) <= SAME_RATE * max(one, other)


def fact_document(fact: Fact) -> dict[str, Any]:
    """Return a fact as JSON."""
    return {
        "name": fact.name,
        "value": fact.value,
        "basis": fact.basis,
        "file": fact.source,
        "place": fact.place,
    }
