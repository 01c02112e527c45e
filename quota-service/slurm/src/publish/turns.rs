//! The turns of QOS: when jobs of each began last.

use crate::view::View;
use std::collections::BTreeMap;
use std::sync::Arc;
use vocab::{GpuModel, UnixSeconds};

/// The newest start of a job of each QOS in each pool, of those that this connector has seen; a restart knows those that run.
#[derive(Debug, Clone, Default)]
pub struct Turns {
    last: BTreeMap<(GpuModel, Arc<str>), UnixSeconds>,
}

impl Turns {
    /// Notes the jobs that run.
    pub fn see(&mut self, view: &View) {
        for (model, pool) in &view.pools {
            for job in &pool.spot {
                let last = self.last.entry((model.clone(), job.qos.clone())).or_insert(job.started);
                *last = (*last).max(job.started);
            }
        }
    }

    /// When a job of a QOS began last; none that was never seen to have one.
    #[must_use]
    pub fn last(&self, model: &GpuModel, qos: &str) -> Option<UnixSeconds> {
        self.last.get(&(model.clone(), Arc::from(qos))).copied()
    }
}
