"""The parts of an experiment as Python classes. Generated: `cargo xtask generate`.

Do not edit: fields, defaults and documentation are those of crates/experiment/src/types.rs. Values are what a TOML
file would hold: quantities are text with a unit (`rate="10mbit"`). The core checks them when an experiment is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, ClassVar, Literal, TypeAlias

from dragstrip.experiment.part import Entries, Named, One, Part, Reader, Tagged, part


TextOrTexts: TypeAlias = "str | list[str]"
"""A text, or several."""


TransmitterKind: TypeAlias = Literal["htb", "wire"]
"""The enforcement of a rate."""


@part
class Access(Part):
    """A sender's own link, the same in both directions."""

    rate: str | None = None
    """The rate of a store-and-forward wire; without one the link is a plain veth, which takes no time."""
    delay: str = "0s"
    """The propagation delay, one way."""
    queue: str | None = None
    """The queue in front of the wire, towards the router."""


Senders: TypeAlias = "int | list[Access]"
"""The number of senders, or a table for each one's access link."""


@part
class Path(Part):
    """A dumbbell: senders `s1` to `sN`, a router `r`, the bottleneck, and a receiver `d`, or `d1` to `dM`
    after a second router `w`. A single receiver is placed after `w` too if it sends data into a limited
    return path. Links are named after their ends: `s1-r`, `r-s1`, `r-d`, `d-r`; with `w` they are `r-w`,
    `w-r`, `w-d`, or `w-d1`.
    """

    preset: str | None = None
    """A path by name, whose fields the others override; `path = "home DSL"` is short for a table with this
    field alone.
    """
    rate: str | None = None
    """The rate of the bottleneck, from the senders to the receivers. A path has a rate or a medium."""
    medium: str | None = None
    """The medium of the bottleneck instead of a rate: an entry of `media`, or a medium by name. A medium
    that stations share carries both directions.
    """
    up_medium: str | None = None
    """The medium of the return path instead of a rate."""
    link: TransmitterKind = "htb"
    """The enforcement of the rates of both directions."""
    queue: str = "pfifo limit 1000"
    """The queue discipline of the bottleneck, in tc's words (`bfifo limit 200kb`, `fq_codel`), or its depth
    (`1bdp`, `100ms`). The default is Linux's in an htb class.
    """
    overhead: str = "0b"
    """Bytes charged per frame in addition to Ethernet's header."""
    atm: bool = False
    """Charges whole ATM cells (`link = "htb"` only)."""
    delay: str = "0s"
    """The propagation delay of the bottleneck link."""
    loss: str = "0%"
    """Random packet loss after the bottleneck."""
    jitter: str = "0s"
    """Jitter after the bottleneck: each packet is delayed by 0 to twice this, uniformly, and may be
    overtaken.
    """
    netem: str | None = None
    """Any other impairment after the bottleneck in netem's words, such as `delay 5ms 2ms distribution normal
    loss 1%`, instead of `loss` and `jitter`. `loss every 100` loses the last of each hundred packets, which
    no kernel does by itself.
    """
    ahead_loss: str = "0%"
    """Random loss on each sender's own link, ahead of the bottleneck's queue."""
    ahead_netem: str | None = None
    """Any other impairment on each sender's own link, in netem's words, instead of `ahead_loss`."""
    up_rate: str | None = None
    """The rate of the return path; without one it is unlimited."""
    up_queue: str | None = None
    """The queue discipline of the return path."""
    up_delay: str = "0s"
    """The propagation delay of the return path."""
    up_netem: str | None = None
    """An impairment on the return path, in netem's words."""
    rtt: str | None = None
    """The round-trip time of the empty path, all of it on the return path, instead of `delay` and
    `up_delay`.
    """
    senders: Senders | None = None
    """The number of senders, or a table for each one's access link. Default: one sender per flow."""
    receivers: int = 1
    """The number of receivers, up to 100000. Several are placed after a second router `w`, beyond the
    bottleneck.
    """
    receiver_on_line: bool = False
    """Attaches the receiver's own interface to the return path, so that TCP small queues keep its data out
    of `up_queue`. By default a receiver that sends data into a return path with a rate, a medium or a queue
    is placed after the router `w`, as a PC behind its modem. Not with several receivers.
    """

    READERS: ClassVar[Mapping[str, Reader]] = {
        "senders": Entries(One(Access)),
    }


NodeKind: TypeAlias = Literal["host", "router"]
"""The kind of a node."""


@part
class Node(Part):
    """A host or a router of a graph."""

    name: str
    """The node's name."""
    kind: NodeKind
    """Host or router."""


@part
class Link(Part):
    """A link of a graph: one direction, or both alike."""

    from_: str = field(metadata={"key": "from"})
    """The node that it leaves."""
    to: str
    """The node that it leads to."""
    name: str = ""
    """The link's name. Default: its ends, `a-r`; the second direction of a named link ends in `-back`."""
    both_ways: bool = True
    """Adds a second link like this one in the other direction."""
    rate: str | None = None
    """The rate of the link; without a rate and a medium it is a plain veth, which takes no time."""
    medium: str | None = None
    """The medium of the link instead of a rate: an entry of `media`."""
    link: TransmitterKind = "htb"
    """The enforcement of the rate."""
    queue: str | None = None
    """The queue discipline in front of the link, in tc's words. Default: `pfifo limit 1000` where there is a
    rate or a medium.
    """
    overhead: str = "0b"
    """Bytes charged per frame in addition to Ethernet's header."""
    atm: bool = False
    """Charges whole ATM cells (`link = "htb"` only)."""
    delay: str = "0s"
    """The propagation delay."""
    netem: str | None = None
    """An impairment after the link, in netem's words."""


AdslEncapsulation: TypeAlias = Literal["pppoe_llc", "pppoe_vc_mux", "pppoa_vc_mux"]
"""Encapsulation of an IP packet on an ADSL line, bytes with AAL5's trailer."""


WifiSlot: TypeAlias = Literal["short", "long"]
"""802.11g's slot time."""


WifiProtection: TypeAlias = Literal["off", "short_preamble", "long_preamble"]
"""CTS-to-self in front of 802.11g frames."""


WifiBand: TypeAlias = Literal["2.4ghz", "5ghz"]
"""802.11n's band."""


ModemProtocol: TypeAlias = Literal["async", "mnp4", "mnp5", "v42", "v42bis"]
"""Protocol of a pair of modems between its serial ports."""


@part
class Adsl(Part):
    """ADSL over ATM, one direction: whole cells at the synchronisation rate."""

    kind: Literal["adsl"] = "adsl"
    """Selects this medium in an experiment."""
    rate: str
    """The synchronisation rate, which counts the bits of cells."""
    encapsulation: AdslEncapsulation | None = None
    """The encapsulation of a packet, `pppoe_llc` by default."""
    interleaving: str | None = None
    """The end-to-end delay of interleaving, 12 ms by default."""


@part
class WifiG(Part):
    """802.11g, frame by frame."""

    kind: Literal["wifi_g"] = "wifi_g"
    """Selects this medium in an experiment."""
    rate: str
    """The PHY rate: 6, 9, 12, 18, 24, 36, 48 or 54 Mbit/s."""
    slot: WifiSlot | None = None
    """The slot time, `short` by default."""
    protection: WifiProtection | None = None
    """CTS-to-self for the sake of 802.11b stations, `off` by default."""
    frame_error: str | None = None
    """The probability that a frame arrives damaged, 0 by default."""
    ring: int | None = None
    """Frames in each station's driver, 1 by default."""


@part
class WifiN(Part):
    """802.11n with aggregation: what waits in the driver goes out as one aggregate."""

    kind: Literal["wifi_n"] = "wifi_n"
    """Selects this medium in an experiment."""
    mcs: int
    """The modulation and coding scheme, 0 to 15."""
    width_mhz: int | None = None
    """The channel's width in MHz, 20 (the default) or 40."""
    short_guard: bool | None = None
    """Uses a guard interval of 400 instead of 800 ns."""
    band: WifiBand | None = None
    """The band, `5ghz` by default."""
    aggregate: int | None = None
    """Frames in an aggregate, up to 64; 32 by default."""
    aggregate_bytes: str | None = None
    """Bytes in an aggregate, up to 65535."""
    air_time: str | None = None
    """The longest air time of an aggregate, 4 ms by default."""
    frame_error: str | None = None
    """The probability that a subframe arrives damaged, 0 by default."""
    ring: int | None = None
    """Frames in each station's driver, 64 by default."""


@part
class HomeplugAv(Part):
    """HomePlug AV powerline."""

    kind: Literal["homeplug_av"] = "homeplug_av"
    """Selects this medium in an experiment."""
    phy: str
    """The raw rate as adapters report it, up to 200 Mbit/s."""
    efficiency: float | None = None
    """The share of the information rate that tone maps and repeated blocks leave, 1 by default."""
    burst: str | None = None
    """The longest payload of a burst, 2.05 ms by default."""
    beacon: str | None = None
    """The beacon region of each beacon period, 1.5 ms by default."""
    beacon_period: str | None = None
    """Two cycles of the mains, 40 ms by default."""
    ring: int | None = None
    """Frames in each adapter, 64 by default."""


@part
class Modem(Part):
    """A pair of telephone modems, one direction: PPP over a serial port, error control, compression."""

    kind: Literal["modem"] = "modem"
    """Selects this medium in an experiment."""
    rate: str
    """The rate of the line: V.34's 2400 to 33600 bit/s in steps of 2400."""
    protocol: ModemProtocol | None = None
    """Error control and compression, `v42` by default."""
    block: str | None = None
    """The size of an error-control block, `128b` by default."""
    compression_ratio: float | None = None
    """The factor by which compression shrinks the data; 1, the default, is incompressible."""
    van_jacobson: bool | None = None
    """Compresses headers (RFC 1144)."""
    dte: str | None = None
    """The rate of the serial ports at both ends, 115200 bit/s by default."""
    buffer: str | None = None
    """The sending modem's buffer, `2kb` by default; when it is full, packets wait in the queue."""
    processing: str | None = None
    """The processing delay of both modems together, 30 ms by default."""


@part
class EthernetHub(Part):
    """Half-duplex Ethernet at 100 Mbit/s: stations on a hub (CSMA/CD)."""

    kind: Literal["ethernet_hub"] = "ethernet_hub"
    """Selects this medium in an experiment."""
    background_stations: int | None = None
    """Stations that talk among themselves, none by default."""
    background_load: float | None = None
    """The offered load of these stations together, as a share of the 100 Mbit/s; above 1 they never pause."""
    full_duplex: str | None = None
    """The node that sends without listening: a duplex mismatch."""
    ring: int | None = None
    """Frames in each station's interface, 16 by default."""


@part
class Trace(Part):
    """A recorded link, one direction, in mahimahi's format."""

    kind: Literal["trace"] = "trace"
    """Selects this medium in an experiment."""
    file: str
    """The file: times in milliseconds, one a line, at which 1500 bytes may leave, over and over. A relative
    path starts at the experiment's file.
    """


@part
class Tunnel(Part):
    """IP over TCP: two links, one each way, carried by a flow. Nothing is taken from a link's queue while
    the flow's send buffer is full.
    """

    kind: Literal["tunnel"] = "tunnel"
    """Selects this medium in an experiment."""
    flow: str
    """The label of the flow whose application is the tunnel."""
    near: str
    """The node whose packets that flow's sender takes."""


Medium: TypeAlias = Adsl | WifiG | WifiN | HomeplugAv | Modem | EthernetHub | Trace | Tunnel
"""The medium of a link that is not a plain wire. Propagation delay is added. On `wifi_g`, `wifi_n`,
`homeplug_av` and `ethernet_hub` all links that name the medium contend for it, and links that leave the
same node are one station. `adsl`, `modem` and `trace` are one direction of a line, and each link that
names one has its own line. In front of each station is the link's queue, then the driver's ring.
"""
MEDIUMS: Mapping[str, type[Part]] = {
    "adsl": Adsl,
    "wifi_g": WifiG,
    "wifi_n": WifiN,
    "homeplug_av": HomeplugAv,
    "modem": Modem,
    "ethernet_hub": EthernetHub,
    "trace": Trace,
    "tunnel": Tunnel,
}
"""Kind → class."""


@part
class Route(Part):
    """A static route."""

    node: str
    """At this node ..."""
    destination: str
    """... packets for this host ..."""
    link: str
    """... take this link."""


StackProfile: TypeAlias = Literal[
    "linux-6",
    "linux-5.15-l4s",
    "linux-6.12",
    "linux-7",
    "linux-4.15",
    "linux-2.2",
    "linux-2.6.27",
    "linux-2.6.38",
    "freebsd-9",
]
"""A kernel's TCP: [stack profiles](profiles.md)."""


GsoMode: TypeAlias = Literal["off", "auto", "whole"]
"""Generic segmentation offload in the socket layer."""


@part
class History(Part):
    """A host's cached metrics of connections before the run (Linux 2.6). Zero means no entry."""

    ssthresh: int = 0
    """The initial slow start threshold in packets."""
    reordering: int = 0
    """The learnt reordering in packets."""
    rtt: str = "0s"
    """The smoothed round-trip time."""
    deviation: str = "0s"
    """The deviation of the round-trip time."""


@part
class Cpu(Part):
    """A host's processing time per packet, up to 1 s. The processor handles one packet after the other;
    packets that arrive meanwhile wait, and so do those that a packet triggers.
    """

    shared: str | None = None
    """The processor's name; hosts with the same name share one processor."""
    receive: str = "0s"
    """The time for a received packet that carries data."""
    ack: str = "0s"
    """The time for a received segment without data."""
    send: str = "0s"
    """The time for a sent packet."""


@part
class HostInterface(Part):
    """A host's network interface."""

    rate: str | None = None
    """The line rate at which frames leave the host: a burst then has its frames one after the other. Only on
    links without a rate of their own.
    """
    queue: str | None = None
    """The queue discipline in front of it, in tc's words. `fq` paces every TCP connection of the host. Only
    on links without a queue of their own.
    """
    interrupts: str | None = None
    """The least time from one receive interrupt to the next; a packet that arrives earlier waits (`ethtool
    -C`, `rx-usecs`). Only the simulator models this.
    """
    gro: bool | None = None
    """Generic receive offload: consecutive segments of a connection that one interrupt finds become one
    packet, with one ACK. Needs `interrupts`.
    """


@part
class HostSettings(Part):
    """Settings of a host."""

    preset: str | None = None
    """A kind of host by name, whose settings those below override: `plain`, `veth`, `card`, `server` or
    `paced` ([hosts by name](paths.md#hosts)).
    """
    profile: StackProfile | None = None
    """The stack profile, whose default is `linux-6`."""
    sysctl: dict[str, str | int] = field(default_factory=dict)
    """Sysctls by the kernel's names; an unknown one is an error."""
    gso: GsoMode | None = None
    """The bursts of several segments that TCP builds: `auto` as Linux does where an interface takes them,
    `off` none; with `whole` a burst stays one packet all the way, as where TSO and GRO are on at every
    interface. A queue then counts a burst as one packet and by all its bytes, and drops it whole. Not over
    media and tbf, which carry single frames.
    """
    mtu: str | None = None
    """The MTU of the host's interfaces, 1500 bytes by default."""
    tick_hz: int | None = None
    """The kernel's timer ticks per second. The default is the profile's: 250 for `linux-6`, 1000 for
    `freebsd-9`.
    """
    history: History | None = None
    """The metrics that the host has cached from earlier connections (Linux 2.6)."""
    cpu: Cpu | None = None
    """The host's processing time per packet. Only the simulator models this."""
    interface: HostInterface | None = None
    """The host's network interface. Default: packets leave and arrive at once."""

    READERS: ClassVar[Mapping[str, Reader]] = {
        "history": One(History),
        "cpu": One(Cpu),
        "interface": One(HostInterface),
    }


@part
class Poisson(Part):
    """At random and independently of each other, from the entry's `start` on."""

    kind: Literal["poisson"] = "poisson"
    """Selects this arrival in an experiment."""
    load: str | None = None
    """The share of the bottleneck's rate that their bytes amount to, on average. Either this or `every`."""
    every: str | None = None
    """The mean time between two of them."""
    until: str | None = None
    """The latest arrival. Default: after two thirds of the run, so that flows have time to finish."""


@part
class Listed(Part):
    """At these times after the entry's `start`."""

    kind: Literal["listed"] = "listed"
    """Selects this arrival in an experiment."""
    times: list[str]
    """The times, in any order."""


Arrival: TypeAlias = Poisson | Listed
"""The arrivals of an entry's flows. Each flow carries its `bytes`, or an amount drawn from its `sizes`,
and ends.
"""
ARRIVALS: Mapping[str, type[Part]] = {
    "poisson": Poisson,
    "listed": Listed,
}
"""Kind → class."""


Adaptation: TypeAlias = Literal["buffer", "throughput"]
"""Input of a video player's bit rate adaptation."""


RtpEcn: TypeAlias = Literal["none", "classic", "l4s"]
"""ECN of a video over RTP."""


@part
class Bulk(Part):
    """Writes as fast as the socket accepts data."""

    kind: Literal["bulk"] = "bulk"
    """Selects this application in an experiment."""


@part
class OnOff(Part):
    """Writes and pauses in turn."""

    kind: Literal["on_off"] = "on_off"
    """Selects this application in an experiment."""
    on: str
    """The duration of a writing period."""
    off: str
    """The duration of a pause."""


@part
class RequestResponse(Part):
    """Sends a request, waits for the response, thinks, and sends the next request."""

    kind: Literal["request_response"] = "request_response"
    """Selects this application in an experiment."""
    request: str
    """The size of a request."""
    response: str
    """The size of a response."""
    think: str = "0s"
    """The time between a response and the next request."""


@part
class Video(Part):
    """Plays a video: requests one segment after the other, chooses the bit rate of each, and waits while its
    buffer is full. The flow's receiver sends the video.
    """

    kind: Literal["video"] = "video"
    """Selects this application in an experiment."""
    adaptation: Adaptation = "buffer"
    """The input of the bit rate adaptation."""
    ladder: list[str] = field(default_factory=list)
    """The bit rates to choose from, ascending. Default: the ladder that Netflix had until 2015, from 235 to
    5800 kbit/s.
    """
    segment: str = "4s"
    """The playing time of a segment."""
    buffer: str = "30s"
    """The capacity of the buffer, as playing time."""
    startup: str | None = None
    """The playing time to buffer before playback begins, and before it resumes after a stall. Default: one
    segment.
    """
    reservoir: str | None = None
    """With `buffer`: below this level the player asks for the lowest rate. Default: 3/8 of the buffer, as 90
    s are of BBA-0's 240 s.
    """
    cushion: str | None = None
    """With `buffer`: the span above the reservoir in which the rate grows to the highest. Default: up to
    9/10 of the buffer, as BBA-0's, or to the buffer less a segment where that is less.
    """
    safety: str = "90%"
    """With `throughput`: the share of the mean throughput that the rate may take."""
    request: str = "500b"
    """The size of a request."""


@part
class ConstantRate(Part):
    """Sends UDP datagrams at regular intervals; the flow has no `cc`."""

    kind: Literal["constant_rate"] = "constant_rate"
    """Selects this application in an experiment."""
    rate: str
    """The rate of the datagrams' payload."""
    datagram: str = "1470b"
    """The payload of a datagram."""


@part
class Rtp(Part):
    """A live video over RTP and UDP whose bit rate SCReAMv2 adapts to the path; the flow has no `cc`, or the
    word `scream` stands for it. Only on the engine `sim`.
    """

    kind: Literal["rtp"] = "rtp"
    """Selects this application in an experiment."""
    min: str = "150kbit"
    """The lowest target bit rate."""
    max: str = "5mbit"
    """The highest target bit rate."""
    fps: int = 30
    """The frames per second."""
    packet: str = "1000b"
    """The largest payload of a datagram, RTP's header included."""
    variation: str = "0%"
    """The share by which frames differ from their nominal size at most, uniformly."""
    ecn: RtpEcn = "none"
    """The ECN codepoint of its datagrams, and the reaction to marks."""


@part
class TunnelApplication(Part):
    """Carries the links of a medium of kind `tunnel`."""

    kind: Literal["tunnel"] = "tunnel"
    """Selects this application in an experiment."""
    header: str = "2b"
    """The header in front of each packet."""


@part
class ProgramApplication(Part):
    """Runs programs of your own: a server at the flow's sender, and at its receiver a command, from the
    flow's start until it ends. `cc` is the congestion control of both hosts' sockets that choose none. Only
    on the engines `vm` and `netns` ([programs as flows](../how-to/shell-experiments.md)).
    """

    kind: Literal["program"] = "program"
    """Selects this application in an experiment."""
    client: str
    """The command at the receiver. The sender's address is in `$DRAGSTRIP_SERVER`; with one flow of this
    kind its name is `server`.
    """
    server: str = ""
    """The server at the sender, which listens before the run begins. Default: none."""
    files: list[str] = field(default_factory=list)
    """Files and folders for a guest (`PATH` or `PATH:PLACE`), beside what the commands name."""
    folder: str = ""
    """The folder in which both start. Default: the experiment file's."""


Application: TypeAlias = Bulk | OnOff | RequestResponse | Video | ConstantRate | Rtp | TunnelApplication | ProgramApplication
"""The application at the flow's sender."""
APPLICATIONS: Mapping[str, type[Part]] = {
    "bulk": Bulk,
    "on_off": OnOff,
    "request_response": RequestResponse,
    "video": Video,
    "constant_rate": ConstantRate,
    "rtp": Rtp,
    "tunnel": TunnelApplication,
    "program": ProgramApplication,
}
"""Kind → class."""


@part
class Flow(Part):
    """A flow, or `count` identical ones."""

    cc: str | None = None
    """The sender's congestion control, in one word with options, count, round-trip time and start:
    `cubic:beta=0.8*4@20ms+5s`. Every flow but a UDP flow has one.
    """
    cc_options: dict[str, float] = field(default_factory=dict)
    """The congestion control's module parameters, by name."""
    receiver_cc: str | None = None
    """Congestion control of the receiver's socket. A listener grants ECN to a SYN of `dctcp` or `prague`
    only if its own algorithm needs ECN too, as when the server runs a stock kernel's cubic. Default: the
    sender's.
    """
    label: str = ""
    """The flow's name. Default: its `cc`, numbered where several flows are alike."""
    count: int = 1
    """The number of flows, up to 100000."""
    sender: str = ""
    """The host that sends. On a `path` the default is one after the other."""
    receiver: str = ""
    """The host that receives. On a `path` the default is one after the other."""
    reverse: bool = False
    """Reverses the flow: from the receivers' side to the senders'."""
    rtt: str | None = None
    """The round-trip time of this flow's empty path, instead of the path's own. Not with `senders`."""
    start: str = "0s"
    """The start time."""
    stagger: str = "0s"
    """The time between the starts of the `count` flows."""
    stop: str | None = None
    """The stop time. Default: the end of the run."""
    bytes: str | None = None
    """The amount to send. Default: unlimited."""
    arrivals: Arrival | None = None
    """The arrivals of further flows: the entry is then a source of flows, which its `count` hosts send in
    turn. They are numbered as identical flows are.
    """
    sizes: str | None = None
    """The size of each arriving flow: `web-search` (DCTCP, SIGCOMM 2010), one size, or a file next to the
    experiment with lines of a size in bytes and the share of flows up to that size.
    """
    send_buffer: str | None = None
    """The SO_SNDBUF that both ends request, as `iperf3 -w` does. Linux limits it to `net.core.wmem_max`,
    doubles it and stops tuning the buffer. Not on FreeBSD. Default: the kernel tunes it.
    """
    receive_buffer: str | None = None
    """The SO_RCVBUF that both ends request, limited to `net.core.rmem_max`. Default: the kernel tunes it."""
    dscp: str | None = None
    """The DSCP of all packets of the flow, those of both ends: a name (`EF`, `AF41`, `CS1`, `LE`) or a
    number from 0 to 63 as text. In the word of `cc`: `cubic:dscp=EF`. Default: best effort.
    """
    mark: int = 0
    """The firewall's mark of all packets of the flow, for filters of a class tree. In the word of `cc`:
    `cubic:mark=1`.
    """
    application: Application = field(default_factory=Bulk)
    """The application at the flow's sender."""

    READERS: ClassVar[Mapping[str, Reader]] = {
        "arrivals": Tagged(ARRIVALS),
        "application": Tagged(APPLICATIONS),
    }


@part
class Probe(Part):
    """Pings from one host to another node."""

    from_: str = field(metadata={"key": "from"})
    """The host that pings."""
    target: str
    """The host or router that answers."""
    label: str = ""
    """The probe's name. Default: `from-target`."""
    interval: str = "200ms"
    """The time between two pings."""
    size: str = "64b"
    """The size of ICMP's header and payload."""
    start: str = "0s"
    """The time of the first ping."""


@part
class Recorded(Part):
    """The recorded data."""

    interval: str = "100ms"
    """The interval of samples and queues."""
    every_ack: bool = False
    """Records a sample at every ACK."""
    rtts: bool = True
    """Records round-trip times packet by packet."""
    cc_state: bool = False
    """Records the congestion control's own variables with every sample."""
    captures: bool = False
    """Analyses captures at both ends of each TCP flow (engine `sim`)."""


State: TypeAlias = Literal["up", "down"]
"""The state of a link."""


@part
class Change(Part):
    """A change of a link during the run, or a file of changes. Changes at one instant happen in the order of
    the file, after everything else at that instant.
    """

    at: str | None = None
    """The time of the change; of a file, the offset of its times. Mandatory except for a file."""
    link: str | None = None
    """The link's name. Default: the bottleneck of the `path`."""
    rate: str | None = None
    """The link's new rate."""
    delay: str | None = None
    """The link's new propagation delay, one way."""
    rtt: str | None = None
    """The whole path's new round-trip time, set on the return path as `path.rtt` is."""
    loss: str | None = None
    """The new random loss after the link."""
    limit: str | int | None = None
    """The queue's new limit as that queue counts: a size such as `50kb`, or packets such as 100."""
    state: State | None = None
    """The new state of the link."""
    file: str | None = None
    """A trace of values (CSV) instead of settings. Its first line names columns: `at`, and any of `rate`,
    `delay`, `rtt`, `loss`, `limit` and `state`. An empty cell changes nothing; rows after the end of the run
    are ignored.
    """


@part
class Alternative(Part):
    """Several fields set together under one name."""

    name: str
    """The name, in tables and claims."""
    set: dict[str, Any]
    """Dotted path → value."""


Across: TypeAlias = Literal["min", "max", "sum"]
"""Statistic over several matches in one run."""


@part
class Claim(Part):
    """A published figure, with its measurement in our runs and the comparison. It is one of `value`,
    `range`, `order` and `asked`.
    """

    id: str
    """A short name that no other claim of the experiment has."""
    source: str
    """The section, figure, table or file, and the words quoted."""
    metric: str
    """The measure, such as `goodput_bps` or `rtt_ms_p50`."""
    where: dict[str, Any] = field(default_factory=dict)
    """The selected runs and flows: `cc`, `label`, `sender`, `receiver`, `flow`, `probe`, `target`, `link`,
    `alternative`, `repeat` or a varied path → a value, or a list of accepted values. `size_up_to` and
    `size_above` → a size such as `"10kb"`: only flows that transfer at most, or more than, so many bytes. Of
    several matches the median is taken. For probes, queues and runs, `cc` and the like select runs with such
    a flow; without `link` the first link with a queue is selected.
    """
    over: dict[str, Any] | None = None
    """A second selector, whose figure divides the first one's."""
    value: float | None = None
    """The published figure, in `unit`."""
    range: list[float] | None = None
    """The published range from low to high, in `unit`."""
    tolerance: str | float | None = None
    """A share of the value such as `"5%"`, or a number in `unit`. It widens a range at both ends; of an
    order, each figure must exceed the one before by this share. A `value` has one.
    """
    unit: str = "1"
    """The unit of the published figure: bit/s, kbit/s, Mbit/s, Gbit/s, s, ms, us, B, kB, KB, MB, packets,
    segments, 1 or %.
    """
    order: list[str] | None = None
    """Values of `by`, from the smallest figure to the largest."""
    by: str = "cc"
    """The key that `order` lists."""
    asked: str | None = None
    """The question that the publication left open. The figure is ours alone and not graded."""
    across: Across | None = None
    """The statistic over several matches in one run; the median over the runs follows. Default: the median
    of all.
    """
    after: str = "0s"
    """The time to leave out at each flow's beginning."""
    until: str | None = None
    """The end of what counts, from the flow's start. Counts such as `retransmits`, and measures of queues,
    probes and runs, take none.
    """
    state: str | None = None
    """Only samples in this state of the algorithm count."""
    not_testable: str | None = None
    """The reason why the claim cannot be tested here; its figure is shown nevertheless."""


@part
class Ablation(Part):
    """Claims measured again with a changed setting: a part left out, a parameter halved or doubled. They are
    never counted: a claim is graded once, on the publication's own set-up.
    """

    claims: list[str]
    """The claims' ids; `*` matches any text."""
    vary: dict[str, Any] = field(default_factory=dict)
    """Dotted path → list of values, which override what the experiment sets there."""
    metric: str | None = None
    """Another measure of the same, which the publication may really have taken."""
    about: str
    """The ablation's purpose."""


@part
class FlowTable(Part):
    """A table of flows as the publication prints it, for comparison with the flows of our runs, each from
    the fastest to the slowest.
    """

    source: str
    """The table's place in the publication."""
    where: dict[str, Any] = field(default_factory=dict)
    """The selected runs and flows, as in a claim."""
    published: list[float]
    """The published throughput in Mbit/s, one entry per flow."""


@part
class ExperimentFields(Part):
    """A path, traffic, what varies, how often it is repeated, and the published claims that it is graded by.
    """

    name: str = ""
    """The name in tables and folders. Default: the file's folder and name."""
    title: str = ""
    """A title for people."""
    source: str = ""
    """The publication that the experiment reproduces."""
    description: str = ""
    """The purpose of the experiment, for readers."""
    duration: str
    """The duration of each run."""
    seed: int = 1
    """The seed of the first repeat, below 2^53; each further repeat counts up by one. All alternatives of a
    repeat share its seed.
    """
    repeat: int = 1
    """The number of repeats, up to 100000: all alternatives in turn, then all again. Where nothing is
    random, every run is made once, and a note says so.
    """
    cold_arp: bool = False
    """Starts with empty neighbour caches: the first packet over a link then waits for ARP, one round trip of
    that link. A path that was pinged before has warm caches.
    """
    idle: str = "0s"
    """The pause between runs where the path is real. The simulator starts every run on an empty path."""
    engine: str = "sim"
    """The engine, `sim`, `vm`, `netns` or `ssh`; or two that are compared with each other, such as `sim,vm`.
    In a file it is a suggestion: without `--engine` the experiment runs on the simulator, with a note.
    """
    engine_options: dict[str, TextOrTexts] = field(default_factory=dict)
    """Options of the engine, by name. `kernel` (vm) is one of `dragstrip kernel list`; `strict = "yes"`
    (netns, ssh) fails a run that the machine limited.
    """
    load: list[str] = field(default_factory=list)
    """C files next to the experiment with congestion controls for a kernel, which flows may name."""
    path: Path | str | None = None
    """The dumbbell that the flows share, instead of `nodes` and `links`."""
    nodes: list[Node] = field(default_factory=list)
    """Hosts and routers of any other graph."""
    links: list[Link] = field(default_factory=list)
    """Links of any other graph."""
    media: dict[str, Medium] = field(default_factory=dict)
    """Name → the medium of the links that name it."""
    routes: list[Route] = field(default_factory=list)
    """Routes of a graph that differ from the shortest path."""
    programs: dict[str, str] = field(default_factory=dict)
    """Name → an algorithm as a text, or the file next to the experiment that contains it; flows name it as
    their `cc`. Only the simulator runs programs.
    """
    hosts: dict[str, HostSettings] = field(default_factory=dict)
    """Name or pattern (`*`, `s?`) → settings of those hosts; later entries override earlier ones."""
    flows: list[Flow]
    """The flows; at least one."""
    probes: list[Probe] = field(default_factory=list)
    """Pings during the run."""
    record: Recorded = field(default_factory=Recorded)
    """The recorded data."""
    changes: list[Change] = field(default_factory=list)
    """Changes of links during the run."""
    vary: dict[str, Any] = field(default_factory=dict)
    """Dotted path → list of values; several paths multiply. A path through a list without an index means
    each of its entries (`flows.cc`), one with an index means that entry (`flows.0.cc`); a part with dots is
    quoted.
    """
    alternatives: list[Alternative] = field(default_factory=list)
    """Several fields set together under a name; alternatives multiply with `vary`."""
    claims: list[Claim] = field(default_factory=list)
    """Published figures, and how ours are measured and compared with them."""
    ablations: list[Ablation] = field(default_factory=list)
    """Claims measured again with a changed setting."""
    flow_tables: list[FlowTable] = field(default_factory=list)
    """Published tables of flows, for comparison with ours."""

    READERS: ClassVar[Mapping[str, Reader]] = {
        "path": One(Path),
        "nodes": Entries(One(Node)),
        "links": Entries(One(Link)),
        "media": Named(Tagged(MEDIUMS)),
        "routes": Entries(One(Route)),
        "hosts": Named(One(HostSettings)),
        "flows": Entries(One(Flow)),
        "probes": Entries(One(Probe)),
        "record": One(Recorded),
        "changes": Entries(One(Change)),
        "alternatives": Entries(One(Alternative)),
        "claims": Entries(One(Claim)),
        "ablations": Entries(One(Ablation)),
        "flow_tables": Entries(One(FlowTable)),
    }

__all__ = [
    "Ablation",
    "Access",
    "Across",
    "Adaptation",
    "Adsl",
    "AdslEncapsulation",
    "Alternative",
    "Application",
    "Arrival",
    "Bulk",
    "Change",
    "Claim",
    "ConstantRate",
    "Cpu",
    "EthernetHub",
    "ExperimentFields",
    "Flow",
    "FlowTable",
    "GsoMode",
    "History",
    "HomeplugAv",
    "HostInterface",
    "HostSettings",
    "Link",
    "Listed",
    "Medium",
    "Modem",
    "ModemProtocol",
    "Node",
    "NodeKind",
    "OnOff",
    "Path",
    "Poisson",
    "Probe",
    "ProgramApplication",
    "Recorded",
    "RequestResponse",
    "Route",
    "Rtp",
    "RtpEcn",
    "Senders",
    "StackProfile",
    "State",
    "TextOrTexts",
    "Trace",
    "TransmitterKind",
    "Tunnel",
    "TunnelApplication",
    "Video",
    "WifiBand",
    "WifiG",
    "WifiN",
    "WifiProtection",
    "WifiSlot",
]
