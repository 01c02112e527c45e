//! GPUs by when they are free: a count, without nodes, as the simulators of Lazer and Tiresias have it.

use std::collections::BTreeMap;

/// GPUs that nobody has been given: idle now, or free once a paused job has saved its state.
#[derive(Debug, Clone, Default)]
pub struct Gpus {
    /// GPUs by the time from which they are free.
    free: BTreeMap<i64, u32>,
}

impl Gpus {
    #[must_use]
    pub fn new(idle: u32) -> Self {
        let mut gpus = Self::default();
        gpus.give(idle, i64::MIN);
        gpus
    }

    /// Those that nobody has been given, whenever they are free.
    #[must_use]
    pub fn available(&self) -> u32 {
        self.free.values().sum()
    }

    /// Gives GPUs back that are free from then on.
    pub fn give(&mut self, gpus: u32, from_ms: i64) {
        if gpus > 0 {
            *self.free.entry(from_ms).or_insert(0) += gpus;
        }
    }

    /// Takes those that are free first. From when all of them are; `None`, and nothing is taken, where there are too few.
    pub fn take(&mut self, gpus: u32, now_ms: i64) -> Option<i64> {
        if self.available() < gpus {
            return None;
        }
        let (mut left, mut from_ms) = (gpus, now_ms);
        while left > 0 {
            let mut first = self.free.first_entry()?;
            let taken = left.min(*first.get());
            *first.get_mut() -= taken;
            left -= taken;
            from_ms = from_ms.max(*first.key());
            if *first.get() == 0 {
                first.remove();
            }
        }
        Some(from_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_idle_is_taken_before_what_is_still_saved() {
        let mut gpus = Gpus::new(2);
        gpus.give(4, 900);
        gpus.give(1, 700);
        assert_eq!((gpus.available(), gpus.take(1, 500), gpus.take(2, 500)), (7, Some(500), Some(700)));
        assert_eq!((gpus.take(5, 500), gpus.available()), (None, 4));
        assert_eq!((gpus.take(4, 1_000), gpus.take(1, 1_000)), (Some(1_000), None));
    }
}
