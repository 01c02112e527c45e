//! Policies that exist to be compared with, and never place a task of the service.
//!
//! [`leases`] is Chronus on a fleet, played by [`run`]. [`elastic`] and [`timing`] are schedulers by number, without nodes:
//! Cornucopia and Lazer as their papers have them, with the rivals of these papers. Pure as `placement` is: no clock, no I/O.

pub mod elastic;
pub mod leases;
pub mod run;
pub mod timing;
