//! Output: data to stdout, all else to stderr; how programs end.

use super::commands;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;
use tests::{
    Ran, exit_without_stderr, program, program_interrupted, program_path, program_to_closed_pipe, program_to_file,
    program_with,
};

/// A folder with synthetic usage and a database that holds it.
struct Place {
    folder: TempDir,
    url: String,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}", folder.path().join("headroom.db").display());
        let place = Self { folder, url };
        let out = place.file("");
        let _ = program("datasets", &["generate", "--days", "15", "--organizations", "2", "--out", &out]).ok();
        let usage = place.file("usage.csv");
        let _ = place.run("datasets", &["ingest", "--format", "usage", &usage, "--capacity", "300"]).ok();
        place
    }

    fn file(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    fn run(&self, name: &str, arguments: &[&str]) -> Ran {
        program_with(name, arguments, &[("DATABASE_URL", &self.url)])
    }

    fn train(&self, more: &[&str]) -> Ran {
        self.run("train", &[&["--horizon", "4h", "--model", "last-value"], more].concat())
    }
}

/// Arguments of a backtest of one day.
fn backtest<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let day = ["--from", "2024-03-14T00:00:00Z", "--to", "2024-03-14T23:00:00Z", "--model", "last-value"];
    [&["backtest", "--horizon", "4h"], &day[..], more].concat()
}

#[test]
fn with_json_every_command_that_answers_prints_json_and_nothing_else() {
    let place = Place::new();
    let [out, usage, forecasts, report] = ["synthetic", "usage.csv", "f.csv", "report"].map(|name| place.file(name));
    let _ = [place.train(&[]).ok(), place.train(&["--promote"]).ok()];
    for (name, arguments) in [
        ("datasets", vec!["generate", "--days", "2", "--out", &out]),
        ("datasets", vec!["ingest", "--format", "usage", &usage]),
        ("datasets", vec!["describe"]),
        ("datasets", vec!["export", "--out", &usage]),
        ("train", vec!["--horizon", "4h", "--model", "orglinear"]),
        ("train", backtest(&["--out", &forecasts])),
        ("train", vec!["runs", "list"]),
        ("train", vec!["runs", "show", "1"]),
        ("train", vec!["runs", "compare", "1", "2"]),
        ("train", vec!["runs", "promote", "1"]),
        ("train", vec!["runs", "rollback", "--cluster", "demo"]),
        ("notebooks-export", vec!["report", "--forecasts", &forecasts, "--out", &report]),
        ("quota-service", vec!["config", "show"]),
    ] {
        let ran = place.run(name, &[&arguments[..], &["--json"]].concat());
        assert_eq!(ran.stderr, "", "{name} {arguments:?}: no progress, since stderr is no terminal");
        assert!(ran.json().is_object() || name != "notebooks-export", "{name} {arguments:?}");
        let plain = place.run(name, &arguments).ok();
        assert!(!plain.stdout.is_empty() && plain.stderr.is_empty(), "{name} {arguments:?}: {plain:?}");
    }
}

#[test]
fn nothing_is_coloured_where_no_terminal_is() {
    for command in commands() {
        assert!(!command.long.contains('\u{1b}') && !command.short.contains('\u{1b}'), "{command}");
        let wrong = command.run(&["--no-such-flag"]);
        assert!(wrong.code == 2 && !wrong.stderr.contains('\u{1b}'), "{command}: {wrong:?}");
    }
}

#[test]
fn rows_on_stdout_leave_the_tables_to_stderr_and_do_not_mix_with_json() {
    let place = Place::new();
    let forecasts = place.run("train", &backtest(&["--out", "-"])).ok();
    let commas = |line: &str| line.matches(',').count();
    assert!(forecasts.stdout.starts_with("issue_time,target_time,step,"), "{forecasts:?}");
    assert!(forecasts.stdout.lines().all(|line| commas(line) == 12), "{forecasts:?}");
    assert_eq!(forecasts.stdout.lines().count(), 1 + 21 * 4 * 2);
    assert!(forecasts.stderr.starts_with("model "), "{forecasts:?}");
    let bounds = place.run("train", &backtest(&["--out", &place.file("f.csv"), "--pool-out", "-"])).ok();
    assert!(bounds.stdout.starts_with("issue_time,hours,"), "{bounds:?}");
    assert_eq!(std::fs::read_to_string(place.file("f.csv")).unwrap(), forecasts.stdout);
    let usage = place.run("datasets", &["export", "--out", "-"]).ok();
    assert_eq!((usage.stdout.lines().count(), usage.stderr.as_str()), (1 + 15 * 24 * 2, "720 rows to stdout\n"));
    let both = place.run("train", &backtest(&["--out", "-", "--json"]));
    assert_eq!((both.code, both.stderr.contains("leave --json out")), (2, true), "{both:?}");
    let both = place.run("datasets", &["export", "--out", "-", "--json"]);
    assert_eq!((both.code, both.stdout.as_str()), (2, ""), "{both:?}");
    assert!(!std::path::Path::new("-").exists(), "no file has that name");
}

#[test]
fn a_reader_of_rows_that_goes_away_ends_them_quietly() {
    let place = Place::new();
    let export = ["export", "--out", "-", "--database", &place.url];
    let (code, printed) = program_to_closed_pipe("datasets", &export);
    assert_eq!((code, printed.as_str()), (0, "720 rows to stdout\n"));
    let rows = backtest(&["--out", "-", "--pool-out", &place.file("p.csv"), "--database", &place.url]).join(" ");
    let (code, printed) = program_to_closed_pipe("train", &rows.split(' ').collect::<Vec<_>>());
    assert_eq!((code, printed.starts_with("model ")), (0, true), "{printed}");
    assert_eq!(std::fs::read_to_string(place.file("p.csv")).unwrap().lines().count(), 1 + 21 * 5);
}

#[test]
fn a_closed_stderr_changes_no_exit_code() {
    for (name, arguments, code) in [
        ("quota-service", &["--refresh-s", "0"][..], 2),
        ("quota-service", &["--tls-key-file", "/missing"], 2),
        ("headroom-kubernetes", &["config", "show", "--config", "/missing.toml"], 4),
        ("datasets", &["ingest", "--format", "usage", "/missing.csv"], 3),
        ("notebooks-export", &["report", "--forecasts", "/missing.csv", "--out", "/missing"], 3),
    ] {
        assert_eq!(exit_without_stderr(name, arguments), Some(code), "{name} {arguments:?}");
    }
}

#[test]
fn interrupted_programs_are_silent_and_leave_no_file_behind() {
    let place = Place::new();
    let [forecasts, bounds] = ["f.csv", "p.csv"].map(|name| place.file(name));
    let day = ["--from", "2024-03-14T00:00:00Z", "--to", "2024-03-14T23:00:00Z", "--refit", "1h"];
    let files = ["--out", &forecasts, "--pool-out", &bounds, "--database", &place.url];
    let arguments = [&["backtest", "--horizon", "4h", "--model", "orglinear"], &day[..], &files].concat();
    let (signal, printed) = program_interrupted("train", &arguments, Duration::from_millis(500));
    assert_eq!((signal, printed.as_str()), (Some(2), ""));
    let names = std::fs::read_dir(place.folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
    assert!(names.iter().all(|name| name == "usage.csv" || name.starts_with("headroom.db")), "{names:?}");
}

#[test]
fn a_token_that_was_not_printed_is_revoked() {
    let place = Place::new();
    let create = ["token", "create", "--name", "me", "--role", "admin", "--database", &place.url];
    for more in [&[][..], &["--json"]] {
        let words = [&create[..], more].concat();
        let full = program_to_file("quota-service", &words, Path::new("/dev/full"));
        let (gone, stderr) = program_to_closed_pipe("quota-service", &words);
        assert_eq!((full.code, gone), (1, 1), "{} {stderr}", full.stderr);
        for stderr in [full.stderr, stderr] {
            assert!(stderr.contains("was not printed and is revoked: create another"), "{stderr}");
        }
    }
    let listed = program("quota-service", &["token", "list", "--json", "--database", &place.url]).json();
    let tokens = listed["tokens"].as_array().unwrap();
    assert_eq!((tokens.len(), tokens.iter().filter(|one| one["in_force"] == true).count()), (4, 0), "{listed}");
}

#[test]
fn a_token_that_nobody_would_see_is_not_made() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}", folder.path().join("headroom.db").display());
    for more in [&[][..], &["--json"]] {
        let words = [&["token", "create", "--name", "me", "--role", "admin", "--database", &url][..], more].concat();
        let null = program_to_file("quota-service", &words, Path::new("/dev/null"));
        let mut shell = Command::new("sh");
        shell.args(["-c", "exec \"$0\" \"$@\" >&-"]).arg(program_path("quota-service")).args(&words);
        let closed = shell.output().unwrap();
        let closed = (closed.status.code(), String::from_utf8(closed.stderr).unwrap());
        for (code, stderr) in [closed, (Some(null.code), null.stderr)] {
            assert!(code == Some(1) && stderr.contains("nobody would see the token; none was made"), "{stderr}");
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "a database was made");
        }
    }
}

#[test]
fn a_token_of_a_name_that_no_organization_or_pool_has_is_refused_and_makes_no_database() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}", folder.path().join("headroom.db").display());
    for (flag, name, why) in [
        ("--organization", "*", "leave --organization out"),
        ("--organization", "__idle__", "stands for idle capacity"),
        ("--organization", "a\u{200b}", "U+200B"),
        ("--pool", "earth:*", "write --pool earth"),
    ] {
        let words = ["token", "create", "--name", "me", "--role", "read", flag, name, "--database", &url];
        let ran = program("quota-service", &words);
        assert!(ran.code == 2 && ran.stderr.contains(flag) && ran.stderr.contains(why), "{name}: {ran:?}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "a database was made");
    }
    let words = ["token", "create", "--name", "a\u{202e}b", "--role", "read", "--database", &url];
    let ran = program("quota-service", &words);
    assert!(ran.code == 2 && ran.stderr.contains("U+202E"), "{ran:?}");
}

#[test]
fn each_program_ends_with_the_code_of_its_failure() {
    let place = Place::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let empty = place.file("empty.csv");
    std::fs::write(&empty, "").unwrap();
    let gone = "postgres://nobody@127.0.0.1:1/x";
    let missing = place.file("missing.csv");
    let full = backtest(&["--out", "/dev/full"]);
    let backwards = ["export", "--from", "2024-03-02T00:00:00Z", "--until", "2024-03-01T00:00:00Z"];
    let cases: [(&str, &[&str], i32, &str); 13] = [
        ("datasets", &["ingest", "--format", "usage", &missing], 3, "No such file"),
        ("datasets", &["ingest", "--format", "usage", &empty], 3, "is missing"),
        ("datasets", &["export", "--until", "yesterday"], 2, "write a time with its offset"),
        ("datasets", &backwards, 2, "write a later --until"),
        ("train", &["runs", "show", "run-99"], 2, "there is no run-99: train runs list shows"),
        ("train", &full, 1, "No space left"),
        ("train", &["runs", "list", "--database", gone], 5, "check that it runs, and try again"),
        ("train", &["--horizon", "4h", "--model", "last-value", "--max-mae", "0"], 7, "above --max-mae 0"),
        ("quota-service", &["--listen", &taken], 1, "cannot be listened on"),
        ("quota-service", &["--database", gone], 5, "check that it runs, and try again"),
        ("notebooks-export", &["report", "--forecasts", &missing, "--out", &place.file("r")], 3, "No such file"),
        ("notebooks-export", &["report", "--forecasts", &empty, "--out", &place.file("r")], 3, "is missing"),
        ("notebooks-export", &["report", "--out", &place.file("r")], 2, "--forecasts <FILE>"),
    ];
    for (name, arguments, code, printed) in cases {
        let ran = place.run(name, arguments);
        assert_eq!((ran.code, ran.stderr.contains(printed)), (code, true), "{name} {arguments:?}: {ran:?}");
        assert_eq!((ran.stderr.starts_with("error: "), ran.stdout.contains("error")), (true, false), "{ran:?}");
    }
}
