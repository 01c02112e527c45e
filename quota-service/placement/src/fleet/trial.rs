//! Trial placements on the fleet itself: changes that end with the trial, by return, error or panic.

use super::preempt::Costs;
use super::{Fleet, Gang, PodPlace, Running};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::{Deref, DerefMut};
use vocab::TaskId;

/// Searches of a place at most, while a trial looks which victims the pods need only where they lie.
const SEARCHES_MOST: usize = 2_000;

/// A fleet with the pods of a gang placed and its victims gone. Dropped, it takes all of that back: no early return can leave
/// a plan half tried.
#[derive(Debug)]
pub(super) struct Trial<'a> {
    fleet: &'a mut Fleet,
    gang: &'a Gang,
    places: Vec<PodPlace>,
    gone: Vec<(TaskId, Running)>,
}

impl<'a> Trial<'a> {
    /// A trial in which nothing has changed yet.
    pub const fn of(fleet: &'a mut Fleet, gang: &'a Gang) -> Self {
        Self { fleet, gang, places: Vec::new(), gone: Vec::new() }
    }

    /// Places the next pod.
    pub fn place(&mut self, place: PodPlace) {
        self.fleet.hold_pod(place, &self.gang.pod, self.gang.class, true);
        self.places.push(place);
        debug_assert!(self.places.len() <= self.gang.pods as usize, "{} has more places than pods", self.gang.task);
    }

    /// Takes a victim off its nodes.
    pub fn evict(&mut self, victim: &TaskId) {
        let running = self.fleet.finish(victim);
        debug_assert!(running.is_some(), "{victim} is chosen as a victim and does not run");
        self.gone.extend(running.map(|running| (victim.clone(), running)));
    }

    /// Whether every pod has its place.
    pub fn is_whole(&self) -> bool {
        self.places.len() == self.gang.pods as usize
    }

    /// Moves the pods off a victim's nodes where those of the other victims suffice, and puts it back; those with the most work to
    /// lose first. Pods are placed one after the other: an earlier one may have evicted a task that the victims of a later one
    /// make needless.
    pub fn move_off(&mut self, costs: &Costs<'_>) {
        if self.gone.len() < 2 || self.gone.len() * self.places.len() > SEARCHES_MOST {
            return;
        }
        let mut by_worth: Vec<_> =
            self.gone.iter().map(|(task, one)| (Reverse(costs.worth(one)), task.clone())).collect();
        by_worth.sort();
        for (_, task) in by_worth {
            let Some(at) = self.gone.iter().position(|(one, _)| *one == task) else { continue };
            let before = self.places.clone();
            self.lift();
            let (task, running) = self.gone.remove(at);
            self.fleet.hold(&task, &running, true);
            self.fleet.tasks.insert(task.clone(), running.clone());
            while let Some(place) = (!self.is_whole()).then(|| self.fleet.first_place(self.gang)).flatten() {
                self.place(place);
            }
            if !self.is_whole() {
                self.lift();
                self.fleet.finish(&task);
                self.gone.insert(at, (task, running));
                for place in before {
                    self.place(place);
                }
            }
        }
    }

    /// Takes all placed pods off their nodes.
    fn lift(&mut self) {
        for place in self.places.drain(..).rev() {
            self.fleet.hold_pod(place, &self.gang.pod, self.gang.class, false);
        }
    }

    /// Puts back the victims that fit beside the placed pods, those with the most work to lose first.
    pub fn spare(&mut self, costs: &Costs<'_>) {
        let Self { fleet, gone, .. } = self;
        let mut by_worth: Vec<usize> = (0..gone.len()).collect();
        by_worth.sort_by_key(|at| (Reverse(costs.worth(&gone[*at].1)), gone[*at].0.clone()));
        let mut spared = BTreeSet::new();
        for at in by_worth {
            let (task, running) = &gone[at];
            if fleet.can_hold_all(running) {
                fleet.hold(task, running, true);
                fleet.tasks.insert(task.clone(), running.clone());
                spared.insert(at);
            }
        }
        let mut at = 0..;
        gone.retain(|_| !at.next().is_some_and(|at| spared.contains(&at)));
    }

    /// Ends the trial: places of the pods, and victims, in the order in which they were chosen.
    pub fn end(mut self) -> (Vec<PodPlace>, Vec<TaskId>) {
        let victims = self.gone.iter().map(|(task, _)| task.clone()).collect();
        self.take_back();
        // Nothing is left for the drop to take back.
        (std::mem::take(&mut self.places), victims)
    }

    fn take_back(&mut self) {
        for place in self.places.iter().rev() {
            self.fleet.hold_pod(*place, &self.gang.pod, self.gang.class, false);
        }
        for (task, running) in self.gone.drain(..) {
            self.fleet.hold(&task, &running, true);
            let before = self.fleet.tasks.insert(task, running);
            debug_assert!(before.is_none(), "a victim ran during its own trial");
        }
    }
}

impl Deref for Trial<'_> {
    type Target = Fleet;

    fn deref(&self) -> &Fleet {
        self.fleet
    }
}

impl DerefMut for Trial<'_> {
    fn deref_mut(&mut self) -> &mut Fleet {
        self.fleet
    }
}

impl Drop for Trial<'_> {
    fn drop(&mut self) {
        self.take_back();
    }
}
