//! Answers as text.

use std::fmt::Write;
use wire::{PlaceBody, TaskAnswer, TaskStatusBody};

/// An amount of GPUs: at most three decimals.
pub fn gpus(amount: f64) -> String {
    let text = format!("{amount:.3}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// GPU-hours: one decimal.
pub fn hours(amount: f64) -> String {
    format!("{amount:.1}")
}

fn place(body: &PlaceBody) -> String {
    let numbers: Vec<String> = body.gpus.iter().map(u8::to_string).collect();
    let share = body.share_milli.map(|milli| format!("×{}", gpus(f64::from(milli) / 1_000.0)));
    format!("{}:{}{}", body.node, numbers.join("+"), share.unwrap_or_default())
}

/// A task in one line: its state, with places or the reason.
pub fn task(task: &TaskAnswer) -> String {
    let mut line = format!("{} is {}", task.id, task.status);
    let detail = &task.detail;
    if let (TaskStatusBody::Running, Some(run)) = (task.status, &detail.run) {
        let places: Vec<String> = run.places.iter().chain(&run.lent).map(place).collect();
        let _ = write!(line, " since {} on {}", run.since, places.join(", "));
        if run.starts > run.since {
            let _ = write!(line, "; its GPUs are free at {}", run.starts);
        }
        if let Some(guarantee) = run.guarantee {
            let _ = write!(line, "; guaranteed for {} h", guarantee.hours);
        }
    }
    if let Some(reason) = detail.waits.as_ref().filter(|_| task.status == TaskStatusBody::Waiting) {
        let _ = write!(line, ": {} ({})", reason.detail, reason.code);
    }
    if let Some(cut) = detail.cut.as_ref().filter(|_| task.status == TaskStatusBody::Waiting) {
        let by = if cut.by.is_empty() { String::new() } else { format!(" {}", cut.by) };
        let _ = write!(line, "; its last run was cut at {} ({}{by})", cut.at, cut.code);
    }
    if !detail.victims.is_empty() {
        let _ = write!(line, "; evicted for it: {}", detail.victims.join(", "));
    }
    if task.shadow {
        line.push_str("; nothing was done: the pool is in shadow");
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn line(status: &str, detail: &Value) -> String {
        let answer = json!({
            "cluster": "earth", "gpu_model": "A100", "id": "sweep", "organization": "vision", "class": "spot", "gpus_per_pod": 0.5,
            "pods": 1, "cpu_milli": 0, "memory_mib": 0, "guarantee_hours": 4, "submitted": "2026-01-05T10:00:00Z",
            "status": status, "updated": "2026-01-05T10:00:00Z", "shadow": false, "detail": detail,
        });
        task(&serde_json::from_value(answer).unwrap())
    }

    #[test]
    fn a_task_is_shown_with_its_places_or_the_reason_for_which_it_waits() {
        let run = json!({ "since": "2026-01-05T10:00:00Z", "starts": "2026-01-05T10:00:30Z", "saved": "2026-01-05T10:00:00Z",
            "places": [{ "node": "n1", "gpus": [3], "share_milli": 500 }], "guarantee": { "hours": 4, "until_unix_s": 0 } });
        assert_eq!(
            line("running", &json!({ "run": run, "victims": ["fill"] })),
            "sweep is running since 2026-01-05T10:00:00Z on n1:3×0.5; its GPUs are free at 2026-01-05T10:00:30Z; guaranteed for 4 h; \
             evicted for it: fill"
        );
        let waits = json!({ "waits": { "code": "over_quota", "detail": "asked 4, left 2" } });
        assert_eq!(line("waiting", &waits), "sweep is waiting: asked 4, left 2 (over_quota)");
        assert_eq!(line("finished", &json!({})), "sweep is finished");
    }

    #[test]
    fn gpus_have_three_decimals_at_most() {
        assert_eq!([40.0, 0.25, 12.3456, -0.0001, 0.0].map(gpus), ["40", "0.25", "12.346", "0", "0"]);
    }
}
