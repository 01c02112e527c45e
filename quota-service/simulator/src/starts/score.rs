//! Answers held against starts.

use serde::Serialize;
use starts::{HORIZON_S, LEVELS};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;
use vocab::{TaskClass, UnixSeconds};

/// Answerers, in the order of the answers.
pub const METHODS: [&str; 6] =
    ["forecast", "forecast-raw", "plan-requested", "plan-exact", "class-mean", "class-quantiles"];

/// A question, its answers by method and level in seconds, and what happened.
#[derive(Debug, Clone)]
pub struct Question {
    pub job: u32,
    pub at: UnixSeconds,
    pub class: TaskClass,
    pub gpus_milli: u64,
    pub answers: [[f64; LEVELS.len()]; METHODS.len()],
    /// None where the replay ended before.
    pub wait_s: Option<f64>,
    /// CPU time of the forecast, in seconds.
    pub cpu_s: f64,
}

/// How the answers of one method fared.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Score {
    pub asked: usize,
    pub wait_mean_s: f64,
    pub wait_p50_s: f64,
    /// Share of starts within the interval that is stated with 50 %, and with 90 %; none of a single time.
    pub coverage_50: Option<f64>,
    pub coverage_90: Option<f64>,
    /// Mean over the levels 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95.
    pub pinball_s: f64,
    /// Of the median.
    pub mean_absolute_error_s: f64,
    pub pinball_90_s: f64,
}

impl Score {
    /// None where nothing was asked.
    pub fn of<'a>(questions: impl Iterator<Item = &'a Question>, method: usize) -> Option<Self> {
        let horizon_s = f64::from(HORIZON_S);
        let known = questions.filter_map(|one| Some((&one.answers[method], one.wait_s?.min(horizon_s))));
        let known: Vec<([f64; LEVELS.len()], f64)> =
            known.map(|(answer, wait_s)| (answer.map(|at| at.min(horizon_s)), wait_s)).collect();
        let mut waits: Vec<f64> = known.iter().map(|one| one.1).collect();
        waits.sort_by(f64::total_cmp);
        let wait_p50_s = *waits.get(waits.len() / 2)?;
        let mean = |of: &dyn Fn(&[f64; LEVELS.len()], f64) -> f64| {
            known.iter().map(|(answer, wait_s)| of(answer, *wait_s)).sum::<f64>() / known.len() as f64
        };
        let is_point = METHODS[method].starts_with("plan") || METHODS[method] == "class-mean";
        let within = |low: usize, high: usize| {
            let share = mean(&|answer, wait_s| f64::from(u8::from((answer[low]..=answer[high]).contains(&wait_s))));
            (!is_point).then_some(share)
        };
        let pinball = |answer: &[f64; LEVELS.len()], wait_s: f64, place: usize| {
            let off_s = wait_s - answer[place];
            if off_s > 0.0 { LEVELS[place] * off_s } else { (LEVELS[place] - 1.0) * off_s }
        };
        let all = |answer: &[f64; LEVELS.len()], wait_s: f64| {
            (0..LEVELS.len()).map(|place| pinball(answer, wait_s, place)).sum::<f64>() / LEVELS.len() as f64
        };
        Some(Self {
            asked: known.len(),
            wait_mean_s: waits.iter().sum::<f64>() / waits.len() as f64,
            wait_p50_s,
            coverage_50: within(2, 4),
            coverage_90: within(0, 6),
            pinball_s: mean(&all),
            mean_absolute_error_s: mean(&|answer, wait_s| (wait_s - answer[3]).abs()),
            pinball_90_s: mean(&|answer, wait_s| pinball(answer, wait_s, 5)),
        })
    }
}

/// Scores by class and method of the questions of a time.
#[must_use]
pub fn scores(
    questions: &[Question],
    of: &Range<UnixSeconds>,
) -> BTreeMap<&'static str, BTreeMap<&'static str, Score>> {
    let of_class = |class: TaskClass| {
        let asked = || questions.iter().filter(move |one| one.class == class && of.contains(&one.at));
        let one = |(number, name): (usize, &'static str)| Some((name, Score::of(asked(), number)?));
        (class.as_str(), METHODS.into_iter().enumerate().filter_map(one).collect())
    };
    [TaskClass::Hp, TaskClass::Spot].map(of_class).into()
}

/// Every question with its answers, a row each.
#[must_use]
pub fn rows(questions: &[Question]) -> String {
    let mut text = "job,at_unix_s,class,gpus,wait_s,cpu_s".to_owned();
    for (method, level) in METHODS.iter().flat_map(|method| LEVELS.map(|level| (method, level))) {
        let _ = write!(text, ",{method}_{level}");
    }
    text.push('\n');
    for one in questions {
        let wait = one.wait_s.map_or(String::new(), |seconds| seconds.to_string());
        let (at, class, gpus) = (one.at.get(), one.class.as_str(), one.gpus_milli as f64 / 1e3);
        let _ = write!(text, "{},{at},{class},{gpus},{wait},{}", one.job, one.cpu_s);
        for seconds in one.answers.iter().flatten() {
            let _ = write!(text, ",{seconds:.0}");
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_before_and_after_the_scored_time_do_not_count() {
        let question = |at: i64, wait_s: f64| Question {
            job: 0,
            at: UnixSeconds::new(at),
            class: TaskClass::Spot,
            gpus_milli: 1_000,
            answers: [[100.0; LEVELS.len()]; METHODS.len()],
            wait_s: Some(wait_s),
            cpu_s: 0.0,
        };
        let questions = [question(9, 9_000.0), question(10, 100.0), question(19, 100.0), question(20, 9_000.0)];
        let scores = scores(&questions, &(UnixSeconds::new(10)..UnixSeconds::new(20)));
        let forecast = scores["spot"]["forecast"];
        assert_eq!((forecast.asked, forecast.pinball_s, forecast.coverage_50), (2, 0.0, Some(1.0)));
        assert!(scores["hp"].is_empty());
    }
}
