use super::PostgresStore;
use crate::StoreError;
use crate::sizes::Integrity;

/// Faults to report.
const SHOWN: usize = 20;

/// Bytes of the database.
pub(crate) const SIZE_BYTES: &str = "SELECT pg_database_size(current_database())";

/// Checks that pages and indexes are intact.
pub(crate) async fn integrity(store: &PostgresStore) -> Result<Vec<Integrity>, StoreError> {
    Ok(vec![store.checksums().await?, store.amcheck().await?])
}

impl PostgresStore {
    /// The checksums with which the server verifies the pages that it reads, and its count of failures.
    async fn checksums(&self) -> Result<Integrity, StoreError> {
        let state: String =
            sqlx::query_scalar("SELECT current_setting('data_checksums')").fetch_one(&self.pool).await?;
        let failures: i64 = sqlx::query_scalar(
            "SELECT coalesce(checksum_failures, 0) FROM pg_stat_database WHERE datname = current_database()",
        )
        .fetch_one(&self.pool)
        .await?;
        let faults = (failures > 0).then(|| format!("{failures} pages failed their checksum")).into_iter().collect();
        let unchecked =
            (state != "on").then(|| "data checksums are off; stop the server and run pg_checksums --enable".to_owned());
        Ok(Integrity { check: "data checksums".to_owned(), faults, unchecked })
    }

    /// Checks every table and B-tree with the extension `amcheck`, if an administrator has installed it.
    async fn amcheck(&self) -> Result<Integrity, StoreError> {
        let check = "amcheck".to_owned();
        let is_there: bool = sqlx::query_scalar("SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'amcheck')")
            .fetch_one(&self.pool)
            .await?;
        if !is_there {
            let unchecked = Some("the extension is not installed; run CREATE EXTENSION amcheck".to_owned());
            return Ok(Integrity { check, faults: Vec::new(), unchecked });
        }
        let read = async {
            let mut faults: Vec<String> = sqlx::query_scalar(
                "SELECT relname || ': block ' || blkno || ': ' || msg
                 FROM pg_class, LATERAL verify_heapam(pg_class.oid::regclass)
                 WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace LIMIT 20",
            )
            .fetch_all(&self.pool)
            .await?;
            let indexes: Vec<(String, i64)> = sqlx::query_as(
                "SELECT pg_class.relname::text, pg_class.oid::bigint FROM pg_index
                 JOIN pg_class ON pg_class.oid = indexrelid JOIN pg_am ON pg_am.oid = relam
                 WHERE amname = 'btree' AND relkind = 'i' AND indisvalid
                     AND relnamespace = current_schema()::regnamespace ORDER BY 1",
            )
            .fetch_all(&self.pool)
            .await?;
            for (name, oid) in indexes {
                let checking = sqlx::query("SELECT bt_index_check($1::oid::regclass, true)").bind(oid);
                if let Err(sqlx::Error::Database(fault)) = checking.execute(&self.pool).await {
                    faults.push(format!("{name}: {}", fault.message()));
                }
            }
            Ok::<_, sqlx::Error>(faults)
        };
        match read.await {
            Ok(mut faults) => {
                faults.truncate(SHOWN);
                Ok(Integrity { check, faults, unchecked: None })
            }
            // Only superusers may call the functions, unless they were granted.
            Err(sqlx::Error::Database(fault)) if fault.code().as_deref() == Some("42501") => {
                let unchecked = Some(format!("{}; run GRANT EXECUTE on its functions for this user", fault.message()));
                Ok(Integrity { check, faults: Vec::new(), unchecked })
            }
            Err(fault) => Err(fault.into()),
        }
    }
}
