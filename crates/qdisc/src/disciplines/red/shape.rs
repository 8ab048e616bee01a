//! Values that tc(8) computes for the kernel from thresholds, burst and bandwidth (`tc_red.c`, `tc_core.c`).

/// User's parameters; thresholds in `unit` bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish {
    pub(crate) min: u32,
    pub(crate) max: u32,
    /// Bytes per unit of the thresholds: 1, or `avpkt` for CHOKe, which counts packets.
    pub(crate) unit: u32,
    pub(crate) avpkt: u32,
    pub(crate) burst: u32,
}

/// Parameters given to the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// The average moves by 2^-wlog of its distance.
    pub(crate) wlog: u32,
    /// The largest probability as a shift; used when `max_p` is 0.
    pub(crate) plog: u32,
    /// Microseconds of idle time per cell of the table, as a power of two.
    pub(crate) cell_log: u32,
    /// By how many bits the average is shifted after so many cells.
    pub(crate) table: Box<[u8; 256]>,
    /// The largest probability in 1/2³².
    pub(crate) max_p: u32,
}

/// The part of a wish that cannot be met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Impossible {
    /// The burst is shorter than the lower threshold, or too long for any average.
    Burst,
    /// Thresholds that the kernel's 32 bits do not hold.
    Thresholds,
    /// The probability is too small for the distance of the thresholds.
    Probability,
    /// The table has no cell for packets that take so long.
    Bandwidth,
}

impl Default for Shape {
    /// The average is the queue; for configurations that no check has seen.
    fn default() -> Self {
        Self { wlog: 0, plog: 0, cell_log: 0, table: Box::new([0; 256]), max_p: 0 }
    }
}

impl Shape {
    /// `tc_red_eval_ewma`, `tc_red_eval_P`, `tc_red_eval_idle_damping`, and the kernel's `red_check_params`.
    pub(crate) fn new(
        wish: Wish,
        probability: f64,
        bandwidth_bps: u64,
    ) -> Result<Self, Impossible> {
        let Wish { min, max, unit, avpkt, burst } = wish;
        let bytes = |units: u32| units.wrapping_mul(unit);
        let wlog = wlog(bytes(min), burst, avpkt).ok_or(Impossible::Burst)?;
        // fls()
        if max < min || 32 - max.leading_zeros() + wlog >= 32 {
            return Err(Impossible::Thresholds);
        }
        let distance = if unit == 1 { max - min } else { bytes(max).wrapping_sub(bytes(min)) };
        let plog = plog(distance, probability).ok_or(Impossible::Probability)?;
        let (cell_log, table) = damping(wlog, avpkt, bandwidth_bps).ok_or(Impossible::Bandwidth)?;
        // 1 does not fit in 32 bits and arrives as 0.
        let max_p = (probability * 4_294_967_296.0) as u64 as u32;
        Ok(Self { wlog, plog, cell_log, table, max_p })
    }
}

/// The least weight with which a burst, found by an empty queue, brings the average no higher than the lower threshold.
fn wlog(min_bytes: u32, burst: u32, avpkt: u32) -> Option<u32> {
    let packets = f64::from(burst) + 1.0 - f64::from(min_bytes) / f64::from(avpkt);
    if packets < 1.0 {
        return None;
    }
    let reaches = |wlog: i32| {
        let weight = libm::exp2(f64::from(-wlog));
        (1.0 - libm::pow(1.0 - weight, f64::from(burst))) / weight
    };
    (1..32).find(|&wlog| packets <= reaches(wlog)).map(|wlog| wlog as u32)
}

/// Returns the number of doublings after which the probability per unit is above 1.
fn plog(distance: u32, probability: f64) -> Option<u32> {
    if distance == 0 {
        return Some(0);
    }
    let mut share = probability / f64::from(distance);
    (0..32).find(|_| {
        let above = share > 1.0;
        share *= 2.0;
        above
    })
}

/// The table of idle times, and its cell.
fn damping(wlog: u32, avpkt: u32, bandwidth_bps: u64) -> Option<(u32, Box<[u8; 256]>)> {
    let decay = -libm::log(1.0 - libm::exp2(-f64::from(wlog))) / xmit_ticks(avpkt, bandwidth_bps);
    let longest = 31.0 / decay;
    let cell_log = (0..32).find(|&log| longest / libm::exp2(f64::from(log)) < 512.0)?;
    let mut table = Box::new([0; 256]);
    for (cell, shift) in (0_u32..).zip(table.iter_mut()) {
        *shift = (f64::from(cell) * libm::exp2(f64::from(cell_log)) * decay).min(31.0) as u8;
    }
    table[255] = 31;
    Some((cell_log, table))
}

/// `tc_calc_xmittime`: whole microseconds, then whole ticks of 64 ns (iproute2 before 6.15).
fn xmit_ticks(bytes: u32, bps: u64) -> f64 {
    let us = libm::trunc(1e6 * f64::from(bytes) / (bps / 8).max(1) as f64);
    libm::trunc(us * 15.625)
}

#[cfg(test)]
mod tests {
    use super::{Impossible, Shape, Wish};

    const WISH: Wish = Wish { min: 33_333, max: 100_000, unit: 1, avpkt: 1000, burst: 55 };

    /// The shape that tc 6.1.0 shows for `limit 400000 avpkt 1000`.
    #[test]
    fn a_shape_is_what_tc_computes() {
        let shape = Shape::new(WISH, 0.02, 10_000_000).unwrap();
        assert_eq!((shape.wlog, shape.plog, shape.cell_log), (5, 22, 15));
        let first = |shift| shape.table.iter().position(|&cell| cell == shift);
        assert_eq!([1, 2, 3, 4].map(first), [Some(13), Some(25), Some(37), Some(49)]);
        assert_eq!(shape.table[255], 31);
        assert_eq!(shape.max_p, 85_899_345);
        assert_eq!(Shape::new(WISH, 1.0, 10_000_000).unwrap().max_p, 0);
    }

    #[test]
    fn what_has_no_shape_is_told_apart() {
        let of = |wish, probability| Shape::new(wish, probability, 10_000_000).unwrap_err();
        assert_eq!(of(Wish { burst: 10, ..WISH }, 0.02), Impossible::Burst);
        assert_eq!(of(Wish { max: 1 << 31, ..WISH }, 0.02), Impossible::Thresholds);
        assert_eq!(of(Wish { max: 33_332, ..WISH }, 0.02), Impossible::Thresholds);
        assert_eq!(of(WISH, 0.000_001), Impossible::Probability);
        let slow = Shape::new(WISH, 0.02, 8).unwrap_err();
        assert_eq!(slow, Impossible::Bandwidth);
    }
}
