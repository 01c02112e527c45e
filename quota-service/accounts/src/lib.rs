//! Where the GPU time of a pool goes: HP, spot inside a guarantee, spot at will, handover, idle, drained; by day and organization. And
//! what became of promises, what evictions cost, who preempts whom, and the price of it all. Pure: sums are integers of thousandths of
//! a GPU times seconds, and come from the facts of the pool alone, so that a journal gives the same sums whenever it is read.
//!
//! ```
//! use accounts::GpuTime;
//!
//! let half_a_card_for_an_hour = GpuTime::of(500, 3_600);
//! assert_eq!(half_a_card_for_an_hour.gpu_hours(), 0.5);
//! ```
//!
//! For each day, exactly: what organizations held + idle + drained = the capacity ([`DayAccounts::unaccounted`] is zero).

#![warn(missing_docs)]

mod accounts;
mod day;
mod levels;
mod open;
mod parts;
mod prices;
mod statement;
mod time;

#[cfg(test)]
mod tests;

pub use accounts::Accounts;
pub use day::{Caused, DayAccounts, Line, Periods, PoolLine, Totals};
pub use open::Open;
pub use parts::Parts;
pub use prices::{Charges, GpuPrices, Micros, PoolCharges, PriceError, Prices};
pub use statement::{OrganizationRow, PoolRow, Preemption, Statement};
pub use time::{Day, DayError, GpuTime, Month};
