//! The campaigns, each on one database.

mod full_disk;
mod hangups;
mod organizations;
mod poison;
mod unread;

use crate::{Outcome, options::Options, report::Report};

/// # Errors
/// The campaign cannot be carried out: a program is missing, or does not start.
pub fn run(options: &Options, database: &'static str, report: &Report) -> Outcome<()> {
    match options.campaign.as_str() {
        "hangups" => hangups::run(options, database, report),
        "poison" => poison::run(options, database, report),
        "unread" => unread::run(options, database, report),
        "full-disk" => full_disk::run(options, database, report),
        _ => organizations::run(options, database, report),
    }
}
