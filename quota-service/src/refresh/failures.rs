//! Failed renewals: in the log at their beginning and their end, in the answers as long as they last.

use crate::metrics;
use crate::plan::{NoQuota, PoolPlan};
use crate::published::PublishedPool;
use crate::refresh::Renewals;
use forecaster::PredictError;
use serving::standing::Over;
use std::sync::Arc;
use store::{RunId, StoreError};
use vocab::ClusterName;

/// Notes a failure, or its end, of all renewals.
pub fn of_all(renewals: &Renewals, went: &Result<(), StoreError>) {
    let begins =
        |fault: &StoreError| tracing::warn!(%fault, "the quotas are not renewed: the log reports the recovery");
    renewals.faults.note("quotas", went, begins, |Over { lasted_s, times }| {
        tracing::info!(lasted_s, times, "the quotas are renewed again");
    });
    if let Err(fault) = went {
        tracing::debug!(%fault, "the quotas were not renewed");
        metrics::refresh_failed();
        keep_last(renewals, |_| true, &fault.to_string());
        renewals.try_all_again();
    }
}

/// Notes a failure, or its end, of the renewals of a cluster.
pub fn of_cluster(renewals: &Renewals, name: &ClusterName, went: &Result<(), StoreError>) {
    let begins = |fault: &StoreError| {
        tracing::warn!(cluster = %name, %fault, "the quotas of the cluster are not renewed: the log reports the recovery");
    };
    renewals.faults.note(&format!("quotas of {name}"), went, begins, |Over { lasted_s, times }| {
        tracing::info!(cluster = %name, lasted_s, times, "the quotas of the cluster are renewed again");
    });
    if let Err(fault) = went {
        tracing::debug!(cluster = %name, %fault, "the quotas of the cluster were not renewed");
        metrics::refresh_failed();
        keep_last(renewals, |pool| pool.id.cluster == *name, &fault.to_string());
    }
}

/// Notes a model whose forecasts are no distributions, or its end. No pool of the cluster has a new quota by it.
pub fn of_model(renewals: &Renewals, name: &ClusterName, run: RunId, plans: &[PoolPlan]) {
    let rejected = |plan: &PoolPlan| match &plan.outcome {
        Err(NoQuota::Model(fault)) => Some(fault.clone()),
        _ => None,
    };
    let went = plans.iter().find_map(rejected).map_or(Ok(()), Err);
    let begins = |fault: &Arc<PredictError>| {
        let pools: Vec<String> = plans.iter().map(|plan| plan.id.to_string()).collect();
        tracing::warn!(
            cluster = %name, %run, pools = pools.join(" "), %fault,
            "the model cannot forecast, and the pools keep their last quotas, which age: correct the usage of the series, promote \
             another run (train runs promote), or train again"
        );
    };
    renewals.faults.note(&format!("{run} of {name}"), &went, begins, |Over { lasted_s, times }| {
        tracing::info!(cluster = %name, %run, lasted_s, times, "the model forecasts again");
    });
}

/// Notes a failure, or its end, of a part of the ledger. It costs no quota.
pub fn of_ledger(renewals: &Renewals, name: &ClusterName, part: &str, went: &Result<(), StoreError>) {
    let begins = |fault: &StoreError| {
        tracing::warn!(cluster = %name, part, %fault, "the ledger of forecasts is not written: the log reports the recovery");
    };
    renewals.faults.note(&format!("{part} of {name}"), went, begins, |Over { lasted_s, times }| {
        tracing::info!(cluster = %name, part, lasted_s, times, "the ledger of forecasts is written again");
    });
    if went.is_err() {
        metrics::ledger_failed();
    }
}

/// Publishes the last answers of some pools again, with the reason why they are not newer.
pub fn keep_last(renewals: &Renewals, of: impl Fn(&PublishedPool) -> bool, problem: &str) {
    let published = renewals.quotas.published.load();
    let kept =
        published.pools().filter(|pool| of(pool) && !(pool.has_failed && pool.problem.as_deref() == Some(problem)));
    let kept: Vec<_> = kept.map(|pool| pool.failed(problem.to_owned())).collect();
    if !kept.is_empty() {
        renewals.quotas.publish(kept);
    }
}
