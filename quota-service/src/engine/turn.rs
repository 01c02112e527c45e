//! The writes of one turn of a writer.

use super::call::Decided;
use super::record;
use super::watched::Measured;
use accounts::{Day, DayAccounts};
use placement::pool::{Cut, CutReason, Ending, Fact, Pool, Report, Request, Resize, ResizeReason};
use std::collections::BTreeMap;
use store::{AccountedDay, AuditRecord, JournalEntry, TaskRecord, TaskStatus, Turn};
use vocab::{Outcome, PoolId, SeriesId, TaskId, UnixSeconds, UsageRow};
use wire::{DayRecord, EventBody, EventKindBody, FactRecord, LimitRecord, StartSpanBody, TaskRun};

/// Facts of one instant with their events.
struct Open {
    seq: u64,
    at: UnixSeconds,
    facts: Vec<FactRecord>,
    events: Vec<EventBody>,
}

/// A turn while it is decided.
pub struct Draft<'a> {
    pool_id: &'a PoolId,
    after: u64,
    entries: Vec<Open>,
    pub tasks: BTreeMap<TaskId, TaskRecord>,
    outcomes: Vec<Outcome>,
    usage: Vec<UsageRow>,
    days: Vec<AccountedDay>,
    audit: Vec<AuditRecord>,
    pub facts: u64,
}

/// A task before the command that may end it.
pub struct Before {
    pub request: Request,
    pub run: Option<TaskRun>,
}

impl Before {
    pub fn of(pool: &Pool, task: &TaskId) -> Option<Self> {
        if let Some((request, running)) = pool.running(task) {
            return Some(Self { request: request.clone(), run: Some(record::run_of(pool, task, running)) });
        }
        pool.waiting_task(task).map(|waiting| Self { request: waiting.request.clone(), run: None })
    }
}

impl<'a> Draft<'a> {
    pub const fn new(pool_id: &'a PoolId, after: u64) -> Self {
        Self {
            pool_id,
            after,
            entries: Vec::new(),
            tasks: BTreeMap::new(),
            outcomes: Vec::new(),
            usage: Vec::new(),
            days: Vec::new(),
            audit: Vec::new(),
            facts: 0,
        }
    }

    /// Adds what a command led to; of the demand, the hours that were measured.
    pub fn add(&mut self, pool: &mut Pool, report: &Report, before: Option<&Before>, measured: Measured) {
        let now = pool.now();
        let mut resizes = report.consequences.resizes.iter();
        for fact in &report.facts {
            let events = match fact {
                Fact::Resized { .. } => resizes.next().map(|resize| self.resized(pool, resize)).into_iter().collect(),
                _ => self.events_of(pool, fact, report),
            };
            self.entry(now).facts.push(FactRecord::from(fact));
            for event in events {
                self.announce(now, event);
            }
            self.facts += 1;
        }
        self.outcomes.extend(report.consequences.ends.iter().map(|end| record::outcome(self.pool_id, end)));
        let whole = report.consequences.demand.iter().filter(|one| measured.holds(one.hour));
        self.usage.extend(whole.map(|one| {
            let series = SeriesId { pool: self.pool_id.clone(), organization: one.organization.clone() };
            one.demand.row(series, one.hour)
        }));
        self.note_tasks(pool, report, before);
    }

    /// Every task that anything happened to, as it is now.
    fn note_tasks(&mut self, pool: &mut Pool, report: &Report, before: Option<&Before>) {
        let now = pool.now();
        for end in &report.consequences.ends {
            self.note(pool, &end.task, None, Vec::new());
        }
        for fact in &report.facts {
            match fact {
                Fact::Submitted { request } => self.note(pool, &request.gang.task, None, Vec::new()),
                Fact::Started { task, victims, .. } => {
                    self.note(pool, task, None, victims.iter().map(ToString::to_string).collect());
                }
                Fact::Deferred { task, .. }
                | Fact::Resized { task, .. }
                | Fact::Renewed { task, .. }
                | Fact::Measured { task, .. }
                | Fact::Saved { task } => self.note(pool, task, None, Vec::new()),
                Fact::Ended { task, ending } => {
                    let status = match ending {
                        Ending::Finished => TaskStatus::Finished,
                        Ending::Deleted => TaskStatus::Deleted,
                    };
                    let ended = before.map(|one| record::ended(&one.request, status, one.run.clone(), now));
                    self.tasks.extend(ended.map(|ended| (task.clone(), ended)));
                }
                Fact::NodeAdded { .. }
                | Fact::NodeOpened { .. }
                | Fact::NodeRemoved { .. }
                | Fact::Cleared { .. }
                | Fact::LimitsSet { .. } => {}
            }
        }
        for cut in &report.consequences.cuts {
            let cut_body = record::cut(cut, now, deadline(report, cut).unwrap_or(now));
            self.note(pool, &cut.task, Some(cut_body), Vec::new());
        }
    }

    fn note(&mut self, pool: &mut Pool, task: &TaskId, cut: Option<wire::TaskCut>, victims: Vec<String>) {
        if let Some(record) = record::of_pool(pool, task, cut, victims) {
            self.tasks.insert(task.clone(), record);
        }
    }

    fn entry(&mut self, at: UnixSeconds) -> &mut Open {
        let last = self.entries.last().map_or(self.after, |entry| entry.seq);
        if self.entries.last().is_none_or(|entry| entry.at != at) {
            self.entries.push(Open { seq: last + 1, at, facts: Vec::new(), events: Vec::new() });
        }
        self.entries.last_mut().expect("one was pushed where there was none")
    }

    fn announce(&mut self, at: UnixSeconds, event: EventBody) {
        let entry = self.entry(at);
        let id = format!("{}.{}", entry.seq, entry.events.len());
        entry.events.push(EventBody { id, ..event });
    }

    fn event(&self, pool: &Pool, kind: EventKindBody) -> EventBody {
        EventBody {
            id: String::new(),
            kind,
            cluster: self.pool_id.cluster.to_string(),
            gpu_model: self.pool_id.gpu_model.to_string(),
            at: pool.now().to_string(),
            task: None,
            by: None,
            deadline: None,
            pods: None,
            places: Vec::new(),
            nodes: Vec::new(),
            limits: Vec::new(),
            start: None,
        }
    }

    /// Announces the expected starts of tasks that still wait.
    pub fn moved(&mut self, pool: &Pool, moved: Vec<(TaskId, StartSpanBody)>) {
        for (task, start) in moved.into_iter().filter(|(task, _)| pool.waiting_task(task).is_some()) {
            let event = self.event(pool, EventKindBody::EtaMoved);
            self.announce(pool.now(), EventBody { task: Some(task.to_string()), start: Some(start), ..event });
        }
    }

    /// Event of an elastic task: pods that it has to release, or may start.
    fn resized(&self, pool: &Pool, resize: &Resize) -> EventBody {
        let Resize { task, pod, pods, came, went, why, from } = resize;
        let (kind, places) = if went.is_empty() { (EventKindBody::Grown, came) } else { (EventKindBody::Shrunk, went) };
        let by = match why {
            ResizeReason::Grows => None,
            ResizeReason::For { task } => Some(task.to_string()),
            ResizeReason::Lost { node } => Some(node.to_string()),
        };
        EventBody {
            task: Some(task.to_string()),
            by,
            deadline: Some(from.to_string()),
            pods: Some(*pods),
            places: places.iter().map(|place| record::place_of(pool, *place, pod)).collect(),
            ..self.event(pool, kind)
        }
    }

    fn events_of(&self, pool: &Pool, fact: &Fact, report: &Report) -> Vec<EventBody> {
        let event = |kind: EventKindBody| self.event(pool, kind);
        let gone = |cut: &Cut, kind: EventKindBody, by: String, deadline: UnixSeconds| EventBody {
            task: Some(cut.task.to_string()),
            by: Some(by),
            deadline: Some(deadline.to_string()),
            nodes: record::nodes_of(pool, &cut.run),
            ..event(kind)
        };
        let cuts = report.consequences.cuts.iter();
        match fact {
            Fact::Started { task, places, starts, .. } => {
                let mine = cuts.filter(|cut| is_by(cut, task));
                let mut events: Vec<_> =
                    mine.map(|cut| gone(cut, EventKindBody::Evicted, task.to_string(), *starts)).collect();
                let mut nodes: Vec<String> = places.iter().map(|(node, _)| node.to_string()).collect();
                nodes.sort_unstable();
                nodes.dedup();
                let (task, deadline) = (Some(task.to_string()), Some(starts.to_string()));
                events.push(EventBody { task, deadline, nodes, ..event(EventKindBody::Started) });
                events
            }
            Fact::Cleared { organization, victims, free } => {
                let by = format!("the reservation of {organization}");
                let mine =
                    cuts.filter(|cut| victims.contains(&cut.task) && matches!(cut.why, CutReason::ClearedFor { .. }));
                mine.map(|cut| gone(cut, EventKindBody::Evicted, by.clone(), *free)).collect()
            }
            Fact::NodeRemoved { node, .. } => {
                let lost = |cut: &&Cut| matches!(&cut.why, CutReason::Lost { node: of, .. } if of == node);
                cuts.filter(lost).map(|cut| gone(cut, EventKindBody::NodeLost, node.to_string(), pool.now())).collect()
            }
            Fact::LimitsSet { limits } => {
                let limits = limits.iter().map(LimitRecord::from).collect();
                vec![EventBody { limits, ..event(EventKindBody::QuotaChanged) }]
            }
            _ => Vec::new(),
        }
    }

    /// Adds the accounts of days that are over.
    pub fn days(&mut self, days: BTreeMap<Day, DayAccounts>) {
        self.days.extend(days.into_iter().map(|(day, accounts)| {
            let record = DayRecord::from(&accounts);
            let accounts_json = serde_json::to_string(&record).expect("accounts have strings and numbers");
            AccountedDay { day: day.begin(), accounts_json }
        }));
    }

    /// Adds the audit entry of a change; that of a task has the decision as its detail.
    pub fn audit(&mut self, entry: AuditRecord, decided: Option<&Decided>) {
        let detail_json = decided.map(record::audited).or(entry.detail_json);
        self.audit.push(AuditRecord { detail_json, ..entry });
    }

    /// The turn as it is written.
    pub fn finish(self) -> (Turn, u64) {
        let entry = |open: Open| JournalEntry {
            seq: open.seq,
            at: open.at,
            facts_json: json(&open.facts),
            events_json: if open.events.is_empty() { String::new() } else { json(&open.events) },
        };
        let turn = Turn {
            entries: self.entries.into_iter().map(entry).collect(),
            tasks: self.tasks.into_values().collect(),
            outcomes: self.outcomes,
            usage: self.usage,
            days: self.days,
            audit: self.audit,
        };
        (turn, self.facts)
    }
}

fn json<T: serde::Serialize>(values: &[T]) -> String {
    serde_json::to_string(values).expect("facts and events have strings and numbers")
}

fn is_by(cut: &Cut, task: &TaskId) -> bool {
    matches!(&cut.why, CutReason::EvictedBy { task: by } if by == task)
}

/// When the GPUs of a cut run go to the task that it went for.
fn deadline(report: &Report, cut: &Cut) -> Option<UnixSeconds> {
    if let CutReason::ClearedFor { free, .. } = &cut.why {
        return Some(*free);
    }
    report.facts.iter().find_map(|fact| match fact {
        Fact::Started { task, starts, .. } if is_by(cut, task) => Some(*starts),
        _ => None,
    })
}
