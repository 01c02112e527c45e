//! Users' own calendars: a text that this crate does not read.

use crate::StoreError;
use crate::stored::valid;
use async_trait::async_trait;
use vocab::CalendarName;

/// A calendar that a user brought along.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredCalendar {
    pub name: CalendarName,
    /// As `datasets::calendar` writes and reads it.
    pub days_csv: String,
    /// 1 for the first text, one more with each that replaces it.
    pub version: i64,
}

#[async_trait]
pub trait CalendarStore {
    /// Stores the text, in place of the one that the calendar has. The new version, or `None` where the same text is
    /// stored already.
    async fn put_calendar(&self, name: &CalendarName, days_csv: &str) -> Result<Option<i64>, StoreError>;

    async fn calendar(&self, name: &CalendarName) -> Result<Option<StoredCalendar>, StoreError>;

    /// All, by name.
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
