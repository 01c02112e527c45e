use std::collections::BTreeSet;

/// The coefficient of a pool, which no other transaction moves until this one ends.
pub(crate) const LOCK_ETA: &str = "SELECT eta_micro FROM etas WHERE cluster = $1 AND gpu_model = $2";

/// Marks the outcomes `$2` of a pool as counted by the move `$1`.
pub(crate) const SPEND: &str = "UPDATE outcomes SET spent_by = $1
     WHERE id IN (SELECT value FROM json_each($2)) AND cluster = $3 AND gpu_model = $4 AND spent_by IS NULL";

/// Marks the outcomes of a pool that ended before all of `$2` as counted by the move `$1`.
pub(crate) const SPEND_OLDER: &str = "UPDATE outcomes SET spent_by = $1
     WHERE cluster = $3 AND gpu_model = $4 AND spent_by IS NULL AND kind IN ('kept', 'broken')
         AND ended_at < (SELECT min(ended_at) FROM outcomes WHERE id IN (SELECT value FROM json_each($2)))";

/// A list of ids as a parameter. SQLite has no arrays: the list travels as JSON, which for whole numbers is their text.
pub(crate) fn id_list(ids: &BTreeSet<i64>) -> String {
    format!("{:?}", ids.iter().collect::<Vec<_>>())
}
