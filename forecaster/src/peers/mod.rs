//! Peers: published models of other kinds behind the same [`Predict`](crate::Predict), so that a backtest shows in one
//! table what ours is worth.
//!
//! Each is as its paper has it where that fits hourly demand of many organizations; the head of its file says where it
//! differs. Networks share training, windows and scales with [`crate::orglinear`].

mod deepar;
mod ets;
mod fit;
mod layers;
mod linear;
mod network;
#[cfg(test)]
mod tests;
mod transformer;

pub use ets::{AutoEts, Smoothed};
pub use network::{Network, NetworkKind, Parts, Shape};
