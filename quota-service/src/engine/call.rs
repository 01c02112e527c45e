//! Calls to the writer of a pool. Each call has an answer of its own type, and the way back for it.

use super::error::EngineError;
use super::views::{NodeUse, Shares, TaskCounts, TaskQuery};
use crate::settings::PlacementSettings;
use accounts::{Day, DayAccounts};
use placement::Limit;
use placement::pool::{NodeLoss, Request, Snapshot};
use placement::windows::Windows;
use starts::PoolFacts;
use std::collections::BTreeMap;
use store::{AuditRecord, PoolPlacement, TaskRecord};
use tokio::sync::oneshot;
use vocab::{HpJob, MilliGpus, NodeId, PoolState, ReservedWindow, TaskId, UnixSeconds};
use wire::{ReasonBody, StartSpanBody, TaskExplanation};

/// A call to a writer.
pub trait Call {
    type Answer: Send;

    /// The call as a message of the writer's queue.
    fn message(self, reply: Reply<Self::Answer>) -> Message;

    /// Name of the decision in a trace; `None` for a call that decides nothing.
    fn decides(&self) -> Option<&'static str> {
        None
    }

    /// Outcome of the call in a trace.
    #[must_use]
    fn outcome(_: &Self::Answer) -> &'static str {
        "done"
    }
}

/// A call about one task.
#[derive(Debug, Clone)]
pub enum TaskCall {
    Submit(Request),
    Finish(TaskId),
    Delete(TaskId),
    Checkpoint(TaskId),
    /// Pods, and the speed on them in thousandths of a unit.
    Speed(TaskId, u32, u64),
    /// The decision on a task that is not submitted.
    DryRun(Request),
    /// A task that is decided in the shadow.
    Shadow(TaskId),
}

/// Why a task waits, or stands as it does.
#[derive(Debug, Clone)]
pub struct Explain(pub TaskId);

/// The whole state of the pool.
#[derive(Debug, Clone, Copy)]
pub struct TakeSnapshot;

/// Tasks that wait or run.
#[derive(Debug, Clone)]
pub struct ListTasks(pub TaskQuery);

/// The nodes, and what is allocated on each.
#[derive(Debug, Clone, Copy)]
pub struct ListNodes;

/// How organizations stand under fair shares of spot.
#[derive(Debug, Clone, Copy)]
pub struct ListShares;

/// The pool to cut quota from, if Headroom places it, or if it is undecided and has had tasks.
#[derive(Debug, Clone, Copy)]
pub struct ReadState;

/// The accounts of the days that are not stored yet.
#[derive(Debug, Clone, Copy)]
pub struct ReadAccounts;

/// The facts that starts are forecast from.
#[derive(Debug, Clone, Default)]
pub struct ReadFacts {
    /// A task whose reason to wait is read, too.
    pub task: Option<TaskId>,
    /// Tasks that are not submitted, to be decided on.
    pub asked: Vec<Request>,
}

/// A pool to forecast starts in: in shadow, the pool as it would be.
#[derive(Debug, Clone)]
pub struct Facts {
    pub facts: PoolFacts,
    pub is_shadow: bool,
    /// Why the task waits; none where it does not.
    pub waits: Option<ReasonBody>,
    /// Why each of those that are not submitted would wait; none for one that starts at once.
    pub refusals: Vec<Option<ReasonBody>>,
}

/// A change of the pool that has no answer of its own.
#[derive(Debug, Clone)]
pub enum Order {
    SetLimits(Vec<Limit>),
    /// The nodes of the store are those of the pool.
    TakeInNodes,
    RemoveNode(NodeId, NodeLoss),
    Settings(Box<PlacementSettings>),
    /// The side that places the pool from now on. Refused while tasks are open that the other side would not see.
    PlacedBy(Option<PoolPlacement>),
    /// Announces where waiting tasks are expected to start; those that wait no more are left out.
    Announce(Vec<(TaskId, StartSpanBody)>),
    /// The windows that are sold ahead, in place of all before.
    Windows {
        windows: Vec<ReservedWindow>,
        by: SoldBy,
    },
    /// Time alone.
    Pass,
}

/// Why windows are set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SoldBy {
    /// They are those of the store.
    Store,
    /// One of them is new: refused where promises leave it no room.
    Sale,
    /// As `Sale`, and nothing is kept.
    Trial,
}

/// A task as it was decided.
#[derive(Debug, Clone)]
pub struct Decided {
    pub record: TaskRecord,
    /// Nothing was done.
    pub is_shadow: bool,
}

/// Some tasks of a pool.
#[derive(Debug, Clone)]
pub struct TaskPage {
    pub records: Vec<TaskRecord>,
    /// Number of all tasks that the query fits.
    pub total: u64,
}

/// A pool whose tasks are placed here, to cut quota from.
#[derive(Debug, Clone)]
pub struct Placed {
    pub state: PoolState,
    /// HP GPUs, running and waiting, now.
    pub hp_demand: MilliGpus,
    /// The HP jobs behind it.
    pub hp_jobs: Vec<HpJob>,
    /// Windows that are sold ahead, and their use.
    pub windows: Windows,
    pub tasks: TaskCounts,
    pub nodes: Vec<NodeUse>,
}

/// The accounts of a pool in memory.
#[derive(Debug, Clone, Default)]
pub struct Accounted {
    /// Up to when they are complete.
    pub until: Option<UnixSeconds>,
    /// The days that are not stored yet, the present one last.
    pub days: BTreeMap<Day, DayAccounts>,
}

/// The way back of a call. The answer is kept here until it is durable.
#[derive(Debug)]
pub struct Reply<A> {
    answer: Option<Result<A, EngineError>>,
    sender: oneshot::Sender<Result<A, EngineError>>,
}

impl<A> Reply<A> {
    /// A way back, and where its answer arrives.
    pub fn new() -> (Self, oneshot::Receiver<Result<A, EngineError>>) {
        let (sender, receiver) = oneshot::channel();
        (Self { answer: None, sender }, receiver)
    }

    /// Keeps an answer, in place of one of a turn that was not written.
    pub fn keep(&mut self, answer: Result<A, EngineError>) {
        self.answer = Some(answer);
    }

    /// Sends the answer, which is durable now. The client may have gone; the change stands.
    fn send(self) {
        let answer = self.answer.unwrap_or_else(|| Err(EngineError::stopped()));
        let _ = self.sender.send(answer);
    }

    fn refuse(self, fault: EngineError) {
        let _ = self.sender.send(Err(fault));
    }
}

/// A call with its way back.
#[derive(Debug)]
pub enum Message {
    Task(TaskCall, Reply<Decided>),
    /// Boxed: an explanation is twice as large as any other answer.
    Explain(TaskId, Box<Reply<TaskExplanation>>),
    Snapshot(Reply<Snapshot>),
    Tasks(TaskQuery, Reply<TaskPage>),
    Nodes(Reply<Vec<NodeUse>>),
    Shares(Reply<Option<Shares>>),
    State(Reply<Option<Box<Placed>>>),
    Accounts(Reply<Accounted>),
    Facts(Box<ReadFacts>, Reply<Box<Facts>>),
    Order(Order, Reply<()>),
}

/// A message in the queue of a writer.
#[derive(Debug)]
pub struct Queued {
    pub message: Message,
    /// Audit entry of a change: written in the same transaction.
    pub audit: Option<AuditRecord>,
}

impl Queued {
    /// Time alone, without a caller.
    pub fn pass() -> Self {
        Self { message: Message::Order(Order::Pass, Reply::new().0), audit: None }
    }

    /// Whether the nodes of the store have to be read.
    pub const fn changes_nodes(&self) -> bool {
        matches!(self.message, Message::Order(Order::TakeInNodes | Order::RemoveNode(..), _))
    }

    /// Sends the answer, once it is durable.
    pub fn acknowledge(self) {
        match self.message {
            Message::Task(_, reply) => reply.send(),
            Message::Explain(_, reply) => reply.send(),
            Message::Snapshot(reply) => reply.send(),
            Message::Tasks(_, reply) => reply.send(),
            Message::Nodes(reply) => reply.send(),
            Message::Shares(reply) => reply.send(),
            Message::State(reply) => reply.send(),
            Message::Accounts(reply) => reply.send(),
            Message::Facts(_, reply) => reply.send(),
            Message::Order(_, reply) => reply.send(),
        }
    }

    pub fn refuse(self, fault: EngineError) {
        match self.message {
            Message::Task(_, reply) => reply.refuse(fault),
            Message::Explain(_, reply) => reply.refuse(fault),
            Message::Snapshot(reply) => reply.refuse(fault),
            Message::Tasks(_, reply) => reply.refuse(fault),
            Message::Nodes(reply) => reply.refuse(fault),
            Message::Shares(reply) => reply.refuse(fault),
            Message::State(reply) => reply.refuse(fault),
            Message::Accounts(reply) => reply.refuse(fault),
            Message::Facts(_, reply) => reply.refuse(fault),
            Message::Order(_, reply) => reply.refuse(fault),
        }
    }
}

impl Call for TaskCall {
    type Answer = Decided;

    fn message(self, reply: Reply<Decided>) -> Message {
        Message::Task(self, reply)
    }

    fn decides(&self) -> Option<&'static str> {
        match self {
            Self::Submit(_) => Some("submit"),
            Self::Finish(_) => Some("finish"),
            Self::Delete(_) => Some("delete"),
            Self::Checkpoint(_) => Some("checkpoint"),
            Self::Speed(..) => Some("speed"),
            Self::DryRun(_) => Some("dry run"),
            Self::Shadow(_) => None,
        }
    }

    fn outcome(decided: &Decided) -> &'static str {
        decided.record.status.as_str()
    }
}

impl Call for Explain {
    type Answer = TaskExplanation;

    fn message(self, reply: Reply<TaskExplanation>) -> Message {
        Message::Explain(self.0, Box::new(reply))
    }
}

impl Call for TakeSnapshot {
    type Answer = Snapshot;

    fn message(self, reply: Reply<Snapshot>) -> Message {
        Message::Snapshot(reply)
    }
}

impl Call for ListTasks {
    type Answer = TaskPage;

    fn message(self, reply: Reply<TaskPage>) -> Message {
        Message::Tasks(self.0, reply)
    }
}

impl Call for ListNodes {
    type Answer = Vec<NodeUse>;

    fn message(self, reply: Reply<Vec<NodeUse>>) -> Message {
        Message::Nodes(reply)
    }
}

impl Call for ListShares {
    type Answer = Option<Shares>;

    fn message(self, reply: Reply<Option<Shares>>) -> Message {
        Message::Shares(reply)
    }
}

impl Call for ReadState {
    type Answer = Option<Box<Placed>>;

    fn message(self, reply: Reply<Option<Box<Placed>>>) -> Message {
        Message::State(reply)
    }
}

impl Call for ReadAccounts {
    type Answer = Accounted;

    fn message(self, reply: Reply<Accounted>) -> Message {
        Message::Accounts(reply)
    }
}

impl Call for ReadFacts {
    type Answer = Box<Facts>;

    fn message(self, reply: Reply<Box<Facts>>) -> Message {
        Message::Facts(Box::new(self), reply)
    }
}

impl Call for Order {
    type Answer = ();

    fn message(self, reply: Reply<()>) -> Message {
        Message::Order(self, reply)
    }

    fn decides(&self) -> Option<&'static str> {
        match self {
            Self::SetLimits(_) => Some("limits"),
            Self::RemoveNode(..) => Some("remove node"),
            Self::TakeInNodes => Some("take in nodes"),
            Self::Settings(_) | Self::PlacedBy(_) | Self::Announce(_) | Self::Windows { .. } | Self::Pass => None,
        }
    }
}
