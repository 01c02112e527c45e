//! Prints the quota of a pool, and each new one: the first need of a scheduler that admits spot tasks.
//!
//! ```sh
//! cargo run --example quota_client -- --cluster demo --gpu-model A100-SXM4-80GB --hours 4
//! ```
//!
//! While the service is away or busy it tries again, and nothing new is admitted after `valid_until`. `deploy/clients` has the same
//! for a shell and for Python.

use chrono::Utc;
use clap::Parser;
use headroom_client::{Client, ClientError, Options, ServiceUrl, available_gpus};
use std::path::PathBuf;
use std::process::ExitCode;

/// Print each new quota of a pool of a Headroom service
#[derive(Debug, Parser)]
struct Arguments {
    /// URL of the service
    #[arg(long, default_value_t)]
    api: ServiceUrl,
    #[arg(long)]
    cluster: String,
    #[arg(long)]
    gpu_model: String,
    /// Guarantee hours of the spot tasks
    #[arg(long, default_value_t = 1)]
    hours: u8,
    /// File with a token, read for each request; without it, none is sent
    #[arg(long)]
    token_file: Option<PathBuf>,
    /// End after so many quotas; 0: never
    #[arg(long, default_value_t = 0)]
    count: u64,
}

async fn follow(arguments: Arguments) -> Result<(), ClientError> {
    let Arguments { api, cluster, gpu_model, hours, token_file, count } = arguments;
    let client = Client::new(Options { url: api, token_file, ..Options::default() })?;
    let mut quotas = client.pool(&cluster, &gpu_model).quotas(hours);
    let mut received = 0;
    while count == 0 || received < count {
        match quotas.next().await {
            Ok(quota) => {
                println!("{}", serde_json::to_string(&quota).expect("a quota has finite numbers"));
                received += 1;
            }
            Err(fault) if fault.is_transient() => {
                let admits = quotas.last().map_or(0.0, |quota| available_gpus(quota, Utc::now()));
                let again_s = quotas.pause().as_secs_f64();
                eprintln!("{fault}: again in {again_s:.0} s; until then {admits} GPUs may be admitted");
            }
            Err(fault) => return Err(fault),
        }
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match follow(Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            eprintln!("{fault}");
            ExitCode::FAILURE
        }
    }
}
