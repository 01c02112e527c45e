//! `datasets calendar set`.

use super::{StoredDays, in_words, named, resolve, store_days, warn, warning};
use crate::args::SetCalendar;
use crate::error::CliError;
use crate::panel;
use command_line::{print_json, say, shell_word};
use serde::Serialize;

#[derive(Serialize)]
struct Changed {
    cluster: String,
    time_zone: String,
    calendar: String,
    calendar_before: String,
    calendar_warning: Option<String>,
    own_calendar: Option<StoredDays>,
}

pub async fn run(what: &SetCalendar, database: &str, json: bool) -> Result<(), CliError> {
    let named = named(&what.calendar)?;
    let store = store::connect_existing(database).await?;
    let mut cluster = panel::chosen(store.as_ref(), Some(&what.cluster)).await?.remove(0);
    let calendar_before = cluster.calendar.clone();
    if let Some(zone) = what.time_zone {
        zone.name().clone_into(&mut cluster.time_zone);
    }
    let calendar = resolve(Some(store.as_ref()), &cluster.time_zone, &named).await?;
    cluster.calendar = calendar.name();
    let own_calendar = store_days(store.as_ref(), &named, &[&cluster]).await?;
    store.put_cluster(&cluster).await?;
    let range = store.measured_range(&cluster.name).await?;
    store.close().await;
    let calendar_warning = range.and_then(|(first, last)| warning(&calendar, first, last));
    warn(cluster.name.as_str(), calendar_warning.as_deref());
    if let Some(own) = &own_calendar {
        own.note();
    }
    if json {
        let (time_zone, name) = (cluster.time_zone, cluster.name.to_string());
        let calendar = cluster.calendar;
        print_json(&Changed { cluster: name, time_zone, calendar, calendar_before, calendar_warning, own_calendar });
        return Ok(());
    }
    say(format_args!("cluster {}: time zone {}, calendar {}", cluster.name, cluster.time_zone, in_words(&calendar)));
    say(format_args!("the calendar was {calendar_before}; runs keep the old calendar until they are trained again:"));
    say(format_args!("train --cluster {}", shell_word(cluster.name.as_str())));
    Ok(())
}
