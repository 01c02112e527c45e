//! The program `headroom`.

use command_line::{Exit, Failure, Settings, completions, finish, parse};
use headroom::args::{Arguments, Command};
use headroom::{Config, commands};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = parse();
    match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => finish(runtime.block_on(start(arguments))),
        Err(fault) => finish(Err(Failure::new(Exit::Failure, fault))),
    }
}

async fn start(arguments: Arguments) -> Result<(), Failure> {
    let json = arguments.common.json;
    if let Command::Completions { shell } = arguments.command {
        completions::<Arguments>(shell);
        return Ok(());
    }
    let settings = Settings::<Config>::load("headroom", arguments.common.config.as_deref(), &arguments.flags)?;
    let places = settings.places();
    if let Command::Config { command: command_line::ConfigCommand::Show { origin } } = arguments.command {
        return Ok(settings.show(origin, json)?);
    }
    commands::run(arguments.command, &settings.values()?, json).await.map_err(|fault| places.named(fault))
}
