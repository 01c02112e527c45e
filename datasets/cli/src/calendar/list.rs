//! `datasets calendar list`.

use super::pair;
use crate::error::CliError;
use command_line::{print_json, print_text, table};
use datasets::CalendarChoice;
use datasets::calendar::{BuiltIn, DayTable};
use datasets::read;
use serde::Serialize;
use std::ops::RangeInclusive;
use store::{Cluster, Store};

#[derive(Serialize)]
struct Listed {
    calendar: String,
    /// None: all years.
    years: Option<[i32; 2]>,
    days: usize,
    clusters: Vec<String>,
    about: String,
}

pub async fn run(database: &str, json: bool) -> Result<(), CliError> {
    let store = store::connect_existing(database).await?;
    let listed = listed(store.as_ref()).await?;
    store.close().await;
    if json {
        print_json(&listed);
        return Ok(());
    }
    let years = |years: [i32; 2]| format!("{} to {}", years[0], years[1]);
    let row = |one: &Listed| {
        let years = one.years.map_or_else(|| "all".to_owned(), years);
        vec![one.calendar.clone(), years, one.days.to_string(), one.clusters.join(" "), one.about.clone()]
    };
    print_text(&table(
        &["calendar", "years", "days", "clusters", "about"],
        &listed.iter().map(row).collect::<Vec<_>>(),
    ));
    Ok(())
}

async fn listed(store: &dyn Store) -> Result<Vec<Listed>, CliError> {
    let clusters = store.clusters().await?;
    let mut listed: Vec<Listed> = BuiltIn::ALL.iter().map(|one| built_in(*one, &clusters)).collect();
    for stored in store.calendars().await? {
        let read = read::days_csv(format!("calendar {}", stored.name).as_ref(), &stored.days_csv)?;
        listed.push(Listed {
            calendar: stored.name.to_string(),
            years: Some(pair(&read.table.years())),
            days: read.table.days().len(),
            clusters: following(&clusters, |choice| choice.own() == Some(&stored.name)),
            about: format!("your own, version {}", stored.version),
        });
    }
    Ok(listed)
}

fn built_in(one: BuiltIn, clusters: &[Cluster]) -> Listed {
    let table: Option<&DayTable> = one.table();
    let years: Option<RangeInclusive<i32>> = table.map(DayTable::years);
    Listed {
        calendar: one.name().to_owned(),
        years: years.as_ref().map(pair),
        days: table.map_or(0, |table| table.days().len()),
        clusters: following(clusters, |choice| choice.base() == Some(one)),
        about: one.about().to_owned(),
    }
}

fn following(clusters: &[Cluster], uses: impl Fn(&CalendarChoice) -> bool) -> Vec<String> {
    let follows = |cluster: &&Cluster| CalendarChoice::parse(&cluster.calendar).is_ok_and(|choice| uses(&choice));
    clusters.iter().filter(follows).map(|cluster| cluster.name.to_string()).collect()
}
