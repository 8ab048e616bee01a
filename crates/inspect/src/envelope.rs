//! One-way delays between two clocks: their floor, how it drifts, and what lies above it.
//!
//! The difference of two clocks' stamps is a delay plus an offset that grows with the difference of their rates. The least delays lie on a
//! line; it is the edge of the lower convex hull at the middle of the time (Moon, Skelly, Towsley, INFOCOM 1999).

use crate::quantiles::Quantiles;

/// Differences kept; of more, every second one, and so on.
const KEPT_MAX: usize = 16_384;

/// Differences of stamps over time.
#[derive(Debug, Default)]
pub struct Envelope {
    kept: Vec<(i64, i64)>,
    every: u64,
    seen: u64,
    /// The least and the greatest difference.
    pub range: Option<(i64, i64)>,
}

/// The line under the differences.
#[derive(Clone, Copy, Debug)]
pub struct Floor {
    at: i64,
    level: f64,
    slope: f64,
}

impl Floor {
    /// Nanoseconds of difference at a time.
    pub fn level(&self, at: i64) -> f64 {
        self.level + self.slope * (at - self.at) as f64
    }

    /// Parts per million by which the later clock runs faster.
    pub fn skew_ppm(&self) -> f64 {
        self.slope * 1e6
    }
}

impl Envelope {
    /// A difference at a time of the first clock.
    pub fn add(&mut self, at: i64, difference: i64) {
        let (least, most) = self.range.unwrap_or((difference, difference));
        self.range = Some((least.min(difference), most.max(difference)));
        if self.seen.is_multiple_of(self.every.max(1)) {
            if self.kept.len() == KEPT_MAX {
                let mut index = 0;
                self.kept.retain(|_| {
                    index += 1;
                    index % 2 == 1
                });
                self.every = self.every.max(1) * 2;
            }
            if self.seen.is_multiple_of(self.every.max(1)) {
                self.kept.push((at, difference));
            }
        }
        self.seen += 1;
    }

    /// The same of the clocks in the other order.
    pub fn turned(&self) -> Self {
        Self {
            kept: self.kept.iter().map(|(at, difference)| (*at, -difference)).collect(),
            range: self.range.map(|(least, most)| (-most, -least)),
            ..*self
        }
    }

    /// The line under all that was kept; level where the hull has no edge at the middle.
    pub fn floor(&self) -> Option<Floor> {
        let mut points = self.kept.clone();
        points.sort_unstable();
        let (first, last) = (*points.first()?, *points.last()?);
        let mut hull: Vec<(i64, i64)> = Vec::new();
        for point in points {
            while let [.., a, b] = hull[..] {
                let (run, rise) = (i128::from(b.0 - a.0), i128::from(b.1 - a.1));
                if run * i128::from(point.1 - a.1) > rise * i128::from(point.0 - a.0) {
                    break;
                }
                hull.pop();
            }
            hull.push(point);
        }
        let middle = first.0 + (last.0 - first.0) / 2;
        let edge = hull
            .windows(2)
            .find(|edge| edge[0].0 <= middle && middle <= edge[1].0 && edge[0].0 < edge[1].0);
        let Some(&[a, b]) = edge else {
            return Some(Floor { at: first.0, level: self.range?.0 as f64, slope: 0.0 });
        };
        Some(Floor { at: a.0, level: a.1 as f64, slope: (b.1 - a.1) as f64 / (b.0 - a.0) as f64 })
    }

    /// Differences above a line.
    pub fn above(&self, floor: &Floor) -> Quantiles {
        let mut above = Quantiles::default();
        for (at, difference) in &self.kept {
            above.add((*difference as f64 - floor.level(*at)) as i64);
        }
        above
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offset_and_drift_are_taken_away() {
        let mut envelope = Envelope::default();
        for index in 0..100_000_i64 {
            let at = index * 1_000_000;
            let queued = index % 10 * 1_000_000;
            envelope.add(at, 3_700_000_000 + at / 20_000 + 20_000_000 + queued); // 50 ppm
        }
        let floor = envelope.floor().expect("samples");
        assert!((floor.skew_ppm() - 50.0).abs() < 0.01, "{}", floor.skew_ppm());
        let above = envelope.above(&floor);
        assert!((above.at(0.5).expect("samples") / 1e6 - 4.5).abs() < 0.6);
        assert!(above.at(0.0).expect("samples") < 1e5);
    }
}
