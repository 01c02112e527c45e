//! `train tune`: settings for a user's own data, judged on validation parts alone.

use crate::args::{Config, Tune};
use crate::error::TrainingError;
use crate::history;
use command_line::{OutputFile, Progress, print_json, print_text, table};
use datasets::Panel;
use forecaster::blend::Settings;
use forecaster::{Fit, ModelKind, ModelSpec, fit, roll, scores, trained};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;
use std::io::Write;
use std::time::Instant;
use store::Cluster;
use vocab::HourStart;

/// Weeks whose hours judge, each by models that learned from the hours before it.
const FOLDS: i64 = 2;
const FOLD_HOURS: i64 = 168;
/// Settings that are better than the default ones by less than this are chance.
const LEAST_GAIN: f64 = 0.005;

/// The result of one try.
#[derive(Debug, Clone, Serialize)]
struct Trial {
    number: usize,
    lookback_hours: usize,
    settings: Settings,
    /// Geometric mean of MAE, pinball losses at 0.9 and 0.95 and CRPS, over that of the default settings.
    loss: f64,
    train_s: f64,
}

#[derive(Debug, Serialize)]
struct Report {
    cluster: String,
    trials: Vec<Trial>,
    best: usize,
    /// Whether none was better than the default settings by more than chance, so that nothing is written.
    kept_default: bool,
}

/// Tries settings, the default ones first, and writes the best where they are better than chance.
///
/// # Errors
/// The history is too short, or the file cannot be written.
pub async fn run(what: &Tune, config: &Config, json: bool) -> Result<(), TrainingError> {
    let store = store::connect_existing(&config.database).await?;
    let mut clusters = history::chosen(store.as_ref(), what.cluster.as_ref()).await?;
    if clusters.len() > 1 {
        let names: Vec<_> = clusters.iter().map(|cluster| cluster.name.to_string()).collect();
        return Err(TrainingError::WhichCluster { known: names.join(", ") });
    }
    let cluster = clusters.remove(0);
    let panel = history::load(store.as_ref(), &cluster, what.until).await?;
    store.close().await;
    let report = tune(&panel, &cluster, what, config.seed)?;
    if let (Some(file), false) = (&what.out, report.kept_default) {
        let text = serde_json::to_string_pretty(&report.trials[report.best].settings).expect("settings are plain data");
        let write = |source| TrainingError::Write { file: file.clone(), source };
        let mut output = OutputFile::create(file).map_err(write)?;
        output.write_all((text + "\n").as_bytes()).map_err(write)?;
        output.finish().map_err(write)?;
    }
    if json {
        print_json(&report);
    } else {
        print_text(&tables(&report, what));
    }
    Ok(())
}

fn tune(panel: &Panel, cluster: &Cluster, what: &Tune, seed: u64) -> Result<Report, TrainingError> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let lookback_hours = history::lookback_hours(what.lookback, panel.hours());
    let progress = Progress::new(&format!("{} tune", cluster.name), what.trials as u64);
    let mut trials: Vec<Trial> = Vec::new();
    let mut whole = 1.0;
    for number in 0..what.trials {
        let settings = if number == 0 { Settings::DEFAULT } else { draw(&mut rng) };
        let started = Instant::now();
        let loss = loss(panel, cluster, what, lookback_hours, settings, seed)?;
        if number == 0 {
            whole = loss;
        }
        let train_s = started.elapsed().as_secs_f64();
        trials.push(Trial { number, lookback_hours, settings, loss: loss / whole, train_s });
        progress.step(number as u64 + 1, format!("loss {:.4} of the default's", loss / whole));
    }
    progress.done();
    let best = (0..trials.len()).min_by(|a, b| trials[*a].loss.total_cmp(&trials[*b].loss)).unwrap_or(0);
    let kept_default = trials[best].loss > 1.0 - LEAST_GAIN;
    Ok(Report { cluster: cluster.name.to_string(), trials, best, kept_default })
}

/// Settings near the default ones, each factor drawn evenly on a logarithmic scale.
fn draw(rng: &mut ChaCha8Rng) -> Settings {
    let mut settings = Settings::DEFAULT;
    let mut between = |low: f64, high: f64| (low.ln() + rng.random::<f64>() * (high / low).ln()).exp();
    settings.growth.leaves = between(6.0, 16.0).round() as usize;
    settings.growth.rows_per_leaf = between(30.0, 200.0).round() as usize;
    settings.growth.features = between(0.1, 0.8);
    settings.growth.rate = between(0.03, 0.15);
    settings.lesson.rate = between(2e-4, 2e-3);
    settings.lesson.dropout = between(0.05, 0.4) as f32;
    settings.lesson.weight_decay = between(0.005, 0.3);
    settings
}

/// The mean over the folds of the logarithm of the losses, as a loss.
fn loss(
    panel: &Panel,
    cluster: &Cluster,
    what: &Tune,
    lookback_hours: usize,
    settings: Settings,
    seed: u64,
) -> Result<f64, TrainingError> {
    let spec = ModelSpec { kind: ModelKind::OrgLinear, horizon: what.horizon, lookback_hours, seed };
    let (mut sum, mut count) = (0.0, 0);
    for fold in 0..FOLDS {
        let until = panel.end().plus_hours(-fold * FOLD_HOURS);
        match of_fold(panel, cluster, until, spec, settings) {
            Ok(losses) => {
                sum += losses.iter().map(|loss| loss.max(f64::MIN_POSITIVE).ln()).sum::<f64>();
                count += losses.len();
            }
            // A short history has one fold.
            Err(TrainingError::Split { .. }) if fold > 0 => {}
            Err(fault) => return Err(fault),
        }
    }
    Ok((sum / f64::from(u32::try_from(count.max(1)).unwrap_or(u32::MAX))).exp())
}

/// Losses on the validation part of the hours before `until`.
fn of_fold(
    panel: &Panel,
    cluster: &Cluster,
    until: HourStart,
    spec: ModelSpec,
    settings: Settings,
) -> Result<[f64; 4], TrainingError> {
    let name = || cluster.name.clone();
    let split = trained::split(panel, until, &spec).map_err(|fault| TrainingError::Split { cluster: name(), fault })?;
    let model = fit(&Fit { panel, split, spec, settings }, &mut |_| ())
        .map_err(|fault| TrainingError::Train { cluster: name(), fault: fault.into() })?;
    let rolled = roll(&model, panel, split.validation)?;
    let (rows, _) = scores::collect(panel, split.validation, &rolled, spec.horizon);
    let scores = scores::score(&rows).ok_or(TrainingError::NothingScored)?;
    Ok([scores.mae_median_gpus, scores.pinball_gpus[0], scores.pinball_gpus[1], scores.crps_gpus])
}

fn tables(report: &Report, what: &Tune) -> String {
    let header =
        ["trial", "loss", "leaves", "rows a leaf", "features", "tree rate", "net rate", "dropout", "decay", "s"];
    let mut sorted: Vec<&Trial> = report.trials.iter().collect();
    sorted.sort_by(|a, b| a.loss.total_cmp(&b.loss).then(a.number.cmp(&b.number)));
    let row = |trial: &&Trial| {
        let (growth, lesson) = (&trial.settings.growth, &trial.settings.lesson);
        vec![
            if trial.number == 0 { "default".to_owned() } else { trial.number.to_string() },
            format!("{:.4}", trial.loss),
            growth.leaves.to_string(),
            growth.rows_per_leaf.to_string(),
            format!("{:.2}", growth.features),
            format!("{:.3}", growth.rate),
            format!("{:.5}", lesson.rate),
            format!("{:.2}", lesson.dropout),
            format!("{:.3}", lesson.weight_decay),
            format!("{:.1}", trial.train_s),
        ]
    };
    let end = match (report.kept_default, &what.out) {
        (true, _) => {
            format!("none is better than the default settings by more than {} %: keep them\n", 100.0 * LEAST_GAIN)
        }
        (false, Some(file)) => {
            format!("the best are in {0}: train --horizon {1} --settings {0}\n", file.display(), what.horizon)
        }
        (false, None) => "the best are better than chance: write them with --out FILE\n".to_owned(),
    };
    table(&header, &sorted.iter().map(row).collect::<Vec<_>>()) + &end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_settings_that_pass_their_check_and_repeat_with_the_seed() {
        let drawn = |seed: u64| {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            (0..200).map(|_| draw(&mut rng)).collect::<Vec<_>>()
        };
        assert!(drawn(3).iter().all(|settings| settings.check().is_ok()));
        assert_eq!(drawn(3), drawn(3));
        assert_ne!(drawn(3), drawn(4));
    }
}
