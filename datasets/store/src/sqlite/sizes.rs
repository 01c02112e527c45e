use super::SqliteStore;
use crate::StoreError;
use crate::sizes::Integrity;

/// Bytes of the pages in use.
pub(crate) const SIZE_BYTES: &str = "SELECT (page_count - freelist_count) * page_size
     FROM pragma_page_count(), pragma_freelist_count(), pragma_page_size()";

/// Checks that pages and indexes are intact.
pub(crate) async fn integrity(store: &SqliteStore) -> Result<Vec<Integrity>, StoreError> {
    let mut faults: Vec<String> = sqlx::query_scalar("PRAGMA integrity_check(20)").fetch_all(&store.readers).await?;
    faults.retain(|line| line != "ok");
    Ok(vec![Integrity { check: "integrity_check".to_owned(), faults, unchecked: None }])
}
