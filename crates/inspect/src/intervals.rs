//! Sets of sequence numbers as disjoint intervals.

/// Disjoint half-open intervals in order, none touching the next.
#[derive(Clone, Debug, Default)]
pub struct Intervals {
    all: Vec<(i64, i64)>,
}

impl Intervals {
    /// Adds `[start, end)` and gives the parts that are new.
    pub fn add(&mut self, start: i64, end: i64) -> Vec<(i64, i64)> {
        let new = self.missing(start, end);
        if new.is_empty() {
            return new;
        }
        let first = self.all.partition_point(|interval| interval.1 < start);
        let last = self.all.partition_point(|interval| interval.0 <= end);
        let mut joined = (start, end);
        if first < last {
            joined = (start.min(self.all[first].0), end.max(self.all[last - 1].1));
        }
        self.all.splice(first..last, [joined]);
        new
    }

    /// The parts of `[start, end)` that are not in the set.
    pub fn missing(&self, start: i64, end: i64) -> Vec<(i64, i64)> {
        let mut gaps = Vec::new();
        let mut from = start;
        for interval in &self.all[self.all.partition_point(|interval| interval.1 <= start)..] {
            if interval.0 >= end {
                break;
            }
            if from < interval.0 {
                gaps.push((from, interval.0));
            }
            from = from.max(interval.1);
        }
        if from < end {
            gaps.push((from, end));
        }
        gaps
    }

    /// End of the covered run that begins at `start`.
    pub fn covered_from(&self, start: i64) -> i64 {
        let at = self.all.partition_point(|interval| interval.1 <= start);
        self.all.get(at).filter(|interval| interval.0 <= start).map_or(start, |held| held.1)
    }

    /// Forgets what is below.
    pub fn forget_below(&mut self, edge: i64) {
        let end_index = self.all.partition_point(|interval| interval.1 <= edge);
        self.all.drain(..end_index);
        if let Some(first) = self.all.first_mut() {
            first.0 = first.0.max(edge);
        }
    }

    /// The length of all together.
    pub fn total(&self) -> i64 {
        self.all.iter().map(|interval| interval.1 - interval.0).sum()
    }

    /// The greatest end.
    pub fn end(&self) -> Option<i64> {
        self.all.last().map(|interval| interval.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contiguous_ranges_are_covered() {
        let mut set = Intervals::default();
        assert_eq!(set.covered_from(3), 3);
        set.add(5, 9);
        assert_eq!([3, 5, 8, 9].map(|at| set.covered_from(at)), [3, 9, 9, 9]);
    }

    #[test]
    fn new_ranges_are_reported_once() {
        let mut set = Intervals::default();
        assert_eq!(set.add(10, 20), [(10, 20)]);
        assert_eq!(set.add(30, 40), [(30, 40)]);
        assert_eq!(set.add(5, 35), [(5, 10), (20, 30)]);
        assert_eq!(set.add(5, 40), []);
        assert_eq!((set.all.len(), set.end()), (1, Some(40)));
        assert_eq!(set.missing(0, 50), [(0, 5), (40, 50)]);
        set.forget_below(20);
        assert_eq!(set.missing(0, 40), [(0, 20)]);
        assert_eq!(set.add(40, 41), [(40, 41)], "what touches is joined");
        assert_eq!(set.all.len(), 1);
    }
}
