//! The statement of a replay: where its GPU time went.

use crate::commands::SimulatorError;
use accounts::{Day, DayAccounts, Prices, Statement};
use command_line::{OutputFile, read_toml, say, table};
use std::collections::BTreeMap;
use std::path::Path;
use vocab::{PoolId, UnixSeconds};
use wire::{PricesBody, StatementAnswer, StatementPool, StatementTable};

/// GPU time of pools by day.
pub type Days = BTreeMap<(PoolId, Day), DayAccounts>;

/// Reads a file of prices.
///
/// # Errors
/// It cannot be read, or a value is refused.
pub fn prices(file: Option<&Path>) -> Result<Option<Prices>, SimulatorError> {
    let Some(file) = file else { return Ok(None) };
    let body: PricesBody = read_toml(file)?;
    body.parse().map(Some).map_err(|fault| SimulatorError::Policy { file: file.to_owned(), fault })
}

/// Writes the statement of a replay: JSON by organization to a file named `*.json`, else CSV by organization and day.
///
/// # Errors
/// The file cannot be written.
pub fn write(file: &Path, days: &Days, prices: Option<&Prices>) -> Result<(), SimulatorError> {
    let is_json = file.extension().is_some_and(|ending| ending == "json");
    let answer = answer(days, prices, !is_json);
    let text = if is_json {
        serde_json::to_string_pretty(&answer).expect("a statement has strings and finite numbers")
    } else {
        answer.to_csv(StatementTable::Statement)
    };
    let failed = |fault| SimulatorError::Write { file: file.to_owned(), fault };
    let mut out = OutputFile::create(file).map_err(failed)?;
    std::io::Write::write_all(&mut out, text.as_bytes()).map_err(failed)?;
    out.finish().map_err(failed)
}

fn answer(days: &Days, prices: Option<&Prices>, daily: bool) -> StatementAnswer {
    let none = Prices::default();
    let statement = Statement::of(days, prices.unwrap_or(&none), daily);
    let number = |day: &Day| day.begin().to_string();
    let from = days.keys().map(|(_, day)| *day).min().as_ref().map(number).unwrap_or_default();
    let to = days.keys().map(|(_, day)| day.next()).max().as_ref().map(number).unwrap_or_default();
    StatementAnswer::of(&statement, from, to, prices.map(|prices| prices.currency.clone()))
}

/// Prints the sum of each pool, up to the day of the last submission: the jobs that run after it leave the rest idle. The file has
/// the days of these jobs, too.
pub fn show(days: &Days, last: Option<UnixSeconds>, prices: Option<&Prices>, file: &Path) {
    let within = |day: Day| last.is_none_or(|last| day <= Day::of(last));
    let all_until = days.keys().map(|(_, day)| day.next()).max();
    let days = days.iter().filter(|((_, day), _)| within(*day)).map(|(of, day)| (of.clone(), day.clone())).collect();
    let answer = answer(&days, prices, false);
    say(format_args!("GPU time from {} to {}, the end of the day of the last submission:", answer.from, answer.to));
    let header = [
        "pool",
        "GPU-hours",
        "HP",
        "guaranteed",
        "at will",
        "idle, offered",
        "idle, kept",
        "lost",
        "kept / broken",
        "goodput",
    ];
    let row = |pool: &StatementPool| {
        let whole = |hours: f64| format!("{hours:.0}");
        let (held, idle) = (&pool.gpu_hours, &pool.pool_gpu_hours);
        vec![
            format!("{}:{}", pool.cluster, pool.gpu_model),
            whole(idle.capacity),
            whole(held.hp),
            whole(held.guaranteed),
            whole(held.at_will),
            whole(idle.idle_offered),
            whole(idle.idle_reserved),
            whole(held.lost_to_evictions + held.lost_to_nodes),
            format!("{} / {}", pool.promises.kept, pool.promises.broken),
            pool.goodput.map_or_else(String::new, |share| format!("{:.1} %", 100.0 * share)),
        ]
    };
    say(table(&header, &answer.pools.iter().map(row).collect::<Vec<_>>()).trim_end());
    if let Some(until) = all_until.map(|until| until.begin().to_string()).filter(|until| *until != answer.to) {
        say(format_args!("{} has the days of the jobs that ran on, too, to {until}", file.display()));
    }
    for (pool, currency) in answer.pools.iter().zip(std::iter::repeat(answer.currency.as_deref().unwrap_or_default())) {
        if let (Some(charges), Some(costs)) = (&pool.charges, &pool.costs) {
            say(format_args!(
                "{}:{}: {:.2} {currency} charged, {:.2} credited for broken promises; idle GPUs cost {:.2}, lost work {:.2}",
                pool.cluster, pool.gpu_model, charges.total, charges.credit, costs.idle, costs.lost
            ));
        }
    }
}
