//! The program `train`.

use clap::Parser;
use command_line::{Failure, Settings, completions, finish, one_thread_of_arithmetic, show};
use std::process::ExitCode;
use training::args::{Arguments, Command, Config};
use training::{backtest, run, runs};

fn main() -> ExitCode {
    one_thread_of_arithmetic();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match runtime {
        Ok(runtime) => finish(runtime.block_on(start(Arguments::parse()))),
        Err(fault) => finish(Err(Failure::new(command_line::Exit::Failure, fault))),
    }
}

async fn start(arguments: Arguments) -> Result<(), Failure> {
    let common = &arguments.common;
    let settings: Settings<Config> = Settings::load("train", common.config.as_deref(), &arguments.flags)?;
    let (values, json) = (&settings.values, common.json);
    match &arguments.command {
        None => run::run(&arguments.train, values, json).await?,
        Some(Command::Backtest(what)) => backtest::run(what, values, json).await?,
        Some(Command::Runs { command }) => runs::run(command, values, json).await?,
        Some(Command::Completions { shell }) => completions::<Arguments>(*shell),
        Some(Command::Config { command: command_line::ConfigCommand::Show { origin } }) => {
            show(&settings.entries, *origin, json);
        }
    }
    Ok(())
}
