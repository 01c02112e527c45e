//! Usage and outcomes out of the accounting: what was demanded in hours that are over, and how promises ended.
//!
//! Both are made of records alone, so that nothing is lost with a process: the hours are those that `datasets ingest` would
//! make, to the second, and an outcome has the same id from every reporter.

use crate::config::Config;
use crate::shared::Shared;
use crate::site::Site;
use crate::view::Reading;
use serving::standing::Standing;
use slurm_records::demand::{self, DemandFault};
use slurm_records::{History, Job, JobClass, RecordsError, State};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use vocab::{
    ClusterName, EventId, GpuModel, HorizonHours, HourDemand, HourStart, MilliGpus, NodeId, Organization, Outcome,
    OutcomeKind, PoolId, SeriesId, TaskId, UnixSeconds, UsageRow,
};

/// Promises that ended longer ago no longer concern eta, which uses one day.
const OUTCOMES_S: i64 = vocab::SECONDS_PER_DAY;
/// Records may come so late: the accounting was away for a while.
const LATE_S: i64 = 15 * 60;
/// Hours that are read again each hour, for records that come later.
const HOURS_AGAIN: i64 = 6;

/// Outcomes of the promises that have ended until now, not before `since`, in the order of the records.
#[must_use]
pub fn outcomes(
    history: &History,
    reading: &Reading,
    cluster: &ClusterName,
    (since, now): (UnixSeconds, UnixSeconds),
) -> Vec<Outcome> {
    let mut all = Vec::new();
    for job in &history.jobs {
        if reading.rules.class(&job.qos, &job.partition) != JobClass::Spot {
            continue;
        }
        let Some((kind, hours, ended_at)) = ended(job, reading, now) else { continue };
        let Some(started) = job.started.filter(|_| since <= ended_at && ended_at <= now) else { continue };
        for (model, gpus) in models(job, reading) {
            all.push(Outcome {
                event_id: event_id(cluster, job, started, &model),
                pool: PoolId { cluster: cluster.clone(), gpu_model: model },
                guarantee_hours: hours,
                kind,
                ended_at,
                began_at: Some(started),
                gpus: Some(MilliGpus::from_gpus(gpus)),
                task: TaskId::parse(&job.name.to_string()).ok(),
                node: None::<NodeId>,
            });
        }
    }
    all
}

/// How and when a promise ended; none while it holds, or where there was none.
fn ended(job: &Job, reading: &Reading, now: UnixSeconds) -> Option<(OutcomeKind, HorizonHours, UnixSeconds)> {
    let hours = reading.hours(&job.qos, &job.partition)?;
    let until = job.started?.plus_s(hours.seconds());
    match job.ended {
        Some(ended) if ended < until => {
            let kind = match job.state {
                State::Preempted => OutcomeKind::Broken,
                State::NodeFail => OutcomeKind::NodeFailure,
                // It came to its own end, or to that of its time limit.
                State::Completed | State::Failed | State::Timeout => OutcomeKind::Kept,
                State::Cancelled | State::Revoked => OutcomeKind::UserDeleted,
                // An operator requeued it.
                State::Pending | State::Running | State::Suspended | State::Completing => OutcomeKind::Drain,
            };
            Some((kind, hours, ended))
        }
        _ => (until <= now).then_some((OutcomeKind::Kept, hours, until)),
    }
}

/// Id of the outcome of one start in one pool.
fn event_id(cluster: &ClusterName, job: &Job, started: UnixSeconds, model: &GpuModel) -> EventId {
    let id = format!("slurm-{}-{}", job.id, started.get());
    let long = format!("{id}-{cluster}-{model}");
    EventId::parse(&long).or_else(|_| EventId::parse(&id)).expect("numbers and dashes are a name")
}

fn models(job: &Job, reading: &Reading) -> Vec<(GpuModel, u32)> {
    let had = if job.allocated.total > 0 { &job.allocated } else { &job.requested };
    let mut models: Vec<(GpuModel, u32)> =
        had.typed.iter().filter_map(|(name, gpus)| Some((GpuModel::parse(name).ok()?, *gpus))).collect();
    if had.untyped() > 0 {
        models.push((reading.untyped.clone(), had.untyped()));
    }
    models
}

/// Rows of hours that are over, with zeros of organizations and pools that asked for nothing.
///
/// # Errors
/// A name or an amount of the records cannot be used.
pub fn usage(
    history: &History,
    reading: &demand::Reading,
    known: &BTreeMap<PoolId, BTreeSet<Organization>>,
) -> Result<Vec<UsageRow>, DemandFault> {
    let mut rows = demand::demand(history, reading)?.rows;
    let (Some(from), Some(until)) = (reading.from, reading.until) else { return Ok(rows) };
    let there: BTreeSet<SeriesId> = rows.iter().map(|row| row.series.clone()).collect();
    for (pool, organizations) in known {
        for organization in organizations.iter().cloned().chain([Organization::pool_peak()]) {
            let series = SeriesId { pool: pool.clone(), organization };
            if !there.contains(&series) {
                let hours = (0..until.hours_since(from)).map(|index| from.plus_hours(index));
                let zero = HourDemand { peak: MilliGpus::ZERO, at_end: Some(MilliGpus::ZERO) };
                rows.extend(hours.map(|hour| zero.row(series.clone(), hour)));
            }
        }
    }
    Ok(rows)
}

/// Progress of reading the accounting.
#[derive(Debug, Default)]
struct Progress {
    /// Last look that went well.
    looked: Option<UnixSeconds>,
    /// Hours before this one are reported.
    hours_until: Option<HourStart>,
    /// Outcomes that were reported, with their ends.
    reported: BTreeMap<EventId, UnixSeconds>,
}

/// First hour, and the one after the last.
type Hours = (HourStart, HourStart);

impl Progress {
    /// Hours to ask for, and hours of usage that are due.
    fn span(&self, now: UnixSeconds) -> Result<(Hours, Option<Hours>), DemandFault> {
        let present = now.hour()?;
        let is_due = self.hours_until.is_none_or(|until| until < present);
        let again = present.plus_hours(-HOURS_AGAIN);
        let due = is_due.then(|| (self.hours_until.map_or(again, |until| until.min(again)), present));
        let since = self.looked.map_or(now.plus_s(-OUTCOMES_S), |looked| looked.plus_s(-LATE_S)).hour()?;
        let from = due.map_or(since, |(from, _)| from.min(since));
        Ok(((from, present.plus_hours(1)), due))
    }

    /// Outcomes that were not reported yet.
    fn new_ones(&mut self, mut found: Vec<Outcome>, now: UnixSeconds) -> Vec<Outcome> {
        self.reported.retain(|_, ended| now.since_s(*ended) < OUTCOMES_S + LATE_S);
        found.retain(|outcome| self.reported.insert(outcome.event_id.clone(), outcome.ended_at).is_none());
        found
    }
}

/// Reads the accounting again and again. Never returns.
pub async fn run(site: Site, config: Arc<Config>, shared: Arc<Shared>) {
    let (standing, mut progress) = (Standing::new(), Progress::default());
    loop {
        let went = look(&site, &config, &shared, &mut progress).await;
        metrics::gauge!("headroom_slurm_accounting_up").set(f64::from(u8::from(went.is_ok())));
        standing.note(
            "",
            &went,
            |fault| {
                tracing::warn!(
                    fault,
                    "the accounting is not read: usage and outcomes wait, and limits stay as they are"
                );
            },
            |over| tracing::info!(lasted_s = over.lasted_s, "the accounting is read again"),
        );
        tokio::time::sleep(Duration::from_secs(config.accounting_s)).await;
    }
}

async fn look(site: &Site, config: &Config, shared: &Shared, progress: &mut Progress) -> Result<(), String> {
    let now = shared.now();
    let ((from, until), due) = progress.span(now).map_err(|fault| fault.to_string())?;
    let in_words = |fault: RecordsError| fault.to_string();
    let mut history = site.history(from, until).await.map_err(in_words)?;
    for bad in &history.skipped {
        shared.unreadable(&bad.to_string());
    }
    // The hour that was over when we asked is over, even where nothing has happened since.
    history.latest = history.latest.max(Some(now));
    let Some(reading) = shared.reading() else { return Err("accounts are not known yet".to_owned()) };
    let found = outcomes(&history, &reading, &shared.cluster, (now.plus_s(-OUTCOMES_S), now));
    let found = progress.new_ones(found, now);
    let mut rows = Vec::new();
    if let Some((from, until)) = due {
        let demand_reading = demand::Reading {
            rules: reading.rules.clone(),
            cluster: Some(shared.cluster.clone()),
            untyped: config.gpu_model.get().cloned(),
            partitions: shared.only_models(),
            from: Some(from),
            until: Some(until),
        };
        rows = usage(&history, &demand_reading, &shared.known()).map_err(|fault| fault.to_string())?;
        progress.hours_until = Some(until);
    }
    shared.add(rows, found);
    progress.looked = Some(now);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Guarantees;
    use slurm_records::Rules;

    const HOUR: i64 = 1_795_590_000;

    fn job(id: u32, state: &str, qos: &str, start: i64, end: i64) -> String {
        let [start, end] = [start, end].map(|time| if time < 0 { 0 } else { HOUR + time });
        format!(
            r#"{{"job_id":{id},"cluster":"t","account":"spot","qos":"{qos}","partition":"gpu","state":{{"current":["{state}"]}},
            "time":{{"submission":{HOUR},"eligible":{HOUR},"start":{start},"end":{end},"elapsed":0}},
            "tres":{{"allocated":[{{"type":"gres","name":"gpu:a100","count":4}}],"requested":[{{"type":"gres","name":"gpu:a100","count":4}}]}}}}"#
        )
    }

    fn history(jobs: &[String]) -> History {
        let text = format!(r#"{{"jobs":[{}],"meta":{{"plugin":{{"data_parser":"v0.0.42"}}}}}}"#, jobs.join(","));
        History::read("jobs.json", text.as_bytes()).unwrap().0
    }

    fn reading() -> Reading {
        let qos_hours: Guarantees = "spot1h=1,spot4h=4,free=0".parse().unwrap();
        Reading {
            rules: Rules { spot_qos: qos_hours.names(), ..Rules::default() },
            qos_hours,
            partition_hours: Guarantees::default(),
            untyped: GpuModel::parse("any").unwrap(),
        }
    }

    fn found(jobs: &[String], now: i64) -> Vec<(String, &'static str, i64)> {
        let cluster = ClusterName::parse("earth").unwrap();
        let span = (UnixSeconds::new(HOUR), UnixSeconds::new(HOUR + now));
        let all = outcomes(&history(jobs), &reading(), &cluster, span);
        all.iter().map(|one| (one.event_id.to_string(), one.kind.as_str(), one.ended_at.get() - HOUR)).collect()
    }

    #[test]
    fn a_promise_ends_by_an_eviction_by_its_hours_or_by_the_job_itself() {
        let jobs = [
            job(1, "PREEMPTED", "spot1h", 100, 900),
            job(2, "PREEMPTED", "spot1h", 100, 3_800),
            job(3, "RUNNING", "spot1h", 100, -1),
            job(4, "RUNNING", "spot4h", 100, -1),
            job(5, "COMPLETED", "spot4h", 100, 200),
            job(6, "NODE_FAIL", "spot4h", 100, 300),
            job(7, "CANCELLED", "spot4h", 100, 400),
            job(8, "PREEMPTED", "free", 100, 500),
            job(9, "CANCELLED", "spot1h", -1, 500),
            job(10, "PREEMPTED", "normal", 100, 500),
        ];
        let expected = [
            (1, "broken", 900),
            (2, "kept", 3_700),
            (3, "kept", 3_700),
            (5, "kept", 200),
            (6, "node_failure", 300),
            (7, "user_deleted", 400),
        ];
        let expected: Vec<(String, &str, i64)> = expected
            .iter()
            .map(|(id, kind, at)| (format!("slurm-{id}-{}-earth-a100", HOUR + 100), *kind, *at))
            .collect();
        assert_eq!(found(&jobs, 3_900), expected);
        assert!(found(&jobs[2..3], 3_699).is_empty(), "its hour is not over");
    }

    #[test]
    fn each_start_of_a_requeued_job_has_an_outcome_of_its_own_and_each_is_new_once() {
        let jobs = [job(1, "PREEMPTED", "spot1h", 100, 900), job(1, "PREEMPTED", "spot1h", 1_100, 1_200)];
        assert_eq!(found(&jobs, 2_000).len(), 2);
        let mut progress = Progress::default();
        let now = UnixSeconds::new(HOUR + 2_000);
        let span = (UnixSeconds::new(HOUR), now);
        let all = || outcomes(&history(&jobs), &reading(), &ClusterName::parse("earth").unwrap(), span);
        assert_eq!([progress.new_ones(all(), now).len(), progress.new_ones(all(), now).len()], [2, 0]);
    }

    #[test]
    fn the_first_look_goes_back_a_day_and_later_ones_a_quarter_of_an_hour_and_hours_are_read_again() {
        let now = UnixSeconds::new(HOUR + 1_800);
        let present = now.hour().unwrap();
        let mut progress = Progress::default();
        let ((from, until), due) = progress.span(now).unwrap();
        assert_eq!((from, until), (now.plus_s(-OUTCOMES_S).hour().unwrap(), present.plus_hours(1)));
        assert_eq!(due, Some((present.plus_hours(-HOURS_AGAIN), present)));
        progress.looked = Some(now);
        progress.hours_until = Some(present);
        let ((from, _), due) = progress.span(now.plus_s(60)).unwrap();
        assert_eq!((from, due), (present, None));
        let later = now.plus_s(9 * 3_600);
        let (_, due) = progress.span(later).unwrap();
        assert_eq!(due, Some((present, present.plus_hours(9))), "nine hours without the accounting");
    }

    #[test]
    fn organizations_that_ask_for_nothing_and_pools_without_jobs_have_zeros() {
        let pool = |model: &str| PoolId::parse(&format!("earth:{model}")).unwrap();
        let known = [(pool("a100"), [Organization::parse("quiet").unwrap()].into()), (pool("h100"), BTreeSet::new())];
        let from = UnixSeconds::new(HOUR).hour().unwrap();
        let reading = demand::Reading {
            cluster: Some(ClusterName::parse("earth").unwrap()),
            from: Some(from),
            until: Some(from.plus_hours(2)),
            ..demand::Reading::default()
        };
        let mut history = history(&[job(1, "COMPLETED", "normal", 100, 3_900)]);
        history.latest = Some(from.plus_hours(2).instant());
        let rows = usage(&history, &reading, &known.into()).unwrap();
        let text = |row: &UsageRow| format!("{} {}", row.series, row.demand);
        let rows: Vec<String> = rows.iter().filter(|row| row.hour == from).map(text).collect();
        assert_eq!(rows.len(), 4, "{rows:?}");
        assert!(rows.iter().any(|row| row.contains("quiet") && row.ends_with("0.000")), "{rows:?}");
    }
}
