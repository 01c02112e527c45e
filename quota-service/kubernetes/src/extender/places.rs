//! Where the nodes of a question are in their fleets. Names are looked for once: a fleet keeps a node's number.

use super::ExtenderState;
use crate::view::View;
use std::collections::HashMap;
use vocab::{GpuModel, NodeId};

/// Names that are remembered at most; beyond them all are looked for again.
const REMEMBERED: usize = 100_000;

/// Pool and number by name, as they were last.
pub type Remembered = HashMap<Box<str>, (GpuModel, usize)>;

/// The nodes of one question, in its order.
pub struct Places {
    models: Vec<GpuModel>,
    /// The number of the model, and of the node; none for one that no fleet has.
    each: Vec<Option<(usize, usize)>>,
}

impl Places {
    pub fn find<'n>(state: &ExtenderState, view: &View, names: impl Iterator<Item = &'n str>) -> Self {
        let mut found = Self { models: Vec::new(), each: Vec::new() };
        let mut missed = Vec::new();
        {
            let remembered = state.remembered();
            for (at, name) in names.enumerate() {
                let known = remembered.get(name).filter(|(model, number)| is_there(view, model, *number, name));
                let place = known.map(|(model, number)| (found.model(model), *number));
                if place.is_none() {
                    missed.push((at, name));
                }
                found.each.push(place);
            }
        }
        if missed.is_empty() {
            return found;
        }
        let mut learned = Vec::new();
        for (at, name) in missed {
            if let Some((model, number)) = look(view, name) {
                found.each[at] = Some((found.model(model), number));
                learned.push((name, (model.clone(), number)));
            }
        }
        if !learned.is_empty() {
            let mut remembered = state.remembered_mut();
            if remembered.len() > REMEMBERED {
                remembered.clear();
            }
            remembered.extend(learned.into_iter().map(|(name, place)| (name.into(), place)));
        }
        found
    }

    /// Each node's pool and number.
    pub fn each(&self) -> impl Iterator<Item = Option<(&GpuModel, usize)>> {
        self.each.iter().map(|place| place.map(|(model, number)| (&self.models[model], number)))
    }

    /// The pools, with the numbers of their nodes.
    pub fn by_pool(&self) -> impl Iterator<Item = (&GpuModel, Vec<usize>)> {
        self.models.iter().enumerate().map(|(of, model)| {
            (model, self.each.iter().flatten().filter(|(here, _)| *here == of).map(|(_, number)| *number).collect())
        })
    }

    fn model(&mut self, model: &GpuModel) -> usize {
        let at = self.models.iter().position(|known| known == model);
        at.unwrap_or_else(|| {
            self.models.push(model.clone());
            self.models.len() - 1
        })
    }
}

fn is_there(view: &View, model: &GpuModel, number: usize, name: &str) -> bool {
    let node = view.pools().get(model).and_then(|pool| pool.fleet.nodes().get(number));
    node.is_some_and(|node| !node.is_gone && node.id.as_str() == name)
}

fn look<'v>(view: &'v View, name: &str) -> Option<(&'v GpuModel, usize)> {
    let id = NodeId::parse(name).ok()?;
    view.pools().iter().find_map(|(model, pool)| Some((model, pool.fleet.number_of(&id)?)))
}
