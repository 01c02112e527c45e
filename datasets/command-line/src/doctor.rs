//! Answer of a `doctor` command: checks in order, as lines or as JSON.

use crate::{Config, ConfigError, Entry, Exit, Failure, Settings, colours_on_stdout, print_json, print_text};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Display;
use vocab::{SECONDS_PER_DAY, SECONDS_PER_HOUR};

/// How a check came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// No problem.
    Ok,
    /// The service works, but not fully, or not for long.
    Warn,
    /// The service does not start, or does not work.
    Fail,
}

impl Status {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }

    /// Green, yellow, red.
    const fn colour(self) -> &'static str {
        match self {
            Self::Ok => "\u{1b}[32m",
            Self::Warn => "\u{1b}[33m",
            Self::Fail => "\u{1b}[31m",
        }
    }
}

/// One check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Name of the check, in a few words.
    pub name: String,
    /// Outcome of the check.
    pub status: Status,
    /// Result of the check, in words.
    pub found: String,
    /// Command or setting that fixes the problem.
    #[serde(rename = "mend")]
    pub fix: Option<String>,
}

impl Check {
    /// A check without a problem.
    pub fn ok(name: impl Into<String>, found: impl Display) -> Self {
        Self { name: name.into(), status: Status::Ok, found: found.to_string(), fix: None }
    }

    /// A problem that does not stop the program; `fix` solves it.
    pub fn warn(name: impl Into<String>, found: impl Display, fix: impl Into<String>) -> Self {
        Self { name: name.into(), status: Status::Warn, found: found.to_string(), fix: Some(fix.into()) }
    }

    /// A problem that stops the program until it is fixed.
    pub fn fail(name: impl Into<String>, found: impl Display, fix: impl Into<String>) -> Self {
        Self { name: name.into(), status: Status::Fail, found: found.to_string(), fix: Some(fix.into()) }
    }
}

impl Check {
    /// Where those settings that are not defaults come from. Unknown keys were refused before.
    #[must_use]
    pub fn settings(entries: &[Entry]) -> Self {
        let mut by_origin: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for entry in entries.iter().filter(|entry| entry.origin != "default") {
            by_origin.entry(&entry.origin).or_default().push(&entry.key);
        }
        if by_origin.is_empty() {
            return Self::ok("settings", "all are defaults");
        }
        let origins: Vec<String> =
            by_origin.iter().map(|(origin, keys)| format!("{origin}: {}", keys.join(", "))).collect();
        Self::ok("settings", origins.join("; "))
    }
}

/// All checks of one run.
#[derive(Debug, Serialize)]
pub struct Report {
    checks: Vec<Check>,
    ok: usize,
    warn: usize,
    fail: usize,
}

impl Report {
    /// The report of these checks.
    #[must_use]
    pub fn of(checks: Vec<Check>) -> Self {
        let count = |status| checks.iter().filter(|check| check.status == status).count();
        Self { ok: count(Status::Ok), warn: count(Status::Warn), fail: count(Status::Fail), checks }
    }

    /// Prints it on stdout.
    pub fn print(&self, json: bool) {
        if json {
            print_json(self);
        } else {
            print_text(&self.text(colours_on_stdout()));
        }
    }

    /// Failures and warnings in a sentence; `None` where the program ends well.
    #[must_use]
    pub fn verdict(&self, strict: bool) -> Option<String> {
        let (fail, warn) = (self.fail, self.warn);
        let of = |count: usize, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
        match (fail, warn) {
            (0, 0) => None,
            (0, _) if !strict => None,
            (0, _) => Some(format!("{} with --strict", of(warn, "warning"))),
            (_, 0) => Some(of(fail, "failure")),
            _ => Some(format!("{}, {}", of(fail, "failure"), of(warn, "warning"))),
        }
    }

    /// The checks, in order.
    #[must_use]
    pub fn checks(&self) -> &[Check] {
        &self.checks
    }

    /// One line for each check, and one for all.
    fn text(&self, coloured: bool) -> String {
        let width = self.checks.iter().map(|check| check.name.chars().count()).max().unwrap_or(0);
        let line = |check: &Check| {
            let Check { name, status, found, fix } = check;
            let word = match (status, coloured) {
                (status, false) => format!("{:<4}", status.as_str()),
                (status, true) => format!("{}{:<4}\u{1b}[0m", status.colour(), status.as_str()),
            };
            // Messages of the system may have several lines.
            let found = found.split_whitespace().collect::<Vec<_>>().join(" ");
            let fix = fix.as_ref().map(|fix| format!(" -> {fix}")).unwrap_or_default();
            format!("{word}  {name:<width$}  {found}{fix}\n")
        };
        let lines: String = self.checks.iter().map(line).collect();
        format!("{lines}{} ok, {} warn, {} fail\n", self.ok, self.warn, self.fail)
    }
}

/// Runs the checks of `program`'s doctor, and prints the report. `examine` answers it, with the exit code where a check fails.
///
/// # Errors
/// 4 where the settings are invalid, the exit code of `examine` where a check fails, or where one warns and `strict` is set.
pub async fn doctor<C: Config>(
    program: &str,
    settings: Result<Settings<C>, ConfigError>,
    (strict, json): (bool, bool),
    examine: impl AsyncFnOnce(&C, &[Entry]) -> (Report, Exit),
) -> Result<(), Failure> {
    let known = settings.and_then(|settings| {
        let entries = settings.entries().to_vec();
        settings.values().map(|config| (config, entries))
    });
    let (report, exit) = match known {
        Ok((config, entries)) => examine(&config, &entries).await,
        Err(fault) => {
            let fix = format!("correct it; {program} config show --origin prints the origin of each setting");
            (Report::of(vec![Check::fail("settings", fault, fix)]), Exit::ConfigInvalid)
        }
    };
    report.print(json);
    match report.verdict(strict) {
        None => Ok(()),
        Some(why) => Err(Failure::new(exit, why)),
    }
}

/// A duration in the unit that says most.
#[must_use]
pub fn span(seconds: i64) -> String {
    match seconds.abs() {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / SECONDS_PER_HOUR),
        _ => format!("{} days", seconds / SECONDS_PER_DAY),
    }
}

/// When something of this age was: `9 min ago`. A moment that is still to come is the mark of two clocks that differ.
#[must_use]
pub fn ago(age_s: i64) -> String {
    match age_s {
        0.. => format!("{} ago", span(age_s)),
        _ => format!("{} ahead of the clock of this machine", span(age_s.saturating_neg())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_still_to_come_is_ahead_of_this_clock_and_not_a_negative_time_ago() {
        assert_eq!([540, 0, -540].map(ago), ["9 min ago", "0 s ago", "9 min ahead of the clock of this machine"]);
    }

    fn report() -> Report {
        Report::of(vec![
            Check::ok("clock", "well"),
            Check::warn("run earth", "it is\n  old", "train"),
            Check::fail("database", "gone", "start it"),
        ])
    }

    #[test]
    fn each_check_is_one_aligned_line_with_its_remedy() {
        let expected = "ok    clock      well\n\
                        warn  run earth  it is old -> train\n\
                        fail  database   gone -> start it\n\
                        1 ok, 1 warn, 1 fail\n";
        assert_eq!(report().text(false), expected);
        assert!(report().text(true).contains("\u{1b}[31mfail\u{1b}[0m  database   gone"));
    }

    #[test]
    fn warnings_count_as_failures_with_strict() {
        assert_eq!(report().verdict(false).as_deref(), Some("1 failure, 1 warning"));
        let warned = Report::of(report().checks[..2].to_vec());
        assert_eq!(warned.verdict(false), None);
        assert_eq!(warned.verdict(true).as_deref(), Some("1 warning with --strict"));
        assert_eq!(Report::of(report().checks[..1].to_vec()).verdict(true), None);
    }

    #[test]
    fn a_span_has_the_unit_that_says_most() {
        assert_eq!(
            [0, 119, 120, 7_199, 7_200, 172_799, 172_800].map(span),
            ["0 s", "119 s", "2 min", "119 min", "2 h", "47 h", "2 days"]
        );
    }
}
