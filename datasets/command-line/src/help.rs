//! Command lines as every program has them.

use crate::Exit;
use clap::{Command, CommandFactory, Parser};
use clap_complete::Shell;

/// Reads the command line; help, version and mistakes end the program here.
#[must_use]
pub fn parse<A: Parser>() -> A {
    let mut command = dressed::<A>();
    let mut matches = command.get_matches_mut();
    A::from_arg_matches_mut(&mut matches).unwrap_or_else(|fault| fault.format(&mut command).exit())
}

/// The command line of a program, with what all of them say in their long help: examples of the commands that they share,
/// and how they end.
fn dressed<A: CommandFactory>() -> Command {
    let command = A::command();
    let name = command.get_name().to_owned();
    let own = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
    let show = examples(&[format!("{name} config show --origin"), format!("{name} config show --json")]);
    let completions = examples(&[
        format!("{name} completions bash >/etc/bash_completion.d/{name}"),
        format!("{name} completions zsh >~/.zfunc/_{name}"),
    ]);
    command
        .after_long_help(format!("{own}\n\n{}", exits()))
        .mut_subcommand("config", |config| config.mut_subcommand("show", |one| one.after_long_help(show)))
        .mut_subcommand("completions", |one| one.after_long_help(completions))
}

fn examples(lines: &[String]) -> String {
    format!("Examples:\n  {}", lines.join("\n  "))
}

fn exits() -> String {
    let line = |exit: &Exit| format!("\n  {}  {}", *exit as u8, exit.meaning());
    let lines: String = Exit::USED.iter().map(line).collect();
    format!("Exit codes:\n  0  done{lines}")
}

/// Prints the completions of a program to stdout.
pub fn completions<A: CommandFactory>(shell: Shell) {
    let mut command = dressed::<A>();
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, name, &mut script);
    crate::print_text(&String::from_utf8_lossy(&script));
}
