//! The history of a cluster, from the database.

use crate::args::Lookback;
use crate::error::TrainingError;
use crate::usage::Usage;
use datasets::{Calendar, CalendarChoice, Panel, PanelBuilder, Series};
use sha2::{Digest, Sha256};
use store::{Cluster, Store};
use vocab::{ClusterName, HorizonHours, HourDemand, HourStart, SeriesId};

/// Below this `--lookback auto` looks back a week, from it on four.
const LONG_HISTORY_HOURS: usize = 60 * 24;
const SHORT_LOOKBACK_HOURS: usize = 168;
const LONG_LOOKBACK_HOURS: usize = 672;

/// The clusters that a command is about: the one named, or all.
///
/// # Errors
/// There is none, or none of that name.
pub async fn chosen(store: &dyn Store, name: Option<&ClusterName>) -> Result<Vec<Cluster>, TrainingError> {
    let all = store.clusters().await?;
    if all.is_empty() {
        return Err(TrainingError::NothingThere);
    }
    let Some(name) = name else { return Ok(all) };
    let known: Vec<_> = all.iter().map(|cluster| cluster.name.to_string()).collect();
    let found = all.into_iter().find(|cluster| cluster.name == *name);
    let missing = || TrainingError::NoCluster { name: name.clone(), known: known.join(", ") };
    Ok(vec![found.ok_or_else(missing)?])
}

/// A cluster's usage in the hours before `until`, or all of it.
///
/// # Errors
/// There is none, or the database does not answer.
pub async fn load(store: &dyn Store, cluster: &Cluster, until: Option<HourStart>) -> Result<Panel, TrainingError> {
    load_from(Usage::Stored(store), store, cluster, until).await
}

/// As [`load`], of usage that may be in files; zone and calendar of the cluster are those of the database.
///
/// # Errors
/// As [`load`].
pub async fn load_from(
    usage: Usage<'_>,
    store: &dyn Store,
    cluster: &Cluster,
    until: Option<HourStart>,
) -> Result<Panel, TrainingError> {
    let calendar = calendar(store, cluster).await?;
    let of_panel = |fault| TrainingError::Panel { cluster: cluster.name.clone(), fault };
    let [first, end] = range(usage, cluster, until).await?;
    let mut builder = PanelBuilder::new(cluster.name.clone(), calendar, first, end);
    let mut fault = None;
    let sink = &mut |series: &SeriesId, hour: HourStart, demand: HourDemand| {
        if let Err(refused) = builder.push_demand(series, hour, demand) {
            fault.get_or_insert(refused);
        }
    };
    usage.load(&cluster.name, [first, end], sink).await?;
    fault.map_or(Ok(()), Err).map_err(of_panel)?;
    builder.finish().map_err(of_panel)
}

/// First hour with usage, and the hour after the last one before `until`.
pub(crate) async fn range(
    usage: Usage<'_>,
    cluster: &Cluster,
    until: Option<HourStart>,
) -> Result<[HourStart; 2], TrainingError> {
    let remedy = match usage {
        Usage::Stored(_) => "datasets ingest",
        Usage::Files(_) => "name files in --usage whose column cluster holds it, or another --cluster",
    };
    let empty = || TrainingError::NoUsage { cluster: cluster.name.clone(), remedy };
    let (first, last) = usage.range(&cluster.name).await?.ok_or_else(empty)?;
    let end = until.unwrap_or_else(|| last.plus_hours(1)).min(last.plus_hours(1));
    if end <= first {
        return Err(TrainingError::NoHours { cluster: cluster.name.clone(), until: end });
    }
    Ok([first, end])
}

pub(crate) async fn calendar(store: &dyn Store, cluster: &Cluster) -> Result<Calendar, TrainingError> {
    let refused = |fault| TrainingError::Calendar { cluster: cluster.name.clone(), fault };
    let choice = CalendarChoice::parse(&cluster.calendar).map_err(refused)?;
    let own = match choice.own() {
        Some(name) => store.calendar(name).await?,
        None => None,
    };
    let days = own.as_ref().map(|own| own.days_csv.as_str());
    Calendar::with_own(&cluster.time_zone, &cluster.calendar, days).map_err(refused)
}

/// Where the hours of a panel, or those forecast after it, lie beyond the years that its calendar knows.
#[must_use]
pub fn uncovered(panel: &Panel, horizon: HorizonHours) -> Option<String> {
    let last = panel.end().plus_hours(i64::from(horizon.get()) - 1);
    Some(format!("cluster {}: {}", panel.cluster(), panel.calendar().uncovered(panel.start(), last)?))
}

/// SHA-256 of what a training sees: series, hours, values, gaps, and ends of hours below their peaks.
#[must_use]
pub fn sha256(panel: &Panel, until: HourStart) -> [u8; 32] {
    let mut hash = Sha256::new();
    let hours = panel.index_of(until).unwrap_or(0).min(panel.hours());
    hash.update(panel.start().unix_s().to_le_bytes());
    for series in panel.series().iter().chain(panel.pool_peaks()) {
        digest(series, hours, &mut hash);
    }
    hash.finalize().into()
}

/// Adds the first hours of a series to a digest.
pub(crate) fn digest(series: &Series, hours: usize, hash: &mut Sha256) {
    hash.update(format!("{}\n", series.id()));
    for (demand, measured) in series.demand_gpus()[..hours].iter().zip(series.measured()) {
        hash.update(demand.to_le_bytes());
        hash.update([u8::from(*measured)]);
    }
    for (hour, fallen_gpus) in series.falls().iter().filter(|(hour, _)| (*hour as usize) < hours) {
        hash.update(hour.to_le_bytes());
        hash.update(fallen_gpus.to_le_bytes());
    }
}

/// Hours that a model sees, for a history of `history_hours`.
#[must_use]
pub const fn lookback_hours(lookback: Lookback, history_hours: usize) -> usize {
    match lookback {
        Lookback::Hours(hours) => hours,
        Lookback::Auto if history_hours < LONG_HISTORY_HOURS => SHORT_LOOKBACK_HOURS,
        Lookback::Auto => LONG_LOOKBACK_HOURS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auto_looks_back_a_week_on_a_short_history_and_four_on_a_long_one() {
        assert_eq!(lookback_hours(Lookback::Auto, 24 * 24), 168);
        assert_eq!(lookback_hours(Lookback::Auto, 163 * 24), 672);
        assert_eq!(lookback_hours("336h".parse().unwrap(), 163 * 24), 336);
        assert!("0h".parse::<Lookback>().is_err());
    }
}
