//! Random numbers from a seed: the same seed gives the same attack.

use std::time::Duration;

/// SplitMix64.
pub struct Random(u64);

impl Random {
    /// One stream for each worker of a seed.
    pub fn new(seed: u64, worker: u64) -> Self {
        let mut random = Self(seed ^ worker.wrapping_mul(0xD1B5_4A32_D192_ED03));
        random.next();
        random
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }

    /// A number below `bound`; 0 where `bound` is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    /// True in `percent` of 100 cases.
    pub fn in_percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub fn micros(&mut self, most: usize) -> Duration {
        Duration::from_micros(self.below(most) as u64)
    }
}
