"""The scenario: one concrete run, as the engines take it. Generated: `cargo xtask generate`.

Do not edit: the types are defined in crates/scenario/src/types.rs. Quantities are in base units, named
by the suffix (`_ns`, `_bps`, `_bytes`); what they must satisfy beyond their type is checked by the core.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictStr

UInt64 = Annotated[int, Field(strict=True, ge=0, lt=2**64)]
UInt32 = Annotated[int, Field(strict=True, ge=0, lt=2**32)]
Int32 = Annotated[int, Field(strict=True, ge=-(2**31), lt=2**31)]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]


class Model(BaseModel):
    """What all parts have in common: no unknown fields, no changes, both names of a renamed field."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, populate_by_name=True, use_attribute_docstrings=True
    )

    def to_json(self) -> str:
        """The JSON that the engines read, with every default written out."""
        return self.model_dump_json(by_alias=True)


StackProfile: TypeAlias = Literal["linux-6", "linux-4.15", "linux-2.2", "linux-2.6.27", "linux-2.6.38", "freebsd-9"]
"""A kernel's TCP: [stack profiles](profiles.md)."""


GsoMode: TypeAlias = Literal["off", "auto", "whole"]
"""Generic segmentation offload in the socket layer."""


class HistorySpec(Model):
    """What a host remembers of connections before the run (Linux 2.6's cache of metrics, for every destination alike); 0: nothing. A
flow that begins with it leaves its own to the next one, as it does without. Linux 6.1 takes no threshold over."""

    ssthresh_packets: UInt32 = 0
    """Where slow start ends at first."""
    reordering_packets: UInt32 = 0
    """Reordering learnt."""
    rtt_ns: UInt64 = 0
    """Smoothed RTT; it counts where it is longer than the handshake's."""
    rtt_deviation_ns: UInt64 = 0
    """Its mean deviation."""


class CpuSpec(Model):
    """A processor that takes one packet after the other, received and sent ones alike, as a kernel's softirq does: what
comes meanwhile waits. Only in the simulator."""

    shared: StrictStr | None = None
    """Hosts that give the same name share one processor; none: the host has its own."""
    receive_ns: UInt64 = 0
    """For a packet received that carries data: a segment, a datagram, a ping. Up to 1 s, as the others."""
    ack_ns: UInt64 = 0
    """For a segment received that carries none: an ACK."""
    send_ns: UInt64 = 0
    """For a packet sent, of any kind; of a burst each segment."""


class HostNode(Model):
    """Sends and receives."""

    kind: Literal["host"] = "host"
    name: StrictStr
    """Unique among the nodes."""
    profile: StackProfile = "linux-6"
    """Which kernel's TCP."""
    sysctl: dict[StrictStr, StrictStr] = {}
    """Kernel settings by their sysctl names, e.g. `net.ipv4.tcp_sack` → `0`. An unknown name is an error."""
    gso: GsoMode = "off"
    """Whether TCP builds bursts of several segments."""
    mtu_bytes: UInt32 = 1500
    """IP packet size limit; a full TCP segment with timestamps carries 52 bytes less."""
    tick_hz: UInt32 | None = None
    """Kernel ticks per second: 100, 250, 300 or 1000; none: as the [profile](profiles.md) has it."""
    history: HistorySpec | None = None
    """What earlier connections to any host have left behind; none: nothing."""
    cpu: CpuSpec | None = None
    """Time that its processor takes for packets; none: no time. Left out where there is none: results are
    kept by a scenario's text.
    """


class RouterNode(Model):
    """Forwards."""

    kind: Literal["router"] = "router"
    name: StrictStr
    """Unique among the nodes."""


NodeSpec: TypeAlias = Annotated[
    HostNode | RouterNode,
    Field(discriminator="kind"),
]
"""A host or a router."""


Diffserv: TypeAlias = Literal["besteffort", "precedence", "diffserv3", "diffserv4", "diffserv8"]
"""Mapping of DSCPs to tins."""


Isolation: TypeAlias = Literal["flowblind", "srchost", "dsthost", "hosts", "flows", "dual-srchost", "dual-dsthost", "triple-isolate"]
"""Whom a queue of its own is for, and between whom the rate is shared."""


AckFilter: TypeAlias = Literal["no-ack-filter", "ack-filter", "ack-filter-aggressive"]
"""Acknowledgements in the queue that a newer one removes."""


LinkLayer: TypeAlias = Literal["noatm", "atm", "ptm"]
"""Framing of packets on the line after the queue."""


DelayDistribution: TypeAlias = Literal["uniform", "normal", "pareto", "paretonormal"]
"""Shape of netem's delay."""


class NoneLoss(Model):
    """No loss."""

    model: Literal["none"] = "none"


class RandomLoss(Model):
    """Each packet with this probability."""

    model: Literal["random"] = "random"
    probability: Number
    """0 to 1."""
    correlation: Number = 0.0
    """Correlation of successive draws."""


class GemodelLoss(Model):
    """Gilbert–Elliott."""

    model: Literal["gemodel"] = "gemodel"
    p: Number
    """Good to bad."""
    r: Number
    """Bad to good."""
    one_minus_h: Number
    """Loss in the bad state (tc's 1-h)."""
    one_minus_k: Number
    """Loss in the good state (tc's 1-k)."""


class EveryLoss(Model):
    """Every so many-th packet, counted from the first. A kernel's netem has no such model: only the simulator runs it."""

    model: Literal["every"] = "every"
    packets: UInt32
    """Number of packets of which the last is lost."""


LossModel: TypeAlias = Annotated[
    NoneLoss | RandomLoss | GemodelLoss | EveryLoss,
    Field(discriminator="model"),
]
"""netem's loss models."""


class NoqueueQdisc(Model):
    """Unlimited FIFO."""

    kind: Literal["noqueue"] = "noqueue"


class BfifoQdisc(Model):
    """FIFO limited in bytes."""

    kind: Literal["bfifo"] = "bfifo"
    limit_bytes: UInt64
    """Bytes that may wait."""


class PfifoQdisc(Model):
    """FIFO limited in packets."""

    kind: Literal["pfifo"] = "pfifo"
    limit_packets: UInt32
    """Packets that may wait."""


class TbfQdisc(Model):
    """Token bucket filter."""

    kind: Literal["tbf"] = "tbf"
    rate_bps: UInt64
    """Token rate."""
    burst_bytes: UInt64
    """Bucket."""
    limit_bytes: UInt64
    """Bytes that may wait."""
    peakrate_bps: UInt64 | None = None
    """Second bucket's rate."""
    mtu_bytes: UInt64 | None = None
    """Second bucket's size."""


class HtbQdisc(Model):
    """Hierarchical token bucket with one class."""

    kind: Literal["htb"] = "htb"
    rate_bps: UInt64
    """Token rate."""
    ceil_bps: UInt64 | None = None
    """Ceiling; the rate when absent."""
    burst_bytes: UInt64
    """Bucket."""
    cburst_bytes: UInt64
    """Ceiling's bucket."""
    overhead_bytes: Int32 = 0
    """Added to every packet's charge; may be negative."""
    mpu_bytes: UInt32 = 0
    """Least charge per packet."""
    linklayer_atm: StrictBool = False
    """Charge in whole ATM cells (48 bytes of payload cost 53)."""
    leaf: QdiscSpec
    """Queue discipline of the class."""


class PoliceQdisc(Model):
    """A policer, which drops what comes faster than its rate, and the queue behind it."""

    kind: Literal["police"] = "police"
    rate_bps: UInt64
    """Token rate."""
    burst_bytes: UInt64
    """Bucket."""
    mtu_bytes: UInt32
    """The longest frame that may pass; with a peak rate also the second bucket."""
    peakrate_bps: UInt64 | None = None
    """Second bucket's rate."""
    leaf: QdiscSpec
    """Queue discipline behind it."""


class PrioQdisc(Model):
    """Strict priority between bands that the TOS bits choose."""

    kind: Literal["prio"] = "prio"
    bands: UInt32
    """Number of bands."""
    priomap: list[UInt32]
    """The band of each priority."""


class EtsQdisc(Model):
    """Enhanced transmission selection: strict bands, then shares between the others."""

    kind: Literal["ets"] = "ets"
    strict: UInt32
    """Number of bands that are served first, in their order."""
    quanta_bytes: list[UInt32]
    """Bytes that each band behind them may send in turn."""
    priomap: list[UInt32]
    """The band of each priority."""


class CodelQdisc(Model):
    """Controlled delay (RFC 8289)."""

    kind: Literal["codel"] = "codel"
    limit_packets: UInt32
    """Packets that may wait."""
    target_ns: UInt64
    """Acceptable standing delay."""
    interval_ns: UInt64
    """Sliding window."""
    ecn: StrictBool
    """Mark instead of drop."""
    ce_threshold_ns: UInt64 | None = None
    """Mark every ECN-capable packet that has waited longer."""


class FqQdisc(Model):
    """Fair queue: round robin between flows, and a rate for each."""

    kind: Literal["fq"] = "fq"
    limit_packets: UInt32
    """Packets that may wait."""
    flow_limit_packets: UInt32
    """Packets of one flow that may wait."""
    quantum_bytes: UInt32
    """Bytes a flow may send in turn."""
    initial_quantum_bytes: UInt32
    """Bytes a new flow may send before its first turn ends."""
    maxrate_bps: UInt64 | None = None
    """Highest rate of each flow; none: unlimited."""
    pacing: StrictBool
    """Enforcement of the highest rate."""
    orphan_mask: UInt32
    """Flows are told apart by so many values of a hash, less one; a power of two less one in the kernel's
    default.
    """
    refill_delay_ns: UInt64
    """Idle time after which a flow has a quantum again."""
    ce_threshold_ns: UInt64 | None = None
    """Mark packets that leave so long after they were due."""


class FqCodelQdisc(Model):
    """Flow queueing with CoDel (RFC 8290)."""

    kind: Literal["fq_codel"] = "fq_codel"
    limit_packets: UInt32
    """Packets that may wait."""
    memory_limit_bytes: UInt64
    """Bytes of memory that may be used."""
    flows: UInt32
    """Number of queues."""
    target_ns: UInt64
    """Acceptable standing delay."""
    interval_ns: UInt64
    """Sliding window."""
    quantum_bytes: UInt32
    """Bytes a queue may send in turn."""
    drop_batch_packets: UInt32
    """Most packets dropped at once on overflow."""
    ecn: StrictBool
    """Mark instead of drop."""
    ce_threshold_ns: UInt64 | None = None
    """Mark every ECN-capable packet that has waited longer."""


class SfqQdisc(Model):
    """Stochastic fairness queueing."""

    kind: Literal["sfq"] = "sfq"
    limit_packets: UInt32
    """Packets that may wait."""
    flows: UInt32
    """Number of queues."""
    divisor: UInt32
    """Hash buckets."""
    depth_packets: UInt32
    """Packets that may wait in one queue."""
    quantum_bytes: UInt32
    """Bytes a queue may send in turn."""
    perturb_ns: UInt64
    """Time between changes of the hash; 0: never."""


class RedQdisc(Model):
    """Random early detection."""

    kind: Literal["red"] = "red"
    limit_bytes: UInt32
    """Bytes that may wait."""
    min_bytes: UInt32
    """Average queue from which on packets are chosen."""
    max_bytes: UInt32
    """Average queue from which on every packet is."""
    avpkt_bytes: UInt32
    """Length of a packet for what tc computes."""
    burst_packets: UInt32
    """Packets that may come at once to an empty queue; more make the average slower."""
    probability: Number
    """Share of packets chosen where the average reaches the upper threshold."""
    bandwidth_bps: UInt64
    """Rate by which the average of an idle queue decays."""
    adaptive: StrictBool
    """Move the probability so that the average stays between the thresholds."""
    ecn: StrictBool
    """Mark instead of drop."""
    harddrop: StrictBool
    """Drop above the upper threshold even with `ecn`."""
    nodrop: StrictBool
    """With `ecn`: let in what cannot be marked."""


class ChokeQdisc(Model):
    """CHOKe: RED that compares an arriving packet with a random one of the queue, and drops both if they are of one flow."""

    kind: Literal["choke"] = "choke"
    limit_packets: UInt32
    """Packets that may wait."""
    min_packets: UInt32
    """Average queue up to which nothing is dropped, in packets."""
    max_packets: UInt32
    """Average queue above which every packet is chosen, in packets."""
    burst_packets: UInt32
    """Packets that may come at once to an empty queue; more make the average slower."""
    bandwidth_bps: UInt64
    """Rate by which the average of an idle queue decays."""
    ecn: StrictBool
    """Mark instead of drop, where no packet of the same flow was drawn."""


class SfbQdisc(Model):
    """Stochastic fair blue: packets are marked or dropped by probabilities that flows have through a hash, and flows that do not answer are
held to a rate."""

    kind: Literal["sfb"] = "sfb"
    limit_packets: UInt32
    """Packets that may wait."""
    max_packets: UInt32
    """Packets that may wait in a bin: of a flow, and of others that share the bin."""
    target_packets: UInt32
    """Packets in a bin from which on its probability grows."""
    increment: UInt32
    """By how much, in 65535ths, with each packet that finds it so."""
    decrement: UInt32
    """By how much it falls, in 65535ths, with each packet that finds the bin empty."""
    penalty_rate: UInt32
    """Packets per second of all flows together whose probability is one."""
    penalty_burst_packets: UInt32
    """Number of those packets that may arrive at once."""
    rehash_ns: UInt64
    """Time between changes of the hash; 0: never."""
    warmup_ns: UInt64
    """Time before a change in which the next bins learn who does not answer; 0: none."""


class PieQdisc(Model):
    """Proportional integral controller enhanced (RFC 8033)."""

    kind: Literal["pie"] = "pie"
    limit_packets: UInt32
    """Packets that may wait."""
    target_ns: UInt64
    """The delay at which the queue settles."""
    tupdate_ns: UInt64
    """Time between updates of the drop probability; the kernel rounds it up to its ticks, 15 ms to 20."""
    alpha: UInt32
    """Weight of the distance from the target, in 1/16 Hz."""
    beta: UInt32
    """Weight of the change of the delay, in 1/16 Hz."""
    ecn: StrictBool
    """Mark instead of drop, up to a probability of 10 %."""
    bytemode: StrictBool
    """Drop short packets less, in proportion to their length."""
    dq_rate_estimator: StrictBool
    """Compute the delay from the rate at which packets leave instead of stamping each."""


class FqPieQdisc(Model):
    """Flow queueing with PIE: fair queueing, and PIE in each queue."""

    kind: Literal["fq_pie"] = "fq_pie"
    limit_packets: UInt32
    """Packets that may wait in all queues together."""
    flows: UInt32
    """Number of queues."""
    quantum_bytes: UInt32
    """Bytes a queue may send in turn."""
    memory_limit_bytes: UInt64
    """The kernel counts memory and does not enforce this."""
    ecn_prob_percent: UInt32
    """Mark instead of drop up to this probability, in percent."""
    target_ns: UInt64
    """The delay at which the queue settles."""
    tupdate_ns: UInt64
    """Time between updates of the drop probability; the kernel rounds it up to its ticks, 15 ms to 20."""
    alpha: UInt32
    """Weight of the distance from the target, in 1/16 Hz."""
    beta: UInt32
    """Weight of the change of the delay, in 1/16 Hz."""
    ecn: StrictBool
    """Mark instead of drop."""
    bytemode: StrictBool
    """Drop short packets less, in proportion to their length."""
    dq_rate_estimator: StrictBool
    """Compute the delay from the rate at which packets leave instead of stamping each."""


class CakeQdisc(Model):
    """Common Applications Kept Enhanced: shaper, priorities by DSCP, fairness between hosts and flows, and an AQM in each queue."""

    kind: Literal["cake"] = "cake"
    bandwidth_bps: UInt64 | None = None
    """Rate of the shaper; none: it lets go what the line takes."""
    diffserv: Diffserv
    """Tins by DSCP."""
    isolation: Isolation
    """Whom a queue is for, and between whom the rate is shared."""
    rtt_ns: UInt64
    """Round-trip time of the paths behind it: the AQM's interval; its target is a twentieth."""
    memory_limit_bytes: UInt64 | None = None
    """Memory of waiting packets, with what the kernel adds to each; none: four round trips at the rate, from
    4 MiB to 15 MB.
    """
    ack_filter: AckFilter
    """Acknowledgements in the queue that a newer one removes."""
    raw: StrictBool
    """Count frames with Ethernet's header; false: IP packets, as tc does wherever it is told an overhead."""
    overhead_bytes: Int32
    """Added to every packet's charge; may be negative."""
    mpu_bytes: UInt32
    """Least charge per packet."""
    link_layer: LinkLayer
    """Framing of a packet on the line."""
    ingress: StrictBool
    """Dropped packets have used the line already, and are charged for."""
    wash: StrictBool
    """Clear the DSCP of what leaves."""


class Dualpi2Qdisc(Model):
    """Dual-queue coupled AQM for L4S (RFC 9332); in Linux since 6.17, so that no kernel of Debian 12 has it."""

    kind: Literal["dualpi2"] = "dualpi2"
    limit_packets: UInt32
    """Packets that may wait in both queues."""
    target_ns: UInt64
    """The delay at which the queues settle."""
    tupdate_ns: UInt64
    """Time between updates of the probability."""
    alpha_hz: Number
    """Weight of the distance from the target, Hz."""
    beta_hz: Number
    """Weight of the change of the delay, Hz."""
    coupling_factor: UInt32
    """Ratio of the low-latency queue's marking probability to the square root of the classic one's."""
    step_thresh_ns: UInt64
    """Longer waits in the low-latency queue are marked."""
    step_thresh_packets: UInt32 | None = None
    """In its place: more packets left behind in the low-latency queue."""
    min_qlen_step_packets: UInt32
    """Packets that the low-latency queue must hold for the threshold to apply to the next one."""
    drop_on_overload: StrictBool
    """Under overload drop from both queues instead of letting them grow."""
    classic_protection_percent: UInt32
    """Share of the classic queue while both are full, percent."""
    any_ect: StrictBool
    """Packets with ECT(0) belong to the low-latency queue too."""


class NetemQdisc(Model):
    """Network emulator: delay, jitter, loss, reordering, duplication."""

    kind: Literal["netem"] = "netem"
    limit_packets: UInt32
    """Packets that may be inside."""
    delay_ns: UInt64 = 0
    """Mean delay."""
    jitter_ns: UInt64 = 0
    """Half width (uniform) or standard deviation (normal ...) of the delay."""
    delay_correlation: Number = 0.0
    """Correlation of successive delays, 0 to 1."""
    distribution: DelayDistribution = "uniform"
    """Shape of the delay."""
    loss: LossModel = NoneLoss()
    """Loss."""
    duplicate: Number = 0.0
    """Probability of a copy, 0 to 1."""
    duplicate_correlation: Number = 0.0
    """Correlation of successive duplications."""
    corrupt: Number = 0.0
    """Probability of a corrupted packet (dropped by the receiver's checksum), 0 to 1."""
    reorder: Number = 0.0
    """Probability that a packet overtakes the delay, 0 to 1."""
    reorder_correlation: Number = 0.0
    """Correlation of successive reorderings."""
    gap: UInt32 = 0
    """Only every `gap`-th packet may overtake; 0: no reordering."""
    rate_bps: UInt64 | None = None
    """netem's own rate."""
    slot_ns: UInt64 | None = None
    """Packets wait for a slot: the least time to the next one."""
    slot_max_ns: UInt64 | None = None
    """The greatest time to the next slot; the time is drawn uniformly. None: as the least."""
    slot_packets: UInt32 | None = None
    """Packets of a slot. None: any number."""
    slot_bytes: UInt32 | None = None
    """Bytes of a slot, whose last packet may go beyond. None: any number."""
    ecn: StrictBool = False
    """Mark ECN-capable packets instead of losing them."""


class SkbprioQdisc(Model):
    """Strict priority by the TOS bits, where the newest packet of the lowest priority makes room."""

    kind: Literal["skbprio"] = "skbprio"
    limit_packets: UInt32
    """Packets that may wait."""


QdiscSpec: TypeAlias = Annotated[
    NoqueueQdisc
    | BfifoQdisc
    | PfifoQdisc
    | TbfQdisc
    | HtbQdisc
    | PoliceQdisc
    | PrioQdisc
    | EtsQdisc
    | CodelQdisc
    | FqQdisc
    | FqCodelQdisc
    | SfqQdisc
    | RedQdisc
    | ChokeQdisc
    | SfbQdisc
    | PieQdisc
    | FqPieQdisc
    | CakeQdisc
    | Dualpi2Qdisc
    | NetemQdisc
    | SkbprioQdisc,
    Field(discriminator="kind"),
]
"""A queue discipline, as tc(8) would configure it."""


class NetemSpec(Model):
    """Network emulator: delay, jitter, loss, reordering, duplication."""

    limit_packets: UInt32
    """Packets that may be inside."""
    delay_ns: UInt64 = 0
    """Mean delay."""
    jitter_ns: UInt64 = 0
    """Half width (uniform) or standard deviation (normal ...) of the delay."""
    delay_correlation: Number = 0.0
    """Correlation of successive delays, 0 to 1."""
    distribution: DelayDistribution = "uniform"
    """Shape of the delay."""
    loss: LossModel = NoneLoss()
    """Loss."""
    duplicate: Number = 0.0
    """Probability of a copy, 0 to 1."""
    duplicate_correlation: Number = 0.0
    """Correlation of successive duplications."""
    corrupt: Number = 0.0
    """Probability of a corrupted packet (dropped by the receiver's checksum), 0 to 1."""
    reorder: Number = 0.0
    """Probability that a packet overtakes the delay, 0 to 1."""
    reorder_correlation: Number = 0.0
    """Correlation of successive reorderings."""
    gap: UInt32 = 0
    """Only every `gap`-th packet may overtake; 0: no reordering."""
    rate_bps: UInt64 | None = None
    """netem's own rate."""
    slot_ns: UInt64 | None = None
    """Packets wait for a slot: the least time to the next one."""
    slot_max_ns: UInt64 | None = None
    """The greatest time to the next slot; the time is drawn uniformly. None: as the least."""
    slot_packets: UInt32 | None = None
    """Packets of a slot. None: any number."""
    slot_bytes: UInt32 | None = None
    """Bytes of a slot, whose last packet may go beyond. None: any number."""
    ecn: StrictBool = False
    """Mark ECN-capable packets instead of losing them."""


class LinkSpec(Model):
    """A directed link: a queue discipline, then a transmitter, then a delay."""

    name: StrictStr
    """Unique among the links."""
    from_: StrictStr = Field(alias="from")
    """Node it leaves."""
    to: StrictStr
    """Node it enters."""
    rate_bps: UInt64 | None = None
    """Store-and-forward transmitter behind the queue; none: as fast as the queue discipline lets go."""
    delay_ns: UInt64 = 0
    """Propagation delay, one way."""
    overhead_bytes: UInt32 = 0
    """Added to every frame at the transmitter (24: Ethernet's FCS, preamble and gap)."""
    medium: StrictStr | None = None
    """The medium behind the queue, instead of a wire with a rate and an overhead."""
    qdisc: QdiscSpec = NoqueueQdisc()
    """Queue discipline of the interface."""
    netem: NetemSpec | None = None
    """Impairments behind the transmitter, as a host of its own with this netem would make them."""


AdslEncapsulation: TypeAlias = Literal["pppoe_llc", "pppoe_vc_mux", "pppoa_vc_mux"]
"""What wraps an IP packet on an ADSL line, bytes with AAL5's trailer."""


WifiSlot: TypeAlias = Literal["short", "long"]
"""802.11g's slot time."""


WifiProtection: TypeAlias = Literal["off", "short_preamble", "long_preamble"]
"""CTS-to-self in front of 802.11g frames."""


WifiBand: TypeAlias = Literal["2.4ghz", "5ghz"]
"""802.11n's band."""


ModemProtocol: TypeAlias = Literal["async", "mnp4", "mnp5", "v42", "v42bis"]
"""What a pair of modems does between its serial ports."""


class AdslMedium(Model):
    """ADSL over ATM, one direction (ITU-T G.992.1, RFC 2684): whole cells, handed over with symbols of 250 µs."""

    kind: Literal["adsl"] = "adsl"
    rate_bps: UInt64
    """Synchronisation rate; counts the bits of cells."""
    encapsulation: AdslEncapsulation = "pppoe_llc"
    """What wraps a packet."""
    interleaving_ns: UInt64 = 12000000
    """What interleaving takes from end to end (G.992.1: 12 ms at depth 32, 20 ms at 64, about 2 ms on the
    fast path).
    """


class WifiGMedium(Model):
    """802.11g (IEEE 802.11-2007): frame by frame."""

    kind: Literal["wifi_g"] = "wifi_g"
    rate_bps: UInt64
    """PHY rate: 6, 9, 12, 18, 24, 36, 48 or 54 Mbit/s."""
    slot: WifiSlot = "short"
    """Slot time."""
    protection: WifiProtection = "off"
    """CTS-to-self for the sake of 802.11b stations."""
    frame_error: Number = 0.0
    """Probability that a frame arrives damaged, 0 to below 1."""
    ring_packets: UInt32 = 1
    """Frames in each station's driver, behind the queue discipline."""


class WifiNMedium(Model):
    """802.11n (IEEE 802.11n-2009): what waits in the driver goes out as one aggregate."""

    kind: Literal["wifi_n"] = "wifi_n"
    mcs: UInt32
    """Modulation and coding scheme, 0 to 15; 15 is 130 Mbit/s at 20 MHz."""
    width_mhz: UInt32 = 20
    """Channel width: 20 or 40."""
    short_guard: StrictBool = False
    """Guard interval of 400 instead of 800 ns."""
    band: WifiBand = "5ghz"
    """Band."""
    aggregate_packets: UInt32 = 32
    """Frames in an aggregate, at most 64."""
    aggregate_bytes: UInt32 = 65535
    """Bytes in an aggregate, at most 65535."""
    air_time_ns: UInt64 = 4000000
    """Air time of an aggregate (ath9k: 4 ms)."""
    frame_error: Number = 0.0
    """Probability that a subframe arrives damaged, 0 to below 1."""
    ring_packets: UInt32 = 64
    """Frames in each station's driver, behind the queue discipline."""


class HomeplugAvMedium(Model):
    """HomePlug AV (IEEE 1901-2010)."""

    kind: Literal["homeplug_av"] = "homeplug_av"
    phy_bps: UInt64
    """Raw rate, as adapters report it; at most 200 Mbit/s."""
    efficiency: Number = 1.0
    """Share of the information rate (16/21 of the raw rate) that tone maps and repeated blocks leave, above
    0 up to 1.
    """
    burst_ns: UInt64 = 2050000
    """Longest payload of a burst."""
    beacon_ns: UInt64 = 1500000
    """The beacon region at the beginning of each beacon period."""
    beacon_period_ns: UInt64 = 40000000
    """Two cycles of the mains: 40 ms at 50 Hz."""
    ring_packets: UInt32 = 64
    """Frames in each adapter, behind the queue discipline. With 802.3x PAUSE the queue discipline is the
    sender's own, without it the adapter's.
    """


class ModemMedium(Model):
    """A pair of telephone modems, one direction: PPP over a serial port, error control, compression."""

    kind: Literal["modem"] = "modem"
    rate_bps: UInt64
    """Rate of the line: V.34's 2400 to 33600 bit/s in steps of 2400."""
    protocol: ModemProtocol = "v42"
    """Error control and compression."""
    block_bytes: UInt32 = 128
    """Bytes in an error-control block (V.42: 128, MNP: 256)."""
    compression_ratio: Number = 1.0
    """How many times smaller compression makes the data: 1 is incompressible (MNP 5 makes such data 13 %
    longer), text about 3.
    """
    van_jacobson: StrictBool = False
    """TCP/IP header compression (RFC 1144)."""
    dte_bps: UInt64 = 115200
    """Rate of the serial ports at both ends."""
    buffer_bytes: UInt32 = 2048
    """Bytes that the sending modem holds; when it is full, packets wait in the queue."""
    processing_ns: UInt64 = 30000000
    """What both modems take for themselves."""


class EthernetHubMedium(Model):
    """Half-duplex Ethernet at 100 Mbit/s: stations on a hub, CSMA/CD (IEEE 802.3, clause 4)."""

    kind: Literal["ethernet_hub"] = "ethernet_hub"
    background_stations: UInt32 = 0
    """Stations that talk among themselves."""
    background_load: Number = 0.0
    """What they offer together, as a share of the 100 Mbit/s; above 1 they never pause."""
    full_duplex: StrictStr | None = None
    """The node whose interface believes that its link is full duplex: it sends without listening."""
    ring_packets: UInt32 = 16
    """Frames in each station's interface, behind the queue discipline."""


class TraceMedium(Model):
    """A recorded link, one direction: instants at which 1500 bytes may leave, over and over (mahimahi's format)."""

    kind: Literal["trace"] = "trace"
    opportunities_ms: list[UInt64]
    """Milliseconds since the beginning, never decreasing; the last one, above 0, is also where the trace
    begins again.
    """


class TunnelMedium(Model):
    """IP over TCP: what the link's queue lets go is written into a TCP connection, and leaves at its other end in order. Nothing is
taken from the queue while the socket's send buffer is full."""

    kind: Literal["tunnel"] = "tunnel"
    flow: StrictStr
    """The flow whose connection it is; its application is `tunnel`."""
    near: StrictStr
    """The node, among those the link joins, whose packets the flow's sender takes; the other one's take the
    return path.
    """


MediumSpec: TypeAlias = Annotated[
    AdslMedium
    | WifiGMedium
    | WifiNMedium
    | HomeplugAvMedium
    | ModemMedium
    | EthernetHubMedium
    | TraceMedium
    | TunnelMedium,
    Field(discriminator="kind"),
]
"""What carries packets where it is not a plain wire. The links' delay comes on top."""


class Route(Model):
    """A static route."""

    node: StrictStr
    """At this node ..."""
    destination: StrictStr
    """... packets for this host ..."""
    link: StrictStr
    """... take this link."""


class SocketBuffers(Model):
    """What an application asks for by setsockopt(2) before it connects or listens, as `iperf3 -w` does at both ends. A Linux doubles
it, after cutting it to `net.core.wmem_max` or `rmem_max`, and no longer tunes that buffer."""

    send_bytes: UInt32 | None = None
    """`SO_SNDBUF`; none: the kernel tunes the buffer (`tcp_wmem`)."""
    receive_bytes: UInt32 | None = None
    """`SO_RCVBUF`; none: the kernel tunes the buffer (`tcp_rmem`)."""


class TcpTransport(Model):
    """TCP."""

    protocol: Literal["tcp"] = "tcp"
    cc: StrictStr
    """Congestion control of the sender."""
    cc_options: dict[StrictStr, Number] = {}
    """Its module parameters."""
    receiver_cc: StrictStr | None = None
    """Congestion control of the receiver's socket; none: the sender's. A listener's decides whether ECN is
    granted to a SYN that is ECN-capable itself (`tcp_ecn_create_request`), as DCTCP's is.
    """
    socket: SocketBuffers = SocketBuffers()
    """Buffers that both ends ask for."""


class UdpTransport(Model):
    """UDP."""

    protocol: Literal["udp"] = "udp"


Transport: TypeAlias = Annotated[
    TcpTransport | UdpTransport,
    Field(discriminator="protocol"),
]
"""TCP or UDP."""


Adaptation: TypeAlias = Literal["buffer", "throughput"]
"""What a video player's bit rate follows."""


class BulkApplication(Model):
    """Writes as fast as the socket takes it, until stopped or until `bytes` are written."""

    kind: Literal["bulk"] = "bulk"
    bytes: UInt64 | None = None
    """All there is to send; endless when absent."""


class OnOffApplication(Model):
    """Bulk for `on_ns`, silent for `off_ns`, and again."""

    kind: Literal["on_off"] = "on_off"
    on_ns: UInt64
    """Sending time."""
    off_ns: UInt64
    """Silent time."""


class RequestResponseApplication(Model):
    """The sender asks, the receiver answers, the sender thinks, and again."""

    kind: Literal["request_response"] = "request_response"
    request_bytes: UInt64
    """Size of a request."""
    response_bytes: UInt64
    """Size of an answer."""
    think_ns: UInt64
    """Time between the end of an answer and the next request."""


class VideoApplication(Model):
    """A player fetches a video in segments over one connection, and chooses the bit rate of each; the receiver of the flow sends
them. When its buffer is full it waits until a segment fits."""

    kind: Literal["video"] = "video"
    ladder_bps: list[UInt64]
    """Bit rates to choose from, ascending."""
    segment_ns: UInt64
    """What a segment plays."""
    buffer_ns: UInt64
    """What the buffer holds, of time to play."""
    startup_ns: UInt64
    """What is buffered before playback begins, and before it goes on after a stall."""
    adaptation: Adaptation
    """What the bit rate follows."""
    reservoir_ns: UInt64
    """With `buffer`: below this level the lowest rate is chosen."""
    cushion_ns: UInt64
    """With `buffer`: the span above the reservoir in which the rate grows to the highest."""
    safety: Number
    """With `throughput`: the share of the mean throughput that a rate may take."""
    request_bytes: UInt64
    """Size of a request."""


class ConstantRateApplication(Model):
    """A datagram at regular times (UDP only)."""

    kind: Literal["constant_rate"] = "constant_rate"
    rate_bps: UInt64
    """Payload rate."""
    datagram_bytes: UInt32
    """Payload of a datagram."""


class TunnelApplication(Model):
    """Carries the packets of links over this flow's TCP connection, both ways: IP over TCP. A medium of kind `tunnel` names the
flow."""

    kind: Literal["tunnel"] = "tunnel"
    header_bytes: UInt32 = 2
    """In front of each packet in the stream (VTUN: two bytes of length)."""


Application: TypeAlias = Annotated[
    BulkApplication
    | OnOffApplication
    | RequestResponseApplication
    | VideoApplication
    | ConstantRateApplication
    | TunnelApplication,
    Field(discriminator="kind"),
]
"""What the sending application does."""


class FlowSpec(Model):
    """A flow from one host to another."""

    label: StrictStr
    """Unique; figures and plots use it."""
    sender: StrictStr
    """Host that sends (in request/response: the one that asks)."""
    receiver: StrictStr
    """Host that receives."""
    transport: Transport
    """TCP with which congestion control, or UDP."""
    application: Application
    """What the application does."""
    start_ns: UInt64 = 0
    """When the connection is opened."""
    stop_ns: UInt64 | None = None
    """When the application stops; the end of the run when absent."""
    source: UInt32 | None = None
    """The number of the source that it comes from, of a flow that arrives: the flows of a source differ in
    start and size, and are one to whoever compares.
    """


class ProbeSpec(Model):
    """A ping."""

    label: StrictStr
    """Unique; figures and plots use it."""
    from_: StrictStr = Field(alias="from")
    """Host that asks."""
    target: StrictStr
    """Host or router that answers."""
    interval_ns: UInt64
    """Time between requests."""
    size_bytes: UInt32 = 64
    """ICMP payload and header (64: what ping prints for its default)."""
    start_ns: UInt64 = 0
    """First request."""


class Record(Model):
    """What to record."""

    interval_ns: UInt64 = 100000000
    """Spacing of `samples`, `received` and `queues`."""
    every_ack: StrictBool = False
    """`samples` has a row for every ACK instead."""
    rtts: StrictBool = True
    """Write `rtts`: every RTT sample the sender takes."""
    cc_state: StrictBool = False
    """Write `cc_state`: the congestion control's own variables with every row of `samples`."""
    captures: StrictBool = False
    """Write `spp` and `tcpstat`: what captures at both ends of each TCP flow say. Left out where it is off:
    results are kept by a scenario's text. Only in the simulator.
    """


class ChangeSpec(Model):
    """A link gets other settings at one instant, as `tc ... change` and `ip link set` give them to a live device. What is in service or
on its way goes on as before; what waits stays, but for what the discipline itself drops above a lower limit."""

    at_ns: UInt64
    """When. Changes of one instant come after everything else that happens then, in the order of this list.
    """
    link: StrictStr
    """The link."""
    rate_bps: UInt64 | None = None
    """Rate of its wire, htb, tbf or cake. The frame in service ends at the old rate: htb's debt stays the
    time that it was (and its ceiling becomes the rate, `htb_change_class`), and so does cake's clock
    (`cake_change`), while the bucket of a tbf is full again (`tbf_change`).
    """
    delay_ns: UInt64 | None = None
    """Propagation delay, one way. Packets on their way arrive when they would have; later ones may overtake
    them, as in netem.
    """
    loss: Number | None = None
    """Probability with which netem loses a packet behind the line, each by itself; it takes the place of
    another model of loss.
    """
    limit_bytes: UInt64 | None = None
    """Limit of a queue that counts bytes; the memory of a cake."""
    limit_packets: UInt32 | None = None
    """Limit of a queue that counts packets."""
    up: StrictBool | None = None
    """False: down, as by `ip link set down`: what waits is dropped, and so is what comes, until the link is
    up again; its queue then begins afresh (`dev_deactivate_many`, `noop_qdisc`). What has left the queue
    arrives.
    """


class Scenario(Model):
    """One concrete run: hosts, links, flows, probes, duration and seed."""

    name: StrictStr
    """Name for people; has no influence on the run."""
    seed: UInt64 = 0
    """Every random element derives its own stream from this and its name."""
    duration_ns: UInt64
    """How long the run lasts."""
    nodes: list[NodeSpec]
    """Hosts and routers."""
    links: list[LinkSpec]
    """Directed links."""
    media: dict[StrictStr, MediumSpec] = {}
    """Media that links refer to, by name. On one of a shared kind (wifi_g, wifi_n, homeplug_av,
    ethernet_hub) all links that name it contend; of a kind for one link (adsl, modem, trace) each has a line
    of its own; a tunnel is two links, one each way.
    """
    routes: list[Route] = []
    """Static routes that differ from the shortest path."""
    flows: list[FlowSpec]
    """TCP and UDP flows."""
    probes: list[ProbeSpec] = []
    """Pings."""
    programs: dict[StrictStr, StrictStr] = {}
    """Algorithms of the scenario's own, by the name that flows give as their congestion control: texts in
    the language of [programs](../how-to/program.md). Left out where there are none: results are kept by a
    scenario's text. Only in the simulator.
    """
    cold_arp: StrictBool = False
    """Neighbour caches are empty at the start: the first packet over a link waits for an ARP request and its
    reply, one round trip over the link and the one back. Testbeds that were pinged first know their
    neighbours.
    """
    record: Record = Record()
    """What to record."""
    changes: list[ChangeSpec] = []
    """What changes of the links during the run. Left out where nothing does: results are kept by a
    scenario's text.
    """


HtbQdisc.model_rebuild()
PoliceQdisc.model_rebuild()

__all__ = [
    "AckFilter",
    "Adaptation",
    "AdslEncapsulation",
    "AdslMedium",
    "Application",
    "BfifoQdisc",
    "BulkApplication",
    "CakeQdisc",
    "ChangeSpec",
    "ChokeQdisc",
    "CodelQdisc",
    "ConstantRateApplication",
    "CpuSpec",
    "DelayDistribution",
    "Diffserv",
    "Dualpi2Qdisc",
    "EthernetHubMedium",
    "EtsQdisc",
    "EveryLoss",
    "FlowSpec",
    "FqCodelQdisc",
    "FqPieQdisc",
    "FqQdisc",
    "GemodelLoss",
    "GsoMode",
    "HistorySpec",
    "HomeplugAvMedium",
    "HostNode",
    "HtbQdisc",
    "Isolation",
    "LinkLayer",
    "LinkSpec",
    "LossModel",
    "MediumSpec",
    "Model",
    "ModemMedium",
    "ModemProtocol",
    "NetemQdisc",
    "NetemSpec",
    "NodeSpec",
    "NoneLoss",
    "NoqueueQdisc",
    "OnOffApplication",
    "PfifoQdisc",
    "PieQdisc",
    "PoliceQdisc",
    "PrioQdisc",
    "ProbeSpec",
    "QdiscSpec",
    "RandomLoss",
    "Record",
    "RedQdisc",
    "RequestResponseApplication",
    "Route",
    "RouterNode",
    "Scenario",
    "SfbQdisc",
    "SfqQdisc",
    "SkbprioQdisc",
    "SocketBuffers",
    "StackProfile",
    "TbfQdisc",
    "TcpTransport",
    "TraceMedium",
    "Transport",
    "TunnelApplication",
    "TunnelMedium",
    "UdpTransport",
    "VideoApplication",
    "WifiBand",
    "WifiGMedium",
    "WifiNMedium",
    "WifiProtection",
    "WifiSlot",
]
