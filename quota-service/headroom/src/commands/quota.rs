//! `headroom quota`.

use crate::args::QuotaFlags;
use crate::config::Config;
use crate::show::gpus;
use crate::{failure, pool};
use command_line::{Failure, print_json, say, table};
use headroom_client::Client;
use wire::{PoolList, PoolSummary, QuotaAnswer};

pub async fn run(client: &Client, config: &Config, flags: &QuotaFlags, json: bool) -> Result<(), Failure> {
    let Some(hours) = flags.hours else {
        let pools = pool::allowed(client, config).await?;
        if json {
            print_json(&PoolList { pools });
        } else {
            show_pools(&pools);
        }
        return Ok(());
    };
    let quota = pool::chosen(client, config).await?.quota(hours).await.map_err(|fault| failure::of(&fault))?;
    if json {
        print_json(&quota);
    } else {
        show(&quota);
    }
    Ok(())
}

fn show_pools(pools: &[PoolSummary]) {
    for pool in pools {
        let stage = pool.stage.map_or_else(
            || pool.no_quota.clone().unwrap_or_else(|| "no quota yet".to_owned()),
            |stage| format!("{stage}, valid until {}", pool.valid_until.as_deref().unwrap_or("-")),
        );
        let capacity =
            pool.capacity_gpus.map_or_else(String::new, |capacity| format!(" of {}", vocab::gpus(gpus(capacity))));
        say(format_args!("{}{capacity}: {stage}", pool.id));
        let amount = |of: &std::collections::BTreeMap<String, f64>, hours: &str| {
            of.get(hours).map_or_else(|| "-".to_owned(), |amount| gpus(*amount))
        };
        let row = |hours: &u8| {
            let hours = hours.to_string();
            let amounts = [&pool.quota_gpus_by_hours, &pool.spot_gpus_by_hours, &pool.available_gpus_by_hours];
            let mut cells = vec![hours.clone()];
            cells.extend(amounts.map(|of| amount(of, &hours)));
            cells
        };
        let rows: Vec<_> = pool.offered_hours.iter().map(row).collect();
        if !rows.is_empty() {
            say(table(&["hours", "quota", "held", "free"], &rows).trim_end());
        }
    }
}

fn show(quota: &QuotaAnswer) {
    say(format_args!(
        "{}:{} for {} h at p = {}: {}, {} held, {} free; {}, valid until {}",
        quota.cluster,
        quota.gpu_model,
        quota.hours,
        quota.guarantee_rate,
        vocab::gpus(gpus(quota.quota_gpus)),
        gpus(quota.used_gpus),
        gpus(quota.available_gpus),
        quota.stage,
        quota.valid_until
    ));
    for reason in &quota.reasons {
        say(format_args!("  {}: {}", reason.code, reason.detail));
    }
}
