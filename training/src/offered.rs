//! How far forecasts have to reach: as far as promises do.

use crate::error::TrainingError;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use store::Store;
use vocab::{ClusterName, HorizonHours, PoolId};

/// The hours that a pool offers by default: up to four (GFS table 4).
const USUAL_HOURS: u8 = 4;
/// A promise that begins within an hour ends within another one, and usage may be an hour late.
const MORE_HOURS: u8 = 2;

/// The longest guarantee of each pool of a cluster.
pub type Longest = BTreeMap<PoolId, HorizonHours>;

/// The longest guarantee that each pool of a cluster offers: `pools`, those of which it knows the capacity, and those with nodes.
///
/// # Errors
/// The database does not answer.
pub async fn by_pool(
    store: &dyn Store,
    cluster: &ClusterName,
    mut pools: BTreeSet<PoolId>,
) -> Result<Longest, TrainingError> {
    pools.extend(store.capacities(cluster).await?.into_iter().map(|row| row.pool));
    pools.extend(store.nodes(cluster).await?.into_iter().map(|node| node.pool));
    let mut longest = Longest::new();
    for pool in pools {
        let settings = store.settings(&pool).await?;
        let most = settings.map_or(USUAL_HOURS, |settings| offered(&settings.settings_json));
        longest.insert(pool, hours(most));
    }
    Ok(longest)
}

/// The longest one of all.
#[must_use]
pub fn of_all(pools: &Longest) -> HorizonHours {
    pools.values().copied().max().unwrap_or(HorizonHours::ONE)
}

/// How far forecasts have to reach for promises of so many hours.
#[must_use]
pub fn horizon_for(longest: HorizonHours) -> HorizonHours {
    hours(longest.get().saturating_add(MORE_HOURS))
}

/// Pools that are named.
const NAMED: usize = 3;

/// Why a run of this horizon may not serve: a pool has no quota where its longest guarantee ends after the forecasts. Where another run
/// serves, with a horizon of its own, pools that have none with it lose none.
#[must_use]
pub fn unserved(horizon: HorizonHours, serving: Option<HorizonHours>, pools: &Longest) -> Option<String> {
    let loses = |(_, longest): &(&PoolId, &HorizonHours)| {
        horizon < **longest && serving.is_none_or(|serving| **longest <= serving)
    };
    let losing: Vec<_> = pools.iter().filter(loses).collect();
    let longest = losing.iter().map(|(_, longest)| **longest).max()?;
    let names: Vec<_> = losing.iter().take(NAMED).map(|(pool, _)| pool.to_string()).collect();
    let more = match losing.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let needed = horizon_for(longest);
    Some(format!(
        "{}{more}: guarantees of up to {longest} are offered, and forecasts of {horizon} would leave none of them a quota; \
         train --horizon {needed}, or set fewer offered_hours first",
        names.join(", ")
    ))
}

/// Why a horizon is too short for what pools offer.
#[must_use]
pub fn too_short(horizon: HorizonHours, pools: &Longest) -> Option<String> {
    if let Some(why) = unserved(horizon, None, pools) {
        return Some(why);
    }
    let longest = of_all(pools);
    let needed = horizon_for(longest);
    (horizon < needed).then(|| {
        format!(
            "pools offer guarantees of up to {longest}, which begin within an hour and rest on usage that may be an hour late: \
             forecasts of {horizon} end before such a guarantee does, and their last hour stands for the rest; train --horizon {needed}"
        )
    })
}

/// Of the settings of a pool, as they are stored.
fn offered(settings_json: &str) -> u8 {
    let settings: Option<Value> = serde_json::from_str(settings_json).ok();
    let hours = settings.as_ref().and_then(|settings| settings["offered_hours"].as_array());
    let longest = hours.and_then(|hours| hours.iter().filter_map(Value::as_u64).max());
    longest.and_then(|hours| u8::try_from(hours).ok()).unwrap_or(USUAL_HOURS)
}

fn hours(hours: u8) -> HorizonHours {
    let hours = hours.clamp(1, HorizonHours::MAX);
    HorizonHours::new(u64::from(hours)).unwrap_or(HorizonHours::ONE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forecasts_reach_two_hours_beyond_the_longest_guarantee() {
        assert_eq!(offered(r#"{"offered_hours": [1, 8, 24]}"#), 24);
        assert_eq!((offered("{}"), offered("not JSON")), (USUAL_HOURS, USUAL_HOURS));
        assert_eq!((horizon_for(hours(4)), horizon_for(hours(168))), (hours(6), hours(168)));
        let of = |longest: &[u8]| -> Longest {
            let name = |number| PoolId::parse(&format!("earth:m{number}")).unwrap();
            longest.iter().enumerate().map(|(number, most)| (name(number), hours(*most))).collect()
        };
        assert_eq!(too_short(hours(6), &of(&[4])), None);
        let text = too_short(hours(4), &of(&[4, 1])).unwrap();
        assert!(text.ends_with("train --horizon 6h"), "{text}");
        assert_eq!(too_short(hours(168), &of(&[168])), None, "there is none beyond a week");
        assert_eq!(unserved(hours(4), None, &of(&[4])), None);
        let text = unserved(hours(3), None, &of(&[4, 2, 4, 4, 4])).unwrap();
        assert!(
            text.starts_with("earth:m0, earth:m2, earth:m3 and 1 more: ") && text.contains("--horizon 6h"),
            "{text}"
        );
        assert_eq!(too_short(hours(3), &of(&[4, 2, 4, 4, 4])), Some(text));
        // A pool that has no quota with the run that serves loses none.
        let pools = of(&[1, 4]);
        let refused = |serving| unserved(hours(3), Some(hours(serving)), &pools).is_some();
        assert_eq!((refused(3), refused(4), refused(6)), (false, true, true));
    }
}
