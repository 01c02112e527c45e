//! Command lines as every program has them.

use crate::Exit;
use clap::error::{ContextKind, ErrorKind};
use clap::{Command, CommandFactory, Parser};
use clap_complete::Shell;

/// Reads the command line; help, version and mistakes end the program here.
#[must_use]
pub fn parse<A: Parser>() -> A {
    let mut command = dressed::<A>();
    let found = command.try_get_matches_from_mut(std::env::args_os());
    let mut matches = found.unwrap_or_else(|fault| plainly(fault, &mut command).exit());
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

/// A refused value in the words of a user: some parsers have none.
fn plainly(fault: clap::Error, command: &mut Command) -> clap::Error {
    let Some(why) = std::error::Error::source(&fault).and_then(|source| in_words(&source.to_string())) else {
        return fault;
    };
    let of = |kind| fault.get(kind).map(ToString::to_string).unwrap_or_default();
    let (flag, value) = (of(ContextKind::InvalidArg), of(ContextKind::InvalidValue));
    command.error(ErrorKind::ValueValidation, format!("invalid value '{value}' for '{flag}': {why}"))
}

fn in_words(text: &str) -> Option<&'static str> {
    Some(match text {
        "invalid digit found in string" | "cannot parse integer from empty string" => "write a whole number",
        "number too large to fit in target type" => "the number is too large",
        "invalid float literal" | "cannot parse float from empty string" => "write a number",
        "invalid socket address syntax" => "write ADDRESS:PORT, such as 127.0.0.1:8080",
        _ => return None,
    })
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
