//! The types of the experiment file. Quantities are text with a unit; docs/experiments.md explains every field.

use crate::named::spell_names;
use crate::quantity::{RateText, ShareText, SizeText, TimeText};
use dragstrip_scenario::{GsoMode, Problem, Route, StackProfile, json_problem};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

/// What a person writes. What is only Python's (claims and the like) is carried along unread.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "docs/experiments.md")]
pub struct Experiment {
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub title: String,
    #[serde(default)]
    pub source: String,
    #[serde(default)]
    pub description: String,
    pub duration: TimeText,
    #[serde(default = "one")]
    pub seed: u64,
    #[serde(default = "one")]
    pub repeat: u64,
    #[serde(default)]
    pub cold_arp: bool,
    #[serde(default)]
    pub idle: TimeText,
    #[serde(default)]
    pub engine: Value,
    #[serde(default)]
    pub engine_options: Value,
    #[serde(default)]
    pub load: Value,
    #[serde(default)]
    pub path: Option<PathForm>,
    #[serde(default)]
    pub nodes: Vec<NodeForm>,
    #[serde(default)]
    pub links: Vec<LinkForm>,
    #[serde(default)]
    pub media: BTreeMap<String, Map<String, Value>>,
    #[serde(default)]
    pub routes: Vec<Route>,
    #[serde(default)]
    pub programs: BTreeMap<String, String>,
    #[serde(default)]
    pub hosts: Ordered<HostForm>,
    pub flows: Vec<FlowForm>,
    #[serde(default)]
    pub probes: Vec<ProbeForm>,
    #[serde(default)]
    pub record: RecordForm,
    #[serde(default)]
    pub changes: Vec<ChangeForm>,
    #[serde(default)]
    pub vary: Value,
    #[serde(default)]
    pub alternatives: Value,
    #[serde(default)]
    pub claims: Value,
    #[serde(default)]
    pub ablations: Value,
    #[serde(default)]
    pub flow_tables: Value,
}

impl Experiment {
    /// The experiment that a JSON document describes.
    ///
    /// # Errors
    /// The first field that is unknown, missing, or no quantity.
    pub fn from_json(text: &str) -> Result<Self, Problem> {
        let mut content: Value =
            serde_json::from_str(text).map_err(|error| json_problem(String::new(), &error))?;
        spell_names(&mut content)?;
        write_sysctls(&mut content);
        let read = serde_path_to_error::deserialize(content);
        read.map_err(|error| {
            let path = error.path().to_string();
            json_problem(if path == "." { String::new() } else { path }, &error.into_inner())
        })
    }
}

/// A sysctl may be written as a number.
fn write_sysctls(content: &mut Value) {
    let hosts = content.get_mut("hosts").and_then(Value::as_object_mut);
    let tables = hosts.into_iter().flat_map(serde_json::Map::values_mut);
    let tables = tables.filter_map(|host| host.get_mut("sysctl")?.as_object_mut());
    for value in tables.flat_map(serde_json::Map::values_mut) {
        if value.is_i64() || value.is_u64() {
            *value = Value::String(value.to_string());
        }
    }
}

/// A table in the order in which it was written: of hosts, later patterns override earlier ones.
#[derive(Clone, Debug)]
pub struct Ordered<T>(pub Vec<(String, T)>);

impl<T> Default for Ordered<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Ordered<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Entries<T> {
            type Value = Vec<(String, T)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(entries)
            }
        }
        deserializer.deserialize_map(Entries(PhantomData)).map(Self)
    }
}

/// How a rate is enforced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TransmitterKind {
    /// Shaped as tc does it: a packet leaves at the start of its transmission time.
    #[default]
    Htb,
    /// Store and forward.
    Wire,
}

/// The dumbbell: senders s1 ... sN, a router r, the bottleneck, a receiver d (or d1 ... dM behind a router w).
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "docs/experiments.md")]
pub struct PathForm {
    #[serde(default)]
    pub rate: Option<RateText>,
    #[serde(default)]
    pub medium: Option<String>,
    #[serde(default)]
    pub up_medium: Option<String>,
    #[serde(default)]
    pub link: TransmitterKind,
    #[serde(default)]
    pub queue: Option<String>,
    #[serde(default)]
    pub overhead: SizeText,
    #[serde(default)]
    pub atm: bool,
    #[serde(default)]
    pub delay: TimeText,
    #[serde(default)]
    pub loss: ShareText,
    #[serde(default)]
    pub jitter: TimeText,
    #[serde(default)]
    pub netem: Option<String>,
    #[serde(default)]
    pub ahead_loss: ShareText,
    #[serde(default)]
    pub ahead_netem: Option<String>,
    #[serde(default)]
    pub up_rate: Option<RateText>,
    #[serde(default)]
    pub up_queue: Option<String>,
    #[serde(default)]
    pub up_delay: TimeText,
    #[serde(default)]
    pub up_netem: Option<String>,
    #[serde(default)]
    pub rtt: Option<TimeText>,
    #[serde(default)]
    pub senders: Option<SendersForm>,
    #[serde(default = "one_receiver")]
    pub receivers: u32,
}

/// How many senders, or each one's access link.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(untagged)]
pub enum SendersForm {
    /// Behind plain veths.
    Count(u32),
    /// Each with a link of its own.
    Links(Vec<AccessForm>),
}

/// A sender's own link, the same in both directions.
#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "docs/experiments.md")]
pub struct AccessForm {
    #[serde(default)]
    pub rate: Option<RateText>,
    #[serde(default)]
    pub delay: TimeText,
    #[serde(default)]
    pub queue: Option<String>,
}

/// A node of an explicit graph.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[expect(missing_docs, reason = "docs/experiments.md")]
pub enum NodeForm {
    Host { name: String },
    Router { name: String },
}

/// A link of an explicit graph: one direction, or both alike.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "docs/experiments.md")]
pub struct LinkForm {
    pub from: String,
    pub to: String,
    #[serde(default)]
    pub name: String,
    #[serde(default = "yes")]
    pub both_ways: bool,
    #[serde(default)]
    pub rate: Option<RateText>,
    #[serde(default)]
    pub medium: Option<String>,
    #[serde(default)]
    pub link: TransmitterKind,
    #[serde(default)]
    pub queue: Option<String>,
    #[serde(default)]
    pub overhead: SizeText,
    #[serde(default)]
    pub atm: bool,
    #[serde(default)]
    pub delay: TimeText,
    #[serde(default)]
    pub netem: Option<String>,
}

/// A host's TCP.
#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "docs/experiments.md")]
pub struct HostForm {
    #[serde(default)]
    pub profile: Option<StackProfile>,
    #[serde(default)]
    pub sysctl: BTreeMap<String, String>,
    #[serde(default)]
    pub gso: Option<GsoMode>,
    #[serde(default)]
    pub mtu: Option<SizeText>,
    #[serde(default)]
    pub tick_hz: Option<u32>,
    #[serde(default)]
    pub history: Option<HistoryForm>,
    #[serde(default)]
    pub cpu: Option<CpuForm>,
}

/// What a host's processor takes for a packet.
#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "docs/experiments.md")]
pub struct CpuForm {
    #[serde(default)]
    pub shared: Option<String>,
    #[serde(default)]
    pub receive: TimeText,
    #[serde(default)]
    pub ack: TimeText,
    #[serde(default)]
    pub send: TimeText,
}

/// What a host remembers of connections before the run; 0: nothing.
#[derive(Clone, Copy, Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "docs/experiments.md")]
pub struct HistoryForm {
    #[serde(default)]
    pub ssthresh: u32,
    #[serde(default)]
    pub reordering: u32,
    #[serde(default)]
    pub rtt: TimeText,
    #[serde(default)]
    pub deviation: TimeText,
}

/// One flow, or `count` alike.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "docs/experiments.md")]
pub struct FlowForm {
    #[serde(default)]
    pub cc: Option<String>,
    #[serde(default)]
    pub cc_options: BTreeMap<String, f64>,
    #[serde(default)]
    pub label: String,
    #[serde(default = "one")]
    pub count: u64,
    #[serde(default)]
    pub sender: String,
    #[serde(default)]
    pub receiver: String,
    #[serde(default)]
    pub reverse: bool,
    #[serde(default)]
    pub rtt: Option<TimeText>,
    #[serde(default)]
    pub start: TimeText,
    #[serde(default)]
    pub stagger: TimeText,
    #[serde(default)]
    pub stop: Option<TimeText>,
    #[serde(default)]
    pub bytes: Option<SizeText>,
    #[serde(default)]
    pub send_buffer: Option<SizeText>,
    #[serde(default)]
    pub receive_buffer: Option<SizeText>,
    #[serde(default)]
    pub application: ApplicationForm,
}

/// What the sending application does.
#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[expect(missing_docs, reason = "docs/experiments.md")]
pub enum ApplicationForm {
    #[default]
    Bulk,
    OnOff {
        on: TimeText,
        off: TimeText,
    },
    RequestResponse {
        request: SizeText,
        response: SizeText,
        #[serde(default)]
        think: TimeText,
    },
    ConstantRate {
        rate: RateText,
        #[serde(default = "default_datagram")]
        datagram: SizeText,
    },
    Tunnel {
        #[serde(default = "default_header")]
        header: SizeText,
    },
}

/// Pings from one host to another node.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "docs/experiments.md")]
pub struct ProbeForm {
    pub from: String,
    pub target: String,
    #[serde(default)]
    pub label: String,
    #[serde(default = "default_ping_interval")]
    pub interval: TimeText,
    #[serde(default = "default_ping_size")]
    pub size: SizeText,
    #[serde(default)]
    pub start: TimeText,
}

/// A change of one or several settings of a link.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "docs/experiments.md")]
pub struct ChangeForm {
    pub at: TimeText,
    #[serde(default)]
    pub link: Option<String>,
    #[serde(default)]
    pub rate: Option<RateText>,
    #[serde(default)]
    pub delay: Option<TimeText>,
    #[serde(default)]
    pub rtt: Option<TimeText>,
    #[serde(default)]
    pub loss: Option<ShareText>,
    #[serde(default)]
    pub limit: Option<String>,
    #[serde(default)]
    pub state: Option<StateForm>,
}

/// Whether a link carries anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StateForm {
    /// It does.
    Up,
    /// What waits and what comes is dropped.
    Down,
}

/// What to record.
#[derive(Clone, Copy, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "docs/experiments.md")]
pub struct RecordForm {
    #[serde(default = "default_interval")]
    pub interval: TimeText,
    #[serde(default)]
    pub every_ack: bool,
    #[serde(default = "yes")]
    pub rtts: bool,
    #[serde(default)]
    pub cc_state: bool,
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

const MILLISECOND_NS: u64 = 1_000_000;

const fn one() -> u64 {
    1
}

const fn one_receiver() -> u32 {
    1
}

const fn yes() -> bool {
    true
}

const fn default_datagram() -> SizeText {
    SizeText(1470)
}

const fn default_header() -> SizeText {
    SizeText(2)
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
