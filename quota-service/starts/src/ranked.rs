//! Nodes by a number of GPUs, kept in order while GPUs come and go.

/// GPUs of a node at most, as `placement` has it.
const MOST: usize = placement::fleet::GpuRequest::MOST as usize;

/// Nodes by rising counts. A change by one GPU costs one swap.
#[derive(Debug, Clone)]
pub struct Ranked {
    count: Vec<u8>,
    /// Nodes by rising counts.
    order: Vec<u32>,
    /// The place of each node in `order`; of no meaning for nodes outside of it.
    place: Vec<u32>,
    /// The first place of a node with at least so many GPUs.
    first: [u32; MOST + 2],
}

impl Ranked {
    /// Nodes with these counts; nodes that are not `open` are counted and not ranked.
    pub fn new(count: Vec<u8>, open: &[bool]) -> Self {
        let mut order: Vec<u32> = (0..count.len() as u32).filter(|node| open[*node as usize]).collect();
        order.sort_by_key(|node| count[*node as usize]);
        let mut place = vec![u32::MAX; count.len()];
        for (number, node) in order.iter().enumerate() {
            place[*node as usize] = number as u32;
        }
        let at_least = |gpus: usize| order.partition_point(|node| usize::from(count[*node as usize]) < gpus) as u32;
        let first = std::array::from_fn(at_least);
        Self { count, order, place, first }
    }

    /// Becomes another one, in the memory that it has.
    pub fn become_like(&mut self, other: &Self) {
        self.count.clone_from(&other.count);
        self.order.clone_from(&other.order);
        self.place.clone_from(&other.place);
        self.first = other.first;
    }

    /// GPUs of a node.
    pub fn of(&self, node: u32) -> u8 {
        self.count[node as usize]
    }

    /// Nodes with at least so many GPUs, those with the fewest first.
    pub fn fitting(&self, gpus: u8) -> &[u32] {
        &self.order[self.first[usize::from(gpus).min(MOST + 1)] as usize..]
    }

    /// GPUs of all nodes that are ranked.
    pub fn sum(&self) -> u64 {
        (1..=MOST as u8).map(|gpus| self.fitting(gpus).len() as u64).sum()
    }

    /// A node has so many GPUs more.
    pub fn raise(&mut self, node: u32, gpus: u8) {
        for _ in 0..gpus {
            let before = usize::from(self.count[node as usize]);
            debug_assert!(before < MOST, "a node has at most {MOST} GPUs");
            self.count[node as usize] += 1;
            if self.place[node as usize] != u32::MAX {
                self.first[before + 1] -= 1;
                self.swap(node, self.first[before + 1]);
            }
        }
    }

    /// A node has so many GPUs less.
    pub fn lower(&mut self, node: u32, gpus: u8) {
        for _ in 0..gpus {
            let before = usize::from(self.count[node as usize]);
            debug_assert!(before > 0, "GPUs are taken that a node does not have");
            self.count[node as usize] -= 1;
            if self.place[node as usize] != u32::MAX {
                self.swap(node, self.first[before]);
                self.first[before] += 1;
            }
        }
    }

    /// Exchanges the places of a node and of the one at a place.
    fn swap(&mut self, node: u32, to: u32) {
        let from = self.place[node as usize];
        let other = self.order[to as usize];
        self.order.swap(from as usize, to as usize);
        (self.place[node as usize], self.place[other as usize]) = (to, from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_stay_in_order_of_their_gpus_as_runs_come_and_go() {
        let mut ranked = Ranked::new(vec![0, 8, 3, 3, 5], &[true, true, true, true, false]);
        for turn in 0..400_u32 {
            let (node, gpus) = (turn * 7 % 5, (turn * 3 % 4) as u8);
            if turn % 2 == 0 {
                ranked.raise(node, gpus.min(8 - ranked.of(node)));
            } else {
                ranked.lower(node, gpus.min(ranked.of(node)));
            }
            let open = [0, 1, 2, 3];
            assert_eq!(ranked.sum(), open.iter().map(|node| u64::from(ranked.of(*node))).sum::<u64>());
            for least in 0..=9 {
                let mut fitting = ranked.fitting(least).to_vec();
                assert!(fitting.is_sorted_by_key(|node| ranked.of(*node)));
                fitting.sort_unstable();
                let expected: Vec<u32> = open.into_iter().filter(|node| ranked.of(*node) >= least).collect();
                assert_eq!(fitting, expected, "at least {least} after turn {turn}");
            }
        }
    }
}
