//! Knowledge of jobs as bytes, so that a restart does not begin without it: little-endian, checked when they are read.
//!
//! ```text
//! "HRJB" 2 or 3 │ first, whole since, last seen: times │ organizations u32 × { name, place u16 as varint } │ ended u32 × { end, after
//! the one before and zigzag; waited s, ran s, milli, place: varints } │ present u32 × { key u64 │ seconds since its submission, and
//! 1 more than those until its start or 0: zigzag; milli, place: varints } │ of lists, in format 3: the hour that is watched, time;
//! whether from its start on u8; GPUs that left it, varint; whole hours u32 × { time │ milli, varint }; for each that is present the most
//! that it had, varint, and 1 more than the seconds since lists lack it or 0: varint │ p in millionths u32 │ seen at time │ hours u32 × { hours u8 │
//! judged at: time │ losses 5 f64, their seconds f64 │ open u32 × { time, peak, other, jobs f64 } }; a time is i64, i64::MIN none
//! ```

use super::JobExpert;
use super::history::{EndedJob, JobHistory, MOST_ORGANIZATIONS, PresentJob, small_s};
use super::listed::Listed;
use super::share::{Horizon, Issued, Share};
use crate::DamagedBytes;
use crate::bytes::{Reader, Writer};
use std::collections::VecDeque;
use vocab::{Organization, UnixSeconds};

const KIND: [u8; 4] = *b"HRJB";
const KIND_OF_HISTORY: [u8; 4] = *b"HRJH";
const FORMAT: u8 = 3;
/// Without lists, as programs wrote it that remembered none.
const UNLISTED_FORMAT: u8 = 2;
/// Of programs that knew no jobs of a service: nothing is in it.
const EMPTY_FORMAT: u8 = 1;

impl JobExpert {
    /// The same state gives the same bytes: at most 400 KB for any number of jobs, a third of that for a thousand new ones a day.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut to = Writer::new(KIND, self.history.format());
        self.history.write(&mut to);
        self.share.write(&mut to);
        to.0
    }

    /// From [`Self::to_bytes`]; none for bytes of an older program, in which no service had written any jobs.
    ///
    /// # Errors
    /// The bytes are not what [`Self::to_bytes`] writes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Option<Self>, DamagedBytes> {
        if Reader::new(bytes, KIND, EMPTY_FORMAT).is_ok() {
            return Ok(None);
        }
        let (mut from, format) = reader(bytes, KIND)?;
        let (history, share) = (JobHistory::read(&mut from, format)?, Share::read(&mut from)?);
        from.end()?;
        Ok(Some(Self { history, share }))
    }
}

impl JobHistory {
    /// A history alone as bytes: as in an expert, after a kind of its own.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut to = Writer::new(KIND_OF_HISTORY, self.format());
        self.write(&mut to);
        to.0
    }

    /// # Errors
    /// The bytes are not what [`Self::to_bytes`] writes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DamagedBytes> {
        let (mut from, format) = reader(bytes, KIND_OF_HISTORY)?;
        let history = Self::read(&mut from, format)?;
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
            to.varint(u64::from(*place));
        }
        to.count(self.ended.len());
        let mut before = 0;
        for job in &self.ended {
            let end = job.submitted.get().saturating_add(job.lasted_s());
            to.varint(zigzag(end.wrapping_sub(before)));
            before = end;
            for number in [job.waited_s, job.ran_s, job.gpus_milli, u32::from(job.organization)] {
                to.varint(u64::from(number));
            }
        }
        to.count(self.present.len());
        let now = self.now();
        for (key, job) in &self.present {
            to.u64(*key);
            to.varint(zigzag(now.since_s(job.submitted)));
            to.varint(job.started.map_or(0, |started| zigzag(started.since_s(job.submitted)).saturating_add(1)));
            to.varint(u64::from(job.gpus_milli));
            to.varint(u64::from(job.organization));
        }
        if let Some(listed) = &self.listed {
            self.write_listed(listed, to);
        }
    }

    /// Where nothing was listed, that of before: earlier programs go on with it.
    const fn format(&self) -> u8 {
        if self.listed.is_some() { FORMAT } else { UNLISTED_FORMAT }
    }

    fn write_listed(&self, listed: &Listed, to: &mut Writer) {
        to.time(Some(listed.hour));
        to.u8(u8::from(listed.is_whole));
        to.varint(listed.left_milli);
        to.count(listed.whole.len());
        for (hour, milli) in &listed.whole {
            to.time(Some(*hour));
            to.varint(*milli);
        }
        let now = self.now();
        for job in self.present.values() {
            to.varint(u64::from(job.most_milli));
            to.varint(job.unlisted_since.map_or(0, |since| u64::from(small_s(now.since_s(since).max(0))) + 1));
        }
    }

    fn read_listed(&mut self, from: &mut Reader<'_>) -> Result<(), DamagedBytes> {
        let (hour, is_whole, left_milli) = (from.moment()?, from.u8()? != 0, from.varint()?);
        let mut whole = VecDeque::new();
        for _ in 0..from.count(9)? {
            whole.push_back((from.moment()?, from.varint()?));
        }
        self.listed = Some(Listed { hour, is_whole, left_milli, whole });
        let now = self.now();
        for job in self.present.values_mut() {
            job.most_milli = small(from)?;
            let unlisted_s = small(from)?.checked_sub(1);
            job.unlisted_since = unlisted_s.map(|seconds| UnixSeconds::new(now.get().saturating_sub(seconds.into())));
        }
        Ok(())
    }

    fn read(from: &mut Reader<'_>, format: u8) -> Result<Self, DamagedBytes> {
        let (begun, whole_since, seen_at) = (from.time()?, from.time()?, from.time()?);
        let mut known = Self { begun, whole_since, seen_at, ..Self::default() };
        for _ in 0..from.count(3)? {
            let name = Organization::parse(from.name()?).map_err(DamagedBytes::of)?;
            known.organizations.insert(name, place(from)?);
        }
        let mut end = 0_i64;
        for _ in 0..from.count(5)? {
            end = end.checked_add(signed(from.varint()?)).ok_or_else(out_of_time)?;
            let (waited_s, ran_s, gpus_milli) = (small(from)?, small(from)?, small(from)?);
            let lasted_s = i64::from(waited_s) + i64::from(ran_s);
            let submitted = UnixSeconds::new(end.checked_sub(lasted_s).ok_or_else(out_of_time)?);
            known.ended.push_back(EndedJob {
                submitted,
                waited_s,
                ran_s,
                gpus_milli,
                organization: known.place(from)?,
            });
        }
        let now = known.now().get();
        for _ in 0..from.count(12)? {
            let (key, since_s, started) = (from.u64()?, signed(from.varint()?), from.varint()?);
            let submitted = now.checked_sub(since_s).ok_or_else(out_of_time)?;
            let after_s = started.checked_sub(1).map(signed);
            let started = after_s.map(|after_s| submitted.checked_add(after_s).ok_or_else(out_of_time)).transpose()?;
            let (gpus_milli, organization) = (small(from)?, known.place(from)?);
            let (submitted, started) = (UnixSeconds::new(submitted), started.map(UnixSeconds::new));
            let (most_milli, unlisted_since) = (gpus_milli, None);
            let job = PresentJob { submitted, started, gpus_milli, most_milli, organization, unlisted_since };
            known.present.insert(key, job);
        }
        if format > UNLISTED_FORMAT {
            known.read_listed(from)?;
        }
        Ok(known)
    }

    /// The time of the last observation.
    fn now(&self) -> UnixSeconds {
        self.seen_at.unwrap_or(UnixSeconds::new(0))
    }

    /// The place of an organization that is known, or the one that all others share.
    fn place(&self, from: &mut Reader<'_>) -> Result<u16, DamagedBytes> {
        let found = place(from)?;
        let is_known = usize::from(found) <= self.organizations.len();
        is_known.then_some(found).ok_or_else(|| DamagedBytes(format!("no organization has the place {found}")))
    }
}

/// Bytes of this format or the one before, and which it is.
fn reader(bytes: &[u8], kind: [u8; 4]) -> Result<(Reader<'_>, u8), DamagedBytes> {
    let before = Reader::new(bytes, kind, UNLISTED_FORMAT).map(|from| (from, UNLISTED_FORMAT));
    before.or_else(|_| Ok((Reader::new(bytes, kind, FORMAT)?, FORMAT)))
}

/// Small numbers of both signs as small numbers without one.
const fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// The reverse of [`zigzag`].
const fn signed(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

fn out_of_time() -> DamagedBytes {
    DamagedBytes("the time of a job is out of range".to_owned())
}

fn small(from: &mut Reader<'_>) -> Result<u32, DamagedBytes> {
    u32::try_from(from.varint()?).map_err(DamagedBytes::of)
}

fn place(from: &mut Reader<'_>) -> Result<u16, DamagedBytes> {
    let place = u16::try_from(from.varint()?).map_err(DamagedBytes::of)?;
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
        for _ in 0..from.count(61)? {
            let mut horizon = Horizon::new(from.hours()?);
            horizon.judged_at = from.time()?;
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
