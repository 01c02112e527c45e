//! HP jobs that another scheduler lists: all jobs of an hour, and lists that lose many jobs at once.

use super::history::{JobHistory, Left, MOST_PRESENT, PresentJob, UNSEEN_S};
use std::collections::VecDeque;
use vocab::{HpJob, SECONDS_PER_HOUR, UnixSeconds};

/// Fewer jobs than these may well end together. So many [old](OLD_S) ones, with a third of the GPUs of all old ones, end within five minutes
/// in 0.00 to 0.03 % of all cases on Philly, three of its virtual clusters and openb; in 0.4 and 1.0 % on two others, where sweeps end.
const LEAST_DROPPED: usize = 4;
/// Jobs that have run for less may all be gone with the next list.
const OLD_S: i64 = 1_800;
/// Hours whose jobs are remembered.
const WHOLE_HOURS: usize = 4;

/// All listed jobs, hour by hour.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Listed {
    /// The start of the hour that is watched.
    pub hour: UnixSeconds,
    /// Whether it was watched from its start on.
    pub is_whole: bool,
    /// GPUs of the jobs that left in it, each with the most that it had, in thousandths.
    pub left_milli: u64,
    /// Hours that were watched from start to end, the oldest first, with the GPUs of all of their jobs.
    pub whole: VecDeque<(UnixSeconds, u64)>,
}

/// Jobs that a list lost at once: they count as if they ran on until usage tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DroppedJobs {
    /// How many.
    pub jobs: usize,
    /// Their GPUs, in thousandths.
    pub gpus_milli: u64,
    /// The time of the first list that lacked the last of them.
    pub since: UnixSeconds,
}

/// The start of the hour of a time.
pub(super) const fn floor_hour(at: UnixSeconds) -> UnixSeconds {
    UnixSeconds::new(at.get().saturating_sub(at.get().rem_euclid(SECONDS_PER_HOUR)))
}

fn milli<'a>(jobs: impl Iterator<Item = &'a PresentJob>, of: fn(&PresentJob) -> u32) -> u64 {
    jobs.filter(|job| job.unlisted_since.is_none()).map(|job| u64::from(of(job))).sum()
}

const fn of_gpus(job: &PresentJob) -> u32 {
    job.gpus_milli
}

const fn runs(job: &PresentJob) -> bool {
    job.started.is_some() && job.unlisted_since.is_none()
}

impl JobHistory {
    /// Learns which HP jobs another scheduler lists, as [`Self::observe`] does. Where at least four that ran for half an hour leave the list
    /// at once, with a third of the GPUs of those, and a third of all that ran leave, it may have become a part: all that left then stay, as if
    /// they ran and waited on, until they are listed again or [`Self::end_dropped`] ends them.
    pub fn observe_listed(&mut self, now: UnixSeconds, jobs: &[HpJob]) {
        if self.seen_at.is_some_and(|before| now < before) {
            return;
        }
        let gap_s = self.gap_s(now);
        let is_old = |job: &&PresentJob| runs(job) && job.age_s(now) >= OLD_S;
        let running =
            |old: bool| milli(self.present.values().filter(|job| if old { is_old(job) } else { runs(job) }), of_gpus);
        let (ran_milli, ran_long_milli) = (running(false), running(true));
        let most_milli = milli(self.present.values(), |job| job.most_milli);
        let mut left = self.replace(now, jobs);
        let (hour, before) = (floor_hour(now), self.seen_at.map(floor_hour));
        for job in left.jobs.values_mut().filter(|job| before != Some(hour) && job.unlisted_since.is_none()) {
            // It may have been there in the new hour, too, unless that begins with this list.
            job.most_milli = if now == hour { 0 } else { job.gpus_milli };
        }
        let left_milli = milli(left.jobs.values(), |job| job.most_milli);
        self.count_hour(now, (most_milli, left_milli), &left);
        if gap_s <= UNSEEN_S {
            let old: Vec<&PresentJob> = left.jobs.values().filter(is_old).collect();
            let is_third = |gone: u64, of: u64| gone.saturating_mul(3) >= of;
            let is_drop = old.len() >= LEAST_DROPPED
                && is_third(milli(old.into_iter(), of_gpus), ran_long_milli)
                && is_third(milli(left.jobs.values().filter(|job| runs(job)), of_gpus), ran_milli);
            for (key, mut job) in std::mem::take(&mut left.jobs) {
                if is_drop {
                    job.unlisted_since.get_or_insert(now);
                }
                let stays = job.unlisted_since.is_some() && self.present.len() < MOST_PRESENT;
                let of = if stays { &mut self.present } else { &mut left.jobs };
                of.insert(key, job);
            }
            self.end(left.jobs.values(), now.plus_s(-gap_s / 2));
        }
        self.seen_at = Some(now);
        self.forget(now);
    }

    /// All jobs that were listed at any time of an hour, in thousandths of a GPU, each with the most that it had: no less than they
    /// ever had together, but for jobs that came and went between two lists. None where the hour was not watched from start to end.
    #[must_use]
    pub fn listed_milli(&self, hour: UnixSeconds) -> Option<u64> {
        self.listed.as_ref()?.whole.iter().find(|(of, _)| *of == hour).map(|(_, milli)| *milli)
    }

    /// The same of the hour that is watched, as far as it was.
    #[must_use]
    pub fn listed_so_far_milli(&self) -> u64 {
        let present = milli(self.present.values(), |job| job.most_milli);
        self.listed.as_ref().map_or(present, |listed| listed.left_milli.saturating_add(present))
    }

    /// Jobs that a list lost at once and that may run on; none where there are none.
    #[must_use]
    pub fn dropped(&self) -> Option<DroppedJobs> {
        let gone = || self.present.values().filter_map(|job| Some((job.unlisted_since?, u64::from(job.gpus_milli))));
        let since = gone().map(|(since, _)| since).max()?;
        Some(DroppedJobs { jobs: gone().count(), gpus_milli: gone().map(|(_, milli)| milli).sum(), since })
    }

    /// Those that the lists lost until then have ended.
    pub fn end_dropped(&mut self, until: UnixSeconds) {
        let is_over = |job: &PresentJob| job.unlisted_since.filter(|since| *since <= until);
        let over: Vec<(UnixSeconds, PresentJob)> =
            self.present.values().filter_map(|job| Some((is_over(job)?, *job))).collect();
        if over.is_empty() {
            return;
        }
        self.present.retain(|_, job| is_over(job).is_none());
        for (since, job) in &over {
            self.end(std::iter::once(job), *since);
        }
        self.ended.make_contiguous().sort_by_key(|job| job.submitted.plus_s(job.lasted_s()));
    }

    /// `most_milli` is of the jobs before this observation, `left_milli` of those that left, in the hour of now.
    fn count_hour(&mut self, now: UnixSeconds, (most_milli, left_milli): (u64, u64), left: &Left) {
        let (hour, gap_s) = (floor_hour(now), self.gap_s(now));
        let next = Listed { hour, is_whole: now == hour, left_milli: 0, whole: VecDeque::new() };
        let listed = self.listed.get_or_insert(next);
        if gap_s > UNSEEN_S {
            *listed = Listed { hour, is_whole: now == hour, left_milli: 0, whole: VecDeque::new() };
            return;
        }
        if listed.hour == hour {
            listed.left_milli = listed.left_milli.saturating_sub(left.again_milli).saturating_add(left_milli);
            return;
        }
        if listed.is_whole {
            let all_milli = listed.left_milli.saturating_add(most_milli).saturating_add(left.early_milli);
            listed.whole.push_back((listed.hour, all_milli));
            listed.whole.drain(..listed.whole.len().saturating_sub(WHOLE_HOURS));
        }
        (listed.hour, listed.is_whole, listed.left_milli) = (hour, true, left_milli);
    }
}
