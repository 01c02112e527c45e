//! `headroom reservations`.

use crate::args::ReservationsFlags;
use crate::config::Config;
use crate::show::gpus;
use crate::{failure, pool};
use command_line::{Failure, print_json, print_text, say, table};
use headroom_client::Client;
use wire::{RepeatsBody, ReservationBody, ReservedWindowBody};

pub async fn run(client: &Client, config: &Config, flags: &ReservationsFlags, json: bool) -> Result<(), Failure> {
    if let Some(id) = flags.id {
        let one = client.reservation(id).await.map_err(|fault| failure::of(&fault))?;
        if json {
            print_json(&one);
        } else {
            lines(&one).iter().for_each(say);
        }
        return Ok(());
    }
    let pool = pool::chosen(client, config).await?;
    if flags.ics {
        print_text(&pool.reservations_ics(flags.past).await.map_err(|fault| failure::of(&fault))?);
        return Ok(());
    }
    let list = pool.reservations(flags.past).await.map_err(|fault| failure::of(&fault))?;
    if json {
        print_json(&list);
    } else if list.reservations.is_empty() {
        say(format_args!("{}:{} has no reservations", pool.cluster(), pool.gpu_model()));
    } else {
        let header = ["number", "organization", "GPUs", "from", "to", "probability", "repeats", "state"];
        let rows: Vec<Vec<String>> = list.reservations.iter().map(row).collect();
        say(table(&header, &rows).trim_end());
    }
    Ok(())
}

/// A reservation with its next window; one that is over with its first.
fn row(one: &ReservationBody) -> Vec<String> {
    let next = one.windows.first();
    let (from, to) = next.map_or((&one.from, &one.to), |window| (&window.from, &window.to));
    vec![
        number(one),
        one.organization.clone(),
        gpus(one.gpus),
        from.clone(),
        to.clone(),
        next.map_or_else(String::new, probability),
        one.repeats.as_ref().map_or_else(String::new, repeats),
        state(one).to_owned(),
    ]
}

fn number(one: &ReservationBody) -> String {
    one.id.map_or_else(String::new, |id| id.to_string())
}

const fn state(one: &ReservationBody) -> &'static str {
    match (one.withdrawn_at.is_some(), one.windows.is_empty()) {
        (true, _) => "withdrawn",
        (false, true) => "over",
        (false, false) => "sold",
    }
}

fn repeats(repeats: &RepeatsBody) -> String {
    let days: Vec<&str> = repeats.days.iter().map(|day| day.as_str()).collect();
    let until = repeats.until.as_ref().map_or_else(String::new, |until| format!(" until {until}"));
    format!("{}{until}", days.join(","))
}

fn probability(window: &ReservedWindowBody) -> String {
    window.probability.map_or_else(|| "unknown".to_owned(), |probability| format!("{:.0} %", probability * 100.0))
}

/// One reservation: what it is, then its next windows.
pub(super) fn lines(one: &ReservationBody) -> Vec<String> {
    let name = one.id.map_or_else(|| "a reservation like this".to_owned(), |id| format!("reservation {id}"));
    let mut head = format!(
        "{name}: {} of {}:{} for {}",
        vocab::gpus(gpus(one.gpus)),
        one.cluster,
        one.gpu_model,
        one.organization
    );
    if let Some(rule) = &one.repeats {
        head = format!("{head}, on {}", repeats(rule));
    }
    if let Some(at) = &one.withdrawn_at {
        head = format!("{head}; withdrawn at {at} by {}", one.withdrawn_by.as_deref().unwrap_or("-"));
    }
    let windows = one.windows.iter().map(|window| {
        let source = window.weeks.map_or_else(
            || window.source.to_string(),
            |weeks| format!("{}, {}", window.source, vocab::count(weeks, "week")),
        );
        format!("  {} to {}: {} ({source})", window.from, window.to, probability(window))
    });
    std::iter::once(head).chain(windows).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn stored() -> ReservationBody {
        let window = |day: u32, probability: Option<f64>, source: &str, weeks: Option<u32>| {
            json!({ "from": format!("2026-12-0{day}T09:00:00Z"), "to": format!("2026-12-0{day}T17:00:00Z"),
                "probability": probability, "source": source, "weeks": weeks })
        };
        let windows = [
            window(1, Some(0.934), "forecast", None),
            window(3, Some(0.5), "history", Some(6)),
            window(8, None, "unknown", None),
        ];
        let body = json!({
            "id": 7, "cluster": "earth", "gpu_model": "A100", "organization": "lab", "gpus": 8.0,
            "from": "2026-12-01T09:00:00Z", "to": "2026-12-01T17:00:00Z",
            "repeats": { "days": ["TU", "TH"], "until": "2027-03-01T00:00:00Z" }, "by": "desk",
            "created_at": "2026-11-01T00:00:00Z", "withdrawn_at": null, "withdrawn_by": null, "windows": windows,
        });
        serde_json::from_value(body).unwrap()
    }

    #[test]
    fn a_reservation_is_shown_with_its_windows_their_probability_and_its_source() {
        let head = "reservation 7: 8 GPUs of earth:A100 for lab, on TU,TH until 2027-03-01T00:00:00Z";
        assert_eq!(
            lines(&stored()),
            [
                head,
                "  2026-12-01T09:00:00Z to 2026-12-01T17:00:00Z: 93 % (forecast)",
                "  2026-12-03T09:00:00Z to 2026-12-03T17:00:00Z: 50 % (history, 6 weeks)",
                "  2026-12-08T09:00:00Z to 2026-12-08T17:00:00Z: unknown (unknown)",
            ]
        );
    }

    #[test]
    fn a_reservation_that_is_over_or_withdrawn_says_so() {
        assert_eq!(state(&stored()), "sold");
        let over = ReservationBody { windows: vec![], ..stored() };
        assert_eq!((state(&over), row(&over)[3].as_str()), ("over", "2026-12-01T09:00:00Z"));
        let (at, by) = ("2026-11-02T00:00:00Z".to_owned(), "desk".to_owned());
        let withdrawn = ReservationBody { withdrawn_at: Some(at), withdrawn_by: Some(by), ..over };
        assert_eq!(state(&withdrawn), "withdrawn");
        assert!(lines(&withdrawn)[0].ends_with("; withdrawn at 2026-11-02T00:00:00Z by desk"));
    }
}
