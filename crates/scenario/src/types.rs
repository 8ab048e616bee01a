//! The types. Every quantity is in base units, which its name contains.

use crate::applications::Application;
use crate::media::MediumSpec;
use dragstrip_qdisc::{NetemSpec, QdiscSpec};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One concrete run: hosts, links, flows, probes, duration and seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Name for people; has no influence on the run.
    pub name: String,
    /// Every random element derives its own stream from this and its name.
    #[serde(default)]
    pub seed: u64,
    /// Duration of the run.
    pub duration_ns: u64,
    /// Hosts and routers.
    pub nodes: Vec<NodeSpec>,
    /// Directed links.
    pub links: Vec<LinkSpec>,
    /// Media that links refer to, by name. On a medium of a shared kind (wifi_g, wifi_n, homeplug_av, ethernet_hub)
    /// all links that name it contend; of a kind for one link (adsl, modem, trace) each has its own line; a tunnel is
    /// two links, one in each direction.
    #[serde(default)]
    pub media: BTreeMap<String, MediumSpec>,
    /// Static routes that differ from the shortest path.
    #[serde(default)]
    pub routes: Vec<Route>,
    /// TCP and UDP flows.
    pub flows: Vec<FlowSpec>,
    /// Pings.
    #[serde(default)]
    pub probes: Vec<ProbeSpec>,
    /// Algorithms of the scenario's own, by the name that flows give as their congestion control: texts in the language of
    /// [programs](../how-to/program.md). Left out where there are none: results are kept by a scenario's text. Only in the simulator.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = {})))]
    pub programs: BTreeMap<String, String>,
    /// Neighbour caches are empty at the start: the first packet over a link waits for an ARP request and
    /// its reply, one round trip over the link and the one back. Testbeds that were pinged first know
    /// their neighbours.
    #[serde(default)]
    pub cold_arp: bool,
    /// Recorded data.
    #[serde(default)]
    pub record: Record,
    /// Changes of links during the run. Left out if empty: results are cached by a scenario's text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<ChangeSpec>,
}

/// A host or a router.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum NodeSpec {
    /// Sends and receives.
    Host(HostSpec),
    /// Forwards.
    Router {
        /// Unique among the nodes.
        name: String,
    },
}

/// A host and its TCP stack.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct HostSpec {
    /// Unique among the nodes.
    pub name: String,
    /// Kernel whose TCP the host has.
    #[serde(default)]
    pub profile: StackProfile,
    /// Kernel settings by their sysctl names, e.g. `net.ipv4.tcp_sack` → `0`. An unknown name is an error.
    #[serde(default)]
    pub sysctl: BTreeMap<String, String>,
    /// Bursts of several segments that TCP builds.
    #[serde(default)]
    pub gso: GsoMode,
    /// IP packet size limit; a full TCP segment with timestamps carries 52 bytes less.
    #[serde(default = "default_mtu")]
    pub mtu_bytes: u32,
    /// Kernel ticks per second: 100, 250, 300 or 1000; none: as the [profile](profiles.md) has it.
    #[serde(default)]
    pub tick_hz: Option<u32>,
    /// Cached metrics of earlier connections to any host; none: an empty cache.
    #[serde(default)]
    pub history: Option<HistorySpec>,
    /// Processing time per packet; none: no time. Left out if none: results are cached by a scenario's text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<CpuSpec>,
    /// Interrupts of its network card; none: each packet is processed when it arrives. Not beside `cpu`. Left out if none, as above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupts: Option<InterruptSpec>,
}

/// A network card that interrupts its host less often than packets arrive. Only in the simulator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct InterruptSpec {
    /// Least time from one interrupt to the next, up to 1 s: a packet that arrives earlier waits for it (`ethtool -C`'s `rx-usecs` as
    /// Intel's cards have it).
    pub gap_ns: u64,
    /// Consecutive segments of a connection that one interrupt finds are handed on as one packet (`tcp_gro_receive`, `napi_gro_flush`).
    #[serde(default)]
    pub gro: bool,
}

/// A processor that takes one packet after the other, received and sent ones alike, as a kernel's softirq does: what
/// comes meanwhile waits. Only in the simulator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CpuSpec {
    /// Hosts that give the same name share one processor; none: the host has its own.
    #[serde(default)]
    pub shared: Option<String>,
    /// For a packet received that carries data: a segment, a datagram, a ping. Up to 1 s, as the others.
    #[serde(default)]
    pub receive_ns: u64,
    /// For a segment received that carries none: an ACK.
    #[serde(default)]
    pub ack_ns: u64,
    /// For a packet sent, of any kind; of a burst each segment.
    #[serde(default)]
    pub send_ns: u64,
}

impl HostSpec {
    /// A host with default settings.
    #[must_use]
    pub fn with_name(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            profile: StackProfile::default(),
            sysctl: BTreeMap::new(),
            gso: GsoMode::default(),
            mtu_bytes: default_mtu(),
            tick_hz: None,
            history: None,
            cpu: None,
            interrupts: None,
        }
    }
}

/// A host's cached metrics of connections before the run (Linux 2.6, for every destination alike); 0: no entry. A flow
/// that starts with them passes its own metrics on to the next one, as it does without. Linux 6.1 ignores the
/// threshold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct HistorySpec {
    /// Initial slow start threshold.
    #[serde(default)]
    pub ssthresh_packets: u32,
    /// Reordering learnt.
    #[serde(default)]
    pub reordering_packets: u32,
    /// Smoothed RTT; it counts where it is longer than the handshake's.
    #[serde(default)]
    pub rtt_ns: u64,
    /// Its mean deviation.
    #[serde(default)]
    pub rtt_deviation_ns: u64,
}

fn default_mtu() -> u32 {
    1500
}

/// Defines the type of a host's profile from the rows of `dragstrip_tcp::profiles`.
macro_rules! profiles {
    ($(#[doc = $first_doc:literal])+ $first:ident $first_name:literal $first_row:ident,
     $($(#[doc = $doc:literal])+ $variant:ident $name:literal $row:ident,)+) => {
        /// A kernel's TCP: [stack profiles](profiles.md).
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(JsonSchema))]
        pub enum StackProfile {
            $(#[doc = $first_doc])+
            #[default]
            #[serde(rename = $first_name)]
            $first,
            $($(#[doc = $doc])+ #[serde(rename = $name)] $variant,)+
        }

        impl StackProfile {
            /// All profiles.
            pub const ALL: &[Self] = &[Self::$first, $(Self::$variant),+];

            /// Name in scenarios.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { Self::$first => $first_name, $(Self::$variant => $name,)+ }
            }

            /// The profile nearest to a Linux kernel of this release, as `uname -r` says it: `7.3.4-amd64`.
            #[must_use]
            pub fn of_release(release: &str) -> Self {
                let mut digits = release.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
                let mut next = || digits.next().and_then(Result::ok).unwrap_or(0);
                let version = (next(), next());
                let since = |profile: &Self| profile.row().nearest_since.filter(|&since| since <= version);
                let nearest = Self::ALL.iter().copied().filter(|profile| since(profile).is_some());
                nearest.max_by_key(since).unwrap_or_default()
            }

            /// Description of the profile.
            #[must_use]
            pub const fn row(self) -> &'static dragstrip_tcp::profiles::StackRow {
                match self {
                    Self::$first => &dragstrip_tcp::profiles::$first_row,
                    $(Self::$variant => &dragstrip_tcp::profiles::$row,)+
                }
            }
        }
    };
}
dragstrip_tcp::stack_profiles!(profiles);

/// Generic segmentation offload in the socket layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum GsoMode {
    /// One segment at a time.
    #[default]
    Off,
    /// Bursts sized from the pacing rate (`tcp_tso_autosize`), cut before the first link.
    Auto,
    /// The same bursts, each one packet all the way, as where TSO and GRO are on at every interface: a queue counts it as one packet and by all its
    /// bytes, and drops all of it or nothing; the receiver answers it with one ACK. A retransmission of several segments stays whole too. A
    /// link's overhead counts once. On no medium.
    Whole,
}

/// A directed link: a queue discipline, then a transmitter, then a delay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LinkSpec {
    /// Unique among the links.
    pub name: String,
    /// Node it leaves.
    pub from: String,
    /// Node it enters.
    pub to: String,
    /// Store-and-forward transmitter after the queue; none: limited by the queue discipline alone.
    #[serde(default)]
    pub rate_bps: Option<u64>,
    /// Propagation delay, one way.
    #[serde(default)]
    pub delay_ns: u64,
    /// Added to every frame at the transmitter (24: Ethernet's FCS, preamble and gap).
    #[serde(default)]
    pub overhead_bytes: u32,
    /// The medium after the queue, instead of a wire with a rate and an overhead.
    #[serde(default)]
    pub medium: Option<String>,
    /// Queue discipline of the interface.
    #[serde(default)]
    pub qdisc: QdiscSpec,
    /// Impairments after the transmitter, like those of a separate host with this netem.
    #[serde(default)]
    pub netem: Option<Box<NetemSpec>>,
}

/// A link gets other settings at one instant, as `tc ... change` and `ip link set` give them to a live device. Packets
/// in service or in flight are not affected; waiting packets stay, except those that the discipline itself drops above
/// a lower limit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ChangeSpec {
    /// Time of the change. Changes of one instant come after everything else that happens then, in the order of this
    /// list.
    pub at_ns: u64,
    /// The link.
    pub link: String,
    /// Rate of its wire, htb, tbf or cake. The frame in service ends at the old rate: htb's debt stays the time that it was (and its ceiling
    /// becomes the rate, `htb_change_class`), and so does cake's clock (`cake_change`), while the bucket of a tbf is full again
    /// (`tbf_change`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_bps: Option<u64>,
    /// Propagation delay, one way. Packets on their way arrive when they would have; later ones may overtake them, as in netem.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_ns: Option<u64>,
    /// Probability with which netem loses a packet after the line, independently for each; it replaces another model
    /// of loss.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
    /// Limit of a queue that counts bytes; the memory of a cake.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_bytes: Option<u64>,
    /// Limit of a queue that counts packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_packets: Option<u32>,
    /// False: down, as by `ip link set down`: what waits is dropped, and so is what comes, until the link is up again; its queue then
    /// begins afresh (`dev_deactivate_many`, `noop_qdisc`). What has left the queue arrives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up: Option<bool>,
}

/// A static route.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Route {
    /// At this node ...
    pub node: String,
    /// ... packets for this host ...
    pub destination: String,
    /// ... take this link.
    pub link: String,
}

/// A flow from one host to another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FlowSpec {
    /// Unique; figures and plots use it.
    pub label: String,
    /// Host that sends (in request/response: the one that asks).
    pub sender: String,
    /// Host that receives.
    pub receiver: String,
    /// TCP or QUIC with which congestion control, or UDP.
    pub transport: Transport,
    /// Application of the flow.
    pub application: Application,
    /// Time at which the connection is opened.
    #[serde(default)]
    pub start_ns: u64,
    /// Time at which the application stops; the end of the run when absent.
    #[serde(default)]
    pub stop_ns: Option<u64>,
    /// The number of its source, of a flow that arrives: the flows of a source differ in start and size, and count as
    /// one in comparisons.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<u32>,
    /// DSCP of all its packets, those of both ends, 0 to 63.
    #[serde(default, skip_serializing_if = "is_zero_u8")]
    pub dscp: u8,
    /// The firewall's mark that all its packets have on every link.
    #[serde(default, skip_serializing_if = "is_zero_u32")]
    pub mark: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's form")]
const fn is_zero_u8(value: &u8) -> bool {
    *value == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's form")]
const fn is_zero_u32(value: &u32) -> bool {
    *value == 0
}

/// TCP, QUIC or UDP.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(tag = "protocol", rename_all = "snake_case", deny_unknown_fields)]
pub enum Transport {
    /// TCP.
    Tcp {
        /// Congestion control of the sender.
        cc: String,
        /// Its module parameters.
        #[serde(default)]
        cc_options: BTreeMap<String, f64>,
        /// Congestion control of the receiver's socket; none: the sender's. A listener's decides whether ECN is
        /// granted to a SYN that is ECN-capable itself (`tcp_ecn_create_request`), as DCTCP's is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        receiver_cc: Option<String>,
        /// Buffers that both ends ask for.
        #[serde(default)]
        socket: SocketBuffers,
    },
    /// QUIC, of a stack of another project. Only in the simulator.
    Quic {
        /// The stack and its congestion control: `noq/cubic`.
        cc: String,
        /// Parameters of the connection, and of a congestion control of Dragstrip's.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        cc_options: BTreeMap<String, f64>,
    },
    /// UDP.
    Udp,
}

impl Transport {
    /// The congestion control as a flow names it; empty: UDP.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Tcp { cc, .. } | Self::Quic { cc, .. } => cc,
            Self::Udp => "",
        }
    }

    /// The congestion control of one end's TCP socket; none: not TCP.
    #[must_use]
    pub fn cc(&self, receiver: bool) -> Option<&str> {
        match self {
            Self::Tcp { receiver_cc: Some(cc), .. } if receiver => Some(cc),
            Self::Tcp { cc, .. } => Some(cc),
            Self::Quic { .. } | Self::Udp => None,
        }
    }

    /// One end's congestion control requests ECN, and grants it, regardless of the host's settings
    /// (`TCP_CONG_NEEDS_ECN`).
    #[must_use]
    pub fn needs_ecn(&self, receiver: bool) -> bool {
        let Some(cc) = self.cc(receiver) else { return false };
        let row = dragstrip_cc::about().iter().find(|row| row.name == cc);
        row.is_some_and(|row| row.needs.ecn != dragstrip_cc::EcnMode::Classic)
    }
}

/// Buffer sizes that an application requests by setsockopt(2) before it connects or listens, as `iperf3 -w` does at
/// both ends. Linux limits a size to `net.core.wmem_max` or `rmem_max`, doubles it, and stops tuning that buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SocketBuffers {
    /// `SO_SNDBUF`; none: the kernel tunes the buffer (`tcp_wmem`).
    #[serde(default)]
    pub send_bytes: Option<u32>,
    /// `SO_RCVBUF`; none: the kernel tunes the buffer (`tcp_rmem`).
    #[serde(default)]
    pub receive_bytes: Option<u32>,
}

/// A ping.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ProbeSpec {
    /// Unique; figures and plots use it.
    pub label: String,
    /// Host that asks.
    pub from: String,
    /// Host or router that answers.
    pub target: String,
    /// Time between requests.
    pub interval_ns: u64,
    /// ICMP payload and header (64: what ping prints for its default).
    #[serde(default = "default_probe_size")]
    pub size_bytes: u32,
    /// First request.
    #[serde(default)]
    pub start_ns: u64,
}

fn default_probe_size() -> u32 {
    64
}

/// Recorded data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Spacing of `samples`, `received` and `queues`.
    #[serde(default = "default_interval")]
    pub interval_ns: u64,
    /// `samples` has a row for every ACK instead.
    #[serde(default)]
    pub every_ack: bool,
    /// Write `rtts`: every RTT sample the sender takes.
    #[serde(default = "yes")]
    pub rtts: bool,
    /// Write `cc_state`: the congestion control's own variables with every row of `samples`.
    #[serde(default)]
    pub cc_state: bool,
    /// Write `spp` and `tcpstat`: what captures at both ends of each TCP flow say. Left out where it is off: results are kept by a scenario's
    /// text. Only in the simulator.
    #[serde(default, skip_serializing_if = "is_false")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = false)))]
    pub captures: bool,
}

impl Default for Record {
    fn default() -> Self {
        Self {
            interval_ns: default_interval(),
            every_ack: false,
            rtts: true,
            cc_state: false,
            captures: false,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's form")]
const fn is_false(value: &bool) -> bool {
    !*value
}

fn default_interval() -> u64 {
    100_000_000
}

fn yes() -> bool {
    true
}
