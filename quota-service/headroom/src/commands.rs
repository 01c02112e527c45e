//! The commands.

mod cancel;
mod quota;
mod reservations;
mod reserve;
mod statement;
mod submit;
mod watch;
mod when;
mod why;
mod withdraw;

use crate::args::Command;
use crate::config::Config;
use crate::failure;
use command_line::Failure;

/// Runs a command by the settings.
///
/// # Errors
/// The service does not answer or refuses, or the settings do not name one pool.
pub async fn run(command: Command, config: &Config, json: bool) -> Result<(), Failure> {
    let client = config.client().map_err(|fault| failure::of(&fault))?;
    match command {
        Command::Quota(flags) => quota::run(&client, config, &flags, json).await,
        Command::Submit(flags) => submit::run(&client, config, flags, json).await,
        Command::Why(flags) => why::run(&client, config, &flags, json).await,
        Command::When(flags) => when::run(&client, config, flags, json).await,
        Command::Cancel(flags) => cancel::run(&client, config, &flags, json).await,
        Command::Watch(flags) => watch::run(&client, config, &flags, json).await,
        Command::Reserve(flags) => reserve::run(&client, config, flags, json).await,
        Command::Reservations(flags) => reservations::run(&client, config, &flags, json).await,
        Command::Withdraw(flags) => withdraw::run(&client, &flags, json).await,
        Command::Statement(flags) => statement::run(&client, config, &flags, json).await,
        Command::Mcp(flags) => crate::mcp::run(&client, config, &flags, json).await,
        // Both are answered before: neither needs a client.
        Command::Config { .. } | Command::Completions { .. } => Ok(()),
    }
}
