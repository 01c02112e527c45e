//! `headroom watch`.

use crate::args::WatchFlags;
use crate::config::Config;
use crate::show::gpus;
use crate::{failure, pool, show};
use command_line::{Failure, print_notice, say};
use headroom_client::{Client, ClientError, Events, Pool};
use serde::Serialize;
use std::fmt::Write;
use std::time::Duration;
use wire::{EventBody, QuotaAnswer, TaskAnswer, TaskStatusBody};

/// A task is read again after each of its events, and at least so often: its end is no event.
const READ_EVERY: Duration = Duration::from_secs(5);

pub async fn run(client: &Client, config: &Config, flags: &WatchFlags, json: bool) -> Result<(), Failure> {
    let pool = pool::chosen(client, config).await?;
    let lines = Lines { left: flags.count, json };
    match &flags.task {
        Some(task) => follow_task(&pool, task, flags.until == "running", lines).await,
        None if flags.quota => follow_quota(&pool, flags.hours, lines).await,
        None => follow_events(&pool, lines).await,
    }
}

/// Printed lines, up to their number.
struct Lines {
    left: Option<u64>,
    json: bool,
}

impl Lines {
    /// Prints a line; answers whether it was the last.
    fn print<T: Serialize>(&mut self, value: &T, text: impl FnOnce(&T) -> String) -> bool {
        if self.json {
            say(serde_json::to_string(value).expect("answers have strings and finite numbers"));
        } else {
            say(text(value));
        }
        self.left = self.left.map(|left| left - 1);
        self.left == Some(0)
    }
}

/// Prints why nothing comes at this moment; an error that stays ends the command.
fn wait_out(fault: &ClientError, pause: Duration) -> Result<(), Failure> {
    if !fault.is_transient() {
        return Err(failure::of(fault));
    }
    print_notice(format_args!("{fault}: again in {:.0} s", pause.as_secs_f64()));
    Ok(())
}

async fn follow_quota(pool: &Pool, hours: u8, mut lines: Lines) -> Result<(), Failure> {
    let mut quotas = pool.quotas(hours);
    loop {
        match quotas.next().await {
            Ok(quota) => {
                if lines.print(&quota, quota_line) {
                    return Ok(());
                }
            }
            Err(fault) => wait_out(&fault, quotas.pause())?,
        }
    }
}

fn quota_line(quota: &QuotaAnswer) -> String {
    let [all, held, free] = [quota.quota_gpus, quota.used_gpus, quota.available_gpus].map(gpus);
    let all = vocab::gpus(all);
    format!("{} {} h: {all}, {held} held, {free} free; {}", quota.computed_at, quota.hours, quota.stage)
}

async fn follow_events(pool: &Pool, mut lines: Lines) -> Result<(), Failure> {
    let mut events = pool.events(None);
    loop {
        match events.next().await {
            Ok(event) => {
                if lines.print(&event, event_line) {
                    return Ok(());
                }
            }
            Err(fault) => wait_out(&fault, events.pause())?,
        }
    }
}

fn event_line(event: &EventBody) -> String {
    let mut line = format!("{} {}", event.at, event.kind);
    let parts = [("", &event.task), (" for ", &event.by), (" until ", &event.deadline)];
    for (before, part) in parts {
        if let Some(part) = part {
            line.push_str(if before.is_empty() { " " } else { before });
            line.push_str(part);
        }
    }
    if !event.nodes.is_empty() {
        line.push_str(" on ");
        line.push_str(&event.nodes.join(", "));
    }
    if let Some(start) = &event.start {
        let at = |at: &Option<String>| at.clone().unwrap_or_else(|| "beyond the horizon".to_owned());
        let _ = write!(line, ": expected {}, before {}", at(&start.p50), at(&start.before));
    }
    for limit in &event.limits {
        let _ = write!(line, " {} h: {}", limit.hours, gpus(limit.quota_milli as f64 / 1_000.0));
    }
    line
}

async fn follow_task(pool: &Pool, task: &str, until_running: bool, mut lines: Lines) -> Result<(), Failure> {
    let mut events = pool.events(None);
    let mut last = None::<TaskAnswer>;
    loop {
        let now = pool.task(task).await.map_err(|fault| failure::of(&fault))?;
        let ended = matches!(now.status, TaskStatusBody::Finished | TaskStatusBody::Deleted);
        let reached = ended || (until_running && now.status == TaskStatusBody::Running);
        // Its expected start is forecast again each minute: that is no change of its state.
        let state = TaskAnswer { start: None, ..now.clone() };
        let is_new = last.as_ref() != Some(&state);
        if (is_new && lines.print(&now, show::task)) || reached {
            return Ok(());
        }
        last = Some(state);
        wait_for(&mut events, task).await;
    }
}

/// Waits for an event of the task, for a while. Without a stream, for the while.
async fn wait_for(events: &mut Events, task: &str) {
    let of_task = async {
        loop {
            match events.next().await {
                Ok(event) if event.task.as_deref() == Some(task) => return,
                Ok(_) => {}
                Err(fault) if fault.is_transient() => {}
                // The reading of the task says what is wrong.
                Err(_) => std::future::pending().await,
            }
        }
    };
    let _ = tokio::time::timeout(READ_EVERY, of_task).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_event_is_a_line_with_all_that_it_names() {
        let event = json!({ "id": "7.0", "kind": "evicted", "cluster": "earth", "gpu_model": "A100", "at": "2026-01-05T10:00:00Z",
            "task": "fill", "by": "train", "deadline": "2026-01-05T10:00:30Z", "nodes": ["n1", "n2"] });
        assert_eq!(
            event_line(&serde_json::from_value(event).unwrap()),
            "2026-01-05T10:00:00Z evicted fill for train until 2026-01-05T10:00:30Z on n1, n2"
        );
        let limits = json!([{ "hours": 4, "quota_milli": 20_500 }]);
        let event = json!({ "id": "8.0", "kind": "quota_changed", "cluster": "earth", "gpu_model": "A100",
            "at": "2026-01-05T10:00:00Z", "limits": limits });
        assert_eq!(event_line(&serde_json::from_value(event).unwrap()), "2026-01-05T10:00:00Z quota_changed 4 h: 20.5");
    }
}
