//! A table, JSON, or a file of the figures.

use super::tally::Summary;
use crate::files::cell;
use command_line::{print_json, print_text, say, table};
use std::collections::BTreeMap;
use std::fmt::Write;

/// GPUs of the cluster, policy, figures.
pub type Named = (u32, String, Summary);

pub fn show(all: &[Named], json: bool) {
    if json {
        let mut by_gpus = BTreeMap::<u32, BTreeMap<&str, &Summary>>::new();
        for (gpus, name, one) in all {
            by_gpus.entry(*gpus).or_default().insert(name, one);
        }
        print_json(&by_gpus);
        return;
    }
    let header = [
        "GPUs",
        "policy",
        "queue s",
        "p99",
        "full s",
        "p99",
        "JCT s",
        "median",
        "p95",
        "inflation",
        "finished",
        "partial",
        "full",
        "CPU s",
    ];
    let row = |(gpus, name, one): &Named| {
        vec![
            gpus.to_string(),
            name.clone(),
            format!("{:.2}", one.interactive_queue_mean_s),
            format!("{:.0}", one.interactive_queue_p99_s),
            format!("{:.2}", one.interactive_full_mean_s),
            format!("{:.0}", one.interactive_full_p99_s),
            format!("{:.0}", one.jct_mean_s),
            format!("{:.0}", one.jct_median_s),
            format!("{:.0}", one.jct_p95_s),
            format!("{:.3}", one.jct_inflation_mean),
            one.finished.to_string(),
            one.preemptions_partial.to_string(),
            one.preemptions_full.to_string(),
            format!("{:.2}", one.cpu_s),
        ]
    };
    print_text(&table(&header, &all.iter().map(row).collect::<Vec<_>>()));
    say(
        "queue: time of interactive jobs without any GPU; full s: until they had all that they asked for; partial, full: preemptions",
    );
}

/// One line a cluster, policy and figure.
pub fn figures(all: &[Named]) -> String {
    let mut lines = "gpus,policy,figure,value\n".to_owned();
    for (gpus, name, one) in all {
        let Ok(serde_json::Value::Object(figures)) = serde_json::to_value(one) else { continue };
        for (figure, value) in figures {
            let _ = writeln!(lines, "{gpus},{name},{figure},{}", cell(&value));
        }
    }
    lines
}
