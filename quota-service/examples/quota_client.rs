//! Polls the quota of a pool, and says each new one: what a scheduler needs of the service before it admits spot tasks.
//!
//! ```sh
//! cargo run --example quota_client -- --cluster demo --gpu-model A100-SXM4-80GB --hours 4
//! ```
//!
//! It asks with the tag of what it has seen and waits for another answer; where the service is away or busy it tries again,
//! and after `valid_until` it admits nothing new. `deploy/clients` has the same for a shell and for Python.

use clap::Parser;
use serde_json::Value;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Print each new quota of a pool of a Headroom service
#[derive(Debug, Parser)]
struct Arguments {
    /// Where the service listens
    #[arg(long, default_value = "http://127.0.0.1:8080")]
    api: String,
    #[arg(long)]
    cluster: String,
    #[arg(long)]
    gpu_model: String,
    /// How long spot tasks are promised to run
    #[arg(long, default_value_t = 1)]
    hours: u8,
    /// File with a token, read at each request; without, none is sent
    #[arg(long)]
    token_file: Option<PathBuf>,
    /// End after so many answers; 0: never
    #[arg(long, default_value_t = 0)]
    count: u64,
}

/// How long the service holds a request whose answer is still the one that was seen.
const WAIT_S: u64 = 30;
/// For the way there and back beside.
const PATIENCE: Duration = Duration::from_secs(WAIT_S + 15);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Why there is no new quota.
#[derive(Debug, thiserror::Error)]
enum PollError {
    #[error("the service does not answer: {0}")]
    Unreachable(#[from] ureq::Error),
    #[error("the service answers {status}")]
    Busy { status: u16, retry_after: Option<Duration> },
    #[error("the service answers {status}: {detail}")]
    Refused { status: u16, detail: String },
    #[error("{path}: {fault}")]
    Token { path: PathBuf, fault: std::io::Error },
}

impl PollError {
    /// When to try again; never where that would not help.
    fn pause(&self, next: Duration) -> Option<Duration> {
        match self {
            Self::Unreachable(_) => Some(next),
            Self::Busy { retry_after, .. } => Some(retry_after.unwrap_or(next)),
            Self::Refused { .. } | Self::Token { .. } => None,
        }
    }
}

/// A quota, and the tag that it is asked again by.
struct Quota {
    etag: String,
    body: Value,
}

impl Quota {
    /// GPUs that spot tasks may still take; none once the answer is too old to admit anything on.
    fn available_gpus(&self) -> f64 {
        let until = chrono::DateTime::parse_from_rfc3339(self.body["valid_until"].as_str().unwrap_or_default());
        let is_valid = until.is_ok_and(|until| chrono::Utc::now() < until);
        if is_valid { self.body["available_gpus"].as_f64().unwrap_or(0.0) } else { 0.0 }
    }
}

struct Poller<'a> {
    agent: ureq::Agent,
    arguments: &'a Arguments,
}

impl<'a> Poller<'a> {
    fn new(arguments: &'a Arguments) -> Self {
        let config = ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(PATIENCE));
        Self { agent: config.build().into(), arguments }
    }

    fn token(&self) -> Result<Option<String>, PollError> {
        let Some(path) = &self.arguments.token_file else { return Ok(None) };
        let text = std::fs::read_to_string(path);
        text.map(|text| Some(text.trim().to_owned())).map_err(|fault| PollError::Token { path: path.clone(), fault })
    }

    /// Another quota than `seen`, or none within a while.
    fn next(&self, seen: Option<&Quota>) -> Result<Option<Quota>, PollError> {
        let arguments = self.arguments;
        let mut request = self
            .agent
            .get(format!("{}/quota", arguments.api.trim_end_matches('/')))
            .query("cluster", &arguments.cluster)
            .query("gpu_model", &arguments.gpu_model)
            .query("hours", arguments.hours.to_string());
        if let Some(seen) = seen {
            request = request.query("wait", format!("{WAIT_S}s")).header("if-none-match", &seen.etag);
        }
        if let Some(token) = self.token()? {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let mut response = request.call()?;
        let status = response.status().as_u16();
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let (etag, retry_after) = (header("etag").unwrap_or_default(), header("retry-after"));
        match status {
            200 => Ok(Some(Quota { etag, body: response.body_mut().read_json()? })),
            304 => Ok(None),
            429 | 500.. => {
                let seconds = retry_after.and_then(|text| text.parse().ok());
                Err(PollError::Busy { status, retry_after: seconds.map(Duration::from_secs) })
            }
            _ => Err(PollError::Refused { status, detail: response.body_mut().read_to_string()? }),
        }
    }
}

fn poll(arguments: &Arguments) -> Result<(), PollError> {
    let poller = Poller::new(arguments);
    let (mut seen, mut received, mut pause) = (None::<Quota>, 0, Duration::from_secs(1));
    while arguments.count == 0 || received < arguments.count {
        match poller.next(seen.as_ref()) {
            Ok(Some(quota)) => {
                println!("{}", quota.body);
                (received, pause, seen) = (received + 1, Duration::from_secs(1), Some(quota));
            }
            Ok(None) => {
                pause = Duration::from_secs(1);
                // A service that stops answers at once.
                std::thread::sleep(pause);
            }
            Err(fault) => {
                let Some(wait) = fault.pause(pause) else { return Err(fault) };
                let admits = seen.as_ref().map_or(0.0, Quota::available_gpus);
                eprintln!("{fault}: again in {} s; until then {admits} GPUs may be admitted", wait.as_secs());
                std::thread::sleep(wait);
                pause = (2 * pause).min(LONGEST_PAUSE);
            }
        }
    }
    Ok(())
}

fn main() -> ExitCode {
    match poll(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            eprintln!("{fault}");
            ExitCode::FAILURE
        }
    }
}
