//! Synthetic demand that a case is built from, and changed by.

use datasets::synthetic::SmallCluster;
use datasets::{Calendar, HourRange, Panel, PanelBuilder};
use std::collections::BTreeMap;
use std::ops::Range;
use vocab::{ClusterName, GpuModel, HourStart, Organization, PoolId, SeriesId};

pub const POOL: &str = "made:A100";
pub const WEEK: usize = vocab::HOURS_PER_WEEK as usize;
const HOURS_PER_DAY: usize = vocab::HOURS_PER_DAY as usize;

/// Hourly demand of organizations in GPUs; NaN is an hour without a row.
#[derive(Clone)]
pub struct Made {
    pub demand: BTreeMap<String, Vec<f64>>,
    /// Added to `weekdays`: days off, as a user's file has them.
    days_off: Option<String>,
}

impl Made {
    /// Organizations `org-000`, `org-001`, …, from a Monday on.
    pub fn new(organizations: u32, weeks: usize, seed: u64) -> Self {
        let small = SmallCluster {
            cluster: ClusterName::parse("made").unwrap(),
            gpu_model: GpuModel::parse("A100").unwrap(),
            start: start(),
            days: (weeks * 7) as u32,
            organizations,
            seed,
        };
        let mut demand: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        for row in small.usage() {
            demand.entry(row.series.organization.to_string()).or_default().push(row.demand.as_gpus());
        }
        Self { demand, days_off: None }
    }

    /// Changes the demand of an organization in some hours.
    pub fn change(mut self, organization: &str, hours: Range<usize>, into: impl Fn(f64) -> f64) -> Self {
        let demand = self.demand.get_mut(organization).expect("the organization was made");
        demand[hours].iter_mut().for_each(|gpus| *gpus = into(*gpus));
        self
    }

    /// The same for all of them.
    pub fn change_all(self, hours: &Range<usize>, into: impl Fn(f64) -> f64 + Copy) -> Self {
        let names: Vec<String> = self.demand.keys().cloned().collect();
        names.iter().fold(self, |made, name| made.change(name, hours.clone(), into))
    }

    /// An organization that asks for what another one does.
    pub fn add(mut self, organization: &str, demand: Vec<f64>) -> Self {
        self.demand.insert(organization.to_owned(), demand);
        self
    }

    /// Days, counted from the first one, are off, and each organization asks for `share` of what it would; the calendar
    /// names them where `is_named`.
    pub fn days_off(self, days: &[usize], share: f64, is_named: bool) -> Self {
        let mut csv = String::from("date,kind,name\n");
        let mut made = self;
        for day in days {
            let hours = day * HOURS_PER_DAY..(day + 1) * HOURS_PER_DAY;
            made = made.change_all(&hours, |gpus| (gpus * share).round());
            csv += &hour(hours.start).to_string()[..10];
            csv += ",off,holiday\n";
        }
        Self { days_off: is_named.then_some(csv), ..made }
    }

    pub fn hours(&self) -> usize {
        self.demand.values().map(Vec::len).max().unwrap()
    }

    pub fn panel(&self) -> Panel {
        let own = self.days_off.as_deref();
        let name = own.map_or(Calendar::WEEKDAYS.to_owned(), |_| "made.csv".to_owned());
        let calendar = Calendar::with_own("UTC", &name, own).unwrap();
        let mut builder = PanelBuilder::new(ClusterName::parse("made").unwrap(), calendar, start(), hour(self.hours()));
        for (name, demand) in &self.demand {
            for (number, gpus) in demand.iter().enumerate().filter(|(_, gpus)| !gpus.is_nan()) {
                builder.push(&id(name), hour(number), *gpus).unwrap();
            }
        }
        builder.finish().unwrap()
    }
}

/// Monday, 2024-03-04.
fn start() -> HourStart {
    HourStart::from_unix_s(1_709_510_400).unwrap()
}

pub fn hour(number: usize) -> HourStart {
    start().plus_hours(number as i64)
}

pub fn hours(range: &Range<usize>) -> HourRange {
    HourRange { from: hour(range.start), to: hour(range.end) }
}

pub fn pool() -> PoolId {
    PoolId::parse(POOL).unwrap()
}

pub fn id(organization: &str) -> SeriesId {
    SeriesId { pool: pool(), organization: Organization::parse(organization).unwrap() }
}
