//! Spot starts in turns, the organization with the lowest level first.

use super::{Kept, Ranked};
use crate::pool::queue::Shape;
use crate::pool::{Pool, Report};
use vocab::{Organization, TaskId};

impl Pool {
    /// Starts spot, the organization with the lowest level first, until nothing fits.
    pub(in crate::pool) fn walk_by_share(&mut self, report: &mut Report) {
        self.rank();
        if let Some(shares) = &mut self.shares {
            shares.is_held_back = false;
        }
        // Organizations before the one that starts a task have been refused, and there is less room now.
        let mut from = 0;
        while let Some(next) = self.start_next(from, report) {
            from = next;
        }
    }

    /// Starts the first task that may start of the organizations from this place on, and answers the place of its organization.
    fn start_next(&mut self, from: usize, report: &mut Report) -> Option<usize> {
        let ranked = std::mem::take(&mut self.shares.as_mut()?.ranked);
        let place = self.start_first(&ranked, from, report);
        let organization = place.map(|place| ranked[place].organization.clone());
        if let Some(shares) = &mut self.shares {
            shares.ranked = ranked;
        }
        self.rank_again(&organization?);
        place
    }

    fn start_first(&mut self, ranked: &[Ranked], from: usize, report: &mut Report) -> Option<usize> {
        let (before, rest) = ranked.split_at(from.min(ranked.len()));
        let mut kept = Kept::of(before);
        for (place, one) in (from..).zip(rest) {
            for (task, shape) in self.untried(&one.organization) {
                let Some(request) = self.queue.get(&task).map(|waiting| &waiting.request) else { continue };
                if self.takes(&kept, &request.core(), request.hours) {
                    self.shares.as_mut()?.is_held_back = true;
                    continue;
                }
                if self.try_to_start(&task, report) {
                    return Some(place);
                }
                // A window is kept for one organization: another one's request of the same kind may fit.
                if self.windows.is_empty() {
                    self.shares.as_mut()?.refused.insert(shape);
                }
            }
            kept.add(one);
        }
        None
    }

    /// The first task of each shape of an organization that was not refused.
    fn untried(&self, organization: &Organization) -> Vec<(TaskId, Shape)> {
        let Some(shares) = &self.shares else { return Vec::new() };
        let heads = self.queue.heads_of(organization).filter(|(_, shape)| !shares.refused.contains(shape));
        heads.map(|(task, shape)| (task.clone(), *shape)).collect()
    }
}
