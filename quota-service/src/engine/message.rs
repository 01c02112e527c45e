//! Events as bodies of the webhook: for programs as they are, for chats as a sentence.

use crate::config::WebhookFormat;
use serde_json::{Value, json};
use wire::{EventBody, EventKindBody, StartSpanBody};

/// Nodes that a sentence names: chats refuse long messages.
const NODES_NAMED: usize = 12;

/// The body of an event.
pub fn body(event: &EventBody, format: WebhookFormat) -> Vec<u8> {
    let body = match format {
        WebhookFormat::Json => serde_json::to_vec(event),
        WebhookFormat::Slack => serde_json::to_vec(&slack(&sentence(event))),
        WebhookFormat::Teams => serde_json::to_vec(&teams(&sentence(event))),
    };
    body.expect("an event has strings and numbers")
}

/// A message of an incoming webhook of Slack. Names are no markup: their three special characters are escaped, and the rest is off.
fn slack(text: &str) -> Value {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    json!({ "text": text, "mrkdwn": false })
}

/// A message of a workflow of Teams: an adaptive card, whose runs of text know no markup.
fn teams(text: &str) -> Value {
    let card = json!({
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": [{ "type": "RichTextBlock", "inlines": [{ "type": "TextRun", "text": text }] }],
    });
    let kind = "application/vnd.microsoft.card.adaptive";
    json!({ "type": "message", "attachments": [{ "contentType": kind, "contentUrl": null, "content": card }] })
}

fn sentence(event: &EventBody) -> String {
    let task = event.task.as_deref().unwrap_or("a task");
    let by = event.by.as_deref();
    let pods = || event.pods.map_or_else(String::new, |pods| format!(" to {}", vocab::count(pods, "pod")));
    let what = match event.kind {
        EventKindBody::Started => format!("{task} has started"),
        EventKindBody::Evicted => format!("{task} is evicted for {}", by.unwrap_or("HP")),
        EventKindBody::Shrunk => format!("{task} shrinks{} for {}", pods(), by.unwrap_or("HP")),
        EventKindBody::Grown => format!("{task} grows{}", pods()),
        EventKindBody::NodeLost => format!("{task} has lost its node {}", by.unwrap_or_default()),
        EventKindBody::QuotaChanged => {
            let limit = |limit: &wire::LimitRecord| {
                format!("{} for {} h", vocab::gpus(limit.quota_milli as f64 / 1_000.0), limit.hours)
            };
            let limits: Vec<String> = event.limits.iter().map(limit).collect();
            format!("spot may hold {}", limits.join(", "))
        }
        EventKindBody::EtaMoved => moved(task, event.start.as_ref()),
    };
    let nodes = on(&event.nodes);
    let until = match (&event.deadline, event.kind) {
        (Some(at), EventKindBody::Evicted | EventKindBody::Shrunk) => format!("; it may save its work until {at}"),
        (Some(at), _) => format!("; its GPUs are free at {at}"),
        (None, _) => String::new(),
    };
    format!("{}:{} {}: {what}{nodes}{until}", event.cluster, event.gpu_model, event.at)
}

fn on(nodes: &[String]) -> String {
    let named = nodes.iter().take(NODES_NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    match nodes.len() {
        0 => named,
        count if count > NODES_NAMED => format!(" on {named} and {}", vocab::count(count - NODES_NAMED, "more node")),
        _ => format!(" on {named}"),
    }
}

/// Where the start of a waiting task has moved.
fn moved(task: &str, start: Option<&StartSpanBody>) -> String {
    let Some(start) = start else { return format!("{task} is expected to start at another time") };
    let at = |at: Option<&str>| at.map_or_else(|| "beyond the horizon".to_owned(), |at| format!("at {at}"));
    let (now, before) = (at(start.p50.as_deref()), at(start.before.as_deref()));
    format!("{task} is expected to start {now}, no longer {before}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(more: &str) -> EventBody {
        let event = format!(
            r#"{{"id": "7.0", "cluster": "earth", "gpu_model": "A100", "at": "2026-01-05T10:00:00Z", {more}}}"#
        );
        serde_json::from_str(&event).unwrap()
    }

    fn message(more: &str, format: WebhookFormat) -> Value {
        serde_json::from_slice(&body(&read(more), format)).unwrap()
    }

    #[test]
    fn an_event_is_a_sentence_with_all_that_it_names() {
        for (event, expected) in [
            (
                r#""kind": "evicted", "task": "fill", "by": "train", "deadline": "2026-01-05T10:00:30Z", "nodes": ["n1"]"#,
                "fill is evicted for train on n1; it may save its work until 2026-01-05T10:00:30Z",
            ),
            (r#""kind": "started", "task": "train", "nodes": ["n1", "n2"]"#, "train has started on n1, n2"),
            (r#""kind": "shrunk", "task": "fill", "by": "train", "pods": 2"#, "fill shrinks to 2 pods for train"),
            (r#""kind": "grown", "task": "fill", "pods": 4"#, "fill grows to 4 pods"),
            (r#""kind": "node_lost", "task": "fill", "by": "n1""#, "fill has lost its node n1"),
            (
                r#""kind": "eta_moved", "task": "fill", "start": {"p50": "2026-01-05T16:00:00Z", "p90": null,
                    "as_of": "2026-01-05T10:00:00Z", "before": "2026-01-05T12:30:00Z"}"#,
                "fill is expected to start at 2026-01-05T16:00:00Z, no longer at 2026-01-05T12:30:00Z",
            ),
            (
                r#""kind": "eta_moved", "task": "fill", "start": {"p50": null, "p90": null, "as_of": "2026-01-05T10:00:00Z",
                    "before": "2026-01-05T12:30:00Z"}"#,
                "fill is expected to start beyond the horizon, no longer at 2026-01-05T12:30:00Z",
            ),
            (
                r#""kind": "quota_changed", "limits": [{"hours": 1, "quota_milli": 20500}, {"hours": 4, "quota_milli": 8000}]"#,
                "spot may hold 20.5 GPUs for 1 h, 8 GPUs for 4 h",
            ),
        ] {
            assert_eq!(sentence(&read(event)), format!("earth:A100 2026-01-05T10:00:00Z: {expected}"));
        }
    }

    #[test]
    fn a_sentence_names_a_dozen_nodes_and_counts_the_others() {
        let nodes: Vec<String> = (1..=3_000).map(|number| format!("rack-17-node-{number}")).collect();
        let event =
            format!(r#""kind": "started", "task": "train", "nodes": {}"#, serde_json::to_string(&nodes).unwrap());
        let sentence = sentence(&read(&event));
        assert!(sentence.ends_with("rack-17-node-11, rack-17-node-12 and 2988 more nodes"), "{sentence}");
    }

    #[test]
    fn chats_show_names_as_they_are() {
        let event = r#""kind": "grown", "task": "<!channel>&*a*""#;
        let text = "earth:A100 2026-01-05T10:00:00Z: ";
        let slack = message(event, WebhookFormat::Slack);
        assert_eq!(slack, json!({ "text": format!("{text}&lt;!channel&gt;&amp;*a* grows"), "mrkdwn": false }));
        let teams = message(event, WebhookFormat::Teams);
        let run = &teams["attachments"][0]["content"]["body"][0]["inlines"][0];
        assert_eq!(run, &json!({ "type": "TextRun", "text": format!("{text}<!channel>&*a* grows") }));
        let (kind, content) = (&teams["attachments"][0]["contentType"], &teams["attachments"][0]["content"]["type"]);
        assert_eq!((kind, content), (&"application/vnd.microsoft.card.adaptive".into(), &"AdaptiveCard".into()));
        assert_eq!(message(event, WebhookFormat::Json)["task"], "<!channel>&*a*");
    }
}
