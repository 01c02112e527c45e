//! Which nodes are kept for a gang that does not fit now.

use crate::fleet::{Fleet, Gang, GpuRequest, WHOLE_MILLI};
use std::collections::BTreeSet;
use vocab::{TaskClass, UnixSeconds};

impl Fleet {
    /// The nodes on which a gang fits soonest when nobody of its class comes there any more: pod after pod the one on which
    /// the fewest GPUs are missing, then the first by number. `taken` is kept for others. None if it does not fit even so.
    ///
    /// Tasks that are kept off these nodes cannot make them worse, and another choice is made only where it is better: GPUs that are
    /// missing become fewer with every task that ends there, so that the gang starts once enough of them have.
    #[must_use]
    pub fn slots(&self, gang: &Gang, taken: &BTreeSet<usize>) -> Option<BTreeSet<usize>> {
        let (pods, breaker) = (gang.pods as usize, i64::from(self.evictions.breaker()));
        let mut slots: Vec<(u64, usize)> = Vec::new();
        for (gpus, row) in self.index.rows(gang.class) {
            let mut found = 0;
            for number in row.iter().map(|node| *node as usize) {
                let node = &self.nodes[number];
                let is_broken =
                    gang.class == TaskClass::Spot && i64::from(self.evictions.weight(node.evictions)) >= breaker;
                if is_broken || taken.contains(&number) || !node.takes(&gang.pod) {
                    continue;
                }
                let most = usize::try_from(node.pods_when_empty(&gang.pod)).unwrap_or(usize::MAX).min(pods);
                slots.extend((1..=most).map(|count| (missing(gang.pod.gpus, count as u64, gpus), number)));
                found += usize::from(most > 0);
                // Nodes after these are no better.
                if found == pods {
                    break;
                }
            }
        }
        if slots.len() < pods {
            return None;
        }
        debug_assert!(
            slots.iter().all(|(_, node)| !taken.contains(node)),
            "nodes that are kept for others are left out"
        );
        slots.sort_unstable();
        Some(slots.into_iter().take(pods).map(|(_, node)| node).collect())
    }

    /// When the pods of a gang could have their GPUs on these nodes, if each task there runs as long again as it has run: how
    /// long tasks run is not known. `now` where nothing is in the way.
    #[must_use]
    pub fn expected_start(&self, gang: &Gang, nodes: &BTreeSet<usize>, now: UnixSeconds) -> UnixSeconds {
        let tasks =
            self.tasks.values().filter(|running| gang.class == TaskClass::Spot || running.class == TaskClass::Hp);
        let ends = |node: usize| {
            let here = tasks.clone().filter(|running| running.places.iter().any(|place| place.node == node));
            let mut ends: Vec<(UnixSeconds, u64)> = here
                .map(|running| {
                    let pods = running.places.iter().filter(|place| place.node == node).count() as u64;
                    let age_s = now.since_s(running.since).max(0);
                    (now.plus_s(age_s), pods * u64::from(running.pod.gpus.milli()))
                })
                .collect();
            ends.sort_unstable();
            ends
        };
        // As many pods on each node as on any: what one holds beyond its share is seldom, and ends no sooner.
        let share = (gang.pods as usize).div_ceil(nodes.len().max(1)) as u64;
        let free = |node: usize| {
            let wanted = share * u64::from(gang.pod.gpus.milli());
            let all = self.nodes[node].gpus.len() as u64 * u64::from(WHOLE_MILLI);
            let ends = ends(node);
            let mut free = all.saturating_sub(ends.iter().map(|(_, milli)| milli).sum());
            let mut at = now;
            for (end, milli) in ends {
                if free >= wanted {
                    break;
                }
                free += milli;
                at = end;
            }
            at
        };
        nodes.iter().map(|node| free(*node)).max().unwrap_or(now)
    }
}

/// Whole GPUs that so many pods lack where the class could have `gpus`.
fn missing(asked: GpuRequest, pods: u64, gpus: u8) -> u64 {
    let wanted = match asked {
        GpuRequest::Whole(each) => pods * u64::from(each),
        GpuRequest::Share(milli) => (pods * u64::from(milli)).div_ceil(u64::from(WHOLE_MILLI)),
    };
    wanted.saturating_sub(u64::from(gpus))
}
