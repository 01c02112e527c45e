//! Faults of the fields of a body.

use chrono::DateTime;
use vocab::{HorizonHours, HourStart, MilliGpus, NameError, Organization, UnixSeconds, new_name, new_text};

/// A refused field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{pointer}: {detail}")]
pub struct FieldFault {
    /// RFC 6901.
    pub pointer: String,
    /// The fault, and what was expected.
    pub detail: String,
}

impl FieldFault {
    /// A fault of the field at a JSON pointer.
    #[expect(clippy::needless_pass_by_value, reason = "errors and texts alike read well at the call")]
    pub fn new(pointer: impl Into<String>, detail: impl ToString) -> Self {
        Self { pointer: pointer.into(), detail: detail.to_string() }
    }
}

/// A time as the journal keeps it: one of the calendar, since no other was ever written.
pub fn time(pointer: &str, unix_s: i64) -> Result<UnixSeconds, FieldFault> {
    UnixSeconds::new(unix_s).in_calendar().map_err(|fault| FieldFault::new(pointer, fault))
}

/// The place of a value in a body: the begin of its fields' pointers.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a>(pub &'a str);

impl Place<'_> {
    /// A fault of a field.
    pub fn fault(self, field: &str, detail: impl ToString) -> FieldFault {
        FieldFault::new(format!("{}/{field}", self.0), detail)
    }

    /// An amount of GPUs, in thousandths, of [`MilliGpus::MOST_STATED_GPUS`] at most.
    pub fn gpus(self, field: &str, gpus: f64) -> Result<MilliGpus, FieldFault> {
        MilliGpus::stated(MilliGpus::exact(gpus)).map_err(|fault| self.fault(field, fault))
    }

    /// A whole number of at most `most`.
    pub fn whole(self, field: &str, value: u64, most: u64) -> Result<u64, FieldFault> {
        if value <= most {
            Ok(value)
        } else {
            Err(self.fault(field, format!("{value} is too large: write 0 to {most}")))
        }
    }

    /// A whole number from 1 to `most`.
    pub fn positive(self, field: &str, value: u64, most: u64) -> Result<u64, FieldFault> {
        if (1..=most).contains(&value) {
            return Ok(value);
        }
        let wrong = if value == 0 { "too small" } else { "too large" };
        Err(self.fault(field, format!("{value} is {wrong}: write 1 to {most}")))
    }

    /// A name.
    pub fn name<T>(self, field: &str, text: &str, parse: fn(&str) -> Result<T, NameError>) -> Result<T, FieldFault> {
        parse(text).map_err(|fault| self.fault(field, fault))
    }

    /// As [`name`](Self::name), of a request: a name with invisible characters is refused, and that of idle capacity. A name in
    /// the journal was accepted once, and is read as it is.
    pub fn new_name<T>(
        self,
        field: &str,
        text: &str,
        parse: fn(&str) -> Result<T, NameError>,
    ) -> Result<T, FieldFault> {
        new_name(text).map_err(|fault| self.fault(field, fault))?;
        self.name(field, text, parse)
    }

    /// A text that others read, such as a reason: it has no character that a new name may not have.
    pub fn new_text(self, field: &str, text: &str) -> Result<(), FieldFault> {
        new_text(text).map_err(|fault| self.fault(field, fault))
    }

    /// The organization of a task: no task belongs to the pool as a whole, whose demand has the name `*`.
    pub fn of_a_task(self, field: &str, organization: Organization) -> Result<Organization, FieldFault> {
        if organization.is_pool_peak() {
            return Err(self.fault(field, "* is the pool itself: write the name of an organization"));
        }
        Ok(organization)
    }

    /// An instant, from RFC 3339.
    pub fn instant(self, field: &str, text: &str) -> Result<UnixSeconds, FieldFault> {
        self.time(field, text).map(|(at, _)| at)
    }

    /// The second of an instant, and its nanoseconds after it.
    fn time(self, field: &str, text: &str) -> Result<(UnixSeconds, u32), FieldFault> {
        let detail = || format!("invalid time {text:?}: write RFC 3339 such as 2024-03-01T00:00:00Z");
        let time = DateTime::parse_from_rfc3339(text).map_err(|_| self.fault(field, detail()))?;
        let at = UnixSeconds::new(time.timestamp()).in_calendar();
        let at = at.map_err(|_| self.fault(field, format!("{text} is not between 1970 and 2200")))?;
        Ok((at, time.timestamp_subsec_nanos()))
    }

    /// The start of an hour, from RFC 3339.
    pub fn hour(self, field: &str, text: &str) -> Result<HourStart, FieldFault> {
        let (at, nanos) = self.time(field, text)?;
        // So the nanoseconds of a leap second are counted.
        if nanos >= 1_000_000_000 {
            let detail = format!("{text} is a leap second: write the start of an hour, such as 2024-03-01T00:00:00Z");
            return Err(self.fault(field, detail));
        }
        if nanos > 0 {
            let detail = format!("{text} has a fraction of a second: write a whole one, such as 2024-03-01T00:00:00Z");
            return Err(self.fault(field, detail));
        }
        HourStart::from_unix_s(at.get()).map_err(|fault| self.fault(field, fault))
    }

    /// Guarantee hours.
    pub fn hours(self, field: &str, hours: u64) -> Result<HorizonHours, FieldFault> {
        HorizonHours::new(hours).map_err(|fault| self.fault(field, fault))
    }
}
