//! `headroom when`.

use crate::args::WhenFlags;
use crate::config::Config;
use crate::{failure, pool};
use command_line::{Exit, Failure, print_json, say};
use headroom_client::{Client, Pool};
use std::fmt::Write as _;
use wire::{
    MomentBody, PriceBody, PriceList, PriceQuestion, ReasonBody, StartAnswer, StartQuestion, TaskClassBody,
    TaskStatusBody,
};

pub async fn run(client: &Client, config: &Config, flags: WhenFlags, json: bool) -> Result<(), Failure> {
    let pool = pool::chosen(client, config).await?;
    if let Some(task) = &flags.task {
        let answer = pool.task_eta(task).await.map_err(|fault| failure::of(&fault))?;
        return show(&answer, json, start);
    }
    let organization = flags.organization.clone().unwrap_or_else(|| config.default_organization.clone());
    if organization.is_empty() {
        let what = "no organization: add --organization NAME, or set default_organization; or name a task";
        return Err(Failure::new(Exit::Usage, what));
    }
    if flags.prices || flags.runs.is_some() {
        let answer = client.prices(&prices(&pool, organization, flags)).await.map_err(|fault| failure::of(&fault))?;
        return show(&answer, json, list);
    }
    let question = StartQuestion {
        cluster: pool.cluster().to_owned(),
        gpu_model: pool.gpu_model().to_owned(),
        organization,
        class: if flags.class == "hp" { TaskClassBody::Hp } else { TaskClassBody::Spot },
        gpus_per_pod: flags.gpus_per_pod,
        pods: flags.pods,
        cpu_milli: 0,
        memory_mib: 0,
        guarantee_hours: flags.guarantee_hours,
        affinity: None,
    };
    let answer = client.eta(&question).await.map_err(|fault| failure::of(&fault))?;
    show(&answer, json, start)
}

#[expect(clippy::unnecessary_wraps, reason = "the last step of a command")]
fn show<T: serde::Serialize>(answer: &T, json: bool, lines: fn(&T) -> Vec<String>) -> Result<(), Failure> {
    if json {
        print_json(answer);
    } else {
        lines(answer).iter().for_each(say);
    }
    Ok(())
}

fn prices(pool: &Pool, organization: String, flags: WhenFlags) -> PriceQuestion {
    PriceQuestion {
        cluster: pool.cluster().to_owned(),
        gpu_model: pool.gpu_model().to_owned(),
        organization,
        gpus_per_pod: flags.gpus_per_pod,
        pods: flags.pods,
        cpu_milli: 0,
        memory_mib: 0,
        runs_s: flags.runs,
        ends_by: flags.ends_by,
        probability: flags.probability,
    }
}

/// The start of one task.
fn start(answer: &StartAnswer) -> Vec<String> {
    let name = answer.task.as_deref().unwrap_or("a task like this");
    let horizon = answer.horizon_hours;
    let at = |moment: &Option<MomentBody>| {
        moment.as_ref().map_or_else(|| format!("later than in {horizon} h"), |moment| format!("by {}", moment.at))
    };
    if answer.status == Some(TaskStatusBody::Running) {
        let since = answer.start.p50.as_ref().map(|moment| moment.at.as_str()).unwrap_or_default();
        return vec![format!("{name} runs since {since}")];
    }
    if answer.starts_now {
        return vec![format!("{name} starts at once")];
    }
    let mut lines = vec![format!("{name} starts: 50 % {}, 90 % {}", at(&answer.start.p50), at(&answer.start.p90))];
    let by = answer.start.started_by.iter().filter(|one| [1, 4, 12, 24, 72].contains(&one.hours));
    let by: Vec<String> = by.map(|one| format!("{} h {:.0} %", one.hours, one.probability * 100.0)).collect();
    lines.push(format!("within: {}", by.join(", ")));
    lines.extend(answer.waits.as_ref().map(|waits| format!("it waits: {} ({})", waits.detail, waits.code)));
    lines.extend(answer.calibration.as_ref().map(|known| {
        let (inside_50, inside_90) = (known.coverage_50 * 100.0, known.coverage_90 * 100.0);
        format!(
            "of {} earlier forecasts {inside_50:.0} % and {inside_90:.0} % were in the 50 % and 90 % interval",
            known.scored
        )
    }));
    lines.extend(answer.doubts.iter().map(doubt));
    lines
}

fn doubt(doubt: &ReasonBody) -> String {
    format!("uncertain: {} ({})", doubt.detail, doubt.code)
}

/// One line for each price, then why they may be off.
fn list(answer: &PriceList) -> Vec<String> {
    let cheapest = answer.cheapest_in_time.and_then(|place| answer.prices.get(place as usize));
    let mut lines: Vec<String> = answer.prices.iter().map(price).collect();
    if answer.prices.iter().any(|price| price.ends_in_time.is_some()) {
        lines.push(
            cheapest
                .map_or_else(|| "none ends in time".to_owned(), |price| format!("cheapest in time: {}", label(price))),
        );
    }
    let mut doubts: Vec<String> = answer.prices.iter().flat_map(|price| price.doubts.iter().map(doubt)).collect();
    doubts.sort_unstable();
    doubts.dedup();
    lines.extend(doubts);
    lines
}

fn label(price: &PriceBody) -> &str {
    price.text.split_once(": ").map_or(price.text.as_str(), |(label, _)| label)
}

fn price(price: &PriceBody) -> String {
    let mut line = price.text.clone();
    if let Some(ends) = &price.ends {
        let _ = write!(line, "; ends by {}", ends.at);
    }
    if let Some(probability) = price.ends_by_probability {
        let in_time = if price.ends_in_time == Some(true) { "" } else { ", less than was asked for" };
        let _ = write!(line, "; in time with {:.0} %{in_time}", probability * 100.0);
    }
    if let Some(submit_by) = &price.submit_by {
        let _ = write!(line, "; submit by {submit_by}");
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_start_is_shown_with_its_probabilities_and_doubts() {
        let moment = json!({ "at": "2026-01-05T10:35:00Z", "wait_s": 2100 });
        let interval = json!({ "from": moment, "to": null });
        let answer = json!({
            "cluster": "earth", "gpu_model": "A100", "task": "sweep", "class": "spot", "guarantee_hours": 4, "status": "waiting",
            "as_of": "2026-01-05T10:00:00Z", "starts_now": false, "futures": 61, "horizon_hours": 72,
            "start": { "p50": moment, "p90": null, "interval_50": interval, "interval_90": interval,
                "started_by": [{ "hours": 1, "at": "2026-01-05T11:00:00Z", "probability": 0.6 }] },
            "calibration": { "class": "spot", "scored": 40, "coverage_50": 0.5, "coverage_90": 0.875, "pinball_s": 60.0 },
            "doubts": [{ "code": "few_jobs", "detail": "few tasks have ended" }],
            "waits": { "code": "over_quota", "detail": "asked 4, left 2" },
        });
        let answer: StartAnswer = serde_json::from_value(answer).unwrap();
        assert_eq!(
            start(&answer),
            [
                "sweep starts: 50 % by 2026-01-05T10:35:00Z, 90 % later than in 72 h",
                "within: 1 h 60 %",
                "it waits: asked 4, left 2 (over_quota)",
                "of 40 earlier forecasts 50 % and 88 % were in the 50 % and 90 % interval",
                "uncertain: few tasks have ended (few_jobs)",
            ]
        );
        assert_eq!(start(&StartAnswer { starts_now: true, ..answer }), ["sweep starts at once"]);
    }
}
