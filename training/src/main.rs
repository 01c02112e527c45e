//! The program `train`.

use command_line::{ConfigCommand, Failure, Settings, completions, finish, one_thread_of_arithmetic, parse};
use std::process::ExitCode;
use training::args::{Arguments, Command, Config};
use training::{backtest, explain, run, runs, tune};

fn main() -> ExitCode {
    one_thread_of_arithmetic();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match runtime {
        Ok(runtime) => finish(runtime.block_on(start(parse()))),
        Err(fault) => finish(Err(Failure::new(command_line::Exit::Failure, fault))),
    }
}

async fn start(arguments: Arguments) -> Result<(), Failure> {
    let json = arguments.common.json;
    if let Some(Command::Completions { shell }) = arguments.command {
        completions::<Arguments>(shell);
        return Ok(());
    }
    let settings: Settings<Config> = Settings::load("train", arguments.common.config.as_deref(), &arguments.flags)?;
    if let Some(Command::Config { command: ConfigCommand::Show { origin } }) = arguments.command {
        return Ok(settings.show(origin, json)?);
    }
    let values = settings.values()?;
    match &arguments.command {
        None => run::run(&arguments.train, &values, json).await?,
        Some(Command::Backtest(what)) => backtest::run(what, &values, json).await?,
        Some(Command::Ablation(what)) => backtest::ablation(what, &values, json).await?,
        Some(Command::Tune(what)) => tune::run(what, &values, json).await?,
        Some(Command::Explain(what)) => explain::run(what, &values, json).await?,
        Some(Command::Runs { command }) => runs::run(command, &values, json).await?,
        Some(Command::Config { .. } | Command::Completions { .. }) => {}
    }
    Ok(())
}
