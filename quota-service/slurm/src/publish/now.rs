//! Jobs and GPUs that are held, as Slurm shows them now.

use super::held::{self, Counting};
use crate::config::{Config, Nesting};
use crate::limits::{self, ByName};
use crate::site::Site;
use slurm_records::RecordsError;
use slurm_records::nodes::Nodes;
use slurm_records::queue::Queue;
use std::collections::BTreeMap;

/// GPUs held by limit, now: the larger of what Slurm counts and of what its jobs say.
///
/// # Errors
/// Slurm does not answer.
pub async fn held_now(site: &Site, config: &Config) -> Result<ByName, RecordsError> {
    look_now(site, config).await.map(|now| now.held)
}

/// Jobs and nodes, and GPUs held by limit.
pub struct Now {
    /// Which limit counts which job.
    pub counting: Counting,
    /// Jobs.
    pub queue: Queue,
    /// Nodes.
    pub nodes: Nodes,
    /// The larger of what Slurm counts and of what its jobs say.
    pub held: ByName,
}

/// Jobs, nodes and counts of Slurm, one after the other.
///
/// # Errors
/// Slurm does not answer.
pub async fn look_now(site: &Site, config: &Config) -> Result<Now, RecordsError> {
    let parents = match config.nesting {
        Nesting::Qos => BTreeMap::new(),
        Nesting::Accounts => limits::parents(&site.accounts().await?),
    };
    let counting = Counting::new(config, parents);
    let (queue, nodes) = site.look().await?;
    let counted = site.in_use().await?;
    let held = held::larger(&counting.held(&queue), &counted);
    Ok(Now { counting, queue, nodes, held })
}
