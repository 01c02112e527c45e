//! How far a job is, on as many pods as it has.

use crate::run::Losses;
use placement::pool::Request;

/// Where a job stands. Work is counted in thousandths of what one pod does in a second; a job that is not elastic does a
/// thousand of them a second.
#[derive(Debug, Clone, Copy, Default)]
pub struct Progress {
    left: i64,
    /// Of it, what has been done since the last checkpoint is lost with an eviction.
    unsaved: i64,
    /// Thousandths of GPU-seconds since then.
    unsaved_milli_gpu_s: u64,
    /// Up to when the two are counted.
    counted_s: i64,
    /// It loads, or changes its pods, until then.
    works_from_s: i64,
    /// The present run has loaded by then, and the GPU time meanwhile: lost with an eviction in spite of checkpoints.
    loaded_s: i64,
    load_milli_gpu_s: u64,
    /// Work a second.
    rate: i64,
    pub held_milli: u64,
    pub queued: i64,
    /// Runs so far; the present one is the last.
    pub runs: u32,
    /// Changes of its pods, each of which sets its end again.
    pub changes: u32,
    pub waited_s: i64,
    pub runs_now: bool,
}

/// Thousandths of the speed on one pod.
fn rate(request: &Request, pods: u32) -> i64 {
    match &request.elastic {
        None => 1_000,
        Some(elastic) => elastic.speeds().map_or(i64::from(pods) * 1_000, |speeds| {
            speeds.get(pods as usize - 1).map_or(0, |speed| i64::from(*speed))
        }),
    }
}

impl Progress {
    /// One that takes so long on what it asks for.
    #[must_use]
    pub fn new(request: &Request, duration_s: i64) -> Self {
        Self { left: duration_s.saturating_mul(rate(request, request.gang.pods)), ..Self::default() }
    }

    /// Counts up to now.
    fn count(&mut self, now_s: i64) {
        let worked_s = (now_s - self.works_from_s.max(self.counted_s)).max(0);
        self.left -= worked_s * self.rate;
        self.unsaved += worked_s * self.rate;
        self.unsaved_milli_gpu_s += (now_s - self.counted_s).max(0) as u64 * self.held_milli;
        self.counted_s = self.counted_s.max(now_s);
    }

    /// It has its first pods; answers from when it works.
    pub fn start(&mut self, request: &Request, starts_s: i64, losses: &Losses) -> i64 {
        let gpus_milli = u64::from(request.gang.pod.gpus.milli()) * u64::from(request.gang.pods);
        let loss_s = if gpus_milli > 8_000 { losses.restart_large_s } else { losses.restart_s };
        let pods = request.core().pods;
        self.waited_s += starts_s - self.queued;
        self.works_from_s = starts_s + if self.runs > 0 { loss_s } else { 0 };
        self.counted_s = starts_s;
        self.runs += 1;
        self.changes += 1;
        self.rate = rate(request, pods);
        self.held_milli = u64::from(request.gang.pod.gpus.milli()) * u64::from(pods);
        self.runs_now = true;
        self.loaded_s = self.works_from_s;
        self.load_milli_gpu_s = (self.loaded_s - starts_s).max(0) as u64 * self.held_milli;
        self.works_from_s
    }

    /// It has other pods than before, and stands still for a moment.
    pub fn resize(&mut self, request: &Request, pods: u32, now_s: i64, stands_still_s: i64) {
        self.count(now_s);
        // Pods that come before it has loaded come with the first ones.
        if now_s > self.loaded_s {
            self.works_from_s = now_s + stands_still_s;
        }
        self.changes += 1;
        self.rate = rate(request, pods);
        self.held_milli = u64::from(request.gang.pod.gpus.milli()) * u64::from(pods);
    }

    /// When it will be done if nothing changes.
    #[must_use]
    pub const fn end_s(&self) -> i64 {
        if self.left <= 0 {
            // Its end and the change of its pods fall into one second.
            return self.counted_s;
        }
        let from_s = if self.works_from_s > self.counted_s { self.works_from_s } else { self.counted_s };
        let (whole, rest) = (self.left / self.rate, self.left % self.rate);
        from_s.saturating_add(whole).saturating_add((rest > 0) as i64)
    }

    /// Whether what is left takes longer than that on what it has.
    #[must_use]
    pub const fn takes_longer_than(&self, seconds: i64) -> bool {
        self.left > self.rate.saturating_mul(seconds)
    }

    pub fn save(&mut self, now_s: i64) {
        self.count(now_s);
        (self.unsaved, self.unsaved_milli_gpu_s) = (0, self.load_milli_gpu_s);
    }

    /// Its run is cut, and what was not saved is lost: so many thousandths of GPU-seconds.
    pub fn cut(&mut self, now_s: i64, leaves_s: i64) -> u64 {
        self.count(now_s);
        self.left += self.unsaved;
        let lost = self.unsaved_milli_gpu_s;
        (self.unsaved, self.unsaved_milli_gpu_s) = (0, 0);
        (self.queued, self.runs_now) = (leaves_s.max(now_s), false);
        lost
    }
}
