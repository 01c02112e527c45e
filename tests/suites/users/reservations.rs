//! Windows that are sold ahead, by the program `headroom`.

use super::command::Served;
use crate::deploy::served::{CLUSTER, GPU_MODEL};
use serde_json::{Value, json};
use vocab::UnixSeconds;

/// So many days ahead, at the present time of day.
fn ahead(days: i64, hours: i64) -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() as i64;
    UnixSeconds::new(now + days * 86_400 + hours * 3_600).to_string()
}

#[test]
fn a_window_is_tried_sold_listed_as_a_table_json_and_a_calendar_and_withdrawn() {
    let served = Served::new();
    assert_eq!(served.text(&["reservations"]), format!("{CLUSTER}:{GPU_MODEL} has no reservations\n"));
    let (from, to) = (ahead(2, 0), ahead(2, 2));
    let of = ["reserve", "--organization", "org-000", "--gpus", "2", "--from", &from, "--to", &to];
    let tried = served.text(&[&of[..], &["--dry-run"]].concat());
    assert!(
        tried.starts_with(&format!(
            "a reservation like this: 2 GPUs of {CLUSTER}:{GPU_MODEL} for org-000\n  {from} to {to}: "
        )) && tried.ends_with("\nnothing is stored\n"),
        "{tried}"
    );
    assert_eq!(served.json(&["reservations"])["reservations"], json!([]), "a trial stores nothing");
    let sold = served.json(&of);
    let id = sold["id"].as_u64().expect("a number").to_string();
    assert_eq!(served.json(&of)["id"], sold["id"], "the same again");
    let days = "mo,tu,we,th,fr,sa,su";
    let (from, to) = (ahead(3, 4), ahead(3, 5));
    let of = ["reserve", "--organization", "org-001", "--gpus", "1", "--from", &from, "--to", &to, "--days", days];
    let weekly = served.text(&of);
    assert!(weekly.lines().count() == 9 && weekly.contains("for org-001, on MO,TU,WE,TH,FR,SA,SU"), "{weekly}");
    let listed = served.text(&["reservations"]);
    let rows: Vec<Vec<&str>> = listed.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["number", "organization", "GPUs", "from", "to", "probability", "repeats", "state"]);
    assert_eq!((rows.len(), &rows[1][..3], rows[2][1]), (3, &[id.as_str(), "org-000", "2"][..], "org-001"), "{listed}");
    assert!(served.text(&["reservations", &id]).starts_with(&format!("reservation {id}: 2 GPUs of ")));
    let calendar = served.text(&["reservations", "--ics"]);
    assert!(calendar.starts_with("BEGIN:VCALENDAR\r\n") && calendar.matches("BEGIN:VEVENT").count() > 60, "{calendar}");
    assert_eq!(served.text(&["withdraw", &id]), format!("reservation {id} is withdrawn\n"));
    let past: Value = served.json(&["reservations", "--past"]);
    assert_eq!(
        (past["reservations"].as_array().unwrap().len(), &past["reservations"][0]["withdrawn_by"]),
        (2, &"admin".into())
    );
    assert_eq!(served.json(&["reservations"])["reservations"].as_array().unwrap().len(), 1);
}

#[test]
fn a_reservation_that_is_refused_has_its_exit_code_and_what_to_do() {
    let served = Served::new();
    let (from, to) = (ahead(2, 0), ahead(2, 2));
    let of = |gpus: &str, from: &str, to: &str| {
        served.run(&["reserve", "--organization", "org-000", "--gpus", gpus, "--from", from, "--to", to])
    };
    let turned = of("2", &to, &from);
    assert_eq!((turned.code, turned.stderr.contains("/to: ")), (3, true), "{}", turned.stderr);
    let much = of("100000", &from, &to);
    assert_eq!((much.code, much.stderr.contains("/gpus: ")), (3, true), "{}", much.stderr);
    let none = served.run(&["reserve", "--gpus", "2", "--from", &from, "--to", &to]);
    assert_eq!((none.code, none.stderr.contains("add --organization NAME")), (2, true), "{}", none.stderr);
    let day = served.run(&["reserve", "--gpus", "2", "--from", &from, "--to", &to, "--days", "MO,XX"]);
    assert_eq!((day.code, day.stderr.contains("[possible values: MO")), (2, true), "{}", day.stderr);
    let capacity = served.json(&["quota", "--hours", "4"])["capacity_gpus"].as_f64().unwrap().to_string();
    assert_eq!(of(&capacity, &from, &to).code, 0);
    let over = of("1", &from, &to);
    assert_eq!((over.code, over.stderr.contains("(oversold)")), (1, true), "{}", over.stderr);
    let withdrawn = served.run(&["withdraw", "77", "1", "--json"]);
    assert_eq!((withdrawn.code, withdrawn.stdout.contains("\"withdrawn\"")), (1, true), "{}", withdrawn.stdout);
    assert!(withdrawn.stderr.contains("77"), "{}", withdrawn.stderr);
    assert_eq!(of("1", &from, &to).code, 0, "the second one was withdrawn");
    let read = served.run_as(&served.read, &["withdraw", "2"]);
    assert_eq!((read.code, read.stderr.contains("(forbidden)")), (1, true), "{}", read.stderr);
}
