//! Whether a reservation fits: beside other windows, and beside what is promised already.

use crate::core::Core;
use crate::engine::{Engine, Order, SoldBy};
use crate::http::ApiError;
use crate::plan::NoQuota;
use crate::published::PublishedPool;
use crate::reservations;
use datasets::reservations::{Tz, check, windows};
use placement::staleness::{STALE_S, VALID_S};
use std::sync::Arc;
use store::{NewReservation, ReservationRecord};
use vocab::{PlacedBy, Reservation, ReservedWindow, SECONDS_PER_DAY, UnixSeconds};
use wire::FieldFault;

/// Reservations of a pool that are not over.
const MOST: usize = 1_000;
/// A window may have begun so many seconds ago: the clock of the client, and the way here.
const BEGUN_S: i64 = 300;
/// The first window begins at most so far ahead.
const FURTHEST_S: i64 = 366 * SECONDS_PER_DAY;
/// Rules of weeks that meet at all do so within a year and a week.
const RULES_MEET_S: i64 = (366 + 7) * SECONDS_PER_DAY;

/// A reservation that is asked for, and the pool with its other windows.
pub struct Sale<'a> {
    pool: &'a Arc<PublishedPool>,
    asked: &'a NewReservation,
    zone: Tz,
    now: UnixSeconds,
    others: Vec<ReservationRecord>,
    is_placed_here: bool,
    /// The same, which is stored already.
    pub equal: Option<ReservationRecord>,
}

impl<'a> Sale<'a> {
    /// # Errors
    /// The database does not answer, or a time is refused.
    pub async fn of(
        core: &Core,
        pool: &'a Arc<PublishedPool>,
        asked: &'a NewReservation,
        now: UnixSeconds,
    ) -> Result<Self, ApiError> {
        let store = core.store.as_ref();
        let zone = reservations::zone_of(store, &pool.id).await?;
        check(&asked.what, zone).map_err(|fault| match fault.to_string().split_once(": ") {
            Some((pointer, detail)) => FieldFault::new(pointer, detail),
            None => FieldFault::new("/repeats", fault),
        })?;
        let others = store.reservations(Some(&pool.id), now, false).await?;
        let is_equal = |one: &&ReservationRecord| one.asked.what == asked.what && one.asked.by == asked.by;
        let equal = others.iter().find(is_equal).cloned();
        let placement = store.placement(&pool.id).await?;
        let is_placed_here = placement.is_some_and(|placement| placement.placed_by == PlacedBy::Headroom);
        Ok(Self { pool, asked, zone, now, others, is_placed_here, equal })
    }

    /// The times, the number of reservations, and room beside other windows and promises.
    ///
    /// # Errors
    /// Something does not fit.
    pub fn check(&self) -> Result<(), ApiError> {
        let (first, now) = (&self.asked.what.first, self.now);
        if first.from.plus_s(BEGUN_S) < now {
            let detail = format!("{} is past at {now}: write a time in the hours ahead", first.from);
            return Err(FieldFault::new("/from", detail).into());
        }
        if now.plus_s(FURTHEST_S) < first.from {
            let detail = format!("{} is more than 366 days ahead: write an earlier time", first.from);
            return Err(FieldFault::new("/from", detail).into());
        }
        if self.others.len() >= MOST {
            let detail =
                format!("the pool has {MOST} reservations, the most that it takes: withdraw one, or let one repeat");
            return Err(conflict("too-many-reservations", "Too many reservations", detail));
        }
        let Some(made_of) = &self.pool.made_of else {
            return Err(no_quota(self.pool));
        };
        let capacity = made_of.supply.capacity;
        if first.gpus > capacity {
            let detail = format!("{} GPUs are more than the pool has, {capacity}: write fewer", first.gpus);
            return Err(FieldFault::new("/gpus", detail).into());
        }
        let added = self.windows_until(self.checked_until());
        let end = added.iter().map(|window| window.to).max().unwrap_or(first.to);
        let others = self.others.iter().flat_map(|one| windows(&one.asked.what, self.zone, first.from, end));
        if let Some((at, gpus)) = reservations::first_overlap(&added, others.collect(), capacity) {
            let detail = format!(
                "at {at} windows would have {gpus} of {capacity} GPUs: write fewer GPUs or another time, or withdraw another \
                 reservation"
            );
            return Err(conflict("oversold", "The GPUs are reserved already", detail));
        }
        if self.is_placed_here { Ok(()) } else { self.check_handed_out() }
    }

    /// Promises of an external scheduler, given or still possible by a quota that it has, may reach into a window.
    fn check_handed_out(&self) -> Result<(), ApiError> {
        let Some(made_of) = &self.pool.made_of else { return Ok(()) };
        let first = &self.asked.what.first;
        let reaching = made_of.quotas.iter().filter(|quota| {
            let until = self.now.plus_s(quota.hours.seconds() + VALID_S + STALE_S);
            self.windows_until(until).iter().any(|window| self.now < window.to)
        });
        for quota in reaching {
            let handed_out = quota.quota.max(quota.used);
            let until = self.now.plus_s(quota.hours.seconds() + VALID_S + STALE_S);
            // Not those of the quota: one that was sold since its renewal counts, too.
            let others = self.others.iter().flat_map(|one| windows(&one.asked.what, self.zone, self.now, until));
            let sold = reservations::most(&others.collect::<Vec<_>>(), self.now, until);
            let left = made_of.supply.capacity.left_after(sold).left_after(handed_out);
            if left < first.gpus {
                let detail = format!(
                    "quotas for {} that are handed out already may promise {handed_out} GPUs until {until}, and leave {left}: \
                     write that time or a later one, or fewer GPUs",
                    quota.hours
                );
                return Err(conflict("promised", "Promises reach into the window", detail));
            }
        }
        Ok(())
    }

    /// Two rules meet within a year from the later one on, if ever: some only where the clocks change. A single window is met when it comes.
    fn checked_until(&self) -> UnixSeconds {
        let met = |one: &Reservation| match one.repeats {
            Some(_) => one.first.from.plus_s(RULES_MEET_S),
            None => one.first.to,
        };
        let others = self.others.iter().map(|one| met(&one.asked.what));
        others.fold(met(&self.asked.what), UnixSeconds::max)
    }

    fn windows_until(&self, end: UnixSeconds) -> Vec<ReservedWindow> {
        windows(&self.asked.what, self.zone, self.asked.what.first.from, end)
    }

    /// Where Headroom places the pool: its writer keeps the windows from now on.
    ///
    /// # Errors
    /// Promises that were given before reach into one of them.
    pub async fn keep(&self, engine: &Engine, by: SoldBy) -> Result<(), ApiError> {
        let end = self.now.plus_s(reservations::AHEAD_S);
        let of = |one: &NewReservation| windows(&one.what, self.zone, self.now, end);
        let mut all: Vec<ReservedWindow> = self.others.iter().flat_map(|one| of(&one.asked)).collect();
        all.extend(of(self.asked));
        let order = Order::Windows { windows: all, by };
        if self.is_placed_here {
            engine.ask(&self.pool.id, order).await?;
        } else {
            engine.ask_if_running(&self.pool.id, order).await?;
        }
        Ok(())
    }
}

/// Without a quota nothing is sold. Where an operator has to act first, a client that tried again would do so for ever.
fn no_quota(pool: &PublishedPool) -> ApiError {
    match &pool.problem {
        Some(why) if NoQuota::awaits_operator(why) => conflict("no-quota", "The pool can have no quota", why.clone()),
        _ => ApiError::NoQuotaYet { why: pool.why_none() },
    }
}

fn conflict(code: &str, title: &str, detail: String) -> ApiError {
    ApiError::Problem(Box::new(ApiError::plain(409, code, title, detail)))
}
