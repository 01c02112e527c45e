//! Utilization of each node by hour (GFS figure 8): the highest one of the renewals of an hour.

use crate::engine::NodeUse;
use std::collections::BTreeMap;
use store::{NodeHour, NodeHourStore, Store, StoreError};
use vocab::{HourStart, PoolId, UnixSeconds};

/// Hours that are kept: a week as in the figure, and the present one.
const KEPT_HOURS: i64 = vocab::HOURS_PER_WEEK + 1;

/// Thousandths of GPUs that HP and spot had at most, by node. As it is stored.
pub type Peaks = BTreeMap<String, [u64; 2]>;

/// Peaks of the present hour.
#[derive(Default)]
pub struct Utilization {
    seen: BTreeMap<PoolId, (HourStart, Peaks)>,
}

impl Utilization {
    /// Drops the peaks of a pool: another service has written for it meanwhile.
    pub fn forget(&mut self, is_gone: impl Fn(&PoolId) -> bool) {
        self.seen.retain(|pool, _| !is_gone(pool));
    }

    /// Adds what the nodes of a pool hold now, and keeps it. `held` writes for its cluster.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn note(
        &mut self,
        held: &dyn Store,
        pool: &PoolId,
        nodes: &[NodeUse],
        now: UnixSeconds,
    ) -> Result<(), StoreError> {
        let Ok(hour) = now.hour() else { return Ok(()) };
        if nodes.is_empty() {
            return Ok(());
        }
        let known = self.seen.remove(pool).filter(|(of, _)| *of == hour);
        let mut peaks = match known {
            Some((_, peaks)) => peaks,
            // After a restart the hour goes on where it was left.
            None => stored(held, pool, hour).await?,
        };
        raise(&mut peaks, nodes);
        let peaks_json = serde_json::to_string(&peaks).expect("numbers under string keys");
        let forget = hour.plus_hours(-KEPT_HOURS);
        held.put_node_hour(pool, &NodeHour { hour, peaks_json }, forget).await?;
        self.seen.insert(pool.clone(), (hour, peaks));
        Ok(())
    }
}

fn raise(peaks: &mut Peaks, nodes: &[NodeUse]) {
    for node in nodes {
        let [hp, spot] = peaks.entry(node.node.to_string()).or_default();
        // The hour in which most was allocated in all, not most of each.
        if node.hp.milli() + node.spot.milli() >= *hp + *spot {
            (*hp, *spot) = (node.hp.milli(), node.spot.milli());
        }
    }
}

async fn stored(held: &dyn Store, pool: &PoolId, hour: HourStart) -> Result<Peaks, StoreError> {
    let hours = NodeHourStore::node_hours(held, pool, hour).await?;
    let mine = hours.iter().find(|one| one.hour == hour);
    mine.map_or_else(|| Ok(Peaks::new()), peaks_of)
}

/// Stored peaks of an hour.
///
/// # Errors
/// It is damaged.
pub fn peaks_of(hour: &NodeHour) -> Result<Peaks, StoreError> {
    serde_json::from_str(&hour.peaks_json)
        .map_err(|fault| StoreError::Corrupt { what: format!("the nodes at {}", hour.hour), reason: fault.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use vocab::{MilliGpus, NodeId};

    #[test]
    fn an_hour_keeps_the_moment_in_which_most_was_allocated() {
        let look = |hp, spot| NodeUse {
            node: NodeId::parse("n1").unwrap(),
            gpus: 8,
            hp: MilliGpus::from_gpus(hp),
            spot: MilliGpus::from_gpus(spot),
            drains: false,
            evictions: 0,
        };
        let mut peaks = Peaks::new();
        for (hp, spot) in [(2, 1), (1, 4), (4, 0)] {
            raise(&mut peaks, &[look(hp, spot)]);
        }
        assert_eq!(peaks["n1"], [1_000, 4_000]);
    }
}
