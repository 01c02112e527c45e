//! How far forecasts have to reach: as far as promises do.

use crate::error::TrainingError;
use serde_json::Value;
use std::collections::BTreeSet;
use store::Store;
use vocab::{ClusterName, HorizonHours, PoolId};

/// The hours that a pool offers by default: up to four (GFS table 4).
const USUAL_HOURS: u8 = 4;
/// A promise that begins within an hour ends within another one, and usage may be an hour late.
const MORE_HOURS: u8 = 2;

/// The longest guarantee that pools of a cluster offer: `pools`, those of which it knows the capacity, and those with nodes.
///
/// # Errors
/// The database does not answer.
pub async fn longest(
    store: &dyn Store,
    cluster: &ClusterName,
    mut pools: BTreeSet<PoolId>,
) -> Result<HorizonHours, TrainingError> {
    pools.extend(store.capacities(cluster).await?.into_iter().map(|row| row.pool));
    pools.extend(store.nodes(cluster).await?.into_iter().map(|node| node.pool));
    let mut longest = 1;
    for pool in pools {
        let settings = store.settings(&pool).await?;
        longest = longest.max(settings.map_or(USUAL_HOURS, |settings| offered(&settings.settings_json)));
    }
    Ok(hours(longest))
}

/// How far forecasts have to reach for promises of so many hours.
#[must_use]
pub fn horizon_for(longest: HorizonHours) -> HorizonHours {
    hours(longest.get().saturating_add(MORE_HOURS))
}

/// Why a run of this horizon may not serve: a pool has no quota where its longest guarantee ends after the forecasts.
#[must_use]
pub fn unserved(horizon: HorizonHours, longest: HorizonHours) -> Option<String> {
    (horizon < longest).then(|| {
        let needed = horizon_for(longest);
        format!(
            "pools offer guarantees of up to {longest}, and forecasts of {horizon} would leave them without a quota; \
             train --horizon {needed}, or set fewer offered_hours for these pools first"
        )
    })
}

/// Why a horizon is too short for what pools offer.
#[must_use]
pub fn too_short(horizon: HorizonHours, longest: HorizonHours) -> Option<String> {
    if let Some(why) = unserved(horizon, longest) {
        return Some(why);
    }
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
        assert_eq!(too_short(hours(6), hours(4)), None);
        let text = too_short(hours(4), hours(4)).unwrap();
        assert!(text.ends_with("train --horizon 6h"), "{text}");
        assert_eq!(too_short(hours(168), hours(168)), None, "there is none beyond a week");
        assert_eq!(unserved(hours(4), hours(4)), None);
        let text = unserved(hours(3), hours(4)).unwrap();
        assert!(text.contains("without a quota; train --horizon 6h"), "{text}");
        assert_eq!(too_short(hours(3), hours(4)), Some(text));
    }
}
