//! `train ablation`: what each ingredient of the default model brings.

use super::issues;
use super::play::{Candidate, Variant, play};
use super::report::Report;
use crate::args::{Ablation, Backtest, Config, Replay};
use crate::error::TrainingError;
use crate::history;
use crate::scores::ScoresBody;
use command_line::{print_json, print_text, table};
use forecaster::ModelKind;
use forecaster::blend::{FeatureGroup, Settings};
use forecaster::bound::Aggregation;
use forecaster::calibration::Switch;
use serde::Serialize;
use vocab::GuaranteeRate;

/// One line of the table.
#[derive(Debug, Serialize)]
struct Row {
    variant: String,
    scores: ScoresBody,
    /// Of the pools' bounds, calibrated on their own peaks; the mean over pools.
    bound_pinball_gpus: f64,
    /// Share of issue times with bound < peak.
    bound_under: f64,
    train_s: f64,
}

/// Plays the default model whole and with one ingredient less each time, and prints one table.
///
/// # Errors
/// The window was not measured, or a cluster cannot be trained.
pub async fn ablation(what: &Ablation, config: &Config, json: bool) -> Result<(), TrainingError> {
    let store = store::connect_existing(&config.database).await?;
    let rate = GuaranteeRate::new(config.guarantee_rate)?;
    let what = of_backtest(what);
    let mut report = Report::default();
    for cluster in history::chosen(store.as_ref(), what.cluster.as_ref()).await? {
        let panel = history::load(store.as_ref(), &cluster, None).await?;
        let issues = issues(&what, &cluster, panel.end())?;
        let capacities = store.capacities(&cluster.name).await?;
        for variant in variants(config.seed) {
            let played = play(&panel, &cluster, issues, &what, &Candidate::Fresh(variant), rate)?;
            report.add(&panel, issues, &played, what.horizon, &capacities);
        }
    }
    store.close().await;
    report.check()?;
    let rows = rows(&report);
    if json {
        print_json(&rows);
    } else {
        print_text(&tables(&rows));
    }
    Ok(())
}

fn of_backtest(what: &Ablation) -> Backtest {
    Backtest {
        horizon: what.horizon,
        from: what.from,
        to: what.to,
        cluster: what.cluster.clone(),
        model: Vec::new(),
        lookback: what.lookback,
        settings: None,
        run: None,
        refit: None,
        calibration: Switch::Auto,
        out: None,
        pool_out: None,
        replay: Replay::default(),
    }
}

/// The whole model first, then one ingredient less each, then what it has to beat.
fn variants(seed: u64) -> Vec<Variant> {
    let whole = Settings::DEFAULT;
    let variant = |name: &str, kind: ModelKind, settings: Settings, calibration: Switch| Variant {
        name: name.to_owned(),
        kind,
        settings,
        calibration,
        seed,
    };
    let ours = |name: &str, settings: Settings| variant(name, ModelKind::OrgLinear, settings, Switch::Auto);
    let mut single = whole;
    (single.growth.members, single.lesson.members) = (1, 1);
    let old = Settings { history_hours_least: usize::MAX, ..whole };
    let mut all = vec![
        ours("orglinear", whole),
        variant("without calibration", ModelKind::OrgLinear, whole, Switch::Off),
        variant("without the network", ModelKind::Trees, whole, Switch::Auto),
        variant("without the trees", ModelKind::Network, whole, Switch::Auto),
        ours("one member each", single),
        ours("without young windows", old),
    ];
    for group in FeatureGroup::ALL {
        all.push(ours(&format!("without {}", group.as_str()), Settings { without: Some(group), ..whole }));
    }
    all.push(variant("orglinear-paper", ModelKind::OrgLinearPaper, whole, Switch::Auto));
    all.push(variant("last-value", ModelKind::LastValue, whole, Switch::Auto));
    all
}

fn rows(report: &Report) -> Vec<Row> {
    let row = |(variant, scores, train_s): (String, ScoresBody, Option<f64>)| {
        let name = Aggregation::Mixture.as_str();
        let bounds = report.pools().iter().filter(|(of, bound)| *of == variant && bound.aggregation == name);
        let all: Vec<_> = bounds.map(|(_, bound)| (bound.pinball_gpus, bound.under)).collect();
        let count = all.len().max(1) as f64;
        let (bound_pinball_gpus, bound_under) =
            all.iter().fold((0.0, 0.0), |sum, one| (sum.0 + one.0 / count, sum.1 + one.1 / count));
        Row { variant, scores, bound_pinball_gpus, bound_under, train_s: train_s.unwrap_or_default() }
    };
    report.scored().into_iter().map(row).collect()
}

/// Each number, and behind it by how many percent it is more than that of the whole model.
fn tables(rows: &[Row]) -> String {
    let header = [
        "variant",
        "mae_median",
        "rmse_mean",
        "pin0.9",
        "pin0.95",
        "crps",
        "maqe0.9",
        "bound pinball",
        "under",
        "train_s",
    ];
    let of = |row: &Row| {
        let scores = &row.scores;
        [
            scores.mae_median_gpus,
            scores.rmse_mean_gpus,
            scores.pinball_q90_gpus,
            scores.pinball_q95_gpus,
            scores.crps_gpus,
        ]
    };
    let Some(whole) = rows.first() else { return String::new() };
    let compared = |value: f64, whole: f64| {
        let more = 100.0 * (value / whole - 1.0);
        // Of nothing there is no part.
        if more.abs() < 0.05 || !more.is_finite() {
            format!("{value:.3}")
        } else {
            format!("{value:.3} ({more:+.1} %)")
        }
    };
    let line = |row: &Row| {
        let mut cells = vec![row.variant.clone()];
        cells.extend(of(row).into_iter().zip(of(whole)).map(|(value, whole)| compared(value, whole)));
        cells.push(format!("{:.3}", row.scores.maqe_q90));
        cells.push(compared(row.bound_pinball_gpus, whole.bound_pinball_gpus));
        cells.push(format!("{:.3}", row.bound_under));
        cells.push(format!("{:.1}", row.train_s));
        cells
    };
    table(&header, &rows.iter().map(line).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_variant_has_a_name_of_its_own_and_lacks_something() {
        let all = variants(1);
        let names: std::collections::BTreeSet<_> = all.iter().map(|one| one.name.clone()).collect();
        assert_eq!(names.len(), all.len());
        for one in &all[1..] {
            let same = one.kind == all[0].kind && one.settings == all[0].settings;
            assert!(!same || one.calibration != all[0].calibration, "{} is the whole model", one.name);
        }
    }
}
