//! Joins a Kubernetes cluster to Headroom.
//!
//! [`cluster`] watches nodes and pods, [`view`] makes pools, demand and guarantees of them (pure), [`headroom`] reports them and
//! asks for quotas; [`extender`] answers the scheduler; [`publish`] writes quotas where Kueue or a `ResourceQuota` look for them,
//! [`lead`] says who may write, and [`watchdog`] lowers what nobody renews. Every decision is made in `placement`.

pub mod args;
pub mod cluster;
pub mod config;
pub mod extender;
pub mod headroom;
pub mod names;
pub mod view;
