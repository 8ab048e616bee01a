//! The tins, the packets in them and the bandwidth share of each (`cake_config_*`, `cake_set_rate`).

use super::cobalt::Params;
use super::config::{Config, Diffserv};
use crate::contract::Dscp;
use crate::disciplines::FRAME;

/// Bandwidth share of a tin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share {
    /// Bytes per second, up to which it goes before those below it; zero without a shaper.
    pub rate: u64,
    /// Bytes in turn without a shaper.
    pub quantum: i64,
}

/// The tins of a shaper of `rate` bytes per second.
pub(super) fn shares(diffserv: Diffserv, rate: u64) -> Vec<Share> {
    let part = |shift: u32| Share { rate: rate >> shift, quantum: 1024 >> shift };
    match diffserv {
        Diffserv::Besteffort => vec![Share { rate, quantum: 65_535 }],
        Diffserv::Diffserv3 => [0, 4, 2].map(part).to_vec(),
        Diffserv::Diffserv4 => [0, 4, 1, 2].map(part).to_vec(),
        Diffserv::Precedence | Diffserv::Diffserv8 => {
            let next = |share: &Share| {
                let Share { rate, quantum } = *share;
                Some(Share { rate: rate.wrapping_mul(7) >> 3, quantum: (quantum * 7) >> 3 })
            };
            std::iter::successors(Some(Share { rate, quantum: 256 }), next).take(8).collect()
        }
    }
}

/// The tin of packets with this DSCP.
pub(super) fn tin_of(diffserv: Diffserv, dscp: Dscp) -> usize {
    let dscp = dscp.value();
    match diffserv {
        Diffserv::Besteffort => 0,
        Diffserv::Precedence => usize::from(dscp >> 3),
        Diffserv::Diffserv3 => match dscp {
            1 | 8 => 1,
            4 | 44 | 46 | 48 | 56 => 2,
            _ => 0,
        },
        Diffserv::Diffserv4 => match dscp {
            1 | 8 => 1,
            4 | 16 | 18 | 20 | 22 | 24 | 26 | 28 | 30 | 34 | 36 | 38 => 2,
            32 | 40 | 44 | 46 | 48 | 56 => 3,
            _ => 0,
        },
        Diffserv::Diffserv8 => match dscp {
            1 => 0,
            2 | 8 | 10 | 12 | 14 => 1,
            24 | 26 | 28 | 30 | 34 | 36 | 38 => 3,
            4 | 18 | 20 | 22 => 4,
            16 => 5,
            32 | 40 | 44 | 46 => 6,
            48 | 56 => 7,
            _ => 2,
        },
    }
}

/// The time that a byte takes: `(bytes × ns) >> shift`, with at most 34 significant bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ByteTime {
    ns: u64,
    shift: u32,
}

impl ByteTime {
    /// At so many bytes per second, but at least 64; zero: no time at all.
    pub(super) fn at(rate: u64) -> Self {
        const LEAST: u64 = 64;
        const BITS: u32 = 34;
        if rate == 0 {
            return Self::default();
        }
        let (mut ns, mut shift) = ((1_000_000_000 << BITS) / rate.max(LEAST), BITS);
        while ns >> BITS != 0 {
            ns >>= 1;
            shift -= 1;
        }
        Self { ns, shift }
    }

    pub(super) fn shapes(self) -> bool {
        self.ns > 0
    }

    /// Nanoseconds of so many bytes.
    #[inline]
    pub(super) fn of(self, bytes: u32) -> i64 {
        (u64::from(bytes).wrapping_mul(self.ns) >> self.shift) as i64
    }
}

/// Values derived from a tin's rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Terms {
    pub time: ByteTime,
    /// Bytes of a flow in turn, before hosts are counted.
    pub quantum: u32,
    pub cobalt: Params,
}

/// The terms of a tin of `rate` bytes per second.
pub(super) fn terms(rate: u64, config: &Config) -> Terms {
    const QUANTUM_LEAST: u64 = 300;
    let time = ByteTime::at(rate);
    let quantum =
        if rate == 0 { FRAME } else { (rate >> 12).clamp(QUANTUM_LEAST, FRAME.into()) as u32 };
    let (asked, interval) = (config.target_us() * 1_000, config.rtt_us * 1_000);
    let mtu_time = time.of(FRAME) as u64;
    let target = asked.max(mtu_time * 3 / 2);
    let interval = (interval + target - asked).max(target * 2);
    Terms { time, quantum, cobalt: Params { target, interval, mtu_time } }
}

#[cfg(test)]
mod tests {
    use super::{Diffserv, shares, terms, tin_of};
    use crate::contract::Dscp;
    use crate::disciplines::cake::Config;
    use crate::disciplines::cake::config::{AckFilter, Charge, Isolation};

    fn config(mbit: u64) -> Config {
        Config {
            rate: mbit * 125_000,
            diffserv: Diffserv::Besteffort,
            isolation: Isolation::default(),
            rtt_us: 100_000,
            memory: None,
            charge: Charge { raw: true, ..Charge::default() },
            ack_filter: AckFilter::default(),
            ingress: false,
            wash: false,
        }
    }

    /// Quantum, target and interval in microseconds and memory, as tc shows them of a Linux 6.1.
    #[test]
    fn terms_and_memory_follow_from_the_rate() {
        for (mbit, quantum, target_us, interval_us, memory) in [
            (0, 1514, 5_000, 100_000, 15_503_360),
            (1, 300, 18_168, 113_168, 4 << 20),
            (10, 305, 5_000, 100_000, 4 << 20),
            (100, 1514, 5_000, 100_000, 5_000_000),
            (1_000, 1514, 5_000, 100_000, 15_503_360),
        ] {
            let config = config(mbit);
            let terms = terms(config.rate, &config);
            assert_eq!(terms.quantum, quantum);
            let micros = [terms.cobalt.target, terms.cobalt.interval].map(|ns| ns.div_ceil(1_000));
            assert_eq!(micros, [target_us, interval_us], "{mbit}");
            assert_eq!(config.memory_limit(), memory);
        }
        let explicit = Config { memory: Some(30_000), ..config(1) };
        assert_eq!(explicit.memory_limit(), 30_000);
    }

    #[test]
    fn bulk_of_diffserv3_has_a_sixteenth() {
        let config = config(10);
        let rates =
            shares(Diffserv::Diffserv3, config.rate).into_iter().map(|share| share.rate * 8);
        assert_eq!(rates.collect::<Vec<_>>(), [10_000_000, 625_000, 2_500_000]);
        let bulk = terms(78_125, &config).cobalt;
        assert_eq!([bulk.target, bulk.interval].map(|ns| ns.div_ceil(1_000)), [29_069, 124_069]);
        let quanta = |diffserv| -> Vec<i64> {
            shares(diffserv, 0).iter().map(|share| share.quantum).collect()
        };
        assert_eq!(quanta(Diffserv::Diffserv4), [1024, 64, 512, 256]);
        assert_eq!(quanta(Diffserv::Diffserv8), [256, 224, 196, 171, 149, 130, 113, 98]);
        assert_eq!(quanta(Diffserv::Besteffort), [65_535]);
    }

    /// The number of the 64 codepoints in each tin, and the tins of the well-known ones.
    #[test]
    fn tins_take_their_codepoints() {
        let tin = |diffserv, value| tin_of(diffserv, Dscp::new(value).unwrap());
        let count = |diffserv| {
            let mut tins = [0; 8];
            (0..64).for_each(|value| tins[tin(diffserv, value)] += 1);
            tins
        };
        assert_eq!(count(Diffserv::Besteffort), [64, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(count(Diffserv::Precedence), [8; 8]);
        assert_eq!(count(Diffserv::Diffserv3), [57, 2, 5, 0, 0, 0, 0, 0]);
        assert_eq!(count(Diffserv::Diffserv4), [44, 2, 12, 6, 0, 0, 0, 0]);
        assert_eq!(count(Diffserv::Diffserv8), [1, 5, 40, 7, 4, 1, 4, 2]);
        // LE, CS1, CS0, AF41, CS4, EF, CS6.
        let dscps = [1, 8, 0, 34, 32, 46, 48];
        assert_eq!(dscps.map(|value| tin(Diffserv::Diffserv3, value)), [1, 1, 0, 0, 0, 2, 2]);
        assert_eq!(dscps.map(|value| tin(Diffserv::Diffserv4, value)), [1, 1, 0, 2, 3, 3, 3]);
        assert_eq!(dscps.map(|value| tin(Diffserv::Diffserv8, value)), [0, 1, 2, 3, 6, 6, 7]);
    }
}
