//! Drift in words and numbers.

use super::PoolReport;
use forecaster::drift::{Judgement, Standing};
use wire::{DriftExplanation, JudgementBody, OrganizationDriftBody, StandingBody};

/// The section of an explanation.
#[must_use]
pub fn explanation(report: &PoolReport) -> DriftExplanation {
    let drift = &report.drift;
    let organization = |one: &forecaster::drift::OrganizationDrift| OrganizationDriftBody {
        organization: one.organization.to_string(),
        scored_hours: one.tally.hours,
        unmeasured_hours: one.tally.unmeasured,
        mae_gpus: one.tally.mae_gpus(),
        last_value_mae_gpus: one.tally.last_value_mae_gpus(),
        coverage_q90: one.tally.coverage(),
    };
    DriftExplanation {
        first_issue_time: drift.first.to_string(),
        last_issue_time: drift.last.to_string(),
        issue_hours: drift.issues,
        scored_hours: drift.all.hours,
        unmeasured_hours: drift.all.unmeasured,
        mae_gpus: drift.all.mae_gpus(),
        last_value_mae_gpus: drift.all.last_value_mae_gpus(),
        coverage_q90: drift.all.coverage(),
        bound_issue_hours: drift.bound.issues,
        bound_unmeasured: drift.bound.unmeasured,
        bound_coverage: drift.bound.coverage(),
        drifts: report.is_outside(),
        outside_since: report.outside_since.map(|at| at.to_string()),
        coverage: judgement(report, false),
        bound: judgement(report, true),
        organizations: drift.organizations.iter().map(organization).collect(),
    }
}

fn judgement(report: &PoolReport, of_bound: bool) -> JudgementBody {
    let (judged, share, promised) = facts(report, of_bound);
    JudgementBody {
        standing: standing(judged.standing),
        detail: sentence(report, of_bound),
        share,
        promised,
        band: judged.band,
        issue_hours: judged.issues,
        least_issue_hours: judged.least_issues,
    }
}

const fn standing(of: Standing) -> StandingBody {
    match of {
        Standing::TooFew => StandingBody::TooFewHours,
        Standing::Inside => StandingBody::Inside,
        Standing::Below => StandingBody::Below,
        Standing::Above => StandingBody::Above,
    }
}

/// The judgement, the share that was judged and the share that was promised.
fn facts(report: &PoolReport, of_bound: bool) -> (&Judgement, Option<f64>, Option<f64>) {
    let drift = &report.drift;
    if of_bound {
        return (&report.bound, drift.bound_of_run.coverage(), drift.bound_of_run.rate());
    }
    let share = match report.coverage.standing {
        Standing::Above => drift.of_run.below_share(),
        _ => drift.of_run.coverage(),
    };
    (&report.coverage, share, Some(0.9))
}

/// Where a share stands, with its numbers.
pub fn sentence(report: &PoolReport, of_bound: bool) -> String {
    let (judged, share, promised) = facts(report, of_bound);
    let what = match (of_bound, judged.standing) {
        (true, _) => "the pool's bound held at",
        (false, Standing::Above) => "demand was below its 0.9 quantile in",
        (false, _) => "demand was at or below its 0.9 quantile in",
    };
    let (Some([low, high]), Some(share)) = (judged.band, share) else {
        let (issues, least) = (judged.issues, judged.least_issues);
        return format!("{issues} issue hours of the run that serves were scored, and {least} are needed to judge");
    };
    let where_it_is = match judged.standing {
        Standing::Below => "below",
        Standing::Above => "above",
        Standing::Inside | Standing::TooFew => "inside",
    };
    format!(
        "{what} a share of {share:.3} of {} issue hours of the run that serves, {where_it_is} the band from {low:.3} to \
         {high:.3} around {:.3}",
        judged.issues,
        promised.unwrap_or_default()
    )
}
