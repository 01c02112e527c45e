//! The program `quota-service`.

use clap::Parser;
use command_line::{Exit, Failure, Settings, completions, finish, one_thread_of_arithmetic, show};
use quota_service::args::{Arguments, Command, Config};
use quota_service::serve;
use std::process::ExitCode;

fn main() -> ExitCode {
    one_thread_of_arithmetic();
    let arguments = Arguments::parse();
    match tokio::runtime::Runtime::new() {
        Ok(runtime) => finish(runtime.block_on(start(arguments))),
        Err(fault) => finish(Err(Failure::new(Exit::Failure, fault))),
    }
}

async fn start(arguments: Arguments) -> Result<(), Failure> {
    let common = &arguments.common;
    let settings: Settings<Config> = Settings::load("quota-service", common.config.as_deref(), &arguments.flags)?;
    match &arguments.command {
        None => serve::run(settings.values, common.json).await?,
        Some(Command::Completions { shell }) => completions::<Arguments>(*shell),
        Some(Command::Config { command: command_line::ConfigCommand::Show { origin } }) => {
            show(&settings.entries, *origin, common.json);
        }
    }
    Ok(())
}
