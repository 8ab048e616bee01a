"""Observations of a path in files: flows, pings and queues, each with its hosts, its class and its times.

Scope: one class per kind of observation, and the rules for comparing them. Out of scope: their meaning
(`delays`, `loss_causes` and `limits`).
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from dragstrip.analysis.diagnosis.wording import figure
from dragstrip.analysis.inference.path import PathEstimate
from dragstrip.model.scenario.disciplines import is_aqm, is_fifo, marks
from dragstrip.model.scenario.paths import PAYLOAD_BYTES

Floats: TypeAlias = npt.NDArray[np.float64]
Basis: TypeAlias = Literal["exact", "at least", "at most", "measured", "simulated"]

COMMAND_LINE = "command line"
SIMULATION = "simulation"
BUSY_BYTES = 150_000
"""Bytes, about a hundred segments, from which on a flow can load a path."""
BUSY_S = 1.0
"""Seconds from which on a flow can load a path."""
BUSY_SHARE = 0.5
"""Share of its time in which the network or the receiver, not the application, limits a flow that loads."""
ONE_WAY = 3.0
ONE_WAY_MS = 1.0
"""A queueing delay is of one direction if it is this many times that of the other, or of a millisecond."""
PRIVATE = tuple(
    map(ipaddress.ip_network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7"))
)
_CLASS = re.compile(r"\b(BE|BK|VI|VO|EF|LE|CS[0-7]|AF[1-4][1-3])$")
BEST_EFFORT = frozenset({"", "BE", "CS0"})


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
        bound_text = {"at least": "at least ", "at most": "at most "}.get(self.basis, "")
        return f"{NAMES[self.name]} {bound_text}{figure(self.name, self.value)}"


NAMES = {
    "rate_bps": "rate",
    "goodput_bps": "goodput",
    "passed_bps": "passes",
    "idle_rtt_ms": "idle RTT",
    "rtt_p50_ms": "RTT, median",
    "rtt_p95_ms": "RTT, 95 %",
    "rtt_mean_ms": "RTT, mean",
    "queue": "queue",
    "up_rtt_p50_ms": "RTT, median",
    "up_rtt_p95_ms": "RTT, 95 %",
    "up_rate_bps": "rate of the return path",
    "lost_between": "packets lost between the captures",
    "queueing_there_ms": "queueing delay in the data's direction, 95 %",
    "queueing_back_ms": "queueing delay on the way back, 95 %",
    "dropped": "drops",
    "dropped_share": "drops",
    "marked": "marks",
    "retransmitted_share": "retransmitted",
    "capture_queue": "queue by its losses",
    "buffer_bytes": "buffer",
    "policer_bps": "the policer's rate",
    "burst_bytes": "its burst",
    "random_loss_share": "lost whatever the queue",
    "lost_share": "pings lost",
    "datagrams_lost_share": "datagrams lost",
    "receiver_share": "time limited by the receive window",
    "application_share": "time limited by the sending host",
    "send_buffer_share": "time limited by the send buffer",
    "closed_share": "time with the receiver's window closed",
    "rtt_before_loss_ms": "queueing delay at losses, median",
    "burstiness": "variance over mean of the losses per interval",
    "first_share": "losses in the first burst",
    "loss_free": "segments without a loss afterwards",
    "unanswered": "connections without an answer",
    "syns": "SYNs sent",
    "flight_bytes": "bytes in flight, median",
    "cwnd_bytes": "congestion window, median",
    "target_bps": "rate that the application keeps to",
    "algorithm": "algorithm",
    "ecn": "ECN",
}


def hosts(*texts: str | None) -> frozenset[str]:
    """Return the names and addresses of hosts in texts such as `h (10.0.0.2)` or `10.0.0.2:5201`."""
    words = [word for text in texts for word in re.split(r"[\s()]+", text or "") if word]
    return frozenset(_without_port(word) for word in words)


def _without_port(word: str) -> str:
    if word.startswith("["):
        return word[1:].partition("]")[0]
    host, colon, port = word.rpartition(":")
    return host if colon and port.isdigit() and host.count(":") in (0, 7) else word


def _is_private(host: str) -> bool:
    """Return whether an address is one of a home or company network (RFC 1918, RFC 6598, RFC 4193)."""
    name = next(iter(hosts(host)), "")
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return name == "this host"
    return any(address in network for network in PRIVATE if network.version == address.version)


def of_one_path(hosts_a: frozenset[str], hosts_b: frozenset[str]) -> bool:
    """Return whether observations of these hosts may be of one path: a host in common, or none named."""
    return not hosts_a or not hosts_b or bool(hosts_a & hosts_b)


@dataclass(frozen=True, eq=False)
class Series:
    """A flow interval by interval, as its sender recorded it; NaN is what an interval does not have."""

    end_s: Floats
    """End of each interval, in seconds since the first began."""
    bytes: Floats
    retransmitted: Floats
    """Segments retransmitted in each interval."""
    rtt_ms: Floats
    """Smoothed RTT at the end of each interval."""
    cwnd_bytes: Floats
    flight_bytes: Floats

    def __len__(self) -> int:
        return len(self.end_s)

    @cached_property
    def length_s(self) -> Floats:
        """Length of each interval."""
        return np.diff(self.end_s, prepend=0.0)


@dataclass(frozen=True, eq=False)
class LostSegments:
    """The lost segments of a flow, from a capture at its sender."""

    at_s: Floats
    """Send time of each, in seconds since the first segment."""
    wait_ms: Floats
    """The queueing delay that its neighbours found."""
    flight_rank: float
    """Mean rank of the bytes in flight at losses among those of all segments: 0.5 if losses do not care."""
    sent_at_s: Floats
    """Send time of every segment of the flow."""


@dataclass(frozen=True)
class CapturePair:
    """Loss and queueing delay between two capture points."""

    packets_lost: int
    """Packets of the data's direction that the second point did not see."""
    there_p95_ms: float | None
    """Queueing delay in the data's direction."""
    back_p95_ms: float | None

    @property
    def direction(self) -> str:
        """Direction of the queue, if it is much longer one way than the other: there, back or nothing."""
        forward_ms, backward_ms = self.there_p95_ms or 0.0, self.back_p95_ms or 0.0
        if max(forward_ms, backward_ms) < ONE_WAY * max(min(forward_ms, backward_ms), ONE_WAY_MS):
            return ""
        return "there" if forward_ms > backward_ms else "back"


@dataclass(frozen=True)
class ObservedFlow:
    """A flow as a file shows it; None is what the file does not show."""

    source: str
    label: str
    sender: str
    bytes: int
    duration_s: float
    goodput_bps: float
    receiver: str = ""
    vantage: str = ""
    """Vantage point of a capture: sender, receiver, between."""
    behind_queue: bool = False
    """True for a capture at the exit of the bottleneck's queue: it shows no queueing delay."""
    even: bool = False
    """True when segments come evenly spread in a capture, as behind a bottleneck, and never in a burst."""
    from_start: bool = True
    """False of a capture without the connection's handshake: it begins in the middle, behind slow start."""
    drained: bool = True
    """False where the queue may have stood all the time: the least RTT is above that of the empty path."""
    clock_s: tuple[float, float] | None = None
    """Begin and end, in seconds since 1970."""
    segments: int | None = None
    retransmitted: int | None = None
    rtt_min_ms: float | None = None
    rtt_p50_ms: float | None = None
    rtt_p95_ms: float | None = None
    smoothed: bool = False
    """True when the least RTT is that of smoothed values (srtt) alone."""
    limited: dict[str, float] | None = None
    """Shares of the time by what limited the sender."""
    ecn: bool | None = None
    cc: str | None = None
    series: Series | None = None
    lost_segments: LostSegments | None = None
    steady_bytes: float | None = None
    """Bytes in flight, if they hardly change."""
    capture_pair: CapturePair | None = None
    path: PathEstimate | None = None
    """The path by inference from a capture, in bytes of frames (`PathEstimate.framed`)."""
    closed_s: float = 0.0
    """Seconds in which the receiver's window was closed."""
    target_bps: float | None = None
    """The rate that the application was told to keep to."""

    @property
    def hosts(self) -> frozenset[str]:
        """Names and addresses of both ends."""
        return hosts(self.sender, self.receiver)

    def opposes(self, flow: ObservedFlow) -> bool:
        """Reports whether another flow's sender is this flow's receiver, or the reverse."""
        return bool(hosts(self.receiver) & hosts(flow.sender) or hosts(self.sender) & hosts(flow.receiver))

    @property
    def upload(self) -> bool:
        """True for a flow from a host behind a router, or one that a speed test calls so."""
        return self.label == "upload" or (_is_private(self.sender) and not _is_private(self.receiver))

    @property
    def busy(self) -> bool:
        """True when the flow loads its path."""
        if self.bytes < BUSY_BYTES or self.duration_s < BUSY_S:
            return False
        if self.limited is None or self.vantage in ("receiver", "between"):
            return True
        busy = ("cwnd", "receiver", "small_queue")
        return sum(self.limited.get(limit, 0.0) for limit in busy) >= BUSY_SHARE

    @property
    def retransmitted_share(self) -> float | None:
        """Segments retransmitted over segments sent; where these were not counted, of full segments."""
        if self.retransmitted is None:
            return None
        segments = self.segments or self.bytes / PAYLOAD_BYTES
        share = self.retransmitted / segments if segments else 1.0
        return share if share < 1 else None  # bytes and retransmissions of different times


@dataclass(frozen=True)
class PingSeries:
    """Pings to a target, or those of one part of the time."""

    source: str
    target: str
    pings_sent: int
    pings_lost: int
    rtt_min_ms: float | None
    rtt_p50_ms: float | None
    rtt_p95_ms: float | None
    loaded: bool | None
    """True when flows were busy meanwhile; None where the file does not say."""
    name: str = "ping"
    hosts: frozenset[str] = frozenset()
    clock_s: tuple[float, float] | None = None
    """Send times of the first and the last, in seconds since 1970."""
    summed_up: bool = False
    """True when the file has a summary of the pings instead of each."""
    averaged: bool = False
    """True when the central value of a summary is a mean, not a median."""
    of_all: tuple[int, int] | None = None
    """Pings sent and lost in the whole series, of which these are a part."""
    at_s: Floats | None = field(default=None, compare=False)
    """Time of each request: since 1970 where `clock_s` is set, else since the first."""
    trip_ms: Floats | None = field(default=None, compare=False)
    """RTT of each request; NaN of a lost one."""

    @property
    def place(self) -> str:
        """The series for people."""
        return " ".join(filter(None, (self.name, self.target)))

    @property
    def traffic_class(self) -> str:
        """The class in the series' name, such as `CS1` or `BK`; empty for none."""
        match = _CLASS.search(self.name)
        return match[1] if match else ""


@dataclass(frozen=True)
class Datagrams:
    """Datagrams of a test that counts them at the receiver."""

    source: str
    label: str
    lost_share: float
    datagrams_lost: int | None = None
    datagrams_sent: int | None = None


@dataclass(frozen=True)
class HtbClass:
    """A class of htb on the way from a leaf to the root."""

    handle: str
    parent: str
    rate_bps: float | None
    ceil_bps: float | None
    prio: str = ""


@dataclass(frozen=True)
class Tree:
    """Place of a queue on its interface, so that commands can change it."""

    root: str
    """The kind of the root discipline."""
    handle: str
    """The root's handle, such as `1:`, or `0:` of a default that cannot be deleted."""
    classes: tuple[HtbClass, ...] = ()
    """The class whose leaf the queue is, and those above it; none if the queue is the root."""


def sends_in_order(kind: str) -> bool:
    """Return whether a discipline sends in order of arrival and drops what does not fit.

    Of a tbf, where it has no leaf; pfifo_fast is three pfifos by priority.
    """
    return kind == "pfifo_fast" or is_fifo(kind)


@dataclass(frozen=True)
class ObservedQueue:
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
    sent_packets: int = 0
    passed_bps: float | None = None
    """Current throughput, by the kernel's own estimate."""
    tree: Tree | None = None
    refused: str = ""
    """Reason for which the simulator cannot be given these settings."""
    limit_bytes: int | None = None
    """Its size where a medium of the options sends it: a time in its words is one at the nominal rate."""

    @property
    def is_fifo(self) -> bool:
        """True when packets leave in order of arrival and are dropped only when there is no room."""
        return sends_in_order(self.kind)

    @property
    def is_aqm(self) -> bool:
        """True when packets are dropped or marked before there is no room."""
        return is_aqm(self.kind)

    @property
    def polices(self) -> bool:
        """True when packets above a rate are dropped without waiting."""
        return bool(self.queue) and str(self.queue).split()[0] == "police"

    @property
    def marks(self) -> bool:
        """True when the discipline marks packets of flows with ECN."""
        return marks(self.queue or self.words)

    @property
    def dropped_share(self) -> float | None:
        """Packets dropped over packets that arrived."""
        if self.dropped is None or not self.sent_packets:
            return None
        return self.dropped / (self.dropped + self.sent_packets)


@dataclass(frozen=True)
class Unanswered:
    """Connections that a server never answered."""

    source: str
    client: str
    server: str
    syns: int
    retransmitted: int


@dataclass(frozen=True)
class Observations:
    """Observations of all files together."""

    files: list[tuple[str, str]] = field(default_factory=list)
    flows: list[ObservedFlow] = field(default_factory=list)
    probes: list[PingSeries] = field(default_factory=list)
    queues: list[ObservedQueue] = field(default_factory=list)
    unanswered: list[Unanswered] = field(default_factory=list)
    datagrams: list[Datagrams] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)
    """Facts beside those of flows, probes and queues: those of the command line."""
    notes: list[str] = field(default_factory=list)

    def __add__(self, added: Observations) -> Observations:
        names = ("files", "flows", "probes", "queues", "unanswered", "datagrams", "facts", "notes")
        return Observations(*(getattr(self, name) + getattr(added, name) for name in names))


def fact_document(fact: Fact) -> dict[str, Any]:
    """Return a fact as JSON."""
    return {
        "name": fact.name,
        "value": fact.value,
        "basis": fact.basis,
        "file": fact.source,
        "place": fact.place,
    }
