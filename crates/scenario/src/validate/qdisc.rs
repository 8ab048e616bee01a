//! The settings of a queue discipline, each on its own; whether a packet of the path fits is
//! `path.rs`'s question.

use super::Report;
use crate::types::{LossModel, NetemSpec, QdiscSpec};

/// The kernel's bounds of sfq (`SFQ_MAX_FLOWS`, `SFQ_MAX_DEPTH`, 65536 hash buckets).
const SFQ_FLOWS_MAX: u32 = 65_408;
const SFQ_DEPTH_MAX: u32 = 127;
const SFQ_DIVISOR_MAX: u32 = 65_536;
/// The kernel's bounds of fq_codel (`fq_codel_init`, `FQ_CODEL_QUANTUM_MAX`).
const FQ_CODEL_FLOWS_MAX: u32 = 65_536;
const QUANTUM_MAX: u32 = 1 << 20;

pub(super) fn check(spec: &QdiscSpec, at: &str, report: &mut Report) {
    match spec {
        QdiscSpec::Noqueue => {}
        QdiscSpec::Bfifo { limit_bytes } => {
            report.at_least(format!("{at}.limit_bytes"), *limit_bytes, 1);
        }
        QdiscSpec::Pfifo { limit_packets } => {
            report.at_least(format!("{at}.limit_packets"), *limit_packets, 1);
        }
        QdiscSpec::Tbf { .. } => check_tbf(spec, at, report),
        QdiscSpec::Htb { .. } => check_htb(spec, at, report),
        QdiscSpec::Codel { limit_packets, target_ns, interval_ns, ecn: _ } => {
            report.at_least(format!("{at}.limit_packets"), *limit_packets, 1);
            check_codel(*target_ns, *interval_ns, at, report);
        }
        QdiscSpec::FqCodel { .. } => check_fq_codel(spec, at, report),
        QdiscSpec::Sfq { .. } => check_sfq(spec, at, report),
        QdiscSpec::Netem(spec) => check_netem(spec, at, report),
    }
}

fn check_tbf(spec: &QdiscSpec, at: &str, report: &mut Report) {
    let QdiscSpec::Tbf { rate_bps, burst_bytes, limit_bytes, peakrate_bps, mtu_bytes } = spec
    else {
        return;
    };
    report.rate(format!("{at}.rate_bps"), *rate_bps);
    report.at_least(format!("{at}.burst_bytes"), *burst_bytes, 1);
    report.at_least(format!("{at}.limit_bytes"), *limit_bytes, 1);
    match (peakrate_bps, mtu_bytes) {
        (None, None) => {}
        (Some(peak), Some(mtu)) => {
            report.rate(format!("{at}.peakrate_bps"), *peak);
            report.at_least(format!("{at}.peakrate_bps"), *peak, *rate_bps);
            report.at_least(format!("{at}.mtu_bytes"), *mtu, 1);
        }
        (Some(_), None) => {
            report.add(format!("{at}.mtu_bytes"), "nothing", "the peak rate's bucket")
        }
        (None, Some(_)) => report.add(format!("{at}.peakrate_bps"), "nothing", "the bucket's rate"),
    }
}

fn check_htb(spec: &QdiscSpec, at: &str, report: &mut Report) {
    let QdiscSpec::Htb {
        rate_bps,
        ceil_bps,
        burst_bytes,
        cburst_bytes,
        overhead_bytes,
        mpu_bytes,
        linklayer_atm: _,
        leaf,
    } = spec
    else {
        return;
    };
    report.rate(format!("{at}.rate_bps"), *rate_bps);
    if let Some(ceil) = ceil_bps {
        report.rate(format!("{at}.ceil_bps"), *ceil);
        report.at_least(format!("{at}.ceil_bps"), *ceil, *rate_bps);
    }
    report.at_least(format!("{at}.burst_bytes"), *burst_bytes, 1);
    report.at_least(format!("{at}.cburst_bytes"), *cburst_bytes, 1);
    // Below -20 a pure ACK (54 bytes at least) might cost nothing.
    report.at_least(format!("{at}.overhead_bytes"), *overhead_bytes, -20);
    report.at_most(format!("{at}.overhead_bytes"), *overhead_bytes, 65_535);
    report.at_most(format!("{at}.mpu_bytes"), *mpu_bytes, 65_535);
    check(leaf, &format!("{at}.leaf"), report);
}

fn check_codel(target_ns: u64, interval_ns: u64, at: &str, report: &mut Report) {
    report.time(format!("{at}.target_ns"), target_ns, 1);
    report.time(format!("{at}.interval_ns"), interval_ns, 1);
}

fn check_fq_codel(spec: &QdiscSpec, at: &str, report: &mut Report) {
    let QdiscSpec::FqCodel {
        limit_packets,
        memory_limit_bytes,
        flows,
        target_ns,
        interval_ns,
        quantum_bytes,
        drop_batch_packets,
        ecn: _,
    } = spec
    else {
        return;
    };
    report.at_least(format!("{at}.limit_packets"), *limit_packets, 1);
    report.at_least(format!("{at}.memory_limit_bytes"), *memory_limit_bytes, 1);
    report.at_least(format!("{at}.flows"), *flows, 1);
    report.at_most(format!("{at}.flows"), *flows, FQ_CODEL_FLOWS_MAX);
    check_codel(*target_ns, *interval_ns, at, report);
    report.at_least(format!("{at}.quantum_bytes"), *quantum_bytes, 1);
    report.at_most(format!("{at}.quantum_bytes"), *quantum_bytes, QUANTUM_MAX);
    report.at_least(format!("{at}.drop_batch_packets"), *drop_batch_packets, 1);
}

fn check_sfq(spec: &QdiscSpec, at: &str, report: &mut Report) {
    let QdiscSpec::Sfq { limit_packets, flows, divisor, depth_packets, quantum_bytes, perturb_ns } =
        spec
    else {
        return;
    };
    report.at_least(format!("{at}.limit_packets"), *limit_packets, 1);
    report.at_least(format!("{at}.flows"), *flows, 1);
    report.at_most(format!("{at}.flows"), *flows, SFQ_FLOWS_MAX);
    if !divisor.is_power_of_two() || *divisor > SFQ_DIVISOR_MAX {
        report.add(
            format!("{at}.divisor"),
            divisor,
            format!("a power of two up to {SFQ_DIVISOR_MAX}"),
        );
    }
    report.at_least(format!("{at}.depth_packets"), *depth_packets, 1);
    report.at_most(format!("{at}.depth_packets"), *depth_packets, SFQ_DEPTH_MAX);
    report.at_least(format!("{at}.quantum_bytes"), *quantum_bytes, 1);
    report.at_most(format!("{at}.quantum_bytes"), *quantum_bytes, QUANTUM_MAX);
    report.time(format!("{at}.perturb_ns"), *perturb_ns, 0);
    if perturb_ns % 1_000_000_000 != 0 {
        report.add(format!("{at}.perturb_ns"), perturb_ns, "whole seconds, as the kernel keeps it");
    }
}

pub(super) fn check_netem(spec: &NetemSpec, at: &str, report: &mut Report) {
    let NetemSpec {
        limit_packets,
        delay_ns,
        jitter_ns,
        delay_correlation,
        distribution: _,
        loss,
        duplicate,
        duplicate_correlation,
        corrupt,
        reorder,
        reorder_correlation,
        gap: _,
        rate_bps,
        ecn: _,
    } = spec;
    report.at_least(format!("{at}.limit_packets"), *limit_packets, 1);
    report.time(format!("{at}.delay_ns"), *delay_ns, 0);
    report.time(format!("{at}.jitter_ns"), *jitter_ns, 0);
    for (field, share) in [
        ("delay_correlation", delay_correlation),
        ("duplicate", duplicate),
        ("duplicate_correlation", duplicate_correlation),
        ("corrupt", corrupt),
        ("reorder", reorder),
        ("reorder_correlation", reorder_correlation),
    ] {
        report.share(format!("{at}.{field}"), *share);
    }
    check_loss(loss, &format!("{at}.loss"), report);
    if let Some(bps) = rate_bps {
        report.rate(format!("{at}.rate_bps"), *bps);
    }
}

fn check_loss(loss: &LossModel, at: &str, report: &mut Report) {
    match loss {
        LossModel::None => {}
        LossModel::Random { probability, correlation } => {
            report.share(format!("{at}.probability"), *probability);
            report.share(format!("{at}.correlation"), *correlation);
        }
        LossModel::Gemodel { p, r, one_minus_h, one_minus_k } => {
            for (field, share) in
                [("p", p), ("r", r), ("one_minus_h", one_minus_h), ("one_minus_k", one_minus_k)]
            {
                report.share(format!("{at}.{field}"), *share);
            }
        }
    }
}
