//! `headroom cancel`.

use crate::args::CancelFlags;
use crate::config::Config;
use crate::{failure, pool, show};
use command_line::{Failure, print_json, say};
use headroom_client::Client;

/// Cancels task by task; what was cancelled is printed, also where a later one is refused.
pub async fn run(client: &Client, config: &Config, flags: &CancelFlags, json: bool) -> Result<(), Failure> {
    let pool = pool::chosen(client, config).await?;
    let mut cancelled = Vec::new();
    let mut refused = None;
    for task in &flags.tasks {
        match pool.delete(task).await {
            Ok(answer) if json => cancelled.push(answer),
            Ok(answer) => say(show::task(&answer)),
            Err(fault) => {
                refused = Some(failure::of(&fault));
                break;
            }
        }
    }
    if json {
        print_json(&cancelled);
    }
    refused.map_or(Ok(()), Err)
}
