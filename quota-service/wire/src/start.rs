//! The start of a task, and the price of a guarantee in waiting.

use crate::answer::ReasonBody;
use crate::choices::{TaskClassBody, TaskStatusBody};
use crate::fault::{FieldFault, Place};
use crate::task::TaskBody;
use crate::topology::AffinityBody;
use placement::pool::Request;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use vocab::{PoolId, UnixSeconds};

/// A task that is only asked about has a name of its own.
const ASKED: &str = "asked";
/// The longest run time that can be stated: the horizon of the futures.
pub(crate) const MOST_RUN_S: u64 = 72 * vocab::SECONDS_PER_HOUR as u64;
/// The probability with which a task is to end in time, where none is asked for.
const PROBABILITY: f64 = 0.9;

const fn one() -> u32 {
    1
}

/// `POST /v1/tasks/eta`: a task that is not submitted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StartQuestion {
    /// The cluster.
    pub cluster: String,
    /// The GPU model.
    pub gpu_model: String,
    /// The organization.
    pub organization: String,
    /// The class of the task.
    pub class: TaskClassBody,
    /// A share of one GPU such as 0.25, or whole ones.
    pub gpus_per_pod: f64,
    /// The number of pods, all alike.
    #[serde(default = "one")]
    pub pods: u32,
    /// Thousandths of a virtual CPU, of each pod; 0 for no requirement.
    #[serde(default)]
    pub cpu_milli: u64,
    /// Memory of each pod, in MiB.
    #[serde(default)]
    pub memory_mib: u64,
    /// The guarantee hours that a spot task asks for; without them, it runs at will.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guarantee_hours: Option<u64>,
    /// The affinity of a pod's whole GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub affinity: Option<AffinityBody>,
}

impl StartQuestion {
    /// The pool, and the request that would be made to it.
    ///
    /// # Errors
    /// A field is refused.
    pub fn parse(&self, now: UnixSeconds) -> Result<(PoolId, Request), FieldFault> {
        let task = TaskBody {
            cluster: self.cluster.clone(),
            gpu_model: self.gpu_model.clone(),
            id: ASKED.to_owned(),
            organization: self.organization.clone(),
            class: self.class,
            gpus_per_pod: self.gpus_per_pod,
            pods: self.pods,
            cpu_milli: self.cpu_milli,
            memory_mib: self.memory_mib,
            guarantee_hours: self.guarantee_hours,
            affinity: self.affinity,
            elastic: None,
        };
        task.parse(now)
    }
}

/// `POST /v1/tasks/prices`: a task whose class and guarantee are open.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PriceQuestion {
    /// The cluster.
    pub cluster: String,
    /// The GPU model.
    pub gpu_model: String,
    /// The organization.
    pub organization: String,
    /// A share of one GPU such as 0.25, or whole ones.
    pub gpus_per_pod: f64,
    /// The number of pods, all alike.
    #[serde(default = "one")]
    pub pods: u32,
    /// Thousandths of a virtual CPU, of each pod; 0 for no requirement.
    #[serde(default)]
    pub cpu_milli: u64,
    /// Memory of each pod, in MiB.
    #[serde(default)]
    pub memory_mib: u64,
    /// How long the task runs, in seconds: what its end follows from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs_s: Option<u64>,
    /// When it is to have ended, RFC 3339; needs `runs_s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends_by: Option<String>,
    /// The probability with which it is to have ended by then; 0.9 if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
}

/// When a task is to have ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Deadline {
    /// The time.
    pub at: UnixSeconds,
    /// The probability.
    pub probability: f64,
}

impl PriceQuestion {
    /// The same task in a class, with a guarantee or without.
    #[must_use]
    pub fn of(&self, class: TaskClassBody, guarantee_hours: Option<u64>) -> StartQuestion {
        StartQuestion {
            cluster: self.cluster.clone(),
            gpu_model: self.gpu_model.clone(),
            organization: self.organization.clone(),
            class,
            gpus_per_pod: self.gpus_per_pod,
            pods: self.pods,
            cpu_milli: self.cpu_milli,
            memory_mib: self.memory_mib,
            guarantee_hours,
            affinity: None,
        }
    }

    /// How long it runs, in seconds, and its deadline.
    ///
    /// # Errors
    /// A field is refused.
    pub fn parse(&self, now: UnixSeconds) -> Result<(Option<u64>, Option<Deadline>), FieldFault> {
        let place = Place("");
        let runs_s = self.runs_s.map(|runs_s| place.positive("runs_s", runs_s, MOST_RUN_S)).transpose()?;
        let probability = self.probability.unwrap_or(PROBABILITY);
        if !(probability > 0.0 && probability < 1.0) {
            return Err(place.fault("probability", "write a number between 0 and 1, such as 0.9"));
        }
        let Some(text) = &self.ends_by else {
            return match self.probability {
                Some(_) => Err(place.fault("probability", "it is that of `ends_by`: write both, or neither")),
                None => Ok((runs_s, None)),
            };
        };
        let at = place.instant("ends_by", text)?;
        if runs_s.is_none() {
            return Err(place.fault("runs_s", "an end follows from the run time: write how many seconds the task runs"));
        }
        let in_s = at.since_s(now);
        if in_s <= 0 || in_s.unsigned_abs() > MOST_RUN_S {
            return Err(place.fault("ends_by", format!("{at} is not within 72 h after {now}")));
        }
        Ok((runs_s, Some(Deadline { at, probability })))
    }
}

/// A time that is forecast.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MomentBody {
    /// RFC 3339.
    pub at: String,
    /// Seconds from the forecast on; 0 for a time before it.
    pub wait_s: u64,
}

/// The probability of a start by a time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StartedByBody {
    /// Hours from the forecast on.
    pub hours: u8,
    /// RFC 3339.
    pub at: String,
    /// From 0 to 1.
    pub probability: f64,
}

/// An interval of a start. A time beyond the horizon is null.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StartIntervalBody {
    /// Its begin.
    pub from: Option<MomentBody>,
    /// Its end.
    pub to: Option<MomentBody>,
}

/// The distribution of a start. A time beyond the horizon is null.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StartBody {
    /// The median.
    pub p50: Option<MomentBody>,
    /// The time by which it has started with 90 %.
    pub p90: Option<MomentBody>,
    /// The interval that holds the start with 50 %.
    pub interval_50: StartIntervalBody,
    /// The same with 90 %.
    pub interval_90: StartIntervalBody,
    /// The probability of a start by each hour up to 24, and by each sixth one up to 72.
    pub started_by: Vec<StartedByBody>,
}

/// Median and 90 % of a start, in short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StartSpanBody {
    /// The median, RFC 3339; null beyond the horizon.
    pub p50: Option<String>,
    /// The time by which it has started with 90 %, RFC 3339; null beyond the horizon.
    pub p90: Option<String>,
    /// When it was forecast, RFC 3339.
    pub as_of: String,
    /// The median as it was announced before, RFC 3339, in an event; null beyond the horizon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
}

/// How earlier forecasts of starts fared, of a class in a pool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StartCoverageBody {
    /// The class.
    pub class: TaskClassBody,
    /// Forecasts whose start is known.
    pub scored: u64,
    /// Share of starts inside of the interval that was stated with 50 %.
    pub coverage_50: f64,
    /// The same of 90 %.
    pub coverage_90: f64,
    /// Mean pinball loss over the levels 0.05, 0.1, 0.25, 0.5, 0.75, 0.9 and 0.95, in seconds.
    pub pinball_s: f64,
    /// The same of the mean wait of the class in the week before, in seconds; null while few forecasts had it beside them.
    #[serde(default)]
    pub class_mean_pinball_s: Option<f64>,
}

/// `GET /v1/tasks/{id}/eta` and `POST /v1/tasks/eta`: when a task will start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StartAnswer {
    /// The cluster.
    pub cluster: String,
    /// The GPU model.
    pub gpu_model: String,
    /// The id of the task; null for one that is not submitted.
    pub task: Option<String>,
    /// The class of the task.
    pub class: TaskClassBody,
    /// Guarantee hours; null for a task at will.
    pub guarantee_hours: Option<u64>,
    /// `waiting` or `running`; null for a task that is not submitted.
    pub status: Option<TaskStatusBody>,
    /// When it was forecast, RFC 3339.
    pub as_of: String,
    /// Whether it would start at once.
    pub starts_now: bool,
    /// When it will start; of a running task, when it has started.
    pub start: StartBody,
    /// How many futures of the pool were drawn; 0 where none was needed.
    pub futures: u32,
    /// No start is forecast beyond so many hours.
    pub horizon_hours: u8,
    /// How earlier forecasts of this class fared; null while there are few.
    pub calibration: Option<StartCoverageBody>,
    /// Why the answer may be off.
    pub doubts: Vec<ReasonBody>,
    /// Why it does not start now.
    pub waits: Option<ReasonBody>,
}

/// The price of a class and a guarantee in waiting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PriceBody {
    /// The class of the task.
    pub class: TaskClassBody,
    /// Guarantee hours; null for HP, which is never evicted, and for spot at will.
    pub guarantee_hours: Option<u64>,
    /// Whether it would start at once.
    pub starts_now: bool,
    /// When it would start.
    pub start: StartBody,
    /// The price in short, such as `spot, 4 h: in 35 min`.
    pub text: String,
    /// When it would have ended with the asked probability, evictions included; null without `runs_s`, and beyond the horizon.
    pub ends: Option<MomentBody>,
    /// The probability that it has ended by `ends_by`; null without one.
    pub ends_by_probability: Option<f64>,
    /// Whether that is at least what was asked for; null without `ends_by`.
    pub ends_in_time: Option<bool>,
    /// The last time of submission, of those that were tried, at which it still ends in time; null where it does not.
    pub submit_by: Option<String>,
    /// Why the price may be off.
    pub doubts: Vec<ReasonBody>,
}

/// The answer to `POST /v1/tasks/prices`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PriceList {
    /// The cluster.
    pub cluster: String,
    /// The GPU model.
    pub gpu_model: String,
    /// When it was forecast, RFC 3339.
    pub as_of: String,
    /// p, the probability with which a guarantee is kept.
    pub guarantee_rate: f64,
    /// Spot at will, spot by rising guarantee, and HP.
    pub prices: Vec<PriceBody>,
    /// The place in `prices` of the one with the fewest guarantee hours that ends in time, spot before HP; null without one, and
    /// without `ends_by`.
    pub cheapest_in_time: Option<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: UnixSeconds = UnixSeconds::new(1_790_000_000);

    fn question(change: fn(&mut PriceQuestion)) -> Result<(Option<u64>, Option<Deadline>), String> {
        let mut question = PriceQuestion {
            cluster: "earth".to_owned(),
            gpu_model: "A100".to_owned(),
            organization: "vision".to_owned(),
            gpus_per_pod: 8.0,
            pods: 1,
            cpu_milli: 0,
            memory_mib: 0,
            runs_s: Some(7_200),
            ends_by: Some(NOW.plus_s(14_400).to_string()),
            probability: Some(0.95),
        };
        change(&mut question);
        question.parse(NOW).map_err(|fault| fault.to_string())
    }

    #[test]
    fn a_deadline_needs_a_run_time_and_a_probability_a_deadline() {
        let deadline = Deadline { at: NOW.plus_s(14_400), probability: 0.95 };
        assert_eq!(question(|_| {}), Ok((Some(7_200), Some(deadline))));
        let default = question(|one| one.probability = None).unwrap().1;
        assert_eq!(default, Some(Deadline { probability: 0.9, ..deadline }));
        let none = |one: &mut PriceQuestion| (one.ends_by, one.probability) = (None, None);
        assert_eq!(question(none), Ok((Some(7_200), None)));
        let faults = [
            question(|one| one.runs_s = None),
            question(|one| one.runs_s = Some(0)),
            question(|one| one.runs_s = Some(MOST_RUN_S + 1)),
            question(|one| one.ends_by = None),
            question(|one| one.ends_by = Some(NOW.to_string())),
            question(|one| one.ends_by = Some(NOW.plus_s(1 + MOST_RUN_S as i64).to_string())),
            question(|one| one.probability = Some(1.0)),
            question(|one| one.probability = Some(f64::NAN)),
        ];
        let fields =
            ["/runs_s", "/runs_s", "/runs_s", "/probability", "/ends_by", "/ends_by", "/probability", "/probability"];
        for (fault, field) in faults.into_iter().zip(fields) {
            let fault = fault.unwrap_err();
            assert!(fault.starts_with(&format!("{field}: ")), "{fault}");
        }
    }
}
