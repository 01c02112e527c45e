//! How often spot tasks were evicted from each node lately (GFS Eqs. 15 and 16).

use std::collections::BTreeSet;
use vocab::UnixSeconds;

/// The weight of evictions. Whole numbers, so that nodes compare alike on every machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EvictionSettings {
    /// 3,600 s, GFS table 4.
    pub short_window_s: i64,
    /// 86,400 s, GFS table 4.
    pub long_window_s: i64,
    /// γ in thousandths: 800, GFS table 4.
    pub short_weight_milli: u32,
    /// Evictions an hour, in thousandths, from which spot stays away from a node: log₃ 100 = 4.192 with m = 3 of table 4,
    /// where Score 3 is zero (Eq. 16).
    pub breaker_milli: u32,
}

impl Default for EvictionSettings {
    fn default() -> Self {
        Self {
            short_window_s: vocab::SECONDS_PER_HOUR,
            long_window_s: vocab::SECONDS_PER_DAY,
            short_weight_milli: 800,
            breaker_milli: 4_192,
        }
    }
}

/// Evictions that still count, by the time at which they leave a window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evictions {
    settings: EvictionSettings,
    /// When, from which window (0 the short one), number of the event, node.
    leave: BTreeSet<(UnixSeconds, usize, u64, usize)>,
    counts: Vec<[u32; 2]>,
    /// Nodes from which spot stays away.
    resting: BTreeSet<usize>,
    events: u64,
}

impl Evictions {
    /// No evictions yet, under these settings.
    pub const fn new(settings: EvictionSettings) -> Self {
        Self { settings, leave: BTreeSet::new(), counts: Vec::new(), resting: BTreeSet::new(), events: 0 }
    }

    /// Counts an eviction; answers the node's counts.
    pub fn count(&mut self, node: usize, at: UnixSeconds) -> [u32; 2] {
        self.counts.resize(self.counts.len().max(node + 1), [0; 2]);
        for (window, seconds) in [self.settings.short_window_s, self.settings.long_window_s].into_iter().enumerate() {
            self.leave.insert((at.plus_s(seconds), window, self.events, node));
            self.counts[node][window] += 1;
        }
        self.events += 1;
        self.see(node);
        self.counts[node]
    }

    /// Those within the long window, oldest first.
    pub fn counted(&self) -> impl Iterator<Item = (UnixSeconds, usize)> {
        let long = self.leave.iter().filter(|(_, window, ..)| *window == 1);
        long.map(|(leaves, _, _, node)| (leaves.plus_s(-self.settings.long_window_s), *node))
    }

    /// Nodes of which evictions have left a window, with what remains.
    pub fn pass_to(&mut self, now: UnixSeconds) -> Vec<(usize, [u32; 2])> {
        let mut changed = BTreeSet::new();
        while let Some((at, window, _, node)) = self.leave.first().copied().filter(|(at, ..)| *at <= now) {
            debug_assert!(at <= now);
            self.leave.pop_first();
            self.counts[node][window] -= 1;
            changed.insert(node);
        }
        for node in &changed {
            self.see(*node);
        }
        changed.into_iter().map(|node| (node, self.counts[node])).collect()
    }

    fn see(&mut self, node: usize) {
        if self.weight(self.counts[node]) >= self.breaker() {
            self.resting.insert(node);
        } else {
            self.resting.remove(&node);
        }
    }

    /// Nodes that evict too often: spot stays away from them (GFS Alg. 1, line 7).
    pub fn resting(&self) -> impl Iterator<Item = usize> {
        self.resting.iter().copied()
    }

    /// ē in thousandths of an eviction an hour (Eq. 15), no more than the breaker's limit, beyond which Score 3 does not
    /// change.
    pub fn weight(&self, [short, long]: [u32; 2]) -> u32 {
        let EvictionSettings { short_weight_milli, long_window_s, breaker_milli, .. } = self.settings;
        let long_hours = u64::try_from(long_window_s / 3_600).unwrap_or(1).max(1);
        let long_weight = 1_000_u64.saturating_sub(u64::from(short_weight_milli));
        let weight = u64::from(short_weight_milli) * u64::from(short) + long_weight * u64::from(long) / long_hours;
        u32::try_from(weight).unwrap_or(u32::MAX).min(breaker_milli)
    }

    /// Thousandths of an eviction an hour from which spot avoids a node (GFS Alg. 1, line 7).
    pub const fn breaker(&self) -> u32 {
        self.settings.breaker_milli
    }
}
