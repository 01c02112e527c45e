//! The history of a cluster, from the database.

use crate::error::CliError;
use datasets::{Calendar, CalendarChoice, Panel, PanelBuilder};
use store::{Cluster, Store};
use vocab::ClusterName;

/// The clusters that a command is about: the one named, or all.
pub async fn chosen(store: &dyn Store, name: Option<&ClusterName>) -> Result<Vec<Cluster>, CliError> {
    let all = store.clusters().await?;
    if all.is_empty() {
        return Err(CliError::NothingThere);
    }
    let known: Vec<_> = all.iter().map(|cluster| cluster.name.to_string()).collect();
    let chosen: Vec<_> = all.into_iter().filter(|cluster| name.is_none_or(|name| cluster.name == *name)).collect();
    match name {
        Some(name) if chosen.is_empty() => Err(CliError::NoCluster { name: name.clone(), known: known.join(", ") }),
        _ => Ok(chosen),
    }
}

/// Calendar of a cluster.
pub async fn calendar(store: &dyn Store, cluster: &Cluster) -> Result<Calendar, CliError> {
    let broken = |fault| CliError::ClusterCalendar { cluster: cluster.name.clone(), fault };
    let choice = CalendarChoice::parse(&cluster.calendar).map_err(broken)?;
    let own = match choice.own() {
        Some(name) => store.calendar(name).await?,
        None => None,
    };
    let csv = own.as_ref().map(|own| own.days_csv.as_str());
    Calendar::with_own(&cluster.time_zone, &cluster.calendar, csv).map_err(broken)
}

/// All of a cluster's usage, the hours that have the pool's own peak alone among them; `None` where it has none.
pub async fn load(store: &dyn Store, cluster: &Cluster) -> Result<Option<Panel>, CliError> {
    let Some((first, last)) = store.measured_range(&cluster.name).await? else { return Ok(None) };
    let calendar = self::calendar(store, cluster).await?;
    let (from, to) = (first, last.plus_hours(1));
    let mut builder = PanelBuilder::new(cluster.name.clone(), calendar, from, to);
    let mut fault = None;
    let sink = &mut |series: &_, hour, demand: vocab::HourDemand| {
        if let Err(refused) = builder.push_demand(series, hour, demand) {
            fault.get_or_insert(refused);
        }
    };
    store.load_usage(&cluster.name, from, to, sink).await?;
    fault.map_or(Ok(()), Err)?;
    Ok(Some(builder.finish_measured()?))
}
