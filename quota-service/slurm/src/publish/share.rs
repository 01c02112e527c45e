//! A quota of several hours, shared out among limits that stand side by side. Pure.
//!
//! Jobs of `n` hours and longer may hold Q_n in all, so what QOS of `n` hours and longer get together has to stay within Q_n. Within
//! that each QOS has an even part of it, as far as its jobs hold and wait for so much; what is left goes to all alike. With no
//! job at all and Q_1 of at least twice Q_4 that is Q_1 − Q_4 for an hour and Q_4 for four.
//!
//! A QOS that holds more than its part, since others had nothing to run, is limited to its part: what ends there is not replaced, and
//! goes to those that wait. A job that is larger than what its QOS may still have starves beside smaller ones, which Slurm lets pass it. It
//! gets a turn: GPUs are kept for it until its whole room is there, and nothing else of its QOS begins meanwhile. Its limit is raised by
//! the whole room at once, since smaller jobs of its QOS would take each part of it.

#[cfg(test)]
mod tests;

use vocab::UnixSeconds;

/// A QOS, in the order of its hours.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Part {
    /// Quota of its hours, in whole GPUs. Of longer hours never more than of shorter ones.
    pub quota: u64,
    /// GPUs of its jobs inside promises.
    pub inside: u64,
    /// GPUs of its jobs that wait.
    pub waiting: u64,
    /// GPUs of the smallest of these jobs.
    pub least: u64,
    /// The job that its limit has held back longest.
    pub first: Option<First>,
    /// GPUs of the job whose turn it is, in one of the parts at most.
    pub turn: Option<u64>,
}

/// The job that a limit has held back longest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct First {
    /// Since when it waits.
    pub since: UnixSeconds,
    /// Its GPUs.
    pub gpus: u64,
    /// Whether a smaller job of its QOS runs that came after it.
    pub is_passed: bool,
}

/// GPUs kept for the job of a part.
#[derive(Debug, Clone, Copy)]
struct Room {
    at: usize,
    gpus: u64,
    /// GPUs of other jobs of this part that stay.
    stays: u64,
}

/// The share of each part. With what is held beyond it, all of them are within the quotas, as far as these have not fallen.
#[must_use]
pub fn shares(parts: &[Part]) -> Vec<u64> {
    let even = shared_out(parts, None);
    let turn = parts.iter().enumerate().find_map(|(at, part)| Some((at, part.turn?)));
    match turn {
        Some((at, gpus)) if gpus <= quota(parts, at) && even[at] < parts[at].inside.saturating_add(gpus) => {
            shared_out(parts, Some(Room { at, gpus, stays: stays(parts, at, gpus) }))
        }
        _ => even,
    }
}

/// The part whose first job has the next turn: of those that have nothing, or whose job is passed by smaller ones, first the one whose
/// turn was longest ago by `turned`, and of equal ones that of the job that waits longest.
#[must_use]
pub fn next(parts: &[Part], turned: &[u64]) -> Option<usize> {
    let fair = fair(parts, None);
    let needy = parts.iter().enumerate().filter_map(|(at, part)| {
        let first = part.first.filter(|first| first.gpus <= quota(parts, at))?;
        let is_passed = first.is_passed && first.gpus > fair[at].saturating_sub(part.inside);
        (part.inside == 0 || is_passed).then_some((turned[at], first.since, at))
    });
    needy.min().map(|(_, _, at)| at)
}

fn shared_out(parts: &[Part], room: Option<Room>) -> Vec<u64> {
    let fair = fair(parts, room);
    let held: Vec<u64> = parts.iter().map(|part| part.inside).collect();
    let mut given = held.clone();
    let is_whole = room.is_some_and(|room| left(parts, &held, room.at) >= room.gpus);
    if let Some(room) = room {
        // Other jobs of this part end before it has more than its quota.
        let most = held[room.at].saturating_add(room.gpus).min(quota(parts, room.at));
        given[room.at] = most.max(held[room.at]);
    }
    let has_room = |at: usize| room.is_some_and(|room| room.at == at);
    let is_below = |at: usize| !has_room(at) && fair[at] >= held[at];
    // GPUs go to those that have less than their part, and what nobody waits for to all that have no more than it.
    let wanted = |at: usize| if is_below(at) { fair[at] - held[at] } else { 0 };
    in_turns(parts, &mut given, &(0..parts.len()).map(wanted).collect::<Vec<_>>());
    let rest = |at: usize| if is_below(at) { u64::MAX } else { 0 };
    in_turns(parts, &mut given, &(0..parts.len()).map(rest).collect::<Vec<_>>());
    let share = |at: usize| match lacking(parts, &held, at) {
        _ if has_room(at) => {
            if is_whole {
                given[at]
            } else {
                0
            }
        }
        // Nothing starts before as much has ended as there is too much of.
        0 if is_below(at) => given[at],
        lacking => fair[at].min(held[at].saturating_sub(lacking)),
    };
    (0..parts.len()).map(share).collect()
}

/// The part of each in what all hold and wait for, had nothing begun yet; one for whose job room is kept has what stays and that room.
fn fair(parts: &[Part], room: Option<Room>) -> Vec<u64> {
    let mut wanted: Vec<u64> = parts.iter().map(|part| part.inside.saturating_add(part.waiting)).collect();
    let mut kept = vec![0; parts.len()];
    if let Some(room) = room {
        (wanted[room.at], kept[room.at]) = (0, room.stays.saturating_add(room.gpus));
    }
    loop {
        let mut fair = kept.clone();
        in_turns(parts, &mut fair, &wanted);
        // A part in which not even the smallest job that waits would fit is of no use to it: others have it meanwhile.
        let is_useless = |at: &usize| {
            let part = parts[*at];
            part.inside < fair[*at].min(wanted[*at]) && fair[*at] - part.inside < part.least
        };
        match (0..parts.len()).filter(is_useless).max_by_key(|at| parts[*at].least) {
            Some(at) => wanted[at] = parts[at].inside,
            None => return fair,
        }
    }
}

/// GPUs of other jobs of a part that stay while room is made in all parts alike. As others end it comes to all that fit beside the
/// room, also where the jobs of this part never end.
fn stays(parts: &[Part], at: usize, gpus: u64) -> u64 {
    let inside = parts[at].inside;
    let of = |first: usize| {
        let (held, fits) = (parts[first..].iter().map(|part| part.inside).sum::<u64>(), quota(parts, first) - gpus);
        let stays = if held > fits { inside.saturating_mul(fits).div_ceil(held) } else { 0 };
        (held > fits, stays, fits)
    };
    let each: Vec<_> = (0..=at).map(of).collect();
    if each.iter().all(|(is_over, ..)| !is_over) {
        return inside;
    }
    let most = each.iter().map(|(_, stays, _)| *stays).max().unwrap_or(0);
    each.iter().map(|(_, _, fits)| *fits).min().unwrap_or(0).min(most)
}

/// GPUs that a part may still get: what is left of its quota, and of those of shorter hours.
fn left(parts: &[Part], given: &[u64], at: usize) -> u64 {
    let of = |first: usize| quota(parts, first).saturating_sub(given[first..].iter().sum());
    (0..=at).map(of).min().unwrap_or(0)
}

/// GPUs that jobs hold beyond a quota that a part counts against.
fn lacking(parts: &[Part], held: &[u64], at: usize) -> u64 {
    let of = |first: usize| held[first..].iter().sum::<u64>().saturating_sub(quota(parts, first));
    (0..=at).map(of).max().unwrap_or(0)
}

/// The quota of the hours of a part, which is no more than those of shorter hours.
fn quota(parts: &[Part], at: usize) -> u64 {
    parts[..=at].iter().map(|part| part.quota).min().unwrap_or(0)
}

/// Gives each part as much as it wants, a GPU to each in turns, as far as there is some.
fn in_turns(parts: &[Part], given: &mut [u64], wanted: &[u64]) {
    let mut wanted = wanted.to_vec();
    loop {
        let open: Vec<usize> = (0..parts.len()).filter(|at| wanted[*at] > 0 && left(parts, given, *at) > 0).collect();
        let Some(least) = open.iter().map(|at| wanted[*at].min(left(parts, given, *at))).min() else { return };
        // As many turns at once as surely leave something for each.
        let turns = (least / open.len() as u64).max(1);
        for at in open {
            let gets = turns.min(wanted[at]).min(left(parts, given, at));
            given[at] += gets;
            wanted[at] -= gets;
        }
    }
}
