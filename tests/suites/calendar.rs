//! Calendars through the programs: named, from a file, changed later, and beyond their years. On both databases.

use serde_json::Value;
use std::path::PathBuf;
use tempfile::TempDir;
use tests::{Backend, Listening, Ran, TestDatabase, on_both_databases, program};

on_both_databases![
    a_named_calendar_is_kept_in_one_form_until_another_one_is_named,
    an_unknown_calendar_ends_with_exit_code_two_and_a_list,
    a_bad_users_calendar_ends_with_exit_code_three_and_leaves_nothing_behind,
    a_users_calendar_is_learned_with_and_served_without_its_file,
    hours_beyond_the_table_are_warned_of_wherever_they_matter,
    a_cluster_that_is_there_gets_another_calendar,
    clusters_that_share_a_changed_calendar_are_named,
];

/// A folder with usage.csv: 14 days of a synthetic cluster `demo` from 20 December 2026 on, Shanghai time.
struct Made {
    folder: TempDir,
}

impl Made {
    fn up() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().to_str().unwrap();
        let start = ["--start", "2026-12-20T00:00:00+08:00", "--days", "14", "--organizations", "3", "--out", out];
        let _ = program("datasets", &[&["generate"], &start[..]].concat()).ok();
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file and gives its path.
    fn file(&self, name: &str, text: &str) -> String {
        std::fs::write(self.path(name), text).unwrap();
        self.path(name).to_str().unwrap().to_owned()
    }

    fn ingest(&self, database: &TestDatabase, more: &[&str]) -> Ran {
        let usage = self.path("usage.csv");
        let arguments = ["ingest", "--format", "usage", usage.to_str().unwrap(), "--capacity", "300"];
        run(database, "datasets", &[&arguments, more].concat())
    }
}

fn run(database: &TestDatabase, name: &str, arguments: &[&str]) -> Ran {
    program(name, &[arguments, &["--database", &database.url]].concat())
}

fn described(database: &TestDatabase) -> Value {
    run(database, "datasets", &["describe", "--json"]).json()[0].clone()
}

const OWN: &str = "date,kind,name\n2026-12-24,off,Company day\n2026-12-26,work,Inventory\n";

async fn a_named_calendar_is_kept_in_one_form_until_another_one_is_named(database: TestDatabase) {
    let made = Made::up();
    let _ = made.ingest(&database, &["--calendar", "cn", "--time-zone", "Asia/Shanghai"]).ok();
    let summary = made.ingest(&database, &["--json"]).json();
    assert_eq!(summary["clusters"][0]["calendar"], "CN", "an ingest that names none keeps it");
    let shown = described(&database);
    assert_eq!((&shown["calendar"], &shown["calendar_years"]), (&"CN".into(), &serde_json::json!([2006, 2026])));
    let _ = made.ingest(&database, &["--calendar", "weekdays"]).ok();
    let shown = described(&database);
    assert_eq!((&shown["calendar"], &shown["calendar_years"]), (&"weekdays".into(), &Value::Null));
}

async fn an_unknown_calendar_ends_with_exit_code_two_and_a_list(database: TestDatabase) {
    let made = Made::up();
    let refused = made.ingest(&database, &["--calendar", "Chine"]);
    assert_eq!(refused.code, 2);
    let expected = "unknown calendar \"Chine\": expected weekdays, CN, US, DE, GB, JP, IN, or a CSV or iCal file: did you mean CN?";
    assert!(refused.stderr.contains(expected), "{}", refused.stderr);
    let taken = made.ingest(&database, &["--calendar", &made.file("uk.csv", OWN)]);
    assert_eq!((taken.code, taken.stderr.contains("rename the file")), (2, true), "{}", taken.stderr);
}

async fn a_bad_users_calendar_ends_with_exit_code_three_and_leaves_nothing_behind(database: TestDatabase) {
    let made = Made::up();
    for (name, text, place) in [
        ("acme.csv", "date,kind,name\n2026-12-24,free,x\n", "acme.csv, row 2: column kind: "),
        ("acme.ics", "BEGIN:VCALENDAR\nBEGIN:VEVENT\nEND:VEVENT\nEND:VCALENDAR\n", "acme.ics, line 2: "),
    ] {
        let refused = made.ingest(&database, &["--calendar", &made.file(name, text)]);
        assert_eq!((refused.code, refused.stderr.contains(place)), (3, true), "{}", refused.stderr);
    }
    let empty = run(&database, "datasets", &["describe"]);
    let nothing = match database.backend {
        Backend::Sqlite => "there is no database file",
        Backend::Postgres => "it has no tables of Headroom",
    };
    assert!(empty.stderr.contains(nothing), "{}", empty.stderr);
    let missing = made.ingest(&database, &["--calendar", "missing.ics"]);
    assert_eq!((missing.code, missing.stderr.contains("missing.ics: ")), (3, true), "{}", missing.stderr);
}

async fn a_users_calendar_is_learned_with_and_served_without_its_file(database: TestDatabase) {
    let made = Made::up();
    let ics = "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nDTSTART;VALUE=DATE:20261224\r\nEND:VEVENT\r\nBEGIN:VEVENT\r\n\
               DTSTART:20270104T090000Z\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n";
    let file = made.file("acme.ics", ics);
    let named = format!("weekdays+{file}");
    let ingested = made.ingest(&database, &["--calendar", &named, "--json"]);
    assert!(ingested.stderr.contains("skipped 1 events with a time of day"), "{}", ingested.stderr);
    assert_eq!(ingested.json()["own_calendar"]["days"], 1);
    std::fs::remove_file(file).unwrap();
    let trained = run(&database, "train", &["--horizon", "4h", "--model", "last-value", "--json"]).json();
    assert_eq!(trained[0]["calendar"], "weekdays+acme");
    let run_shown = run(&database, "train", &["runs", "show", "run-1", "--json"]).json();
    assert_eq!(run_shown["parameters"]["calendar"], "weekdays+acme", "{run_shown}");
    let service = Listening::start(&["--database", &database.url, "--as-of", "2026-12-24T04:00:00Z"]);
    let path = "/v1/quota/explain?cluster=demo&gpu_model=A100-SXM4-80GB&hours=4";
    let explained = service.get_until(path, |status, _| status == 200);
    let calendar = &explained["calendar"];
    assert_eq!((&calendar["name"], &calendar["day_off"]), (&"weekdays+acme".into(), &true.into()), "{calendar}");
    assert_eq!((&calendar["covered"], &calendar["covers_until"]), (&true.into(), &Value::Null));
    let _ = service.stop();
}

async fn hours_beyond_the_table_are_warned_of_wherever_they_matter(database: TestDatabase) {
    let made = Made::up();
    let expected = "warning: cluster demo: calendar CN covers the years 2006 to 2026; from 2027-01-01 on only Saturdays \
                    and Sundays count as days off";
    let warned = |ran: Ran| assert!(ran.ok().stderr.contains(expected));
    warned(made.ingest(&database, &["--calendar", "CN", "--time-zone", "Asia/Shanghai"]));
    warned(run(&database, "datasets", &["describe"]));
    let train = ["--horizon", "4h", "--model", "last-value", "--json"];
    let trained = run(&database, "train", &train);
    assert!(trained.json()[0]["calendar_warning"].as_str().is_some_and(|printed| expected.ends_with(printed)));
    // Until local midnight nothing reaches out but the hours that are forecast.
    let quiet = |until: &str| {
        !run(&database, "train", &[&train[..], &["--until", until]].concat()).ok().stderr.contains("warning")
    };
    assert_eq!([quiet("2026-12-31T12:00:00Z"), quiet("2026-12-31T13:00:00Z")], [true, false]);
    let service = Listening::start(&["--database", &database.url, "--as-of", "latest"]);
    let path = "/v1/quota/explain?cluster=demo&gpu_model=A100-SXM4-80GB&hours=4";
    let calendar = &service.get_until(path, |status, _| status == 200)["calendar"];
    assert_eq!((&calendar["covers_until"], &calendar["covered"]), (&"2026-12-31".into(), &false.into()), "{calendar}");
    let printed = service.stop().stderr;
    assert_eq!(printed.matches("from 2027-01-01 on only Saturdays and Sundays").count(), 1, "{printed}");
}

async fn a_cluster_that_is_there_gets_another_calendar(database: TestDatabase) {
    let made = Made::up();
    let _ = made.ingest(&database, &[]).ok();
    let set = |arguments: &[&str]| run(&database, "datasets", &[&["calendar", "set"], arguments].concat());
    let named = format!("CN+{}", made.file("acme.csv", OWN));
    let changed = set(&["--cluster", "demo", &named, "--time-zone", "Asia/Shanghai", "--json"]).json();
    assert_eq!((&changed["calendar"], &changed["calendar_before"]), (&"CN+acme".into(), &"weekdays".into()));
    assert_eq!((&changed["time_zone"], &changed["own_calendar"]["new_version"]), (&"Asia/Shanghai".into(), &1.into()));
    let again = set(&["--cluster", "demo", "acme", "--json"]).json();
    assert_eq!(
        (&again["calendar"], &again["own_calendar"]),
        (&"acme".into(), &Value::Null),
        "stored, without the file"
    );
    let listed = run(&database, "datasets", &["calendar", "list", "--json"]).json();
    let acme = listed.as_array().unwrap().iter().find(|one| one["calendar"] == "acme").unwrap();
    assert_eq!((&acme["days"], &acme["years"]), (&2.into(), &serde_json::json!([2026, 2026])));
    assert_eq!(acme["clusters"], serde_json::json!(["demo"]));
    let shown = run(&database, "datasets", &["calendar", "show", "CN+acme", "--year", "2026"]).ok().stdout;
    assert!(
        shown.contains("2026-12-26  Saturday   work  Inventory") && shown.contains("2026-02-14  Saturday   work"),
        "{shown}"
    );
    assert_eq!(set(&["--cluster", "mars", "CN"]).code, 2);
    assert_eq!(set(&["--cluster", "demo", "acne"]).stderr.matches("did you mean acme?").count(), 1);
}

async fn clusters_that_share_a_changed_calendar_are_named(database: TestDatabase) {
    let made = Made::up();
    let file = made.file("acme.csv", OWN);
    let _ = made.ingest(&database, &["--calendar", &file]).ok();
    let usage = std::fs::read_to_string(made.path("usage.csv")).unwrap().replace(",demo,", ",mars,");
    made.file("usage.csv", &usage);
    let second = made.ingest(&database, &["--calendar", &file]).ok();
    assert!(!second.stderr.contains("note: the days"), "the same days: {}", second.stderr);
    made.file("acme.csv", &OWN.replace("12-26,work", "12-26,off"));
    let third = made.ingest(&database, &["--calendar", &file]).ok();
    assert!(
        third.stderr.contains("note: the days of calendar acme changed; it is also the calendar of demo"),
        "{}",
        third.stderr
    );
}
