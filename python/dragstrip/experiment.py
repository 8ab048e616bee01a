"""The experiment: a path, traffic, what varies, how often, and the claims it is graded by.

The same classes are the TOML format (docs/experiments.md). Quantities are text with a unit
(`rate="10mbit"`), queues are tc(8)'s own words (`queue="bfifo limit 200kb"`). `expand.py` turns an
experiment into scenarios; the checks that need the whole picture (routes, buffers) are made there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path as FilePath
from typing import Annotated, Any, Literal, Self, TypeVar, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import ErrorDetails

from dragstrip import _core, engines, programs, stacks, toml, traces
from dragstrip.errors import BadInputError, Raw, nearest
from dragstrip.outside import parsed_toml, printable
from dragstrip.quantities import Rate, Share, Size, Time, refuse

SECOND_NS = 1_000_000_000
MILLISECOND_NS = 1_000_000


class Part(BaseModel):
    """A piece of an experiment: no unknown fields, no silent changes."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def _queue(value: object) -> str:
    """A queue discipline, checked by the core's parser and kept as text: `1bdp` depends on the path."""
    if not isinstance(value, str):
        raise refuse(value, 'a queue discipline in the words of tc, such as "bfifo limit 200kb", or "1bdp"')
    try:
        _core.check_queue(value)
    except _core.InputError as error:
        raise refuse(value, error.args[2]) from None
    return value


def _netem(value: object) -> str:
    """What stands behind `netem` in tc."""
    if not isinstance(value, str):
        raise refuse(value, 'the words of tc behind netem, such as "delay 5ms 5ms loss 1%"')
    _queue(f"netem {value}")
    return value


def _sysctl_value(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise refuse(value, 'the value as sysctl takes it: a number or text such as "4096 131072 6291456"')
    return str(value)


def _profile(value: str) -> str:
    from dragstrip.scenario import (
        StackProfile,  # its many classes cost more than all else that is imported here
    )

    known = get_args(StackProfile)
    if value not in known:
        raise refuse(value, f"one of {', '.join(known)}{nearest(value, known)}")
    return value


Profile = Annotated[str, AfterValidator(_profile)]
"""A stack profile."""
Packets = Annotated[int, Field(strict=True, ge=0, lt=2**32)]
Queue = Annotated[str, BeforeValidator(_queue)]
Netem = Annotated[str, BeforeValidator(_netem)]
LinkKind = Literal["htb", "wire"]


class Access(Part):
    """A sender's own link, the same in both directions."""

    rate: Rate | None = None
    """Of a store-and-forward wire; none: a plain veth, which takes no time."""
    delay: Time = 0
    """One way."""
    queue: Queue | None = None
    """Queue in front of the wire, towards the router."""


class Adsl(Part):
    """ADSL over ATM, one direction: whole cells at the synchronisation rate."""

    kind: Literal["adsl"]
    rate: Rate
    encapsulation: Literal["pppoe_llc", "pppoe_vc_mux", "pppoa_vc_mux"] | None = None
    interleaving: Time | None = None


class WifiG(Part):
    """802.11g."""

    kind: Literal["wifi_g"]
    rate: Rate
    """PHY rate."""
    slot: Literal["short", "long"] | None = None
    protection: Literal["off", "short_preamble", "long_preamble"] | None = None
    frame_error: Share | None = None
    ring: Annotated[int, Field(ge=1)] | None = None
    """Frames in each station's driver."""


class WifiN(Part):
    """802.11n with aggregation."""

    kind: Literal["wifi_n"]
    mcs: Annotated[int, Field(ge=0, le=15)]
    width_mhz: Literal[20, 40] | None = None
    short_guard: bool | None = None
    band: Literal["2.4ghz", "5ghz"] | None = None
    aggregate: Annotated[int, Field(ge=1, le=64)] | None = None
    """Frames in an aggregate."""
    aggregate_bytes: Size | None = None
    air_time: Time | None = None
    """Of an aggregate, at most."""
    frame_error: Share | None = None
    ring: Annotated[int, Field(ge=1)] | None = None
    """Frames in each station's driver."""


class HomeplugAv(Part):
    """HomePlug AV."""

    kind: Literal["homeplug_av"]
    phy: Rate
    """Raw rate, as adapters report it."""
    efficiency: Annotated[float, Field(gt=0, le=1)] | None = None
    burst: Time | None = None
    beacon: Time | None = None
    beacon_period: Time | None = None
    ring: Annotated[int, Field(ge=1)] | None = None
    """Frames in each adapter."""


class Modem(Part):
    """A pair of telephone modems, one direction: PPP, error control, compression."""

    kind: Literal["modem"]
    rate: Rate
    """Of the line."""
    protocol: Literal["async", "mnp4", "mnp5", "v42", "v42bis"] | None = None
    block: Size | None = None
    """Of error control."""
    compression_ratio: Annotated[float, Field(ge=1)] | None = None
    """How many times smaller compression makes the data."""
    van_jacobson: bool | None = None
    dte: Rate | None = None
    """Of the serial ports."""
    buffer: Size | None = None
    """In the sending modem."""
    processing: Time | None = None


class EthernetHub(Part):
    """Half-duplex Ethernet at 100 Mbit/s: CSMA/CD."""

    kind: Literal["ethernet_hub"]
    background_stations: Annotated[int, Field(ge=0)] | None = None
    background_load: Annotated[float, Field(ge=0)] | None = None
    """Of all of them, as a share of the 100 Mbit/s."""
    full_duplex: str | None = None
    """The node that sends without listening."""
    ring: Annotated[int, Field(ge=1)] | None = None
    """Frames in each interface."""


class Trace(Part):
    """A recorded link, one direction."""

    kind: Literal["trace"]
    file: Annotated[str, AfterValidator(traces.located)]
    """In mahimahi's format; relative to the experiment's file."""


class TunnelMedium(Part):
    """IP over TCP: two links, one each way, carried by a flow."""

    kind: Literal["tunnel"]
    flow: str
    """Label of the flow whose application is the tunnel."""
    near: str
    """The node whose packets that flow's sender takes."""


Medium = Annotated[
    Adsl | WifiG | WifiN | HomeplugAv | Modem | EthernetHub | Trace | TunnelMedium,
    Field(discriminator="kind"),
]


class Path(Part):
    """A dumbbell: senders s1 ... sN, a router r, the bottleneck, a receiver d (or d1 ... dM)."""

    rate: Rate | None = None
    """Of the bottleneck, senders to receivers."""
    medium: str | None = None
    """An entry of `media`, which carries the bottleneck instead of a rate."""
    up_medium: str | None = None
    """Of the return path. A medium that stations share carries both ways: then this is not needed."""
    link: LinkKind = "htb"
    """`htb`: shaped as tc does it, a packet leaves at the start of its transmission time; `wire`:
    store and forward."""
    queue: Queue = "pfifo limit 1000"
    """Queue discipline of the bottleneck; the default is Linux's in an htb class."""
    overhead: Size = 0
    """Charged per frame in addition to Ethernet's header."""
    atm: bool = False
    """Charge whole ATM cells (`htb` only)."""
    delay: Time = 0
    """Propagation delay of the bottleneck link."""
    loss: Share = 0.0
    """Random loss behind the bottleneck."""
    jitter: Time = 0
    """Behind the bottleneck: each packet is delayed by 0 to twice this, and may be overtaken."""
    netem: Netem | None = None
    """Any other impairment behind the bottleneck, in tc's words; instead of loss and jitter."""
    ahead_loss: Share = 0.0
    """Random loss on each sender's own link, ahead of the bottleneck's queue."""
    ahead_netem: Netem | None = None
    """Any other impairment there, in tc's words; instead of `ahead_loss`."""
    up_rate: Rate | None = None
    """Of the return path; none: unlimited."""
    up_queue: Queue | None = None
    """Queue discipline of the return path."""
    up_delay: Time = 0
    """Propagation delay of the return path."""
    up_netem: Netem | None = None
    """Impairment on the return path."""
    rtt: Time | None = None
    """The whole delay, all of it on the return path; instead of delay and up_delay."""
    senders: int | list[Access] | None = None
    """How many, or each one's access link; none: one per flow."""
    receivers: Annotated[int, Field(ge=1, le=100_000)] = 1
    """More than one: they sit behind a second router w, beyond the bottleneck."""

    @model_validator(mode="after")
    def _no_two_ways_to_say_it(self) -> Self:
        if (self.rate is None) == (self.medium is None):
            raise refuse("both" if self.rate else "neither", "either rate or medium")
        if self.up_medium is not None and self.up_rate is not None:
            raise refuse(self.up_medium, "either up_rate or up_medium")
        if self.medium is not None and (self.overhead or self.atm):
            raise refuse(self.medium, "overhead and atm only with a rate: a medium has its own")
        if self.rtt is not None and (self.delay or self.up_delay):
            raise refuse(f"{self.rtt}ns", "either rtt or delay and up_delay")
        if self.netem is not None and (self.loss or self.jitter):
            raise refuse(self.netem, "either netem or loss and jitter")
        if self.ahead_netem is not None and self.ahead_loss:
            raise refuse(self.ahead_netem, "either ahead_netem or ahead_loss")
        if self.atm and self.link == "wire":
            raise refuse("true", 'atm = true only with link = "htb"')
        if isinstance(self.senders, int) and not 1 <= self.senders <= 100_000:
            raise refuse(self.senders, "between 1 and 100000 senders")
        return self


class Node(Part):
    """A host or router of an explicit graph."""

    name: str
    kind: Literal["host", "router"]


class Link(Part):
    """A link of an explicit graph: one direction, or both alike."""

    from_: str = Field(alias="from")
    to: str
    name: str = ""
    """Default: `from-to`."""
    both_ways: bool = True
    """A second link, the other way round, like this one."""
    rate: Rate | None = None
    medium: str | None = None
    """An entry of `media`, instead of a rate."""
    link: LinkKind = "htb"
    queue: Queue | None = None
    overhead: Size = 0
    atm: bool = False
    delay: Time = 0
    netem: Netem | None = None

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class StaticRoute(Part):
    """At `node`, packets for `destination` take `link`."""

    node: str
    destination: str
    link: str


class History(Part):
    """What a host remembers of connections before the run (Linux 2.6's cache of metrics); 0: nothing."""

    ssthresh: Packets = 0
    """Packets at which slow start ends at first."""
    reordering: Packets = 0
    """Packets of reordering learnt."""
    rtt: Time = 0
    deviation: Time = 0


class Cpu(Part):
    """What a host's processor takes for a packet: it takes one after the other."""

    shared: str | None = None
    """Hosts that give the same name share one processor."""
    receive: Time = 0
    """For a packet received that carries data."""
    ack: Time = 0
    """For a segment received that carries none."""
    send: Time = 0
    """For a packet sent."""


class HostSettings(Part):
    """A host's TCP."""

    profile: Profile | None = None
    sysctl: dict[str, Annotated[str, BeforeValidator(_sysctl_value)]] = {}
    """By the kernel's names; an unknown one is an error."""
    gso: Literal["off", "auto", "whole"] | None = None
    mtu: Size | None = None
    tick_hz: int | None = None
    history: History | None = None
    cpu: Cpu | None = None


class Bulk(Part):
    """Writes as fast as the socket takes it."""

    kind: Literal["bulk"] = "bulk"


class OnOff(Part):
    """Bulk for a while, silent for a while."""

    kind: Literal["on_off"]
    on: Time
    off: Time


class RequestResponse(Part):
    """Asks, is answered, thinks, asks again."""

    kind: Literal["request_response"]
    request: Size
    response: Size
    think: Time = 0


class ConstantRate(Part):
    """A datagram at regular times; the flow is UDP."""

    kind: Literal["constant_rate"]
    rate: Rate
    datagram: Size = 1470


class Tunnel(Part):
    """Carries the links of a medium of kind `tunnel`."""

    kind: Literal["tunnel"]
    header: Size = 2
    """In front of each packet."""


Application = Annotated[Bulk | OnOff | RequestResponse | ConstantRate | Tunnel, Field(discriminator="kind")]


class Flow(Part):
    """One flow, or `count` alike."""

    cc: str | None = None
    """Congestion control, with options, count, RTT and start: `bbr*4@20ms+5s`; none only for a UDP flow."""
    cc_options: dict[str, float] = {}
    """Its module parameters."""
    label: str = ""
    """Default: the congestion control, numbered where there are several."""
    count: Annotated[int, Field(ge=1, le=100_000)] = 1
    sender: str = ""
    """Default: in turn."""
    receiver: str = ""
    """Default: in turn."""
    reverse: bool = False
    """From the receiver's side to the senders'."""
    rtt: Time | None = None
    """Of this flow's empty path, instead of the path's: its sender is nearer or farther."""
    start: Time = 0
    stagger: Time = 0
    """Between the starts of the `count`."""
    stop: Time | None = None
    bytes: Size | None = None
    """All there is to send; endless when absent."""
    send_buffer: Size | None = None
    """What both ends ask for by SO_SNDBUF, as `iperf3 -w` does; none: the kernel tunes it."""
    receive_buffer: Size | None = None
    """What both ends ask for by SO_RCVBUF; none: the kernel tunes it."""
    application: Application = Bulk()

    @field_validator("cc")
    @classmethod
    def _known(cls, cc: str | None, info: ValidationInfo) -> str | None:
        if cc is None:
            return cc
        known = (info.context or {}).get("algorithms") or _core.algorithms()
        try:
            name, _ = _core.flow_word(cc)
        except _core.InputError as error:
            raise refuse(Raw(error.args[1]), error.args[2]) from None
        if name in known:
            return cc
        for other in known:
            if engines.alike(other) == engines.alike(name):
                return cc.replace(name, other, 1)
        raise refuse(name, f"one of {', '.join(known)}{nearest(name, known)}")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        udp = isinstance(self.application, ConstantRate)
        if udp and self.cc is not None:
            raise refuse(self.cc, "no cc for a constant_rate flow: it is UDP")
        if not udp and self.cc is None:
            raise refuse("none", 'the field cc, such as cc = "cubic"')
        if self.bytes is not None and not isinstance(self.application, Bulk):
            raise refuse(f"{self.bytes}b", "bytes only for a bulk flow")
        return self


class Probe(Part):
    """Pings from one host to another node."""

    from_: str = Field(alias="from")
    target: str
    label: str = ""
    """Default: `from-target`."""
    interval: Time = 200 * MILLISECOND_NS
    size: Size = 64
    """ICMP header and payload."""
    start: Time = 0

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class Recorded(Part):
    """What to record."""

    interval: Time = 100 * MILLISECOND_NS
    every_ack: bool = False
    rtts: bool = True
    cc_state: bool = False
    captures: bool = False


def _limit(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise refuse(value, 'the limit as the queue counts it: "50kb", or packets such as 100')
    return str(value)


class Change(Part):
    """A change of a link during the run, or a file of them."""

    at: Time = 0
    """When; of a file: where its times begin."""
    link: str | None = None
    """Its name; none: the bottleneck of the path."""
    rate: Rate | None = None
    delay: Time | None = None
    """Propagation delay of the link, one way."""
    rtt: Time | None = None
    """The whole path's, made on the return path, as `path.rtt`."""
    loss: Share | None = None
    """Random loss behind the link's line."""
    limit: Annotated[str, BeforeValidator(_limit)] | None = None
    """Of the queue, counted as it counts."""
    state: Literal["up", "down"] | None = None
    file: str | None = None
    """A trace of values (CSV) instead of settings."""

    @field_validator("file")
    @classmethod
    def _a_trace(cls, file: str | None, info: ValidationInfo) -> str | None:
        return None if file is None else traces.beside(file, info)

    @model_validator(mode="after")
    def _something_changes(self) -> Self:
        settings = self.model_fields_set - {"at", "link", "file"}
        if self.file is not None and settings:
            raise refuse(self.file, f"either a file or {', '.join(sorted(settings))}")
        if self.file is None and "at" not in self.model_fields_set:
            raise refuse(Raw("no time"), 'at, a time such as "20s"')
        if self.file is None and not settings:
            raise refuse(Raw("nothing"), "a rate, delay, rtt, loss, limit or state")
        return self

    def rows(self) -> list[Change]:
        """The changes in its file, those after its `at`; itself where it has none."""
        if self.file is None:
            return [self]
        found = []
        for number, row in traces.changes(self.file):
            where = f"{FilePath(self.file).name}, line {number}"
            try:
                change = Change.model_validate({"link": self.link, **row})
            except ValidationError as error:
                first = explain(error, Change, "")
                raise BadInputError(first.field, Raw(f"{where}: {first.value}"), first.expected) from None
            found.append(change.model_copy(update={"at": change.at + self.at}))
        return found


class Alternative(Part):
    """Several fields set together under one name; alternatives multiply with `vary`."""

    name: str
    set: dict[str, Any]
    """Dotted path → value."""


Selector = dict[str, Any]


class Claim(Part):
    """A figure that somebody published, and how ours is measured and compared with it."""

    id: str
    source: str
    """Section, figure, table or file, and the words quoted."""
    metric: str
    """See docs/measures.md."""
    where: Selector = {}
    """Which runs and flows: cc, label, probe, target, link, alternative, or a varied path."""
    over: Selector | None = None
    """The figure is divided by the same metric of these."""
    value: float | None = None
    range: tuple[float, float] | None = None
    tolerance: str | float | None = None
    """`"5%"` of the value, or in the claim's unit. Widens a range at both ends. Of an order: the share by
    which each must exceed the one before."""
    unit: str = "1"
    order: list[str] | None = None
    """Values of `by`, from the smallest figure to the largest."""
    by: str = "cc"
    asked: str | None = None
    """Instead of a figure: what the publication left open. The figure is ours alone, and not graded."""
    across: Literal["min", "max", "sum"] | None = None
    """Of several matches in one run; then the median of the runs. None: the median of all."""
    after: Time = 0
    """Leave out the flow's first part."""
    until: Time | None = None
    """And what comes later than this, counted like `after` from the flow's start."""
    state: str | None = None
    """Only samples in this state of the algorithm (samples.state)."""
    not_testable: str | None = None
    """Why this cannot be tested here; the figure is shown all the same."""

    @model_validator(mode="after")
    def _one_published_figure(self) -> Self:
        given = sum(part is not None for part in (self.value, self.range, self.order, self.asked))
        if given != 1:
            raise refuse(f"{given} of them", "one of value, range, order and asked")
        if self.range is not None and self.range[0] > self.range[1]:
            raise refuse(list(self.range), "a range from low to high")
        if self.value is not None and self.tolerance is None and self.not_testable is None:
            raise refuse("none", 'a tolerance, such as "5%", for a single value')
        if self.until is not None and self.until <= self.after:
            raise refuse(f"until {self.until / 1e9:g}s", f"an end later than after ({self.after / 1e9:g}s)")
        self.slack()
        return self

    def selectors(self) -> list[Selector]:
        """All that it looks at."""
        ordered = {} if self.order is None else {self.by: self.order}
        return [{**self.where, **ordered}, *([] if self.over is None else [self.over])]

    def slack(self) -> float:
        """Half the width allowed, in the claim's unit; of an order, the margin as a share."""
        if self.tolerance is None:
            return 0.0
        if isinstance(self.tolerance, float | int):
            return float(self.tolerance)
        text = self.tolerance.strip()
        try:
            share = float(text.removesuffix("%")) / 100
        except ValueError:
            share = -1.0
        if not text.endswith("%") or share < 0:
            raise refuse(self.tolerance, 'a share such as "5%", or a number in the claim\'s unit')
        if self.order is not None:
            return share
        return share * max(abs(figure) for figure in (self.range or (self.value or 0.0,)))


class Ablation(Part):
    """What a claim's figure would be if something else were so: a part left out, a parameter moved."""

    claims: Annotated[list[str], Field(min_length=1)]
    """Their ids; `*` stands for anything."""
    vary: dict[str, Any] = {}
    """As the experiment's: dotted path → list of values. It goes before what the experiment sets there."""
    metric: str | None = None
    """Another measure of the same."""
    about: Annotated[str, Field(min_length=1)]
    """What it shows."""


class FlowTable(Part):
    """A table of flows as the publication prints it, to stand beside ours."""

    source: str
    where: Selector = {}
    """Which run, and which of its flows."""
    published: Annotated[list[float], Field(min_length=1)]
    """Mbit/s, one per flow."""


class Experiment(Part):
    """What a person writes."""

    name: str = ""
    """Default: the file's folder and name."""
    title: str = ""
    source: str = ""
    """Of the publication."""
    description: str = ""
    duration: Time
    seed: Annotated[int, Field(ge=0, lt=2**53)] = 1
    repeat: Annotated[int, Field(ge=1, le=100_000)] = 1
    """Seeds count up from `seed`; within one repeat all alternatives have the same."""
    cold_arp: bool = False
    """Neighbour caches start empty: the first packet over a link waits for ARP, one round trip of it."""
    idle: Time = 0
    """Pause between runs where the path is real. The simulator starts every run on an empty path."""
    engine: str = engines.DEFAULT
    """Its name; two (`sim,vm`): every run on both, compared with each other."""
    engine_options: dict[str, str | list[str]] = {}
    """Options of the engine."""
    load: list[str] = []
    """The engine option of this name: C files with congestion controls for a kernel, which flows may name."""
    path: Path | None = None
    nodes: list[Node] = []
    links: list[Link] = []
    media: dict[str, Medium] = {}
    """Name → what carries the links that name it, where they are no plain wires."""
    routes: list[StaticRoute] = []
    programs: dict[str, str] = {}
    """Name → an algorithm as a text (docs/program.md), or the file that holds it; only for the simulator."""
    hosts: dict[str, HostSettings] = {}
    """Name or pattern (`*`, `s?`) → settings; later ones override."""
    flows: list[Flow]
    probes: list[Probe] = []
    record: Recorded = Recorded()
    changes: list[Change] = []
    """What changes of links during the run."""
    vary: dict[str, Any] = {}
    """Dotted path → list of values; several multiply."""
    alternatives: list[Alternative] = []
    claims: list[Claim] = []
    ablations: list[Ablation] = []
    flow_tables: list[FlowTable] = []

    @property
    def engines(self) -> tuple[str, ...]:
        """Those that run it."""
        return engines.parse(self.engine)

    def options_of(self, engine: str) -> dict[str, Any]:
        """The options of this engine."""
        return engines.options_of(engine, {**self.engine_options, "load": self.load})

    @field_validator("programs")
    @classmethod
    def _read_programs(cls, table: dict[str, str], info: ValidationInfo) -> dict[str, str]:
        return programs.of_table(table, (info.context or {}).get("folder", FilePath()))

    @field_validator("flows")
    @classmethod
    def _some_flow(cls, flows: list[Flow]) -> list[Flow]:
        if not flows:
            raise refuse([], "at least one flow")
        return flows

    @field_validator("duration")
    @classmethod
    def _some_time(cls, duration: int) -> int:
        if duration == 0:
            raise refuse("0s", 'a time above zero, such as "30s"')
        return duration

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.path is None) == (not self.nodes):
            raise refuse("both" if self.path else "neither", "either [path] or [[nodes]] and [[links]]")
        if self.path is not None and (self.links or self.routes):
            raise refuse("both", "links and routes only with [[nodes]]")
        for kind, names in (
            ("claims", [claim.id for claim in self.claims]),
            ("alternatives", [alternative.name for alternative in self.alternatives]),
        ):
            repeated = {name for name in names if names.count(name) > 1}
            if repeated:
                raise refuse(sorted(repeated), f"every entry of {kind} under a name of its own")
        return self

    @classmethod
    def read(cls, file: FilePath) -> Experiment:
        """The experiment in a TOML file; errors name the file, the field and what would be right."""
        content = parsed_toml(file)
        content.setdefault("name", printable(f"{file.resolve().parent.name}/{file.stem}"))
        _beside(content, file.parent)
        try:
            return cls.build(content, str(file))
        except BadInputError as error:
            raise toml.pointed(error) from None

    @classmethod
    def build(cls, content: Mapping[str, Any], source: str = "") -> Experiment:
        """The experiment described by a mapping; raises `BadInputError` for the first thing that is wrong."""
        try:
            own = content.get("programs")
            known = [*_algorithms(content), *(map(str, own) if isinstance(own, dict) else [])]
            context = {"folder": FilePath(source).parent, "algorithms": known}
            return cls.model_validate(_spelt(content), context=context)
        except BadInputError as error:
            raise error.at(source) from None
        except ValidationError as error:
            raise explain(error, cls, source) from None

    def content(self) -> dict[str, Any]:
        """As a file would have it: what `build` takes."""
        return self.model_dump(mode="json", by_alias=True, exclude_defaults=True)

    def algorithms(self) -> list[str]:
        """What a flow's cc may be: what the first engine has. A second one may refuse a run."""
        return engines.named(self.engines[0]).algorithms(self.options_of(self.engines[0]))


def _spelt(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """The content with names of paths and media written out. Raises `BadInputError`."""
    path = content.get("path")
    named = isinstance(path, str) or (
        isinstance(path, dict) and any(key in path for key in ("preset", "medium", "up_medium"))
    )
    if not named:
        return content
    told = {key: content[key] for key in ("path", "media") if key in content}
    try:
        return {**content, **json.loads(_core.spell_names(json.dumps(told, default=str)))}
    except _core.InputError as error:
        field, value, expected = error.args
        raise BadInputError(field, Raw(value), expected) from None


def _algorithms(content: Mapping[str, Any]) -> list[str]:
    """Those of the first engine. Raises `BadInputError` for what is wrong with engines and their options."""
    engine, options, load = (content.get(key) for key in ("engine", "engine_options", "load"))
    if not (isinstance(engine or "", str) and isinstance(options or {}, dict)):
        return []  # validation tells
    names = engines.parse(engine or engines.DEFAULT)
    try:
        engines.check_options(names, options or {})
    except BadInputError as error:
        field = f"engine_options.{error.field}"
        raise BadInputError(field, Raw(error.value), error.expected) from None
    engines.check_options(names, {"load": load})
    return engines.named(names[0]).algorithms(
        engines.options_of(names[0], {**(options or {}), "load": load or []})
    )


def _beside(content: dict[str, Any], folder: FilePath) -> None:
    """Engine options that are files are meant from the experiment's folder."""
    given = content.get("engine_options", {})
    for table in (content, given if isinstance(given, dict) else {}):
        for key in engines.file_options() & table.keys():
            value = table[key]
            if isinstance(value, list):
                table[key] = [str(folder / str(part)) for part in value]
            elif isinstance(value, str):
                table[key] = str(folder / value)


def rebuilt(content: dict[str, Any], changed: Mapping[str, Any]) -> tuple[Experiment, list[str]]:
    """An experiment with what the command line says instead, and the older stacks that gave way.

    Where the command line chooses an engine whose hosts run a kernel of their own, that stack takes the place
    of older ones of its family, also where they vary: claims are graded on it, and the description says so.
    Raises `BadInputError`.
    """
    replaced: set[str] = set()
    try:
        chosen = engines.parse(changed["engine"]) if "engine" in changed else ()
    except BadInputError as error:
        raise error.at("command line") from None
    for name in chosen:
        if (own := engines.named(name).own_stack) is not None:
            replacing = stacks.Replacing(own)
            content = replacing.everywhere(content)
            replaced |= replacing.replaced
    if replaced:
        older = ", ".join(sorted(replaced))
        said = f"Here hosts run the stack of the engine's own kernel, in place of {older}."
        content = {**content, "description": f"{content.get('description', '')}\n\n{said}".strip()}
    try:
        return Experiment.build({**content, **changed}, "command line"), sorted(replaced)
    except BadInputError as error:
        field, dot, inner = error.field.partition(".")
        if field not in changed:
            raise
        option = "--engine-option " if field == "engine_options" and dot else f"--{field}{dot}"
        raise BadInputError(f"{option}{inner}", Raw(error.value), error.expected, error.source) from None


_Read = TypeVar("_Read", bound=Part)


def read_toml(file: FilePath, kind: type[_Read]) -> _Read:
    """What a TOML file describes; errors name the file, the field and what would be right."""
    try:
        return kind.model_validate(parsed_toml(file))
    except ValidationError as error:
        raise explain(error, kind, str(file)) from None


def explain(error: ValidationError, model: type[BaseModel], source: str = "") -> BadInputError:
    """The first of pydantic's complaints as one line in our words, and how many more there are."""
    complaints = error.errors()
    first = _most_telling(complaints)
    tags = _tags(first["loc"])
    located = [part for at, part in enumerate(first["loc"]) if at not in tags]
    field = dotted(located)
    more = f" (and {len(complaints) - 1} more)" if len(complaints) > 1 else ""
    return BadInputError(field, _value(first), _expected(first, model, located) + more, source)


def _most_telling(complaints: list[ErrorDetails]) -> ErrorDetails:
    """The first; where a union was tried member by member, the one that went deepest."""
    first = complaints[0]
    tags = _tags(first["loc"])
    if not tags:
        return first
    stem = first["loc"][: tags[0]]
    same = [complaint for complaint in complaints if complaint["loc"][: len(stem)] == stem]
    return max(same, key=lambda complaint: len(complaint["loc"]))


_TAGS = {
    *("bulk", "on_off", "request_response", "constant_rate", "tunnel", "list[Access]", "int"),
    *("adsl", "wifi_g", "wifi_n", "homeplug_av", "modem", "ethernet_hub", "trace"),
}
"""What pydantic adds to a location to name the member of a union."""
_NAMED = ("media", "hosts")
"""Tables whose entries are called as people like: `[media.trace]` is no member of a union."""


def _tags(location: Sequence[int | str]) -> list[int]:
    """Where in a location pydantic's additions stand."""
    named = bool(location) and location[0] in _NAMED
    return [at for at, part in enumerate(location) if part in _TAGS and not (named and at == 1)]


def dotted(location: Sequence[int | str]) -> str:
    """`flows[0].cc`."""
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


def _value(error: ErrorDetails) -> object:
    context = error.get("ctx", {})
    if "shown" in context:
        return context["shown"]
    if error["type"] in ("extra_forbidden", "missing", "union_tag_not_found"):
        return None
    if "tag" in context:
        return context["tag"]
    given = error["input"]
    return Raw(type(given).__name__) if isinstance(given, dict | list | BaseModel) else given


def _expected(error: ErrorDetails, model: type[BaseModel], location: Sequence[int | str]) -> str:
    match error["type"]:
        case "extra_forbidden":
            known = _fields_at(model, location[:-1])
            return f"is not a known field{nearest(str(location[-1]), known)} (known: {', '.join(known)})"
        case "missing":
            return "is missing"
        case "quantity":
            return str(error.get("ctx", {}).get("expected", ""))
        case "union_tag_invalid" | "union_tag_not_found":
            return "a field kind that is one of " + str(
                error.get("ctx", {}).get("expected_tags", "bulk, ...")
            )
        case _:
            said = error["msg"][0].lower() + error["msg"][1:]
            return said.removeprefix("input should be ")


def _fields_at(model: type[BaseModel], location: Sequence[int | str]) -> list[str]:
    """The fields that the part of the experiment at this place knows."""
    current: Any = model
    for part in location:
        if isinstance(part, str) and _is_model(current) and part in _names(current):
            current = _inner(_names(current)[part])
    return list(_names(current)) if _is_model(current) else []


def _names(model: type[BaseModel]) -> dict[str, Any]:
    return {info.alias or name: info.annotation for name, info in model.model_fields.items()}


def _inner(annotation: Any) -> Any:
    """The model inside `list[X]`, `dict[str, X]`, `X | None`."""
    if _is_model(annotation):
        return annotation
    arguments = getattr(annotation, "__args__", ())
    models = [found for argument in arguments if _is_model(found := _inner(argument))]
    return models[0] if models else None


def _is_model(candidate: Any) -> bool:
    return isinstance(candidate, type) and issubclass(candidate, BaseModel)
