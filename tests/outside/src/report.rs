//! The findings of a campaign, as one line of JSON.

use crate::{Outcome, options::Options};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::process::Command;
use std::sync::Mutex;

/// Examples of each kind of violation that are printed; all are counted.
const EXAMPLES: usize = 12;
/// Examples that begin alike are alike.
const SAME: usize = 36;

/// Counts, figures and violations of one campaign on one database. Workers share it.
#[derive(Default)]
pub struct Report {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    counts: BTreeMap<String, u64>,
    figures: Map<String, Value>,
    violations: BTreeMap<String, (u64, Vec<String>)>,
    not_run: Option<String>,
}

impl Report {
    fn with<T>(&self, change: impl FnOnce(&mut Inner) -> T) -> T {
        change(&mut self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    pub fn count(&self, name: &str) {
        self.add(name, 1);
    }

    pub fn add(&self, name: &str, number: u64) {
        self.with(|inner| *inner.counts.entry(name.to_owned()).or_default() += number);
    }

    pub fn counted(&self, name: &str) -> u64 {
        self.with(|inner| inner.counts.get(name).copied().unwrap_or(0))
    }

    pub fn figure(&self, name: &str, value: impl Into<Value>) {
        self.with(|inner| inner.figures.insert(name.to_owned(), value.into()));
    }

    /// Something that must not be: `rule` is the sentence that was broken.
    pub fn violation(&self, rule: &str, example: impl Into<String>) {
        self.with(|inner| {
            let (count, examples) = inner.violations.entry(rule.to_owned()).or_default();
            *count += 1;
            let example: String = example.into();
            // The same field or request again says nothing new.
            let start: String = example.chars().take(SAME).collect();
            if examples.len() < EXAMPLES && !examples.iter().any(|known| known.starts_with(&start)) {
                examples.push(example);
            }
        });
    }

    /// The campaign could not run on this machine.
    pub fn not_run(&self, reason: impl Into<String>) {
        self.with(|inner| inner.not_run = Some(reason.into()));
    }

    pub fn has_violations(&self) -> bool {
        self.with(|inner| !inner.violations.is_empty())
    }

    /// Prints the line, and appends it to the file of `--out`.
    pub fn publish(&self, options: &Options, database: &str) -> Outcome<()> {
        let line = self.with(|inner| {
            let violations: Vec<Value> = inner
                .violations
                .iter()
                .map(|(rule, (count, examples))| json!({"rule": rule, "count": count, "examples": examples}))
                .collect();
            json!({
                "campaign": options.campaign, "seed": options.seed, "seconds": options.seconds, "commit": commit(),
                "database": database, "counts": inner.counts, "figures": inner.figures, "not_run": inner.not_run,
                "violations": violations,
            })
        });
        println!("{line}");
        if let Some(reason) = line["not_run"].as_str() {
            eprintln!("outside: {} on {database} was not run: {reason}", options.campaign);
        }
        let Some(out) = &options.out else { return Ok(()) };
        let file = OpenOptions::new().create(true).append(true).open(out);
        let written = file.and_then(|mut file| writeln!(file, "{line}"));
        written.map_err(|fault| format!("{}: {fault}: name a file that can be written", out.display()))
    }
}

fn commit() -> String {
    let ran = Command::new("git").args(["rev-parse", "HEAD"]).output();
    ran.map(|ran| String::from_utf8_lossy(&ran.stdout).trim().to_owned()).unwrap_or_default()
}

/// The `percent` percentile of times in milliseconds; `None` of none.
pub fn percentile(times_ms: &mut [f64], percent: usize) -> Option<f64> {
    times_ms.sort_by(f64::total_cmp);
    let last = times_ms.len().checked_sub(1)?;
    Some(times_ms[last * percent / 100])
}
