//! Rows of other clusters that a training learns from as well (`--borrow`).

use crate::args::Train;
use crate::demand::Demand;
use crate::error::TrainingError;
use crate::shard;
use crate::usage::Usage;
use command_line::print_notice;
use store::{Cluster, Store};

/// Histories of the clusters to borrow rows from, in files. One that has no usage is left out.
///
/// # Errors
/// The model learns from one cluster alone, or a history cannot be read.
pub async fn of(
    (usage, store): (Usage<'_>, &dyn Store),
    cluster: &Cluster,
    what: &Train,
    seed: u64,
) -> Result<Vec<Demand>, TrainingError> {
    if what.borrow == 0 {
        return Ok(Vec::new());
    }
    if what.model.recipe().is_none() {
        return Err(TrainingError::NothingToBorrow { model: what.model });
    }
    let asked = shard::lenders(&store.clusters().await?, cluster, what.borrow, seed);
    let mut lent = Vec::new();
    for lender in &asked {
        match Demand::spool(usage, store, lender, what.until, what.memory.bytes).await {
            Ok(demand) => lent.push(demand),
            Err(TrainingError::NoUsage { .. } | TrainingError::NoHours { .. }) => {}
            Err(fault) => return Err(fault),
        }
    }
    if lent.is_empty() {
        let names: Vec<_> = asked.iter().map(|lender| lender.name.as_str()).collect();
        let why =
            if names.is_empty() { "there is no other cluster".to_owned() } else { names.join(", ") + " has no usage" };
        print_notice(format_args!("note: cluster {} borrows nothing: {why}", cluster.name));
    }
    Ok(lent)
}

/// The cluster of a lender.
pub fn name(lender: &Demand) -> Option<String> {
    lender.pools().first().map(|pool| pool.cluster.to_string())
}
