//! Knowledge of starts as bytes, so that a restart does not begin without it: little-endian, checked when they are read.
//!
//! ```text
//! "HRST" 2 │ histories u32 × { class u8, hours u8 (0 none), history as of `forecaster::jobs`, length before it } │ running spot u32 ×
//! { task name, since, saved times, earlier s i64 } │ waiting spot u32 × { task name, saved s i64 } │ margins seen at time, u32 × { hours u8,
//! mean milli f64, weight s f64 } │ classes u32 × { class u8, open u32 × { task name, issued }, scored u32 × { issued, wait s f32 } } │ classes
//! u32 × { class u8, waits u32 × { end time, wait s f32 } }; issued is { time, 25 points f32, 7 levels served f32, 7 levels corrected f32,
//! waits are known u8, then 7 levels and their mean f32 }; a time is i64, i64::MIN none
//! ```
//!
//! Format 1 ended after the classes, and its issued after the levels served: those were the corrected ones.

use crate::calibration::{Calibration, Issued, Scored};
use crate::course::Margin;
use crate::expert::StartExpert;
use crate::kind::Kind;
use crate::memory::Work;
use crate::waits::{Usual, Waits};
use forecaster::DamagedBytes;
use forecaster::bytes::{Reader, Writer};
use forecaster::jobs::JobHistory;
use vocab::{HorizonHours, TaskClass, TaskId};

const KIND: [u8; 4] = *b"HRST";
const FORMAT: u8 = 2;
/// Before usual waits were learned.
const WITHOUT_WAITS: u8 = 1;

impl StartExpert {
    /// The same state gives the same bytes: a history of each kind (at most 400 KB of ended jobs) and 200 bytes for each forecast that
    /// is kept.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut to = Writer::new(KIND, FORMAT);
        to.count(self.memory.histories.len());
        for (kind, history) in &self.memory.histories {
            to.u8(number(kind.class));
            to.u8(kind.hours.map_or(0, HorizonHours::get));
            to.part(&history.to_bytes());
        }
        to.count(self.memory.work.len());
        for (task, work) in &self.memory.work {
            to.name(task.as_str());
            to.time(Some(work.since));
            to.time(Some(work.saved));
            to.i64(work.earlier_s);
        }
        to.count(self.memory.saved_s.len());
        for (task, saved_s) in &self.memory.saved_s {
            to.name(task.as_str());
            to.i64(*saved_s);
        }
        to.time(self.memory.margins.seen_at);
        to.count(self.memory.margins.by_hours.len());
        for (hours, margin) in &self.memory.margins.by_hours {
            to.u8(hours.get());
            to.f64(margin.mean_milli);
            to.f64(margin.weight_s);
        }
        to.count(self.calibrations.len());
        for (class, calibration) in &self.calibrations {
            to.u8(number(*class));
            calibration.write(&mut to);
        }
        to.count(self.waits.len());
        for (class, waits) in &self.waits {
            to.u8(number(*class));
            to.count(waits.0.len());
            for (at, wait_s) in &waits.0 {
                to.time(Some(*at));
                to.f32(f64::from(*wait_s));
            }
        }
        to.0
    }

    /// # Errors
    /// The bytes are not what [`Self::to_bytes`] writes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DamagedBytes> {
        let format = if bytes.get(KIND.len()) == Some(&WITHOUT_WAITS) { WITHOUT_WAITS } else { FORMAT };
        let (mut from, mut known) = (Reader::new(bytes, KIND, format)?, Self::default());
        for _ in 0..from.count(6)? {
            let (class, hours) = (class(from.u8()?)?, from.u8()?);
            let hours =
                (hours > 0).then(|| HorizonHours::new(u64::from(hours)).map_err(DamagedBytes::of)).transpose()?;
            known.memory.histories.insert(Kind { class, hours }, JobHistory::from_bytes(from.part()?)?);
        }
        for _ in 0..from.count(25)? {
            let task = task(&mut from)?;
            let work = Work { since: from.moment()?, saved: from.moment()?, earlier_s: from.i64()? };
            known.memory.work.insert(task, work);
        }
        for _ in 0..from.count(9)? {
            known.memory.saved_s.insert(task(&mut from)?, from.i64()?);
        }
        known.memory.margins.seen_at = from.time()?;
        for _ in 0..from.count(17)? {
            let hours = from.hours()?;
            let margin = Margin { mean_milli: from.f64()?, weight_s: from.f64()? };
            known.memory.margins.by_hours.insert(hours, margin);
        }
        for _ in 0..from.count(9)? {
            let class = class(from.u8()?)?;
            known.calibrations.insert(class, Calibration::read(&mut from, format)?);
        }
        let classes = if format == WITHOUT_WAITS { 0 } else { from.count(5)? };
        for _ in 0..classes {
            let (class, mut waits) = (class(from.u8()?)?, Waits::default());
            for _ in 0..from.count(12)? {
                waits.0.push_back((from.moment()?, seconds(&mut from)?));
            }
            known.waits.insert(class, waits);
        }
        from.end()?;
        Ok(known)
    }
}

impl Calibration {
    fn write(&self, to: &mut Writer) {
        to.count(self.open.len());
        for (task, issued) in &self.open {
            to.name(task.as_str());
            issued.write(to);
        }
        to.count(self.scored.len());
        for one in &self.scored {
            one.issued.write(to);
            to.f32(f64::from(one.wait_s));
        }
    }

    fn read(from: &mut Reader<'_>, format: u8) -> Result<Self, DamagedBytes> {
        let mut known = Self::default();
        for _ in 0..from.count(137)? {
            known.open.insert(task(from)?, Issued::read(from, format)?);
        }
        for _ in 0..from.count(140)? {
            let issued = Issued::read(from, format)?;
            known.scored.push_back(Scored { issued, wait_s: seconds(from)? });
        }
        Ok(known)
    }
}

impl Issued {
    fn write(&self, to: &mut Writer) {
        to.time(Some(self.at));
        let levels = self.served_s.iter().chain(&self.corrected_s);
        self.points_s.iter().chain(levels).for_each(|seconds| to.f32(f64::from(*seconds)));
        to.u8(u8::from(self.usual.is_some()));
        if let Some(usual) = &self.usual {
            usual.levels_s.iter().chain([&usual.mean_s]).for_each(|seconds| to.f32(f64::from(*seconds)));
        }
    }

    fn read(from: &mut Reader<'_>, format: u8) -> Result<Self, DamagedBytes> {
        let at = from.moment()?;
        let (mut points_s, mut served_s) = ([0.0; _], [0.0; _]);
        for place in points_s.iter_mut().chain(&mut served_s) {
            *place = seconds(from)?;
        }
        if format == WITHOUT_WAITS {
            return Ok(Self { at, points_s, corrected_s: served_s, usual: None, served_s });
        }
        let mut corrected_s = [0.0; _];
        for place in &mut corrected_s {
            *place = seconds(from)?;
        }
        let usual = match from.u8()? {
            0 => None,
            1 => Some(usual(from)?),
            other => return Err(DamagedBytes::of(format!("{other} does not say whether waits are known"))),
        };
        Ok(Self { at, points_s, corrected_s, usual, served_s })
    }
}

fn usual(from: &mut Reader<'_>) -> Result<Usual, DamagedBytes> {
    let mut levels_s = [0.0; _];
    for place in &mut levels_s {
        *place = seconds(from)?;
    }
    Ok(Usual { levels_s, mean_s: seconds(from)? })
}

/// A wait that is one.
fn seconds(from: &mut Reader<'_>) -> Result<f32, DamagedBytes> {
    let seconds = from.f32()?;
    if seconds.is_finite() && seconds >= 0.0 {
        return Ok(seconds as f32);
    }
    Err(DamagedBytes::of(format!("{seconds} s are no wait")))
}

fn task(from: &mut Reader<'_>) -> Result<TaskId, DamagedBytes> {
    TaskId::parse(from.name()?).map_err(DamagedBytes::of)
}

const fn number(class: TaskClass) -> u8 {
    match class {
        TaskClass::Hp => 0,
        TaskClass::Spot => 1,
    }
}

fn class(number: u8) -> Result<TaskClass, DamagedBytes> {
    match number {
        0 => Ok(TaskClass::Hp),
        1 => Ok(TaskClass::Spot),
        other => Err(DamagedBytes::of(format!("there is no class {other}"))),
    }
}
