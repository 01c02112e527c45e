//! Honest clients, with and without requests at the edge of every type beside them.

mod document;

use crate::http::{Answer, Client, Request, encoded, short};
use crate::random::Random;
use crate::service::{POOL, POOL_ID, Service, World, post_task, task};
use crate::{Outcome, options::Options, report::Report};
use document::{Document, Field, Kind, MARK};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const HONEST: u64 = 8;
/// Seconds with and without poison take turns, so that other work on the machine slows both.
const WINDOW: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(10);
/// Poison that was answered "try again", and is sent again without end.
const MOST_REPEATED: usize = 8;
const NUMBERS: [&str; 11] = [
    "2147483648",
    "9007199254740992",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551616",
    "1e308",
    "1e400",
    "-1",
    "-9223372036854775808",
    "0.9999",
    "1e-9",
];
/// A number beyond every amount; a smaller one may be meant.
const NONSENSE: f64 = 9_007_199_254_740_992.0;
/// Names of fields that stand for something else.
const IDS: [&str; 6] = ["id", "event_id", "organization", "cluster", "gpu_model", "node"];

pub fn run(options: &Options, database: &'static str, report: &Report) -> Outcome<()> {
    let world = World::new(options, database)?;
    let service = world.serve(&[])?;
    service.with_nodes(8)?;
    let document = Document::new(service.client(30).get_json("/openapi.json")?);
    let fields = document.fields();
    report.figure("fields", fields.len());
    let race = Race {
        poisoned: AtomicBool::new(false),
        stop: AtomicBool::new(false),
        again: Mutex::default(),
        with: [const { AtomicU64::new(0) }; 2],
    };
    let mut windows = [0_u32; 2];
    std::thread::scope(|scope| {
        for honest in 0..HONEST {
            let (race, client) = (&race, service.client(30));
            scope.spawn(move || be_honest(client, honest, race, report));
        }
        let client = service.client(30);
        scope.spawn(|| repeat(client, &race, report));
        scope.spawn(|| poison(&service, &fields, options.seed, &race, report));
        let started = Instant::now();
        while started.elapsed() < Duration::from_secs(options.seconds) {
            let poisoned = (windows[0] + windows[1]) % 2 == 1;
            race.poisoned.store(poisoned, Ordering::Relaxed);
            std::thread::sleep(WINDOW);
            windows[usize::from(poisoned)] += 1;
        }
        race.stop.store(true, Ordering::Relaxed);
    });
    judge(&race, windows, options, report);
    if !service.client(30).get("/readyz").is_ok_and(|answer| answer.is_success()) {
        report.violation("the service is ready afterwards", service.log_end());
    }
    Ok(())
}

struct Race {
    poisoned: AtomicBool,
    stop: AtomicBool,
    again: Mutex<Vec<Request>>,
    /// Honest requests that were answered 2xx, without and with poison.
    with: [AtomicU64; 2],
}

fn be_honest(mut client: Client, number: u64, race: &Race, report: &Report) {
    let mut task_number = 0_u64;
    while !race.stop.load(Ordering::Relaxed) {
        task_number += 1;
        let id = format!("h{number}-{task_number}");
        for request in
            [post_task(&task(&id, "hp", 1.0, 1)), Request::new("POST", format!("/v1/tasks/{id}/finish?{POOL}"))]
        {
            let answer = client.send(&request);
            let poisoned = usize::from(race.poisoned.load(Ordering::Relaxed));
            match answer {
                Ok(answer) if answer.is_success() => drop(race.with[poisoned].fetch_add(1, Ordering::Relaxed)),
                Ok(answer) => {
                    report.violation("honest requests are answered 2xx", answer.summary());
                    let wait_s = answer.json()["retry_after_s"].as_f64().unwrap_or(0.1);
                    std::thread::sleep(Duration::from_secs_f64(wait_s.clamp(0.1, 1.0)));
                    break;
                }
                Err(fault) => report.violation("honest requests are answered 2xx", fault),
            }
        }
    }
}

fn poison(service: &Service, fields: &[Field], seed: u64, race: &Race, report: &Report) {
    let mut random = Random::new(seed, 99);
    let mut client = service.client(30);
    let (tasks, others): (Vec<&Field>, Vec<&Field>) =
        fields.iter().partition(|field| field.method == "POST" && field.path == "/v1/tasks");
    let mut number = 0_u64;
    while !race.stop.load(Ordering::Relaxed) {
        if !race.poisoned.load(Ordering::Relaxed) {
            std::thread::sleep(PAUSE);
            continue;
        }
        number += 1;
        let few = if random.in_percent(50) && !tasks.is_empty() { &tasks } else { &others };
        let field = few[random.below(few.len())];
        let (value, request) = request(field, number, &mut random);
        report.count("poison_sent");
        let answer = client.send(&request);
        if answer.as_ref().is_ok_and(is_fault) {
            let mut again = race.again.lock().unwrap_or_else(PoisonError::into_inner);
            if again.len() < MOST_REPEATED {
                again.push(request.clone());
            }
        }
        judge_poison(field, &value, &request, answer, report);
        clean_up(&mut client, &request, number);
        std::thread::sleep(PAUSE);
    }
}

/// A client that is answered "the same request again is safe" sends it again, at once.
fn repeat(mut client: Client, race: &Race, report: &Report) {
    let mut number = 0;
    while !race.stop.load(Ordering::Relaxed) {
        number += 1;
        let again = race.again.lock().unwrap_or_else(PoisonError::into_inner);
        let request = (!again.is_empty()).then(|| again[number % again.len()].clone());
        drop(again);
        match request.filter(|_| race.poisoned.load(Ordering::Relaxed)) {
            Some(request) => {
                report.count("poison_repeated");
                drop(client.send(&request));
            }
            None => std::thread::sleep(PAUSE),
        }
    }
}

/// The poison, and the request with it.
fn request(field: &Field, number: u64, random: &mut Random) -> (String, Request) {
    let (value, is_text) = match field.kind {
        Kind::Text => (texts()[random.below(texts().len())].clone(), true),
        _ => (NUMBERS[random.below(NUMBERS.len())].to_owned(), false),
    };
    let mut path = field.path.replace("{id}", &path_id(&field.path, number));
    // Other variables of a path.
    while let (Some(open), Some(close)) = (path.find('{'), path.find('}')) {
        path.replace_range(open..=close, "1");
    }
    let query: Vec<String> = field
        .query
        .iter()
        .map(|(name, text)| format!("{name}={}", encoded(if text == MARK { &value } else { text })))
        .collect();
    let target = if query.is_empty() { path } else { format!("{path}?{}", query.join("&")) };
    let body = field.body.as_ref().map(|body| {
        let raw = if is_text { serde_json::json!(value).to_string() } else { value.clone() };
        let body = body.to_string().replace(&format!("\"{MARK}\""), &raw);
        body.replace("@id@", &format!("poison-{number}")).into_bytes()
    });
    (value, Request { method: field.method, target, body })
}

fn path_id(path: &str, number: u64) -> String {
    match path {
        path if path.starts_with("/v1/pools") => POOL_ID.to_owned(),
        path if path.starts_with("/v1/nodes") => format!("poison-{number}"),
        path if path.starts_with("/v1/tasks") => "base".to_owned(),
        _ => "1".to_owned(),
    }
}

fn texts() -> Vec<String> {
    let few = [
        "",
        " ",
        "\0",
        "a\nb",
        "\u{202e}txt",
        "zero\u{200b}width",
        "../../etc",
        "dry-run",
        "NaN",
        "9999-12-31T23:59:59Z",
    ];
    let mut texts: Vec<String> = few.into_iter().map(str::to_owned).collect();
    texts.extend(["x".repeat(3000), "\u{1f4a5}".repeat(400)]);
    texts
}

/// A pool whose name came with a usage row and whose capacity is unknown has no quota yet: the answer is a 503.
fn is_fault(answer: &Answer) -> bool {
    answer.status >= 500 && answer.json()["code"] != "no-quota-yet"
}

fn judge_poison(field: &Field, value: &str, request: &Request, answer: Outcome<Answer>, report: &Report) {
    let body = String::from_utf8_lossy(request.body.as_deref().unwrap_or_default()).into_owned();
    let example = |what: &str| {
        let request = format!("{} {} {}", request.method, short(&request.target), short(&body));
        format!("{} of {}: {request}: {what}", field.name, field.path)
    };
    let answer = match answer {
        Ok(answer) => answer,
        Err(fault) => return report.violation("every poison is answered", example(&fault)),
    };
    report.count(&format!("poison_{}xx", answer.status / 100));
    if is_fault(&answer) {
        report.violation("no poison is answered 5xx", example(&answer.summary()));
    } else if answer.is_success() && !may_be_meant(field, value) {
        report.violation("a poison is answered 4xx", example(&answer.summary()));
    }
}

/// Whether a value of a field may be right.
fn may_be_meant(field: &Field, value: &str) -> bool {
    if field.kind == Kind::Text {
        let is_hidden = value.chars().any(|one| one.is_control() || ['\u{200b}', '\u{202e}'].contains(&one));
        return !(is_hidden && IDS.contains(&field.name.as_str()));
    }
    let number: f64 = value.parse().unwrap_or(f64::INFINITY);
    let is_whole = number.fract() == 0.0;
    let is_amount = field.name == "gpus" || field.name.ends_with("_gpus") || field.name.starts_with("gpus_");
    // A thousandth of a GPU is the smallest amount.
    let is_on_grid = is_whole || field.kind == Kind::Number && !is_amount;
    let above = field.minimum.is_none_or(|minimum| number >= minimum);
    let below = field.maximum.map_or(number < NONSENSE, |maximum| number <= maximum);
    let is_change = field.name.contains("change");
    is_on_grid && above && below && (number >= 0.0 || is_change || field.minimum.is_some())
}

/// Accepted poison is deleted, so that it is not in the way of the honest.
fn clean_up(client: &mut Client, request: &Request, number: u64) {
    let path = request.target.split('?').next().unwrap_or_default();
    let target = match path {
        "/v1/tasks" => format!("/v1/tasks/poison-{number}?{POOL}"),
        path if path.starts_with("/v1/nodes/") => format!("{path}?cluster=field&cause=drained"),
        _ => return,
    };
    if request.method != "GET" {
        drop(client.send(&Request::new("DELETE", target)));
    }
}

fn judge(race: &Race, windows: [u32; 2], options: &Options, report: &Report) {
    let rate = |poisoned: usize| {
        let answered = race.with[poisoned].load(Ordering::Relaxed);
        answered as f64 / f64::from(windows[poisoned].max(1))
    };
    let (without, with) = (rate(0), rate(1));
    let ratio = if without > 0.0 { with / without } else { 0.0 };
    let figures = BTreeMap::from([("without_poison_per_s", without), ("with_poison_per_s", with), ("ratio", ratio)]);
    for (name, value) in figures {
        report.figure(&format!("honest_{name}"), value);
    }
    if ratio < options.ratio {
        report.violation("honest throughput stands poison", format!("{with:.0}/s of {without:.0}/s: {ratio:.2}"));
    }
}
