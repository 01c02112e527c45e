//! Numbers that follow from a seed (SplitMix64, Steele et al. 2014).

use vocab::TaskId;

/// A stream of numbers; the same seed, the same stream.
#[derive(Debug, Clone)]
pub struct Draw(u64);

impl Draw {
    /// Draws from a seed: the same seed gives the same numbers.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The stream of one task at one time.
    #[must_use]
    pub fn of_task(seed: u64, task: &TaskId, at_s: i64) -> Self {
        let name = task
            .as_str()
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        Self(seed ^ name.rotate_left(17) ^ (at_s as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Uniform on [0, 1): the 53 bits that a double holds.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Uniform on 0..count; none where count is 0.
    pub fn below(&mut self, count: usize) -> Option<usize> {
        self.next().checked_rem(count as u64).map(|number| number as usize)
    }

    /// Latin hypercube samples of [0, 1) (McKay et al. 1979): one in each of `count` equal parts, in random order.
    pub fn latin(&mut self, count: usize) -> Vec<f64> {
        let mut samples: Vec<f64> = (0..count).map(|part| (part as f64 + self.unit()) / count as f64).collect();
        for last in (1..count).rev() {
            samples.swap(last, self.below(last + 1).unwrap_or(last));
        }
        samples
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_of_the_range_has_one_latin_sample_and_a_seed_repeats_itself() {
        let samples = Draw::new(7).latin(10);
        assert_eq!(samples, Draw::new(7).latin(10));
        assert_ne!(samples, Draw::new(8).latin(10));
        let mut parts: Vec<usize> = samples.iter().map(|sample| (sample * 10.0) as usize).collect();
        assert!(!parts.is_sorted(), "the order is drawn, too");
        parts.sort_unstable();
        assert_eq!(parts, (0..10).collect::<Vec<_>>());
    }
}
