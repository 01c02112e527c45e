//! Reservations: GPUs of a pool that are sold ahead, once or each week.

use crate::choices::{ProbabilitySourceBody, WeekdayBody};
use crate::fault::{FieldFault, Place};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use vocab::{
    ClusterName, GpuModel, Organization, PoolId, Repeats, Reservation, ReservedWindow, SECONDS_PER_DAY, UnixSeconds,
};

/// Seconds of a single window.
const LONGEST_S: i64 = 366 * SECONDS_PER_DAY;
/// Seconds of a window that repeats: the next one may begin a day later.
const LONGEST_REPEATED_S: i64 = SECONDS_PER_DAY;

/// `POST /v1/reservations`: from `from` on and before `to`, GPUs of the pool are for the HP tasks of one organization.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReservationRequest {
    /// The cluster.
    pub cluster: String,
    /// The GPU model.
    pub gpu_model: String,
    /// The organization that gets the GPUs.
    pub organization: String,
    /// GPUs of each window.
    pub gpus: f64,
    /// Begin of the first window, RFC 3339.
    pub from: String,
    /// End of the first window, RFC 3339; after `from`, at most 366 days, or 24 hours where it repeats.
    pub to: String,
    /// Weekly repetition; absent for a single window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<RepeatsBody>,
}

/// Weekly repetition of a window, at the local time of the cluster.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RepeatsBody {
    /// Days on which a window begins, the day of `from` among them.
    pub days: Vec<WeekdayBody>,
    /// No window begins then or later, RFC 3339; absent for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
}

impl ReservationRequest {
    /// The reservation. Whether `from` is on one of its days depends on the time zone of the cluster, and is left to the caller.
    ///
    /// # Errors
    /// A field is refused.
    pub fn parse(&self) -> Result<Reservation, FieldFault> {
        let place = Place("");
        let pool = PoolId {
            cluster: place.new_name("cluster", &self.cluster, ClusterName::parse)?,
            gpu_model: place.new_name("gpu_model", &self.gpu_model, GpuModel::parse)?,
        };
        let organization = place.new_name("organization", &self.organization, Organization::parse)?;
        let organization = place.of_a_task("organization", organization)?;
        let gpus = place.gpus("gpus", self.gpus)?;
        if gpus.is_zero() {
            return Err(place.fault("gpus", "a reservation of 0 GPUs has no effect: write more than 0"));
        }
        let (from, to) = (place.instant("from", &self.from)?, place.instant("to", &self.to)?);
        let length_s = to.since_s(from);
        if length_s <= 0 {
            return Err(place.fault("to", format!("{to} is not after {from}: write a later time")));
        }
        if length_s > LONGEST_S {
            return Err(place.fault("to", format!("{to} is more than 366 days after {from}: write an earlier time")));
        }
        let repeats = self.repeats.as_ref().map(|repeats| repeats.parse(from, length_s)).transpose()?;
        Ok(Reservation { pool, first: ReservedWindow { from, to, organization, gpus }, repeats })
    }
}

impl From<&Reservation> for ReservationRequest {
    fn from(of: &Reservation) -> Self {
        let repeats = of.repeats.as_ref().map(|repeats| RepeatsBody {
            days: repeats.days.iter().map(|day| (*day).into()).collect(),
            until: repeats.until.map(|until| until.to_string()),
        });
        Self {
            cluster: of.pool.cluster.to_string(),
            gpu_model: of.pool.gpu_model.to_string(),
            organization: of.first.organization.to_string(),
            gpus: of.first.gpus.as_gpus(),
            from: of.first.from.to_string(),
            to: of.first.to.to_string(),
            repeats,
        }
    }
}

impl RepeatsBody {
    fn parse(&self, from: UnixSeconds, length_s: i64) -> Result<Repeats, FieldFault> {
        if length_s > LONGEST_REPEATED_S {
            let detail = "a window that repeats lasts at most 24 hours: shorten it, or write one reservation for each";
            return Err(Place("").fault("to", detail));
        }
        let place = Place("/repeats");
        if self.days.is_empty() {
            return Err(place.fault("days", "write at least one day of MO, TU, WE, TH, FR, SA and SU"));
        }
        let until = self.until.as_deref().map(|until| place.instant("until", until)).transpose()?;
        if let Some(until) = until.filter(|until| *until <= from) {
            return Err(place.fault("until", format!("{until} is not after the begin of the first window, {from}")));
        }
        Ok(Repeats { days: self.days.iter().map(|day| (*day).into()).collect(), until })
    }
}

/// A window of a reservation, with the probability that its GPUs are there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ReservedWindowBody {
    /// Its begin, RFC 3339.
    pub from: String,
    /// Its end, RFC 3339.
    pub to: String,
    /// Probability that the HP demand of others leaves the GPUs during the whole window; null where nothing says so.
    pub probability: Option<f64>,
    /// Source of the probability.
    pub source: ProbabilitySourceBody,
    /// Measured weeks behind the probability, where it is one of history.
    pub weeks: Option<u32>,
}

/// A stored reservation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ReservationBody {
    /// Its number; null for one that was only tried.
    pub id: Option<u64>,
    /// The cluster.
    pub cluster: String,
    /// The GPU model.
    pub gpu_model: String,
    /// The organization that gets the GPUs.
    pub organization: String,
    /// GPUs of each window.
    pub gpus: f64,
    /// Begin of the first window, RFC 3339.
    pub from: String,
    /// End of the first window, RFC 3339.
    pub to: String,
    /// Weekly repetition; null for a single window.
    pub repeats: Option<RepeatsBody>,
    /// The name of a token, or another actor.
    pub by: String,
    /// When it was created, RFC 3339.
    pub created_at: String,
    /// When it was withdrawn; null while it is not.
    pub withdrawn_at: Option<String>,
    /// The actor who withdrew it.
    pub withdrawn_by: Option<String>,
    /// The next windows, the one that is open included, at most eight.
    pub windows: Vec<ReservedWindowBody>,
}

/// `GET /v1/reservations`, by number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ReservationList {
    /// The reservations, by number.
    pub reservations: Vec<ReservationBody>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> ReservationRequest {
        ReservationRequest {
            cluster: "earth".to_owned(),
            gpu_model: "A100".to_owned(),
            organization: "lab".to_owned(),
            gpus: 8.0,
            from: "2026-12-01T09:00:00Z".to_owned(),
            to: "2026-12-01T17:00:00Z".to_owned(),
            repeats: Some(RepeatsBody { days: vec![WeekdayBody::Tuesday], until: None }),
        }
    }

    #[test]
    fn a_reservation_reads_back_as_it_was_written() {
        let parsed = request().parse().unwrap();
        assert_eq!(ReservationRequest::from(&parsed), request());
    }

    #[test]
    fn an_invalid_reservation_is_refused_with_its_field() {
        type Change = fn(&mut ReservationRequest);
        let changes: [(Change, &str); 9] = [
            (|one| one.gpus = 0.0, "/gpus"),
            (|one| one.gpus = f64::NAN, "/gpus"),
            (|one| one.organization = "*".to_owned(), "/organization"),
            (|one| one.to.clone_from(&one.from), "/to"),
            (|one| one.to = "2028-12-01T00:00:00Z".to_owned(), "/to"),
            (|one| one.to = "2026-12-02T09:00:01Z".to_owned(), "/to"),
            (|one| one.from = "tomorrow".to_owned(), "/from"),
            (|one| one.repeats = Some(RepeatsBody { days: vec![], until: None }), "/repeats/days"),
            (|one| one.repeats.as_mut().unwrap().until = Some(one.from.clone()), "/repeats/until"),
        ];
        for (change, field) in changes {
            let mut request = request();
            change(&mut request);
            let fault = request.parse().unwrap_err().to_string();
            assert!(fault.starts_with(&format!("{field}: ")), "{fault}");
        }
    }
}
