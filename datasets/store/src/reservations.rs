//! Reservations: GPUs of a pool that are sold ahead to an organization.

use crate::stored::{Stamp, amount, pool, whole};
use crate::{AuditRecord, StoreError};
use async_trait::async_trait;
use vocab::{Organization, PoolId, Repeats, Reservation, ReservationId, ReservedWindow, UnixSeconds, Weekday};

/// A requested reservation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewReservation {
    /// Pool, organization, GPUs and windows.
    pub what: Reservation,
    /// Its author: the name of a token, or another name.
    pub by: String,
    /// Time of the request.
    pub at: UnixSeconds,
}

/// A stored reservation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReservationRecord {
    /// Its number.
    pub id: ReservationId,
    /// The request.
    pub asked: NewReservation,
    /// Time and author of its withdrawal.
    pub withdrawn: Option<(UnixSeconds, String)>,
}

/// Reservations.
#[async_trait]
pub trait ReservationStore {
    /// Stores a reservation, and `audit` in the same transaction. Returns it, and `true` if it is new. If a valid reservation
    /// has the same content and author, it is returned and nothing is written: a request may be repeated.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if its cluster is unknown.
    async fn put_reservation(
        &self,
        asked: &NewReservation,
        audit: &AuditRecord,
    ) -> Result<(ReservationRecord, bool), StoreError>;

    /// One reservation, valid or withdrawn.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    async fn reservation_record(&self, id: ReservationId) -> Result<ReservationRecord, StoreError>;

    /// Withdraws a reservation, which stays stored. A second withdrawal changes nothing.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    async fn withdraw_reservation(
        &self,
        id: ReservationId,
        at: UnixSeconds,
        by: &str,
    ) -> Result<ReservationRecord, StoreError>;

    /// Reservations of a pool, or of all pools, with a window that may end after `after`, by number; withdrawn ones only if
    /// `withdrawn` is true.
    async fn reservations(
        &self,
        of: Option<&PoolId>,
        after: UnixSeconds,
        withdrawn: bool,
    ) -> Result<Vec<ReservationRecord>, StoreError>;
}

row! {
    pub(crate) struct ReservationRow {
        pub id: i64,
        pub cluster: String,
        pub gpu_model: String,
        pub organization: String,
        pub gpus_milli: i64,
        pub from_at: Stamp,
        pub to_at: Stamp,
        pub days: Option<String>,
        pub until_at: Option<Stamp>,
        pub created_by: String,
        pub created_at: Stamp,
        pub withdrawn_by: Option<String>,
        pub withdrawn_at: Option<Stamp>,
    }
}

impl TryFrom<ReservationRow> for ReservationRecord {
    type Error = StoreError;

    fn try_from(row: ReservationRow) -> Result<Self, StoreError> {
        let day = |text: &str| {
            let unknown = || StoreError::corrupt("day of a reservation", &format!("unknown value {text:?}"));
            Weekday::parse(text).ok_or_else(unknown)
        };
        let days = row.days.map(|days| days.split(',').map(day).collect::<Result<_, _>>()).transpose()?;
        let organization = Organization::parse(&row.organization)
            .map_err(|fault| StoreError::corrupt("organization of a reservation", &fault))?;
        let gpus = amount("GPUs of a reservation", row.gpus_milli)?;
        let until = row.until_at.map(|until| until.0);
        let what = Reservation {
            pool: pool(&row.cluster, &row.gpu_model)?,
            first: ReservedWindow { from: row.from_at.0, to: row.to_at.0, organization, gpus },
            repeats: days.map(|days| Repeats { days, until }),
        };
        Ok(Self {
            id: ReservationId(whole("number of a reservation", row.id)?),
            asked: NewReservation { what, by: row.created_by, at: row.created_at.0 },
            withdrawn: row.withdrawn_at.zip(row.withdrawn_by).map(|(at, by)| (at.0, by)),
        })
    }
}

/// The days of a repetition as a row has them.
pub(crate) fn days_text(of: &Reservation) -> Option<String> {
    let repeats = of.repeats.as_ref()?;
    Some(repeats.days.iter().map(|day| day.as_str()).collect::<Vec<_>>().join(","))
}

/// When the last window is over at the latest.
pub(crate) fn ends(of: &Reservation) -> Option<UnixSeconds> {
    let ReservedWindow { from, to, .. } = of.first;
    match &of.repeats {
        None => Some(to),
        Some(repeats) => repeats.until.map(|until| until.plus_s(to.since_s(from))),
    }
}

pub(crate) fn not_found(id: ReservationId) -> StoreError {
    StoreError::not_found("reservation", &id.0)
}
