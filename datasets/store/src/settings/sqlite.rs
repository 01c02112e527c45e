use super::{SettingsStore, StoredSettings, another_version};
use crate::StoreError;
use crate::error::unless_missing;
use crate::sqlite::SqliteStore;
use async_trait::async_trait;
use vocab::PoolId;

#[async_trait]
impl SettingsStore for SqliteStore {
    async fn put_settings(&self, pool: &PoolId, settings_json: &str, expected: Option<i64>) -> Result<i64, StoreError> {
        let statement = match expected {
            None => {
                "INSERT INTO pool_settings (cluster, gpu_model, settings_json, version) VALUES ($1, $2, $3, 1)
                 ON CONFLICT (cluster, gpu_model) DO NOTHING RETURNING version"
            }
            Some(_) => {
                "UPDATE pool_settings SET settings_json = $3, version = version + 1
                 WHERE cluster = $1 AND gpu_model = $2 AND version = $4 RETURNING version"
            }
        };
        let mut query =
            sqlx::query_scalar(statement).bind(pool.cluster.as_str()).bind(pool.gpu_model.as_str()).bind(settings_json);
        if let Some(version) = expected {
            query = query.bind(version);
        }
        let stored = query.fetch_optional(self.writer()?).await;
        stored.map_err(unless_missing("cluster", &pool.cluster))?.ok_or_else(|| another_version(pool, expected))
    }

    async fn settings(&self, pool: &PoolId) -> Result<Option<StoredSettings>, StoreError> {
        let query =
            sqlx::query_as("SELECT settings_json, version FROM pool_settings WHERE cluster = $1 AND gpu_model = $2");
        Ok(query.bind(pool.cluster.as_str()).bind(pool.gpu_model.as_str()).fetch_optional(&self.readers).await?)
    }
}
