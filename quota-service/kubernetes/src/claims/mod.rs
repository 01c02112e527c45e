//! GPUs that pods ask for by claims (Dynamic Resource Allocation), and devices of drivers as GPUs of nodes. Pure; [`watch`] feeds it.

mod capacity;
pub mod devices;
#[cfg(test)]
pub(crate) mod dice;
mod ledger;
mod requests;
mod selectors;
#[cfg(test)]
mod tests;
pub mod watch;

pub use ledger::{ClaimAsk, Key, Ledger, Planner};

/// Thousandths of a quantity; `None` of a text that is none.
fn milli(text: &str) -> Option<u128> {
    crate::quantity::Quantity::thousandths(text).ok().map(u128::from)
}
