//! The last quotas in a file: answers of a service that starts without its database.

use crate::access::{Access, KeptToken, Tokens};
use crate::plan::{self, Held};
use crate::published::{Answer, Published, PublishedPool};
use crate::quotas::Quotas;
use serde::{Deserialize, Serialize};
use serving::standing::Standing;
use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use vocab::{PoolId, UnixSeconds};
use wire::QuotaAnswer;

/// Between two writes: quotas that come at once are written once.
const PAUSE: Duration = Duration::from_secs(2);

/// Content of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    /// Whether a token is needed, and the digests of the valid ones.
    closed: bool,
    tokens: Vec<KeptToken>,
    quotas: Vec<KeptQuota>,
}

/// A quota as it was answered while it was fresh.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeptQuota {
    computed_at_unix_s: i64,
    spot_gpus: f64,
    answer: QuotaAnswer,
}

/// Writes the answers to a file at each publication.
pub async fn keep(quotas: Arc<Quotas>, access: Arc<Access>, file: PathBuf) {
    let faults = Standing::new();
    let mut publications = quotas.publications.subscribe();
    publications.mark_changed();
    while publications.changed().await.is_ok() {
        let (closed, tokens) = access.tokens.kept();
        let last = quotas.published.load().pools().flat_map(|pool| kept_quotas(pool)).collect();
        let (kept, path) = (Kept { closed, tokens, quotas: last }, file.clone());
        let written = tokio::task::spawn_blocking(move || write(&path, &kept)).await;
        match written {
            Ok(Err(fault)) if faults.begins("") => {
                tracing::warn!(file = %file.display(), %fault, "the last quotas are not written to the file: the log reports the recovery");
            }
            Ok(Ok(())) => {
                if let Some(over) = faults.is_over("") {
                    let (lasted_s, times) = (over.lasted_s, over.times);
                    tracing::info!(file = %file.display(), lasted_s, times, "the last quotas are written to the file again");
                }
            }
            _ => {}
        }
        tokio::time::sleep(PAUSE).await;
    }
}

fn kept_quotas(pool: &PublishedPool) -> Vec<KeptQuota> {
    let kept = |answer: &Answer| KeptQuota {
        computed_at_unix_s: answer.computed_at.get(),
        spot_gpus: answer.held.spot.as_gpus(),
        answer: answer.fresh.clone(),
    };
    pool.answers.iter().map(kept).collect()
}

/// Replaces the file as a whole, also where the machine fails meanwhile. Only its owner may read it.
fn write(file: &Path, kept: &Kept) -> std::io::Result<()> {
    let beside = file.with_extension("new");
    let mut new = std::fs::OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&beside)?;
    new.write_all(&serde_json::to_vec(kept).map_err(std::io::Error::other)?)?;
    new.sync_all()?;
    std::fs::rename(&beside, file)
}

/// The quotas of the file, at their age, and the tokens that may read them. A missing file has no quotas and admits no
/// caller.
///
/// # Errors
/// It cannot be read, or holds something else.
pub fn read(file: &Path, why: &str) -> Result<(Published, Tokens), String> {
    let bytes = match std::fs::read(file) {
        Ok(bytes) => bytes,
        Err(fault) if fault.kind() == std::io::ErrorKind::NotFound => return Ok((Published::default(), Tokens::new())),
        Err(fault) => return Err(format!("{}: {fault}", file.display())),
    };
    let damaged = |fault: &dyn std::fmt::Display| format!("{}: {fault}", file.display());
    let kept: Kept = serde_json::from_slice(&bytes).map_err(|fault| damaged(&fault))?;
    let mut pools: BTreeMap<PoolId, PublishedPool> = BTreeMap::new();
    for one in kept.quotas {
        let name = format!("{}:{}", one.answer.cluster, one.answer.gpu_model);
        let id = PoolId::parse(&name).map_err(|fault| damaged(&fault))?;
        let pool = pools.entry(id.clone()).or_insert_with(|| PublishedPool::without_quota(id, why.to_owned()));
        let held = Held { spot: plan::amount(one.spot_gpus), available: plan::amount(one.answer.available_gpus) };
        pool.answers.push(Answer::new(one.answer, UnixSeconds::new(one.computed_at_unix_s), held, Some(why)));
        pool.answers.sort_by_key(Answer::hours);
    }
    Ok((Published::default().with(pools.into_values().map(Arc::new)), Tokens::of_kept(kept.tokens, kept.closed)))
}
