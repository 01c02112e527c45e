//! Reservations: their windows ahead, and the probability that the GPUs of a window are there.

use crate::plan::{PoolQuota, chance_of_room};
use datasets::Panel;
use datasets::calendar::zone;
use datasets::reservations::{Tz, windows};
use forecaster::scores::actual_peak_gpus;
use placement::windows::{Windows, steps};
use store::{ReservationRecord, Store, StoreError};
use vocab::{
    HOURS_PER_WEEK, HorizonHours, HourStart, MilliGpus, PoolId, ReservedWindow, SECONDS_PER_DAY, SECONDS_PER_HOUR,
    UnixSeconds,
};
use wire::{ProbabilitySourceBody, ReservationBody, ReservationRequest, ReservedWindowBody};

/// Windows so far ahead are known to pools and quotas: the longest promise lasts a week.
pub const AHEAD_S: i64 = 9 * SECONDS_PER_DAY;
/// Windows of a reservation in an answer.
const WINDOWS_SHOWN: usize = 8;
/// Windows are shown, exported and checked against each other so far ahead.
pub const SHOWN_S: i64 = 84 * SECONDS_PER_DAY;
/// Weeks of history behind a probability.
pub const WEEKS: i64 = 26;

/// The windows of a pool in the days ahead.
///
/// # Errors
/// The database does not answer, or what it holds is damaged.
pub async fn ahead(store: &dyn Store, pool: &PoolId, now: UnixSeconds) -> Result<Vec<ReservedWindow>, StoreError> {
    let records = store.reservations(Some(pool), now, false).await?;
    if records.is_empty() {
        return Ok(Vec::new());
    }
    let zone = zone_of(store, pool).await?;
    Ok(records.iter().flat_map(|one| windows(&one.asked.what, zone, now, now.plus_s(AHEAD_S))).collect())
}

/// The time zone of a pool's cluster.
///
/// # Errors
/// As there.
pub async fn zone_of(store: &dyn Store, pool: &PoolId) -> Result<Tz, StoreError> {
    let cluster = store.cluster(&pool.cluster).await?;
    let missing = || StoreError::NotFound { what: "cluster", id: pool.cluster.to_string() };
    let name = cluster.ok_or_else(missing)?.time_zone;
    zone(&name).map_err(|fault| StoreError::Corrupt {
        what: format!("time zone of {}", pool.cluster),
        reason: fault.to_string(),
    })
}

/// A reservation as it is answered at `now`, with its next windows.
#[must_use]
pub fn body(
    record: &ReservationRecord,
    id: Option<u64>,
    (pool, history): (Option<&PoolQuota>, Option<&Panel>),
    (zone, now): (Tz, UnixSeconds),
) -> ReservationBody {
    let asked = ReservationRequest::from(&record.asked.what);
    let is_withdrawn = record.withdrawn.is_some();
    // Those of a reservation that begins later than that are shown, too.
    let from = now.max(record.asked.what.first.from);
    let next = windows(&record.asked.what, zone, from, from.plus_s(SHOWN_S)).into_iter();
    let next = next.take(if is_withdrawn { 0 } else { WINDOWS_SHOWN });
    ReservationBody {
        id,
        cluster: asked.cluster,
        gpu_model: asked.gpu_model,
        organization: asked.organization,
        gpus: asked.gpus,
        from: asked.from,
        to: asked.to,
        repeats: asked.repeats,
        by: record.asked.by.clone(),
        created_at: record.asked.at.to_string(),
        withdrawn_at: record.withdrawn.as_ref().map(|(at, _)| at.to_string()),
        withdrawn_by: record.withdrawn.as_ref().map(|(_, by)| by.clone()),
        windows: next.map(|window| window_body(&window, &record.asked.what.pool, pool, history, now)).collect(),
    }
}

/// The probability that HP demand leaves the GPUs of a window, from the forecast as far as it reaches, else from history.
fn window_body(
    window: &ReservedWindow,
    id: &PoolId,
    pool: Option<&PoolQuota>,
    history: Option<&Panel>,
    now: UnixSeconds,
) -> ReservedWindowBody {
    let unknown = (None, ProbabilitySourceBody::Unknown, None);
    let (probability, source, weeks) = pool.map_or(unknown, |pool| {
        let room = pool.supply.capacity.left_after(window.gpus);
        if let Some(chance) = chance_of_room(pool, window.to, room) {
            return (Some(chance), ProbabilitySourceBody::Forecast, None);
        }
        match history.and_then(|panel| in_history(panel, id, window, room, now)) {
            Some((chance, weeks)) => (Some(chance), ProbabilitySourceBody::History, Some(weeks)),
            None => unknown,
        }
    });
    let (from, to) = (window.from.to_string(), window.to.to_string());
    ReservedWindowBody { from, to, probability, source, weeks }
}

/// The share of past weeks whose HP demand left so much room in the same hours of the week, the window itself counted as one that
/// did not; and the number of these weeks.
fn in_history(
    panel: &Panel,
    pool: &PoolId,
    window: &ReservedWindow,
    room: MilliGpus,
    now: UnixSeconds,
) -> Option<(f64, u32)> {
    let first = window.from.hour().ok()?;
    let hours = window.to.since_s(first.instant()).div_euclid(SECONDS_PER_HOUR) + 1;
    let begin = now.since_s(window.from).div_euclid(HOURS_PER_WEEK * SECONDS_PER_HOUR).min(-1);
    let (mut weeks, mut left) = (0_u32, 0_u32);
    for week in 0..WEEKS {
        let shifted = first.plus_hours((begin - week) * HOURS_PER_WEEK);
        if let Some(peak) = peak_of(panel, pool, shifted, hours) {
            weeks += 1;
            left += u32::from(peak <= room.as_gpus());
        }
    }
    (weeks > 0).then(|| (f64::from(left) / f64::from(weeks + 1), weeks))
}

/// The largest demand of so many hours; `None` where one of them was not measured.
fn peak_of(panel: &Panel, pool: &PoolId, from: HourStart, hours: i64) -> Option<f64> {
    let of_hour = |number| actual_peak_gpus(panel, pool, from.plus_hours(number), HorizonHours::ONE);
    (0..hours).map(of_hour).try_fold(0.0, |peak: f64, demand| Some(peak.max(demand?)))
}

/// The first instant at which `added` and the windows of other reservations need more GPUs than the pool has, with their sum.
#[must_use]
pub fn first_overlap(
    added: &[ReservedWindow],
    others: Vec<ReservedWindow>,
    capacity: MilliGpus,
) -> Option<(UnixSeconds, MilliGpus)> {
    let end = added.iter().map(|window| window.to).max()?;
    let begin = added.iter().map(|window| window.from).min()?;
    let all: Vec<ReservedWindow> = others.into_iter().chain(added.iter().cloned()).collect();
    let steps = steps(&Windows { all, ..Windows::default() }, begin, end);
    let over = steps.into_iter().find(|step| step.gpus_milli > capacity.milli())?;
    Some((over.at, MilliGpus::from_milli(over.gpus_milli).unwrap_or(MilliGpus::MAX)))
}

/// The most GPUs that windows sell at one instant of `[from, until)`.
#[must_use]
pub fn most(windows: &[ReservedWindow], from: UnixSeconds, until: UnixSeconds) -> MilliGpus {
    let steps = steps(&Windows { all: windows.to_vec(), ..Windows::default() }, from, until);
    let milli = steps.into_iter().map(|step| step.gpus_milli).max().unwrap_or(0);
    MilliGpus::from_milli(milli).unwrap_or(MilliGpus::MAX)
}

/// The windows of a pool that an external scheduler places: its quotas are used until they are conservative.
#[must_use]
pub fn of_external(all: Vec<ReservedWindow>) -> Windows {
    let valid_s = placement::staleness::VALID_S + placement::staleness::STALE_S;
    Windows { all, valid_s, ..Windows::default() }
}
