//! Tables and files.

use super::figures::{Figures, Spread};
use super::work::Work;
use crate::commands::SimulatorError;
use crate::files::{cell, text};
use command_line::{print_json, print_text, say, table};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// Prints a table, or JSON alone.
pub fn show(work: &Work, played: &[(String, Figures)], json: bool) {
    if json {
        print_json(&played.iter().map(|(name, figures)| (name.as_str(), figures)).collect::<BTreeMap<_, _>>());
        return;
    }
    let header = [
        "policy",
        "JCT mean",
        "median",
        "p95",
        "waiting mean",
        "median",
        "p95",
        "futile mean",
        "median",
        "p95",
        "futile GPU h",
        "preemptions",
        "futile ones",
        "µs p50",
        "p99",
        "CPU s",
    ];
    print_text(&table(&header, &played.iter().map(|(name, one)| row(name, one)).collect::<Vec<_>>()));
    deferrals_table(played);
    say(format!(
        "{} jobs on {} GPUs, offered load {:.3}, {} left out; times in seconds; µs: of a decision",
        work.jobs.len(),
        work.gpus,
        work.offered_load(),
        work.left_out
    ));
}

/// X of the policies that defer: of all newcomers that could preempt a job, and of those whose X is above 0.
fn deferrals_table(played: &[(String, Figures)]) {
    let deferred = played.iter().filter_map(|(name, one)| Some((name, one.deferrals.as_ref()?)));
    let rows: Vec<Vec<String>> = deferred
        .flat_map(|(name, one)| {
            let deciles = |of: &[f64]| of.iter().map(|seconds| format!("{seconds:.0}")).collect::<Vec<_>>();
            let parts = [one.at_zero, one.at_most, one.prolonged].map(|part| format!("{part:.3}"));
            let all = [vec![name.clone(), one.count.to_string()], deciles(&one.deciles_s), parts.to_vec()].concat();
            let above = (one.count as f64 * (1.0 - one.at_zero)).round();
            let positive =
                [vec![format!("{name}, X > 0"), above.to_string()], deciles(&one.positive_deciles_s)].concat();
            [all, positive]
        })
        .collect();
    if rows.is_empty() {
        return;
    }
    let header = [
        "X in s",
        "newcomers",
        "least",
        "10 %",
        "20 %",
        "30 %",
        "40 %",
        "50 %",
        "60 %",
        "70 %",
        "80 %",
        "90 %",
        "most",
        "at 0",
        "at 100",
        "prolonged",
    ];
    say("");
    print_text(&table(&header, &rows));
}

fn row(name: &str, one: &Figures) -> Vec<String> {
    let spread = |of: &Spread| [of.mean_s, of.median_s, of.p95_s].map(|seconds| format!("{seconds:.1}"));
    let mut row = vec![name.to_owned()];
    row.extend([one.jct, one.waiting, one.futile].iter().flat_map(spread));
    row.extend([
        format!("{:.2}", one.futile_gpu_hours),
        one.preemptions.to_string(),
        one.futile_preemptions.to_string(),
        format!("{:.1}", one.cost.decision_p50_us),
        format!("{:.1}", one.cost.decision_p99_us),
        format!("{:.2}", one.cost.cpu_s),
    ]);
    row
}

/// Writes timing.csv and deferrals.csv: the same seed, the same bytes, so without what decisions took.
///
/// # Errors
/// The folder or a file cannot be written.
pub fn write(folder: &Path, played: &[(String, Figures)]) -> Result<(), SimulatorError> {
    let fault = |fault| SimulatorError::Write { file: folder.to_owned(), fault };
    std::fs::create_dir_all(folder).map_err(fault)?;
    text(folder, "timing.csv", &figures(played))?;
    text(folder, "deferrals.csv", &deferrals(played))
}

/// One line a policy and figure; a figure within another is named after both.
fn figures(played: &[(String, Figures)]) -> String {
    let mut lines = "policy,figure,value\n".to_owned();
    for (name, one) in played {
        let Ok(serde_json::Value::Object(all)) = serde_json::to_value(one) else { continue };
        for (figure, value) in all.iter().filter(|(figure, _)| *figure != "cost") {
            match value.as_object() {
                Some(parts) => {
                    for (part, value) in parts.iter().filter(|(_, value)| value.is_number()) {
                        let _ = writeln!(lines, "{name},{figure}_{part},{}", cell(value));
                    }
                }
                None => {
                    let _ = writeln!(lines, "{name},{figure},{}", cell(value));
                }
            }
        }
    }
    lines
}

fn deferrals(played: &[(String, Figures)]) -> String {
    let mut lines = "policy,at_s,job,predicted_s,deferral_s\n".to_owned();
    for (name, one) in played {
        for deferral in &one.course {
            let seconds = |ms: i64| ms as f64 / 1_000.0;
            let [at, predicted, long] = [deferral.at_ms, deferral.predicted_ms, deferral.deferral_ms].map(seconds);
            let _ = writeln!(lines, "{name},{at},{},{predicted},{long}", deferral.job);
        }
    }
    lines
}
