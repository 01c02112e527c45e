//! The HP jobs that were seen: those that ended, and those that are there.

use super::listed::{Listed, floor_hour};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, VecDeque};
use vocab::{HpJob, Organization, TaskId, UnixSeconds};

/// Ended jobs that are kept, the newest.
pub(super) const MOST_ENDED: usize = 16_384;
/// Ended jobs older than this are forgotten: four weeks.
const OLDEST_S: i64 = 28 * 86_400;
/// Present jobs that are distinguished; the demand of others is taken as constant.
pub(super) const MOST_PRESENT: usize = 10_000;
/// Organizations with hazards of their own. Further ones share the first place.
pub(super) const MOST_ORGANIZATIONS: usize = 256;
/// After a gap of so many seconds neither the ends nor the arrivals meanwhile are known.
pub(super) const UNSEEN_S: i64 = 3_600;

/// A job that ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EndedJob {
    pub submitted: UnixSeconds,
    /// From its submission to its start.
    pub waited_s: u32,
    /// From its start to its end.
    pub ran_s: u32,
    pub gpus_milli: u32,
    pub organization: u16,
}

impl EndedJob {
    /// The start of its run.
    pub const fn started(&self) -> UnixSeconds {
        self.submitted.plus_s(self.waited_s as i64)
    }

    /// For how long it was demand, in seconds.
    pub fn lasted_s(&self) -> i64 {
        i64::from(self.waited_s) + i64::from(self.ran_s)
    }
}

/// A job that runs or waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PresentJob {
    pub submitted: UnixSeconds,
    pub started: Option<UnixSeconds>,
    pub gpus_milli: u32,
    /// The most that it had in the hour of the last observation.
    pub most_milli: u32,
    pub organization: u16,
    /// Since when a list that lost many jobs at once lacks it.
    pub unlisted_since: Option<UnixSeconds>,
}

impl PresentJob {
    /// From its submission to its start, or until now, in seconds.
    pub fn waited_s(&self, now: UnixSeconds) -> i64 {
        self.started.unwrap_or(now).since_s(self.submitted).max(0)
    }

    /// For how long it has run, in seconds: 0 while it waits.
    pub fn age_s(&self, now: UnixSeconds) -> i64 {
        self.started.map_or(0, |started| now.since_s(started).max(0))
    }
}

/// Jobs that were there before an observation, and are not in it.
pub(super) struct Left {
    /// By [`key`].
    pub jobs: BTreeMap<u64, PresentJob>,
    /// GPUs of those that are new in it and were submitted before its hour.
    pub early_milli: u64,
    /// GPUs of those that had left in its hour, as they were counted then.
    pub again_milli: u64,
}

/// Numbers of the jobs of a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeenJobs {
    /// Those that run.
    pub running: usize,
    /// Those that wait.
    pub waiting: usize,
    /// Those that ended, as far as they are remembered.
    pub ended: usize,
}

/// Seconds as they are kept: at most 136 years.
pub(super) fn small_s(seconds: i64) -> u32 {
    u32::try_from(seconds).unwrap_or(u32::MAX)
}

/// A job from one observation to the next, in place of its name: of 10,000 jobs two have the same key once in 10¹¹ observations.
fn key(task: &TaskId) -> u64 {
    let digest = Sha256::digest(task.as_str());
    digest.iter().take(8).fold(0, |key, byte| key << 8 | u64::from(*byte))
}

/// The HP jobs of a pool, from one observation to the next. An end is dated to the middle between two observations.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JobHistory {
    /// The first observation.
    pub(super) begun: Option<UnixSeconds>,
    /// From when on every arrival is known.
    pub(super) whole_since: Option<UnixSeconds>,
    pub(super) seen_at: Option<UnixSeconds>,
    /// The place of each; the place 0 has those that came too late for one.
    pub(super) organizations: BTreeMap<Organization, u16>,
    /// In the order of their ends.
    pub(super) ended: VecDeque<EndedJob>,
    /// By [`key`].
    pub(super) present: BTreeMap<u64, PresentJob>,
    /// Of jobs that another scheduler lists.
    pub(super) listed: Option<Listed>,
}

impl JobHistory {
    /// Learns which HP jobs run and wait now. Calls come in the order of time; one that comes earlier teaches nothing.
    pub fn observe(&mut self, now: UnixSeconds, jobs: &[HpJob]) {
        if self.seen_at.is_some_and(|before| now < before) {
            return;
        }
        self.listed = None;
        let Left { jobs: left, .. } = self.replace(now, jobs);
        let gap_s = self.gap_s(now);
        if gap_s <= UNSEEN_S {
            self.end(left.values(), now.plus_s(-gap_s / 2));
        }
        self.seen_at = Some(now);
        self.forget(now);
    }

    /// Since the last observation, in seconds.
    pub(super) fn gap_s(&self, now: UnixSeconds) -> i64 {
        self.seen_at.map_or(i64::MAX, |before| now.since_s(before))
    }

    /// Takes these jobs for those that are there, and returns those that left.
    pub(super) fn replace(&mut self, now: UnixSeconds, jobs: &[HpJob]) -> Left {
        self.begun.get_or_insert(now);
        if self.gap_s(now) > UNSEEN_S {
            self.whole_since = Some(now);
        }
        let (hour, watched) = (floor_hour(now), self.listed.as_ref().map(|listed| listed.hour));
        let is_same_hour = self.seen_at.is_some_and(|before| floor_hour(before) == hour);
        let mut left = Left { jobs: std::mem::take(&mut self.present), early_milli: 0, again_milli: 0 };
        for job in jobs.iter().take(MOST_PRESENT) {
            let key = key(&job.task);
            let known = left.jobs.remove(&key);
            let listed = known.filter(|known| known.unlisted_since.is_none());
            // One that left in the hour that is watched is counted in it.
            let again = known.filter(|job| job.unlisted_since.map(floor_hour) == watched && watched.is_some());
            let of_hour = if is_same_hour { listed.or(again) } else { None };
            let most_milli = of_hour.map_or_else(|| listed.map_or(0, |job| job.gpus_milli), |job| job.most_milli);
            left.again_milli += again.map_or(0, |job| u64::from(job.most_milli));
            let gpus_milli = u32::try_from(job.gpus_milli).unwrap_or(u32::MAX);
            let present = PresentJob {
                // A report may lack the submission of a job that runs: the earliest reported time holds.
                submitted: known.map_or(job.submitted, |known| known.submitted.min(job.submitted)).min(now),
                started: job.started,
                gpus_milli,
                most_milli: gpus_milli.max(most_milli),
                organization: self.place_of(&job.organization),
                unlisted_since: None,
            };
            if listed.is_none() && again.is_none() && present.submitted < hour {
                left.early_milli += u64::from(gpus_milli);
            }
            self.present.insert(key, present);
        }
        left
    }

    /// Seconds for which every arrival is known.
    #[must_use]
    pub fn watched_s(&self) -> i64 {
        self.seen_at.zip(self.whole_since).map_or(0, |(now, since)| now.since_s(since))
    }

    /// Numbers of the jobs that are known.
    #[must_use]
    pub fn seen(&self) -> SeenJobs {
        let running = self.present.values().filter(|job| job.started.is_some()).count();
        SeenJobs { running, waiting: self.present.len() - running, ended: self.ended.len() }
    }

    /// Jobs that waited until they went teach nothing: they were withdrawn.
    pub(super) fn end<'a>(&mut self, gone: impl Iterator<Item = &'a PresentJob>, at: UnixSeconds) {
        for job in gone {
            let Some(started) = job.started else { continue };
            let (waited_s, ran_s) = (small_s(job.waited_s(started)), small_s(at.since_s(started).max(1)));
            let PresentJob { submitted, gpus_milli, organization, .. } = *job;
            self.ended.push_back(EndedJob { submitted, waited_s, ran_s, gpus_milli, organization });
        }
    }

    /// The place of an organization; 0, where those are that came too late for one, if it is not known.
    #[must_use]
    pub fn group_of(&self, organization: &Organization) -> u16 {
        self.organizations.get(organization).copied().unwrap_or(0)
    }

    fn place_of(&mut self, organization: &Organization) -> u16 {
        if let Some(place) = self.organizations.get(organization) {
            return *place;
        }
        let next = self.organizations.len() + 1;
        if next >= MOST_ORGANIZATIONS {
            return 0;
        }
        let place = next as u16;
        self.organizations.insert(organization.clone(), place);
        place
    }

    /// Where a job is forgotten, arrivals before its end are no longer whole.
    pub(super) fn forget(&mut self, now: UnixSeconds) {
        let is_old = |job: &EndedJob| now.since_s(job.submitted) > OLDEST_S;
        while self.ended.len() > MOST_ENDED || self.ended.front().is_some_and(is_old) {
            let Some(job) = self.ended.pop_front() else { return };
            let until = job.submitted.plus_s(job.lasted_s()).min(now);
            self.whole_since = self.whole_since.max(Some(until));
        }
    }
}
