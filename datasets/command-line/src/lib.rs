//! Shared CLI conventions of all programs (DESIGN §5): flag > environment > file > default with the origin of
//! each value, exit codes, tables and JSON on stdout, progress on stderr, completions.

mod config;
mod doctor;
mod exit;
mod file;
mod help;
mod number;
mod output;
mod shell;
mod value;

pub use config::{BadValue, Config, ConfigError, Entry, Places, Settings, closest, read_toml, unread};
pub use doctor::{Check, Report, Status, ago, doctor, span};
pub use exit::{Exit, Failure, finish};
pub use file::{OutputFile, is_stdout};
pub use help::{completions, parse};
pub use output::{
    Progress, colours, colours_on_stdout, is_stdout_lost, json_text, print_json, print_notice, print_text, say, table,
    try_print_text,
};
pub use shell::shell_word;
pub use value::{LOG_FILTER, check_log_filter, guarantee_rate, horizon, hour, instant};

/// Heading of the flags that every command of a program takes.
pub const GLOBAL: &str = "Options of every command";

/// Flags that every program takes.
#[derive(Debug, Clone, clap::Args)]
pub struct Common {
    /// Settings file [default: ./headroom.toml if it exists]
    #[arg(long, global = true, value_name = "FILE", help_heading = GLOBAL)]
    pub config: Option<std::path::PathBuf>,
    /// Print JSON on stdout
    #[arg(long, global = true, help_heading = GLOBAL)]
    pub json: bool,
}

/// `config show`.
#[derive(Debug, Clone, clap::Subcommand)]
pub enum ConfigCommand {
    /// Print the settings
    Show {
        /// Print the origin of each value: flag, environment, file or default
        #[arg(long)]
        origin: bool,
    },
}

/// Says, before any thread starts, that arithmetic runs on one thread, unless the user says otherwise.
///
/// The matrices of OrgLinear are narrow: on two cores the threads of candle spin and wait for each other, and training
/// took eight times as long. candle has no other switch than this variable. Results do not depend on it.
pub fn one_thread_of_arithmetic() {
    const VARIABLE: &str = "RAYON_NUM_THREADS";
    if std::env::var_os(VARIABLE).is_none() {
        // SAFETY: called first thing in `main`, while no other thread can read the environment.
        #[expect(unsafe_code, reason = "the environment is the only switch, and no thread runs yet")]
        unsafe {
            std::env::set_var(VARIABLE, "1");
        }
    }
}
