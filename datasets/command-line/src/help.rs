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
    let words: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    let of = |kind| fault.get(kind).map(ToString::to_string).unwrap_or_default();
    let (flag, value) = (of(ContextKind::InvalidArg), of(ContextKind::InvalidValue));
    let why = std::error::Error::source(&fault).and_then(|source| in_words(&source.to_string(), &value));
    let asked = asked(command, &words);
    let text = match (why, negative(&flag, &words).filter(|(flag, _)| takes_value(asked, flag))) {
        (Some(why), _) => format!("invalid value '{value}' for '{flag}': {why}"),
        (None, Some((flag, value))) => {
            format!("invalid value '{value}' for '{flag}': it does not begin with '-', and a number is 0 or more")
        }
        (None, None) => return fault,
    };
    asked.error(ErrorKind::ValueValidation, text)
}

/// The flag and the value of a negative number that was taken for a flag of its own: `fault` is what it was taken for, `-4`.
fn negative<'a>(fault: &str, words: &'a [String]) -> Option<(&'a str, &'a str)> {
    let is_number =
        |word: &str| word.strip_prefix('-').is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()));
    let place = words.iter().position(|word| is_number(fault) && word.starts_with(fault))?;
    let flag = words.get(place.checked_sub(1)?).filter(|word| word.starts_with("--"))?;
    Some((flag, &words[place]))
}

/// The command whose usage helps: the last one that was named.
fn asked<'a>(command: &'a mut Command, words: &[String]) -> &'a mut Command {
    let (mut last, mut words) = (command, words.iter().skip(1));
    while let Some(word) = words.next() {
        if takes_value(last, word) {
            let _ = words.next();
        } else if last.find_subcommand(word).is_some() {
            last = last.find_subcommand_mut(word).expect("it was found");
        }
    }
    last
}

/// Whether a word is a flag whose value is the next word.
fn takes_value(command: &Command, word: &str) -> bool {
    let Some(name) = word.strip_prefix("--") else { return false };
    command.get_arguments().any(|one| one.get_long() == Some(name) && one.get_action().takes_values())
}

fn in_words(text: &str, value: &str) -> Option<String> {
    let has_unit = value.len() > 1 && value.ends_with(|last: char| last.is_ascii_alphabetic());
    let number = value.trim_end_matches(|last: char| last.is_ascii_alphabetic());
    let plain = match text {
        "invalid digit found in string" if has_unit && number.parse::<u64>().is_ok() => {
            return Some(format!("write it without a unit, such as {number}"));
        }
        "invalid digit found in string" | "cannot parse integer from empty string" => "write a whole number",
        "number too large to fit in target type" => "the number is too large",
        "invalid float literal" | "cannot parse float from empty string" => "write a number",
        "invalid socket address syntax" => "write ADDRESS:PORT, such as 127.0.0.1:8080",
        _ => return range(text, value),
    };
    Some(plain.to_owned())
}

/// `3 is not in 36..=36500`, where the end may be the largest number of its type.
fn range(text: &str, value: &str) -> Option<String> {
    let (least, most) = text.split_once(" is not in ")?.1.split_once("..")?;
    let (end, is_included) = most.strip_prefix('=').map_or((most, false), |most| (most, true));
    let whole = |text: &str| text.parse::<i128>().ok();
    let is_below = whole(value).zip(whole(least)).is_some_and(|(value, least)| value < least);
    // A type that ends far above says nothing to one who wrote too little.
    let is_large = |end: &i128| is_below && *end > i128::from(u16::MAX);
    Some(match whole(end).filter(|end| !is_large(end)) {
        Some(end) => format!("write a number from {least} to {}", if is_included { end } else { end - 1 }),
        None => format!("write {least} or more"),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_values_are_explained_in_words() {
        let words = |text: &str, value: &str| in_words(text, value).unwrap();
        assert_eq!(words("invalid digit found in string", "4h"), "write it without a unit, such as 4");
        assert_eq!(words("invalid digit found in string", "four"), "write a whole number");
        assert_eq!(words("3 is not in 36..=36500", "3"), "write a number from 36 to 36500");
        assert_eq!(words("0 is not in 1..18446744073709551615", "0"), "write 1 or more");
        assert_eq!(words("0 is not in 1..256", "0"), "write a number from 1 to 255");
        assert_eq!(words("5000000000 is not in 1..4294967296", "5000000000"), "write a number from 1 to 4294967295");
        assert_eq!(in_words("no such file", "x"), None);
        let line = ["train", "--horizon", "-4h", "-5"].map(str::to_owned);
        assert_eq!(negative("-4", &line), Some(("--horizon", "-4h")));
        assert_eq!((negative("-5", &line), negative("-x", &line)), (None, None));
    }

    #[test]
    fn the_usage_is_that_of_the_command_that_was_named_and_no_value_names_one() {
        let name = clap::Arg::new("cluster").long("cluster").action(clap::ArgAction::Set);
        let json = clap::Arg::new("json").long("json").action(clap::ArgAction::SetTrue);
        let mut command = Command::new("train").arg(name).arg(json).subcommand(Command::new("backtest"));
        let mut named = |line: &[&str]| {
            let words: Vec<String> = line.iter().map(ToString::to_string).collect();
            asked(&mut command, &words).get_name().to_owned()
        };
        assert_eq!(named(&["train", "--json", "backtest", "-4"]), "backtest");
        assert_eq!(named(&["train", "--cluster", "backtest"]), "train");
        assert_eq!(named(&["train", "--cluster=x", "backtest"]), "backtest");
    }
}
