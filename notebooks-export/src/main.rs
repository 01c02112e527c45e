//! The program `notebooks-export`: reports of forecasts for people who work in notebooks and spreadsheets. It reads, and
//! changes no state.

mod analysis;
mod args;
mod chart;
mod error;
mod forecasts;
mod grid;
mod measured;
mod metrics;
mod notebook;
mod number;
mod output;
mod page;
mod parquet;
mod pool_bounds;
mod report;
mod source;
mod table;
#[cfg(test)]
mod tests;

use args::{Arguments, Command, Config};
use clap::Parser;
use command_line::{ConfigCommand, Failure, Settings, completions, finish, one_thread_of_arithmetic, show};
use std::process::ExitCode;

fn main() -> ExitCode {
    one_thread_of_arithmetic();
    finish(run(&Arguments::parse()))
}

fn run(arguments: &Arguments) -> Result<(), Failure> {
    let common = &arguments.common;
    let settings: Settings<Config> = Settings::load("notebooks-export", common.config.as_deref(), &arguments.flags)?;
    match &arguments.command {
        Command::Report(what) => report::run(what, &settings.values, common.json)?,
        Command::Config { command: ConfigCommand::Show { origin } } => show(&settings.entries, *origin, common.json),
        Command::Completions { shell } => completions::<Arguments>(*shell),
    }
    Ok(())
}
