//! Records of Slurm, as JSON and as lists of accounts.

use crate::{chosen, is_one_line};
use slurm_records::demand::{Reading, demand, tasks};
use slurm_records::nodes::Nodes;
use slurm_records::queue::Queue;
use slurm_records::{Accounts, History, RecordsError, Skipped};
use vocab::{ClusterName, GpuModel, HourStart};

/// Hours that are swept: a history may span more, and would take longer.
const MOST_HOURS: i64 = 200;

/// The first line names the kind of document.
pub fn slurm(data: &[u8]) {
    let Some((kind, text)) = chosen(data) else { return };
    match kind {
        "history" => {
            if let Some((history, _)) = parsed(History::read("jobs.json", text)) {
                named(&history.skipped);
                swept(&history);
            }
        }
        "queue" => {
            if let Some((queue, _)) = parsed(Queue::read("squeue.json", text)) {
                named(&queue.skipped);
                assert!(queue.jobs.iter().all(|job| job.requested.total > 0 || job.allocated.total > 0));
            }
        }
        "nodes" => {
            if let Some((nodes, _)) = parsed(Nodes::read("nodes.json", text)) {
                named(&nodes.skipped);
                let (cluster, any) =
                    (ClusterName::parse("t").expect("a name"), GpuModel::parse("any").expect("a name"));
                let hour = HourStart::from_unix_s(0).expect("on the grid");
                drop(nodes.capacity(&cluster, &any, hour).map_err(|fault| is_one_line(&fault.to_string())));
                drop(nodes.only_models(&any).map_err(|fault| is_one_line(&fault.to_string())));
            }
        }
        "accounts" => {
            let Ok(text) = std::str::from_utf8(text) else { return };
            match Accounts::parse(text, 1) {
                Err(fault) => is_one_line(&fault.to_string()),
                Ok(accounts) => {
                    let _ = text.split(['|', '\n']).map(|account| accounts.organization(account).len()).sum::<usize>();
                }
            }
        }
        _ => {}
    }
}

fn parsed<T>(read: Result<T, RecordsError>) -> Option<T> {
    read.map_err(|fault| assert!(!fault.to_string().is_empty())).ok()
}

fn named(skipped: &[Skipped]) {
    assert!(skipped.iter().all(|one| one.number > 0 && !one.fault.is_empty()));
}

fn swept(history: &History) {
    let reading = Reading::default();
    drop(tasks(history, &reading));
    let span = history.latest.zip(history.earliest_end).map_or(0, |(latest, first)| latest.since_s(first));
    if span / 3_600 > MOST_HOURS {
        return;
    }
    if let Ok(found) = demand(history, &reading) {
        let most: u64 = history
            .jobs
            .iter()
            .map(|job| u64::from(job.requested.total.max(job.allocated.total)) * u64::from(job.tasks))
            .sum();
        assert!(found.rows.iter().all(|row| row.demand.milli() <= most.saturating_mul(1_000)));
    }
}
