//! Arithmetic on plain numbers: percentiles, means, rates, Jain's index.

/// Values up to here are added in one go; more are halved first. Eight sums run side by side. This is the order
/// in which NumPy adds, and bounds the error by the logarithm of the count (Higham, SIAM J. Sci. Comput. 14, 1993).
const BLOCK: usize = 128;
const LANES: usize = 8;

/// The sum of `values`, pairwise.
#[must_use]
pub fn sum(values: &[f64]) -> f64 {
    if values.len() < LANES {
        return values.iter().fold(0.0, |sum, value| sum + value);
    }
    if values.len() <= BLOCK {
        let mut lanes = [0.0; LANES];
        let whole = values.chunks_exact(LANES);
        let rest = whole.remainder();
        for chunk in whole {
            for (lane, value) in lanes.iter_mut().zip(chunk) {
                *lane += value;
            }
        }
        let [a, b, c, d, e, f, g, h] = lanes;
        let sum = ((a + b) + (c + d)) + ((e + f) + (g + h));
        return rest.iter().fold(sum, |sum, value| sum + value);
    }
    let half = values.len() / 2;
    let (first, second) = values.split_at(half - half % LANES);
    sum(first) + sum(second)
}

/// The mean; none of no values.
#[must_use]
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| sum(values) / values.len() as f64)
}

/// The values below which each of `shares` per cent lie, interpolated linearly; none of no values. Puts `values`
/// in another order.
#[must_use]
pub fn percentiles<const N: usize>(values: &mut [f64], shares: [f64; N]) -> Option<[f64; N]> {
    if values.is_empty() {
        return None;
    }
    if values.iter().any(|value| value.is_nan()) {
        return Some([f64::NAN; N]);
    }
    Some(shares.map(|share| one_percentile(values, share)))
}

fn one_percentile(values: &mut [f64], share: f64) -> f64 {
    let last = values.len() - 1;
    let place = last as f64 * (share / 100.0);
    let below = (place.floor() as usize).min(last);
    let (_, &mut low, above) = values.select_nth_unstable_by(below, f64::total_cmp);
    let high = above.iter().copied().min_by(f64::total_cmp).unwrap_or(low);
    let part = place - below as f64;
    // From the nearer end, so that the result lies between the two and the ends are met exactly.
    if part < 0.5 { low + (high - low) * part } else { high - (high - low) * (1.0 - part) }
}

/// The value below which `share` per cent lie; none of no values.
#[must_use]
pub fn percentile(mut values: Vec<f64>, share: f64) -> Option<f64> {
    percentiles(&mut values, [share]).map(|[value]| value)
}

/// (Σx)² / (n·Σx²); none when nothing moved (Jain, Chiu, Hawe, DEC-TR-301, 1984).
#[must_use]
pub fn jain(rates: &[f64]) -> Option<f64> {
    let total = total(rates);
    let squares = rates.iter().fold(0.0, |sum, rate| sum + rate * rate);
    (squares > 0.0).then(|| total * total / (rates.len() as f64 * squares))
}

/// The sum in the order of the values.
pub(crate) fn total(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |sum, value| sum + value)
}

/// Bytes of successive intervals as rates in bit/s over spans of `span_ns` (of all there is, if that is less).
/// An incomplete span at the end is left out.
#[must_use]
pub fn rates_bps(sizes: &[f64], interval_ns: u64, span_ns: u64) -> Vec<f64> {
    let intervals = (span_ns as f64 / interval_ns as f64).round_ties_even() as usize;
    let intervals = intervals.min(sizes.len()).max(1);
    let span_ns = (interval_ns * intervals as u64) as f64;
    sizes.chunks_exact(intervals).map(|span| sum(span) * 8e9 / span_ns).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_interpolate() {
        let values = vec![40.0, 10.0, 20.0, 30.0];
        assert_eq!(percentile(values.clone(), 0.0), Some(10.0));
        assert_eq!(percentile(values.clone(), 100.0), Some(40.0));
        assert_eq!(percentile(values.clone(), 50.0), Some(25.0));
        assert_eq!(percentile(values, 10.0), Some(13.0));
        assert_eq!(percentile(vec![], 50.0), None);
        assert_eq!(percentile(vec![7.0], 95.0), Some(7.0));
        assert!(percentile(vec![7.0, f64::NAN], 95.0).is_some_and(f64::is_nan));
    }

    #[test]
    fn several_percentiles_are_those_of_each() {
        let values: Vec<f64> = (0..1000).map(|n| f64::from((n * 7919) % 1009)).collect();
        let all = percentiles(&mut values.clone(), [95.0, 5.0, 50.0]).unwrap();
        assert_eq!(all.map(Some), [95.0, 5.0, 50.0].map(|share| percentile(values.clone(), share)));
    }

    #[test]
    fn sums_of_every_length_are_complete() {
        for count in [0_u32, 1, 7, 8, 9, 127, 128, 129, 1000, 12_345] {
            let values: Vec<f64> = (1..=count).map(f64::from).collect();
            assert_eq!(sum(&values), f64::from(count) * (f64::from(count) + 1.0) / 2.0);
        }
    }

    #[test]
    fn many_small_values_beside_large_ones_are_not_lost() {
        let values = vec![0.1; 1 << 20];
        assert!((sum(&values) - 0.1 * f64::from(1 << 20)).abs() < 1e-9);
    }

    #[test]
    fn jain_of_equals_is_one() {
        assert_eq!(jain(&[1.0, 1.0, 1.0]), Some(1.0));
        assert_eq!(jain(&[1.0, 0.0, 0.0, 0.0]), Some(0.25));
        assert_eq!(jain(&[0.0]), None);
        assert_eq!(jain(&[]), None);
    }

    #[test]
    fn a_part_of_a_span_does_not_count() {
        let sizes = [1250.0; 25];
        assert_eq!(rates_bps(&sizes, 100_000_000, 1_000_000_000), [100_000.0; 2]);
        assert_eq!(rates_bps(&sizes[..3], 100_000_000, 1_000_000_000), [100_000.0]);
        assert!(rates_bps(&[], 100_000_000, 1_000_000_000).is_empty());
    }
}
