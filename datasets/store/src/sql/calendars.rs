use super::SqlStore;
use crate::StoreError;
use crate::calendars::{ALL, CalendarRow, CalendarStore, ONE, PUT, StoredCalendar};
use crate::stored::all;
use async_trait::async_trait;
use vocab::CalendarName;

#[async_trait]
impl CalendarStore for SqlStore {
    async fn put_calendar(&self, name: &CalendarName, days_csv: &str) -> Result<Option<i64>, StoreError> {
        Ok(sqlx::query_scalar(PUT).bind(name.as_str()).bind(days_csv).fetch_optional(self.writer()?).await?)
    }

    async fn calendar(&self, name: &CalendarName) -> Result<Option<StoredCalendar>, StoreError> {
        let query = sqlx::query_as::<_, CalendarRow>(ONE).bind(name.as_str());
        query.fetch_optional(self.readers()).await?.map(TryInto::try_into).transpose()
    }

    async fn calendars(&self) -> Result<Vec<StoredCalendar>, StoreError> {
        all(sqlx::query_as::<_, CalendarRow>(ALL).fetch_all(self.readers()).await?)
    }
}
