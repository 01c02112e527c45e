//! Records of Slurm: what `sacct`, `squeue` and `scontrol show nodes` print as JSON, in each of its forms.
//!
//! [`history`] reads finished and running jobs of `sacct`, [`queue`] the present ones of `squeue`, [`nodes`] the nodes. A
//! [`Form`] is the version of the JSON, and a form that is not known is refused. [`Rules`] say which jobs are spot and
//! whose they are ([`RulesFlags`] are their flags), and [`demand`] turns a history into hourly HP demand. [`command`] runs Slurm's programs, each with a
//! time limit.

mod array;
pub mod command;
pub mod demand;
mod document;
mod error;
mod flags;
mod form;
mod gpus;
pub mod history;
pub mod nodes;
pub mod queue;
mod rules;
pub mod source;
mod state;
#[cfg(test)]
mod tests;
mod values;

pub use document::Skipped;
pub use error::RecordsError;
pub use flags::RulesFlags;
pub use form::Form;
pub use gpus::{GPU_GRES, Gpus};
pub use history::{History, Job, JobName};
pub use rules::{Accounts, AccountsFault, JobClass, Rules};
pub use state::{Phase, State};
