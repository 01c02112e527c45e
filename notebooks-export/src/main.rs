//! The program `notebooks-export`: reports of forecasts for people who work in notebooks and spreadsheets. It reads, and
//! changes no state.

mod analysis;
mod args;
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
use command_line::{ConfigCommand, Failure, Settings, completions, finish, one_thread_of_arithmetic, parse};
use std::process::ExitCode;

fn main() -> ExitCode {
    one_thread_of_arithmetic();
    finish(run(&parse()))
}

fn run(arguments: &Arguments) -> Result<(), Failure> {
    let common = &arguments.common;
    if let Command::Completions { shell } = arguments.command {
        completions::<Arguments>(shell);
        return Ok(());
    }
    let settings: Settings<Config> = Settings::load("notebooks-export", common.config.as_deref(), &arguments.flags)?;
    match &arguments.command {
        Command::Config { command: ConfigCommand::Show { origin } } => settings.show(*origin, common.json)?,
        Command::Report(what) => report::run(what, &settings.values()?, common.json)?,
        Command::Completions { .. } => {}
    }
    Ok(())
}
