//! Windows that are sold ahead, in a pool: no promise reaches into one, spot at will leaves before it, and while it lasts its
//! organization alone gets its GPUs.
//!
//! Windows are no facts but part of the settings, as the policy is. GPUs are counted: which ones an organization gets is
//! decided when its tasks come.

use super::{Consequences, Cut, CutReason, Fact, Fault, Pool, Report, Stale};
use crate::decide::{Refusal, asked};
use crate::fleet::{Gang, Running};
use crate::policy::Blocking;
use crate::windows::{self, Windows};
use std::collections::BTreeMap;
use vocab::{HorizonHours, MilliGpus, Organization, OutcomeKind, ReservedWindow, TaskClass, TaskId, UnixSeconds};

/// Windows beside promises, at one instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Beside {
    /// The instant.
    pub at: UnixSeconds,
    /// GPUs of windows then.
    pub reserved: MilliGpus,
    /// GPUs whose promises last beyond it.
    pub promised: MilliGpus,
}

impl Pool {
    /// Sets the windows that are sold ahead, in place of all before. Those that are over are left out.
    ///
    /// A window needs its GPUs with the notice of spot at will: [`grace_s`](super::PoolRules::grace_s) before its tasks come.
    pub fn set_windows(&mut self, mut windows: Vec<ReservedWindow>) {
        windows.retain(|one| self.now < one.to && one.from < one.to);
        windows.sort_unstable();
        if windows != self.windows {
            self.windows = windows;
            self.freed(Stale::All);
        }
    }

    /// No window, but what the organizations of windows use, and the notice.
    fn windows_in_use(&self) -> Windows {
        Windows { used: self.used_in_windows(), notice_s: self.rules.grace_s, ..Windows::default() }
    }

    /// The windows, and what their organizations use: for quotas that may be used for `valid_s`.
    #[must_use]
    pub fn windows(&self, valid_s: i64) -> Windows {
        Windows { all: self.windows.clone(), valid_s, ..self.windows_in_use() }
    }

    /// Windows that are open, or whose notice has begun.
    fn begun_windows(&self) -> impl Iterator<Item = &ReservedWindow> {
        self.windows.iter().filter(|one| one.has_begun(self.now, self.rules.grace_s))
    }

    /// When the windows change next what the pool decides: at a notice, or at an end.
    #[must_use]
    pub fn next_window_change(&self) -> Option<UnixSeconds> {
        let changes = self.windows.iter().flat_map(|one| [one.from.plus_s(-self.rules.grace_s), one.to]);
        changes.filter(|at| *at > self.now).min()
    }

    /// HP GPUs that run, of each organization with a window.
    fn used_in_windows(&self) -> BTreeMap<Organization, MilliGpus> {
        let mut milli: BTreeMap<&Organization, u64> =
            self.windows.iter().map(|window| (&window.organization, 0)).collect();
        if milli.is_empty() {
            return BTreeMap::new();
        }
        for (task, running) in self.fleet.tasks() {
            let of = self.requests.get(task).filter(|_| running.class == TaskClass::Hp);
            if let Some(milli) = of.and_then(|admitted| milli.get_mut(&admitted.request.organization)) {
                *milli += running.gpus_milli();
            }
        }
        let amount = |milli| MilliGpus::from_milli(milli).unwrap_or(MilliGpus::MAX);
        milli.into_iter().map(|(organization, milli)| (organization.clone(), amount(milli))).collect()
    }

    /// Thousandths of a GPU that open windows keep from all but one organization: what theirs do not use yet.
    fn kept_milli(&self, but: Option<&Organization>) -> u64 {
        let mut begun: Vec<ReservedWindow> = self.begun_windows().cloned().collect();
        if begun.is_empty() {
            return 0;
        }
        begun.retain(|window| but != Some(&window.organization));
        Windows { all: begun, ..self.windows_in_use() }.unused(self.now).milli()
    }

    /// The instants within `until` at which windows and promises meet, or the first one at which `asked` more exceed the capacity.
    fn crowded(&self, asked: MilliGpus, until: UnixSeconds) -> Option<Beside> {
        let notice_s = self.rules.grace_s;
        let all = Windows { all: self.windows.clone(), ..Windows::default() };
        let steps = windows::steps(&all, self.now, until.plus_s(notice_s));
        if steps.iter().all(|step| step.gpus_milli == 0) {
            return None;
        }
        let mut ends = self.fleet.promise_ends().peekable();
        let mut promised: u64 = self.fleet.promised(HorizonHours::ONE).milli();
        let capacity = self.capacity().milli();
        let amount = |milli| MilliGpus::from_milli(milli).unwrap_or(MilliGpus::MAX);
        for step in steps {
            // Promises have to end by the notice of what begins then; what ends then leaves its GPUs to it.
            let at = step.at.plus_s(-notice_s).max(self.now);
            while let Some((_, milli)) = ends.next_if(|(until, _)| *until <= at) {
                promised = promised.saturating_sub(milli);
            }
            let sum = step.gpus_milli.saturating_add(promised).saturating_add(asked.milli());
            if step.gpus_milli > 0 && sum > capacity {
                return Some(Beside { at, reserved: amount(step.gpus_milli), promised: amount(promised) });
            }
        }
        None
    }

    /// The first instant at which the windows of the pool, and promises that were given before, need more than its capacity; none
    /// where there is room for all of them.
    #[must_use]
    pub fn oversold(&self) -> Option<Beside> {
        let end = self.windows.iter().map(|one| one.to).max()?;
        self.crowded(MilliGpus::ZERO, end)
    }

    /// Why windows keep a gang of an organization from starting, with a promise of `hours` if it is spot with one.
    pub(super) fn kept_by_windows(
        &self,
        gang: &Gang,
        organization: Option<&Organization>,
        hours: Option<HorizonHours>,
    ) -> Option<Refusal> {
        if self.windows.is_empty() {
            return None;
        }
        let asked = asked(gang);
        let (kept, room) = match gang.class {
            TaskClass::Spot => (self.kept_milli(None), self.idle_milli()),
            TaskClass::Hp => (self.kept_milli(organization), self.free_of_hp_milli()),
        };
        if kept > 0 && asked.milli().saturating_add(kept) > room {
            let until = self.begun_windows().map(|one| one.to).min().unwrap_or(self.now);
            let kept = MilliGpus::from_milli(kept).unwrap_or(MilliGpus::MAX);
            return Some(Refusal::KeptForReservation { asked, kept, until });
        }
        let hours = hours.filter(|_| gang.class == TaskClass::Spot)?;
        self.reaches(asked, hours)
    }

    /// Whether a promise of `hours` from now on would reach into a window.
    pub(super) fn reaches(&self, asked: MilliGpus, hours: HorizonHours) -> Option<Refusal> {
        let beside = self.crowded(asked, self.now.plus_s(hours.seconds()))?;
        let left = self.capacity().left_after(beside.reserved).left_after(beside.promised);
        Some(Refusal::ReachesReservation { hours, at: beside.at, left, asked })
    }

    /// GPUs of open nodes that no HP task has.
    fn free_of_hp_milli(&self) -> u64 {
        let open = self.fleet.nodes().iter().filter(|node| node.takes_pods());
        open.map(|node| node.gpus.len() as u64 * 1_000 - u64::from(node.hp_milli)).sum()
    }

    /// Spot at will leaves the GPUs of windows whose notice has begun, those with the least to lose first.
    pub(super) fn clear_windows(&mut self, before: UnixSeconds, report: &mut Report) {
        let is_crossed = |at: UnixSeconds| before < at && at <= self.now;
        let notice_s = self.rules.grace_s;
        if self.windows.iter().any(|one| is_crossed(one.from.plus_s(-notice_s)) || is_crossed(one.to)) {
            self.freed(Stale::All);
        }
        self.windows.retain(|one| self.now < one.to);
        let missing = self.kept_milli(None).saturating_sub(self.idle_milli());
        if missing == 0 {
            return;
        }
        let victims = self.leaving(missing);
        // The last one to begin: what was missing to those before is cleared.
        let Some(organization) =
            self.begun_windows().last().map(|one| one.organization.clone()).filter(|_| !victims.is_empty())
        else {
            return;
        };
        let free = self.now.plus_s(self.rules.grace_s);
        // They run: nothing can refuse it.
        let cleared = self.record(Fact::Cleared { organization, victims, free }, report);
        debug_assert!(cleared.is_ok(), "{cleared:?}");
    }

    /// Spot tasks at will that leave so many thousandths of a GPU, or as many as they have.
    fn leaving(&self, missing_milli: u64) -> Vec<TaskId> {
        let on_open_nodes = |running: &Running| {
            let open = running.places.iter().filter(|place| self.fleet.nodes()[place.node].takes_pods());
            open.count() as u64 * u64::from(running.pod.gpus.milli())
        };
        let at_will =
            self.fleet.tasks().iter().filter(|(_, one)| one.class == TaskClass::Spot && one.guarantee.is_none());
        let with_loss = at_will.map(|(task, one)| (one.waste_milli_gpu_s(self.now), task, on_open_nodes(one)));
        let mut by_loss: Vec<(u64, &TaskId, u64)> = with_loss.filter(|(.., milli)| *milli > 0).collect();
        by_loss.sort_unstable();
        let (mut freed, mut victims) = (0, Vec::new());
        for (_, task, milli) in by_loss {
            if freed >= missing_milli {
                break;
            }
            freed += milli;
            victims.push((task, milli));
        }
        // Those that turn out unneeded are spared, the ones with the most to lose first.
        let mut needed = Vec::new();
        for (task, milli) in victims.into_iter().rev() {
            if freed - milli >= missing_milli {
                freed -= milli;
            } else {
                needed.push(task.clone());
            }
        }
        needed.sort_unstable();
        needed
    }

    /// Spot at will goes back to the queue, all of it or none.
    pub(super) fn clear(
        &mut self,
        organization: &Organization,
        victims: &[TaskId],
        free: UnixSeconds,
        then: &mut Consequences,
    ) -> Result<(), Fault> {
        let is_at_will = |run: &Running| run.class == TaskClass::Spot && run.guarantee.is_none();
        if let Some(task) = victims.iter().find(|task| !self.fleet.tasks().get(task).is_some_and(is_at_will)) {
            return Err(Fault::NotAtWill { task: task.clone() });
        }
        for task in victims {
            let Some(run) = self.fleet.finish(task) else { continue };
            self.count_run(true);
            self.back_to_queue(task, &run, OutcomeKind::Broken, free, then);
            let why = CutReason::ClearedFor { organization: organization.clone(), free };
            then.cuts.push(Cut { task: task.clone(), run, why });
        }
        Ok(())
    }

    /// When victims of a notice that lasts have left: nothing starts on their GPUs before.
    pub(super) fn cleared_by(&self) -> UnixSeconds {
        self.begun_windows().map(|one| one.from).max().unwrap_or(self.now).max(self.now)
    }

    /// HP tasks whose organization has a window with room are tried for themselves: others of their size may not start.
    pub(super) fn try_window_owners(&mut self, report: &mut Report) {
        if self.policy.blocking == Blocking::Everybody || self.kept_milli(None) == 0 {
            return;
        }
        let owners: Vec<Organization> = self.begun_windows().map(|one| one.organization.clone()).collect();
        let of_owners = self.queue.all().filter(|waiting| {
            waiting.request.gang.class == TaskClass::Hp
                && waiting.rests_until.is_none()
                && owners.contains(&waiting.request.organization)
        });
        let mut first: Vec<(UnixSeconds, TaskId)> =
            of_owners.map(|waiting| (waiting.request.submitted, waiting.request.gang.task.clone())).collect();
        first.sort_unstable();
        for (_, task) in first {
            self.try_to_start(&task, report);
        }
    }
}
