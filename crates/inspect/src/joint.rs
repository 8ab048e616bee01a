//! Joint results of two captures of a flow.

use crate::pair::{Pair, Way};
use crate::quantiles::Quantiles;
use crate::state::File;
use crate::verdicts::{Judged, Tally};
use serde::Serialize;

/// A flow between two captures.
#[derive(Debug, Serialize)]
pub struct BetweenDocument {
    /// The flow's number.
    pub flow: u64,
    /// The capture nearer to the sender and the other one, from 0.
    pub files: [usize; 2],
    /// The way of the data.
    pub there: WayDocument,
    /// The way of the acknowledgements.
    pub back: WayDocument,
    /// Round trips from the nearer capture to the farther one and back, which need no common clock.
    pub rtt_ms: Rtt,
    /// Offset of the farther capture's clock ahead of the nearer one's, if the least delays of both directions are
    /// equal.
    pub clock_offset_ms: Option<f64>,
    /// Rate difference in parts per million; positive when the farther clock runs faster.
    pub clock_skew_ppm: Option<f64>,
}

/// Round trips in milliseconds.
#[derive(Debug, Serialize)]
pub struct Rtt {
    /// Measurement method.
    pub method: &'static str,
    /// Number of samples.
    pub samples: u64,
    /// The 5th percentile.
    pub p5: Option<f64>,
    /// The median.
    pub p50: Option<f64>,
    /// The 95th percentile.
    pub p95: Option<f64>,
}

/// One direction between two captures.
#[derive(Debug, Serialize)]
pub struct WayDocument {
    /// Packets at its beginning.
    pub packets: u64,
    /// Packets seen at its end too.
    pub matched: u64,
    /// Packets lost while both captures ran.
    pub lost: u64,
    /// One-way delays above their floor: where the least delay has no queue, the time spent in queues.
    pub queueing_ms: Spread,
}

/// Milliseconds.
#[derive(Debug, Serialize)]
pub struct Spread {
    /// The 5th percentile.
    pub p5: Option<f64>,
    /// The median.
    pub p50: Option<f64>,
    /// The 95th percentile.
    pub p95: Option<f64>,
}

/// Joint view of one direction's data in a pair of captures.
pub(crate) struct Between<'a> {
    pair: &'a Pair,
    side: usize,
    files: [(usize, &'a File); 2],
    /// Index of the capture nearer to the sender.
    near: usize,
}

impl<'a> Between<'a> {
    /// None where no packet was seen at both points and answered.
    pub fn of(pair: &'a Pair, side: usize, files: [(usize, &'a File); 2]) -> Option<Self> {
        let near = pair.near?;
        Some(Self { pair, side, files, near: if side == 0 { near } else { 1 - near } })
    }

    /// The file nearer to the sender.
    pub fn near_file(&self) -> usize {
        self.files[self.near].0
    }

    /// Between which times of a point packets of a way that left it must have come to the other one.
    fn span(&self, way: &Way, from: usize) -> (i64, i64) {
        let farther = self.files[1 - from].1;
        let Some((least, most)) = way.delays.range else { return (i64::MAX, i64::MIN) };
        let (least, most) = if from == 0 { (least, most) } else { (-most, -least) };
        let first = farther.first_ns.unwrap_or(i64::MAX);
        (first.saturating_sub(least), farther.last_ns.saturating_sub(most))
    }

    /// The verdicts on retransmissions, and data overtaken.
    pub fn judged(&self) -> (Tally, u64) {
        let way = &self.pair.ways[self.side];
        (way.verdicts(self.near, self.span(way, self.near).1), way.overtaken[self.near])
    }

    /// The verdicts one by one.
    pub fn verdicts(&self) -> Vec<Judged> {
        let way = &self.pair.ways[self.side];
        way.judgements(self.near, self.span(way, self.near).1)
    }

    /// The document's entry.
    pub fn document(&self, flow: u64) -> BetweenDocument {
        let [forward, back] =
            [(self.side, self.near), (1 - self.side, 1 - self.near)].map(|(side, from)| {
                let way = &self.pair.ways[side];
                let delays = if from == 0 { &way.delays } else { &way.delays.turned() };
                let floor = delays.floor();
                let above = floor.map(|floor| delays.above(&floor)).unwrap_or_default();
                let (since, until) = self.span(way, from);
                let way_said = WayDocument {
                    packets: way.shown[from],
                    matched: way.matched,
                    lost: way.lost_packets(from, since, until),
                    queueing_ms: spread(&above),
                };
                (way_said, floor)
            });
        let middle = self.files[self.near].1.first_ns.unwrap_or_default();
        let envelopes = forward.1.zip(back.1);
        let far = self.files[1 - self.near].1.first_ns.unwrap_or_default();
        let trips = &self.pair.trips[self.side];
        let Spread { p5, p50, p95 } = spread(trips);
        BetweenDocument {
            flow,
            files: [self.files[self.near].0, self.files[1 - self.near].0],
            clock_offset_ms: envelopes
                .map(|(forward, back)| (forward.level(middle) - back.level(far)) / 2e6),
            clock_skew_ppm: envelopes
                .map(|(forward, back)| (forward.skew_ppm() - back.skew_ppm()) / 2.0),
            there: forward.0,
            back: back.0,
            rtt_ms: Rtt { method: "two points", samples: trips.count(), p5, p50, p95 },
        }
    }
}

fn spread(quantiles: &Quantiles) -> Spread {
    let ms = |share| quantiles.at(share).map(|ns| ns / 1e6);
    Spread { p5: ms(0.05), p50: ms(0.5), p95: ms(0.95) }
}
