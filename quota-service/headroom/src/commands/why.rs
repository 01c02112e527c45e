//! `headroom why`.

use crate::args::WhyFlags;
use crate::config::Config;
use crate::show::gpus;
use crate::{failure, pool, show};
use command_line::{Failure, print_json, say};
use headroom_client::Client;

pub async fn run(client: &Client, config: &Config, flags: &WhyFlags, json: bool) -> Result<(), Failure> {
    let pool = pool::chosen(client, config).await?;
    let Some(task) = &flags.task else {
        let explained = pool.explain(flags.hours).await.map_err(|fault| failure::of(&fault))?;
        if json {
            print_json(&explained);
        } else {
            explained.steps.iter().for_each(say);
            say(&explained.what_would_change);
        }
        return Ok(());
    };
    let explained = pool.explain_task(task).await.map_err(|fault| failure::of(&fault))?;
    if json {
        print_json(&explained);
        return Ok(());
    }
    say(show::task(&explained.task));
    say(format_args!("{}: {}", explained.reason.code, explained.reason.detail));
    let (capacity, idle) = (gpus(explained.capacity_gpus), gpus(explained.idle_gpus));
    let all = vocab::gpus(capacity).verb("is", "are");
    say(format_args!("policy {}; {idle} of {all} idle, or on loan to elastic tasks", explained.policy));
    for promise in &explained.promises {
        let (promised, quota) = (gpus(promise.promised_gpus), gpus(promise.quota_gpus));
        say(format_args!("  {} h: {promised} of {} promised", promise.hours, vocab::gpus(quota).verb("is", "are")));
    }
    Ok(())
}
