//! The program `datasets`: loads, inspects and exports usage histories.

mod args;
mod calendar;
mod check;
mod describe;
mod error;
mod export;
mod gathered;
mod generate;
mod ingest;
mod outages;
mod panel;
mod slurm;
mod source;
mod source_flags;

use args::{Arguments, Command, Config};
use command_line::{ConfigCommand, Failure, Settings, completions, finish, parse};
use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    finish(run(parse()).await)
}

async fn run(arguments: Arguments) -> Result<(), Failure> {
    let json = arguments.common.json;
    if let Command::Completions { shell } = arguments.command {
        completions::<Arguments>(shell);
        return Ok(());
    }
    let settings: Settings<Config> = Settings::load("datasets", arguments.common.config.as_deref(), &arguments.flags)?;
    if let Command::Config { command: ConfigCommand::Show { origin } } = arguments.command {
        return Ok(settings.show(origin, json)?);
    }
    let database = settings.values()?.database;
    match &arguments.command {
        Command::Ingest(what) => ingest::run(what, &database, json).await?,
        Command::Describe(what) => describe::run(what, &database, json).await?,
        Command::Calendar { command } => calendar::run(command, &database, json).await?,
        Command::Generate(what) => generate::run(what, json)?,
        Command::Export(what) => export::run(what, &database, json).await?,
        Command::Config { .. } | Command::Completions { .. } => {}
    }
    Ok(())
}
