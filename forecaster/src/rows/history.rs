//! A cluster's history in parts: all of its series together may not fit in memory.

use crate::blend::Settings;
use crate::fit::Fit;
use crate::model::ModelSpec;
use datasets::{Panel, TimeSplit};

/// Why a history could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the history could not be read: {why}")]
pub struct HistoryFault {
    /// The reason, from its source.
    pub why: String,
}

/// The demand of a cluster, part by part. A panel is a history of one part.
pub trait History: Sync {
    /// Passes each part to `visit`: panels of the same hours, with whole series in the order of their ids, each series once.
    /// Every call passes the same parts.
    ///
    /// # Errors
    /// The source cannot be read. Some parts may have been passed before.
    fn each(&self, visit: &mut dyn FnMut(&Panel)) -> Result<(), HistoryFault>;
}

impl History for Panel {
    fn each(&self, visit: &mut dyn FnMut(&Panel)) -> Result<(), HistoryFault> {
        visit(self);
        Ok(())
    }
}

/// Where the rows of a model come from.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    /// The series that the model is for.
    pub history: &'a dyn History,
    /// Other clusters, whose series add rows to the training part ([`Samples::borrow`](super::Samples)).
    pub others: &'a [&'a dyn History],
    /// Training and validation windows.
    pub split: TimeSplit,
    /// Specification of the model.
    pub spec: ModelSpec,
    /// How its parts learn.
    pub settings: Settings,
}

impl<'a> From<&Fit<'a>> for Source<'a> {
    fn from(fit: &Fit<'a>) -> Self {
        Self { history: fit.panel, others: &[], split: fit.split, spec: fit.spec, settings: fit.settings }
    }
}
