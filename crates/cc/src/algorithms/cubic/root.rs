//! The cube root of `tcp_cubic.c` (`cubic_root`), with seeds that are computed instead of listed.

/// Seeds of the cube root: for `i` in 8..64, ⌈64 ∛(i + 1)⌉, an upper bound of 64 ∛x over
/// `[i, i + 1)`. Newton's step from a seed that is too high by e ≤ 4 % ends too high by e² ≤ 0.16 %;
/// its division by 3, done as × 341 / 1024, takes 0.1 % off again.
const ROOT_SEED: [u16; 64] = {
    let mut seeds = [0; 64];
    let mut i = 0;
    let mut root: u32 = 64;
    while i < 64 {
        while root * root * root < (i as u32 + 1) << 18 {
            root += 1;
        }
        seeds[i] = root as u16;
        i += 1;
    }
    seeds
};

/// ∛a within 0.17 % (from 2^20 on; below that rounding to a whole number adds to it): a seed
/// from the top bits, one Newton step.
pub fn cubic_root(a: u64) -> u32 {
    let bits = u64::BITS - a.leading_zeros();
    if bits < 7 {
        // Nearest whole number; 3.5³ = 42.9, 2.5³ = 15.6, 1.5³ = 3.4.
        return u32::from(a > 0) + u32::from(a > 3) + u32::from(a > 15) + u32::from(a > 42);
    }
    // A third of the bits; what is left at the top indexes the seeds: 8..64.
    let shift = ((bits * 84) >> 8) - 1;
    let x = (u64::from(ROOT_SEED[(a >> (3 * shift)) as usize]) << shift) >> 6;
    (((2 * x + a / (x * (x - 1))) * 341) >> 10) as u32
}

#[cfg(test)]
mod tests {
    use super::cubic_root;

    #[test]
    fn the_cube_root_is_within_0_17_percent() {
        for deficit in 1..20_000_u64 {
            let a = 2_681_735_677 * deficit;
            let exact = libm::cbrt(a as f64);
            let error = f64::from(cubic_root(a)) / exact - 1.0;
            assert!(error.abs() < 0.0017, "{a}: {error}");
        }
    }

    #[test]
    fn small_cube_roots_are_rounded_and_all_of_them_are_near() {
        for a in 0..1_000_000_u64 {
            let exact = libm::cbrt(a as f64);
            let error = f64::from(cubic_root(a)) - exact;
            assert!(error.abs() < 0.5 + exact * 0.0017 + 0.8 * f64::from(a >= 64), "{a}: {error}");
        }
    }
}
