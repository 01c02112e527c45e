//! `headroom cancel`.

use crate::args::CancelFlags;
use crate::config::Config;
use crate::{failure, pool, show};
use command_line::{Failure, print_json, print_notice, say};
use headroom_client::Client;

/// Cancels task by task. A refused one leaves the others; the command fails with the last refusal.
pub async fn run(client: &Client, config: &Config, flags: &CancelFlags, json: bool) -> Result<(), Failure> {
    let pool = pool::chosen(client, config).await?;
    let mut cancelled = Vec::new();
    let mut refused = None::<Failure>;
    for task in &flags.tasks {
        match pool.delete(task).await {
            Ok(answer) if json => cancelled.push(answer),
            Ok(answer) => say(show::task(&answer)),
            Err(fault) => {
                if let Some(earlier) = refused.replace(failure::of(&fault)) {
                    print_notice(format_args!("error: {}", earlier.message));
                }
            }
        }
    }
    if json {
        print_json(&cancelled);
    }
    refused.map_or(Ok(()), Err)
}
