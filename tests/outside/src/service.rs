//! The programs as child processes.

use crate::http::{Client, Request};
use crate::places::{Database, Folder, run};
use crate::{Outcome, options::Options};
use serde_json::{Value, json};
use std::fmt::Write;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The pool that every campaign attacks.
pub const CLUSTER: &str = "field";
pub const GPU_MODEL: &str = "A100";
pub const POOL: &str = "cluster=field&gpu_model=A100";
pub const POOL_ID: &str = "field:A100";
/// A lease, four times.
const LEASE_LIMIT: Duration = Duration::from_secs(20);

/// The needs of a service: programs, a database with a history and a run, a folder for logs.
pub struct World {
    pub folder: Folder,
    pub database: Database,
    programs: PathBuf,
}

impl World {
    /// Ten days of usage of two organizations and a run that serves.
    pub fn new(options: &Options, kind: &'static str) -> Outcome<Self> {
        let folder = Folder::new()?;
        let database = Database::new(kind, &folder)?;
        Self::with(options, folder, database)
    }

    pub fn with(options: &Options, folder: Folder, database: Database) -> Outcome<Self> {
        let world = Self { folder, database, programs: options.programs.clone() };
        let usage = world.folder.0.join("usage.csv");
        std::fs::write(&usage, history()).map_err(|fault| format!("{}: {fault}", usage.display()))?;
        let usage = usage.to_string_lossy().into_owned();
        let ingest = ["ingest", "--format", "usage", &usage, "--time-zone", "UTC", "--capacity", "128"];
        run(&mut world.program("datasets", &ingest))?;
        run(&mut world.program("train", &["--horizon", "4h"]))?;
        Ok(world)
    }

    /// A program with no settings but the database.
    fn program(&self, name: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.programs.join(name));
        for (variable, _) in std::env::vars_os() {
            let name = variable.to_string_lossy();
            if name.starts_with("HEADROOM_") || name == "DATABASE_URL" {
                command.env_remove(&variable);
            }
        }
        command.env("HEADROOM_DATABASE", &self.database.url).current_dir(&self.folder.0);
        command.args(arguments).stdin(Stdio::null());
        command
    }

    /// The value of a setting of the service, where it has it.
    pub fn setting(&self, name: &str) -> Option<String> {
        let shown = run(&mut self.program("quota-service", &["config", "show"])).ok()?;
        let line = shown.lines().find(|line| line.split([' ', '=']).next() == Some(name))?;
        let value = line[name.len()..].trim_start_matches([' ', '=']);
        Some(value.split_whitespace().next().unwrap_or_default().trim_matches('"').to_owned())
    }

    /// Starts the service, with variables of its environment, and waits until it is ready.
    pub fn serve(&self, settings: &[(&str, &str)]) -> Outcome<Service> {
        let log = self.folder.0.join("service.log");
        let file = std::fs::OpenOptions::new().create(true).append(true).open(&log);
        let file = file.map_err(|fault| format!("{}: {fault}", log.display()))?;
        let mut command = self.program("quota-service", &["--listen", "127.0.0.1:0", "--json"]);
        command.envs(settings.iter().copied()).stdout(Stdio::piped()).stderr(file);
        let mut child = command.spawn().map_err(|fault| format!("quota-service: {fault}"))?;
        let stdout = child.stdout.take().ok_or("stdout is no pipe")?;
        let mut service = Service { child, stdout: BufReader::new(stdout), address: String::new(), log };
        let mut line = String::new();
        service.stdout.read_line(&mut line).map_err(|fault| fault.to_string())?;
        let announced: Value = serde_json::from_str(&line).unwrap_or(Value::Null);
        let Some(address) = announced["listening"].as_str() else {
            return Err(format!("quota-service does not listen: {}", service.log_end()));
        };
        address.clone_into(&mut service.address);
        let ready = service
            .wait_for(Duration::from_secs(30), |client| client.get("/readyz").is_ok_and(|answer| answer.is_success()));
        if ready.is_none() {
            return Err(format!("quota-service is not ready after 30 s: {}", service.log_end()));
        }
        Ok(service)
    }
}

/// A service that runs, killed with this value.
pub struct Service {
    child: Child,
    stdout: BufReader<ChildStdout>,
    pub address: String,
    log: PathBuf,
}

impl Service {
    pub fn client(&self, patience_s: u64) -> Client {
        Client::new(&self.address, Duration::from_secs(patience_s))
    }

    /// Asks until it holds; the seconds that it took, or `None` after `limit`.
    pub fn wait_for(&self, limit: Duration, mut holds: impl FnMut(&mut Client) -> bool) -> Option<f64> {
        let started = Instant::now();
        let mut client = self.client(10);
        loop {
            if holds(&mut client) {
                return Some(started.elapsed().as_secs_f64());
            }
            if started.elapsed() > limit {
                return None;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Waits until the lease of a service that was killed before has run out, so that this one decides.
    pub fn leads(&self) -> Outcome<()> {
        let target = format!("/v1/pools/{POOL_ID}/snapshot");
        let leads = |client: &mut Client| client.get(&target).is_ok_and(|answer| answer.is_success());
        match self.wait_for(LEASE_LIMIT, leads) {
            Some(_) => Ok(()),
            None => Err(format!("the service does not decide after {LEASE_LIMIT:?}: {}", self.log_end())),
        }
    }

    /// A pool that places tasks: nodes of eight GPUs, and a task that comes and goes.
    pub fn with_nodes(&self, nodes: usize) -> Outcome<()> {
        let mut client = self.client(30);
        for node in 0..nodes {
            let answer = client.send(&put_node(&format!("base-{node}"), 8))?;
            if !answer.is_success() {
                return Err(format!("PUT /v1/nodes/base-{node}: {}", answer.summary()));
            }
        }
        let first = client.send(&post_task(&task("base", "hp", 1.0, 1)))?;
        if first.status == 409 {
            // A pool that another scheduler places until an admin says otherwise.
            let target = format!("/v1/pools/{POOL_ID}/settings");
            client.send(&Request::with_json("PUT", target, &json!({"placed_by": "headroom"})))?;
        }
        let again = if first.is_success() { first } else { client.send(&post_task(&task("base", "hp", 1.0, 1)))? };
        if !again.is_success() {
            return Err(format!("POST /v1/tasks: {}", again.summary()));
        }
        client.send(&Request::new("DELETE", format!("/v1/tasks/base?{POOL}")))?;
        Ok(())
    }

    pub fn rss_mib(&self) -> f64 {
        self.memory_mib("VmRSS:")
    }

    /// The most that it was.
    pub fn peak_mib(&self) -> f64 {
        self.memory_mib("VmHWM:")
    }

    fn memory_mib(&self, name: &str) -> f64 {
        let status = self.proc("status");
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        let kib = line.split_whitespace().next().and_then(|kib| kib.parse::<f64>().ok());
        kib.unwrap_or(0.0) / 1024.0
    }

    /// Ended by itself: what has ended holds no memory.
    pub fn is_gone(&self) -> bool {
        self.rss_mib() == 0.0
    }

    /// Seconds that the service has computed.
    pub fn cpu_s(&self) -> f64 {
        let stat = self.proc("stat");
        let after_name = stat.rsplit_once(')').map_or("", |(_, after)| after);
        let ticks = after_name.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok());
        ticks.sum::<f64>() / 100.0
    }

    /// Files and connections that are open.
    pub fn open_files(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.child.id())).map_or(0, Iterator::count)
    }

    fn proc(&self, file: &str) -> String {
        std::fs::read_to_string(format!("/proc/{}/{file}", self.child.id())).unwrap_or_default()
    }

    pub fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    pub fn kill(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }

    pub fn terminate(&self) -> Outcome<()> {
        run(Command::new("kill").args(["-TERM", &self.child.id().to_string()])).map(drop)
    }

    /// Seconds until it has ended, or `None` after `limit`.
    pub fn wait_for_end(&mut self, limit: Duration) -> Option<f64> {
        let started = Instant::now();
        while started.elapsed() < limit {
            if self.has_ended() {
                return Some(started.elapsed().as_secs_f64());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        None
    }

    pub fn log_end(&self) -> String {
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        let is_end = |line: &&str| line.contains("panicked at") || line.contains("memory allocation of");
        if let Some(end) = log.lines().find(is_end) {
            return end.to_owned();
        }
        let lines: Vec<&str> = log.lines().rev().take(3).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join(" | ")
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.kill();
    }
}

pub fn put_node(id: &str, gpus: u64) -> Request {
    let body = json!({"cluster": CLUSTER, "gpu_model": GPU_MODEL, "gpus": gpus});
    Request::with_json("PUT", format!("/v1/nodes/{id}"), &body)
}

pub fn task(id: &str, class: &str, gpus_per_pod: f64, pods: u64) -> Value {
    json!({"cluster": CLUSTER, "gpu_model": GPU_MODEL, "id": id, "organization": "vision", "class": class,
        "gpus_per_pod": gpus_per_pod, "pods": pods})
}

pub fn post_task(task: &Value) -> Request {
    Request::with_json("POST", "/v1/tasks", task)
}

pub fn unix_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// A time as RFC 3339 in UTC (civil-from-days of Howard Hinnant).
pub fn rfc3339(unix_s: u64) -> String {
    let (days, second) = (unix_s / 86_400 + 719_468, unix_s % 86_400);
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second % 3600 / 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Start of the hour that is `ago` hours back.
pub fn hour_ago(ago: u64) -> String {
    rfc3339((unix_s() / 3600 - ago) * 3600)
}

fn history() -> String {
    let mut rows = "hour,cluster,gpu_model,organization,demand_gpus\n".to_owned();
    for ago in (1..=240).rev() {
        let hour = hour_ago(ago);
        let wave = ago % 24;
        for (organization, demand) in [("vision", 8 + wave), ("speech", 16)] {
            let written = writeln!(rows, "{hour},{CLUSTER},{GPU_MODEL},{organization},{demand}");
            written.expect("a string takes every line");
        }
    }
    rows
}
