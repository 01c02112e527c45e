//! One waiting task of a future: it starts, on idle GPUs or on those of spot, or it waits.

use super::{Item, Path, Run};
use crate::plan::Group;
use crate::steps::Steps;
use std::cmp::Reverse;
use std::ops::Range;

/// Work that an eviction costs, in seconds: half of the hour between two checkpoints (DESIGN §5).
const LOST_S: f32 = 1_800.0;
const NONE: u32 = u32::MAX;

impl Path<'_> {
    /// The first of a group: when submitted; and whether it came later, with its number.
    pub(super) fn head(&self, group: u32) -> Option<(i64, bool, u32)> {
        let line = &self.state.lines[group as usize];
        let waiting = &self.plan.facts.waiting;
        let now = self.plan.queues[group as usize].get(line.cursor);
        let now = now.map(|place| (waiting[*place as usize].submitted.get(), false, *place));
        let later = line.later.peek().map(|Reverse((submitted, item))| (*submitted, true, *item));
        match (now, later) {
            (Some(now), Some(later)) => Some(now.min(later)),
            (now, later) => now.or(later),
        }
    }

    fn item_of(&self, (_, is_later, number): (i64, bool, u32)) -> Item {
        if is_later {
            return self.state.items[number as usize];
        }
        let waiting = &self.plan.facts.waiting[number as usize];
        let queued_s = waiting.queued.since_s(self.plan.facts.at);
        let (submitted, saved_s) = (waiting.submitted.get(), self.plan.waiting[number as usize].saved_s);
        Item { waiting: number, submitted, queued_s, work_s: None, saved_s }
    }

    /// Whether the first of a group starts.
    pub(super) fn try_head(&mut self, group: u32) -> bool {
        let Some(head) = self.head(group) else { return false };
        let is_kept = self.state.kept_for == Some((group, head));
        let item = self.item_of(head);
        let is_ghost = item.waiting != NONE && self.plan.facts.waiting[item.waiting as usize].is_ghost;
        let pods = if is_ghost { self.could_start(group).then_some(0..0) } else { self.pods_for(group, is_kept) };
        let Some(pods) = pods else { return false };
        let line = &mut self.state.lines[group as usize];
        if head.1 {
            line.later.pop();
        } else {
            line.cursor += 1;
        }
        if is_kept {
            self.state.kept_for = None;
            self.state.room.keep_nothing();
        }
        if is_ghost {
            self.note_start(&item);
        } else {
            self.start(group, item, pods);
        }
        true
    }

    /// Whether a task would start that leaves its GPUs to others.
    fn could_start(&mut self, group: u32) -> bool {
        let Group { size, is_hp, .. } = self.plan.groups[group as usize];
        if is_hp && self.state.room.fits_without_spot(size, false) {
            return true;
        }
        if is_hp || !self.is_within_quota(group) || !self.leaves_windows(group) {
            return false;
        }
        let pods = self.state.room.take(size, (NONE, is_hp, false));
        pods.map(|pods| self.state.room.give_back(size, pods)).is_some()
    }

    fn note_start(&mut self, item: &Item) {
        let at_s = self.within_step_s(item);
        self.state.starts_s[item.waiting as usize].get_or_insert(at_s);
    }

    fn pods_for(&mut self, group: u32, is_kept: bool) -> Option<Range<u32>> {
        let Group { size, is_hp, .. } = self.plan.groups[group as usize];
        let run = self.state.runs.0.len() as u32;
        if !is_hp {
            let may_start = self.is_within_quota(group) && self.leaves_windows(group);
            return if may_start { self.state.room.take(size, (run, false, true)) } else { None };
        }
        if let Some(pods) = self.state.room.take(size, (run, true, is_kept)) {
            return Some(pods);
        }
        if !self.state.room.fits_without_spot(size, is_kept) {
            return None;
        }
        for _ in 0..size.pods {
            // Pods of a gang may find their room one by one: each needs that on one node.
            if let Some(pods) = self.state.room.take(size, (run, true, is_kept)) {
                return Some(pods);
            }
            let mut victims = std::mem::take(&mut self.victims);
            let suffices = self.state.room.victims(size.gpus, is_kept, &self.state.runs, &mut victims);
            for victim in &victims {
                self.evict(*victim);
            }
            self.victims = victims;
            if !suffices {
                return None;
            }
        }
        self.state.room.take(size, (run, true, is_kept))
    }

    /// A victim waits again, for what its last checkpoint leaves.
    fn evict(&mut self, number: u32) {
        self.stop(number);
        let now_s = self.now_s();
        let run = &self.state.runs.0[number as usize];
        let age_s = run.age_s + (now_s as f32 - run.from_s);
        let saved_s = run.saved_s.max(age_s - LOST_S);
        let item = Item {
            waiting: run.waiting,
            submitted: run.submitted,
            queued_s: i64::from(now_s),
            work_s: Some(run.work_s),
            saved_s,
        };
        self.wait(run.group, item);
    }

    fn start(&mut self, group: u32, item: Item, pods: Range<u32>) {
        let (plan, number, now_s) = (self.plan, self.state.runs.0.len() as u32, self.now_s());
        let work_s = item.work_s.unwrap_or_else(|| {
            let lasting = plan.waiting[item.waiting as usize].lasting;
            plan.end_s(lasting, self.number) as f32
        });
        let rest_s = (work_s - item.saved_s).max(1.0);
        self.state.runs.0.push(Run {
            waiting: item.waiting,
            group,
            submitted: item.submitted,
            pods,
            age_s: item.saved_s,
            from_s: now_s as f32,
            began_s: self.within_step_s(&item) as f32,
            saved_s: item.saved_s,
            work_s,
            runs: true,
            promised: false,
        });
        // Within the step in which it starts it does not end.
        self.state.ends.add(Steps::of(f64::from(now_s) + f64::from(rest_s)), number);
        let Group { limits, is_hp, .. } = plan.groups[group as usize];
        if !is_hp && limits.is_some() {
            self.guarantee(number);
        }
        if item.waiting != NONE {
            self.note_start(&item);
        }
    }

    /// A start is somewhere in its step, in each path elsewhere, and not before the task came.
    fn within_step_s(&self, item: &Item) -> f64 {
        let (begin_s, end_s) = (self.plan.steps.begin_s(self.state.step), self.now_s());
        let part = (f64::from(self.number) + 0.5) / f64::from(self.plan.strata.paths());
        (f64::from(begin_s) + f64::from(end_s - begin_s) * part).max(item.queued_s as f64)
    }

    /// The HP task that has waited longest, and long enough, has the nodes kept on which it lacks the fewest GPUs, and is tried before
    /// all others.
    pub(super) fn try_oldest(&mut self) {
        let Some(after_s) = self.plan.facts.rules.hp_reserved_after_s else { return };
        loop {
            self.state.kept_for = None;
            self.state.room.keep_nothing();
            let groups = self.plan.groups.iter().zip(0..).filter(|(group, _)| group.is_hp);
            let heads = groups.filter_map(|(_, number)| Some((self.head(number)?, number)));
            let Some((head, group)) = heads.min() else { return };
            if i64::from(self.now_s()) - self.item_of(head).queued_s < after_s {
                return;
            }
            self.state.kept_for = Some((group, head));
            self.state.room.keep(self.plan.groups[group as usize].size);
            if !self.try_head(group) {
                return;
            }
        }
    }
}
