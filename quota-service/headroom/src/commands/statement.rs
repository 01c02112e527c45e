//! `headroom statement`.

use crate::args::StatementFlags;
use crate::config::Config;
use crate::failure;
use crate::show::hours;
use command_line::{Failure, print_json, print_text, say, table};
use headroom_client::{Client, StatementOf};
use wire::{StatementAnswer, StatementLine, StatementPool, StatementTable};

/// Stands in the text in place of an organization, in the row with the sum of a pool: tasks of this name are refused.
const SUM: &str = "*";
/// Lines of the text that say who preempts whom: those that lost the most work.
const PREEMPTIONS: usize = 20;

pub async fn run(client: &Client, config: &Config, flags: &StatementFlags, json: bool) -> Result<(), Failure> {
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let of = StatementOf {
        month: flags.month.clone(),
        daily: flags.by == "day" || flags.opencost,
        cluster: some(&config.cluster),
        gpu_model: some(&config.gpu_model),
        organization: flags.organization.clone(),
    };
    let answer = client.statement(&of).await.map_err(|fault| failure::of(&fault))?;
    if json {
        print_json(&answer);
    } else if flags.opencost {
        print_text(&answer.to_csv(StatementTable::OpenCost));
    } else if flags.csv {
        print_text(&answer.to_csv(StatementTable::Statement));
    } else {
        show(&answer);
    }
    Ok(())
}

fn show(answer: &StatementAnswer) {
    say(format_args!("{} to {}, in GPU-hours", answer.from, answer.to));
    for source in answer.sources.iter().filter_map(|source| Some((source, source.missing.as_ref()?))) {
        let (source, why) = source;
        say(format_args!("{}:{} is complete until {}: {why}", source.cluster, source.gpu_model, source.until));
    }
    if answer.organizations.is_empty() && answer.pools.is_empty() {
        say(
            "no GPU time of what was asked for is accounted for: check names and month; accounts are kept of pools whose tasks Headroom places",
        );
        return;
    }
    let currency = answer.currency.as_deref().unwrap_or_default();
    let charged = if currency.is_empty() { String::new() } else { format!("charged, {currency}") };
    let mut header = vec![
        "organization (*: all)",
        "pool",
        "HP",
        "guaranteed",
        "at will",
        "handover",
        "lost",
        "sold",
        "kept",
        "broken",
        "evictions",
    ];
    if !currency.is_empty() {
        header.push(&charged);
    }
    let organizations = answer.organizations.iter().map(|line| {
        let name = format!("{}{}", day(line.day.as_ref()), line.organization);
        row(name, line)
    });
    let pools = answer.pools.iter().map(|pool| row(format!("{}{SUM}", day(pool.day.as_ref())), &as_line(pool)));
    let rows: Vec<Vec<String>> = organizations.chain(pools).collect();
    say(table(&header, &rows).trim_end());
    answer.pools.iter().for_each(|pool| show_pool(pool, currency));
    for one in answer.preemptions.iter().take(PREEMPTIONS) {
        let lost = hours(one.lost_gpu_hours);
        say(format_args!(
            "{} evicted {} runs of {}, {} of them promised; {lost} lost",
            one.by, one.evictions, one.of, one.broken
        ));
    }
    if let Some(more) = answer.preemptions.len().checked_sub(PREEMPTIONS).filter(|more| *more > 0) {
        say(format_args!("and {more} more, with less lost: --json lists all"));
    }
}

fn day(day: Option<&String>) -> String {
    day.map(|day| format!("{day} ")).unwrap_or_default()
}

/// The sum of a pool as a line.
fn as_line(pool: &StatementPool) -> StatementLine {
    StatementLine {
        day: None,
        cluster: pool.cluster.clone(),
        gpu_model: pool.gpu_model.clone(),
        organization: String::new(),
        gpu_hours: pool.gpu_hours,
        promises: pool.promises,
        evictions: pool.evictions,
        charges: pool.charges,
    }
}

fn row(name: String, line: &StatementLine) -> Vec<String> {
    let held = &line.gpu_hours;
    let lost = held.lost_to_evictions + held.lost_to_nodes;
    let amounts = [held.hp, held.guaranteed, held.at_will, held.handover, lost, held.sold, held.kept, held.broken];
    let mut cells = vec![name, format!("{}:{}", line.cluster, line.gpu_model)];
    cells.extend(amounts.map(hours));
    cells.push(line.evictions.to_string());
    cells.extend(line.charges.map(|charges| format!("{:.2}", charges.total)));
    cells
}

fn show_pool(pool: &StatementPool, currency: &str) {
    let idle = &pool.pool_gpu_hours;
    let share = |share: Option<f64>| share.map_or_else(|| "-".to_owned(), |share| format!("{:.1} %", 100.0 * share));
    say(format_args!(
        "{}{}:{}: {} of capacity, {} held by tasks, goodput {}; idle: {} offered, {} kept for HP, {} drained; {} reserved beyond demand",
        day(pool.day.as_ref()),
        pool.cluster,
        pool.gpu_model,
        hours(idle.capacity),
        share(pool.allocation),
        share(pool.goodput),
        hours(idle.idle_offered),
        hours(idle.idle_reserved),
        hours(idle.drained),
        hours(idle.over_reserved),
    ));
    if let Some(costs) = &pool.costs {
        say(format_args!(
            "  owning it costs {:.2} {currency}, idle GPUs {:.2}, lost work {:.2}",
            costs.owned, costs.idle, costs.lost
        ));
    }
}
