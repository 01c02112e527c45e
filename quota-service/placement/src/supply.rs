//! The supply of a pool: capacity, idle GPUs, spot GPUs inside their guarantee.

use crate::settings::PoolSettings;
use crate::windows::{Sold, Windows};
use std::collections::BTreeMap;
use vocab::{HorizonHours, MilliGpus, PoolState, UnixSeconds, spot_of_at_least};

/// Everything that is known of a pool's supply.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Known {
    /// As last reported by a scheduler, fresh or not.
    pub state: Option<PoolState>,
    /// The sum over the pool's nodes; `None` without nodes.
    pub node_capacity: Option<MilliGpus>,
    /// From the capacity table that ingest fills.
    pub table_capacity: Option<MilliGpus>,
    /// HP demand of the newest measured hour.
    pub latest_demand: Option<MilliGpus>,
    /// GPUs of the pool that are sold ahead.
    pub windows: Windows,
}

impl Known {
    /// The capacity by the best source, also where a quota needs more than that.
    #[must_use]
    pub fn capacity(&self) -> Option<(MilliGpus, CapacitySource)> {
        let reported = self.state.as_ref().map(|state| (state.capacity, CapacitySource::ReportedState));
        reported
            .or_else(|| self.node_capacity.map(|capacity| (capacity, CapacitySource::Nodes)))
            .or_else(|| self.table_capacity.map(|capacity| (capacity, CapacitySource::CapacityTable)))
    }
}

/// Where a capacity comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CapacitySource {
    /// A reported state that is fresh.
    ReportedState,
    /// The registered nodes.
    Nodes,
    /// The capacities that were imported.
    CapacityTable,
}

impl CapacitySource {
    /// Name in answers.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ReportedState => "reported_state",
            Self::Nodes => "nodes",
            Self::CapacityTable => "capacity_table",
        }
    }
}

/// Why a pool has no supply. Not an error: a quota cannot be computed yet, and the answer says what is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unknown {
    /// The capacity is unknown.
    #[error(
        "its capacity is not known: register its nodes, report its state, or ingest a usage file of this pool alone with --capacity GPUS"
    )]
    Capacity,
    /// The newest demand is unknown.
    #[error("no hour of its demand was measured: ingest usage")]
    Demand,
    #[error(
        "its state was last reported for {as_of}, which is too old: report it again, or delete it if no scheduler \
         reports any more"
    )]
    /// The reported state is too old.
    OldState {
        /// The time of the last reported state.
        as_of: UnixSeconds,
    },
    #[error(
        "its state is of {as_of}, which is still to come: set the clocks of the scheduler and of this service right, and \
         report it again"
    )]
    /// The reported state is from the future.
    FutureState {
        /// The time of the reported state, which is in the future.
        as_of: UnixSeconds,
    },
}

/// The amounts that quota is cut from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Supply {
    /// C.
    pub capacity: MilliGpus,
    /// Source of the capacity.
    pub capacity_source: CapacitySource,
    /// S0.
    pub idle: MilliGpus,
    /// By the hours that were promised.
    pub spot_by_guarantee: BTreeMap<HorizonHours, MilliGpus>,
    /// No fresh state was reported: S0 is capacity less the latest demand, and Sa is zero.
    pub estimated: bool,
    /// HP demand of the newest measured hour.
    pub latest_demand: MilliGpus,
    /// l.
    pub longest_quota_wait_s: u64,
    /// GPUs that are sold ahead, within the hours of each offered guarantee.
    pub sold: BTreeMap<HorizonHours, Sold>,
    /// Idle GPUs that are kept for windows which are open now.
    pub kept: MilliGpus,
}

impl Supply {
    /// GPUs that are sold ahead within `hours`. Of hours that nobody offers, those of the next longer guarantee count.
    #[must_use]
    pub fn sold(&self, hours: HorizonHours) -> Sold {
        let next = self.sold.range(hours..).next().or_else(|| self.sold.last_key_value());
        next.map_or(Sold::default(), |(_, sold)| *sold)
    }

    /// S_a(H): GPUs of spot tasks inside a guarantee of at least `hours`.
    #[must_use]
    pub fn spot(&self, hours: HorizonHours) -> MilliGpus {
        spot_of_at_least(&self.spot_by_guarantee, hours)
    }
}

/// Chooses what is known, best source first: a fresh reported state, the nodes, the capacity table (DESIGN §5).
///
/// A pool whose scheduler reported once and fell silent has no supply: an estimate that takes drained GPUs for idle and
/// forgets the spot tasks would be a larger quota out of ignorance. The same goes for a report from the future.
///
/// # Errors
/// No source has a capacity, the last report is too old or from the future, or the demand is needed to estimate idle GPUs and was never
/// measured.
pub fn supply(known: &Known, settings: &PoolSettings, now: UnixSeconds) -> Result<Supply, Unknown> {
    let fresh = known.state.as_ref();
    if let Some(state) = fresh {
        let (as_of, age_s) = (state.as_of, now.since_s(state.as_of));
        if age_s > settings.state_fresh_s {
            return Err(Unknown::OldState { as_of });
        }
        if age_s < -settings.state_fresh_s {
            return Err(Unknown::FutureState { as_of });
        }
    }
    let (capacity, capacity_source) = known.capacity().ok_or(Unknown::Capacity)?;
    let sold = known.windows.sold(&settings.offered_hours, now);
    let kept = known.windows.unused(now);
    let Some(state) = fresh else {
        let latest_demand = known.latest_demand.ok_or(Unknown::Demand)?;
        debug_assert!(capacity.left_after(latest_demand) <= capacity, "an estimate of idle GPUs exceeds the capacity");
        return Ok(Supply {
            capacity,
            capacity_source,
            idle: capacity.left_after(latest_demand),
            spot_by_guarantee: BTreeMap::new(),
            estimated: true,
            latest_demand,
            longest_quota_wait_s: 0,
            sold,
            kept,
        });
    };
    debug_assert_eq!(capacity_source, CapacitySource::ReportedState, "a fresh state is the best source");
    Ok(Supply {
        capacity,
        capacity_source,
        idle: state.idle,
        spot_by_guarantee: state.spot_by_guarantee.clone(),
        estimated: false,
        latest_demand: known.latest_demand.unwrap_or(MilliGpus::ZERO),
        longest_quota_wait_s: state.longest_quota_wait_s,
        sold,
        kept,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use vocab::PoolId;

    const NOW: UnixSeconds = UnixSeconds::new(1_000_000);

    #[expect(clippy::unnecessary_wraps, reason = "reads better in the pictures below")]
    fn gpus(gpus: u32) -> Option<MilliGpus> {
        Some(MilliGpus::from_gpus(gpus))
    }

    fn state(age_s: i64) -> PoolState {
        let hours = |hours| HorizonHours::new(hours).unwrap();
        PoolState {
            pool: PoolId::parse("earth:V100").unwrap(),
            capacity: MilliGpus::from_gpus(90),
            idle: MilliGpus::from_gpus(10),
            spot_by_guarantee: [(hours(1), MilliGpus::from_gpus(5)), (hours(4), MilliGpus::from_gpus(3))].into(),
            longest_quota_wait_s: 7,
            as_of: NOW.plus_s(-age_s),
        }
    }

    fn of(known: &Known) -> Result<Supply, Unknown> {
        supply(known, &PoolSettings::default(), NOW)
    }

    #[test]
    fn a_fresh_state_wins_over_nodes_and_nodes_over_the_table() {
        let all = Known {
            state: Some(state(600)),
            node_capacity: gpus(80),
            table_capacity: gpus(70),
            latest_demand: gpus(60),
            ..Known::default()
        };
        assert_eq!(of(&all).unwrap().capacity_source, CapacitySource::ReportedState);
        let nodes = Known { state: None, ..all.clone() };
        let supply = of(&nodes).unwrap();
        assert_eq!(
            (supply.capacity_source, supply.idle, supply.estimated),
            (CapacitySource::Nodes, MilliGpus::from_gpus(20), true)
        );
        let table = Known { state: None, node_capacity: None, ..all };
        assert_eq!(of(&table).unwrap().capacity, MilliGpus::from_gpus(70));
    }

    #[test]
    fn after_a_scheduler_fell_silent_nothing_is_estimated_in_its_place() {
        let old =
            Known { state: Some(state(601)), table_capacity: gpus(1_000), latest_demand: gpus(1), ..Known::default() };
        assert_eq!(of(&old), Err(Unknown::OldState { as_of: NOW.plus_s(-601) }));
    }

    #[test]
    fn a_state_from_the_future_is_no_ground_for_an_estimate() {
        let ahead = |seconds: i64| Known {
            state: Some(state(-seconds)),
            table_capacity: gpus(1_000),
            latest_demand: gpus(1),
            ..Known::default()
        };
        assert_eq!(of(&ahead(601)), Err(Unknown::FutureState { as_of: NOW.plus_s(601) }));
        let supply = of(&ahead(600)).unwrap();
        let one_hour = supply.spot(HorizonHours::ONE);
        assert_eq!((supply.estimated, one_hour), (false, MilliGpus::from_gpus(8)), "clocks differ a little");
    }

    #[test]
    fn spot_counts_the_promises_of_at_least_so_many_hours() {
        let supply = of(&Known { state: Some(state(0)), ..Known::default() }).unwrap();
        let spot = |hours| supply.spot(HorizonHours::new(hours).unwrap());
        assert_eq!((spot(1), spot(2), spot(5)), (MilliGpus::from_gpus(8), MilliGpus::from_gpus(3), MilliGpus::ZERO));
    }

    #[test]
    fn missing_inputs_are_named_and_demand_above_capacity_leaves_nothing_idle() {
        assert_eq!(of(&Known::default()), Err(Unknown::Capacity));
        assert_eq!(of(&Known { table_capacity: gpus(70), ..Known::default() }), Err(Unknown::Demand));
        let full = Known { table_capacity: gpus(70), latest_demand: gpus(90), ..Known::default() };
        assert_eq!(of(&full).unwrap().idle, MilliGpus::ZERO);
    }
}
