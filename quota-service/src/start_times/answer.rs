//! Bodies of answers.

use starts::{Coverage, Doubt, Forecast, HORIZON_S, Kind, PoolFacts, StartExpert, Starts, futures_of};
use vocab::{PoolId, SECONDS_PER_HOUR, TaskClass, TaskId, UnixSeconds};
use wire::{
    MomentBody, ReasonBody, StartAnswer, StartBody, StartCoverageBody, StartIntervalBody, StartedByBody, TaskStatusBody,
};

/// Hours of the horizon.
const HORIZON_HOURS: u8 = (HORIZON_S / SECONDS_PER_HOUR as u32) as u8;

/// The task of an answer.
pub struct About<'a> {
    pub pool: &'a PoolId,
    pub task: Option<&'a TaskId>,
    pub kind: Kind,
    pub status: Option<TaskStatusBody>,
}

/// A forecast of now.
pub fn forecast(
    about: &About<'_>,
    (facts, expert): (&PoolFacts, &StartExpert),
    forecast: &Forecast,
    waits: Option<ReasonBody>,
) -> StartAnswer {
    let class = about.kind.class;
    StartAnswer {
        start: body(&forecast.starts, facts.at()),
        futures: futures_of(facts, expert.memory()),
        calibration: expert.coverage(class).map(|coverage| coverage_body(class, &coverage)),
        doubts: forecast.doubts.iter().map(|doubt| doubt_body(*doubt, about.kind, &forecast.starts)).collect(),
        waits,
        starts_now: false,
        ..at_once(about, facts.at())
    }
}

/// A task that is not submitted, and would start now.
pub fn at_once(about: &About<'_>, now: UnixSeconds) -> StartAnswer {
    StartAnswer {
        cluster: about.pool.cluster.to_string(),
        gpu_model: about.pool.gpu_model.to_string(),
        task: about.task.map(ToString::to_string),
        class: about.kind.class.into(),
        guarantee_hours: wire::hours_body(about.kind.hours),
        status: about.status,
        as_of: now.to_string(),
        starts_now: true,
        start: body(&Starts::now(), now),
        futures: 0,
        horizon_hours: HORIZON_HOURS,
        calibration: None,
        doubts: Vec::new(),
        waits: None,
    }
}

/// A task that runs since a time.
pub fn running(pool: &PoolId, task: &TaskId, kind: Kind, (since, now): (UnixSeconds, UnixSeconds)) -> StartAnswer {
    let about = About { pool, task: Some(task), kind, status: Some(TaskStatusBody::Running) };
    let moment = || Some(MomentBody { at: since.to_string(), wait_s: 0 });
    let interval = || StartIntervalBody { from: moment(), to: moment() };
    let of_now = at_once(&about, now);
    let start = StartBody {
        p50: moment(),
        p90: moment(),
        interval_50: interval(),
        interval_90: interval(),
        started_by: of_now.start.started_by,
    };
    StartAnswer { start, ..of_now }
}

/// The distribution of a start; times are rounded up to whole seconds.
pub fn body(starts: &Starts, now: UnixSeconds) -> StartBody {
    let at = |level| moment(starts.quantile_s(level), now);
    let interval = |from, to| StartIntervalBody { from: at(from), to: at(to) };
    let by = |hours: u8| {
        let seconds = i64::from(hours) * SECONDS_PER_HOUR;
        let probability = starts.probability_by(seconds as f64);
        StartedByBody { hours, at: now.plus_s(seconds).to_string(), probability }
    };
    let hours = (1..=24).chain((30..=HORIZON_HOURS).step_by(6));
    StartBody {
        p50: at(0.5),
        p90: at(0.9),
        interval_50: interval(0.25, 0.75),
        interval_90: interval(0.05, 0.95),
        started_by: hours.map(by).collect(),
    }
}

/// A time from now on; none beyond the horizon.
pub fn moment(wait_s: f64, now: UnixSeconds) -> Option<MomentBody> {
    let whole_s = wait_s.ceil() as i64;
    (wait_s < f64::from(HORIZON_S))
        .then(|| MomentBody { at: now.plus_s(whole_s).to_string(), wait_s: whole_s.unsigned_abs() })
}

/// How forecasts of a class fared.
pub fn coverage_body(class: TaskClass, coverage: &Coverage) -> StartCoverageBody {
    StartCoverageBody {
        class: class.into(),
        scored: coverage.scored as u64,
        coverage_50: coverage.of_50,
        coverage_90: coverage.of_90,
        pinball_s: coverage.pinball_s,
        class_mean_pinball_s: coverage.class_mean_pinball_s,
    }
}

/// Why an answer may be off.
pub fn doubt_body(doubt: Doubt, kind: Kind, starts: &Starts) -> ReasonBody {
    let class = kind.class.as_str();
    let detail = match doubt {
        Doubt::FewJobs => format!("few {class} tasks of the pool have ended: their durations are not known"),
        Doubt::UnknownArrivals => {
            "the pool was watched for too short a time to know what arrives: the forecast has no arrivals".to_owned()
        }
        Doubt::NotCalibrated => {
            format!(
                "few forecasts of {class} tasks were compared with their starts: the coverage of the intervals is not known"
            )
        }
        Doubt::BeyondHorizon => {
            let later = 1.0 - starts.probability_by(f64::from(HORIZON_S));
            format!("with probability {later:.2} it does not start within {HORIZON_HOURS} h")
        }
        Doubt::NotOffered => {
            let hours = kind.hours.map_or(0, vocab::HorizonHours::get);
            format!("the pool offers no guarantee of {hours} h: choose one of GET /v1/pools/{{id}}/settings, or none")
        }
        Doubt::TimedPolicy => "the policy of the pool delays evictions, and the forecast does not".to_owned(),
        Doubt::Elastic => "tasks of the pool shrink and grow, and those of the forecast do not".to_owned(),
        Doubt::FairShares => {
            "organizations take turns by their shares of spot, and those of the forecast do not".to_owned()
        }
        Doubt::Reservations => {
            "windows of the pool are sold ahead: the forecast keeps their GPUs from spot that starts, and neither from HP of others \
             nor from spot at will that runs"
                .to_owned()
        }
        Doubt::Affinity => "the task asks for GPUs that lie together, and the forecast gives it any".to_owned(),
    };
    ReasonBody { code: doubt.code().to_owned(), detail }
}
