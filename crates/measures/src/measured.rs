//! A recording with what the measures need of it at hand.

use crate::alone;
use crate::hops::Queueing;
use dragstrip_recording::{ColumnDef, Data, Recording, TCPSTAT_NS, column};
use dragstrip_scenario::{NodeSpec, PathFacts, QdiscSpec, Scenario};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::OnceLock;

/// Measured part of a flow.
#[derive(Clone, Debug, Default)]
pub struct Window {
    /// Left out at the flow's start.
    pub after_ns: i64,
    /// Its end, counted like `after_ns` from the flow's start; none: the flow's own.
    pub until_ns: Option<i64>,
    /// Only samples with this state of the algorithm.
    pub state: Option<String>,
}

/// A row of the table `flows`.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "named and explained as the columns are")]
pub struct Flow {
    pub flow: i64,
    pub label: String,
    /// The congestion control; `udp` where there is none.
    pub cc: String,
    pub sender: String,
    pub receiver: String,
    pub start_ns: i64,
    /// The end of the run where none is recorded.
    pub stop_ns: i64,
    pub bytes_received: i64,
    pub segments_sent: i64,
    pub retransmits: i64,
    /// None where a kernel counts those of several flows together.
    pub rto_count: Option<i64>,
    pub reductions: i64,
    pub ecn_negotiated: bool,
    pub datagrams_lost: Option<i64>,
}

impl Flow {
    /// End of the window, ns from the run's start.
    pub(crate) fn end_ns(&self, window: &Window) -> i64 {
        let until = window.until_ns.map(|until| self.start_ns.saturating_add(until));
        until.map_or(self.stop_ns, |until| until.min(self.stop_ns))
    }

    /// From start to stop.
    #[must_use]
    pub fn duration_s(&self) -> f64 {
        (self.stop_ns - self.start_ns) as f64 / 1e9
    }

    /// New bytes that reached the receiver, over the flow's duration.
    #[must_use]
    pub fn goodput_bps(&self) -> f64 {
        let duration_s = self.duration_s();
        if duration_s > 0.0 { (self.bytes_received * 8) as f64 / duration_s } else { 0.0 }
    }
}

/// A measure needs a column that the recording lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissingColumn {
    /// The table.
    pub table: &'static str,
    /// The column.
    pub column: &'static str,
}

impl fmt::Display for MissingColumn {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "the table `{}` lacks the column `{}`", self.table, self.column)
    }
}

/// Rows of each flow, by the flow's place.
#[derive(Debug)]
struct ByFlow {
    order: Vec<u32>,
    /// `order[starts[place]..starts[place + 1]]` are the rows of the flow at `place`, ascending.
    starts: Vec<usize>,
}

/// A recording with what the measures need of it at hand.
#[derive(Debug)]
pub struct Measured {
    /// The scenario.
    pub scenario: Scenario,
    recording: Recording,
    flows: Vec<Flow>,
    by_flow: [OnceLock<Result<ByFlow, MissingColumn>>; 7],
    sets: OnceLock<Vec<Vec<usize>>>,
    alone_s: OnceLock<Vec<Option<f64>>>,
    pub(crate) paths: OnceLock<Vec<Option<PathFacts>>>,
    pub(crate) queueing: OnceLock<Result<Vec<Queueing>, MissingColumn>>,
}

/// A table with rows of flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    Samples,
    Received,
    Rtts,
    Spp,
    Tcpstat,
    Video,
    Frames,
}

impl Of {
    const fn columns(self) -> (&'static ColumnDef, &'static ColumnDef) {
        match self {
            Self::Samples => (&column::samples::time_ns, &column::samples::flow),
            Self::Received => (&column::received::time_ns, &column::received::flow),
            Self::Rtts => (&column::rtts::time_ns, &column::rtts::flow),
            Self::Spp => (&column::spp::time_ns, &column::spp::flow),
            Self::Tcpstat => (&column::tcpstat::time_ns, &column::tcpstat::flow),
            Self::Video => (&column::video::time_ns, &column::video::flow),
            Self::Frames => (&column::frames::time_ns, &column::frames::flow),
        }
    }
}

impl Measured {
    /// Measures of the recording of `scenario`.
    ///
    /// # Errors
    /// A column of `flows` that is needed is missing.
    pub fn new(scenario: Scenario, recording: Recording) -> Result<Self, MissingColumn> {
        let flows = flows(&recording, scenario.duration_ns as i64)?;
        Ok(Self {
            scenario,
            recording,
            flows,
            by_flow: Default::default(),
            sets: OnceLock::new(),
            alone_s: OnceLock::new(),
            paths: OnceLock::new(),
            queueing: OnceLock::new(),
        })
    }

    /// The flows in the order of the scenario.
    #[must_use]
    pub fn flows(&self) -> &[Flow] {
        &self.flows
    }

    /// The places of flows that compete with each other, a list per set ([`Scenario::competing`]).
    #[must_use]
    pub fn competing(&self) -> &[Vec<usize>] {
        self.sets.get_or_init(|| {
            let numbers = if self.flows.len() > 1 { self.scenario.competing() } else { Vec::new() };
            let mut sets = Vec::new();
            for place in 0..self.flows.len() {
                let number = numbers.get(place).map_or(0, |number| *number as usize);
                sets.resize_with(sets.len().max(number + 1), Vec::new);
                sets[number].push(place);
            }
            sets
        })
    }

    /// Seconds that each flow of the scenario with a size takes alone.
    pub(crate) fn alone_s(&self) -> &[Option<f64>] {
        self.alone_s.get_or_init(|| alone::alone_s(&self.scenario))
    }

    pub(crate) fn ints(&self, def: &'static ColumnDef) -> Result<&[i64], MissingColumn> {
        ints(&self.recording, def)
    }

    pub(crate) fn texts(
        &self,
        def: &'static ColumnDef,
    ) -> Result<(&[String], &[i32]), MissingColumn> {
        texts(&self.recording, def)
    }

    pub(crate) fn flags(&self, def: &'static ColumnDef) -> Result<&[bool], MissingColumn> {
        match self.recording.column(def) {
            Some(Data::Bool(values)) => Ok(values),
            Some(Data::Int(_) | Data::Text { .. } | Data::Float(_)) | None => Err(missing(def)),
        }
    }

    /// A flow's rows in its lifetime, without the part that the window leaves out.
    pub(crate) fn rows(
        &self,
        of: Of,
        place: usize,
        window: &Window,
    ) -> Result<Vec<usize>, MissingColumn> {
        let flow = &self.flows[place];
        let times = self.ints(of.columns().0)?;
        // A row of an interval table closes its interval: the interval must begin inside.
        let lead = match of {
            Of::Received => self.scenario.record.interval_ns as i64,
            Of::Tcpstat => TCPSTAT_NS as i64,
            Of::Samples | Of::Rtts | Of::Spp | Of::Video | Of::Frames => 0,
        };
        let first = flow.start_ns + window.after_ns + lead;
        let last = flow.end_ns(window);
        // The last interval of a run may be shorter than the others, and rates are of whole ones.
        let Scenario { duration_ns, record, .. } = &self.scenario;
        let cut = of == Of::Received && duration_ns % record.interval_ns != 0;
        let part = cut.then_some(*duration_ns as i64);
        let inside = |row: &usize| {
            let time = times[*row];
            (first..=last).contains(&time) && Some(time) != part
        };
        let rows = self.of_flow(of, place)?.iter().map(|row| *row as usize).filter(inside);
        match &window.state {
            Some(state) if of == Of::Samples => {
                let (names, index) = self.texts(&column::samples::state)?;
                let wanted = number_of(names, state);
                Ok(rows.filter(|row| Some(index[*row]) == wanted).collect())
            }
            _ => Ok(rows.collect()),
        }
    }

    fn of_flow(&self, of: Of, place: usize) -> Result<&[u32], MissingColumn> {
        let by_flow = self.by_flow[of as usize].get_or_init(|| self.sort(of));
        let ByFlow { order, starts } = by_flow.as_ref().map_err(|error| *error)?;
        Ok(&order[starts[place]..starts[place + 1]])
    }

    /// A table's rows sorted by flow, found once: a run may have a hundred thousand flows.
    fn sort(&self, of: Of) -> Result<ByFlow, MissingColumn> {
        let numbers = self.ints(of.columns().1)?;
        let places: BTreeMap<i64, usize> =
            self.flows.iter().enumerate().map(|(place, flow)| (flow.flow, place)).collect();
        // Flows are numbered from 0 by every engine; others are looked up.
        let place = |number: i64| {
            let same = usize::try_from(number).ok();
            let same = same.filter(|same| self.flows.get(*same).is_some_and(|f| f.flow == number));
            same.or_else(|| places.get(&number).copied())
        };
        let mut starts = vec![0; self.flows.len() + 1];
        for place in numbers.iter().filter_map(|number| place(*number)) {
            starts[place + 1] += 1;
        }
        for place in 0..self.flows.len() {
            starts[place + 1] += starts[place];
        }
        let mut next = starts.clone();
        let mut order = vec![0; starts[self.flows.len()]];
        for (row, number) in numbers.iter().enumerate() {
            if let Some(place) = place(*number) {
                order[next[place]] = row as u32;
                next[place] += 1;
            }
        }
        Ok(ByFlow { order, starts })
    }

    /// The MSS: the smaller MTU of both hosts less IP and TCP headers, timestamps included unless off.
    #[must_use]
    pub fn segment_bytes(&self, place: usize) -> u32 {
        const HEADERS: u32 = 40;
        const TIMESTAMPS: u32 = 12;
        let flow = &self.flows[place];
        let ends = self.scenario.nodes.iter().filter_map(|node| match node {
            NodeSpec::Host(host) => Some(host),
            NodeSpec::Router { .. } => None,
        });
        let ends = ends.filter(|host| host.name == flow.sender || host.name == flow.receiver);
        let (mut mtu, mut off) = (u32::MAX, false);
        for host in ends {
            mtu = mtu.min(host.mtu_bytes);
            off |= host.sysctl.get("net.ipv4.tcp_timestamps").is_some_and(|value| value == "0");
        }
        mtu.saturating_sub(if off { HEADERS } else { HEADERS + TIMESTAMPS })
    }

    /// From the first flow's start to the last one's stop; none without flows.
    #[must_use]
    pub fn busy(&self) -> Option<(i64, i64)> {
        let start = self.flows.iter().map(|flow| flow.start_ns).min()?;
        Some((start, self.flows.iter().map(|flow| flow.stop_ns).max()?))
    }

    /// Links where packets can wait or be lost, the dumbbell's bottleneck first.
    #[must_use]
    pub fn queued_links(&self) -> Vec<&str> {
        let waits = self.scenario.links.iter().filter(|link| {
            link.rate_bps.is_some_and(|rate| rate > 0)
                || link.medium.is_some()
                || link.netem.is_some()
                || !matches!(link.qdisc, QdiscSpec::Noqueue(_))
        });
        let mut names: Vec<&str> = waits.map(|link| link.name.as_str()).collect();
        names.sort_by_key(|name| !matches!(*name, "r-d" | "r-w"));
        names
    }
}

/// The number of a text in its column.
pub(crate) fn number_of(names: &[String], text: &str) -> Option<i32> {
    names.iter().position(|name| name == text).map(|number| number as i32)
}

const fn missing(def: &ColumnDef) -> MissingColumn {
    MissingColumn { table: def.table, column: def.name }
}

fn ints<'a>(recording: &'a Recording, def: &ColumnDef) -> Result<&'a [i64], MissingColumn> {
    match recording.column(def) {
        Some(Data::Int(values)) => Ok(values),
        Some(Data::Text { .. } | Data::Bool(_) | Data::Float(_)) | None => Err(missing(def)),
    }
}

fn texts<'a>(
    recording: &'a Recording,
    def: &ColumnDef,
) -> Result<(&'a [String], &'a [i32]), MissingColumn> {
    match recording.column(def) {
        Some(Data::Text { names, index }) => Ok((names, index)),
        Some(Data::Int(_) | Data::Bool(_) | Data::Float(_)) | None => Err(missing(def)),
    }
}

fn flows(recording: &Recording, end_ns: i64) -> Result<Vec<Flow>, MissingColumn> {
    use column::flows::{
        bytes_received, cc, datagrams_lost, ecn_negotiated, flow, label, protocol, receiver,
        reductions, retransmits, rto_count, segments_sent, sender, start_ns, stop_ns,
    };
    let numbers = ints(recording, &flow)?;
    let int = |def: &ColumnDef| ints(recording, def);
    let text = |def: &ColumnDef| {
        let (names, index) = texts(recording, def)?;
        Ok(move |row: usize| {
            let number = usize::try_from(index[row]).ok();
            number.map_or_else(String::new, |number| names[number].clone())
        })
    };
    let known = |value: i64| (value != Data::NULL).then_some(value);
    let (labels, protocols, ccs) = (text(&label)?, text(&protocol)?, text(&cc)?);
    let (senders, receivers) = (text(&sender)?, text(&receiver)?);
    let (starts, stops) = (int(&start_ns)?, int(&stop_ns)?);
    let (received, sent) = (int(&bytes_received)?, int(&segments_sent)?);
    let (again, timeouts) = (int(&retransmits)?, int(&rto_count)?);
    let reduced = int(&reductions)?;
    let lost = int(&datagrams_lost)?;
    let Some(Data::Bool(ecn)) = recording.column(&ecn_negotiated) else {
        return Err(missing(&ecn_negotiated));
    };
    let rows = numbers.iter().enumerate().map(|(row, &number)| {
        let congestion = ccs(row);
        Flow {
            flow: number,
            label: labels(row),
            cc: if congestion.is_empty() { protocols(row) } else { congestion },
            sender: senders(row),
            receiver: receivers(row),
            start_ns: starts[row],
            stop_ns: known(stops[row]).unwrap_or(end_ns),
            bytes_received: known(received[row]).unwrap_or(0),
            segments_sent: known(sent[row]).unwrap_or(0),
            retransmits: known(again[row]).unwrap_or(0),
            rto_count: known(timeouts[row]),
            reductions: known(reduced[row]).unwrap_or(0),
            ecn_negotiated: ecn[row],
            datagrams_lost: known(lost[row]),
        }
    });
    Ok(rows.collect())
}
