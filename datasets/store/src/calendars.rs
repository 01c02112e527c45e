//! Calendars of users: texts that this crate does not parse.

use crate::StoreError;
use crate::stored::valid;
use async_trait::async_trait;
use vocab::CalendarName;

/// A calendar of a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredCalendar {
    /// The name by which clusters refer to it.
    pub name: CalendarName,
    /// Its days, in the format of `datasets::calendar`.
    pub days_csv: String,
    /// 1 for the first text; each replacement adds 1.
    pub version: i64,
}

/// Calendars of users.
#[async_trait]
pub trait CalendarStore {
    /// Creates the calendar or replaces its text. Returns the new version; `None` if the same text is stored already.
    async fn put_calendar(&self, name: &CalendarName, days_csv: &str) -> Result<Option<i64>, StoreError>;

    /// One calendar; `None` if the name is unknown.
    async fn calendar(&self, name: &CalendarName) -> Result<Option<StoredCalendar>, StoreError>;

    /// All calendars, by name.
    async fn calendars(&self) -> Result<Vec<StoredCalendar>, StoreError>;
}

row! {
    pub(crate) struct CalendarRow {
        pub name: String,
        pub days_csv: String,
        pub version: i64,
    }
}

impl TryFrom<CalendarRow> for StoredCalendar {
    type Error = StoreError;

    fn try_from(row: CalendarRow) -> Result<Self, StoreError> {
        let name = valid("calendar", CalendarName::parse(&row.name))?;
        Ok(Self { name, days_csv: row.days_csv, version: row.version })
    }
}

pub(crate) const PUT: &str = "INSERT INTO calendars (name, days_csv, version) VALUES ($1, $2, 1)
     ON CONFLICT (name) DO UPDATE SET days_csv = excluded.days_csv, version = calendars.version + 1
     WHERE calendars.days_csv <> excluded.days_csv RETURNING version";
pub(crate) const ONE: &str = "SELECT name, days_csv, version FROM calendars WHERE name = $1";
pub(crate) const ALL: &str = "SELECT name, days_csv, version FROM calendars ORDER BY name";
