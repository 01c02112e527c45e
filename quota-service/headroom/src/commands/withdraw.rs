//! `headroom withdraw`.

use crate::args::WithdrawFlags;
use crate::failure;
use command_line::{Failure, print_json, print_notice, say};
use headroom_client::Client;
use serde_json::json;

/// Withdraws one by one. A refused one leaves the others; the command fails with the last refusal.
pub async fn run(client: &Client, flags: &WithdrawFlags, json: bool) -> Result<(), Failure> {
    let mut withdrawn = Vec::new();
    let mut refused = None::<Failure>;
    for id in &flags.ids {
        match client.withdraw(*id).await {
            Ok(()) if json => withdrawn.push(*id),
            Ok(()) => say(format_args!("reservation {id} is withdrawn")),
            Err(fault) => {
                if let Some(earlier) = refused.replace(failure::of(&fault)) {
                    print_notice(format_args!("error: {}", earlier.message));
                }
            }
        }
    }
    if json {
        print_json(&json!({ "withdrawn": withdrawn }));
    }
    refused.map_or(Ok(()), Err)
}
