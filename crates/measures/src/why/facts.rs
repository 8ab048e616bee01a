//! Input of the rules: a run's measures beside the facts of its paths.

use crate::arithmetic::percentiles;
use crate::hops::Hop;
use crate::measured::{Measured, MissingColumn, Window};
use crate::registry::Statistic;
use dragstrip_cc::Signal;
use dragstrip_recording::{Data, column};
use dragstrip_scenario::{
    BufferSizes, FULL_FRAME_BYTES, HostSpec, NodeSpec, PathFacts, QdiscSpec, Sysctls, Transport,
};
use std::collections::BTreeMap;

/// Most flows that are explained: the first ones of a run with more.
pub const FLOWS_MAX: usize = 100;

/// Statistic of `rtt_ms_p50` and similar measures.
const MEDIAN: Statistic = Statistic::Percentile(50.0);

/// A flow.
#[derive(Clone, Debug)]
pub struct Flow {
    pub label: String,
    pub cc: String,
    pub is_tcp: bool,
    pub start_s: f64,
    pub life_s: f64,
    pub goodput_bps: f64,
    /// By what it is compared with those that it competes with.
    pub rival_bps: f64,
    /// From when until when they all live, where `rival_bps` is of that time.
    pub together_s: Option<(f64, f64)>,
    pub received: i64,
    pub segments_sent: f64,
    pub retransmits: f64,
    pub timeouts: Option<i64>,
    pub segment_bytes: f64,
    /// Seconds by what limited it.
    pub limited_s: BTreeMap<String, f64>,
    pub slow_start_s: f64,
    pub loss_s: f64,
    pub rtt_p50_ms: Option<f64>,
    /// Retransmissions until it had left slow start and recovered from what that lost, and when that was (s from its start).
    pub overshoot: Option<(f64, f64)>,
    /// Round trip of one full frame over the empty path; with a medium, without its transmission.
    pub base_rtt_ms: f64,
    pub rate_bps: Option<f64>,
    pub bdp_bytes: Option<f64>,
    /// The link where it queues, by the recording.
    pub link: Option<String>,
    /// The link whose queue drops most of its packets.
    pub loss_link: Option<String>,
    /// The links that its data cross, and the queues among them.
    pub crosses: Vec<String>,
    pub hops: Vec<Hop>,
    /// Its max-min fair rate, where those of its rivals differ.
    pub fair_bps: Option<f64>,
    /// Congestion signal of its algorithm; `options`: the parameters that were set.
    pub signal: Signal,
    pub options: BTreeMap<String, f64>,
    pub ecn: bool,
    pub reductions: f64,
    /// Its largest window, packets, and when it was (s from the run's start).
    pub peak: (f64, f64),
    /// In the time by which it is compared with others.
    pub company: Company,
    /// Backlog at that link when it started.
    pub queue_at_start_bytes: Option<f64>,
    /// Buffers or windows at both ends that can limit the flow; none if one end is no Linux.
    pub buffers: Option<Buffers>,
}

/// Buffers or windows at a flow's ends that can limit it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Buffers {
    /// `tcp_wmem` of the host that sends, `tcp_rmem` of the other.
    Kernel([BufferSizes; 2]),
    /// Windows of streams of a QUIC stack.
    Streams,
}

impl Flow {
    /// The part of its life in which this limited it.
    pub fn limited(&self, limit: &str) -> f64 {
        self.limited_s.get(limit).map_or(0.0, |seconds| self.part(*seconds))
    }

    /// Seconds as a part of its life.
    pub fn part(&self, seconds: f64) -> f64 {
        if self.life_s > 0.0 { seconds / self.life_s } else { 0.0 }
    }
}

/// Medians of a flow while those that it competes with live too.
#[derive(Clone, Copy, Debug, Default)]
pub struct Company {
    pub packets: f64,
    pub rtt_ms: f64,
}

/// A link where flows queue or lose.
#[derive(Clone, Debug)]
pub struct Link {
    pub name: String,
    pub rate_bps: Option<f64>,
    /// For how long some flow lived.
    pub busy_s: f64,
    pub idle_s: Option<f64>,
    /// Idle seconds by what held the senders back then.
    pub idle_after_s: BTreeMap<&'static str, f64>,
    pub backlog_p5_bytes: f64,
    pub backlog_p50_bytes: f64,
    pub dropped: f64,
    pub marked: f64,
    pub buffer_bytes: Option<f64>,
    /// Active queue management: its name and target, ms.
    pub aqm: Option<(&'static str, f64)>,
}

impl Link {
    /// Queueing delay of its median backlog, ms; none without a rate.
    pub fn delay_p50_ms(&self) -> Option<f64> {
        self.rate_bps.map(|rate| self.backlog_p50_bytes * 8e3 / rate)
    }

    /// The part of the time in which it had nothing to send.
    pub fn idle(&self) -> Option<f64> {
        self.idle_s.filter(|_| self.busy_s > 0.0).map(|idle| idle / self.busy_s)
    }
}

/// A run.
#[derive(Clone, Debug)]
pub struct Facts {
    pub duration_s: f64,
    pub flows: Vec<Flow>,
    pub links: Vec<Link>,
    /// Packets that queues dropped, netem's random losses not among them.
    pub queue_drops: f64,
    /// True when a flow queues at another link than the slowest of its path, so that links need their names.
    pub named: bool,
    /// Retransmissions of all flows.
    pub retransmits: f64,
    pub jain: Option<f64>,
}

impl Facts {
    pub fn of(run: &Measured) -> Result<Self, MissingColumn> {
        let count = run.flows().len().min(FLOWS_MAX);
        let flows = (0..count).map(|place| flow(run, place, run.paths()[place].as_ref()));
        let mut flows: Vec<Flow> = flows.collect::<Result<_, _>>()?;
        for set in run.competing() {
            let together =
                run.together(set).map(|(from, until)| (from as f64 / 1e9, until as f64 / 1e9));
            let fair = run.max_min_bps(set);
            for (at, (place, rate)) in set.iter().zip(run.rival_rates(set)?).enumerate() {
                if let Some(flow) = flows.get_mut(*place) {
                    flow.fair_bps = fair.as_ref().map(|fair| fair[at]);
                    (flow.rival_bps, flow.together_s) = (rate, together);
                    flow.company = company(run, *place, run.together(set), flow.rtt_p50_ms)?;
                }
            }
        }
        let mut links: Vec<Link> = Vec::new();
        let queueing = flows.iter().filter_map(|flow| flow.link.as_deref());
        let losing = flows.iter().filter_map(|flow| flow.loss_link.as_deref());
        for name in queueing.chain(losing) {
            if links.iter().all(|link| link.name != name) {
                links.push(link(run, name, &flows)?);
            }
        }
        let duration_s = run.scenario.duration_ns as f64 / 1e9;
        let jain = match run.competing() {
            [set] => run.jain_of(set)?,
            _ => crate::arithmetic::jain(&run.goodputs()),
        };
        let retransmits = run.flows().iter().map(|flow| flow.retransmits as f64).sum();
        let slowest = run.paths().iter().map(|path| path.as_ref()?.bottleneck.as_ref());
        let elsewhere =
            flows.iter().zip(slowest).any(|(flow, slowest)| flow.link.as_ref() != slowest);
        let named = links.len() > 1 || elsewhere;
        let queue_drops = queue_drops(run)?;
        Ok(Self { duration_s, flows, links, queue_drops, named, retransmits, jain })
    }

    /// The link where a flow queues.
    pub fn link_of(&self, flow: &Flow) -> Option<&Link> {
        self.links.iter().find(|link| Some(&link.name) == flow.link.as_ref())
    }
}

fn host<'a>(run: &'a Measured, name: &str) -> Option<&'a HostSpec> {
    run.scenario.nodes.iter().find_map(|node| match node {
        NodeSpec::Host(host) if host.name == name => Some(host),
        NodeSpec::Host(_) | NodeSpec::Router { .. } => None,
    })
}

fn flow(run: &Measured, place: usize, path: Option<&PathFacts>) -> Result<Flow, MissingColumn> {
    let window = Window::default();
    let row = &run.flows()[place];
    let limited = run.limited_s(place, &window)?;
    let sysctls = |name: &str| {
        let host = host(run, name)?;
        let linux = Sysctls::of_kernel(host.profile, &host.sysctl).ok();
        linux.filter(|_| host.profile.name().starts_with("linux"))
    };
    let data = run.scenario.flows.iter().find(|spec| spec.label == row.label);
    let reversed = data.is_some_and(|spec| spec.application.is_asking());
    // Its sockets are its own: nothing is known of their windows.
    let is_program = data.is_some_and(|spec| spec.application.is_program());
    let (from, to) =
        if reversed { (&row.receiver, &row.sender) } else { (&row.sender, &row.receiver) };
    let queueing = &run.queueing()?[place];
    let link = queueing.bottleneck.clone();
    let spec = run.scenario.links.iter().find(|spec| Some(&spec.name) == link.as_ref());
    let rate = spec.and_then(|spec| run.scenario.link_facts(spec).rate_bps);
    let rate_bps = rate.map(|rate| rate as f64);
    let frame_ms = rate_bps.map_or(0.0, |rate| f64::from(FULL_FRAME_BYTES) * 8e3 / rate);
    Ok(Flow {
        label: row.label.clone(),
        cc: row.cc.clone(),
        is_tcp: row.cc != "udp" && !is_program,
        start_s: row.start_ns as f64 / 1e9,
        life_s: row.duration_s(),
        goodput_bps: row.goodput_bps(),
        rival_bps: row.goodput_bps(),
        together_s: None,
        received: row.bytes_received,
        segments_sent: row.segments_sent as f64,
        retransmits: row.retransmits as f64,
        timeouts: row.rto_count,
        segment_bytes: f64::from(run.segment_bytes(place)),
        limited_s: limited.into_iter().map(|(name, s)| (name.to_owned(), s)).collect(),
        slow_start_s: run.slow_start_s(place, &window)?.unwrap_or(0.0),
        loss_s: run.in_state_s(place, &window, &["loss"])?.unwrap_or(0.0),
        rtt_p50_ms: MEDIAN.of(run.rtts_ms(place, &window)?),
        overshoot: overshoot(run, place)?,
        base_rtt_ms: path.map_or(0.0, |path| path.idle_rtt_ns as f64 / 1e6) + frame_ms,
        rate_bps,
        bdp_bytes: path
            .zip(rate_bps)
            .map(|(path, rate)| (rate * path.idle_rtt_ns as f64 / 8e9).floor()),
        loss_link: queueing.loss_link.clone(),
        hops: queueing.hops.clone(),
        fair_bps: None,
        crosses: path.map_or_else(Vec::new, |path| path.forward.clone()),
        signal: signal(&row.cc),
        options: match data.map(|spec| &spec.transport) {
            Some(Transport::Tcp { cc_options, .. } | Transport::Quic { cc_options, .. }) => {
                cc_options.clone()
            }
            Some(Transport::Udp) | None => BTreeMap::new(),
        },
        ecn: row.ecn_negotiated,
        reductions: row.reductions as f64,
        peak: peak(run, place)?,
        company: Company::default(),
        queue_at_start_bytes: link
            .as_deref()
            .map_or(Ok(None), |link| waiting(run, link, row.start_ns))?,
        link,
        buffers: match data.map(|spec| &spec.transport) {
            Some(Transport::Quic { .. }) => Some(Buffers::Streams),
            Some(Transport::Tcp { .. } | Transport::Udp) | None => sysctls(from)
                .zip(sysctls(to))
                .map(|(from, to)| Buffers::Kernel([from.tcp_wmem, to.tcp_rmem])),
        },
    })
}

fn signal(cc: &str) -> Signal {
    let row = dragstrip_cc::about().iter().find(|row| row.name == cc);
    row.map_or(Signal::Nothing, |row| row.signal)
}

/// A flow's windows in packets.
fn packets(run: &Measured, place: usize, rows: &[(usize, i64)]) -> Result<Vec<f64>, MissingColumn> {
    let windows = run.ints(&column::samples::cwnd_bytes)?;
    let mss = f64::from(run.segment_bytes(place)).max(1.0);
    Ok(rows.iter().map(|(row, _)| windows[*row] as f64 / mss).collect())
}

fn peak(run: &Measured, place: usize) -> Result<(f64, f64), MissingColumn> {
    let spans = run.spans(place, &Window::default())?;
    let windows = packets(run, place, &spans)?;
    let times = run.ints(&column::samples::time_ns)?;
    // The first of equals.
    let largest = windows.iter().enumerate().rev().max_by(|a, b| a.1.total_cmp(b.1));
    Ok(largest.map_or((0.0, 0.0), |(at, peak)| (*peak, times[spans[at].0] as f64 / 1e9)))
}

fn company(
    run: &Measured,
    place: usize,
    together: Option<(i64, i64)>,
    whole_rtt_ms: Option<f64>,
) -> Result<Company, MissingColumn> {
    let begin = run.flows()[place].start_ns;
    let (window, rtt_ms) = match together {
        None => (Window::default(), whole_rtt_ms),
        Some((from, until)) => {
            let (after_ns, until_ns) = (from - begin, Some(until - begin));
            let window = Window { after_ns, until_ns, ..Window::default() };
            let rtt_ms = MEDIAN.of(run.rtts_ms(place, &window)?);
            (window, rtt_ms)
        }
    };
    let windows = packets(run, place, &run.spans(place, &window)?)?;
    Ok(Company { packets: MEDIAN.of(windows).unwrap_or(0.0), rtt_ms: rtt_ms.unwrap_or(0.0) })
}

/// Backlog of a queue at an instant, bytes: at the last interval that had ended by then.
fn waiting(run: &Measured, link: &str, at_ns: i64) -> Result<Option<f64>, MissingColumn> {
    let times = run.ints(&column::queues::time_ns)?;
    let bytes = run.ints(&column::queues::backlog_bytes)?;
    let before = run.queue_rows(link)?.into_iter().take_while(|row| times[*row] <= at_ns);
    Ok(before.last().map(|row| bytes[row] as f64))
}

/// The states in which a flow begins.
const BEGINNING: [&str; 2] = ["slow_start", "startup"];
/// The states in which a sender has something to repair.
const TROUBLE: [&str; 4] = ["disorder", "cwr", "recovery", "loss"];

fn overshoot(run: &Measured, place: usize) -> Result<Option<(f64, f64)>, MissingColumn> {
    let spans = run.spans(place, &Window::default())?;
    let states = run.words_of(&column::samples::state, &spans)?;
    if states.first().is_none_or(|state| !BEGINNING.contains(state) && !TROUBLE.contains(state)) {
        return Ok(None);
    }
    let calm = |state: &&str| !BEGINNING.contains(state) && !TROUBLE.contains(state);
    let Some(at) = states.iter().position(calm) else { return Ok(None) };
    let row = spans[at].0;
    let again = run.ints(&column::samples::retransmits)?[row];
    let since = run.ints(&column::samples::time_ns)?[row] - run.flows()[place].start_ns;
    Ok((again != Data::NULL).then_some((again as f64, since as f64 / 1e9)))
}

fn link(run: &Measured, name: &str, flows: &[Flow]) -> Result<Link, MissingColumn> {
    let spec = run.scenario.links.iter().find(|spec| spec.name == name);
    let facts = spec.map(|spec| run.scenario.link_facts(spec));
    let mut backlog = run.backlog_bytes(name)?;
    let [p5, p50] = percentiles(&mut backlog, [5.0, 50.0]).unwrap_or_default();
    let packets = facts.as_ref().and_then(|facts| facts.buffer.packets);
    let buffer = facts.as_ref().and_then(|facts| {
        facts
            .buffer
            .bytes
            .or(packets.map(|packets| u64::from(packets) * u64::from(FULL_FRAME_BYTES)))
    });
    Ok(Link {
        name: name.to_owned(),
        rate_bps: facts.as_ref().and_then(|facts| facts.rate_bps).map(|rate| rate as f64),
        busy_s: run.busy().map_or(0.0, |(start, stop)| (stop - start) as f64 / 1e9),
        idle_s: run.idle_s(name)?,
        idle_after_s: idle_after(run, name, flows)?,
        backlog_p5_bytes: p5,
        backlog_p50_bytes: p50,
        dropped: run.queue_total(name, &column::queues::dropped)? as f64,
        marked: run.queue_total(name, &column::queues::marked)? as f64,
        buffer_bytes: buffer.map(|bytes| bytes as f64),
        aqm: spec.and_then(|spec| aqm(&spec.qdisc)),
    })
}

fn queue_drops(run: &Measured) -> Result<f64, MissingColumn> {
    let (names, index) = run.texts(&column::queues::link)?;
    let dropped = run.ints(&column::queues::dropped)?;
    let mut drops = vec![0; names.len()];
    for (link, count) in index.iter().zip(dropped) {
        if let Ok(link) = usize::try_from(*link) {
            drops[link] = drops[link].max(*count);
        }
    }
    let specs: BTreeMap<&str, &QdiscSpec> =
        run.scenario.links.iter().map(|link| (link.name.as_str(), &link.qdisc)).collect();
    let queue = |name: &String| {
        specs.get(name.as_str()).is_some_and(|qdisc| !matches!(qdisc, QdiscSpec::Netem(_)))
    };
    let counted = names.iter().zip(drops).filter(|(name, _)| queue(name));
    Ok(counted.map(|(_, count)| count as f64).sum())
}

fn aqm(qdisc: &QdiscSpec) -> Option<(&'static str, f64)> {
    if let QdiscSpec::Codel(codel) = qdisc {
        return Some((qdisc.kind(), codel.target_ns as f64 / 1e6));
    }
    if let QdiscSpec::FqCodel(codel) = qdisc {
        return Some((qdisc.kind(), codel.target_ns as f64 / 1e6));
    }
    if let QdiscSpec::Cake(cake) = qdisc {
        return Some((qdisc.kind(), cake.target_ns() as f64 / 1e6));
    }
    qdisc.classes().first().and_then(|class| aqm(class.child))
}

/// Seconds by what limited the senders while a link was idle, shared equally by the flows that lived then.
fn idle_after(
    run: &Measured,
    name: &str,
    flows: &[Flow],
) -> Result<BTreeMap<&'static str, f64>, MissingColumn> {
    let mut seconds = BTreeMap::new();
    let Some(idle) = run.idle_intervals(name)? else { return Ok(seconds) };
    let mut reasons: BTreeMap<i64, Vec<&'static str>> = BTreeMap::new();
    let through = || flows.iter().filter(|flow| flow.link.as_deref() == Some(name));
    let first_s = through().map(|flow| flow.start_s).min_by(f64::total_cmp);
    for place in (0..flows.len()).filter(|place| flows[*place].link.as_deref() == Some(name)) {
        let spans = run.spans(place, &Window::default())?;
        let limits = run.limits_of(&spans)?;
        let states = run.words_of(&column::samples::state, &spans)?;
        let times = run.ints(&column::samples::time_ns)?;
        let mut reduced = false;
        for (at, (row, _)) in spans.iter().enumerate() {
            reduced |= flows[place].reductions > 0.0 && !BEGINNING.contains(&states[at]);
            let reason = reason(states[at], limits[at], reduced);
            reasons.entry(times[*row]).or_default().push(reason);
        }
    }
    for (time, idle) in idle {
        if first_s.is_some_and(|first| time as f64 / 1e9 <= first) {
            *seconds.entry("before the flows that queue there start").or_insert(0.0) += idle;
            continue;
        }
        // The first row at or after the interval's end: samples at every ACK have other times.
        let Some((_, reasons)) = reasons.range(time..).next() else { continue };
        for reason in reasons {
            *seconds.entry(*reason).or_insert(0.0) += idle / reasons.len() as f64;
        }
    }
    Ok(seconds)
}

fn reason(state: &str, limit: &str, reduced: bool) -> &'static str {
    match (state, limit) {
        (_, "handshake") => "before the connection exists",
        ("loss", _) => "after a timeout",
        (_, "app") => "while the application has nothing to send",
        (_, "rwnd") => "while the receiver's window is full",
        (_, "sndbuf") => "while the send buffer is full",
        (_, "pacing") => "between paced packets",
        (_, "small_queue") => "while TCP small queues hold data back",
        _ if reduced => "after a reduction of the window",
        (state, _) if BEGINNING.contains(&state) => "in slow start",
        _ => "while a window that was never reduced is in flight",
    }
}
