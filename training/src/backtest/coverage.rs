//! How often upper quantiles held, by organization, step, hour of the day and pool.

use super::play::Played;
use command_line::table;
use datasets::{HourRange, Panel, window};
use forecaster::scores::{Coverage, Scored};
use serde::Serialize;
use std::collections::BTreeMap;
use vocab::HorizonHours;

/// Rows are grouped in each of these ways.
const WAYS: [&str; 4] = ["organization", "step", "hour", "pool"];

/// The coverage of one group of rows of one model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CoverageBody {
    pub model: String,
    /// `organization`, `step`, `hour` (of the day, local) or `pool`.
    pub by: &'static str,
    pub of: String,
    pub rows: usize,
    /// Share of demand at or below the quantile.
    pub coverage_q90: f64,
    pub coverage_q95: f64,
    /// Share of demand below the quantile: less where demand often equals it.
    pub below_q90: f64,
    pub below_q95: f64,
}

/// Of one cluster, over the hours that were measured.
pub fn of(panel: &Panel, issues: HourRange, played: &Played, horizon: HorizonHours) -> Vec<CoverageBody> {
    let mut groups: BTreeMap<(usize, String), Coverage> = BTreeMap::new();
    for (issue, forecasts) in issues.iter().zip(&played.rolled) {
        for (series, forecast) in forecasts.iter().enumerate() {
            let Some(came) = window::outcome(panel, series, issue, horizon) else { continue };
            let id = panel.series()[series].id();
            for (index, step) in forecast.steps().iter().enumerate().filter(|(index, _)| came.measured[*index]) {
                let actual_gpus = came.demand_gpus[index];
                let row = Scored { series, step: index + 1, forecast: *step, actual_gpus };
                let hour = panel.calendar().at(issue.plus_hours(index as i64)).hour_of_day;
                let labels = [id.to_string(), format!("{:02}", index + 1), format!("{hour:02}"), id.pool.to_string()];
                for group in labels.into_iter().enumerate() {
                    groups.entry(group).or_default().add(&row);
                }
            }
        }
    }
    let body = |((way, of), coverage): ((usize, String), Coverage)| {
        let ([coverage_q90, coverage_q95], [below_q90, below_q95]) = (coverage.shares(), coverage.shares_below());
        let (model, by, rows) = (played.name.clone(), WAYS[way], coverage.rows);
        CoverageBody { model, by, of, rows, coverage_q90, coverage_q95, below_q90, below_q95 }
    };
    groups.into_iter().map(body).collect()
}

/// Of each model and way the groups whose 0.9 quantile held least and most often. Where demand often equals its quantile,
/// most counts the share below it: a tie is no room left over.
#[must_use]
pub fn table_of_extremes(groups: &[CoverageBody]) -> String {
    let mut kinds: Vec<(&str, &str)> = Vec::new();
    for one in groups {
        if !kinds.contains(&(&one.model, one.by)) {
            kinds.push((&one.model, one.by));
        }
    }
    let row = |&(model, by): &(&str, &str)| {
        let mine = || groups.iter().filter(|one| one.model == model && one.by == by);
        let least = mine().min_by(|one, other| one.coverage_q90.total_cmp(&other.coverage_q90))?;
        let most = mine().max_by(|one, other| one.below_q90.total_cmp(&other.below_q90))?;
        let (low, high) = (format!("{:.3}", least.coverage_q90), format!("{:.3}", most.below_q90));
        Some(vec![model.to_owned(), by.to_owned(), low, least.of.clone(), high, most.of.clone()])
    };
    let rows: Vec<_> = kinds.iter().filter_map(row).collect();
    table(&["model", "cov0.9_by", "least", "of", "most_below", "of"], &rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(by: &'static str, of: &str, at_or_below: f64, below: f64) -> CoverageBody {
        CoverageBody {
            model: "trees".into(),
            by,
            of: of.into(),
            rows: 10,
            coverage_q90: at_or_below,
            coverage_q95: 1.0,
            below_q90: below,
            below_q95: 1.0,
        }
    }

    #[test]
    fn the_table_shows_the_ends_and_a_tie_is_no_room_left_over() {
        let groups = [
            group("organization", "vc1", 0.85, 0.84),
            group("organization", "idle", 1.0, 0.1),
            group("organization", "vc2", 0.95, 0.94),
            group("step", "01", 0.9, 0.9),
        ];
        let lines: Vec<String> = table_of_extremes(&groups).lines().skip(1).map(words).collect();
        assert_eq!(lines, ["trees organization 0.850 vc1 0.940 vc2", "trees step 0.900 01 0.900 01"]);
    }

    fn words(line: &str) -> String {
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}
