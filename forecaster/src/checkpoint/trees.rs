//! Forests as tensors.

use super::CheckpointError;
use super::tensors::Payload;
use crate::rows::OUTPUTS;
use crate::trees::{Forest, Forests, Node, TargetColumns};

const FACTOR: &str = "spread_factor";
const BASE: &str = "forest_base";
/// A leaf has no feature.
const LEAF: f32 = -1.0;

fn forest_name(step: usize, number: usize) -> String {
    format!("forest.{step}.{number}")
}

impl Payload {
    /// `spread_factor` `[1]`, or `[groups]` where steps are grouped, `forest_base` `[steps or groups, 5]`, and of each forest `forest.STEP.NUMBER` `[nodes, 4]`: tree,
    /// feature (−1: a leaf), threshold or value, left child within the tree.
    pub fn put_forests(&mut self, forests: &Forests) {
        self.put_f64(FACTOR, &[forests.spread_factors().len()], forests.spread_factors().to_vec());
        let bases = forests.steps().iter().flatten().map(|forest| forest.base).collect();
        self.put_f64(BASE, &[forests.steps().len(), OUTPUTS], bases);
        for (step, forests) in forests.steps().iter().enumerate() {
            for (number, forest) in forests.iter().enumerate() {
                let trees = forest.trees.iter().enumerate();
                let rows: Vec<_> = trees.flat_map(|(tree, nodes)| nodes.iter().map(move |n| row(tree, n))).collect();
                self.put_f32(&forest_name(step, number), &[rows.len(), 4], rows.concat());
            }
        }
    }

    /// Forests of so many steps, or groups of them, over rows with these columns.
    pub fn forests(&self, steps: usize, columns: TargetColumns, is_grouped: bool) -> Result<Forests, CheckpointError> {
        let features = columns.features;
        let bases = self.f64s(BASE, &[steps, OUTPUTS])?;
        let forest = |step: usize, number: usize| {
            let name = forest_name(step, number);
            let trees = parse(&self.f32_rows(&name)?, features).ok_or(CheckpointError::BrokenForest { name })?;
            Ok(Forest { base: bases[step * OUTPUTS + number], trees })
        };
        let step = |step: usize| (0..OUTPUTS).map(|number| forest(step, number)).collect();
        let steps = (0..steps).map(step).collect::<Result<Vec<Vec<Forest>>, CheckpointError>>()?;
        if is_grouped {
            let factors = self.f64s(FACTOR, &[steps.len()])?;
            return Ok(Forests::of_groups(steps, factors, columns));
        }
        Ok(Forests::new(steps, self.f64s(FACTOR, &[1])?[0], features))
    }
}

/// Small whole numbers are exact as `f32`.
fn row(tree: usize, node: &Node) -> [f32; 4] {
    match *node {
        Node::Leaf(value) => [tree as f32, LEAF, value, 0.0],
        Node::Split { feature, threshold, left } => [tree as f32, f32::from(feature), threshold, left as f32],
    }
}

/// `None` where a feature is unknown, or a node does not lead forward inside its tree.
fn parse(rows: &[[f32; 4]], features: usize) -> Option<Vec<Vec<Node>>> {
    let mut trees = Vec::new();
    for nodes in rows.chunk_by(|one, other| one[0] == other[0]) {
        let node = |(place, [_, feature, number, left]): (usize, &[f32; 4])| {
            if *feature < 0.0 {
                return Some(Node::Leaf(*number));
            }
            let leads_on = *left as usize > place && (*left as usize) + 1 < nodes.len();
            let is_known = (*feature as usize) < features;
            (leads_on && is_known).then_some(Node::Split {
                feature: *feature as u16,
                threshold: *number,
                left: *left as u32,
            })
        };
        let nodes = nodes.iter().enumerate().map(node).collect::<Option<Vec<Node>>>()?;
        // Every node but the root is the child of one split, so a binary tree of n nodes has (n + 1) / 2 leaves.
        if !is_tree(&nodes) || nodes.len().div_ceil(2) > Forests::LEAVES_MOST {
            return None;
        }
        trees.push(nodes);
    }
    Some(trees)
}

/// Whether each node but the root is the child of exactly one split.
fn is_tree(nodes: &[Node]) -> bool {
    let mut parents = vec![0; nodes.len()];
    for node in nodes {
        if let Node::Split { left, .. } = *node {
            parents[left as usize] += 1;
            parents[left as usize + 1] += 1;
        }
    }
    parents.iter().enumerate().all(|(place, parents)| *parents == usize::from(place > 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trees::ByFeature;

    #[test]
    fn forests_without_trees_come_back_as_they_went() {
        let forests = Forests::new(vec![vec![Forest::new(0.25); OUTPUTS]], 1.5, 20);
        let mut payload = Payload::default();
        payload.put_forests(&forests);
        let (back, _) = Payload::parse(&payload.serialize("{}").unwrap()).unwrap();
        assert_eq!(back.forests(1, TargetColumns::alone(20), false).unwrap(), forests);
    }

    #[test]
    fn forests_of_groups_come_back_with_the_factor_of_each() {
        let groups = vec![vec![Forest::new(0.25); OUTPUTS], vec![Forest::new(0.5); OUTPUTS]];
        let columns = TargetColumns { features: 20, own: 5..10 };
        let forests = Forests::of_groups(groups, vec![1.5, 0.8], columns.clone());
        let mut payload = Payload::default();
        payload.put_forests(&forests);
        let (back, _) = Payload::parse(&payload.serialize("{}").unwrap()).unwrap();
        let read = back.forests(2, columns.clone(), true).unwrap();
        assert_eq!(read, forests);
        let of_target = vec![vec![0.5]; 4].into_iter().chain([vec![0.4]]).collect::<Vec<_>>();
        assert_eq!(read.say_of_group(1, &ByFeature::of(&[0.0; 30], 30), 1..3), [of_target.clone(), of_target]);
        assert!(back.forests(2, columns, false).is_err(), "one factor for all is another format");
    }

    #[test]
    fn a_forest_whose_nodes_lead_out_or_back_is_none() {
        let good = [[0.0, 2.0, 0.5, 1.0], [0.0, LEAF, 1.0, 0.0], [0.0, LEAF, 2.0, 0.0]];
        assert_eq!(parse(&good, 3).map(|trees| trees.len()), Some(1));
        for (place, value) in [(3, 0.0), (3, 2.0), (1, 3.0)] {
            let mut bad = good;
            bad[0][place] = value;
            assert!(parse(&bad, 3).is_none(), "{bad:?}");
        }
    }
}
