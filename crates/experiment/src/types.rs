//! The types of the experiment file, each field with its documentation and its default. The Python classes, the
//! reference page and the JSON Schema are generated from them (`cargo xtask generate`); `rules` has what the fields
//! must satisfy together. Quantities are text with a unit.

use crate::applications::{ApplicationForm, ArrivalForm};
use crate::claims::{AblationForm, AlternativeForm, ClaimForm, FlowTableForm};
use crate::media::MediumForm;
use crate::quantity::{LimitText, RateText, ShareText, SizeText, SysctlText, TimeText};
use crate::senders::SendersForm;
use crate::tables::{Ordered, Tagged};
use dragstrip_scenario::{GsoMode, Route, StackProfile};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// A path, traffic, what varies, how often it is repeated, and the published claims that it is graded by.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// The name in tables and folders. Default: the file's folder and name.
    #[serde(default)]
    pub name: String,
    /// A title for people.
    #[serde(default)]
    pub title: String,
    /// The publication that the experiment reproduces.
    #[serde(default)]
    pub source: String,
    /// The purpose of the experiment, for readers.
    #[serde(default)]
    pub description: String,
    /// The duration of each run.
    pub duration: TimeText,
    /// The seed of the first repeat, below 2^53; each further repeat counts up by one. All alternatives of a repeat
    /// share its seed.
    #[serde(default = "default_one")]
    #[schemars(range(min = 0, max = 9_007_199_254_740_991_u64))]
    pub seed: u64,
    /// The number of repeats, up to 100000: all alternatives in turn, then all again. Where nothing is random, every
    /// run is made once, and a note says so.
    #[serde(default = "default_one")]
    #[schemars(range(min = 1, max = 100_000))]
    pub repeat: u64,
    /// Starts with empty neighbour caches: the first packet over a link then waits for ARP, one round trip of that
    /// link. A path that was pinged before has warm caches.
    #[serde(default)]
    pub cold_arp: bool,
    /// The pause between runs where the path is real. The simulator starts every run on an empty path.
    #[serde(default)]
    pub idle: TimeText,
    /// The engine, `sim`, `vm`, `netns` or `ssh`; or two that are compared with each other, such as `sim,vm`.
    /// In a file it is a suggestion: without `--engine` the experiment runs on the simulator, with a note.
    #[serde(default = "simulator")]
    pub engine: String,
    /// Options of the engine, by name. `kernel` (vm) is one of `dragstrip kernel list`; `strict = "yes"` (netns, ssh)
    /// fails a run that the machine limited.
    #[serde(default)]
    pub engine_options: BTreeMap<String, TextOrTexts>,
    /// C files next to the experiment with congestion controls for a kernel, which flows may name.
    #[serde(default)]
    pub load: Vec<String>,
    /// The dumbbell that the flows share, instead of `nodes` and `links`.
    #[serde(default)]
    pub path: Option<PathForm>,
    /// Hosts and routers of any other graph.
    #[serde(default)]
    pub nodes: Vec<NodeForm>,
    /// Links of any other graph.
    #[serde(default)]
    pub links: Vec<LinkForm>,
    /// Name → the medium of the links that name it.
    #[serde(default)]
    pub media: BTreeMap<String, Tagged<MediumForm>>,
    /// Routes of a graph that differ from the shortest path.
    #[serde(default)]
    pub routes: Vec<Route>,
    /// Name → an algorithm as a text, or the file next to the experiment that contains it; flows name it as their
    /// `cc`. Only the simulator runs programs.
    #[serde(default)]
    pub programs: BTreeMap<String, String>,
    /// Name or pattern (`*`, `s?`) → settings of those hosts; later entries override earlier ones.
    #[serde(default)]
    pub hosts: Ordered<HostForm>,
    /// The flows; at least one.
    pub flows: Vec<FlowForm>,
    /// Pings during the run.
    #[serde(default)]
    pub probes: Vec<ProbeForm>,
    /// The recorded data.
    #[serde(default)]
    pub record: RecordForm,
    /// Changes of links during the run.
    #[serde(default)]
    pub changes: Vec<ChangeForm>,
    /// Dotted path → list of values; several paths multiply. A path through a list without an index means each of its
    /// entries (`flows.cc`), one with an index means that entry (`flows.0.cc`); a part with dots is quoted.
    #[serde(default)]
    pub vary: Map<String, Value>,
    /// Several fields set together under a name; alternatives multiply with `vary`.
    #[serde(default)]
    pub alternatives: Vec<AlternativeForm>,
    /// Published figures, and how ours are measured and compared with them.
    #[serde(default)]
    pub claims: Vec<ClaimForm>,
    /// Claims measured again with a changed setting.
    #[serde(default)]
    pub ablations: Vec<AblationForm>,
    /// Published tables of flows, for comparison with ours.
    #[serde(default)]
    pub flow_tables: Vec<FlowTableForm>,
}

/// A text, or several.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "a text or a list of texts")]
pub enum TextOrTexts {
    /// One.
    Text(String),
    /// Several.
    Texts(Vec<String>),
}

/// The enforcement of a rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TransmitterKind {
    /// A shaper as tc sets it up: a packet leaves at the start of its transmission time.
    #[default]
    Htb,
    /// An ideal store-and-forward link.
    Wire,
}

/// A dumbbell: senders `s1` to `sN`, a router `r`, the bottleneck, and a receiver `d`, or `d1` to `dM` after a second
/// router `w`. A single receiver is placed after `w` too if it sends data into a limited return path. Links are named
/// after their ends: `s1-r`, `r-s1`, `r-d`, `d-r`; with `w` they are `r-w`, `w-r`, `w-d`, or `w-d1`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PathForm {
    /// A path by name, whose fields the others override; `path = "home DSL"` is short for a table with this field
    /// alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<String>,
    /// The rate of the bottleneck, from the senders to the receivers. A path has a rate or a medium.
    #[serde(default)]
    pub rate: Option<RateText>,
    /// The medium of the bottleneck instead of a rate: an entry of `media`, or a medium by name. A medium that
    /// stations share carries both directions.
    #[serde(default)]
    pub medium: Option<String>,
    /// The medium of the return path instead of a rate.
    #[serde(default)]
    pub up_medium: Option<String>,
    /// The enforcement of the rates of both directions.
    #[serde(default)]
    pub link: TransmitterKind,
    /// The queue discipline of the bottleneck, in tc's words (`bfifo limit 200kb`, `fq_codel`), or its depth (`1bdp`,
    /// `100ms`). The default is Linux's in an htb class.
    #[serde(default = "default_queue")]
    pub queue: String,
    /// Bytes charged per frame in addition to Ethernet's header.
    #[serde(default)]
    pub overhead: SizeText,
    /// Charges whole ATM cells (`link = "htb"` only).
    #[serde(default)]
    pub atm: bool,
    /// The propagation delay of the bottleneck link.
    #[serde(default)]
    pub delay: TimeText,
    /// Random packet loss after the bottleneck.
    #[serde(default)]
    pub loss: ShareText,
    /// Jitter after the bottleneck: each packet is delayed by 0 to twice this, uniformly, and may be overtaken.
    #[serde(default)]
    pub jitter: TimeText,
    /// Any other impairment after the bottleneck in netem's words, such as `delay 5ms 2ms distribution normal loss
    /// 1%`, instead of `loss` and `jitter`. `loss every 100` loses the last of each hundred packets, which no kernel
    /// does by itself.
    #[serde(default)]
    pub netem: Option<String>,
    /// Random loss on each sender's own link, ahead of the bottleneck's queue.
    #[serde(default)]
    pub ahead_loss: ShareText,
    /// Any other impairment on each sender's own link, in netem's words, instead of `ahead_loss`.
    #[serde(default)]
    pub ahead_netem: Option<String>,
    /// The rate of the return path; without one it is unlimited.
    #[serde(default)]
    pub up_rate: Option<RateText>,
    /// The queue discipline of the return path.
    #[serde(default)]
    pub up_queue: Option<String>,
    /// The propagation delay of the return path.
    #[serde(default)]
    pub up_delay: TimeText,
    /// An impairment on the return path, in netem's words.
    #[serde(default)]
    pub up_netem: Option<String>,
    /// The round-trip time of the empty path, all of it on the return path, instead of `delay` and `up_delay`.
    #[serde(default)]
    pub rtt: Option<TimeText>,
    /// The number of senders, or a table for each one's access link. Default: one sender per flow.
    #[serde(default)]
    pub senders: Option<SendersForm>,
    /// The number of receivers, up to 100000. Several are placed after a second router `w`, beyond the bottleneck.
    #[serde(default = "one_receiver")]
    #[schemars(range(min = 1, max = 100_000))]
    pub receivers: u32,
    /// Attaches the receiver's own interface to the return path, so that TCP small queues keep its data out of
    /// `up_queue`. By default a receiver that sends data into a return path with a rate, a medium or a queue is placed
    /// after the router `w`, as a PC behind its modem. Not with several receivers.
    #[serde(default)]
    pub receiver_on_line: bool,
}

/// A host or a router of a graph.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NodeForm {
    /// The node's name.
    pub name: String,
    /// Host or router.
    pub kind: NodeKind,
}

/// The kind of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NodeKind {
    /// An end of flows.
    Host,
    /// A node that forwards packets.
    Router,
}

/// A link of a graph: one direction, or both alike.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkForm {
    /// The node that it leaves.
    pub from: String,
    /// The node that it leads to.
    pub to: String,
    /// The link's name. Default: its ends, `a-r`; the second direction of a named link ends in `-back`.
    #[serde(default)]
    pub name: String,
    /// Adds a second link like this one in the other direction.
    #[serde(default = "yes")]
    pub both_ways: bool,
    /// The rate of the link; without a rate and a medium it is a plain veth, which takes no time.
    #[serde(default)]
    pub rate: Option<RateText>,
    /// The medium of the link instead of a rate: an entry of `media`.
    #[serde(default)]
    pub medium: Option<String>,
    /// The enforcement of the rate.
    #[serde(default)]
    pub link: TransmitterKind,
    /// The queue discipline in front of the link, in tc's words. Default: `pfifo limit 1000` where there is a rate or
    /// a medium.
    #[serde(default)]
    pub queue: Option<String>,
    /// Bytes charged per frame in addition to Ethernet's header.
    #[serde(default)]
    pub overhead: SizeText,
    /// Charges whole ATM cells (`link = "htb"` only).
    #[serde(default)]
    pub atm: bool,
    /// The propagation delay.
    #[serde(default)]
    pub delay: TimeText,
    /// An impairment after the link, in netem's words.
    #[serde(default)]
    pub netem: Option<String>,
}

/// Settings of a host.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "HostSettings")]
pub struct HostForm {
    /// A kind of host by name, whose settings those below override: `plain`, `veth`, `card`, `server` or `paced`
    /// ([hosts by name](paths.md#hosts)).
    #[serde(default)]
    pub preset: Option<String>,
    /// The stack profile, whose default is `linux-6`.
    #[serde(default)]
    pub profile: Option<StackProfile>,
    /// Sysctls by the kernel's names; an unknown one is an error.
    #[serde(default)]
    pub sysctl: BTreeMap<String, SysctlText>,
    /// The bursts of several segments that TCP builds: `auto` as Linux does where an interface takes them, `off` none;
    /// with `whole` a burst stays one packet all the way, as where TSO and GRO are on at every interface. A queue then
    /// counts a burst as one packet and by all its bytes, and drops it whole. Not over media and tbf, which carry
    /// single frames.
    #[serde(default)]
    pub gso: Option<GsoMode>,
    /// The MTU of the host's interfaces, 1500 bytes by default.
    #[serde(default)]
    pub mtu: Option<SizeText>,
    /// The kernel's timer ticks per second. The default is the profile's: 250 for `linux-6`, 1000 for `freebsd-9`.
    #[serde(default)]
    pub tick_hz: Option<u32>,
    /// The metrics that the host has cached from earlier connections (Linux 2.6).
    #[serde(default)]
    pub history: Option<HistoryForm>,
    /// The host's processing time per packet. Only the simulator models this.
    #[serde(default)]
    pub cpu: Option<CpuForm>,
    /// The host's network interface. Default: packets leave and arrive at once.
    #[serde(default)]
    pub interface: Option<InterfaceForm>,
}

/// A host's network interface.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "HostInterface")]
pub struct InterfaceForm {
    /// The line rate at which frames leave the host: a burst then has its frames one after the other. Only on links
    /// without a rate of their own.
    #[serde(default)]
    pub rate: Option<RateText>,
    /// The queue discipline in front of it, in tc's words. `fq` paces every TCP connection of the host. Only on links
    /// without a queue of their own.
    #[serde(default)]
    pub queue: Option<String>,
    /// The least time from one receive interrupt to the next; a packet that arrives earlier waits (`ethtool -C`,
    /// `rx-usecs`). Only the simulator models this.
    #[serde(default)]
    pub interrupts: Option<TimeText>,
    /// Generic receive offload: consecutive segments of a connection that one interrupt finds become one packet, with
    /// one ACK. Needs `interrupts`.
    #[serde(default)]
    pub gro: Option<bool>,
}

/// A host's processing time per packet, up to 1 s. The processor handles one packet after the other; packets that
/// arrive meanwhile wait, and so do those that a packet triggers.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CpuForm {
    /// The processor's name; hosts with the same name share one processor.
    #[serde(default)]
    pub shared: Option<String>,
    /// The time for a received packet that carries data.
    #[serde(default)]
    pub receive: TimeText,
    /// The time for a received segment without data.
    #[serde(default)]
    pub ack: TimeText,
    /// The time for a sent packet.
    #[serde(default)]
    pub send: TimeText,
}

/// A host's cached metrics of connections before the run (Linux 2.6). Zero means no entry.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HistoryForm {
    /// The initial slow start threshold in packets.
    #[serde(default)]
    pub ssthresh: u32,
    /// The learnt reordering in packets.
    #[serde(default)]
    pub reordering: u32,
    /// The smoothed round-trip time.
    #[serde(default)]
    pub rtt: TimeText,
    /// The deviation of the round-trip time.
    #[serde(default)]
    pub deviation: TimeText,
}

/// A flow, or `count` identical ones.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowForm {
    /// The sender's congestion control, in one word with options, count, round-trip time and start:
    /// `cubic:beta=0.8*4@20ms+5s`. Every flow but a UDP flow has one.
    #[serde(default)]
    pub cc: Option<String>,
    /// The congestion control's module parameters, by name.
    #[serde(default)]
    pub cc_options: BTreeMap<String, f64>,
    /// Congestion control of the receiver's socket. A listener grants ECN to a SYN of `dctcp` or `prague` only if its
    /// own algorithm needs ECN too, as when the server runs a stock kernel's cubic. Default: the sender's.
    #[serde(default)]
    pub receiver_cc: Option<String>,
    /// The flow's name. Default: its `cc`, numbered where several flows are alike.
    #[serde(default)]
    pub label: String,
    /// The number of flows, up to 100000.
    #[serde(default = "default_one")]
    #[schemars(range(min = 1, max = 100_000))]
    pub count: u64,
    /// The host that sends. On a `path` the default is one after the other.
    #[serde(default)]
    pub sender: String,
    /// The host that receives. On a `path` the default is one after the other.
    #[serde(default)]
    pub receiver: String,
    /// Reverses the flow: from the receivers' side to the senders'.
    #[serde(default)]
    pub reverse: bool,
    /// The round-trip time of this flow's empty path, instead of the path's own. Not with `senders`.
    #[serde(default)]
    pub rtt: Option<TimeText>,
    /// The start time.
    #[serde(default)]
    pub start: TimeText,
    /// The time between the starts of the `count` flows.
    #[serde(default)]
    pub stagger: TimeText,
    /// The stop time. Default: the end of the run.
    #[serde(default)]
    pub stop: Option<TimeText>,
    /// The amount to send. Default: unlimited.
    #[serde(default)]
    pub bytes: Option<SizeText>,
    /// The arrivals of further flows: the entry is then a source of flows, which its `count` hosts send in turn. They
    /// are numbered as identical flows are.
    #[serde(default)]
    pub arrivals: Option<Tagged<ArrivalForm>>,
    /// The size of each arriving flow: `web-search` (DCTCP, SIGCOMM 2010), one size, or a file next to the experiment
    /// with lines of a size in bytes and the share of flows up to that size.
    #[serde(default)]
    pub sizes: Option<String>,
    /// The SO_SNDBUF that both ends request, as `iperf3 -w` does. Linux limits it to `net.core.wmem_max`, doubles it
    /// and stops tuning the buffer. Not on FreeBSD. Default: the kernel tunes it.
    #[serde(default)]
    pub send_buffer: Option<SizeText>,
    /// The SO_RCVBUF that both ends request, limited to `net.core.rmem_max`. Default: the kernel tunes it.
    #[serde(default)]
    pub receive_buffer: Option<SizeText>,
    /// The DSCP of all packets of the flow, those of both ends: a name (`EF`, `AF41`, `CS1`, `LE`) or a number from 0 to
    /// 63 as text. In the word of `cc`: `cubic:dscp=EF`. Default: best effort.
    #[serde(default)]
    pub dscp: Option<String>,
    /// The firewall's mark of all packets of the flow, for filters of a class tree. In the word of `cc`: `cubic:mark=1`.
    #[serde(default)]
    pub mark: u32,
    /// The application at the flow's sender.
    #[serde(default)]
    pub application: Tagged<ApplicationForm>,
}

impl FlowForm {
    /// True when, on a `path`, the flow's data take the return path; of requests and responses the larger one counts.
    #[must_use]
    pub fn sends_back(&self) -> bool {
        let from_far =
            if self.sender.is_empty() { self.reverse } else { self.sender.starts_with('d') };
        from_far != self.application.is_answered()
    }
}

/// Pings from one host to another node.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProbeForm {
    /// The host that pings.
    pub from: String,
    /// The host or router that answers.
    pub target: String,
    /// The probe's name. Default: `from-target`.
    #[serde(default)]
    pub label: String,
    /// The time between two pings.
    #[serde(default = "default_ping_interval")]
    pub interval: TimeText,
    /// The size of ICMP's header and payload.
    #[serde(default = "default_ping_size")]
    pub size: SizeText,
    /// The time of the first ping.
    #[serde(default)]
    pub start: TimeText,
}

/// A change of a link during the run, or a file of changes. Changes at one instant happen in the order of the file,
/// after everything else at that instant.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangeForm {
    /// The time of the change; of a file, the offset of its times. Mandatory except for a file.
    #[serde(default)]
    pub at: Option<TimeText>,
    /// The link's name. Default: the bottleneck of the `path`.
    #[serde(default)]
    pub link: Option<String>,
    /// The link's new rate.
    #[serde(default)]
    pub rate: Option<RateText>,
    /// The link's new propagation delay, one way.
    #[serde(default)]
    pub delay: Option<TimeText>,
    /// The whole path's new round-trip time, set on the return path as `path.rtt` is.
    #[serde(default)]
    pub rtt: Option<TimeText>,
    /// The new random loss after the link.
    #[serde(default)]
    pub loss: Option<ShareText>,
    /// The queue's new limit as that queue counts: a size such as `50kb`, or packets such as 100.
    #[serde(default)]
    pub limit: Option<LimitText>,
    /// The new state of the link.
    #[serde(default)]
    pub state: Option<StateForm>,
    /// A trace of values (CSV) instead of settings. Its first line names columns: `at`, and any of `rate`, `delay`,
    /// `rtt`, `loss`, `limit` and `state`. An empty cell changes nothing; rows after the end of the run are ignored.
    #[serde(default)]
    pub file: Option<String>,
}

/// The state of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StateForm {
    /// The link carries packets.
    Up,
    /// Waiting and arriving packets are dropped.
    Down,
}

/// The recorded data.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Recorded")]
pub struct RecordForm {
    /// The interval of samples and queues.
    #[serde(default = "default_interval")]
    pub interval: TimeText,
    /// Records a sample at every ACK.
    #[serde(default)]
    pub every_ack: bool,
    /// Records round-trip times packet by packet.
    #[serde(default = "yes")]
    pub rtts: bool,
    /// Records the congestion control's own variables with every sample.
    #[serde(default)]
    pub cc_state: bool,
    /// Analyses captures at both ends of each TCP flow (engine `sim`).
    #[serde(default)]
    pub captures: bool,
}

impl Default for RecordForm {
    fn default() -> Self {
        Self {
            interval: default_interval(),
            every_ack: false,
            rtts: true,
            cc_state: false,
            captures: false,
        }
    }
}

/// The queue of a link with a rate or a medium that names none: Linux's in an htb class.
pub(crate) const DEFAULT_QUEUE: &str = "pfifo limit 1000";

/// The name of the simulator among the engines.
pub const SIMULATOR: &str = "sim";

const MILLISECOND_NS: u64 = 1_000_000;

const fn default_one() -> u64 {
    1
}

const fn one_receiver() -> u32 {
    1
}

const fn yes() -> bool {
    true
}

fn simulator() -> String {
    SIMULATOR.to_owned()
}

fn default_queue() -> String {
    DEFAULT_QUEUE.to_owned()
}

const fn default_ping_interval() -> TimeText {
    TimeText(200 * MILLISECOND_NS)
}

const fn default_ping_size() -> SizeText {
    SizeText(64)
}

const fn default_interval() -> TimeText {
    TimeText(100 * MILLISECOND_NS)
}
