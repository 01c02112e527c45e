//! Arguments of the tools. An unknown one is refused.

use super::remedies;
use headroom_client::Pool;
use rmcp::model::{ErrorData, JsonObject};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use wire::plain::{self, Range};

/// The pool that is meant; an absent name is that of the settings, or of the only pool.
#[derive(Debug, Default, Deserialize)]
pub struct OfPool {
    pub cluster: Option<String>,
    pub gpu_model: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pools {}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quota {
    #[serde(default = "one")]
    pub hours: u8,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Why {
    pub task: Option<String>,
    pub hours: Option<u8>,
}

/// The subject of the tool `why`.
#[derive(Debug, PartialEq, Eq)]
pub enum WhyQuestion {
    Task(String),
    Quota { hours: u8 },
}

impl Why {
    /// A task alone, or a quota.
    pub fn question(self) -> Result<WhyQuestion, ErrorData> {
        match (self.task, self.hours) {
            (Some(_), Some(_)) => {
                let detail = "arguments: expected `task` alone, or `hours` of the quota that is explained";
                Err(refused(detail))
            }
            (Some(task), None) => Ok(WhyQuestion::Task(task)),
            (None, hours) => Ok(WhyQuestion::Quota { hours: hours.unwrap_or_else(one) }),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct When {
    pub task: Option<String>,
    pub organization: Option<String>,
    pub gpus_per_pod: Option<f64>,
    pub pods: Option<u32>,
    pub runs_s: Option<u64>,
    pub ends_by: Option<String>,
    pub probability: Option<f64>,
}

/// The subject of the tool `when`.
#[derive(Debug, PartialEq)]
pub enum WhenQuestion {
    Task(String),
    Prices(Box<wire::PriceQuestion>),
}

impl When {
    /// A task alone, or one that is not submitted.
    pub fn question(self, pool: &Pool) -> Result<WhenQuestion, ErrorData> {
        let Self { task, organization, gpus_per_pod, pods, runs_s, ends_by, probability } = self;
        let is_alone = organization.is_none() && gpus_per_pod.is_none() && pods.is_none();
        let is_alone = is_alone && runs_s.is_none() && ends_by.is_none() && probability.is_none();
        match (task, organization) {
            (Some(task), None) if is_alone => Ok(WhenQuestion::Task(task)),
            (Some(_), _) => Err(refused("arguments: expected `task` alone, or no `task`")),
            (None, None) => {
                Err(refused("arguments: expected `task`, or the `organization` of a task that is not submitted"))
            }
            (None, Some(organization)) => Ok(WhenQuestion::Prices(Box::new(wire::PriceQuestion {
                cluster: pool.cluster().to_owned(),
                gpu_model: pool.gpu_model().to_owned(),
                organization,
                gpus_per_pod: gpus_per_pod.unwrap_or_else(one_gpu),
                pods: pods.unwrap_or_else(one_pod),
                cpu_milli: 0,
                memory_mib: 0,
                runs_s,
                ends_by,
                probability,
            }))),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WhatIf {
    #[serde(default = "one")]
    pub hours: u8,
    pub capacity_change_gpus: Option<f64>,
    pub demand_change_gpus: Option<f64>,
    pub guarantee_rate: Option<f64>,
    pub eta: Option<f64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Promises {
    pub days: Option<u32>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statement {
    pub month: Option<String>,
    pub organization: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Submit {
    pub id: String,
    pub organization: String,
    #[serde(default = "spot")]
    pub class: wire::TaskClassBody,
    #[serde(default = "one_gpu")]
    pub gpus_per_pod: f64,
    #[serde(default = "one_pod")]
    pub pods: u32,
    pub guarantee_hours: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cancel {
    pub task: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reservations {
    pub id: Option<u64>,
    pub past: Option<bool>,
}

/// The subject of the tool `reservations`.
#[derive(Debug, PartialEq, Eq)]
pub enum ReservationsQuestion {
    One(u64),
    OfPool { past: bool },
}

impl Reservations {
    /// One reservation alone, or those of a pool.
    pub fn question(self, of: &OfPool) -> Result<ReservationsQuestion, ErrorData> {
        match (self.id, self.past) {
            (Some(id), None) if of.cluster.is_none() && of.gpu_model.is_none() => Ok(ReservationsQuestion::One(id)),
            (Some(_), _) => Err(refused("arguments: expected `id` alone, or no `id`")),
            (None, past) => Ok(ReservationsQuestion::OfPool { past: past.unwrap_or_default() }),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reserve {
    pub organization: String,
    pub gpus: f64,
    pub from: String,
    pub to: String,
    pub days: Option<Vec<wire::WeekdayBody>>,
    pub until: Option<String>,
    #[serde(default)]
    pub dry_run: bool,
}

impl Reserve {
    /// The reservation in a pool.
    pub fn request(self, pool: &Pool) -> Result<wire::ReservationRequest, ErrorData> {
        let Self { organization, gpus, from, to, days, until, dry_run: _ } = self;
        Ok(wire::ReservationRequest {
            cluster: pool.cluster().to_owned(),
            gpu_model: pool.gpu_model().to_owned(),
            organization,
            gpus,
            from,
            to,
            repeats: repeats(days, until)?,
        })
    }
}

/// The days of a window that repeats. An empty list is no single window: who sends it has not named a day.
fn repeats(
    days: Option<Vec<wire::WeekdayBody>>,
    until: Option<String>,
) -> Result<Option<wire::RepeatsBody>, ErrorData> {
    match days {
        Some(days) if days.is_empty() => {
            Err(refused("arguments: `days` is empty: name the days, or leave it out for one window"))
        }
        None if until.is_some() => Err(refused("arguments: `until` needs `days`")),
        days => Ok(days.map(|days| wire::RepeatsBody { days, until })),
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Withdraw {
    pub id: u64,
}

const fn one() -> u8 {
    1
}

const fn one_gpu() -> f64 {
    1.0
}

const fn one_pod() -> u32 {
    1
}

const fn spot() -> wire::TaskClassBody {
    wire::TaskClassBody::Spot
}

/// A call that is refused before the service is asked: the protocol has an error of its own for it, with what other refusals have.
pub fn refused(detail: impl Into<String>) -> ErrorData {
    let (code, detail) = ("bad-query", detail.into());
    let data = json!({ "code": code, "detail": detail, "remedy": remedies::of(code), "retry": false });
    ErrorData::invalid_params(detail, Some(data))
}

/// Takes the names of the pool out of the arguments.
pub fn pool(arguments: &mut JsonObject) -> Result<OfPool, ErrorData> {
    let names = ["cluster", "gpu_model"].map(|name| (name.to_owned(), arguments.remove(name)));
    let given = names.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
    read(given)
}

/// The arguments of a tool.
pub fn read<T: DeserializeOwned>(arguments: JsonObject) -> Result<T, ErrorData> {
    serde_path_to_error::deserialize(Value::Object(arguments)).map_err(|fault| {
        let place = match fault.path().to_string() {
            of_all if of_all == "." => String::new(),
            place => format!("`{place}`: "),
        };
        let detail = plain::fault(&fault.inner().to_string(), Range::default(), &|_| Vec::new());
        refused(format!("arguments: {place}{detail}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_argument_is_named() {
        let fault = |text: &str| read::<Quota>(serde_json::from_str(text).unwrap()).unwrap_err();
        let read = |text: &str| fault(text).message;
        assert_eq!(read(r#"{"hours": "4"}"#), "arguments: `hours`: \"4\" is text; write the number 4");
        assert_eq!(read(r#"{"hours": -1}"#), "arguments: `hours`: it is -1; write a whole number from 0 to 255");
        assert!(read(r#"{"zone": 1}"#).starts_with("arguments: `zone`: unknown field"), "{}", read(r#"{"zone": 1}"#));
        let data = fault(r#"{"hours": "4"}"#).data.unwrap();
        assert_eq!((&data["code"], &data["retry"]), (&json!("bad-query"), &json!(false)));
        assert_eq!(data["remedy"], remedies::of("bad-query").unwrap());
    }

    #[test]
    fn a_question_for_a_task_and_for_a_quota_at_once_is_refused() {
        let why = |task: Option<&str>, hours| Why { task: task.map(str::to_owned), hours }.question();
        assert_eq!(why(Some("t"), None).unwrap(), WhyQuestion::Task("t".to_owned()));
        assert_eq!(why(None, None).unwrap(), WhyQuestion::Quota { hours: 1 });
        assert!(why(Some("t"), Some(4)).unwrap_err().message.contains("`task` alone"));
    }

    #[test]
    fn a_question_for_one_reservation_and_for_those_of_a_pool_at_once_is_refused() {
        let asked = |id, past, cluster: Option<&str>| {
            let of = OfPool { cluster: cluster.map(str::to_owned), gpu_model: None };
            Reservations { id, past }.question(&of)
        };
        assert_eq!(asked(Some(7), None, None).unwrap(), ReservationsQuestion::One(7));
        assert_eq!(asked(None, None, Some("earth")).unwrap(), ReservationsQuestion::OfPool { past: false });
        for refused in [asked(Some(7), Some(true), None), asked(Some(7), None, Some("earth"))] {
            assert!(refused.unwrap_err().message.contains("`id` alone"));
        }
    }

    #[test]
    fn a_repetition_on_no_day_is_refused_and_not_sold_once() {
        let until = || Some("2027-01-01T00:00:00Z".to_owned());
        assert!(repeats(Some(Vec::new()), None).unwrap_err().message.contains("`days` is empty"));
        assert!(repeats(None, until()).unwrap_err().message.contains("`until` needs `days`"));
        assert!(repeats(None, None).unwrap().is_none());
        let days: Vec<wire::WeekdayBody> = serde_json::from_str("[\"MO\"]").unwrap();
        assert_eq!(repeats(Some(days), until()).unwrap().unwrap().until, until());
    }
}
