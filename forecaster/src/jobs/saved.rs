//! Knowledge of jobs as bytes, so that a restart does not begin without it: little-endian, checked when they are read.
//!
//! ```text
//! "HRJB" 1 │ first, whole since, last seen: times │ organizations u32 × { name, place u16 as u32 } │ ended u32 × { submitted
//! time, waited s u32, ran s u32, milli u32, place u32 } │ present u32 × { task name, submitted, started times, milli u32, place u32 } │ p in
//! millionths u32 │ seen at time │ hours u32 × { hours u8 │ judged at, since: times │ losses 5 f64, their seconds f64 │ open u32 × { time, peak,
//! other, jobs f64 } }; a time is i64, i64::MIN none
//! ```

use super::JobExpert;
use super::history::{EndedJob, JobHistory, MOST_ORGANIZATIONS, PresentJob};
use super::share::{Horizon, Issued, Share};
use crate::DamagedBytes;
use crate::bytes::{Reader, Writer};
use vocab::{Organization, TaskId};

const KIND: [u8; 4] = *b"HRJB";
const KIND_OF_HISTORY: [u8; 4] = *b"HRJH";
const FORMAT: u8 = 1;

impl JobExpert {
    /// The same state gives the same bytes: at most 400 KB of ended jobs, and some 50 bytes for each present one.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut to = Writer::new(KIND, FORMAT);
        self.history.write(&mut to);
        self.share.write(&mut to);
        to.0
    }

    /// # Errors
    /// The bytes are not what [`Self::to_bytes`] writes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DamagedBytes> {
        let mut from = Reader::new(bytes, KIND, FORMAT)?;
        let (history, share) = (JobHistory::read(&mut from)?, Share::read(&mut from)?);
        from.end()?;
        Ok(Self { history, share })
    }
}

impl JobHistory {
    /// A history alone as bytes: as in an expert, after a kind of its own.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut to = Writer::new(KIND_OF_HISTORY, FORMAT);
        self.write(&mut to);
        to.0
    }

    /// # Errors
    /// The bytes are not what [`Self::to_bytes`] writes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DamagedBytes> {
        let mut from = Reader::new(bytes, KIND_OF_HISTORY, FORMAT)?;
        let history = Self::read(&mut from)?;
        from.end()?;
        Ok(history)
    }

    fn write(&self, to: &mut Writer) {
        to.time(self.begun);
        to.time(self.whole_since);
        to.time(self.seen_at);
        to.count(self.organizations.len());
        for (organization, place) in &self.organizations {
            to.name(organization.as_str());
            to.u32(u32::from(*place));
        }
        to.count(self.ended.len());
        for job in &self.ended {
            to.time(Some(job.submitted));
            to.u32(job.waited_s);
            to.u32(job.ran_s);
            to.u32(job.gpus_milli);
            to.u32(u32::from(job.organization));
        }
        to.count(self.present.len());
        for (task, job) in &self.present {
            to.name(task.as_str());
            to.time(Some(job.submitted));
            to.time(job.started);
            to.u32(job.gpus_milli);
            to.u32(u32::from(job.organization));
        }
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, DamagedBytes> {
        let (begun, whole_since, seen_at) = (from.time()?, from.time()?, from.time()?);
        let mut known = Self { begun, whole_since, seen_at, ..Self::default() };
        for _ in 0..from.count(5)? {
            let name = Organization::parse(from.name()?).map_err(DamagedBytes::of)?;
            known.organizations.insert(name, place(from)?);
        }
        for _ in 0..from.count(24)? {
            let (submitted, waited_s) = (from.moment()?, from.u32()?);
            let (ran_s, gpus_milli, organization) = (from.u32()?, from.u32()?, known.place(from)?);
            known.ended.push_back(EndedJob { submitted, waited_s, ran_s, gpus_milli, organization });
        }
        for _ in 0..from.count(25)? {
            let task = TaskId::parse(from.name()?).map_err(DamagedBytes::of)?;
            let (submitted, started, gpus_milli) = (from.moment()?, from.time()?, from.u32()?);
            let organization = known.place(from)?;
            known.present.insert(task, PresentJob { submitted, started, gpus_milli, organization });
        }
        Ok(known)
    }

    /// The place of an organization that is known, or the one that all others share.
    fn place(&self, from: &mut Reader<'_>) -> Result<u16, DamagedBytes> {
        let found = place(from)?;
        let is_known = usize::from(found) <= self.organizations.len();
        is_known.then_some(found).ok_or_else(|| DamagedBytes(format!("no organization has the place {found}")))
    }
}

fn place(from: &mut Reader<'_>) -> Result<u16, DamagedBytes> {
    let place = u16::try_from(from.u32()?).map_err(DamagedBytes::of)?;
    if usize::from(place) < MOST_ORGANIZATIONS {
        return Ok(place);
    }
    Err(DamagedBytes(format!("an organization has the place {place}, expected less than {MOST_ORGANIZATIONS}")))
}

impl Share {
    fn write(&self, to: &mut Writer) {
        to.u32(self.rate.ppm());
        to.time(self.seen_at);
        to.count(self.horizons.len());
        for horizon in &self.horizons {
            to.u8(horizon.hours.get());
            to.time(horizon.judged_at);
            to.time(horizon.judged_since);
            horizon.losses.iter().for_each(|loss| to.f64(*loss));
            to.f64(horizon.weight_s);
            to.count(horizon.open.len());
            for issued in &horizon.open {
                to.time(Some(issued.at));
                for gpus in [issued.peak_gpus, issued.other_gpus, issued.jobs_gpus] {
                    to.f64(gpus);
                }
            }
        }
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, DamagedBytes> {
        let (rate, seen_at) = (from.rate()?, from.time()?);
        let mut share = Self { rate, horizons: Vec::new(), seen_at };
        for _ in 0..from.count(69)? {
            let mut horizon = Horizon::new(from.hours()?);
            (horizon.judged_at, horizon.judged_since) = (from.time()?, from.time()?);
            for loss in &mut horizon.losses {
                *loss = from.f64()?;
            }
            horizon.weight_s = from.f64()?;
            for _ in 0..from.count(32)? {
                let (at, peak_gpus) = (from.moment()?, from.f64()?);
                let (other_gpus, jobs_gpus) = (from.f64()?, from.f64()?);
                horizon.open.push_back(Issued { at, peak_gpus, other_gpus, jobs_gpus });
            }
            share.horizons.push(horizon);
        }
        Ok(share)
    }
}
