//! Curves over what pods have asked for, their mean and deviation over seeds, and figures at some places of them.

use crate::spread::Spread;
use serde::Serialize;
use std::collections::BTreeMap;

/// In percent of all GPUs: so much is asked for when a run ends.
pub const ENDS_AT: u64 = 130;
const GRAR_AT: [usize; 4] = [90, 95, 100, 130];
const EOPC_AT: [usize; 5] = [20, 50, 80, 90, 100];

/// How things stood when so many percent of all GPUs had been asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// GPUs placed of those asked for.
    pub grar: f64,
    pub eopc_kw: f64,
}

/// One run: a point for each percent from 0 to [`ENDS_AT`].
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    pub points: Vec<Point>,
    pub failed_pods: u64,
    pub cpu_s: f64,
}

/// Both curves, a spread for each percent.
#[derive(Debug, Clone, PartialEq)]
pub struct Curves {
    pub grar: Vec<Spread>,
    pub eopc_kw: Vec<Spread>,
}

fn at(runs: &[Run], percent: usize, of: fn(&Point) -> f64) -> Spread {
    let values: Vec<f64> = runs.iter().filter_map(|run| run.points.get(percent)).map(of).collect();
    Spread::of(&values)
}

impl Curves {
    pub fn of(runs: &[Run]) -> Self {
        let all = |of: fn(&Point) -> f64| (0..=ENDS_AT as usize).map(|percent| at(runs, percent, of)).collect();
        Self { grar: all(|point| point.grar), eopc_kw: all(|point| point.eopc_kw) }
    }
}

/// The figures of a policy; the names are those of the field (DESIGN §5).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figures {
    /// By percent.
    pub grar_at: BTreeMap<String, Spread>,
    /// By percent.
    pub eopc_kw_at: BTreeMap<String, Spread>,
    pub failed_pods: Spread,
    pub cpu_s: Spread,
}

impl Figures {
    pub fn of(runs: &[Run]) -> Self {
        let by_percent = |percents: &[usize], of: fn(&Point) -> f64| {
            percents.iter().map(|percent| (percent.to_string(), at(runs, *percent, of))).collect()
        };
        let over = |of: fn(&Run) -> f64| Spread::of(&runs.iter().map(of).collect::<Vec<_>>());
        Self {
            grar_at: by_percent(&GRAR_AT, |point| point.grar),
            eopc_kw_at: by_percent(&EOPC_AT, |point| point.eopc_kw),
            failed_pods: over(|run| run.failed_pods as f64),
            cpu_s: over(|run| run.cpu_s),
        }
    }
}
