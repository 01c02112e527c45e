//! The program `notebooks-export`: reports of forecasts for people who work in notebooks and spreadsheets. It reads, and
//! changes no state.

mod args;
mod error;
mod forecasts;
mod grid;
mod measured;
mod metrics;
mod number;
mod output;
mod parquet;
mod pool_bounds;
mod report;
mod table;
#[cfg(test)]
mod tests;

use args::{Arguments, Command, Config};
use clap::Parser;
use command_line::{ConfigCommand, Failure, Settings, completions, finish, show};
use std::process::ExitCode;

fn main() -> ExitCode {
    finish(run(&Arguments::parse()))
}

fn run(arguments: &Arguments) -> Result<(), Failure> {
    let common = &arguments.common;
    // No flag is a setting, too.
    let settings: Settings<Config> = Settings::load("notebooks-export", common.config.as_deref(), &Config::default())?;
    match &arguments.command {
        Command::Report(what) => report::run(what, common.json)?,
        Command::Config { command: ConfigCommand::Show { origin } } => show(&settings.entries, *origin, common.json),
        Command::Completions { shell } => completions::<Arguments>(*shell),
    }
    Ok(())
}
