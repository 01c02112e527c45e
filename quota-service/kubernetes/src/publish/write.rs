//! One object: read, decide, write if a change is due.

use super::plan::{Basis, Gpus, Plan, Planner, Rules};
use super::target::{Content, Target};
use super::{LOWERED, SET_ASIDE_ROUNDS};
use crate::calls::{Calls, Fault};
use crate::events::{Events, Note};
use crate::lead::{Fence, Fenced};
use crate::names::QUOTA_MANAGER;
use metrics::{counter, gauge};
use serde_json::Value;
use serving::standing::Standing;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tracing::{info, warn};

/// Attempts of one round when other writers are faster; the next round tries again.
const TRIES: u32 = 3;
/// An object without a served kind or a namespace is read again after this.
const ABSENT_FOR: Duration = Duration::from_mins(1);

/// State of an object after a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stands {
    /// It carries the decided quota.
    InOrder,
    /// Another owns it: it is not written.
    NotOurs,
    /// Its kind or namespace does not exist, so it carries no quota.
    Absent,
    /// It may carry more than the decided quota.
    Failed,
}

/// Why a round failed.
#[derive(Debug, thiserror::Error)]
enum Trouble {
    #[error("{0}")]
    Another(String),
    #[error(transparent)]
    Fenced(#[from] Fenced),
    #[error(transparent)]
    Call(#[from] Fault),
}

/// Wanted content of an object.
#[derive(Debug, Clone, Copy)]
pub struct Wish<'a> {
    pub gpus: &'a Gpus,
    pub held: &'a Gpus,
    /// Ground of the amount of each name; a name that is not here has no offer.
    pub basis: &'a BTreeMap<String, Basis>,
    pub message: &'a str,
}

/// Tools of every round.
#[derive(Debug, Clone, Copy)]
pub struct Means<'a> {
    pub calls: &'a Calls,
    pub fence: &'a Fence,
    pub events: &'a Events,
    pub rules: Rules,
    /// Objects of others are read again after this.
    pub set_aside_for: Duration,
}

/// An object that is kept in order.
#[derive(Debug)]
pub struct Kept {
    pub target: Target,
    planner: Planner,
    /// Not read again before, and its last state.
    set_aside: Option<(Instant, Stands)>,
    /// Whether another owned fields that we write when it was last tried.
    is_contested: bool,
    faults: Standing,
    /// The last trouble that was logged, by its kind.
    troubled: Option<&'static str>,
}

/// Writes an object whole: first all but its status, since that carries the epoch.
///
/// # Errors
/// One of the requests was refused or failed.
pub async fn write(calls: &Calls, target: &Target, live: Option<&Value>, content: &Content) -> Result<(), Fault> {
    let path = target.path();
    let written = calls.apply(&path, QUOTA_MANAGER, &target.main(live, content)).await?;
    if let Some(status) = target.status(&written, content) {
        calls.apply(&format!("{path}/status"), QUOTA_MANAGER, &status).await?;
    }
    Ok(())
}

impl Kept {
    #[must_use]
    pub const fn new(target: Target, rules: Rules) -> Self {
        Self {
            target,
            planner: Planner::new(rules),
            set_aside: None,
            is_contested: false,
            faults: Standing::new(),
            troubled: None,
        }
    }

    /// Looks once. The fault that pauses all writes, where there is one, comes with it.
    pub async fn look(&mut self, means: Means<'_>, wish: Wish<'_>) -> (Stands, Option<Fault>) {
        if let Some((until, stands)) = self.set_aside
            && Instant::now() < until
        {
            return (stands, None);
        }
        self.set_aside = None;
        let mut went = self.once(means, wish).await;
        for _ in 1..TRIES {
            if !matches!(went, Err(Trouble::Call(Fault::Stale { .. }))) {
                break;
            }
            self.count("stale");
            went = self.once(means, wish).await;
        }
        self.is_contested = matches!(went, Err(Trouble::Call(Fault::Owned { .. })));
        self.tell(&went, means.set_aside_for);
        if let Err(trouble @ (Trouble::Another(_) | Trouble::Call(Fault::Owned { .. }))) = &went {
            let text = format!("the spot quota is not written, nor forced: {trouble}");
            means.events.tell(self.target.regarding(), Note::warning("QuotaConflict", "Publish", text));
        }
        match went {
            Ok(()) => (Stands::InOrder, None),
            Err(Trouble::Another(_) | Trouble::Call(Fault::Owned { .. })) => {
                self.put_aside(Stands::NotOurs, means.set_aside_for)
            }
            Err(Trouble::Call(Fault::Absent { .. })) => self.put_aside(Stands::Absent, ABSENT_FOR),
            Err(Trouble::Fenced(_)) => (Stands::Failed, None),
            Err(Trouble::Call(fault)) => (Stands::Failed, Some(fault)),
        }
    }

    fn put_aside(&mut self, stands: Stands, lasts: Duration) -> (Stands, Option<Fault>) {
        self.set_aside = Some((Instant::now() + lasts, stands));
        (stands, None)
    }

    async fn once(&mut self, means: Means<'_>, wish: Wish<'_>) -> Result<(), Trouble> {
        // 1. Read.
        let live = means.calls.find(&self.target.path()).await?;
        let nothing = Value::Null;
        let is = live.as_ref().unwrap_or(&nothing);
        if live.is_some() {
            self.target.is_ours(is).map_err(Trouble::Another)?;
        }
        // A conflict lasts while another owns the fields, also where nothing is to be written at the moment.
        let managers = self.target.other_owners(is);
        if self.is_contested && !managers.is_empty() {
            let detail = "they still own what is to be written".to_owned();
            return Err(Trouble::Call(Fault::Owned { managers, detail }));
        }
        let epoch = means.fence.check(is)?;
        // 2. Decide.
        let plan = self.planner.plan(
            Instant::now(),
            wish.gpus,
            |name| wish.basis.get(name).copied().unwrap_or_default(),
            &self.target.published(is),
        );
        let message = wish.message.to_owned();
        let content = Content { gpus: plan.gpus.clone(), held: wish.held.clone(), epoch, message };
        let is_large = |from, to| means.rules.is_large(from, to);
        let is_due = !plan.changes.is_empty() || live.is_none() || self.target.is_outdated(is, &content, is_large);
        // 3. Write.
        if is_due {
            write(means.calls, &self.target, live.as_ref(), &content).await?;
            self.wrote(&plan);
            // Why it is low; an ordinary change is in the metrics.
            if wish.message.starts_with(LOWERED) {
                let note = Note::warning("QuotaLowered", "Publish", wish.message.to_owned());
                means.events.tell(self.target.regarding(), note);
            }
        }
        for (flavor, gpus) in &plan.gpus {
            gauge!("headroom_published_gpus", "target" => self.target.label(), "flavor" => flavor.clone())
                .set(*gpus as f64);
        }
        Ok(())
    }

    fn wrote(&mut self, plan: &Plan) {
        self.planner.wrote(&plan.gpus);
        self.count("written");
        if !plan.changes.is_empty() {
            let changes: Vec<String> = plan.changes.iter().map(ToString::to_string).collect();
            info!(target_object = self.target.label(), changes = changes.join("; "), "quota written");
        }
    }

    fn count(&self, outcome: &'static str) {
        counter!("headroom_publish_writes_total", "target" => self.target.label(), "outcome" => outcome).increment(1);
    }

    fn tell(&mut self, went: &Result<(), Trouble>, set_aside_for: Duration) {
        let label = self.target.label();
        let outcome = match went {
            Ok(()) => None,
            Err(Trouble::Another(_) | Trouble::Call(Fault::Owned { .. })) => Some("conflict"),
            Err(Trouble::Fenced(_)) => Some("fenced"),
            Err(Trouble::Call(Fault::Throttled { .. })) => Some("throttled"),
            Err(Trouble::Call(Fault::Refused { .. } | Fault::Budget { .. })) => Some("refused"),
            Err(Trouble::Call(Fault::Absent { .. })) => Some("absent"),
            Err(Trouble::Call(Fault::Stale { .. } | Fault::Failed { .. })) => Some("failed"),
        };
        if let Some(outcome) = outcome {
            self.count(outcome);
        }
        let is_conflict = outcome == Some("conflict");
        gauge!("headroom_publish_conflict", "target" => label.clone()).set(if is_conflict { 1.0 } else { 0.0 });
        let again_s = match outcome {
            Some("conflict") => set_aside_for.as_secs(),
            Some("absent") => ABSENT_FOR.as_secs(),
            // With the next round.
            _ => set_aside_for.as_secs() / u64::from(SET_ASIDE_ROUNDS),
        };
        let begins = |trouble: &Trouble| {
            warn!(target_object = label, path = self.target.path(), %trouble, again_s, "the quota is not written, nor forced; it is tried again after again_s");
        };
        self.faults.note("", went, begins, |over| {
            info!(target_object = label, lasted_s = over.lasted_s, "the quota is in order again");
        });
        if let (Err(trouble), true) = (went, self.troubled.is_some() && outcome.is_some() && outcome != self.troubled) {
            begins(trouble);
        }
        self.troubled = outcome;
    }
}
