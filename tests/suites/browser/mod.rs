//! The dashboard as people use it, in a browser. Where none is installed, the tests say so and pass.

mod ahead;
mod driver;
mod first;
mod gone;
mod kept;
mod look;
mod statement;
mod use_it;

use datasets::synthetic::SmallCluster;
use driver::Browser;
use forecaster::ModelKind;
use serde_json::{Value, json};
use std::sync::Arc;
use store::{Cluster, Store};
use tests::fixture::{cluster, pool};
use tests::{Backend, Listening, TestDatabase, fresh_database, promote};
use vocab::{CapacityRow, GpuModel, HourStart, MilliGpus, Organization, SeriesId, UsageRow};

const POOL: &str = "#/pool/demo%3AA100";
const OF_POOL: &str = "cluster=demo&gpu_model=A100";
/// Names may hold anything; these would do harm if they were taken for markup.
const MARKUP_MODEL: &str = "<i>B200</i>";
const MARKUP_ORGANIZATION: &str = "<img src=x onerror=alert(1)>";
const DAYS: i64 = 14;
const NODES: usize = 64;

/// A service on a database with two pools, one with nodes and a task that waits, and a browser beside it.
struct Opened {
    browser: Browser,
    service: Listening,
    database: TestDatabase,
}

/// The hour that is not over yet.
fn this_hour() -> HourStart {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() as i64;
    HourStart::from_unix_s(now - now % 3_600).unwrap()
}

/// Synthetic usage up to this hour; one organization has a name that looks like markup.
fn usage(gpu_model: &str) -> Vec<UsageRow> {
    let made_up = SmallCluster {
        cluster: cluster("demo"),
        gpu_model: GpuModel::parse(gpu_model).unwrap(),
        start: this_hour().plus_hours(-24 * DAYS),
        days: DAYS as u32,
        organizations: 3,
        seed: 7,
    };
    let renamed = |row: UsageRow| {
        let is_first = row.series.organization.as_str() == "org-000";
        let organization =
            if is_first { Organization::parse(MARKUP_ORGANIZATION).unwrap() } else { row.series.organization };
        UsageRow { series: SeriesId { organization, ..row.series }, ..row }
    };
    made_up.usage().into_iter().map(renamed).collect()
}

async fn filled(store: &Arc<dyn Store>) {
    let calendar = datasets::Calendar::WEEKDAYS.to_owned();
    store
        .put_cluster(&Cluster { name: cluster("demo"), time_zone: "Asia/Shanghai".to_owned(), calendar })
        .await
        .unwrap();
    let from = this_hour().plus_hours(-24 * DAYS);
    let capacity = |id: &str, gpus| CapacityRow { pool: pool(id), from, capacity: MilliGpus::from_gpus(gpus) };
    let capacities = [capacity("demo:A100", 500), capacity(&format!("demo:{MARKUP_MODEL}"), 600)];
    store.append(&usage("A100"), &capacities[..1]).await.unwrap();
    store.append(&usage(MARKUP_MODEL), &capacities[1..]).await.unwrap();
    for kind in [ModelKind::LastValue, ModelKind::PeakWeek] {
        promote(store.as_ref(), &cluster("demo"), kind, this_hour()).await;
    }
}

/// A promise that ended an hour ago.
fn outcome(number: u32, kind: &str) -> Value {
    json!({
        "event_id": format!("event-{number}"), "cluster": "demo", "gpu_model": "A100", "guarantee_hours": 1, "kind": kind,
        "ended_at": this_hour().plus_hours(-1).instant().to_string(), "task": format!("task-{number}"), "node": "node-00",
    })
}

impl Opened {
    /// `None` where there is no browser.
    async fn new() -> Option<Self> {
        let browser = Browser::open()?;
        let database = fresh_database(Backend::Sqlite).await;
        filled(&database.store().await).await;
        let service = Listening::of(
            "quota-service",
            &["--listen", "127.0.0.1:0", "--json", "--database", &database.url],
            &[("HEADROOM_REPORT_REFRESH_S", "1")],
        );
        let has_quota = |status: u16, list: &Value| status == 200 && list["pools"][0]["stage"] == "fresh";
        let _ = service.get_until("/v1/pools", has_quota);
        for number in 0..NODES {
            let node = json!({ "cluster": "demo", "gpu_model": "A100", "gpus": 8 });
            assert_eq!(service.send("PUT", &format!("/v1/nodes/node-{number:02}"), Some(&node)).unwrap().0, 200);
        }
        let task = json!({ "cluster": "demo", "gpu_model": "A100", "id": "large", "organization": "org-001", "class": "spot", "gpus_per_pod": 8.0, "pods": 200, "guarantee_hours": 4 });
        let submitted = service.send("POST", "/v1/tasks", Some(&task)).unwrap();
        assert!(submitted.0 < 300, "{submitted:?}");
        let outcomes: Vec<Value> =
            (0..20).map(|number| outcome(number, if number < 18 { "kept" } else { "broken" })).collect();
        let reported = service.send("POST", "/v1/outcomes", Some(&json!({ "outcomes": outcomes }))).unwrap();
        assert_eq!(reported.0, 200, "{reported:?}");
        let opened = Self { browser, service, database };
        opened.settle();
        Some(opened)
    }

    /// Waits until what was reported is in the quotas: renewals follow a report, at most one a second.
    fn settle(&self) {
        let computed = || {
            self.get("/v1/pools")["pools"].as_array().unwrap().iter().map(|pool| pool["computed_at"].clone()).collect()
        };
        let mut known: Vec<Value> = computed();
        for _ in 0..20 {
            std::thread::sleep(std::time::Duration::from_millis(1_500));
            let now = computed();
            if std::mem::replace(&mut known, now.clone()) == now {
                return;
            }
        }
        panic!("the quotas are computed again and again: {known:?}");
    }

    fn go(&self, page: &str) {
        // A page that is there already is not loaded by a change of what stands behind the hash.
        self.browser.go("about:blank");
        self.browser.go(&format!("http://{}/{page}", self.service.address));
        // The service may refuse all that is asked.
        self.browser.until("!['', 'asking …'].includes(document.querySelector('#age')?.textContent ?? '')");
        self.browser.until("!document.querySelector('[aria-busy=true]')");
    }

    /// The answer of the service to `path`, and the text that `look` finds at the same moment: renewals go on meanwhile, and both are read
    /// again until the answer is the same before and after.
    fn of_one_moment<T>(&self, path: &str, mut look: impl FnMut() -> T) -> (Value, T) {
        for _ in 0..20 {
            let before = self.get(path);
            let seen = look();
            let after = self.get(path);
            if before["steps"] == after["steps"] && before["quota"]["computed_at"] == after["quota"]["computed_at"] {
                return (after, seen);
            }
        }
        panic!("{path} changes all the time");
    }

    fn get(&self, path: &str) -> Value {
        let (status, body) = self.service.get(path);
        assert_eq!(status, 200, "{path}: {body}");
        body
    }
}

/// A number as the pages write it.
fn shown(value: &Value) -> String {
    let number = value.as_f64().unwrap_or_else(|| panic!("{value} is no number"));
    let text = format!("{:.3}", number.abs());
    let (whole, part) = text.split_once('.').unwrap();
    let digits: Vec<char> = whole.chars().collect();
    let groups: Vec<String> = digits.rchunks(3).rev().map(|three| three.iter().collect()).collect();
    let part = part.trim_end_matches('0');
    let point = if part.is_empty() { "" } else { "." };
    format!("{}{}{point}{part}", if number < 0.0 { "-" } else { "" }, groups.join(","))
}

#[test]
fn numbers_are_written_in_groups_and_with_three_decimals_at_most() {
    for (number, text) in [(0.0, "0"), (1_234_567.5, "1,234,567.5"), (-999.125, "-999.125"), (1_000.0, "1,000")] {
        assert_eq!(shown(&json!(number)), text);
    }
}
