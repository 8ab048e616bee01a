//! What the property tests share: random disciplines, random traffic, and a book of every packet.

use dragstrip_qdisc::{
    Backlog, Dequeue, Discipline, DropReason, Ecn, Fifo, Framing, Item, Limit, PacketId, Qdisc,
    Sink, codel, fq_codel, htb, netem, sfq, tbf,
};
use dragstrip_units::{Duration, Instant, Rate, Stream};
use proptest::prelude::*;

/// How to make a discipline (kept as data so that a failing case prints itself).
#[derive(Clone, Debug)]
pub enum Recipe {
    Fifo(Limit),
    Tbf(tbf::Config, u64),
    Htb(htb::Config, Box<Recipe>),
    Codel(codel::Config),
    FqCodel(fq_codel::Config),
    Sfq(sfq::Config),
    Netem(netem::Config),
}

impl Recipe {
    pub fn make(&self, seed: u64) -> Discipline {
        match self {
            Self::Fifo(limit) => Fifo::new(*limit).into(),
            Self::Tbf(config, limit) => tbf::Tbf::new(*config, *limit).into(),
            Self::Htb(config, leaf) => htb::Htb::new(*config, leaf.make(seed)).into(),
            Self::Codel(config) => codel::Codel::new(*config).into(),
            Self::FqCodel(config) => {
                fq_codel::FqCodel::new(*config, &mut Stream::named(seed, "fq_codel")).into()
            }
            Self::Sfq(config) => sfq::Sfq::new(*config, Stream::named(seed, "sfq")).into(),
            Self::Netem(config) => netem::Netem::new(*config, Stream::named(seed, "netem")).into(),
        }
    }

    /// Whether packets of one flow leave in the order they came.
    pub fn keeps_order(&self) -> bool {
        match self {
            Self::Htb(_, leaf) => leaf.keeps_order(),
            Self::Netem(config) => {
                let still = config.jitter == Duration::ZERO || config.rate.is_some();
                still && config.gap == 0 && config.reorder == 0.0
            }
            Self::Fifo(_) | Self::Tbf(..) | Self::Codel(_) | Self::FqCodel(_) | Self::Sfq(_) => {
                true
            }
        }
    }
}

fn rate() -> impl Strategy<Value = Rate> {
    prop_oneof![1 => Just(100_000_000), 2 => 10_000_u64..1_000_000_000]
        .prop_filter_map("zero", Rate::from_bits_per_second)
}

pub fn limit() -> impl Strategy<Value = Limit> {
    prop_oneof![
        Just(Limit::None),
        (0_u64..60_000).prop_map(Limit::Bytes),
        (0_u32..40).prop_map(Limit::Packets),
    ]
}

fn framing() -> impl Strategy<Value = Framing> {
    prop_oneof![
        2 => Just(Framing::default()),
        1 => (-14..50, 0_u32..100, any::<bool>())
            .prop_map(|(overhead, mpu, atm)| Framing { overhead, mpu, atm }),
    ]
}

pub fn htb_config() -> impl Strategy<Value = htb::Config> {
    (rate(), rate(), 0_u64..20_000, 0_u64..20_000, framing()).prop_map(
        |(rate, ceil, burst, cburst, framing)| htb::Config { rate, ceil, burst, cburst, framing },
    )
}

pub fn tbf_config() -> impl Strategy<Value = tbf::Config> {
    let peak = prop::option::of((rate(), 1_000_u32..4_000));
    (rate(), 100_u32..20_000, peak, framing())
        .prop_map(|(rate, burst, peak, framing)| tbf::Config { rate, burst, peak, framing })
}

fn params() -> impl Strategy<Value = codel::Params> {
    (0_u64..20_000, 0_u64..100_000, 0_u32..3_000, any::<bool>()).prop_map(
        |(target, interval, mtu, ecn)| codel::Params {
            target: Duration::from_micros(target),
            interval: Duration::from_micros(interval),
            mtu,
            ecn,
        },
    )
}

fn fq_codel_config() -> impl Strategy<Value = fq_codel::Config> {
    (0_u32..60, 2_000_u64..100_000, 1_u32..8, 1_u32..4_000, 1_u32..70, params()).prop_map(
        |(limit, memory_limit, flows, quantum, drop_batch, params)| fq_codel::Config {
            limit,
            memory_limit,
            flows,
            quantum,
            drop_batch,
            params,
        },
    )
}

fn sfq_config() -> impl Strategy<Value = sfq::Config> {
    (0_u32..60, 1_u32..6, 1_u32..8, 1_u32..20, 1_u32..4_000, 0_u64..20_000).prop_map(
        |(limit, flows, divisor, depth, quantum, perturb)| sfq::Config {
            limit,
            flows,
            divisor,
            depth,
            quantum,
            perturb: Duration::from_micros(perturb),
        },
    )
}

fn fraction() -> impl Strategy<Value = f64> {
    prop_oneof![2 => Just(0.0), 1 => 0.0..=1.0]
}

fn loss() -> impl Strategy<Value = netem::Loss> {
    prop_oneof![
        2 => Just(netem::Loss::None),
        1 => (fraction(), fraction()).prop_map(|(probability, correlation)| {
            netem::Loss::Random { probability, correlation }
        }),
        1 => (fraction(), fraction(), fraction(), fraction()).prop_map(
            |(p, r, one_minus_h, one_minus_k)| netem::Loss::GilbertElliott {
                p,
                r,
                one_minus_h,
                one_minus_k,
            }
        ),
    ]
}

fn netem_config() -> impl Strategy<Value = netem::Config> {
    let shape = prop_oneof![
        3 => Just(netem::Distribution::Uniform),
        1 => Just(netem::Distribution::ParetoNormal),
    ];
    let delay = (0_u64..20_000, prop_oneof![Just(0), 0_u64..30_000], fraction(), shape);
    let doubt = (loss(), any::<bool>(), fraction(), fraction(), fraction(), fraction());
    let order = (prop_oneof![Just(0_u32), 0..4_u32], prop::option::of(rate()), 0_u32..200);
    (delay, doubt, order).prop_map(|(delay, doubt, order)| netem::Config {
        limit: order.2,
        delay: Duration::from_micros(delay.0),
        jitter: Duration::from_micros(delay.1),
        delay_correlation: delay.2,
        distribution: delay.3,
        loss: doubt.0,
        ecn: doubt.1,
        duplicate: doubt.2,
        duplicate_correlation: 0.0,
        corrupt: doubt.3,
        corrupt_correlation: 0.0,
        reorder: doubt.4,
        reorder_correlation: doubt.5,
        gap: order.0,
        rate: order.1,
    })
}

/// Any discipline but htb.
fn leaf() -> impl Strategy<Value = Recipe> {
    prop_oneof![
        limit().prop_map(Recipe::Fifo),
        (tbf_config(), 0_u64..60_000).prop_map(|(config, limit)| Recipe::Tbf(config, limit)),
        (0_u32..60, params())
            .prop_map(|(limit, params)| Recipe::Codel(codel::Config { limit, params })),
        fq_codel_config().prop_map(Recipe::FqCodel),
        sfq_config().prop_map(Recipe::Sfq),
        netem_config().prop_map(Recipe::Netem),
    ]
}

/// Any discipline.
pub fn recipe() -> impl Strategy<Value = Recipe> {
    prop_oneof![
        2 => leaf(),
        1 => (htb_config(), leaf())
            .prop_map(|(config, leaf)| Recipe::Htb(config, Box::new(leaf))),
    ]
}

/// One packet: how long after the one before, its length, flow and ECN field.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    pub gap: Duration,
    pub item: Item,
}

pub fn arrivals(packets_max: usize) -> impl Strategy<Value = Vec<Arrival>> {
    // 121,120 ns: a full frame at 100 Mbit/s.
    let gap = prop_oneof![
        2 => Just(0_u64),
        2 => Just(121_120),
        3 => 0_u64..200_000,
        1 => 0_u64..20_000_000,
    ];
    let len = prop_oneof![1 => Just(66_u32), 3 => Just(1514_u32), 1 => 14_u32..3_000];
    let ecn = prop_oneof![Just(Ecn::NotEct), Just(Ecn::Ect0), Just(Ecn::Ect1), Just(Ecn::Ce)];
    let arrival = (gap, len, 0_u32..5, ecn).prop_map(|(gap, len, flow, ecn)| Arrival {
        gap: Duration::from_nanos(gap),
        item: Item { packet: PacketId(0), len, flow, ecn, ..Item::default() },
    });
    prop::collection::vec(arrival, 0..packets_max).prop_map(|mut arrivals| {
        for (id, arrival) in arrivals.iter_mut().enumerate() {
            arrival.item.packet = PacketId(id as u32);
        }
        arrivals
    })
}

/// Where a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Inside,
    Dropped,
    Left,
}

/// The book of all packets: panics at the first that is where it cannot be.
#[derive(Debug, Default)]
pub struct Book {
    entries: Vec<(Item, Instant, Place)>,
    /// For each packet itself, or the packet it is a copy of: a copy leaves beside its original.
    originals: Vec<u32>,
    inside: Backlog,
    now: Instant,
    /// The last original to leave of each flow.
    last_left: [Option<u32>; 8],
}

impl Book {
    fn enter(&mut self, item: Item, original: u32) {
        self.originals.push(original);
        assert_eq!(item.packet.0 as usize, self.entries.len());
        self.entries.push((item, self.now, Place::Inside));
        self.inside.bytes += u64::from(item.len);
        self.inside.packets += 1;
    }

    fn exit(&mut self, item: Item, place: Place) {
        let (entered, since, was) = &mut self.entries[item.packet.0 as usize];
        assert_eq!(*was, Place::Inside, "{:?} is gone already", item.packet);
        assert_eq!((entered.len, entered.flow), (item.len, item.flow));
        assert!(*since <= self.now);
        *was = place;
        self.inside.bytes -= u64::from(item.len);
        self.inside.packets -= 1;
    }

    /// `item` arrives at the discipline.
    pub fn arrives<Q: Qdisc>(&mut self, qdisc: &mut Q, item: Item, now: Instant) {
        self.now = now;
        let item = Item { packet: PacketId(self.entries.len() as u32), ..item };
        self.enter(item, item.packet.0);
        qdisc.enqueue(item, now, self);
        assert_eq!(qdisc.backlog(), self.inside);
    }

    /// Asks for a packet.
    pub fn asks<Q: Qdisc>(&mut self, qdisc: &mut Q, now: Instant, keeps_order: bool) -> Dequeue {
        self.now = now;
        let answer = qdisc.dequeue(now, self);
        match answer {
            Dequeue::Packet(item) => {
                self.exit(item, Place::Left);
                if keeps_order {
                    let last = &mut self.last_left[item.flow as usize];
                    let original = self.originals[item.packet.0 as usize];
                    assert!(last.is_none_or(|last| last <= original), "{item:?} is late");
                    *last = Some(original);
                }
            }
            Dequeue::Wait(until) => {
                assert!(until > now);
                assert!(self.inside.packets > 0, "waits for nothing");
            }
            Dequeue::Empty => assert_eq!(self.inside, Backlog::default()),
        }
        assert_eq!(qdisc.backlog(), self.inside);
        answer
    }
}

impl Sink for Book {
    fn dropped(&mut self, item: Item, _reason: DropReason) {
        self.exit(item, Place::Dropped);
    }

    fn marked(&mut self, packet: PacketId) {
        let (item, _, place) = &self.entries[packet.0 as usize];
        assert_eq!(*place, Place::Inside);
        assert_ne!(item.ecn, Ecn::NotEct);
    }

    fn duplicated(&mut self, item: Item) -> Item {
        let copy = Item { packet: PacketId(self.entries.len() as u32), ..item };
        self.enter(copy, item.packet.0);
        copy
    }
}
