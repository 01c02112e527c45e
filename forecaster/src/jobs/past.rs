//! HP jobs of a list from before a pool was watched: how long they lasted and when they came.

use super::arrivals::WINDOW_S;
use super::history::{EndedJob, MOST_ORGANIZATIONS, small_s};
use crate::DamagedBytes;
use crate::bytes::{Reader, Writer};
use std::collections::BTreeMap;
use vocab::{Organization, UnixSeconds};

/// Jobs that are kept, the newest: at most 700 KB as bytes.
pub const MOST_JOBS: usize = 65_536;
/// Older jobs say little of the next hours: eight weeks.
const OLDEST_S: i64 = 56 * 86_400;
const KIND: [u8; 4] = *b"HRJL";
const FORMAT: u8 = 1;

/// An HP job of a list, as if it did not wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedJob {
    /// The organization that submitted it.
    pub organization: Organization,
    /// Thousandths of a GPU, of all its pods.
    pub gpus_milli: u64,
    /// The time of its submission.
    pub submitted: UnixSeconds,
    /// How long it ran, in seconds.
    pub ran_s: u64,
}

/// A job of the past.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PastJob {
    /// As far as it was seen.
    pub job: EndedJob,
    /// Whether it ended before the list did.
    pub is_ended: bool,
}

/// The HP jobs of a list, until a time: what a service that begins knows of arrivals and ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastJobs {
    /// The place of each; the place 0 has those that came too late for one.
    pub(super) organizations: BTreeMap<Organization, u16>,
    /// In the order of their submission.
    pub(super) jobs: Vec<PastJob>,
    /// From here on every arrival is known,
    pub(super) since: UnixSeconds,
    /// and until here.
    pub(super) until: UnixSeconds,
}

/// Until when a list knows the arrivals. One that was made before `until` ends with its last job: hours without an arrival after it would
/// say that nothing comes. A silence that no earlier one is as long as, and longer than a window of arrivals, is taken for its end.
fn known_until(known: &[&ListedJob], until: UnixSeconds) -> UnixSeconds {
    let silences_s = known.windows(2).map(|pair| pair[1].submitted.since_s(pair[0].submitted));
    let longest_s = silences_s.max().unwrap_or_default().max(WINDOW_S);
    // The second after it, as the last job came before the end.
    let end =
        known.last().filter(|last| until.since_s(last.submitted) > longest_s).map(|last| last.submitted.plus_s(1));
    end.unwrap_or(until)
}

impl PastJobs {
    /// The jobs of a list that were submitted before `until`, the newest where there are more than are kept. Later times are not
    /// used: a job that still ran is known to have run so far. Where the list seems to end earlier, arrivals are known until its last job.
    /// None where there is no job.
    #[must_use]
    pub fn of(list: &[ListedJob], until: UnixSeconds) -> Option<Self> {
        let is_known =
            |job: &&ListedJob| job.submitted < until && until.since_s(job.submitted) <= OLDEST_S && job.ran_s > 0;
        let mut known: Vec<&ListedJob> = list.iter().filter(is_known).collect();
        known.sort_by(|one, other| (one.submitted, &one.organization).cmp(&(other.submitted, &other.organization)));
        let oldest = known.len().saturating_sub(MOST_JOBS);
        let known = &known[oldest..];
        let since = known.first()?.submitted;
        let (jobs, arrivals_until) = (Vec::with_capacity(known.len()), known_until(known, until));
        let mut past = Self { organizations: BTreeMap::new(), jobs, since, until: arrivals_until };
        for job in known {
            let seen_s = until.since_s(job.submitted);
            let ran_s = i64::try_from(job.ran_s).unwrap_or(i64::MAX);
            let organization = past.place_of(&job.organization);
            past.jobs.push(PastJob {
                job: EndedJob {
                    submitted: job.submitted,
                    waited_s: 0,
                    ran_s: small_s(ran_s.min(seen_s)),
                    gpus_milli: u32::try_from(job.gpus_milli).unwrap_or(u32::MAX),
                    organization,
                },
                is_ended: ran_s <= seen_s,
            });
        }
        Some(past)
    }

    /// The number of jobs.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.jobs.len()
    }

    /// Whether there is no job: never.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// The time between which every arrival is known.
    #[must_use]
    pub const fn span(&self) -> (UnixSeconds, UnixSeconds) {
        (self.since, self.until)
    }

    fn place_of(&mut self, organization: &Organization) -> u16 {
        if let Some(place) = self.organizations.get(organization) {
            return *place;
        }
        let place = self.organizations.len() + 1;
        if place >= MOST_ORGANIZATIONS {
            return 0;
        }
        self.organizations.insert(organization.clone(), place as u16);
        place as u16
    }

    /// The same jobs give the same bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut to = Writer::new(KIND, FORMAT);
        to.time(Some(self.since));
        to.time(Some(self.until));
        to.count(self.organizations.len());
        for (organization, place) in &self.organizations {
            to.name(organization.as_str());
            to.varint(u64::from(*place));
        }
        to.count(self.jobs.len());
        let mut before = self.since;
        for PastJob { job, is_ended } in &self.jobs {
            to.varint(job.submitted.since_s(before).unsigned_abs());
            before = job.submitted;
            to.varint(u64::from(job.ran_s) << 1 | u64::from(*is_ended));
            to.varint(u64::from(job.gpus_milli));
            to.varint(u64::from(job.organization));
        }
        to.0
    }

    /// # Errors
    /// The bytes are not what [`Self::to_bytes`] writes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DamagedBytes> {
        let mut from = Reader::new(bytes, KIND, FORMAT)?;
        let (since, until) = (from.moment()?, from.moment()?);
        let mut past = Self { organizations: BTreeMap::new(), jobs: Vec::new(), since, until };
        for _ in 0..from.count(3)? {
            let name = Organization::parse(from.name()?).map_err(DamagedBytes::of)?;
            past.organizations.insert(name, u16::try_from(from.varint()?).map_err(DamagedBytes::of)?);
        }
        let places = past.organizations.len();
        if past
            .organizations
            .values()
            .any(|place| usize::from(*place) > places || usize::from(*place) >= MOST_ORGANIZATIONS)
        {
            return Err(DamagedBytes("the place of an organization is out of range".to_owned()));
        }
        let mut submitted = since.get();
        for _ in 0..from.count(4)? {
            let after_s = i64::try_from(from.varint()?).map_err(DamagedBytes::of)?;
            let out_of_time = || DamagedBytes("the time of a job is out of range".to_owned());
            submitted = submitted.checked_add(after_s).filter(|at| *at < until.get()).ok_or_else(out_of_time)?;
            let ran = from.varint()?;
            let small = |value: u64| u32::try_from(value).map_err(DamagedBytes::of);
            let (ran_s, gpus_milli, place) = (small(ran >> 1)?, small(from.varint()?)?, small(from.varint()?)?);
            let organization = u16::try_from(place).ok().filter(|place| usize::from(*place) <= places);
            let organization =
                organization.ok_or_else(|| DamagedBytes(format!("no organization has the place {place}")))?;
            let job = EndedJob { submitted: UnixSeconds::new(submitted), waited_s: 0, ran_s, gpus_milli, organization };
            past.jobs.push(PastJob { job, is_ended: ran & 1 == 1 });
        }
        from.end()?;
        Ok(past)
    }
}
