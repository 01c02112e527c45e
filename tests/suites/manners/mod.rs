//! The manners of DESIGN §5, on every command of every program that cargo knows of: a new one cannot be forgotten.

mod help;
mod output;
mod settings;

use std::sync::OnceLock;
use tests::{Ran, program, program_names};

/// A command and its two helps.
struct Command {
    program: String,
    /// The words after the program's name.
    path: Vec<String>,
    short: String,
    long: String,
}

impl Command {
    fn run(&self, more: &[&str]) -> Ran {
        let path = self.path.iter().map(String::as_str);
        program(&self.program, &path.chain(more.iter().copied()).collect::<Vec<_>>())
    }

    fn subcommands(&self) -> Vec<String> {
        let section = self.long.split("\nCommands:\n").nth(1).unwrap_or_default();
        let lines = section.lines().take_while(|line| !line.is_empty());
        let name = |line: &str| line.split_whitespace().next().map(str::to_owned);
        lines.filter_map(name).filter(|name| name != "help").collect()
    }

    /// Those that are written out, such as `--json`.
    fn flags(&self) -> Vec<String> {
        let words = self.short.lines().filter_map(|line| line.split_whitespace().find(|word| word.starts_with("--")));
        words.map(str::to_owned).filter(|flag| !["--help", "--version"].contains(&flag.as_str())).collect()
    }
}

impl std::fmt::Display for Command {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.program, self.path.join(" "))
    }
}

/// Every command of every program, found through its help.
fn commands() -> &'static [Command] {
    static COMMANDS: OnceLock<Vec<Command>> = OnceLock::new();
    COMMANDS.get_or_init(|| {
        let mut found = Vec::new();
        for name in program_names() {
            add(&name, Vec::new(), &mut found);
        }
        assert!(found.len() > 20, "only {} commands were found", found.len());
        found
    })
}

fn add(name: &str, path: Vec<String>, found: &mut Vec<Command>) {
    let mut command = Command { program: name.to_owned(), path, short: String::new(), long: String::new() };
    command.short = command.run(&["-h"]).ok().stdout;
    command.long = command.run(&["--help"]).ok().stdout;
    for below in command.subcommands() {
        add(name, [&command.path[..], &[below]].concat(), found);
    }
    found.push(command);
}
