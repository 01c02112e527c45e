//! Usage and outcomes out of the accounting: what was demanded in hours that are over, and how promises ended.
//!
//! Both are made of records alone, so that nothing is lost with a process: the hours are those that `datasets ingest` would
//! make, to the second, and an outcome has the same id from every reporter.

use crate::config::Config;
use crate::outcomes::{is_spot, outcomes};
use crate::shared::Shared;
use crate::sightings::{Run, run_of};
use crate::site::Site;
use crate::view::Reading;
use serving::standing::Standing;
use slurm_records::demand::{self, DemandFault};
use slurm_records::{History, Job, RecordsError, State};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use vocab::{
    EventId, HorizonHours, HourDemand, HourStart, MilliGpus, Organization, Outcome, PoolId, SeriesId, UnixSeconds,
    UsageRow,
};

/// Promises that ended longer ago no longer concern eta, which uses one day.
const OUTCOMES_S: i64 = vocab::SECONDS_PER_DAY;
/// Records may come so late: the accounting was away for a while.
const LATE_S: i64 = 15 * 60;
/// Hours that are read again each hour, for records that come later.
const HOURS_AGAIN: i64 = 6;

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
    /// Records of spot runs before their last size: a later answer of the accounting does not have them.
    resized: Vec<Job>,
    /// Runs whose promises have ended, nobody knows how.
    waiting: BTreeSet<Run>,
}

/// First hour, and the one after the last.
type Hours = (HourStart, HourStart);

impl Progress {
    /// Hours to ask for, and hours of usage that are due. The first look goes back to the sizes of the runs whose promises ended within
    /// a day, of `longest` hours at most.
    fn span(&self, now: UnixSeconds, longest: Option<HorizonHours>) -> Result<(Hours, Option<Hours>), DemandFault> {
        let present = now.hour()?;
        let is_due = self.hours_until.is_none_or(|until| until < present);
        let again = present.plus_hours(-HOURS_AGAIN);
        let due = is_due.then(|| (self.hours_until.map_or(again, |until| until.min(again)), present));
        let first = now.plus_s(-OUTCOMES_S - longest.map_or(0, HorizonHours::seconds));
        let since = self.looked.map_or(first, |looked| looked.plus_s(-LATE_S)).hour()?;
        let from = due.map_or(since, |(from, _)| from.min(since));
        Ok(((from, present.plus_hours(1)), due))
    }

    /// Adds sizes of runs that were seen before, and keeps those of now for as long as an outcome of theirs is reported.
    fn with_resized(&mut self, history: &mut History, reading: &Reading, now: UnixSeconds) {
        let mut known = History::default();
        known.jobs = std::mem::take(&mut self.resized);
        history.join(known);
        let is_due = |job: &Job| {
            let promised_s = reading.hours(&job.qos, &job.partition).map(HorizonHours::seconds);
            let until = job.started.zip(promised_s).map(|(started, seconds)| started.plus_s(seconds));
            until.is_some_and(|until| now.since_s(until) < OUTCOMES_S + LATE_S)
        };
        let sizes = history.jobs.iter().filter(|job| job.state == State::Resizing && is_spot(job, reading));
        self.resized = sizes.filter(|job| is_due(job)).cloned().collect();
    }

    /// Notes a look at the hours from `from` on. A run that waits and is not in the answer has ended before these: the next look
    /// goes back to its start, once.
    fn note(&mut self, history: &History, waiting: BTreeSet<Run>, from: HourStart, now: UnixSeconds) {
        let seen: BTreeSet<Run> = history.jobs.iter().filter_map(run_of).collect();
        let is_missing = |run: &&Run| !seen.contains(run) && run.1 < from.instant();
        let missing: BTreeSet<Run> = self.waiting.iter().filter(is_missing).copied().collect();
        self.looked = missing.iter().map(|(_, started)| *started).chain([now]).min();
        self.waiting = waiting.into_iter().chain(missing).collect();
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
    let ((from, until), due) = progress.span(now, config.spot_hours()).map_err(|fault| fault.to_string())?;
    let in_words = |fault: RecordsError| fault.to_string();
    let mut history = site.history(from, until).await.map_err(in_words)?;
    for bad in &history.skipped {
        shared.unreadable(&bad.to_string());
    }
    // The hour that was over when we asked is over, even where nothing has happened since.
    history.latest = history.latest.max(Some(now));
    let Some(reading) = shared.reading() else { return Err("accounts are not known yet".to_owned()) };
    progress.with_resized(&mut history, &reading, now);
    let span = (now.plus_s(-OUTCOMES_S), now);
    let found = outcomes((&history, &shared.sightings()), &reading, &shared.cluster, span);
    let new = progress.new_ones(found.outcomes, now);
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
    if progress.looked.is_none() {
        let (usage_from, outcomes_from) = (due.map_or(from, |(from, _)| from), span.0);
        tracing::info!(
            %usage_from, %outcomes_from,
            "the accounting is read: what is older and was not reported is missing; datasets ingest --format slurm adds older usage"
        );
    }
    shared.add(rows, new);
    progress.note(&history, found.waiting, from, now);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcomes::tests::{HOUR, history, job, reading, seen, sized};
    use vocab::ClusterName;

    #[test]
    fn each_start_of_a_requeued_job_has_an_outcome_of_its_own_and_each_is_new_once() {
        let jobs = [job(1, "PREEMPTED", "spot1h", 100, 900), job(1, "PREEMPTED", "spot1h", 1_100, 1_200)];
        let mut progress = Progress::default();
        let now = UnixSeconds::new(HOUR + 2_000);
        let span = (UnixSeconds::new(HOUR), now);
        let cluster = ClusterName::parse("earth").unwrap();
        let all = || outcomes((&history(&jobs), &seen(&jobs, 2_000, &[])), &reading(), &cluster, span).outcomes;
        assert_eq!([progress.new_ones(all(), now).len(), progress.new_ones(all(), now).len()], [2, 0]);
    }

    #[test]
    fn sizes_of_a_run_that_later_answers_do_not_have_are_remembered_until_its_outcome_is_old() {
        let mut progress = Progress::default();
        let sizes = [sized("RESIZING", 8, 100, [100, 900]), sized("RUNNING", 2, 100, [900, -1])];
        let at = |seconds: i64| UnixSeconds::new(HOUR + seconds);
        progress.with_resized(&mut history(&sizes), &reading(), at(1_000));
        let mut later = history(&[sized("RUNNING", 2, 100, [900, -1])]);
        progress.with_resized(&mut later, &reading(), at(4_000));
        let sightings = seen(&[sized("RUNNING", 2, 100, [900, -1])], 4_000, &[]);
        let cluster = ClusterName::parse("earth").unwrap();
        let found = outcomes((&later, &sightings), &reading(), &cluster, (at(0), at(4_000))).outcomes;
        assert_eq!(found.iter().map(|one| one.gpus).collect::<Vec<_>>(), [Some(MilliGpus::from_gpus(8))]);
        let over = 3_700 + OUTCOMES_S + LATE_S;
        progress.with_resized(&mut history(&[]), &reading(), at(over - 1));
        assert_eq!(progress.resized.len(), 1);
        progress.with_resized(&mut history(&[]), &reading(), at(over));
        assert_eq!(progress.resized, []);
    }

    #[test]
    fn a_run_that_waits_and_left_the_answers_is_looked_for_from_its_start_on_once() {
        let mut progress = Progress::default();
        let at = |seconds: i64| UnixSeconds::new(HOUR + seconds);
        let (hour, day) = (at(0).hour().unwrap(), at(86_400).hour().unwrap());
        let run: Run = (1, at(100));
        progress.note(&history(&[job(1, "RUNNING", "spot1h", 100, -1)]), [run].into(), hour, at(4_000));
        assert_eq!(progress.looked, Some(at(4_000)));
        // It ended while the accounting was away.
        progress.note(&history(&[]), BTreeSet::new(), day, at(90_000));
        assert_eq!(progress.looked, Some(at(100)));
        let ((from, _), _) = progress.span(at(90_060), None).unwrap();
        assert!(from.instant() <= at(100), "{from}");
        progress.note(&history(&[]), BTreeSet::new(), from, at(90_060));
        assert_eq!(
            (progress.looked, progress.waiting.len()),
            (Some(at(90_060)), 0),
            "the accounting has no record of it"
        );
    }

    #[test]
    fn the_first_look_goes_back_a_day_and_later_ones_a_quarter_of_an_hour_and_hours_are_read_again() {
        let now = UnixSeconds::new(HOUR + 1_800);
        let present = now.hour().unwrap();
        let mut progress = Progress::default();
        let ((from, until), due) = progress.span(now, HorizonHours::parse("4").ok()).unwrap();
        assert_eq!((from, until), (now.plus_s(-OUTCOMES_S - 4 * 3_600).hour().unwrap(), present.plus_hours(1)));
        assert_eq!(due, Some((present.plus_hours(-HOURS_AGAIN), present)));
        progress.looked = Some(now);
        progress.hours_until = Some(present);
        let ((from, _), due) = progress.span(now.plus_s(60), None).unwrap();
        assert_eq!((from, due), (present, None));
        let later = now.plus_s(9 * 3_600);
        let (_, due) = progress.span(later, None).unwrap();
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
