//! The program `quota-service`.

use command_line::{ConfigCommand, Exit, Failure, Settings, completions, finish, one_thread_of_arithmetic, parse};
use quota_service::access::command as token;
use quota_service::args::{Arguments, Command, Config};
use quota_service::{database, doctor, promises, serve, topology};
use std::process::ExitCode;

fn main() -> ExitCode {
    one_thread_of_arithmetic();
    let arguments = parse();
    match tokio::runtime::Runtime::new() {
        Ok(runtime) => {
            let ended = runtime.block_on(start(arguments));
            // A computation that is under way is not waited for.
            runtime.shutdown_background();
            finish(ended)
        }
        Err(fault) => finish(Err(Failure::new(Exit::Failure, fault))),
    }
}

async fn start(arguments: Arguments) -> Result<(), Failure> {
    let json = arguments.common.json;
    if let Some(Command::Completions { shell }) = arguments.command {
        completions::<Arguments>(shell);
        return Ok(());
    }
    let settings = Settings::<Config>::load("quota-service", arguments.common.config.as_deref(), &arguments.flags);
    if let Some(Command::Doctor(flags)) = arguments.command {
        return doctor::run(settings, &flags, json).await;
    }
    let settings = settings?;
    let places = settings.places();
    match arguments.command {
        Some(Command::Token { command }) => token::run(command, &settings.values()?.database, json).await,
        Some(Command::Database { command }) => database::run(command, &settings.values()?.database, json).await,
        Some(Command::Promises(flags)) => promises::show(&flags, &settings.values()?.database, json).await,
        Some(Command::Topology(flags)) => topology::show(&flags, json),
        Some(Command::Config { command: ConfigCommand::Show { origin } }) => Ok(settings.show(origin, json)?),
        _ => {
            let served = serve::run(settings.values()?, arguments.common.config, json).await;
            served.map_err(|fault| places.named(fault.into()))
        }
    }
}
