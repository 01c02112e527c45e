//! Forests as tensors.

use super::CheckpointError;
use super::tensors::Payload;
use crate::trees::{FORESTS_PER_STEP, Forest, Node, Parts, Trees};
use vocab::{HorizonHours, SeriesId};

const SERIES_SCALE: &str = "series_scale";
const FACTOR: &str = "spread_factor";
const BASE: &str = "forest_base";
/// A leaf has no feature.
const LEAF: f32 = -1.0;

fn forest_name(step: usize, number: usize) -> String {
    format!("forest.{step}.{number}")
}

impl Payload {
    /// Writes forests, and answers their series in the order of their scales.
    ///
    /// `series_scale` `[series]`, `spread_factor` `[1]`, `forest_base` `[steps, 5]`, and of each forest
    /// `forest.STEP.NUMBER` `[nodes, 4]`: tree, feature (−1: a leaf), threshold or value, left child within the tree.
    pub fn put_trees(&mut self, parts: Parts) -> Vec<SeriesId> {
        let (series, scales): (Vec<SeriesId>, Vec<f64>) = parts.series.into_iter().unzip();
        self.put_f64(SERIES_SCALE, &[scales.len()], scales);
        self.put_f64(FACTOR, &[1], vec![parts.spread_factor]);
        let bases = parts.forests.iter().flatten().map(|forest| forest.base).collect();
        self.put_f64(BASE, &[parts.forests.len(), FORESTS_PER_STEP], bases);
        for (step, forests) in parts.forests.iter().enumerate() {
            for (number, forest) in forests.iter().enumerate() {
                let trees = forest.trees.iter().enumerate();
                let rows: Vec<_> = trees.flat_map(|(tree, nodes)| nodes.iter().map(move |n| row(tree, n))).collect();
                self.put_f32(&forest_name(step, number), &[rows.len(), 4], rows.concat());
            }
        }
        series
    }

    pub fn trees(
        &self,
        series: Vec<SeriesId>,
        horizon: HorizonHours,
        lookback_hours: usize,
    ) -> Result<Trees, CheckpointError> {
        let scales = self.f64s(SERIES_SCALE, &[series.len()])?;
        let bases = self.f64s(BASE, &[horizon.steps(), FORESTS_PER_STEP])?;
        let features = Trees::features_of(lookback_hours, horizon);
        let forest = |step: usize, number: usize| {
            let name = forest_name(step, number);
            let trees = parse(&self.f32_rows(&name)?, features).ok_or(CheckpointError::BrokenForest { name })?;
            Ok(Forest { base: bases[step * FORESTS_PER_STEP + number], trees })
        };
        let step = |step: usize| (0..FORESTS_PER_STEP).map(|number| forest(step, number)).collect();
        Ok(Trees::from_parts(Parts {
            horizon,
            lookback_hours,
            series: series.into_iter().zip(scales).collect(),
            spread_factor: self.f64s(FACTOR, &[1])?[0],
            forests: (0..horizon.steps()).map(step).collect::<Result<_, CheckpointError>>()?,
        }))
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
        trees.push(nodes.iter().enumerate().map(node).collect::<Option<Vec<Node>>>()?);
    }
    Some(trees)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forests_without_trees_come_back_as_they_went() {
        let horizon = HorizonHours::ONE;
        let parts = Parts {
            horizon,
            lookback_hours: 168,
            series: Vec::new(),
            spread_factor: 1.5,
            forests: vec![vec![Forest::new(0.25); FORESTS_PER_STEP]],
        };
        let mut payload = Payload::default();
        assert!(payload.put_trees(parts.clone()).is_empty());
        let (back, _) = Payload::parse(&payload.serialize("{}").unwrap()).unwrap();
        let back = back.trees(Vec::new(), horizon, 168).unwrap().parts();
        assert_eq!((back.forests, back.spread_factor), (parts.forests, parts.spread_factor));
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
