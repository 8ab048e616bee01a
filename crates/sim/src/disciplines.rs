//! From the scenario's queue disciplines to those that run.

use crate::build::rate;
use dragstrip_qdisc::{Discipline, Fifo, Framing, Limit, codel, fq_codel, htb, netem, sfq, tbf};
use dragstrip_scenario::{DelayDistribution, LossModel, NetemSpec, QdiscSpec};
use dragstrip_units::{Duration, Stream};

/// The queue discipline of a link; `name` names its streams of randomness.
pub(crate) fn discipline(spec: &QdiscSpec, seed: u64, name: &str) -> Discipline {
    match spec {
        QdiscSpec::Noqueue => Fifo::new(Limit::None).into(),
        QdiscSpec::Bfifo { limit_bytes } => Fifo::new(Limit::Bytes(*limit_bytes)).into(),
        QdiscSpec::Pfifo { limit_packets } => Fifo::new(Limit::Packets(*limit_packets)).into(),
        QdiscSpec::Tbf { rate_bps, burst_bytes, limit_bytes, peakrate_bps, mtu_bytes } => {
            let peak = peakrate_bps.map(|bps| (rate(bps), mtu_bytes.unwrap_or(1600) as u32));
            let config = tbf::Config {
                rate: rate(*rate_bps),
                burst: *burst_bytes as u32,
                peak,
                framing: Framing::default(),
            };
            tbf::Tbf::new(config, *limit_bytes).into()
        }
        QdiscSpec::Htb {
            rate_bps,
            ceil_bps,
            burst_bytes,
            cburst_bytes,
            overhead_bytes,
            mpu_bytes,
            linklayer_atm,
            leaf,
        } => {
            let config = htb::Config {
                rate: rate(*rate_bps),
                ceil: rate(ceil_bps.unwrap_or(*rate_bps)),
                burst: *burst_bytes,
                cburst: *cburst_bytes,
                framing: Framing {
                    overhead: *overhead_bytes,
                    mpu: *mpu_bytes,
                    atm: *linklayer_atm,
                },
            };
            htb::Htb::new(config, discipline(leaf, seed, name)).into()
        }
        QdiscSpec::Codel { limit_packets, target_ns, interval_ns, ecn } => {
            let params = control_law(*target_ns, *interval_ns, *ecn);
            codel::Codel::new(codel::Config { limit: *limit_packets, params }).into()
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
            let config = fq_codel::Config {
                limit: *limit_packets,
                memory_limit: *memory_limit_bytes,
                flows: *flows,
                quantum: *quantum_bytes,
                drop_batch: *drop_batch_packets,
                params: control_law(*target_ns, *interval_ns, *ecn),
            };
            let mut stream = Stream::named(seed, &format!("link/{name}/fq_codel"));
            fq_codel::FqCodel::new(config, &mut stream).into()
        }
        QdiscSpec::Sfq {
            limit_packets,
            flows,
            divisor,
            depth_packets,
            quantum_bytes,
            perturb_ns,
        } => {
            let config = sfq::Config {
                limit: *limit_packets,
                flows: *flows,
                divisor: *divisor,
                depth: *depth_packets,
                quantum: *quantum_bytes,
                perturb: Duration::from_nanos(*perturb_ns),
            };
            sfq::Sfq::new(config, Stream::named(seed, &format!("link/{name}/sfq"))).into()
        }
        QdiscSpec::Netem(spec) => emulator(spec, seed, name),
    }
}

fn control_law(target_ns: u64, interval_ns: u64, ecn: bool) -> codel::Params {
    codel::Params {
        target: Duration::from_nanos(target_ns),
        interval: Duration::from_nanos(interval_ns),
        ecn,
        ..codel::Params::default()
    }
}

/// A netem; `name` names its stream of randomness.
pub(crate) fn emulator(spec: &NetemSpec, seed: u64, name: &str) -> Discipline {
    let config = netem::Config {
        limit: spec.limit_packets,
        delay: Duration::from_nanos(spec.delay_ns),
        jitter: Duration::from_nanos(spec.jitter_ns),
        delay_correlation: spec.delay_correlation,
        distribution: match spec.distribution {
            DelayDistribution::Uniform => netem::Distribution::Uniform,
            DelayDistribution::Normal => netem::Distribution::Normal,
            DelayDistribution::Pareto => netem::Distribution::Pareto,
            DelayDistribution::Paretonormal => netem::Distribution::ParetoNormal,
        },
        loss: match spec.loss {
            LossModel::None => netem::Loss::None,
            LossModel::Random { probability, correlation } => {
                netem::Loss::Random { probability, correlation }
            }
            LossModel::Gemodel { p, r, one_minus_h, one_minus_k } => {
                netem::Loss::GilbertElliott { p, r, one_minus_h, one_minus_k }
            }
        },
        ecn: spec.ecn,
        duplicate: spec.duplicate,
        duplicate_correlation: spec.duplicate_correlation,
        corrupt: spec.corrupt,
        corrupt_correlation: 0.0,
        reorder: spec.reorder,
        reorder_correlation: spec.reorder_correlation,
        gap: spec.gap,
        rate: spec.rate_bps.map(rate),
    };
    netem::Netem::new(config, Stream::named(seed, &format!("link/{name}/netem"))).into()
}
