//! Reservations and fair shares on a disk that is full now and then.

use super::acknowledged;
use crate::http::{Client, Request};
use crate::report::Report;
use crate::service::{CLUSTER, GPU_MODEL, POOL_ID, Service, rfc3339, unix_s};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Reservations that are not withdrawn yet.
const OPEN: usize = 8;

/// Acknowledged sales and settings.
#[derive(Default)]
struct Known {
    /// Reservation → whether its withdrawal was acknowledged, too.
    reservations: BTreeMap<u64, bool>,
    /// Half-lives that the settings may have: the last one that was acknowledged, and those that were tried since.
    half_lives: BTreeSet<u64>,
    windows: u64,
}

/// Sales and settings of a pool.
#[derive(Default)]
pub struct Sales(Mutex<Known>);

impl Sales {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sells windows of an hour, one after the other, withdraws them again, and changes the half-life of shares between.
    pub fn go_on(&self, mut client: Client, stop: &AtomicBool, report: &Report) {
        let mut open = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            let number = {
                let mut known = self.known();
                known.windows += 1;
                known.windows
            };
            if let Some(id) = sell(&mut client, number, report) {
                self.known().reservations.insert(id, false);
                open.push(id);
            }
            if open.len() > OPEN {
                let id = open.remove(0);
                let withdraw = Request::new("DELETE", format!("/v1/reservations/{id}"));
                if acknowledged(&mut client, &withdraw, report).is_some() {
                    self.known().reservations.insert(id, true);
                }
            }
            self.set_half_life(&mut client, 1 + number % 2_000, report);
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn set_half_life(&self, client: &mut Client, hours: u64, report: &Report) {
        let target = format!("/v1/pools/{POOL_ID}/settings");
        let Some(mut settings) = acknowledged(client, &Request::new("GET", target.as_str()), report) else { return };
        settings["shares"] = json!({ "half_life_hours": hours });
        self.known().half_lives.insert(hours);
        if acknowledged(client, &Request::with_json("PUT", target, &settings), report).is_some() {
            self.known().half_lives = BTreeSet::from([hours]);
            report.count("half_lives_acknowledged");
        }
    }

    pub fn check(&self, service: &Service, when: &str, report: &Report) -> crate::Outcome<()> {
        let mut client = service.client(30);
        let known = self.known();
        report.figure("reservations_acknowledged", known.reservations.len());
        for (id, is_withdrawn) in &known.reservations {
            let answer = client.get(&format!("/v1/reservations/{id}"))?;
            if !answer.is_success() {
                report.violation(&format!("what was sold is there{when}"), format!("{id}: {}", answer.summary()));
            } else if *is_withdrawn && answer.json()["withdrawn_at"].is_null() {
                report.violation(&format!("a withdrawal that was acknowledged holds{when}"), format!("{id}"));
            }
        }
        let settings = client.get(&format!("/v1/pools/{POOL_ID}/settings"))?.json();
        let found = settings["shares"]["half_life_hours"].as_u64();
        if !found.is_some_and(|found| known.half_lives.contains(&found)) {
            let example = format!("{found:?}, not one of {:?}", known.half_lives);
            report.violation(&format!("settings that were acknowledged hold{when}"), example);
        }
        Ok(())
    }
}

/// The number of a window that is sold, apart from all others.
fn sell(client: &mut Client, number: u64, report: &Report) -> Option<u64> {
    let from = unix_s() / 60 * 60 + 86_400 + number * 2 * 3_600;
    let body = json!({
        "cluster": CLUSTER, "gpu_model": GPU_MODEL, "organization": "speech", "gpus": 1.0,
        "from": rfc3339(from), "to": rfc3339(from + 3_600),
    });
    let sold: Value = acknowledged(client, &Request::with_json("POST", "/v1/reservations", &body), report)?;
    report.count("reservations_sold");
    sold["id"].as_u64()
}
