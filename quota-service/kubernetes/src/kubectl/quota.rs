//! `quota` and `what-if`.

use super::{Plugin, PluginError, QuotaFlags, WhatIfFlags};
use crate::headroom::encoded;
use command_line::{print_json, print_text, table};
use serde_json::json;
use std::fmt::Write;
use wire::{PoolSummary, WhatIfAnswer, WhatIfSide};

pub(super) async fn quota(plugin: &Plugin, flags: &QuotaFlags, json: bool) -> Result<(), PluginError> {
    let mut pools = plugin.pools().await?;
    let known: Vec<String> = pools.iter().map(|pool| pool.gpu_model.clone()).collect();
    pools.retain(|pool| flags.gpu_model.as_ref().is_none_or(|model| *model == pool.gpu_model));
    if pools.is_empty() {
        let cluster = &plugin.cluster;
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        return Err(PluginError::Unknown(format!(
            "no such pool of cluster {cluster}; GPU models that Headroom knows: {known}"
        )));
    }
    if json {
        print_json(&json!({ "cluster": plugin.cluster.as_str(), "pools": pools }));
    } else {
        print_text(&quota_text(&pools));
    }
    Ok(())
}

/// Quotas as a table, and why a pool has none.
pub(super) fn quota_text(pools: &[PoolSummary]) -> String {
    let header = ["GPU MODEL", "HOURS", "QUOTA", "USED", "AVAILABLE", "CAPACITY", "STAGE"];
    let (mut rows, mut without) = (Vec::new(), String::new());
    for pool in pools {
        let stage = pool.stage.map_or_else(String::new, |stage| word(&stage));
        let capacity = pool.capacity_gpus.map_or_else(String::new, |gpus| gpus.to_string());
        for hours in &pool.offered_hours {
            let of = |by_hours: &std::collections::BTreeMap<String, f64>| {
                by_hours.get(&hours.to_string()).map_or_else(String::new, ToString::to_string)
            };
            rows.push(vec![
                pool.gpu_model.clone(),
                hours.to_string(),
                of(&pool.quota_gpus_by_hours),
                of(&pool.spot_gpus_by_hours),
                of(&pool.available_gpus_by_hours),
                capacity.clone(),
                stage.clone(),
            ]);
        }
        if let Some(why) = &pool.no_quota {
            let _ = writeln!(without, "{}: no quota: {why}", pool.gpu_model);
        }
    }
    table(&header, &rows) + &without
}

/// A value of an enumeration as JSON has it.
pub(super) fn word(value: &impl serde::Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

pub(super) async fn what_if(plugin: &Plugin, flags: &WhatIfFlags, json: bool) -> Result<(), PluginError> {
    let (cluster, model) = (encoded(plugin.cluster.as_str()), encoded(&flags.gpu_model));
    let mut path = format!("/v1/quota/what-if?cluster={cluster}&gpu_model={model}&hours={}", flags.hours);
    for (name, value) in [
        ("capacity_change_gpus", flags.capacity_change),
        ("demand_change_gpus", flags.demand_change),
        ("guarantee_rate", flags.guarantee_rate),
        ("eta", flags.eta),
    ] {
        if let Some(value) = value {
            let _ = write!(path, "&{name}={value}");
        }
    }
    let answer: WhatIfAnswer = plugin.headroom.get(&path).await?;
    if json {
        print_json(&json!(answer));
    } else {
        print_text(&what_if_text(&answer));
    }
    Ok(())
}

pub(super) fn what_if_text(answer: &WhatIfAnswer) -> String {
    let row = |name: &str, of: fn(&WhatIfSide) -> f64| {
        vec![name.to_owned(), of(&answer.now).to_string(), of(&answer.then).to_string()]
    };
    let rows = [
        row("quota (GPUs)", |side| side.quota_gpus),
        row("available (GPUs)", |side| side.available_gpus),
        row("capacity (GPUs)", |side| side.capacity_gpus),
        row("demand bound (GPUs)", |side| side.demand_bound_gpus),
        row("inventory (GPUs)", |side| side.inventory_gpus),
        row("idle (GPUs)", |side| side.idle_gpus),
        row("used (GPUs)", |side| side.used_gpus),
        row("eta", |side| side.eta),
        row("guarantee rate", |side| side.guarantee_rate),
    ];
    let mut text = format!("{}:{} for {} h\n", answer.cluster, answer.gpu_model, answer.hours);
    text += &table(&["", "NOW", "THEN"], &rows);
    for step in &answer.steps {
        let _ = writeln!(text, "{step}");
    }
    text
}
