//! Runs by the step in which something is due.

const NONE: u32 = u32::MAX;

/// Lists of runs by step, linked, so that a whole list moves at once.
#[derive(Debug, Clone)]
pub struct Agenda {
    /// By step: the first entry and the last one.
    lists: Vec<(u32, u32)>,
    /// A run, and the entry after it.
    entries: Vec<(u32, u32)>,
}

impl Agenda {
    pub fn new(steps: usize) -> Self {
        Self { lists: vec![(NONE, NONE); steps], entries: Vec::new() }
    }

    /// Becomes another one, in the memory that it has.
    pub fn become_like(&mut self, other: &Self) {
        self.lists.clone_from(&other.lists);
        self.entries.clone_from(&other.entries);
    }

    /// Something is due for a run in a step; nothing after the last one.
    pub fn add(&mut self, step: Option<usize>, run: u32) {
        let Some(step) = step else { return };
        let (entry, list) = (self.entries.len() as u32, &mut self.lists[step]);
        self.entries.push((run, list.0));
        *list = (entry, if list.0 == NONE { entry } else { list.1 });
    }

    /// Takes all runs of a step.
    pub fn drain(&mut self, step: usize, runs: &mut Vec<u32>) {
        runs.clear();
        let (mut next, _) = std::mem::replace(&mut self.lists[step], (NONE, NONE));
        while next != NONE {
            let (run, after) = self.entries[next as usize];
            runs.push(run);
            next = after;
        }
    }

    /// Puts all runs of a step off to another one, or for ever.
    pub fn put_off(&mut self, step: usize, to: Option<usize>) {
        let (first, last) = std::mem::replace(&mut self.lists[step], (NONE, NONE));
        let Some(to) = to.filter(|_| first != NONE) else { return };
        let list = &mut self.lists[to];
        self.entries[last as usize].1 = list.0;
        *list = (first, if list.0 == NONE { last } else { list.1 });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_moves_whole_and_joins_what_is_there() {
        let (mut agenda, mut runs) = (Agenda::new(4), Vec::new());
        for (step, run) in [(0, 1), (0, 2), (2, 3), (0, 4)] {
            agenda.add(Some(step), run);
        }
        agenda.add(None, 9);
        agenda.put_off(0, Some(2));
        agenda.put_off(0, Some(2));
        agenda.add(Some(2), 5);
        agenda.drain(0, &mut runs);
        assert!(runs.is_empty());
        agenda.drain(2, &mut runs);
        runs.sort_unstable();
        assert_eq!(runs, [1, 2, 3, 4, 5]);
        agenda.add(Some(3), 6);
        agenda.put_off(3, None);
        agenda.drain(3, &mut runs);
        assert!(runs.is_empty());
    }
}
