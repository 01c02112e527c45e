//! `headroom submit`.

use crate::args::SubmitFlags;
use crate::config::Config;
use crate::{failure, pool, show};
use command_line::{Exit, Failure, print_json, say};
use headroom_client::{Client, Pool};
use wire::{ElasticBody, TaskBody, TaskClassBody};

pub async fn run(client: &Client, config: &Config, flags: SubmitFlags, json: bool) -> Result<(), Failure> {
    let dry_run = flags.dry_run;
    let body = body(&pool::chosen(client, config).await?, config, flags)?;
    let answered = if dry_run { client.dry_run(&body).await } else { client.submit(&body).await };
    let task = answered.map_err(|fault| failure::of(&fault))?;
    if json {
        print_json(&task);
    } else if dry_run {
        // The decision is in no shadow: nothing was asked for.
        say(format_args!("{}; nothing is submitted", show::task(&wire::TaskAnswer { shadow: false, ..task })));
    } else {
        say(show::task(&task));
    }
    Ok(())
}

fn body(pool: &Pool, config: &Config, flags: SubmitFlags) -> Result<TaskBody, Failure> {
    let organization = flags.organization.or_else(|| Some(config.default_organization.clone()));
    let organization = organization.filter(|name| !name.is_empty()).ok_or_else(|| {
        Failure::new(Exit::Usage, "no organization: add --organization NAME, or set default_organization")
    })?;
    let class = if flags.class == "hp" { TaskClassBody::Hp } else { TaskClassBody::Spot };
    let elastic = flags.min_pods.map(|min_pods| ElasticBody { min_pods, max_pods: flags.max_pods, speeds: None });
    Ok(TaskBody {
        cluster: pool.cluster().to_owned(),
        gpu_model: pool.gpu_model().to_owned(),
        id: flags.id.map_or_else(drawn_id, Ok)?,
        organization,
        class,
        gpus_per_pod: flags.gpus_per_pod,
        pods: flags.pods,
        cpu_milli: flags.cpu_milli,
        memory_mib: flags.memory_mib,
        guarantee_hours: flags.guarantee_hours,
        affinity: None,
        elastic,
    })
}

/// An id that no other task has: 80 random bits.
fn drawn_id() -> Result<String, Failure> {
    let mut bytes = [0; 10];
    getrandom::fill(&mut bytes).map_err(|fault| Failure::new(Exit::Failure, format_args!("no random id: {fault}")))?;
    Ok(format!("task-{}", hex::encode(bytes)))
}
