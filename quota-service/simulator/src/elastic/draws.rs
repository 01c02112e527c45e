//! Draws, each kind by a stream of its own: one more draw of one kind changes nothing of another.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

#[derive(Debug, Clone, Copy)]
pub enum Stream {
    Labels = 1,
    Mislabelled = 2,
    NonElastic = 3,
}

pub fn stream(seed: u64, stream: Stream) -> ChaCha8Rng {
    let mut draws = ChaCha8Rng::seed_from_u64(seed);
    draws.set_stream(stream as u64);
    draws
}

/// So many of these, each as likely as any other.
pub fn some(mut of: Vec<usize>, share: f64, draws: &mut ChaCha8Rng) -> Vec<usize> {
    let count = (of.len() as f64 * share).round() as usize;
    for index in 0..count {
        let other = draws.random_range(index..of.len());
        of.swap(index, other);
    }
    of.truncate(count);
    of
}
