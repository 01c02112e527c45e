//! The manners that every program of Headroom shares (DESIGN §5): flag > environment > file > default with the origin of
//! each value, exit codes, tables and JSON on stdout, progress on stderr, completions.

mod config;
mod exit;
mod file;
mod output;
mod value;

pub use config::{ConfigError, Entry, Settings, show};
pub use exit::{Exit, Failure, finish};
pub use file::OutputFile;
pub use output::{Progress, print_json, print_text, say, table};
pub use value::{horizon, hour, instant};

use clap::CommandFactory;
use clap_complete::Shell;

/// Flags that every program takes.
#[derive(Debug, Clone, clap::Args)]
pub struct Common {
    /// Settings file; ./headroom.toml where it exists
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<std::path::PathBuf>,
    /// Print JSON on stdout
    #[arg(long, global = true)]
    pub json: bool,
}

/// `config show`.
#[derive(Debug, Clone, clap::Subcommand)]
pub enum ConfigCommand {
    /// Print the settings in force
    Show {
        /// Say where each value comes from: flag, environment, file or default
        #[arg(long)]
        origin: bool,
    },
}

/// Prints the completions of a program to stdout.
pub fn completions<C: CommandFactory>(shell: Shell) {
    let mut command = C::command();
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, name, &mut script);
    print_text(&String::from_utf8_lossy(&script));
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
