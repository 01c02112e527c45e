//! Keeps an elastic task: one worker for each pod that the service gives it, started where it grows and ended where it shrinks.
//!
//! ```sh
//! cargo run --example elastic_client -- --cluster demo --gpu-model A100-SXM4-80GB --id sweep --pods 4 --min-pods 1 -- python worker.py
//! ```
//!
//! A worker finds its place in `HEADROOM_NODE` and `CUDA_VISIBLE_DEVICES`; this example starts all of them here, a launcher
//! would start each on its node. When its pod has to go, its standard input is closed; at the deadline it is killed. Elastic
//! frameworks (torchrun, Horovod) go on with the workers that are left. When all workers end by themselves, the task is finished.

mod places;

use clap::Parser;
use headroom_client::wire::{
    ElasticBody, EventBody, EventKindBody, TaskAnswer, TaskBody, TaskClassBody, TaskStatusBody,
};
use headroom_client::{Client, ClientError, Options, Pool, ServiceUrl};
use places::{Place, places, places_of, until};
use std::collections::{BTreeMap, BTreeSet};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::timeout;

/// Keep an elastic task of a Headroom service, with one worker for each of its pods
#[derive(Debug, Parser)]
struct Arguments {
    /// URL of the service
    #[arg(long, default_value_t)]
    api: ServiceUrl,
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
/// Longest wait for an answer; then the request is tried again.
const PATIENCE: Duration = Duration::from_secs(5);
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
    fn apply(&mut self, event: &EventBody) {
        let at = Instant::now() + until(event.deadline.as_deref());
        let named = places_of(&event.places);
        match event.kind {
            EventKindBody::Shrunk => self.end(named, at),
            EventKindBody::Evicted => self.end(self.by_place.keys().cloned().collect::<Vec<_>>(), at),
            EventKindBody::Grown => self.not_before.extend(named.into_iter().map(|place| (place, at))),
            _ => {}
        }
    }

    /// Starts workers on new places, and ends those whose place is gone.
    fn match_places(&mut self, task: &TaskAnswer) -> std::io::Result<()> {
        let wanted: BTreeSet<Place> = places(task).into_iter().collect();
        let gone = self.by_place.iter().filter(|(place, worker)| !wanted.contains(place) && worker.ends_by.is_none());
        let gone: Vec<Place> = gone.map(|(place, _)| place.clone()).collect();
        self.end(gone, Instant::now() + NO_DEADLINE);
        let starts = Instant::now() + until(task.detail.run.as_ref().map(|run| run.starts.as_str()));
        self.not_before.retain(|place, at| wanted.contains(place) && *at > Instant::now());
        for place in wanted.into_iter().filter(|_| self.done == 0) {
            let is_early = starts > Instant::now() || self.not_before.contains_key(&place);
            if is_early || self.by_place.contains_key(&place) {
                continue;
            }
            println!("starts {place}");
            let child = Command::new(&self.command[0])
                .args(&self.command[1..])
                .env("HEADROOM_NODE", &place.node)
                .env("CUDA_VISIBLE_DEVICES", place.joined(","))
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

/// Passes events of the task on, and continues after the last one when the service is back.
async fn listen(pool: Pool, task: String, sender: UnboundedSender<EventBody>) {
    let mut events = pool.events(Some("0.0".to_owned()));
    loop {
        match events.next().await {
            Ok(event) if event.task.as_deref() != Some(task.as_str()) => {}
            Ok(event) => {
                if sender.send(event).is_err() {
                    return;
                }
            }
            Err(fault) => eprintln!("{fault}: trying again"),
        }
    }
}

async fn keep(
    arguments: &Arguments,
    pool: &Pool,
    events: &mut UnboundedReceiver<EventBody>,
) -> Result<bool, Box<dyn std::error::Error>> {
    let (by_place, not_before) = (BTreeMap::new(), BTreeMap::new());
    let mut workers = Workers { command: arguments.command.clone(), by_place, not_before, done: 0 };
    let mut read_at = None::<Instant>;
    loop {
        let mut is_due = read_at.is_none_or(|at| at.elapsed() >= READ_EVERY);
        if let Ok(event) = timeout(TURN, events.recv()).await {
            is_due = true;
            workers.apply(&event.ok_or("the reader of events has ended")?);
        }
        if is_due {
            match pool.task(&arguments.id).await {
                Ok(task) if matches!(task.status, TaskStatusBody::Finished | TaskStatusBody::Deleted) => {
                    return Ok(true);
                }
                Ok(task) => workers.match_places(&task)?,
                // Workers go on: no other task gets their GPUs meanwhile.
                Err(fault) if fault.is_transient() => eprintln!("{fault}: trying again"),
                Err(fault) => return Err(fault.into()),
            }
            read_at = Some(Instant::now());
        }
        if workers.reap()? {
            pool.delete(&arguments.id).await?;
            return Ok(false);
        }
        if workers.done > 0 && workers.by_place.is_empty() {
            match pool.finish(&arguments.id).await {
                Ok(_) => {
                    println!("finished");
                    return Ok(true);
                }
                // It was evicted at that very moment: what is done is done.
                Err(fault) if fault.status() == Some(409) => {
                    pool.delete(&arguments.id).await?;
                    return Ok(true);
                }
                Err(fault) if fault.is_transient() => eprintln!("{fault}: trying again"),
                Err(fault) => return Err(fault.into()),
            }
        }
    }
}

fn task(arguments: &Arguments) -> TaskBody {
    TaskBody {
        cluster: arguments.cluster.clone(),
        gpu_model: arguments.gpu_model.clone(),
        id: arguments.id.clone(),
        organization: arguments.organization.clone(),
        class: TaskClassBody::Spot,
        gpus_per_pod: 1.0,
        pods: arguments.pods,
        cpu_milli: 0,
        memory_mib: 0,
        guarantee_hours: arguments.guarantee_hours,
        affinity: None,
        elastic: Some(ElasticBody { min_pods: arguments.min_pods, max_pods: None, speeds: None }),
    }
}

async fn run(arguments: &Arguments) -> Result<bool, Box<dyn std::error::Error>> {
    let client = Client::new(Options { url: arguments.api.clone(), limit: PATIENCE, ..Options::default() })?;
    client.submit(&task(arguments)).await.map_err(|fault: ClientError| fault.to_string())?;
    let pool = client.pool(&arguments.cluster, &arguments.gpu_model);
    let (sender, mut events) = unbounded_channel();
    tokio::spawn(listen(pool.clone(), arguments.id.clone(), sender));
    keep(arguments, &pool, &mut events).await
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run(&Arguments::parse()).await {
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
