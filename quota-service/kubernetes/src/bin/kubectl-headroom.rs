//! The program `kubectl-headroom`: a plugin of kubectl.

use command_line::{Settings, completions, finish, parse};
use kubernetes::kubectl::{self, Arguments, Command, PluginConfig};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = parse::<Arguments>();
    if let Command::Completions { shell } = arguments.command {
        completions::<Arguments>(shell);
        return ExitCode::SUCCESS;
    }
    let json = arguments.common.json;
    let file = arguments.common.config.as_deref();
    let settings = Settings::<PluginConfig>::load("kubectl-headroom", file, &arguments.flags);
    let ended = settings.map_err(Into::into).map(kubectl::extended).and_then(|settings| {
        if let Command::Config { command: command_line::ConfigCommand::Show { origin } } = arguments.command {
            return Ok(settings.show(origin, json)?);
        }
        kubectl::start(settings.values()?, arguments.command, json)
    });
    finish(ended)
}
