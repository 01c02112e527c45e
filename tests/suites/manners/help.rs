//! Help, examples, completions, and the right word for a wrong one.

use super::{Command, commands};
use std::io::Write;
use std::process::Stdio;
use tests::{program, program_names, workspace_root};

/// Lines of a text that run one of our programs, with what a shell would take away: comments, pipes, redirections.
fn examples(text: &str) -> Vec<Vec<String>> {
    let joined = text.replace("\\\n", " ");
    let programs = program_names();
    let words = joined.lines().filter_map(|line| shlex(line.trim().trim_start_matches("$ ")));
    words.filter(|words| words.first().is_some_and(|first| programs.contains(first))).collect()
}

/// Words as a shell takes them, up to a comment, a pipe or a redirection; `None` for an open quote.
fn shlex(line: &str) -> Option<Vec<String>> {
    let (mut words, mut quote) = (vec![String::new()], None);
    for letter in line.chars() {
        match (letter, quote) {
            (end, Some(begun)) if end == begun => quote = None,
            ('"' | '\'', None) => quote = Some(letter),
            ('#' | '|' | '>' | '&', None) => break,
            (' ', None) => words.push(String::new()),
            (letter, _) => words.last_mut().unwrap().push(letter),
        }
    }
    words.retain(|word| !word.is_empty());
    quote.is_none().then_some(words)
}

/// The settings are read right after the command line: where their file is missing, the command line was accepted.
/// Completions need no settings.
fn assert_accepted(words: &[String]) {
    let mut arguments: Vec<&str> = words[1..].iter().map(String::as_str).collect();
    arguments.extend(["--config", "/missing/headroom.toml"]);
    let ran = program(&words[0], &arguments);
    let expected = if arguments.contains(&"completions") { 0 } else { 4 };
    assert_eq!(ran.code, expected, "{words:?}: {}", ran.stderr);
}

#[test]
fn every_command_has_a_short_help_and_a_long_one_with_examples() {
    for command in commands() {
        let (short, long) = (&command.short, &command.long);
        assert!(short.len() < long.len() || !command.subcommands().is_empty(), "{command}: -h is as long as --help");
        assert!(!short.contains("Examples:"), "{command}: examples belong into the long help");
        assert!(short.contains("Usage: "), "{command}");
        let here = command.to_string();
        let listed = long.split("Examples:\n").nth(1).unwrap_or_default();
        let own = examples(listed).into_iter().filter(|words| words.join(" ").starts_with(here.trim_end())).count();
        assert!(own >= 2 || !command.subcommands().is_empty(), "{command}: {own} examples of it in its --help");
    }
}

#[test]
fn every_example_of_the_help_and_of_the_documents_is_a_command_line_that_is_accepted() {
    let documents = ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "deploy/README.md", "deploy/headroom.toml"];
    let documents = documents.map(|name| std::fs::read_to_string(workspace_root().join(name)).unwrap());
    let helps = commands().iter().filter_map(|command| command.long.split("Examples:\n").nth(1).map(str::to_owned));
    let all: std::collections::BTreeSet<_> = helps.chain(documents).flat_map(|text| examples(&text)).collect();
    assert!(all.len() > 30, "only {} examples were found", all.len());
    for words in &all {
        assert_accepted(words);
    }
}

/// Commands that operators copy at night: those in sentences of the runbook and in lines of containers, names in capitals filled in, and
/// those in the code blocks of every page of `deploy`.
fn commands_of_the_pages() -> Vec<Vec<String>> {
    let folder = workspace_root().join("deploy");
    let runbook = std::fs::read_to_string(folder.join("README.md")).unwrap();
    let (before, sections) = runbook.split_once("## Runbook").expect("a runbook");
    let inside = |text: &str| text.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
    let mut lines: Vec<String> = sections.lines().flat_map(inside).filter(|span| span.contains(' ')).collect();
    lines.extend(
        before
            .lines()
            .filter_map(|line| Some(line.strip_prefix("docker compose run ")?.split_once(" backup ")?.1.to_owned())),
    );
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "md") {
            lines.extend(std::fs::read_to_string(path).unwrap().split("```").skip(1).step_by(2).map(str::to_owned));
        }
    }
    let filled = |word: String| match word.as_str() {
        "GPUS" => "8".to_owned(),
        "TIME" => "2026-11-22T00:00:00Z".to_owned(),
        _ => word,
    };
    let is_whole = |words: &Vec<String>| !words.iter().any(|word| word.contains(['…', '$']));
    let found = lines.iter().flat_map(|line| examples(line)).filter(is_whole);
    found.map(|words| words.into_iter().map(filled).collect()).collect()
}

#[test]
fn every_command_of_the_runbook_and_of_the_pages_has_what_it_requires() {
    let all = commands_of_the_pages();
    assert!(all.len() > 30, "only {} commands were found", all.len());
    let mut faults = Vec::new();
    for words in &all {
        let arguments: Vec<&str> =
            words[1..].iter().map(String::as_str).chain(["--config", "/missing/headroom.toml"]).collect();
        let ran = program(&words[0], &arguments);
        if !arguments.contains(&"completions") && ran.code != 4 {
            faults.push(format!("{words:?}: exit {}: {}", ran.code, ran.stderr));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn an_example_that_is_wrong_would_be_noticed() {
    let found = examples("text\n  train --horizen 4h --out 'a b' | head # and so on\n  curl x\n");
    assert_eq!(found, [["train", "--horizen", "4h", "--out", "a b"].map(str::to_owned)]);
    assert!(std::panic::catch_unwind(|| assert_accepted(&found[0])).is_err());
}

#[test]
fn every_program_prints_its_version_and_exit_codes() {
    let readme = std::fs::read_to_string(workspace_root().join("README.md")).unwrap();
    for name in program_names() {
        let version = program(&name, &["--version"]).ok().stdout;
        assert_eq!(version, format!("{name} {}\n", env!("CARGO_PKG_VERSION")));
        assert_eq!(program(&name, &["-V"]).ok().stdout, version);
        let help = program(&name, &["--help"]).ok().stdout;
        let codes = help.split("Exit codes:\n").nth(1).unwrap_or_else(|| panic!("{name} lists no exit codes"));
        for code in codes.lines().filter(|line| !line.is_empty()).map(|line| line.trim().split(' ').next().unwrap()) {
            assert!(readme.contains(&format!(" {code} ")), "README.md does not tell exit code {code} of {name}");
        }
    }
}

#[test]
fn completions_are_scripts_that_know_every_command() {
    for command in commands().iter().filter(|command| command.path.is_empty()) {
        for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
            let script = command.run(&["completions", shell]).ok().stdout;
            for name in command.subcommands() {
                assert!(script.contains(&name), "{command}: {shell} knows no {name}");
            }
            if shell == "bash" {
                assert!(is_bash(&script), "{command}: bash refuses its completions");
            }
        }
    }
    assert!(!is_bash("if"));
}

fn is_bash(script: &str) -> bool {
    let mut command = std::process::Command::new("bash");
    let mut bash = command.arg("-n").stdin(Stdio::piped()).stderr(Stdio::null()).spawn().expect("bash is there");
    bash.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    bash.wait().unwrap().success()
}

/// As one types it in a hurry: the last letter is missing.
fn misspelt(word: &str) -> &str {
    &word[..word.len() - 1]
}

fn assert_suggests(command: &Command, wrong: &[&str], right: &str) {
    let ran = command.run(wrong);
    assert_eq!(ran.code, 2, "{command} {wrong:?}: {ran:?}");
    // One that is close is named alone, several in a list.
    let tip = ran.stderr.lines().find(|line| line.contains("similar") && line.contains("exist"));
    assert!(tip.is_some_and(|tip| tip.contains(&format!("'{right}'"))), "{command} {wrong:?}: {}", ran.stderr);
}

#[test]
fn a_misspelt_command_flag_or_value_is_answered_with_the_right_one() {
    for command in commands() {
        for name in command.subcommands() {
            assert_suggests(command, &[misspelt(&name)], &name);
        }
        let flags = command.flags();
        // One letter less may be another flag: --seeds and --seed.
        let is_other = |flag: &&String| flags.iter().any(|other| other == misspelt(flag));
        for flag in flags.iter().filter(|flag| !is_other(flag)) {
            assert_suggests(command, &[misspelt(flag)], flag);
        }
        for line in command.short.lines().filter(|line| line.contains("[possible values: ")) {
            let (what, values) = line.split_once("[possible values: ").unwrap();
            let right = values.trim_end_matches(']').split(", ").last().unwrap();
            let flag = what.split_whitespace().find(|word| word.starts_with("--"));
            let wrong: Vec<&str> = flag.into_iter().chain([misspelt(right)]).collect();
            assert_suggests(command, &wrong, right);
        }
    }
}
