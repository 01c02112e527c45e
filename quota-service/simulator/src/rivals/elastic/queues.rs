//! The three feedback queues of Cornucopia (§4.2): where a job stands, and when it moves by itself.

use super::job::Label;

/// Milliseconds of a minute.
const MINUTE_MS: i64 = 60_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Queue {
    /// Interactive jobs. Nothing is taken from them.
    First,
    /// Batch jobs, and interactive ones that run too long to be that.
    Second,
    /// Those that have run for long already.
    Third,
}

/// When a job changes its queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thresholds {
    /// Run time after which a job leaves the first queue: twice the mean of interactive jobs.
    pub first_ms: i64,
    /// Run time after which it leaves the second: twice the mean run time to failure.
    pub second_ms: i64,
    /// Time fully stripped after which it comes back from the third: twice the mean of batch jobs.
    pub third_ms: i64,
}

/// A finished run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    pub label: Label,
    /// Time for which it held any GPU.
    pub executed_ms: i64,
    pub failed: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Mean {
    count: i64,
    sum_ms: i64,
}

impl Mean {
    const fn add(&mut self, ms: i64) {
        self.count += 1;
        self.sum_ms = self.sum_ms.saturating_add(ms);
    }

    const fn twice_or(self, otherwise_ms: i64) -> i64 {
        if self.count == 0 { otherwise_ms } else { 2 * (self.sum_ms / self.count) }
    }
}

/// Thresholds learned from what has finished, moved every [`Learned::EVERY`] jobs.
#[derive(Debug, Clone)]
pub struct Learned {
    interactive: Mean,
    batch: Mean,
    failed: Mean,
    all: Mean,
    thresholds: Thresholds,
}

impl Default for Learned {
    fn default() -> Self {
        Self {
            interactive: Mean::default(),
            batch: Mean::default(),
            failed: Mean::default(),
            all: Mean::default(),
            thresholds: Self::FIRST,
        }
    }
}

impl Learned {
    /// Jobs from one move to the next (§4.2).
    pub const EVERY: i64 = 1_000;
    /// Until the first move: twice the GPU minutes a job of the paper's table 3 (27.4 interactive, 935.3 batch, 734.9 of
    /// all), since it prints no durations. A job holds at least one GPU, so that they are upper bounds of durations.
    pub const FIRST: Thresholds = Thresholds {
        first_ms: 2 * 187_421 * MINUTE_MS / 6_829,
        second_ms: 2 * (187_421 + 22_551_101) * MINUTE_MS / 30_940,
        third_ms: 2 * 22_551_101 * MINUTE_MS / 24_111,
    };

    #[must_use]
    pub const fn thresholds(&self) -> Thresholds {
        self.thresholds
    }

    /// Counts a run; says whether the thresholds moved.
    ///
    /// Where no run has ended in failure, or the source does not say which ones did, the mean of all runs stands in for the
    /// run time to failure: in the Philly cluster the unsuccessful jobs are 17.2 % of the jobs with 17.8 % of the GPU time
    /// (Jeon et al., ATC 2019, table 6), so that one of them runs about as long as any job.
    pub fn finished(&mut self, run: Run) -> bool {
        let Run { label, executed_ms, failed } = run;
        self.all.add(executed_ms);
        match label {
            Label::Interactive => self.interactive.add(executed_ms),
            Label::Batch => self.batch.add(executed_ms),
        }
        if failed {
            self.failed.add(executed_ms);
        }
        if self.all.count % Self::EVERY != 0 {
            return false;
        }
        let Thresholds { first_ms, second_ms, third_ms } = self.thresholds;
        self.thresholds = Thresholds {
            first_ms: self.interactive.twice_or(first_ms),
            second_ms: self.failed.twice_or(self.all.twice_or(second_ms)),
            third_ms: self.batch.twice_or(third_ms),
        };
        true
    }
}

/// The queues' knowledge of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Feedback {
    label: Label,
    queue: Queue,
    holds_gpus: bool,
    /// Until when the two sums count.
    counted_to_ms: i64,
    /// With GPUs, since it came, or came back to the second queue.
    executed_ms: i64,
    /// The same, since it came alone: what its run took.
    executed_in_all_ms: i64,
    /// Without GPUs, in the third queue.
    stripped_ms: i64,
}

impl Feedback {
    #[must_use]
    pub const fn new(label: Label, now_ms: i64) -> Self {
        let queue = match label {
            Label::Interactive => Queue::First,
            Label::Batch => Queue::Second,
        };
        let (executed_ms, executed_in_all_ms, stripped_ms) = (0, 0, 0);
        let (holds_gpus, counted_to_ms) = (false, now_ms);
        Self { label, queue, holds_gpus, counted_to_ms, executed_ms, executed_in_all_ms, stripped_ms }
    }

    #[must_use]
    pub const fn queue(&self) -> Queue {
        self.queue
    }

    /// The run so far, as one that ends now.
    #[must_use]
    pub const fn run(&self, failed: bool) -> Run {
        Run { label: self.label, executed_ms: self.executed_in_all_ms, failed }
    }

    /// Counts up to now. Partial execution is execution: only who holds nothing is stripped (§4.2, §5.1).
    pub fn count(&mut self, now_ms: i64) {
        let passed_ms = (now_ms - self.counted_to_ms).max(0);
        self.counted_to_ms = now_ms;
        if self.holds_gpus {
            self.executed_ms += passed_ms;
            self.executed_in_all_ms += passed_ms;
        } else if self.queue == Queue::Third {
            self.stripped_ms += passed_ms;
        }
    }

    /// Whether it holds any GPU, from now on.
    pub fn hold(&mut self, holds_gpus: bool, now_ms: i64) {
        self.count(now_ms);
        self.holds_gpus = holds_gpus;
    }

    /// When it changes its queue if nothing else happens.
    #[must_use]
    pub fn due_ms(&self, thresholds: &Thresholds) -> Option<i64> {
        let left_ms = match (self.queue, self.holds_gpus) {
            (Queue::First, true) => thresholds.first_ms - self.executed_ms,
            (Queue::Second, true) => thresholds.second_ms - self.executed_ms,
            (Queue::Third, false) => thresholds.third_ms - self.stripped_ms,
            _ => return None,
        };
        Some(self.counted_to_ms + left_ms.max(0))
    }

    /// Changes the queue where that is due; says whether it was. It counts up to now first.
    ///
    /// A job that comes back to the second queue starts from zero there: with its old run time it would leave at once.
    pub fn cross(&mut self, thresholds: &Thresholds, now_ms: i64) -> bool {
        self.count(now_ms);
        if self.due_ms(thresholds).is_none_or(|due_ms| due_ms > now_ms) {
            return false;
        }
        self.queue = match self.queue {
            Queue::First => Queue::Second,
            Queue::Second => Queue::Third,
            Queue::Third => {
                self.executed_ms = 0;
                Queue::Second
            }
        };
        self.stripped_ms = 0;
        true
    }
}
