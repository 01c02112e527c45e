//! Requests of clients, the acknowledged ones, and whether they are there.

use super::{GIVES_UP, Random};
use axum::http::Method;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use tests::{Backend, TestDatabase, TestService};
use tokio::time::timeout;

const OF_POOL: &str = "cluster=demo&gpu_model=A100";

/// Knowledge of a value that was sent more than once.
#[derive(Default)]
struct Register {
    /// The last acknowledged value.
    acknowledged: Option<i64>,
    /// The values sent since, each of which may be there or not.
    unknown: BTreeSet<i64>,
}

#[derive(Default)]
pub struct Clients {
    tasks: Vec<String>,
    /// Task → the ends that were acknowledged; none where it was only submitted.
    known: BTreeMap<String, Vec<String>>,
    /// Task → the ends that were asked for without an answer.
    unknown: BTreeMap<String, Vec<String>>,
    /// Event → whether it was acknowledged.
    events: BTreeMap<String, bool>,
    batches: Vec<Value>,
    /// Demand of an hour, in thousandths, by the second at which it begins.
    usage: BTreeMap<i64, Register>,
    acknowledged: u64,
}

impl Clients {
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// One request at one service, given up after a while.
    pub async fn act(&mut self, service: &TestService, random: &mut Random) {
        match random.below(8) {
            0..=2 => self.submit(service, random).await,
            3 | 4 => self.end(service, random).await,
            5 => self.report_usage(service, random).await,
            _ => self.report_outcomes(service, random).await,
        }
    }

    async fn sent(&mut self, service: &TestService, method: Method, path: &str, body: Option<&Value>) -> Option<Value> {
        let sending = service.send(method, path, &[], body.map(Value::to_string));
        let answer = timeout(GIVES_UP, sending).await;
        if std::env::var_os("HEADROOM_SOAK_TRACE").is_some() {
            println!("{path}: {:?}", answer.as_ref().map(|answer| (answer.status, answer.body["code"].clone())));
        }
        let answer = answer.ok()?;
        assert!(answer.status < 500 || [503, 507].contains(&answer.status), "{path}: {answer:?}");
        (answer.status == 200).then(|| {
            self.acknowledged += 1;
            answer.body
        })
    }

    async fn submit(&mut self, service: &TestService, random: &mut Random) {
        // One in four is sent again, as by a client without an answer.
        let again = !self.tasks.is_empty() && random.below(4) == 0;
        let number = if again { random.below(self.tasks.len() as u64) } else { self.tasks.len() as u64 };
        let id = format!("t{number}");
        let class = if number % 3 == 0 { "hp" } else { "spot" };
        let gpus = [0.5, 1.0, 4.0][(number % 5 % 3) as usize];
        let body = json!({
            "cluster": "demo", "gpu_model": "A100", "id": id, "organization": format!("org-00{}", number % 3), "class": class,
            "gpus_per_pod": gpus, "pods": 1 + number % 2,
        });
        if !again {
            self.tasks.push(id.clone());
        }
        let answer = self.sent(service, Method::POST, "/v1/tasks", Some(&body)).await;
        if answer.is_some() {
            self.known.entry(id).or_default();
        }
    }

    async fn end(&mut self, service: &TestService, random: &mut Random) {
        if self.tasks.is_empty() {
            return;
        }
        let id = self.tasks[random.below(self.tasks.len() as u64) as usize].clone();
        let (method, what, end) = match random.below(3) {
            0 => (Method::DELETE, "", "deleted"),
            1 => (Method::POST, "/checkpoint", ""),
            _ => (Method::POST, "/finish", "finished"),
        };
        let answer = self.sent(service, method, &format!("/v1/tasks/{id}{what}?{OF_POOL}"), None).await;
        if end.is_empty() {
            return;
        }
        match answer {
            Some(answer) => self.known.entry(id).or_default().push(answer["status"].as_str().unwrap().to_owned()),
            None => self.unknown.entry(id).or_default().push(end.to_owned()),
        }
    }

    async fn report_usage(&mut self, service: &TestService, random: &mut Random) {
        let hour = super::end().plus_s(-3_600 * (1 + random.below(5) as i64));
        let milli = 1_000 * random.below(200) as i64;
        let row = json!({ "hour": hour.to_string(), "cluster": "demo", "gpu_model": "A100", "organization": "reported", "demand_gpus": milli / 1_000 });
        let (path, body) = match random.below(3) {
            0 => ("/v1/usage/corrections", json!({ "reason": "a history", "rows": [row] })),
            _ => ("/v1/usage", json!({ "rows": [row] })),
        };
        let answer = self.sent(service, Method::POST, path, Some(&body)).await;
        let register = self.usage.entry(hour.get()).or_default();
        match answer {
            Some(_) => {
                // A request that was given up before may still arrive: a request that nobody waits for is not taken back.
                register.acknowledged = Some(milli);
            }
            None => {
                register.unknown.insert(milli);
            }
        }
    }

    async fn report_outcomes(&mut self, service: &TestService, random: &mut Random) {
        // Half of the batches come again, later, and at any service.
        let again = !self.batches.is_empty() && random.below(2) == 0;
        let batch = if again {
            self.batches[random.below(self.batches.len() as u64) as usize].clone()
        } else {
            let first = self.events.len();
            let kind = if random.below(4) == 0 { "broken" } else { "kept" };
            let ended_at = super::end().plus_s(-(random.below(3_000) as i64)).to_string();
            let one = |number: usize| json!({ "event_id": format!("e{number}"), "cluster": "demo", "gpu_model": "A100", "guarantee_hours": 1, "kind": kind, "ended_at": ended_at });
            let batch = json!({ "outcomes": (first..first + 20).map(one).collect::<Vec<_>>() });
            for number in first..first + 20 {
                self.events.insert(format!("e{number}"), false);
            }
            self.batches.push(batch.clone());
            batch
        };
        if self.sent(service, Method::POST, "/v1/outcomes", Some(&batch)).await.is_some() {
            for outcome in batch["outcomes"].as_array().unwrap() {
                self.events.insert(outcome["event_id"].as_str().unwrap().to_owned(), true);
            }
        }
    }

    /// Acknowledged writes are there.
    pub async fn check(&self, database: &TestDatabase) {
        let rows = database.rows("SELECT id || ' ' || status FROM tasks").await;
        let tasks: BTreeMap<&str, &str> = rows.iter().filter_map(|row| row.rsplit_once(' ')).collect();
        for (id, acknowledged) in &self.known {
            let now = tasks.get(id.as_str()).unwrap_or_else(|| panic!("{id} was acknowledged and is lost"));
            match acknowledged.first() {
                Some(end) => assert_eq!(now, end, "{id} was acknowledged as {end}"),
                None if ["finished", "deleted"].contains(now) => {
                    let asked = self.unknown.get(id).is_some_and(|ends| ends.iter().any(|end| end == now));
                    assert!(asked, "{id} is {now}, and nobody asked for that");
                }
                None => {}
            }
        }
        let events: BTreeSet<String> = database.rows("SELECT event_id FROM outcomes").await.into_iter().collect();
        for (event, _) in self.events.iter().filter(|(_, acknowledged)| **acknowledged) {
            assert!(events.contains(event), "{event} was acknowledged and is lost");
        }
        let hour = match database.backend {
            Backend::Postgres => "CAST(extract(epoch FROM hour) AS bigint)",
            Backend::Sqlite => "hour",
        };
        let sql = format!(
            "SELECT CAST({hour} AS text) || ' ' || CAST(demand_milli AS text) FROM usage JOIN series ON series.id = series_id
             WHERE organization = 'reported'"
        );
        let mut printed: BTreeMap<i64, i64> = BTreeMap::new();
        for row in database.rows(&sql).await {
            let (hour, milli) = row.split_once(' ').unwrap();
            printed.insert(hour.parse().unwrap(), milli.parse().unwrap());
        }
        for (hour, register) in &self.usage {
            let now = printed.get(hour).copied();
            let may_be = now == register.acknowledged || now.is_some_and(|milli| register.unknown.contains(&milli));
            assert!(may_be, "the hour at {hour}: {now:?}, and {:?} was acknowledged last", register.acknowledged);
        }
    }
}
