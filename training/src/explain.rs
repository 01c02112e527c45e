//! `train explain`: what moved a forecast.

use crate::args::{Config, Explain};
use crate::error::TrainingError;
use crate::{history, runs};
use command_line::{print_json, print_text, table};
use datasets::{Panel, window};
use forecaster::blend::{Blend, Explanation, FeatureGroup};
use forecaster::{Model, Trained, checkpoint};
use serde::Serialize;
use store::{Cluster, RunId, RunRecord, Store};
use vocab::{HourStart, QUANTILE_LEVELS, SeriesId};

/// Hours before the forecast whose windows it is compared with: a week shows each hour of the week.
const COMPARED_HOURS: i64 = 168;

#[derive(Debug, Serialize)]
struct Report {
    run_id: String,
    series: String,
    issue_time: String,
    last_gpus: f64,
    /// Of the run's calibration, which corrects what is explained here, nothing is in these numbers.
    steps: Vec<StepBody>,
}

#[derive(Debug, Serialize)]
struct StepBody {
    step: usize,
    level: f64,
    forecast_gpus: f64,
    /// The mean change from the last value that the model forecast in the week before.
    usual_change_gpus: f64,
    contributions: Vec<ContributionBody>,
    /// Added so that it lies neither below a lower level nor below 0, as in a distribution: with it the parts add up to the forecast.
    held_gpus: f64,
}

#[derive(Debug, Serialize)]
struct ContributionBody {
    group: FeatureGroup,
    gpus: f64,
}

/// Takes one forecast apart.
///
/// # Errors
/// There is no such run or series, its kind is not explained, or its history is too short.
pub async fn run(what: &Explain, config: &Config, json: bool) -> Result<(), TrainingError> {
    let store = store::connect_existing(&config.database).await?;
    let (cluster, record) = chosen(store.as_ref(), what).await?;
    let (id, model) = (record.id, record.facts.model.clone());
    let bytes = store.checkpoint(id).await?;
    let trained = checkpoint::load(&bytes).map_err(|fault| TrainingError::Checkpoint { run: id, fault })?;
    let panel = history::load(store.as_ref(), &cluster, None).await?;
    store.close().await;
    let Model::Blend(blend) = &trained.model else { return Err(TrainingError::NotExplained { run: id, model }) };
    let place = series(&panel, id, blend, what)?;
    let at = what.at.unwrap_or_else(|| panel.end());
    let explanation = explain(&panel, &cluster, &trained, blend, place, at)?;
    let report = report(id, panel.series()[place].id(), at, &explanation);
    if json {
        print_json(&report);
    } else {
        print_text(&tables(&report));
    }
    Ok(())
}

/// The run that is asked for, or the one that serves.
async fn chosen(store: &dyn Store, what: &Explain) -> Result<(Cluster, RunRecord), TrainingError> {
    if let Some(id) = what.run {
        let record = store.run(id).await?;
        let cluster = history::chosen(store, Some(&record.facts.cluster)).await?.remove(0);
        runs::note_other_cluster(
            id,
            &cluster.name,
            what.cluster.as_ref(),
            "a forecast of its own cluster is explained",
        );
        return Ok((cluster, record));
    }
    let mut clusters = history::chosen(store, what.cluster.as_ref()).await?;
    if clusters.len() > 1 {
        let names: Vec<_> = clusters.iter().map(|cluster| cluster.name.to_string()).collect();
        return Err(TrainingError::WhichCluster { known: names.join(", ") });
    }
    let cluster = clusters.remove(0);
    let record = store.promoted(&cluster.name).await?;
    let record = record.ok_or_else(|| TrainingError::NothingPromoted { cluster: cluster.name.clone() })?;
    Ok((cluster, record))
}

/// The place in the panel of the one series that is meant.
fn series(panel: &Panel, run: RunId, blend: &Blend, what: &Explain) -> Result<usize, TrainingError> {
    use forecaster::Predict;
    let known = |id: &SeriesId| blend.knows(id);
    let is_meant = |id: &SeriesId| {
        id.organization.as_str() == what.organization
            && what.gpu_model.as_ref().is_none_or(|model| id.pool.gpu_model.as_str() == model)
    };
    let all: Vec<_> = panel.series().iter().enumerate().filter(|(_, one)| known(one.id())).collect();
    let meant: Vec<_> = all.iter().filter(|(_, one)| is_meant(one.id())).collect();
    if let [(place, _)] = meant[..] {
        return Ok(*place);
    }
    let series = match &what.gpu_model {
        Some(model) => format!("{} of {model}", what.organization),
        None => what.organization.clone(),
    };
    let names: Vec<_> = all.iter().map(|(_, one)| one.id().to_string()).collect();
    Err(TrainingError::NoSeries { run, series, known: names.join(", ") })
}

fn explain(
    panel: &Panel,
    cluster: &Cluster,
    trained: &Trained,
    blend: &Blend,
    place: usize,
    at: HourStart,
) -> Result<Explanation, TrainingError> {
    let spec = &trained.spec;
    let cut =
        |issue: HourStart| window::at_least(panel, place, issue, spec.lookback_hours, spec.least_hours(), spec.horizon);
    let nothing = || TrainingError::NothingToExplain {
        cluster: cluster.name.clone(),
        at,
        series: panel.series()[place].id().to_string(),
    };
    let own = cut(at).map_err(|_| nothing())?;
    let others: Vec<_> = (1..=COMPARED_HOURS).filter_map(|hours| cut(at.plus_hours(-hours)).ok()).collect();
    if others.is_empty() {
        return Err(nothing());
    }
    Ok(blend.explain(&own, &others)?)
}

fn report(run: RunId, series: &SeriesId, at: HourStart, explanation: &Explanation) -> Report {
    let of_step = |(step, one): (usize, &forecaster::blend::StepExplanation)| {
        let quantiles = explanation.forecast.steps()[step].quantiles_gpus;
        let level = |level: usize| {
            let of_groups = one.contributions.iter().map(|of| (of.group, of.quantiles_gpus[level]));
            let moved_gpus = one.usual_gpus[level] + of_groups.clone().map(|(_, gpus)| gpus).sum::<f64>();
            StepBody {
                step: step + 1,
                level: QUANTILE_LEVELS[level],
                forecast_gpus: quantiles[level],
                usual_change_gpus: one.usual_gpus[level],
                contributions: of_groups.map(|(group, gpus)| ContributionBody { group, gpus }).collect(),
                held_gpus: (quantiles[level] - explanation.last_gpus - moved_gpus).max(0.0),
            }
        };
        (0..QUANTILE_LEVELS.len()).map(level).collect::<Vec<_>>()
    };
    Report {
        run_id: run.to_string(),
        series: series.to_string(),
        issue_time: at.to_string(),
        last_gpus: explanation.last_gpus,
        steps: explanation.steps.iter().enumerate().flat_map(of_step).collect(),
    }
}

/// The meaning of each kind of feature, in words.
const fn in_words(group: FeatureGroup) -> &'static str {
    match group {
        FeatureGroup::Hours => "the last 24 hours",
        FeatureGroup::Days => "the same hours on the days before",
        FeatureGroup::Weeks => "the same hours on the weeks before",
        FeatureGroup::Spans => "means and peaks of the last hours to days",
        FeatureGroup::Changes => "how much demand moves from hour to hour",
        FeatureGroup::Size => "how large the demand is",
        FeatureGroup::Calendar => "hour, weekday, day off",
        FeatureGroup::Series => "which organization it is",
    }
}

/// The least that a table shows, with two digits behind the point.
const SHOWN_LEAST_GPUS: f64 = 0.005;
/// Horizons of which a table shows every step.
const STEPS_SHOWN_WHOLE: usize = 8;
/// Steps of longer ones that it shows: hours that are offered by default or as long promises.
const FAR_STEPS_SHOWN: [usize; 9] = [1, 2, 4, 8, 12, 24, 48, 72, 120];

fn tables(report: &Report) -> String {
    // Median and 0.9, and of long horizons some steps; --json has all levels and steps.
    let last = report.steps.iter().map(|step| step.step).max().unwrap_or(0);
    let is_shown = |step: usize| last <= STEPS_SHOWN_WHOLE || FAR_STEPS_SHOWN.contains(&step) || step == last;
    let shown: Vec<&StepBody> = report.steps.iter().filter(|step| step.level < 0.94 && is_shown(step.step)).collect();
    let mut header = vec!["GPUs".to_owned()];
    header.extend(shown.iter().map(|step| format!("+{} h, q{}", step.step, step.level)));
    let signed = |gpus: f64| format!("{gpus:+.2}");
    let mut rows = vec![
        [vec!["the last value".to_owned()], vec![format!("{:.2}", report.last_gpus); shown.len()]].concat(),
        [vec!["usual change from it".to_owned()], shown.iter().map(|step| signed(step.usual_change_gpus)).collect()]
            .concat(),
    ];
    // All windows compared with are of the same series, which therefore moves nothing.
    let groups = FeatureGroup::ALL.into_iter().enumerate().filter(|(_, group)| *group != FeatureGroup::Series);
    for (place, group) in groups {
        let of_group = shown.iter().map(|step| signed(step.contributions[place].gpus));
        rows.push([vec![in_words(group).to_owned()], of_group.collect()].concat());
    }
    if shown.iter().any(|step| step.held_gpus >= SHOWN_LEAST_GPUS) {
        let held = shown.iter().map(|step| signed(step.held_gpus));
        rows.push([vec!["not below 0, nor below a lower level".to_owned()], held.collect()].concat());
    }
    rows.push(
        [vec!["forecast".to_owned()], shown.iter().map(|step| format!("{:.2}", step.forecast_gpus)).collect()].concat(),
    );
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    format!(
        "{} at {}, by {}: what moved the forecast, compared with the week before\n{}",
        report.series,
        report.issue_time,
        report.run_id,
        table(&header, &rows)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(steps: usize) -> Report {
        let one = |step: usize| StepBody {
            step,
            level: 0.5,
            forecast_gpus: 1.0,
            usual_change_gpus: 0.0,
            contributions: FeatureGroup::ALL.map(|group| ContributionBody { group, gpus: 0.0 }).into(),
            held_gpus: if step == 2 { 0.25 } else { 0.0 },
        };
        Report {
            run_id: "run-1".into(),
            series: "earth:A100:vision".into(),
            issue_time: "2024-03-01T00:00:00Z".into(),
            last_gpus: 1.0,
            steps: (1..=steps).map(one).collect(),
        }
    }

    #[test]
    fn a_table_of_three_days_shows_the_hours_that_are_promised_and_its_last_one() {
        let shown = |steps: usize| -> Vec<usize> {
            let text = tables(&report(steps));
            (1..=steps).filter(|step| text.contains(&format!("+{step} h, q0.5"))).collect()
        };
        assert_eq!(shown(6), [1, 2, 3, 4, 5, 6]);
        assert_eq!(shown(74), [1, 2, 4, 8, 12, 24, 48, 72, 74]);
    }

    #[test]
    fn a_table_names_what_holds_a_level_up_where_something_does() {
        let held = |steps: usize| tables(&report(steps)).lines().any(|line| line.starts_with("not below 0"));
        assert_eq!([held(1), held(2)], [false, true]);
        assert!(tables(&report(2)).contains("+0.25"));
    }
}
