//! A job and the phases of its life (Lazer, figure 2).

use placement::timing::History;

/// Position of a job in the list of those that were submitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct JobNumber(pub u32);

/// The request, and the knowledge of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ask {
    pub gpus: u32,
    /// The organization whose history tells how long it may run.
    pub organization: u32,
    /// Training that it needs; `None` where nobody knows.
    pub duration_ms: Option<i64>,
    /// ℓ: until it trains, once it has its GPUs.
    pub load_ms: i64,
    /// p: until its GPUs are free, once it is paused in training.
    pub save_ms: i64,
}

/// From when a job has its GPUs, and from when it trains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    pub loads_from_ms: i64,
    pub trains_from_ms: i64,
}

/// The activity of a job with GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Its GPUs are promised; others still save on them.
    Promised,
    Loading,
    Training,
}

#[derive(Debug, Clone)]
pub(super) struct Job {
    pub ask: Ask,
    pub run: Option<Run>,
    /// Training before the current run.
    pub trained_ms: i64,
    /// Until when its state is being saved: it cannot load before.
    pub saved_at_ms: i64,
    pub level: Level,
}

/// Where a job stands in Tiresias' queues (2D-LAS).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Level {
    pub queue: u8,
    pub entered_ms: i64,
    /// Training before the current run that counts for the queue: from its last promotion on.
    pub counted_ms: i64,
}

impl Job {
    pub const fn new(ask: Ask, now_ms: i64) -> Self {
        let level = Level { queue: 0, entered_ms: now_ms, counted_ms: 0 };
        Self { ask, run: None, trained_ms: 0, saved_at_ms: i64::MIN, level }
    }

    /// Training in the current run.
    pub fn run_ms(&self, now_ms: i64) -> i64 {
        self.run.map_or(0, |run| (now_ms - run.trains_from_ms).max(0))
    }

    pub fn phase(&self, now_ms: i64) -> Option<Phase> {
        self.run.map(|run| match now_ms {
            now if now < run.loads_from_ms => Phase::Promised,
            now if now < run.trains_from_ms => Phase::Loading,
            _ => Phase::Training,
        })
    }

    /// T′: training that it still needs, as far as one knows.
    pub fn remaining_ms(&self, now_ms: i64, history: &History) -> i64 {
        let trained_ms = self.trained_ms + self.run_ms(now_ms);
        match self.ask.duration_ms {
            Some(duration_ms) => (duration_ms - trained_ms).max(0),
            None => history.remaining_ms(self.ask.organization, trained_ms),
        }
    }

    /// The rest of a load that is promised or going on; 0 where it trains.
    pub fn load_left_ms(&self, now_ms: i64) -> i64 {
        self.run.map_or(0, |run| (run.trains_from_ms - now_ms).max(0))
    }
}
