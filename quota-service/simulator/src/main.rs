//! The program `simulate`.

use command_line::{ConfigCommand, Failure, Settings, completions, finish, one_thread_of_arithmetic, parse};
use simulator::args::{Arguments, Command, Config};
use simulator::commands;
use std::process::ExitCode;

fn main() -> ExitCode {
    one_thread_of_arithmetic();
    finish(start(&parse()))
}

fn start(arguments: &Arguments) -> Result<(), Failure> {
    let json = arguments.common.json;
    if let Some(Command::Completions { shell }) = arguments.command {
        completions::<Arguments>(shell);
        return Ok(());
    }
    let settings: Settings<Config> = Settings::load("simulate", arguments.common.config.as_deref(), &arguments.flags)?;
    if let Some(Command::Config { command: ConfigCommand::Show { origin } }) = arguments.command {
        return Ok(settings.show(origin, json)?);
    }
    let values = settings.values()?;
    match &arguments.command {
        None => commands::one(arguments, &values, json)?,
        Some(Command::Topology(what)) => commands::topology(what, &values, json)?,
        Some(Command::Compare(what)) => simulator::compare::compare(what, &values, json)?,
        Some(Command::Eta(what)) => simulator::starts::eta(what, &values, json)?,
        Some(Command::Inflate(what)) => simulator::inflate::inflate(what, &values, json)?,
        Some(Command::Timing(what)) => simulator::timing::timing(what, &values, json)?,
        Some(Command::Elastic(what)) => simulator::elastic::command(what, &values, json)?,
        Some(Command::Config { .. } | Command::Completions { .. }) => {}
    }
    Ok(())
}
