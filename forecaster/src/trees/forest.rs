//! Trees that were grown, by values instead of bins.

/// A node of a tree.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Node {
    /// A feature of at most `threshold` goes to `left`, counted from the tree's root; a larger one to the node after it.
    Split {
        /// The feature that decides.
        feature: u16,
        /// Rows at or below it go left.
        threshold: f32,
        /// Number of the left child, counted from the tree's root; the right child is the node after this one.
        left: u32,
    },
    /// A leaf with its value.
    Leaf(f32),
}

/// A constant and what trees add to it.
#[derive(Debug, Clone, PartialEq)]
pub struct Forest {
    /// Value before the first tree.
    pub base: f64,
    /// Trees, each as its nodes.
    pub trees: Vec<Vec<Node>>,
}

impl Forest {
    /// A forest without trees.
    #[must_use]
    pub const fn new(base: f64) -> Self {
        Self { base, trees: Vec::new() }
    }

    /// Adds a tree.
    pub fn push(&mut self, tree: Vec<Node>) {
        self.trees.push(tree);
    }

    /// Keeps the first trees alone.
    pub fn truncate(&mut self, trees: usize) {
        self.trees.truncate(trees);
    }

    /// One forest that says what these say on average.
    #[must_use]
    pub fn mean_of(forests: Vec<Self>) -> Self {
        let share = 1.0 / forests.len().max(1) as f64;
        let base = forests.iter().map(|forest| forest.base).sum::<f64>() * share;
        let lighter = |node: Node| match node {
            Node::Leaf(value) => Node::Leaf((f64::from(value) * share) as f32),
            split @ Node::Split { .. } => split,
        };
        let trees = forests.into_iter().flat_map(|forest| forest.trees);
        Self { base, trees: trees.map(|tree| tree.into_iter().map(lighter).collect()).collect() }
    }

    /// The prediction of the forest for one row of features.
    #[must_use]
    pub fn predict(&self, row: &[f32]) -> f64 {
        self.trees.iter().fold(self.base, |sum, tree| sum + of_tree(tree, row))
    }
}

fn of_tree(tree: &[Node], row: &[f32]) -> f64 {
    let mut place = 0;
    loop {
        match tree[place] {
            Node::Leaf(value) => break f64::from(value),
            Node::Split { feature, threshold, left } => {
                place = left as usize + usize::from(row[usize::from(feature)] > threshold);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_average_says_what_its_forests_say_on_average() {
        let tree = |threshold: f32, low: f32| {
            vec![Node::Split { feature: 1, threshold, left: 1 }, Node::Leaf(low), Node::Leaf(2.0)]
        };
        let one = Forest { base: 10.0, trees: vec![tree(0.0, 1.0)] };
        let other = Forest { base: 20.0, trees: vec![tree(5.0, 4.0)] };
        let mean = Forest::mean_of(vec![one, other]);
        let rows = [[9.0, -1.0], [9.0, 3.0], [9.0, 5.0], [9.0, 7.0]];
        let expected = [15.0 + 2.5, 15.0 + 3.0, 15.0 + 3.0, 15.0 + 2.0];
        assert_eq!(rows.map(|row| mean.predict(&row)), expected, "a value at the threshold goes to the left");
    }
}
