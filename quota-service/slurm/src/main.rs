//! The program `headroom-slurm`.

use command_line::{Failure, Settings, completions, finish, parse};
use slurm::args::{Arguments, Command, Config};
use slurm::{doctor, run, show, watchdog};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = parse();
    match tokio::runtime::Runtime::new() {
        Ok(runtime) => {
            let ended = runtime.block_on(start(arguments));
            // A program of Slurm that is under way is not waited for: it has a time limit of its own.
            runtime.shutdown_background();
            finish(ended)
        }
        Err(fault) => finish(Err(Failure::new(command_line::Exit::Failure, fault))),
    }
}

async fn start(arguments: Arguments) -> Result<(), Failure> {
    let json = arguments.common.json;
    if let Command::Completions { shell } = arguments.command {
        completions::<Arguments>(shell);
        return Ok(());
    }
    let settings = Settings::<Config>::load("headroom-slurm", arguments.common.config.as_deref(), &arguments.flags);
    if let Command::Doctor(flags) = arguments.command {
        return doctor::run(settings, flags, json).await;
    }
    let settings = settings?;
    let places = settings.places();
    match arguments.command {
        Command::Config { command: command_line::ConfigCommand::Show { origin } } => Ok(settings.show(origin, json)?),
        Command::Run => run::run(settings.values()?, json).await.map_err(|fault| places.named(fault.into())),
        Command::Show => Ok(show::run(&settings.values()?, json).await?),
        Command::Watchdog(flags) => watchdog::run(settings.values()?, flags.once, json).await,
        // Both were answered above: neither needs settings that are good.
        Command::Doctor(_) | Command::Completions { .. } => Ok(()),
    }
}
