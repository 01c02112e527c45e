//! Settings of pools: a text that this crate does not read, replaced only by who has seen the last one.

mod postgres;
mod sqlite;

use crate::StoreError;
use async_trait::async_trait;
use vocab::PoolId;

#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct StoredSettings {
    pub settings_json: String,
    /// 1 for the first text of a pool, one more with each that replaces it.
    pub version: i64,
}

#[async_trait]
pub trait SettingsStore {
    /// Stores the text if the pool's version is the expected one, `None` meaning that nothing is stored yet. Answers
    /// the new version.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] where another version is stored; [`StoreError::NotFound`] where the cluster is unknown.
    async fn put_settings(&self, pool: &PoolId, settings_json: &str, expected: Option<i64>) -> Result<i64, StoreError>;

    async fn settings(&self, pool: &PoolId) -> Result<Option<StoredSettings>, StoreError>;
}

fn another_version(pool: &PoolId, expected: Option<i64>) -> StoreError {
    let expected = expected.map_or("none".to_owned(), |version| version.to_string());
    StoreError::conflict("settings of", pool, format!("version {expected} was expected, another one is stored"))
}
