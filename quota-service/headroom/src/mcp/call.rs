//! Calls of tools.

use super::{Server, answer, arguments};
use crate::config::Config;
use crate::pool;
use headroom_client::{ClientError, Pool, StatementOf, WhatIf};
use rmcp::model::{CallToolResult, ErrorData, JsonObject};
use serde::Serialize;
use serde_json::json;

/// A refusal of the service is an answer of the tool, with its code; wrong arguments are a fault of the protocol.
enum Stop {
    Arguments(ErrorData),
    Refused(CallToolResult),
}

impl From<ErrorData> for Stop {
    fn from(fault: ErrorData) -> Self {
        Self::Arguments(fault)
    }
}

impl From<ClientError> for Stop {
    fn from(fault: ClientError) -> Self {
        Self::Refused(answer::refused(&fault))
    }
}

/// Calls a tool that is offered.
pub async fn run(server: &Server, name: &str, arguments: JsonObject) -> Result<CallToolResult, ErrorData> {
    match called(server, name, arguments).await {
        Ok(answer) | Err(Stop::Refused(answer)) => Ok(answer),
        Err(Stop::Arguments(fault)) => Err(fault),
    }
}

async fn called(server: &Server, name: &str, mut arguments: JsonObject) -> Result<CallToolResult, Stop> {
    if name == "pools" {
        let arguments::Pools {} = arguments::read(arguments)?;
        return Ok(good(&server.client.pools().await?));
    }
    if name == "withdraw" {
        let arguments::Withdraw { id } = arguments::read(arguments)?;
        server.client.withdraw(id).await?;
        return Ok(good(&json!({ "withdrawn": id })));
    }
    let of = arguments::pool(&mut arguments)?;
    if name == "statement" {
        return statement(server, of, arguments::read(arguments)?).await;
    }
    if name == "reservations" {
        return reservations(server, of, arguments::read(arguments)?).await;
    }
    let pool = chosen(server, of).await?;
    Ok(match name {
        "quota" => {
            let arguments::Quota { hours } = arguments::read(arguments)?;
            good(&pool.quota(hours).await?)
        }
        "why" => match arguments::read::<arguments::Why>(arguments)?.question()? {
            arguments::WhyQuestion::Task(task) => good(&pool.explain_task(&task).await?),
            arguments::WhyQuestion::Quota { hours } => good(&pool.explain(hours).await?),
        },
        "when" => when(server, &pool, arguments::read(arguments)?).await?,
        "what_if" => {
            let asked: arguments::WhatIf = arguments::read(arguments)?;
            let arguments::WhatIf { hours, capacity_change_gpus, demand_change_gpus, guarantee_rate, eta } = asked;
            let changes = WhatIf { capacity_change_gpus, demand_change_gpus, guarantee_rate, eta };
            good(&pool.what_if(hours, &changes).await?)
        }
        "promises" => {
            let arguments::Promises { days } = arguments::read(arguments)?;
            good(&pool.promises(days).await?)
        }
        "reserve" => reserve(server, &pool, arguments::read(arguments)?).await?,
        "submit" => good(&server.client.submit(&task(&pool, arguments::read(arguments)?)).await?),
        // The last of the tools about a pool.
        _ => {
            let arguments::Cancel { task } = arguments::read(arguments)?;
            good(&pool.delete(&task).await?)
        }
    })
}

fn good(answer: &impl Serialize) -> CallToolResult {
    answer::good(answer)
}

async fn chosen(server: &Server, of: arguments::OfPool) -> Result<Pool, Stop> {
    let settings = server.config.as_ref();
    let config = Config {
        cluster: of.cluster.unwrap_or_else(|| settings.cluster.clone()),
        gpu_model: of.gpu_model.unwrap_or_else(|| settings.gpu_model.clone()),
        ..settings.clone()
    };
    if let Some(named) = pool::named(&server.client, &config) {
        return Ok(named);
    }
    // A service that does not answer is none that has several pools.
    let pools = server.client.pools().await?;
    pool::only(&server.client, &config, pools).map_err(|failure| Stop::Refused(answer::without_pool(&failure.message)))
}

async fn when(server: &Server, pool: &Pool, asked: arguments::When) -> Result<CallToolResult, Stop> {
    match asked.question(pool)? {
        arguments::WhenQuestion::Task(task) => Ok(good(&pool.task_eta(&task).await?)),
        arguments::WhenQuestion::Prices(question) => Ok(good(&server.client.prices(&question).await?)),
    }
}

async fn statement(
    server: &Server,
    of: arguments::OfPool,
    asked: arguments::Statement,
) -> Result<CallToolResult, Stop> {
    let arguments::Statement { month, organization } = asked;
    let arguments::OfPool { cluster, gpu_model } = of;
    let of = StatementOf { month, daily: false, cluster, gpu_model, organization };
    Ok(good(&server.client.statement(&of).await?))
}

async fn reservations(
    server: &Server,
    of: arguments::OfPool,
    asked: arguments::Reservations,
) -> Result<CallToolResult, Stop> {
    Ok(match asked.question(&of)? {
        arguments::ReservationsQuestion::One(id) => good(&server.client.reservation(id).await?),
        arguments::ReservationsQuestion::OfPool { past } => good(&chosen(server, of).await?.reservations(past).await?),
    })
}

async fn reserve(server: &Server, pool: &Pool, asked: arguments::Reserve) -> Result<CallToolResult, Stop> {
    let dry_run = asked.dry_run;
    let request = asked.request(pool)?;
    let client = &server.client;
    Ok(good(&if dry_run { client.dry_run_reservation(&request).await? } else { client.reserve(&request).await? }))
}

fn task(pool: &Pool, asked: arguments::Submit) -> wire::TaskBody {
    wire::TaskBody {
        cluster: pool.cluster().to_owned(),
        gpu_model: pool.gpu_model().to_owned(),
        id: asked.id,
        organization: asked.organization,
        class: asked.class,
        gpus_per_pod: asked.gpus_per_pod,
        pods: asked.pods,
        cpu_milli: 0,
        memory_mib: 0,
        guarantee_hours: asked.guarantee_hours,
        affinity: None,
        elastic: None,
    }
}
