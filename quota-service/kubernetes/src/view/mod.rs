//! Pools, demand and guarantees as nodes and pods make them. Pure: time is passed in.
//!
//! A pool is the nodes of one GPU model, kept as a [`Fleet`](placement::fleet::Fleet) whose tasks are pods, named by their UIDs.

pub mod facts;
