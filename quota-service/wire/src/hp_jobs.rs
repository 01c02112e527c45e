//! HP jobs that a scheduler reports with the state of its pool.

use crate::bounds::MOST_HP_JOBS;
use crate::choices::HpJobStateBody;
use crate::fault::{FieldFault, Place};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;
use vocab::{HpJob, MilliGpus, Organization, TaskId, UnixSeconds};

/// An HP job that runs or waits, in `PUT /v1/pools/{id}/state`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HpJobBody {
    /// The id of the job, the same in every report.
    pub id: String,
    /// The organization.
    pub organization: String,
    /// GPUs, of all its pods.
    pub gpus: f64,
    /// Whether it runs or waits.
    pub state: HpJobStateBody,
    /// The start of its run, or while it waits the time of its submission, RFC 3339. A time after `as_of` counts as `as_of`.
    pub since: String,
}

/// # Errors
/// There are too many jobs, an id is there twice, or a job has no GPUs, an invalid name, amount or time.
pub(crate) fn parse(bodies: &[HpJobBody], as_of: UnixSeconds) -> Result<Vec<HpJob>, FieldFault> {
    if bodies.len() > MOST_HP_JOBS {
        let detail = format!(
            "{} jobs, more than {MOST_HP_JOBS}: leave the field out; bounds then follow usage alone",
            bodies.len()
        );
        return Err(FieldFault::new("/hp_jobs", detail));
    }
    let (mut jobs, mut seen) = (Vec::with_capacity(bodies.len()), BTreeMap::new());
    for (index, body) in bodies.iter().enumerate() {
        let pointer = format!("/hp_jobs/{index}");
        let place = Place(&pointer);
        let job = body.parse(place, as_of)?;
        if let Some(first) = seen.insert(body.id.as_str(), index) {
            return Err(place.fault("id", format!("job {first} has the same id: report each job once")));
        }
        jobs.push(job);
    }
    let sum_milli = jobs.iter().fold(0_u64, |sum, job: &HpJob| sum.saturating_add(job.gpus_milli));
    MilliGpus::stated(MilliGpus::from_milli(sum_milli))
        .map_err(|fault| FieldFault::new("/hp_jobs", format!("the jobs together: {fault}")))?;
    Ok(jobs)
}

impl HpJobBody {
    fn parse(&self, place: Place<'_>, as_of: UnixSeconds) -> Result<HpJob, FieldFault> {
        let organization = place.new_name("organization", &self.organization, Organization::parse)?;
        let gpus = place.gpus("gpus", self.gpus)?;
        if gpus.is_zero() {
            return Err(place.fault("gpus", "a job without GPUs is no demand: leave it out"));
        }
        let since = place.instant("since", &self.since)?.min(as_of);
        Ok(HpJob {
            task: place.new_name("id", &self.id, TaskId::parse)?,
            organization: place.of_a_task("organization", organization)?,
            gpus_milli: gpus.milli(),
            submitted: since,
            started: (self.state == HpJobStateBody::Running).then_some(since),
        })
    }
}

impl From<&HpJob> for HpJobBody {
    fn from(job: &HpJob) -> Self {
        let gpus = MilliGpus::from_milli(job.gpus_milli).unwrap_or(MilliGpus::from_gpus(u32::MAX));
        Self {
            id: job.task.to_string(),
            organization: job.organization.to_string(),
            gpus: gpus.as_gpus(),
            state: if job.started.is_some() { HpJobStateBody::Running } else { HpJobStateBody::Waiting },
            since: job.started.unwrap_or(job.submitted).to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AS_OF: UnixSeconds = UnixSeconds::new(1_589_760_000);

    fn body(id: &str, gpus: f64, state: HpJobStateBody, since: &str) -> HpJobBody {
        HpJobBody { id: id.into(), organization: "vision".into(), gpus, state, since: since.into() }
    }

    fn running(id: &str, gpus: f64) -> HpJobBody {
        body(id, gpus, HpJobStateBody::Running, "2020-05-17T22:00:00Z")
    }

    fn fault(bodies: &[HpJobBody]) -> String {
        parse(bodies, AS_OF).unwrap_err().to_string()
    }

    #[test]
    fn reported_jobs_read_back_as_they_were_written() {
        let bodies = [running("a", 8.0), body("b", 0.5, HpJobStateBody::Waiting, "2020-05-17T23:00:00Z")];
        let jobs = parse(&bodies, AS_OF).unwrap();
        assert_eq!(jobs.iter().map(HpJobBody::from).collect::<Vec<_>>(), bodies);
        assert_eq!((jobs[0].started, jobs[1].started), (Some(jobs[0].submitted), None));
        let ahead = [body("c", 1.0, HpJobStateBody::Running, "2020-05-18T00:00:09Z")];
        assert_eq!(parse(&ahead, AS_OF).unwrap()[0].started, Some(AS_OF), "a clock that runs ahead");
    }

    #[test]
    fn jobs_that_cannot_be_are_refused_with_their_pointer() {
        assert_eq!(
            fault(&[running("a", 8.0), running("a", 8.0)]),
            "/hp_jobs/1/id: job 0 has the same id: report each job once"
        );
        assert_eq!(fault(&[running("a", 0.0)]), "/hp_jobs/0/gpus: a job without GPUs is no demand: leave it out");
        assert!(fault(&[running("", 1.0)]).starts_with("/hp_jobs/0/id: "));
        let many = [running("a", 9e6), running("b", 9e6)];
        assert!(
            fault(&many).starts_with("/hp_jobs: the jobs together: 1.8e7 GPUs exceeds the limit"),
            "{}",
            fault(&many)
        );
        assert!(fault(&[running("a", -1.0)]).starts_with("/hp_jobs/0/gpus: -1 GPUs is negative"));
        assert!(
            fault(&[body("a", 1.0, HpJobStateBody::Running, "noon")]).starts_with("/hp_jobs/0/since: invalid time")
        );
        let of_the_pool = HpJobBody { organization: "*".into(), ..running("a", 1.0) };
        assert!(fault(&[of_the_pool]).starts_with("/hp_jobs/0/organization: * is the pool itself"));
        let all: Vec<_> = (0..=MOST_HP_JOBS).map(|number| running(&number.to_string(), 1.0)).collect();
        assert!(fault(&all).starts_with("/hp_jobs: 10001 jobs, more than 10000: leave the field out"));
    }
}
