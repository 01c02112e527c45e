//! Checkers of what a database holds after faults, written apart from the code that filled it: they read rows and JSON, and know
//! nothing of pools, placement or leases but what the tables say.

use crate::TestDatabase;
use serde_json::Value;
use std::collections::BTreeMap;

/// Thousandths of a GPU.
const WHOLE: u64 = 1_000;

/// One writer at a time: the entries of each pool have no gap, the last one is the one that is known as the last, and no entry
/// was written in an older epoch than the one before it.
///
/// # Panics
/// The journal is something else.
pub async fn journal_is_one_line(database: &TestDatabase) {
    let rows = database
        .rows(
            "SELECT CAST(pool_id AS text) || ' ' || CAST(seq AS text) || ' ' || CAST(COALESCE(epoch, 0) AS text)
             FROM journal ORDER BY pool_id, seq",
        )
        .await;
    let mut last: BTreeMap<i64, (i64, i64)> = BTreeMap::new();
    for row in rows {
        let numbers: Vec<i64> = row.split(' ').map(|number| number.parse().expect("a number")).collect();
        let [pool, seq, epoch] = numbers[..] else { panic!("{row}") };
        if let Some((before, older)) = last.insert(pool, (seq, epoch)) {
            assert_eq!(seq, before + 1, "pool {pool}: an entry is missing before {seq}");
            assert!(epoch >= older, "pool {pool}: entry {seq} of epoch {epoch} follows one of {older}");
        }
    }
    for row in database.rows("SELECT CAST(id AS text) || ' ' || CAST(seq AS text) FROM placed_pools").await {
        let (pool, seq) = row.split_once(' ').expect("two numbers");
        let pool: i64 = pool.parse().expect("a number");
        if let Some((last, _)) = last.get(&pool) {
            assert_eq!(last.to_string(), seq, "pool {pool}: the last entry");
        }
    }
}

/// Each event is there once, each move of eta follows from the one before it, and has counted no more outcomes than were spent
/// for it.
///
/// # Panics
/// Something was counted twice.
pub async fn nothing_happened_twice(database: &TestDatabase) {
    let twice = "SELECT event_id FROM outcomes GROUP BY event_id HAVING count(*) > 1";
    assert_eq!(database.rows(twice).await, Vec::<String>::new(), "events that are there twice");
    let moves = database
        .rows(
            "SELECT cluster || ':' || gpu_model || ' ' || CAST(from_micro AS text) || ' ' || CAST(to_micro AS text) || ' '
                 || CAST(kept + broken AS text) || ' '
                 || CAST((SELECT count(*) FROM outcomes WHERE spent_by = eta_moves.id) AS text)
             FROM eta_moves ORDER BY id",
        )
        .await;
    let mut last: BTreeMap<String, String> = BTreeMap::new();
    for row in moves {
        let words: Vec<&str> = row.split(' ').collect();
        let [pool, from, to, counted, spent] = words[..] else { panic!("{row}") };
        if let Some(before) = last.insert(pool.to_owned(), to.to_owned()) {
            assert_eq!(before, from, "{pool}: a move begins where the last one did not end");
        }
        let (counted, spent): (u64, u64) = (counted.parse().expect("a number"), spent.parse().expect("a number"));
        assert!(counted <= spent, "{pool}: a move has counted {counted} outcomes, and {spent} were spent for it");
    }
    let quotas = "SELECT cluster FROM newest_quotas WHERE quota_id NOT IN (SELECT id FROM quotas)";
    assert_eq!(database.rows(quotas).await, Vec::<String>::new(), "a newest quota that is not there");
}

/// A pool's facts, played back: GPUs by node, and each task's part of them.
#[derive(Default)]
struct Played {
    /// Thousandths that are taken of each GPU.
    nodes: BTreeMap<String, Vec<u64>>,
    /// Node, GPU and thousandths of each task that runs.
    tasks: BTreeMap<String, Vec<(String, usize, u64)>>,
    waiting: BTreeMap<String, u64>,
}

impl Played {
    fn free(&mut self, task: &str) -> bool {
        let Some(held) = self.tasks.remove(task) else { return false };
        for (node, gpu, milli) in held {
            if let Some(gpus) = self.nodes.get_mut(&node) {
                gpus[gpu] -= milli;
            }
        }
        true
    }

    fn take(&mut self, task: &str, places: &[&Value]) {
        let mut held = Vec::new();
        for place in places {
            let node = place["node"].as_str().expect("a node");
            let milli = place["share_milli"].as_u64().unwrap_or(WHOLE);
            for gpu in place["gpus"].as_array().expect("GPUs") {
                let gpu = gpu.as_u64().expect("a number") as usize;
                let gpus = self.nodes.get_mut(node).unwrap_or_else(|| panic!("{task} runs on {node}, which is gone"));
                gpus[gpu] += milli;
                assert!(gpus[gpu] <= WHOLE, "{task}: GPU {gpu} of {node} holds {} thousandths", gpus[gpu]);
                held.push((node.to_owned(), gpu, milli));
            }
        }
        assert!(self.tasks.insert(task.to_owned(), held).is_none(), "{task} starts, and runs already");
    }

    fn play(&mut self, fact: &Value) {
        let text = |name: &str| fact[name].as_str().unwrap_or_default().to_owned();
        let places = |name: &str| fact[name].as_array().into_iter().flatten().collect::<Vec<_>>();
        match fact["fact"].as_str().expect("a kind") {
            "node_added" => {
                let gpus = vec![0; fact["gpus"].as_u64().expect("GPUs") as usize];
                self.nodes.entry(text("node")).or_insert(gpus);
            }
            "node_removed" => {
                let node = text("node");
                let on_it = |held: &Vec<(String, usize, u64)>| held.iter().any(|(name, ..)| *name == node);
                let lost: Vec<String> =
                    self.tasks.iter().filter(|(_, held)| on_it(held)).map(|(task, _)| task.clone()).collect();
                for task in lost {
                    self.free(&task);
                    self.waiting.insert(task, 1);
                }
                self.nodes.remove(&node);
            }
            "submitted" => {
                let task = fact["request"]["task"].as_str().expect("a task").to_owned();
                let is_new = !self.tasks.contains_key(&task) && self.waiting.insert(task.clone(), 0).is_none();
                assert!(is_new, "{task} was submitted twice");
            }
            "started" => {
                for victim in fact["victims"].as_array().into_iter().flatten() {
                    let victim = victim.as_str().expect("a task");
                    assert!(self.free(victim), "{victim} was evicted, and did not run");
                    self.waiting.insert(victim.to_owned(), 1);
                }
                assert!(self.waiting.remove(&text("task")).is_some(), "{} starts, and did not wait", text("task"));
                self.take(&text("task"), &places("places"));
            }
            "resized" => {
                assert!(self.free(&text("task")), "{} was resized, and does not run", text("task"));
                self.take(&text("task"), &[places("places"), places("lent")].concat());
            }
            "ended" => {
                let was_there = self.free(&text("task")) | self.waiting.remove(&text("task")).is_some();
                assert!(was_there, "{} ended, and was not there", text("task"));
            }
            _ => {}
        }
    }
}

/// No task is started twice or out of nothing, and no GPU is given twice. Of journals from their first entry on.
///
/// # Panics
/// A pool's facts say something else.
pub async fn no_gpu_is_given_twice(database: &TestDatabase) {
    let pools = database.rows("SELECT CAST(id AS text) FROM placed_pools").await;
    for pool in pools {
        let mut played = Played::default();
        let facts = database.rows(&format!("SELECT facts_json FROM journal WHERE pool_id = {pool} ORDER BY seq")).await;
        for entry in facts {
            let facts: Value = serde_json::from_str(&entry).expect("facts are JSON");
            for fact in facts.as_array().expect("a list") {
                played.play(fact);
            }
        }
        let sql = format!("SELECT id || ' ' || status FROM tasks WHERE pool_id = {pool}");
        for row in database.rows(&sql).await {
            let (task, status) = row.rsplit_once(' ').expect("a task and its status");
            let now = match (played.tasks.contains_key(task), played.waiting.contains_key(task)) {
                (true, _) => "running",
                (_, true) => "waiting",
                _ => "ended",
            };
            let expected = if ["finished", "deleted"].contains(&status) { "ended" } else { status };
            assert_eq!(now, expected, "{task}: by its facts, and by its row");
        }
    }
}
