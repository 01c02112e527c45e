//! The program `headroom`: quotas, tasks, events and statements of a service, for people and scripts. It talks to the service over
//! HTTP alone, by `headroom-client`.

pub mod args;
pub mod commands;
pub mod config;
mod failure;
mod mcp;
mod pool;
mod show;

pub use config::Config;
