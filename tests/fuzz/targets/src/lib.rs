//! Properties of every parser of Headroom under any bytes.
//!
//! Each target is a function of bytes that panics where a promise is broken: what is accepted prints as something that is
//! accepted again and means the same, what is refused says where, and no state that is read back breaks an invariant. The
//! fuzzer (`tests/fuzz/libfuzzer`) searches for such bytes; a plain test runs the inputs that it has kept, and seeded
//! [mutations](mutate) of them.
#![expect(clippy::missing_panics_doc, reason = "to panic is what a target is for")]

mod bodies;
mod calendar;
mod checkpoint;
mod commands;
mod config;
mod journal;
mod mutation;
mod names;
mod slurm;
mod tables;
mod topology;

pub use bodies::bodies;
pub use calendar::calendar;
pub use checkpoint::{checkpoint, panel};
pub use commands::commands;
pub use config::config;
pub use journal::journal;
pub use mutation::mutate;
pub use names::names;
pub use slurm::slurm;
pub use tables::tables;
pub use topology::topology;

use std::path::PathBuf;

/// A function that panics where bytes break a promise.
pub type Target = fn(&[u8]);

/// All of them, by the names of their folders of inputs.
pub const TARGETS: [(&str, Target); 10] = [
    ("bodies", bodies),
    ("calendar", calendar),
    ("checkpoint", checkpoint),
    ("commands", commands),
    ("config", config),
    ("journal", journal),
    ("names", names),
    ("slurm", slurm),
    ("tables", tables),
    ("topology", topology),
];

/// The first line, which chooses among things that one target reads, and the rest.
fn chosen(data: &[u8]) -> Option<(&str, &[u8])> {
    let end = data.iter().position(|byte| *byte == b'\n')?;
    Some((std::str::from_utf8(&data[..end]).ok()?, &data[end + 1..]))
}

/// Writes bytes where a reader that takes a path finds them.
fn file_of(name: &str, bytes: &[u8]) -> PathBuf {
    thread_local! {
        static FOLDER: tempfile::TempDir = tempfile::tempdir().expect("a temporary folder can be made");
    }
    let path = FOLDER.with(|folder| folder.path().join(name));
    std::fs::write(&path, bytes).expect("a temporary file can be written");
    path
}

/// The text of a fault stands on one line: it goes to logs, tables and terminals.
fn is_one_line(printed: &str) {
    assert!(!printed.is_empty() && !printed.contains(char::is_control), "{printed:?} is not one line");
}
