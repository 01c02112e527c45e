//! Table and file.

use super::score::{METHODS, Question, rows, scores};
use super::watch::Watch;
use crate::commands::SimulatorError;
use command_line::{print_json, print_text, say, table};
use serde_json::json;
use std::ops::Range;
use std::path::Path;
use vocab::{TaskClass, UnixSeconds};

/// Writes asked.csv.
///
/// # Errors
/// The folder cannot be written.
pub fn write(folder: &Path, questions: &[Question]) -> Result<(), SimulatorError> {
    let file = folder.join("asked.csv");
    let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&file, rows(questions)));
    written.map_err(|fault| SimulatorError::Write { file, fault })
}

/// Prints a table of the questions of a time, or JSON alone.
pub fn show(watch: &Watch<'_>, of: &Range<UnixSeconds>, json: bool) {
    let scores = scores(&watch.questions, of);
    let cpu_s: f64 = watch.questions.iter().map(|one| one.cpu_s).sum();
    let mean_cpu_ms = 1e3 * cpu_s / watch.questions.len().max(1) as f64;
    let classes = [(TaskClass::Hp, watch.came[0]), (TaskClass::Spot, watch.came[1])];
    if json {
        let count = |(class, came): (TaskClass, u32)| {
            (
                class.as_str(),
                json!({ "submitted": came, "had_to_wait": watch.waited(class), "scores": scores[class.as_str()] }),
            )
        };
        let all: std::collections::BTreeMap<_, _> = classes.map(count).into();
        print_json(&json!({ "classes": all, "cpu_ms_per_question": mean_cpu_ms }));
        return;
    }
    let share = |share: Option<f64>| share.map_or_else(|| "–".to_owned(), |share| format!("{share:.3}"));
    let mut lines = Vec::new();
    for (class, methods) in &scores {
        for name in METHODS {
            let Some(score) = methods.get(name) else { continue };
            let seconds = [score.wait_p50_s, score.pinball_s, score.mean_absolute_error_s, score.pinball_90_s];
            let mut line = vec![(*class).to_owned(), name.to_owned(), score.asked.to_string()];
            line.extend([share(score.coverage_50), share(score.coverage_90)]);
            line.extend(seconds.map(|seconds| format!("{seconds:.0}")));
            lines.push(line);
        }
    }
    let header =
        ["class", "answer", "asked", "within 50 %", "within 90 %", "wait p50 s", "pinball s", "MAE s", "pinball 0.9 s"];
    print_text(&table(&header, &lines));
    for (class, came) in classes {
        say(format_args!("{}: {} of {came} tasks had to wait", class.as_str(), watch.waited(class)));
    }
    say(format_args!("CPU time of a forecast: {mean_cpu_ms:.1} ms on average"));
}
