//! Joins a Kubernetes cluster to Headroom.
//!
//! [`cluster`] watches nodes and pods, [`view`] makes pools, demand and guarantees of them (pure), [`headroom`] reports them and
//! asks for quotas; [`run`] keeps all of it going. [`publish`] writes quotas into objects of Kueue or a `ResourceQuota`,
//! [`lead`] elects the writer, and [`watchdog`] lowers quotas that are not renewed. [`claims`] and [`gangs`] count what pods ask for by
//! other objects. [`kubectl`] is a program of its own. Every decision about tasks is made in `placement`.

pub mod admission;
pub mod args;
pub mod boost;
pub mod calls;
pub mod claims;
pub mod cluster;
pub mod config;
pub mod doctor;
pub mod events;
pub mod evict;
pub mod extender;
pub mod gangs;
pub mod headroom;
pub mod health;
mod help;
pub mod kubectl;
pub mod lead;
pub mod names;
pub mod notice;
pub mod publish;
pub mod quantity;
pub mod run;
pub mod show;
#[cfg(test)]
mod tests;
pub mod view;
pub mod watchdog;
pub mod workloads;
