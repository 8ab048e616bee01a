//! Queue disciplines in the kernel's terms: what tc(8) would send, and what the kernel tells back.

use crate::fault::{Fault, fault};
use crate::netlink::{Attributes, Message, Socket, flag, long, word};
use dragstrip_qdisc::netem::{self, Distribution};
use dragstrip_scenario::{DelayDistribution, LossModel, NetemSpec, QdiscSpec, format_qdisc};

const RTM_NEWQDISC: u16 = 36;
const RTM_GETQDISC: u16 = 38;
const RTM_NEWTCLASS: u16 = 40;
const RTM_GETTCLASS: u16 = 42;
const TC_H_ROOT: u32 = 0xffff_ffff;
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TCA_STATS2: u16 = 7;
/// Handle of the root, of htb's one class, and of the queue in it.
const ROOT: u32 = 0x1_0000;
const CLASS: u32 = 0x1_0001;
const LEAF: u32 = 0x10_0000;

/// Nanoseconds per tick of the packet scheduler (PSCHED_SHIFT in net/pkt_sched.h).
const TICK_NS: u64 = 64;

fn tcmsg(interface: i32, handle: u32, parent: u32) -> Vec<u8> {
    let mut bytes = vec![0; 4];
    bytes.extend_from_slice(&interface.to_ne_bytes());
    for word in [handle, parent, 0] {
        bytes.extend_from_slice(&word.to_ne_bytes());
    }
    bytes
}

/// Puts a queue discipline on an interface.
pub fn install(socket: &mut Socket, interface: i32, spec: &QdiscSpec) -> Result<(), Fault> {
    let QdiscSpec::Htb { leaf, .. } = spec else {
        return add(socket, interface, ROOT, TC_H_ROOT, spec);
    };
    add(socket, interface, ROOT, TC_H_ROOT, spec)?;
    let create = flag::ACK | flag::CREATE | flag::EXCL;
    let mut class = Message::new(RTM_NEWTCLASS, create, &tcmsg(interface, CLASS, ROOT));
    class.text(TCA_KIND, "htb").nest(TCA_OPTIONS, |inside| htb_class(inside, spec));
    socket.ask(class).map_err(|fault| fault.at("htb class"))?;
    add(socket, interface, LEAF, CLASS, leaf)
}

fn add(
    socket: &mut Socket,
    interface: i32,
    handle: u32,
    parent: u32,
    spec: &QdiscSpec,
) -> Result<(), Fault> {
    let create = flag::ACK | flag::CREATE | flag::REPLACE;
    let mut message = Message::new(RTM_NEWQDISC, create, &tcmsg(interface, handle, parent));
    message.text(TCA_KIND, kind(spec));
    options(&mut message, spec);
    socket.ask(message).map_err(|fault| fault.at(kind(spec))).map(drop)
}

/// The kernel's name of a discipline.
pub const fn kind(spec: &QdiscSpec) -> &'static str {
    match spec {
        QdiscSpec::Noqueue => "noqueue",
        QdiscSpec::Bfifo { .. } => "bfifo",
        QdiscSpec::Pfifo { .. } => "pfifo",
        QdiscSpec::Tbf { .. } => "tbf",
        QdiscSpec::Htb { .. } => "htb",
        QdiscSpec::Codel { .. } => "codel",
        QdiscSpec::FqCodel { .. } => "fq_codel",
        QdiscSpec::Sfq { .. } => "sfq",
        QdiscSpec::Netem(_) => "netem",
    }
}

/// The time that `bytes` take at `rate_bps`, in ticks, as tc(8) computes it (tc_core.c, in doubles).
fn ticks(rate_bps: u64, bytes: u64) -> u32 {
    let seconds = bytes as f64 / (rate_bps as f64 / 8.0);
    (seconds * 1e9 / TICK_NS as f64) as u32
}

/// struct tc_ratespec. A link layer that is named spares the kernel the old table of 256 sizes.
fn ratespec(rate_bps: u64, overhead: i32, mpu: u32, atm: bool) -> Vec<u8> {
    let mut bytes = vec![0, if atm { 2 } else { 1 }];
    bytes.extend_from_slice(&(overhead as i16).to_ne_bytes());
    bytes.extend_from_slice(&(-1_i16).to_ne_bytes());
    bytes.extend_from_slice(&(mpu as u16).to_ne_bytes());
    bytes.extend_from_slice(&u32::try_from(rate_bps / 8).unwrap_or(u32::MAX).to_ne_bytes());
    bytes
}

fn htb_class(message: &mut Message, spec: &QdiscSpec) {
    let QdiscSpec::Htb {
        rate_bps,
        ceil_bps,
        burst_bytes,
        cburst_bytes,
        overhead_bytes,
        mpu_bytes,
        linklayer_atm,
        leaf: _,
    } = spec
    else {
        return;
    };
    let ceil_bps = ceil_bps.unwrap_or(*rate_bps);
    let mut parameters = ratespec(*rate_bps, *overhead_bytes, *mpu_bytes, *linklayer_atm);
    parameters.extend(ratespec(ceil_bps, *overhead_bytes, *mpu_bytes, *linklayer_atm));
    // buffer, cbuffer, quantum (one packet; there is one class), level, priority
    let words = [ticks(*rate_bps, *burst_bytes), ticks(ceil_bps, *cburst_bytes), 1514, 0, 0];
    parameters.extend(words.into_iter().flat_map(u32::to_ne_bytes));
    message.bytes(1, &parameters); // TCA_HTB_PARMS
    message.u64(6, rate_bps / 8).u64(7, ceil_bps / 8); // TCA_HTB_RATE64, TCA_HTB_CEIL64
}

fn micros(ns: u64) -> u32 {
    u32::try_from(ns / 1_000).unwrap_or(u32::MAX)
}

/// Adds TCA_OPTIONS for a discipline.
fn options(message: &mut Message, spec: &QdiscSpec) {
    match spec {
        QdiscSpec::Noqueue => {}
        QdiscSpec::Bfifo { limit_bytes } => {
            message.u32(TCA_OPTIONS, u32::try_from(*limit_bytes).unwrap_or(u32::MAX));
        }
        QdiscSpec::Pfifo { limit_packets } => {
            message.u32(TCA_OPTIONS, *limit_packets);
        }
        QdiscSpec::Htb { .. } => {
            // struct tc_htb_glob: version 3, rate2quantum 10, default class 1
            let words: [u32; 5] = [3, 10, 1, 0, 0];
            let global: Vec<u8> = words.into_iter().flat_map(u32::to_ne_bytes).collect();
            message.nest(TCA_OPTIONS, |inside| {
                inside.bytes(2, &global);
            });
        }
        QdiscSpec::Tbf { .. } => {
            message.nest(TCA_OPTIONS, |inside| tbf(inside, spec));
        }
        QdiscSpec::Codel { limit_packets, target_ns, interval_ns, ecn } => {
            message.nest(TCA_OPTIONS, |inside| {
                inside.u32(1, micros(*target_ns)).u32(2, *limit_packets);
                inside.u32(3, micros(*interval_ns)).u32(4, u32::from(*ecn));
            });
        }
        QdiscSpec::FqCodel {
            limit_packets,
            memory_limit_bytes,
            flows,
            target_ns,
            interval_ns,
            quantum_bytes,
            drop_batch_packets,
            ecn,
        } => {
            message.nest(TCA_OPTIONS, |inside| {
                inside.u32(1, micros(*target_ns)).u32(2, *limit_packets);
                inside.u32(3, micros(*interval_ns)).u32(4, u32::from(*ecn));
                inside.u32(5, *flows).u32(6, *quantum_bytes).u32(8, *drop_batch_packets);
                inside.u32(9, u32::try_from(*memory_limit_bytes).unwrap_or(u32::MAX));
            });
        }
        QdiscSpec::Sfq {
            limit_packets,
            flows,
            divisor,
            depth_packets,
            quantum_bytes,
            perturb_ns,
        } => {
            let perturb_s = (perturb_ns / 1_000_000_000) as u32;
            let mut words = vec![*quantum_bytes, perturb_s, *limit_packets, *divisor, *flows];
            words.extend([*depth_packets, 0]); // depth, headdrop; then RED, which stays off
            words.resize(16 + 2, 0);
            let bytes: Vec<u8> = words.into_iter().flat_map(u32::to_ne_bytes).collect();
            message.bytes(TCA_OPTIONS, &bytes[..SFQ_V1]);
        }
        QdiscSpec::Netem(spec) => netem_options(message, spec),
    }
}

/// Size of struct tc_sfq_qopt_v1.
const SFQ_V1: usize = 72;

fn tbf(message: &mut Message, spec: &QdiscSpec) {
    let QdiscSpec::Tbf { rate_bps, burst_bytes, limit_bytes, peakrate_bps, mtu_bytes } = spec
    else {
        return;
    };
    let peak = peakrate_bps.unwrap_or(0);
    let mut parameters = ratespec(*rate_bps, 0, 0, false);
    let none = if peak == 0 { vec![0; 12] } else { ratespec(peak, 0, 0, false) };
    parameters.extend(none);
    let mtu = mtu_bytes.unwrap_or(1600);
    let words = [
        u32::try_from(*limit_bytes).unwrap_or(u32::MAX),
        ticks(*rate_bps, *burst_bytes),
        if peak == 0 { 0 } else { ticks(peak, mtu) },
    ];
    parameters.extend(words.into_iter().flat_map(u32::to_ne_bytes));
    message.bytes(1, &parameters).u64(4, rate_bps / 8); // TCA_TBF_PARMS, TCA_TBF_RATE64
    message.u32(6, *burst_bytes as u32); // TCA_TBF_BURST
    if peak > 0 {
        message.u64(5, peak / 8).u32(7, mtu as u32); // TCA_TBF_PRATE64, TCA_TBF_PBURST
    }
}

/// netem's probabilities: 32-bit fixed point (tc_util.c, get_percent).
fn share(probability: f64) -> u32 {
    (probability * f64::from(u32::MAX) + 0.5) as u32
}

fn netem_options(message: &mut Message, spec: &NetemSpec) {
    let NetemSpec {
        limit_packets,
        delay_ns,
        jitter_ns,
        delay_correlation,
        distribution,
        loss,
        duplicate,
        duplicate_correlation,
        corrupt,
        reorder,
        reorder_correlation,
        gap,
        rate_bps,
        ecn,
    } = spec;
    let (random, loss_correlation) = match loss {
        LossModel::None | LossModel::Gemodel { .. } => (0.0, 0.0),
        LossModel::Random { probability, correlation } => (*probability, *correlation),
    };
    // With reordering and no gap, tc sets the gap to 1.
    let gap = if *reorder > 0.0 { (*gap).max(1) } else { *gap };
    let to_ticks = |ns: u64| u32::try_from(ns / TICK_NS).unwrap_or(u32::MAX);
    let head = [
        to_ticks(*delay_ns),
        *limit_packets,
        share(random),
        gap,
        share(*duplicate),
        to_ticks(*jitter_ns),
    ];
    let mut body = Message::new(0, 0, &[]);
    body.u64(10, *delay_ns).u64(11, *jitter_ns); // TCA_NETEM_LATENCY64, _JITTER64
    let correlations = [*delay_correlation, loss_correlation, *duplicate_correlation];
    body.bytes(1, &words(&correlations.map(share)));
    body.bytes(3, &words(&[share(*reorder), share(*reorder_correlation)]));
    body.bytes(4, &words(&[share(*corrupt), 0]));
    if let LossModel::Gemodel { p, r, one_minus_h, one_minus_k } = loss {
        // The kernel wants h where tc(8) is told 1-h, but 1-k as it is.
        let model = [share(*p), share(*r), share(1.0 - *one_minus_h), share(*one_minus_k)];
        body.nest(5, |inside| {
            inside.bytes(2, &words(&model)); // NETEM_LOSS_GE
        });
    }
    if let Some(bps) = rate_bps {
        let bytes = bps / 8;
        body.bytes(6, &words(&[u32::try_from(bytes).unwrap_or(u32::MAX), 0, 0, 0]));
        if bytes > u64::from(u32::MAX) {
            body.u64(8, bytes);
        }
    }
    if *ecn {
        body.u32(7, 1);
    }
    if *jitter_ns > 0
        && let Some(table) = netem::table(shape(*distribution))
    {
        body.bytes(2, &table.iter().flat_map(|entry| entry.to_ne_bytes()).collect::<Vec<u8>>());
    }
    let mut bytes = words(&head);
    bytes.extend_from_slice(body.attributes());
    message.bytes(TCA_OPTIONS, &bytes);
}

const fn shape(distribution: DelayDistribution) -> Distribution {
    match distribution {
        DelayDistribution::Uniform => Distribution::Uniform,
        DelayDistribution::Normal => Distribution::Normal,
        DelayDistribution::Pareto => Distribution::Pareto,
        DelayDistribution::Paretonormal => Distribution::ParetoNormal,
    }
}

fn words(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_ne_bytes()).collect()
}

/// What a queue holds and has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    pub backlog_bytes: u64,
    pub backlog_packets: u64,
    pub sent: u64,
    pub dropped: u64,
    pub marked: u64,
}

/// What the kernel says about a discipline.
#[derive(Debug)]
pub struct Answer {
    pub kind: String,
    pub options: Vec<u8>,
    pub counters: Counters,
}

/// Asks about the queue where packets wait: htb's leaf, or the root.
pub fn read(socket: &mut Socket, interface: i32, spec: &QdiscSpec) -> Result<Answer, Fault> {
    let handle = if matches!(spec, QdiscSpec::Htb { .. }) { LEAF } else { ROOT };
    read_handle(socket, interface, handle)
}

/// Compares what stands on an interface with what should; gives it in words.
pub fn compare(socket: &mut Socket, interface: i32, spec: &QdiscSpec) -> Result<String, Fault> {
    if *spec == QdiscSpec::Noqueue {
        return Ok("noqueue".to_owned());
    }
    let root = read_handle(socket, interface, ROOT)?;
    same(spec, &root)?;
    let QdiscSpec::Htb { leaf, rate_bps, .. } = spec else {
        return Ok(format_qdisc(spec));
    };
    same(leaf, &read_handle(socket, interface, LEAF)?)?;
    let message = Message::new(RTM_GETTCLASS, flag::ECHO | flag::ACK, &tcmsg(interface, CLASS, 0));
    let answer = socket.ask(message).map_err(|fault| fault.at("htb class"))?;
    let class = answer.get(20..).map(Attributes).and_then(|found| found.inside(TCA_OPTIONS));
    // struct tc_htb_opt begins with two struct tc_ratespec, whose last word is the rate in bytes per second.
    let found = class.and_then(|class| word(class.get(1)?, 8)).map(u64::from);
    let wanted = (rate_bps / 8).min(u64::from(u32::MAX));
    if found != Some(wanted) {
        return fault(format!("htb's rate is {found:?} bytes per second, not {wanted}"));
    }
    Ok(format_qdisc(spec))
}

/// A fault if the kind, or the first numbers that the kernel reports, differ.
fn same(spec: &QdiscSpec, answer: &Answer) -> Result<(), Fault> {
    if answer.kind != kind(spec) {
        return fault(format!("the queue is {:?}, not {:?}", answer.kind, kind(spec)));
    }
    let inside = Attributes(&answer.options);
    let number = |attribute: u16| inside.get(attribute).and_then(|value| word(value, 0));
    let checks: Vec<(&str, Option<u32>, u32)> = match spec {
        QdiscSpec::Noqueue | QdiscSpec::Htb { .. } | QdiscSpec::Sfq { .. } => Vec::new(),
        QdiscSpec::Bfifo { limit_bytes } => {
            vec![("limit", word(&answer.options, 0), *limit_bytes as u32)]
        }
        QdiscSpec::Pfifo { limit_packets } => {
            vec![("limit", word(&answer.options, 0), *limit_packets)]
        }
        QdiscSpec::Tbf { rate_bps, .. } => {
            let rate = inside.get(1).and_then(|parameters| word(parameters, 8));
            vec![("rate in bytes per second", rate, (rate_bps / 8) as u32)]
        }
        QdiscSpec::Codel { limit_packets, ecn, .. } => {
            vec![("limit", number(2), *limit_packets), ("ecn", number(4), u32::from(*ecn))]
        }
        QdiscSpec::FqCodel { limit_packets, ecn, flows, .. } => vec![
            ("limit", number(2), *limit_packets),
            ("ecn", number(4), u32::from(*ecn)),
            ("flows", number(5), *flows),
        ],
        QdiscSpec::Netem(spec) => {
            let (latency, limit) = (word(&answer.options, 0), word(&answer.options, 4));
            let ticks = u32::try_from(spec.delay_ns / TICK_NS).unwrap_or(u32::MAX);
            vec![("delay in ticks", latency, ticks), ("limit", limit, spec.limit_packets)]
        }
    };
    for (what, found, wanted) in checks {
        if found != Some(wanted) {
            return fault(format!("{}: {what} is {found:?}, not {wanted}", kind(spec)));
        }
    }
    Ok(())
}

fn read_handle(socket: &mut Socket, interface: i32, handle: u32) -> Result<Answer, Fault> {
    // The answer goes to the asker only if it asks for its echo.
    let flags = flag::ECHO | flag::ACK;
    let parent = if handle == ROOT { TC_H_ROOT } else { 0 };
    let message = Message::new(RTM_GETQDISC, flags, &tcmsg(interface, handle, parent));
    let answer = socket.ask(message).map_err(|fault| fault.at("qdisc"))?;
    let Some(attributes) = answer.get(20..).map(Attributes) else {
        return fault("the kernel did not answer a question about a qdisc");
    };
    let kind = attributes.get(TCA_KIND).unwrap_or_default();
    let kind = String::from_utf8_lossy(kind).trim_end_matches('\0').to_owned();
    let options = attributes.get(TCA_OPTIONS).unwrap_or_default().to_vec();
    let counters = counters(&kind, &attributes);
    Ok(Answer { kind, options, counters })
}

fn counters(kind: &str, attributes: &Attributes<'_>) -> Counters {
    let Some(stats) = attributes.inside(TCA_STATS2) else { return Counters::default() };
    let basic = stats.get(1).unwrap_or_default(); // TCA_STATS_BASIC: bytes, packets
    let queue = stats.get(3).unwrap_or_default(); // TCA_STATS_QUEUE: qlen, backlog, drops, requeues
    let app = stats.get(4).unwrap_or_default(); // TCA_STATS_APP
    let get = |bytes, offset| u64::from(word(bytes, offset).unwrap_or_default());
    let marked = match kind {
        // struct tc_codel_xstats: maxpacket, count, lastcount, ldelay, drop_next, drop_overlimit, ecn_mark
        "codel" => get(app, 24),
        // struct tc_fq_codel_xstats: type 0, then maxpacket, drop_overlimit, ecn_mark
        "fq_codel" if get(app, 0) == 0 => get(app, 12),
        _ => 0,
    };
    Counters {
        backlog_packets: get(queue, 0),
        backlog_bytes: get(queue, 4),
        sent: stats.get(8).and_then(|packets| long(packets, 0)).unwrap_or(get(basic, 8)),
        dropped: get(queue, 8),
        marked,
    }
}
