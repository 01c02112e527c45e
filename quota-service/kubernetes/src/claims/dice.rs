//! Draws from a seed, for tests.

/// The start of an hour.
pub const START: i64 = 1_700_000_000 - 1_700_000_000 % 3_600;

/// Draws from a seed (splitmix64).
pub struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }

    pub fn one_in(&mut self, of: u64) -> bool {
        self.below(of) == 0
    }
}
