//! Names of calendars of a cluster.

use super::{BuiltIn, CalendarError};
use std::fmt;
use vocab::CalendarName;

/// A calendar that comes with the program, a user's own, or the user's own days on top of one that comes along.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CalendarChoice {
    base: Option<BuiltIn>,
    own: Option<CalendarName>,
}

impl CalendarChoice {
    /// Reads `CN`, `acme` or `CN+acme`.
    ///
    /// # Errors
    /// The text cannot be a name, or what stands before the plus does not come with the program. Whether a user's own
    /// calendar exists is not known here.
    pub fn parse(text: &str) -> Result<Self, CalendarError> {
        if let Some(base) = BuiltIn::parse(text) {
            return Ok(Self { base: Some(base), own: None });
        }
        let (base, own) = match text.split_once('+') {
            None => (None, text),
            Some((base, own)) => (Some(BuiltIn::parse(base).ok_or_else(|| CalendarError::unknown(base, &[]))?), own),
        };
        Self::of_own(base, own)
    }

    /// A user's own days, on top of `base` where it is given.
    ///
    /// # Errors
    /// The name cannot be one of a user's own.
    pub fn of_own(base: Option<BuiltIn>, own: &str) -> Result<Self, CalendarError> {
        if BuiltIn::parse(own).is_some() {
            return Err(CalendarError::Taken { name: own.to_owned() });
        }
        Ok(Self { base, own: Some(CalendarName::parse(own)?) })
    }

    /// The built-in calendar of the choice.
    #[must_use]
    pub const fn base(&self) -> Option<BuiltIn> {
        self.base
    }

    /// The user's own calendar, whose days have to be brought along.
    #[must_use]
    pub const fn own(&self) -> Option<&CalendarName> {
        self.own.as_ref()
    }
}

impl fmt::Display for CalendarChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.base, &self.own) {
            (Some(base), Some(own)) => write!(f, "{}+{own}", base.name()),
            (Some(base), None) => f.write_str(base.name()),
            (None, own) => write!(f, "{}", own.as_ref().expect("one of the two is there")),
        }
    }
}
