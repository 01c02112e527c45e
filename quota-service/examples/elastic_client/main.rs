//! Keeps an elastic task: one worker for each pod that the service gives it, started where it grows and ended where it shrinks.
//!
//! ```sh
//! cargo run --example elastic_client -- --cluster demo --gpu-model A100-SXM4-80GB --id sweep --pods 4 --min-pods 1 -- python worker.py
//! ```
//!
//! A worker finds its place in `HEADROOM_NODE` and `CUDA_VISIBLE_DEVICES`; this example starts all of them here, a launcher
//! would start each on its node. When its pod has to go, its standard input is closed; at the deadline it is killed. Elastic
//! frameworks (torchrun, Horovod) go on with the workers that are left. When all workers end by themselves, the task is finished.

mod client;

use clap::Parser;
use client::{Client, ClientError, Place, named, places, until};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// Keep an elastic task of a Headroom service, with one worker for each of its pods
#[derive(Debug, Parser)]
struct Arguments {
    /// URL of the service
    #[arg(long, default_value = "http://127.0.0.1:8080")]
    api: String,
    #[arg(long)]
    cluster: String,
    #[arg(long)]
    gpu_model: String,
    /// Name of the task
    #[arg(long)]
    id: String,
    #[arg(long, default_value = "org-000")]
    organization: String,
    /// Pods that it asks for, with one GPU each
    #[arg(long)]
    pods: u32,
    /// Pods without which it does not run
    #[arg(long, default_value_t = 1)]
    min_pods: u32,
    #[arg(long)]
    guarantee_hours: Option<u64>,
    /// Command of the worker
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

/// How often the task is read even without an event.
const READ_EVERY: Duration = Duration::from_secs(5);
const TURN: Duration = Duration::from_millis(100);
/// Time for a worker whose place is gone before the event with its deadline arrived.
const NO_DEADLINE: Duration = Duration::from_secs(30);

/// A worker, and its deadline once it has to end.
struct Worker {
    child: Child,
    ends_by: Option<Instant>,
}

struct Workers {
    command: Vec<String>,
    by_place: BTreeMap<Place, Worker>,
    /// Earliest start on a new place: until then another task saves its checkpoint there.
    not_before: BTreeMap<Place, Instant>,
    /// Workers that have ended by themselves, with success.
    done: usize,
}

impl Workers {
    /// Asks the workers of these places to end by a deadline; a later call replaces the deadline.
    fn end(&mut self, places: impl IntoIterator<Item = Place>, by: Instant) {
        for place in places {
            let Some(worker) = self.by_place.get_mut(&place) else { continue };
            if worker.ends_by.replace(by).is_none() {
                println!("stops {place}");
                // Its standard input ends.
                drop(worker.child.stdin.take());
            }
        }
    }

    /// Applies an event to the places.
    fn apply(&mut self, event: &Value) {
        let at = Instant::now() + until(&event["deadline"]);
        match event["kind"].as_str() {
            Some("shrunk") => self.end(named(event), at),
            Some("evicted") => self.end(self.by_place.keys().cloned().collect::<Vec<_>>(), at),
            Some("grown") => self.not_before.extend(named(event).into_iter().map(|place| (place, at))),
            _ => {}
        }
    }

    /// Starts workers on new places, and ends those whose place is gone.
    fn match_places(&mut self, task: &Value) -> std::io::Result<()> {
        let wanted: BTreeSet<Place> = places(task).into_iter().collect();
        let gone = self.by_place.iter().filter(|(place, worker)| !wanted.contains(place) && worker.ends_by.is_none());
        let gone: Vec<Place> = gone.map(|(place, _)| place.clone()).collect();
        self.end(gone, Instant::now() + NO_DEADLINE);
        let starts = Instant::now() + until(&task["detail"]["run"]["starts"]);
        self.not_before.retain(|place, at| wanted.contains(place) && *at > Instant::now());
        for place in wanted.into_iter().filter(|_| self.done == 0) {
            let is_early = starts > Instant::now() || self.not_before.contains_key(&place);
            if is_early || self.by_place.contains_key(&place) {
                continue;
            }
            println!("starts {place}");
            let gpus: Vec<String> = place.gpus.iter().map(u64::to_string).collect();
            let child = Command::new(&self.command[0])
                .args(&self.command[1..])
                .env("HEADROOM_NODE", &place.node)
                .env("CUDA_VISIBLE_DEVICES", gpus.join(","))
                .stdin(Stdio::piped())
                .spawn()?;
            self.by_place.insert(place, Worker { child, ends_by: None });
        }
        Ok(())
    }

    /// Removes ended workers, and kills those past their deadline. Returns whether one failed by itself.
    fn reap(&mut self) -> std::io::Result<bool> {
        let (mut failed, mut gone) = (false, Vec::new());
        for (place, worker) in &mut self.by_place {
            if let Some(status) = worker.child.try_wait()? {
                println!("stopped {place}");
                gone.push(place.clone());
                if worker.ends_by.is_none() {
                    self.done += usize::from(status.success());
                    failed |= !status.success();
                }
            } else if worker.ends_by.is_some_and(|at| Instant::now() >= at) {
                worker.child.kill()?;
            }
        }
        for place in gone {
            self.by_place.remove(&place);
        }
        Ok(failed)
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        // No worker may go on with GPUs that another task gets.
        for worker in self.by_place.values_mut() {
            let _ = worker.child.kill();
            let _ = worker.child.wait();
        }
    }
}

/// Passes events of the task on, and resumes after the last one when the service is back.
fn listen(client: &Client, task: &str, events: &Sender<Value>) {
    let mut last = "0.0".to_owned();
    loop {
        let read = client.events(&mut last, |event| event["task"] != task || events.send(event.clone()).is_ok());
        if let Err(fault) = read {
            eprintln!("{fault}: trying again");
        }
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// Whether a request that failed is worth another try.
const fn passes(fault: &ClientError) -> bool {
    matches!(fault, ClientError::Unreachable(_) | ClientError::Refused { status: 429 | 500.., .. })
}

fn keep(arguments: &Arguments, client: &Client, events: &Receiver<Value>) -> Result<bool, Box<dyn std::error::Error>> {
    let (by_place, not_before) = (BTreeMap::new(), BTreeMap::new());
    let mut workers = Workers { command: arguments.command.clone(), by_place, not_before, done: 0 };
    let mut read_at = None::<Instant>;
    loop {
        let mut is_due = read_at.is_none_or(|at| at.elapsed() >= READ_EVERY);
        match events.recv_timeout(TURN) {
            Ok(event) => {
                is_due = true;
                workers.apply(&event);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err("the thread that reads events has ended".into()),
        }
        if is_due {
            match client.task(&arguments.id) {
                Ok(task) if ["finished", "deleted"].contains(&task["status"].as_str().unwrap_or_default()) => {
                    return Ok(true);
                }
                Ok(task) => workers.match_places(&task)?,
                // Workers go on: no other task gets their GPUs meanwhile.
                Err(fault) if passes(&fault) => eprintln!("{fault}: trying again"),
                Err(fault) => return Err(fault.into()),
            }
            read_at = Some(Instant::now());
        }
        if workers.reap()? {
            client.delete(&arguments.id)?;
            return Ok(false);
        }
        if workers.done > 0 && workers.by_place.is_empty() {
            match client.report(&arguments.id, "finish") {
                Ok(_) => {
                    println!("finished");
                    return Ok(true);
                }
                // It was evicted at that very moment: what is done is done.
                Err(ClientError::Refused { status: 409, .. }) => {
                    client.delete(&arguments.id)?;
                    return Ok(true);
                }
                Err(fault) if passes(&fault) => eprintln!("{fault}: trying again"),
                Err(fault) => return Err(fault.into()),
            }
        }
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let client = Client::new(&arguments.api, &arguments.cluster, &arguments.gpu_model);
    let body = json!({
        "cluster": arguments.cluster, "gpu_model": arguments.gpu_model, "id": arguments.id,
        "organization": arguments.organization, "class": "spot", "gpus_per_pod": 1, "pods": arguments.pods,
        "guarantee_hours": arguments.guarantee_hours, "elastic": { "min_pods": arguments.min_pods },
    });
    if let Err(fault) = client.submit(&body) {
        eprintln!("{fault}");
        return ExitCode::FAILURE;
    }
    let (sender, events) = channel();
    let (listener, task) = (client.clone(), arguments.id.clone());
    std::thread::spawn(move || listen(&listener, &task, &sender));
    match keep(&arguments, &client, &events) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => {
            eprintln!("a worker failed: the task is deleted");
            ExitCode::FAILURE
        }
        Err(fault) => {
            eprintln!("{fault}");
            ExitCode::FAILURE
        }
    }
}
