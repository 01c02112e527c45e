//! The quotas that clients saw, held against those that were stored.

use std::collections::BTreeMap;
use tests::{Answer, TestDatabase};
use vocab::UnixSeconds;

/// Answers that hold no promise any more are no older than this when they are still called fresh (DESIGN §5).
const FRESH_S: i64 = 600;

/// One answer.
struct Quota {
    at: UnixSeconds,
    by: String,
    stage: String,
    gpus: f64,
}

#[derive(Default)]
pub struct Seen {
    /// By when it was computed.
    answers: BTreeMap<String, Vec<Quota>>,
    count: u64,
}

impl Seen {
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Notes an answer. A service that has just started may have none; any other one answers.
    pub fn quota(&mut self, by: &str, at: UnixSeconds, answer: &Answer) {
        if answer.status == 503 {
            assert_eq!(answer.body["code"], "no-quota-yet", "{by}: {answer:?}");
            return;
        }
        assert_eq!(answer.status, 200, "{by}: {answer:?}");
        let text = |name: &str| answer.body[name].as_str().unwrap().to_owned();
        let gpus = answer.body["quota_gpus"].as_f64().unwrap();
        self.count += 1;
        self.answers.entry(text("computed_at")).or_default().push(Quota {
            at,
            by: by.to_owned(),
            stage: text("stage"),
            gpus,
        });
    }

    /// No answer had more than the stored quota, and nothing old was called fresh.
    pub async fn check(&self, database: &TestDatabase) {
        // Answers are in thousandths of a GPU.
        let seconds = match database.backend {
            tests::Backend::Postgres => "extract(epoch FROM computed_at)::bigint",
            tests::Backend::Sqlite => "computed_at",
        };
        let mut stored: BTreeMap<String, f64> = BTreeMap::new();
        let times = database.numbers(&format!("SELECT {seconds} FROM quotas WHERE hours = 1 ORDER BY id")).await;
        let amounts = database.numbers("SELECT quota_milli FROM quotas WHERE hours = 1 ORDER BY id").await;
        for (computed_at, milli) in times.into_iter().zip(amounts) {
            let most = stored.entry(UnixSeconds::new(computed_at).to_string()).or_default();
            *most = most.max(milli as f64 / 1_000.0);
        }
        assert!(!self.answers.is_empty(), "nobody saw a quota");
        for (computed_at, quotas) in &self.answers {
            let most = stored.get(computed_at);
            let most = most.unwrap_or_else(|| panic!("a quota of {computed_at} was answered, and is not stored"));
            let computed = command_line::instant(computed_at).unwrap();
            for Quota { at, by, stage, gpus } in quotas {
                assert!(gpus <= most, "{by} answered {gpus} GPUs at {at}, and {most} were computed at {computed_at}");
                let age_s = at.since_s(computed);
                assert!(stage != "fresh" || age_s <= FRESH_S, "{by} calls a quota fresh that is {age_s} s old");
            }
        }
    }
}
