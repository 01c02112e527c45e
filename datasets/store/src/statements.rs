//! GPU time of placed pools by day, as the caller writes it. Days are written with the turn in which they end
//! ([`Turn::days`](crate::Turn)).

use crate::StoreError;
use crate::stored::{Stamp, pool};
use async_trait::async_trait;
use vocab::{PoolId, UnixSeconds};

/// A day of a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountedDay {
    /// Begin of the day, in UTC.
    pub day: UnixSeconds,
    /// The accounts of the day, as the caller writes them.
    pub accounts_json: String,
}

/// GPU time of placed pools.
#[async_trait]
pub trait StatementStore {
    /// The stored days of all pools that begin at `from` or later and before `to`, by pool and day.
    async fn statement_days(
        &self,
        from: UnixSeconds,
        to: UnixSeconds,
    ) -> Result<Vec<(PoolId, AccountedDay)>, StoreError>;

    /// Deletes days that began before `before`, in batches. Returns their number.
    async fn delete_statement_days_before(&self, before: UnixSeconds) -> Result<u64, StoreError>;
}

row! {
    pub(crate) struct StatementDayRow {
        pub cluster: String,
        pub gpu_model: String,
        pub day: Stamp,
        pub accounts_json: String,
    }
}

impl TryFrom<StatementDayRow> for (PoolId, AccountedDay) {
    type Error = StoreError;

    fn try_from(row: StatementDayRow) -> Result<Self, StoreError> {
        let day = AccountedDay { day: row.day.0, accounts_json: row.accounts_json };
        Ok((pool(&row.cluster, &row.gpu_model)?, day))
    }
}
