//! The decisions of one turn of a writer: pure but for the log.

use super::call::{Decided, Message, Order, Queued, TaskCall};
use super::error::EngineError;
use super::limits::Limits;
use super::record;
use super::state::{State, first_whole_hour};
use super::tally::Tally;
use super::turn::{Before, Draft};
use super::views;
use accounts::Accounts;
use placement::Decision;
use placement::pool::{Command, Fact, NodeLoss, Pool, Report, Request};
use std::collections::{BTreeMap, BTreeSet};
use store::{AuditRecord, PoolPlacement, TaskRecord, TaskStatus};
use vocab::{Node, NodeId, PlacedBy, PoolId, TaskId, UnixSeconds};
use wire::{PromiseBody, ReasonBody, TaskDetail, TaskExplanation, TaskRun};

/// Rows of the store that a turn needs for its decisions.
#[derive(Default)]
pub struct TurnReads {
    /// Tasks that the pool no longer has.
    pub records: BTreeMap<TaskId, TaskRecord>,
    /// Nodes of the pool, where they have changed.
    pub nodes: Option<Vec<Node>>,
}

/// One turn: the pool, the rows that were read for it, and the writes that it leads to.
pub struct TurnContext<'a> {
    pub now: UnixSeconds,
    pub state: &'a mut State,
    pub draft: Draft<'a>,
    pub tally: Tally,
    pub reads: TurnReads,
    /// Why nothing is promised in this turn, where a renewal is awaited.
    pub held: Option<String>,
}

impl TurnContext<'_> {
    /// Answers call by call, each on the pool as the calls before have left it, under the limits of the quotas served.
    pub fn answer_all(&mut self, queued: &mut [Queued], limits: Limits) {
        let limits = self.announce_limits(limits);
        self.take_in_nodes(queued);
        self.take_limits(limits);
        for Queued { message, audit } in queued {
            self.answer(message, audit.as_ref());
        }
    }

    fn answer(&mut self, message: &mut Message, audit: Option<&AuditRecord>) {
        match message {
            Message::Task(call, reply) => {
                let answer = self.task(call.clone());
                if let (Ok(decided), Some(entry)) = (&answer, audit) {
                    self.draft.audit(entry.clone(), Some(decided));
                }
                reply.keep(answer);
            }
            Message::Order(order, reply) => {
                let answer = self.order(order.clone());
                self.note(answer.is_ok(), audit);
                reply.keep(answer);
            }
            Message::State(reply) => reply.keep(Ok(self.placed())),
            Message::Accounts(reply) => reply.keep(Ok(self.accounted())),
            Message::Facts(read, reply) => reply.keep(self.facts(read)),
            Message::Explain(id, reply) => reply.keep(self.explain(id)),
            Message::Snapshot(reply) => reply.keep(Ok(self.state.pool.snapshot())),
            Message::Tasks(query, reply) => reply.keep(Ok(views::tasks(self.state, query))),
            Message::Nodes(reply) => reply.keep(Ok(views::nodes(&self.state.pool))),
            Message::Shares(reply) => reply.keep(Ok(views::shares(&mut self.state.pool))),
        }
    }

    fn note(&mut self, is_done: bool, audit: Option<&AuditRecord>) {
        if let Some(entry) = audit.filter(|_| is_done) {
            self.draft.audit(entry.clone(), None);
        }
    }

    fn task(&mut self, call: TaskCall) -> Result<Decided, EngineError> {
        match call {
            TaskCall::Submit(request) => self.submit(request),
            TaskCall::Finish(id) => self.change(&id, &Command::Finish { task: id.clone() }, TaskStatus::Finished),
            TaskCall::Delete(id) => self.change(&id, &Command::Delete { task: id.clone() }, TaskStatus::Deleted),
            TaskCall::Checkpoint(id) => self.change(&id, &Command::Save { task: id.clone() }, TaskStatus::Running),
            TaskCall::Speed(id, pods, speed_thousandths) => {
                let measure = Command::Measure { task: id.clone(), pods, speed_thousandths };
                self.change(&id, &measure, TaskStatus::Running)
            }
            TaskCall::DryRun(request) => {
                self.admit(&request)?;
                Ok(self.dry_run(&request))
            }
            TaskCall::Shadow(id) => {
                let shadow = self.state.shadow.as_mut();
                let record = shadow.and_then(|pool| record::of_pool(pool, &id, None, Vec::new()));
                let record = record.ok_or(EngineError::UnknownTask { task: id })?;
                Ok(Decided { record, is_shadow: true })
            }
        }
    }

    fn order(&mut self, order: Order) -> Result<(), EngineError> {
        match order {
            Order::SetLimits(limits) => Ok(self.done(&Command::SetLimits(limits))?),
            Order::Settings(settings) => {
                self.state.set(*settings);
                Ok(())
            }
            Order::PlacedBy(placement) => self.place_by(placement),
            // The nodes were taken in, or removed, before the first call.
            Order::TakeInNodes | Order::RemoveNode(..) => Ok(()),
            Order::Announce(moved) => {
                self.done(&Command::Pass)?;
                self.draft.moved(&self.state.pool, moved);
                Ok(())
            }
            Order::Windows { windows, by } => self.sell(windows, by),
            Order::Pass => Ok(self.done(&Command::Pass)?),
        }
    }

    pub(super) fn done(&mut self, command: &Command) -> Result<(), placement::pool::Fault> {
        self.state.follow(self.now, command);
        self.command(command).map(drop)
    }

    /// Lets the pool decide, and keeps what followed: also from time, where the command itself is refused.
    pub(super) fn command(&mut self, command: &Command) -> Result<Report, placement::pool::Fault> {
        let before = match command {
            Command::Finish { task } | Command::Delete { task } => Before::of(&self.state.pool, task),
            _ => None,
        };
        let rests = self.state.pool.rests();
        let (report, done) = self.state.pool.handle(self.now, command);
        self.state.accounts.take(&self.state.pool, &report);
        let days = self.state.accounts.finished();
        if self.state.side() == Some(PlacedBy::Headroom) {
            self.draft.days(days);
        }
        self.tally.add(&self.state.pool, &report, &mut self.state.queued, rests);
        let at = self.state.pool.now();
        let begun = report.facts.iter().find_map(|fact| first_whole_hour(fact, at));
        self.state.measured_from = self.state.measured_from.or(begun);
        let measured = self.state.measured();
        self.draft.add(&mut self.state.pool, &report, before.as_ref(), measured);
        done.map(|()| report)
    }

    fn submit(&mut self, request: Request) -> Result<Decided, EngineError> {
        let id = request.gang.task.clone();
        if let Some(record) = self.present(&id).or_else(|| self.reads.records.get(&id).cloned()) {
            return if record::is_of(&record, &request) {
                Ok(Decided { record, is_shadow: false })
            } else {
                Err(EngineError::Differs { task: id })
            };
        }
        self.admit(&request)?;
        if self.state.shadow.is_some() {
            return self.in_shadow(&id, &Command::Submit(request));
        }
        if self.state.side().is_none() {
            return Err(EngineError::Undecided);
        }
        self.command(&Command::Submit(request))?;
        self.present(&id).map(real).ok_or(EngineError::UnknownTask { task: id })
    }

    /// Refuses a task that the pool cannot take in any state. In the shadow every side may try tasks.
    pub(super) fn admit(&self, request: &Request) -> Result<(), EngineError> {
        if self.state.shadow.is_none() && self.state.side() == Some(PlacedBy::External) {
            return Err(EngineError::PlacedOutside);
        }
        let (registered, multiple) = (self.state.pool.registered_milli(), self.state.placement.max_request_multiple);
        let asked = u64::from(request.gang.pod.gpus.milli()) * u64::from(request.gang.pods);
        // A pool that has lost all its nodes says nothing about what is too large.
        if registered > 0 && asked > registered.saturating_mul(u64::from(multiple)) {
            return Err(EngineError::TooLarge { asked_milli: asked, registered_milli: registered, multiple });
        }
        Ok(())
    }

    fn place_by(&mut self, placement: Option<PoolPlacement>) -> Result<(), EngineError> {
        let pool = &self.state.pool;
        let tasks = pool.waiting().count() + pool.fleet().tasks().len();
        let leaves = placement.as_ref().is_some_and(|placement| placement.placed_by == PlacedBy::External);
        if leaves && tasks > 0 {
            return Err(EngineError::OpenTasks { tasks: tasks as u64 });
        }
        if placement.as_ref().is_some_and(|placement| placement.placed_by == PlacedBy::Headroom) {
            // Until now another scheduler had the GPUs. The snapshot after this turn has the new accounts.
            self.state.accounts = Accounts::begin(&self.state.pool);
            self.state.facts = u64::MAX;
        }
        self.state.placed_by = placement;
        Ok(())
    }

    /// A task as this turn or an earlier one has left it.
    fn present(&mut self, id: &TaskId) -> Option<TaskRecord> {
        let drafted = self.draft.tasks.get(id).cloned();
        drafted.or_else(|| record::of_pool(&mut self.state.pool, id, None, Vec::new()))
    }

    /// A task ends, or saves its work. Repeated, it is answered as it was.
    fn change(&mut self, id: &TaskId, command: &Command, wanted: TaskStatus) -> Result<Decided, EngineError> {
        let is_there = self.state.pool.running(id).is_some() || self.state.pool.waiting_task(id).is_some();
        if is_there {
            self.command(command)?;
            self.state.follow(self.now, command);
            return self.present(id).map(real).ok_or_else(|| EngineError::UnknownTask { task: id.clone() });
        }
        match self.present(id).or_else(|| self.reads.records.get(id).cloned()) {
            Some(record) if record.status == wanted => Ok(real(record)),
            Some(record) => Err(EngineError::HasEnded { task: id.clone(), status: record.status }),
            None if self.state.shadow.is_some() => self.in_shadow(id, command),
            None => Err(EngineError::UnknownTask { task: id.clone() }),
        }
    }

    /// Decides, logs, and does nothing.
    fn in_shadow(&mut self, id: &TaskId, command: &Command) -> Result<Decided, EngineError> {
        let shadow = self.state.shadow.as_mut().ok_or_else(|| EngineError::UnknownTask { task: id.clone() })?;
        let before = Before::of(shadow, id);
        let (report, done) = shadow.handle(self.now, command);
        for fact in &report.facts {
            log_shadow(&self.state.placed.pool, fact);
        }
        done?;
        let ended = |before: Before| {
            let status =
                if matches!(command, Command::Delete { .. }) { TaskStatus::Deleted } else { TaskStatus::Finished };
            record::ended(&before.request, status, before.run, self.now)
        };
        let record = record::of_pool(shadow, id, None, victims(&report, id)).or_else(|| before.map(ended));
        let record = record.ok_or_else(|| EngineError::UnknownTask { task: id.clone() })?;
        Ok(Decided { record, is_shadow: true })
    }

    /// The decision on a task now. Changes nothing.
    fn dry_run(&mut self, request: &Request) -> Decided {
        let pool = self.state.shadow.as_mut().unwrap_or(&mut self.state.pool);
        let mut trial = pool.clone();
        let (report, done) = trial.handle(self.now, &Command::Submit(request.clone()));
        let id = &request.gang.task;
        if done.is_ok()
            && let Some(record) = record::of_pool(&mut trial, id, None, victims(&report, id))
        {
            return Decided { record, is_shadow: true };
        }
        // A task of this name exists: the decision on another one like it.
        let (status, detail) = match pool.decide_on(request) {
            Decision::Start { plan, guarantee } => {
                let at = self.now.to_string();
                let grace_s = if plan.victims.is_empty() { 0 } else { self.state.placement.rules().grace_s };
                let run = TaskRun {
                    since: at.clone(),
                    starts: self.now.plus_s(grace_s).to_string(),
                    places: plan.places.iter().map(|one| record::place_of(pool, *one, &request.gang.pod)).collect(),
                    lent: Vec::new(),
                    saved: at,
                    guarantee: guarantee.map(Into::into),
                };
                let victims = plan.victims.iter().map(ToString::to_string).collect();
                (TaskStatus::Running, TaskDetail { run: Some(run), victims, ..TaskDetail::default() })
            }
            Decision::Wait(refusal) => {
                let waits = ReasonBody { code: refusal.code().to_owned(), detail: refusal.to_string() };
                (TaskStatus::Waiting, TaskDetail { waits: Some(waits), ..TaskDetail::default() })
            }
        };
        Decided { record: record::tried(request, status, &detail, self.now), is_shadow: true }
    }

    fn explain(&mut self, id: &TaskId) -> Result<TaskExplanation, EngineError> {
        let drafted = self.draft.tasks.get(id).cloned();
        let present = drafted.or_else(|| self.reads.records.get(id).cloned());
        let shadow = self.state.shadow.as_mut().filter(|_| present.is_none());
        let is_shadow = shadow.is_some();
        let pool = shadow.unwrap_or(&mut self.state.pool);
        let record = present.or_else(|| record::of_pool(pool, id, None, Vec::new()));
        let record = record.ok_or_else(|| EngineError::UnknownTask { task: id.clone() })?;
        let (record, detail) = record::as_it_waits(pool, record);
        let reason = detail.waits.clone().map_or_else(|| stands(&record, &detail), |why| self.with_cause(why));
        let id = self.state.placed.pool.clone();
        let state = self.state.pool.state(id.clone());
        let promise = |limit: &placement::Limit| PromiseBody {
            hours: limit.hours.get(),
            quota_gpus: limit.quota.as_gpus(),
            promised_gpus: self.state.pool.fleet().promised(limit.hours).as_gpus(),
        };
        Ok(TaskExplanation {
            reason,
            policy: self.state.placement.policy.clone(),
            capacity_gpus: state.capacity.as_gpus(),
            idle_gpus: state.idle.as_gpus(),
            promises: self.state.limits().iter().map(promise).collect(),
            task: record::answer(&id, &Decided { record, is_shadow }),
        })
    }

    /// The nodes of the store become those of the pool, in any order of the calls.
    fn take_in_nodes(&mut self, queued: &[Queued]) {
        let Some(nodes) = self.reads.nodes.take() else { return };
        for node in &nodes {
            for command in differences(&self.state.pool, node) {
                if let Err(fault) = self.done(&command) {
                    tracing::warn!(pool = %self.state.placed.pool, %fault, "the pool refuses a change of a node");
                }
            }
        }
        let stays: BTreeSet<&NodeId> = nodes.iter().map(|node| &node.id).collect();
        let fleet = self.state.pool.fleet().nodes().iter();
        let gone = fleet.filter(|node| !node.is_gone && !stays.contains(&node.id));
        let gone: Vec<NodeId> = gone.map(|node| node.id.clone()).collect();
        let cause_of = |node: &NodeId| {
            queued.iter().find_map(|one| match &one.message {
                Message::Order(Order::RemoveNode(of, cause), _) if of == node => Some(*cause),
                _ => None,
            })
        };
        for node in gone {
            // A node that disappears without a cause has failed.
            let cause = cause_of(&node).unwrap_or(NodeLoss::Failed);
            let _ = self.done(&Command::RemoveNode { node, cause });
        }
    }
}

/// Commands that make a node of the pool that of the store. Its size and topology change when nothing runs on it.
fn differences(pool: &Pool, node: &Node) -> Vec<Command> {
    let id = || node.id.clone();
    let Node { gpus, cpu_milli, memory_mib, ref topology, .. } = *node;
    let add = Command::AddNode { node: id(), gpus, cpu_milli, memory_mib, topology: topology.clone() };
    let open = |is_open| Command::OpenNode { node: id(), is_open };
    let Some(number) = pool.fleet().number_of(&node.id) else {
        return if node.drains { vec![add, open(false)] } else { vec![add] };
    };
    let known = &pool.fleet().nodes()[number];
    let size = (node.gpus as usize, node.cpu_milli.unwrap_or(u64::MAX), node.memory_mib.unwrap_or(u64::MAX));
    let mut commands = Vec::new();
    if (known.gpus.len(), known.cpu_milli, known.memory_mib) != size || known.topology != node.topology {
        if known.hp_milli == 0 && known.spot_milli == 0 && known.lent != 0 {
            // Lent GPUs are called in, with notice; at the next turn nothing runs there.
            return vec![open(false)];
        }
        if known.hp_milli == 0 && known.spot_milli == 0 {
            commands.extend([Command::RemoveNode { node: id(), cause: NodeLoss::Drained }, add]);
            return if node.drains { [commands, vec![open(false)]].concat() } else { commands };
        }
        tracing::warn!(node = %node.id, "the size and topology of the node change when nothing runs on it");
    }
    if known.is_open == node.drains {
        commands.push(open(!node.drains));
    }
    commands
}

const fn real(record: TaskRecord) -> Decided {
    Decided { record, is_shadow: false }
}

fn victims(report: &Report, id: &TaskId) -> Vec<String> {
    let of = |fact: &Fact| match fact {
        Fact::Started { task, victims, .. } if task == id => Some(victims.iter().map(ToString::to_string).collect()),
        _ => None,
    };
    report.facts.iter().find_map(of).unwrap_or_default()
}

fn log_shadow(pool: &PoolId, fact: &Fact) {
    match fact {
        Fact::Started { task, victims, .. } => {
            let victims = victims.len();
            tracing::info!(%pool, %task, victims, "in the shadow: the task would start");
        }
        Fact::Submitted { request } => {
            tracing::info!(%pool, task = %request.gang.task, "in the shadow: a task is submitted");
        }
        other => tracing::debug!(%pool, ?other, "in the shadow"),
    }
}

/// Why a task that does not wait stands as it does.
fn stands(record: &TaskRecord, detail: &TaskDetail) -> ReasonBody {
    let (code, detail) = match (record.status, &detail.run) {
        (TaskStatus::Running, Some(run)) => {
            let promise = if run.guarantee.is_some() { ", inside its guarantee" } else { "" };
            let lent = if run.lent.is_empty() { String::new() } else { format!(" and {} lent ones", run.lent.len()) };
            (
                "placed",
                format!("running on {}{lent} since {}{promise}", vocab::count(run.places.len(), "place"), run.since),
            )
        }
        (status, _) => (status.as_str(), format!("{} since {}", status.as_str(), record.updated)),
    };
    ReasonBody { code: code.to_owned(), detail }
}
