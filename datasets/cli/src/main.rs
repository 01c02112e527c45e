//! The program `datasets`: usage histories into the database, out of it, and what is in it.

mod args;
mod calendar;
mod check;
mod describe;
mod error;
mod export;
mod generate;
mod ingest;
mod panel;

use args::{Arguments, Command, Config};
use clap::Parser;
use command_line::{Failure, Settings, completions, finish, show};
use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    finish(run(Arguments::parse()).await)
}

async fn run(arguments: Arguments) -> Result<(), Failure> {
    let common = &arguments.common;
    let settings: Settings<Config> = Settings::load("datasets", common.config.as_deref(), &arguments.flags)?;
    match &arguments.command {
        Command::Completions { shell } => completions::<Arguments>(*shell),
        Command::Config { command: command_line::ConfigCommand::Show { origin } } => {
            show(&settings.entries, *origin, common.json);
        }
        Command::Ingest(what) => ingest::run(what, &settings.values.database, common.json).await?,
        Command::Describe(what) => describe::run(what, &settings.values.database, common.json).await?,
        Command::Calendar { command } => calendar::run(command, &settings.values.database, common.json).await?,
        Command::Generate(what) => generate::run(what, common.json)?,
        Command::Export(what) => export::run(what, &settings.values.database, common.json).await?,
    }
    Ok(())
}
