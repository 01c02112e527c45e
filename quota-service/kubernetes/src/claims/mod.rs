//! GPUs that pods ask for by claims (Dynamic Resource Allocation), and devices of drivers as GPUs of nodes. Pure; [`watch`] feeds it.

mod capacity;
pub mod devices;
#[cfg(test)]
pub(crate) mod dice;
mod ledger;
mod quantity;
mod requests;
mod selectors;
#[cfg(test)]
mod tests;
pub mod watch;

pub use ledger::{Key, Ledger};
