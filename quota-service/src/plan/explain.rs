//! A quota in words and numbers.

use super::cluster::{PoolQuota, Run};
use super::kept::{kept_explanation, kept_sentence, not_supported};
use super::live::{list_fault, live_explanation, live_sentence, raised};
use super::overrides::{asked_for, followed, sentence};
use forecaster::Predict;
use forecaster::bound::{AggregationScore, OrganizationShare, PoolBound, PoolCalibration};
use forecaster::calibration::{ConformalHours, Expert, Stated};
use placement::eta::EtaDecision;
use placement::staleness::{Answered, Stage, VALID_S, answered};
use placement::{Quota, Reason};
use store::EtaMove;
use vocab::{DemandForecast, MilliGpus, PoolState, UnixSeconds};
use wire::{
    AggregationSourceBody, AggregationTrial, BoundExplanation, CalendarExplanation, CalibrationExplanation,
    CapacityExplanation, ConformalExplanation, EtaExplanation, EtaMoveBody, ExpertExplanation, Explanation,
    ForecastAnswer, ForecastExplanation, OrganizationBound, OrganizationCorrection, OrganizationForecast, QuotaAnswer,
    ReasonBody, StepTotalBody, SupplyExplanation,
};

const MILLION: f64 = 1_000_000.0;

pub(super) fn reason(reason: &Reason) -> ReasonBody {
    ReasonBody { code: reason.code().to_owned(), detail: reason.to_string() }
}

/// The answer as it was computed. `virtual_time` marks a virtual clock.
#[must_use]
pub fn answer(pool: &PoolQuota, quota: &Quota, virtual_time: bool) -> QuotaAnswer {
    let mut reasons: Vec<_> = quota.reasons.iter().map(reason).collect();
    reasons.extend(asked_for(pool, quota).iter().map(reason));
    if !pool.not_reported.is_empty() {
        let hour = pool.issue.plus_hours(-1).instant();
        let (missing, organizations) = (pool.not_reported.len(), pool.reporting_organizations);
        reasons.push(reason(&Reason::UsageIncomplete { missing, organizations, hour }));
    }
    reasons.extend(pool.list_fault.map(list_fault).as_ref().map(reason));
    if pool.cold_organizations > 0 {
        reasons.push(reason(&Reason::ColdStart { organizations: pool.cold_organizations }));
    }
    if pool.issue < pool.run.trained.data.to {
        reasons.push(reason(&Reason::SeenInTraining { until: pool.run.trained.data.to.instant() }));
    }
    let (steps, horizon) = (quota.hours.get().saturating_add(pool.more_steps), pool.run.trained.horizon());
    if steps > horizon.get() {
        reasons.push(reason(&Reason::ForecastEndsEarly { steps, horizon }));
    }
    reasons.extend(not_supported(pool, quota).as_ref().map(reason));
    QuotaAnswer {
        cluster: pool.id.cluster.to_string(),
        gpu_model: pool.id.gpu_model.to_string(),
        hours: quota.hours.get(),
        guarantee_rate: pool.settings.pool.guarantee_rate.as_f64(),
        quota_gpus: quota.quota.as_gpus(),
        used_gpus: quota.used.as_gpus(),
        available_gpus: quota.available.as_gpus(),
        inventory_gpus: quota.inventory.as_gpus(),
        capacity_gpus: quota.capacity.as_gpus(),
        demand_bound_gpus: quota.demand_bound.as_gpus(),
        eta: quota.eta.as_f64(),
        idle_gpus: quota.idle.as_gpus(),
        aggregation: pool.aggregation.to_string(),
        run_id: Some(pool.run.id.to_string()),
        computed_at: pool.computed_at.to_string(),
        valid_until: pool.computed_at.plus_s(VALID_S).to_string(),
        stage: Stage::Fresh.into(),
        stale: false,
        as_of: virtual_time.then(|| pool.computed_at.to_string()),
        reasons,
    }
}

/// GPUs that spot tasks hold by the last report, and GPUs that may still be admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    /// S_a(H).
    pub spot: MilliGpus,
    pub available: MilliGpus,
}

/// The answer at a later stage. `held` is how things are now; `problem` is why there is no newer quota.
#[must_use]
pub fn at_stage(fresh: &QuotaAnswer, stage: Stage, held: Held, problem: Option<&str>) -> QuotaAnswer {
    let mut answer = QuotaAnswer { stage: stage.into(), stale: stage != Stage::Fresh, ..fresh.clone() };
    if let Some(what) = problem {
        answer.reasons.push(reason(&Reason::InputsMissing { what: what.to_owned() }));
    }
    if stage != Stage::Fresh {
        let detail = format!("computed at {} and not renewed since", fresh.computed_at);
        answer.reasons.push(ReasonBody { code: "not_renewed".to_owned(), detail });
    }
    let last = Answered { quota: amount(fresh.quota_gpus), available: held.available };
    let now = answered(stage, last, held.spot);
    answer.quota_gpus = now.quota.as_gpus();
    answer.used_gpus = held.spot.as_gpus();
    answer.available_gpus = now.available.as_gpus();
    if stage == Stage::Conservative {
        answer.reasons.push(reason(&Reason::Conservative { held: held.spot }));
    }
    answer
}

/// Why an answer is lower than the quota that was computed: a state that came since leaves less.
#[must_use]
pub fn lowered_reason(state: &PoolState, spot: MilliGpus) -> ReasonBody {
    let detail = format!(
        "lowered to idle {} + spot {} GPUs, as reported at {}; the next renewal computes it again",
        state.idle, spot, state.as_of
    );
    ReasonBody { code: "lowered_by_report".to_owned(), detail }
}

/// Why an answer is lower than the quota that was computed: HP work that came since needs more than was foreseen, or capacity has gone.
#[must_use]
pub fn lowered_by_demand(state: &PoolState, bound: MilliGpus, left: MilliGpus) -> ReasonBody {
    let detail = format!(
        "lowered to {left} GPUs: HP work may need {bound} of {} GPUs, as reported at {}; the next renewal computes it again",
        state.capacity, state.as_of
    );
    ReasonBody { code: "lowered_by_report".to_owned(), detail }
}

/// An amount of an answer: its number was written from an amount.
#[must_use]
pub fn amount(gpus: f64) -> MilliGpus {
    MilliGpus::nearest(gpus).unwrap_or(MilliGpus::ZERO)
}

/// Everything that the quota was made of. `answer` is what is answered now; `moves` are the last of eta, newest first.
#[must_use]
pub fn explanation(pool: &PoolQuota, quota: &Quota, answer: QuotaAnswer, moves: &[EtaMove]) -> Explanation {
    let place = pool.quotas.iter().position(|one| one.hours == quota.hours).unwrap_or(0);
    let bound = &pool.bounds[place];
    Explanation {
        steps: steps(pool, quota, bound, place),
        what_would_change: quota.what_would_change(),
        placed_by: pool.settings.placed_by.map(Into::into),
        capacity: CapacityExplanation {
            capacity_gpus: quota.capacity.as_gpus(),
            source: pool.capacity_source().into(),
        },
        forecast: ForecastExplanation {
            run_id: Some(pool.run.id.to_string()),
            model: pool.run.trained.spec.kind.to_string(),
            issue_time: pool.issue.to_string(),
            hours_late: pool.hours_late,
            not_reported: pool.not_reported.iter().map(ToString::to_string).collect(),
            organization_count: pool.corrected.issued().len(),
            organizations: pool.corrected.issued().iter().map(OrganizationForecast::from).collect(),
            calibration: None,
        },
        calendar: Some(calendar_explanation(pool)),
        overrides: followed(pool, quota),
        bound: bound_explanation(pool, quota, bound, place),
        eta: EtaExplanation {
            eta: quota.eta.as_f64(),
            last_decision: decision(&pool.eta_decision),
            moves: moves.iter().map(move_body).collect(),
        },
        supply: SupplyExplanation {
            idle_gpus: quota.idle.as_gpus(),
            spot_gpus: quota.used.as_gpus(),
            ceiling_gpus: quota.ceiling.as_gpus(),
            estimated: pool.supply.estimated,
            latest_demand_gpus: pool.supply.latest_demand.as_gpus(),
            longest_quota_wait_s: pool.supply.longest_quota_wait_s,
        },
        quota: answer,
        drift: None,
        starts: Vec::new(),
    }
}

/// The computation as sentences, each with its numbers.
fn steps(pool: &PoolQuota, quota: &Quota, bound: &PoolBound, place: usize) -> Vec<String> {
    let rate = pool.settings.pool.guarantee_rate;
    let hours = quota.hours;
    let how = match (bound.multiplier, bound.step) {
        _ if bound.experts.is_some() => experts_sentence(bound),
        _ if bound.conformal.is_some() => conformal_sentence(bound),
        (Some(z), Some(step)) => {
            let total = bound.totals[step - 1];
            format!("step {step}: {:.3} + {z:.4} × {:.3}", total.mean_gpus, total.stddev_gpus)
        }
        _ => format!("the sum of the largest quantiles of {}", vocab::count(bound.shares.len(), "organization")),
    };
    let raised = raised(bound.raised_from_gpus);
    let returns = match bound.returns_gpus {
        Some(gpus) => format!("; no less than the {gpus:.3} that demand returns to where a day off ends"),
        None => String::new(),
    };
    let live = live_sentence(pool, bound, place) + &kept_sentence(pool, place) + &returns + &sentence(pool, quota);
    let decided = &quota.reasons.first().map(ToString::to_string).unwrap_or_default();
    vec![
        format!("C = {} GPUs, from {}", quota.capacity, pool.capacity_source().as_str()),
        format!(
            "B_{hours} = {} GPUs: {} at p = {rate} over {}, {how}{raised}, rounded up{live}",
            quota.demand_bound,
            pool.aggregation,
            vocab::count(bound.hours.get(), "forecast step")
        ),
        format!("f = max(0, {} − {}) = {}", quota.capacity, quota.demand_bound, quota.inventory),
        format!("η · f = {} × {} = {}, rounded down", quota.eta, quota.inventory, quota.scaled_inventory),
        format!("S0 + Sa = {} + {} = {}", quota.idle, quota.used, quota.ceiling),
        format!("Q_{hours} = min({}, {}) = {}: {decided}", quota.scaled_inventory, quota.ceiling, quota.quota),
    ]
}

fn conformal_sentence(bound: &PoolBound) -> String {
    let (known, multiplier) = (bound.conformal.as_ref(), bound.multiplier.unwrap_or(0.0));
    let text = known.map(|known| {
        format!(
            "{:.3} + {multiplier:.4} × {:.3}, where {} measured peaks of the last week say by how much to move",
            known.centre.centre_gpus, known.deviation_gpus, known.residuals
        )
    });
    text.unwrap_or_default()
}

/// The bounds that were mixed, the largest weight first.
fn experts_sentence(bound: &PoolBound) -> String {
    let mut stated: Vec<_> =
        bound.experts.iter().flatten().filter_map(|one| Some((one.weight, one.expert, one.bound_gpus?))).collect();
    stated.sort_by(|one, other| other.0.total_cmp(&one.0));
    let one = |(weight, expert, gpus): &(f64, Expert, f64)| format!("{weight:.3} × {gpus:.3} ({expert})");
    let all: Vec<_> = stated.iter().map(one).collect();
    format!("{}; weights follow the losses of earlier bounds", all.join(" + "))
}

fn expert(one: &Stated) -> ExpertExplanation {
    ExpertExplanation { expert: one.expert.to_string(), bound_gpus: one.bound_gpus, weight: one.weight }
}

fn calendar_explanation(pool: &PoolQuota) -> CalendarExplanation {
    let (calendar, years) = (&pool.calendar, pool.calendar.covered_years());
    let last = pool.issue.plus_hours(i64::from(pool.run.trained.horizon().get()) - 1);
    CalendarExplanation {
        name: calendar.name(),
        time_zone: calendar.zone().name().to_owned(),
        covers_from: years.as_ref().map(|years| format!("{}-01-01", years.start())),
        covers_until: years.as_ref().map(|years| format!("{}-12-31", years.end())),
        covered: calendar.uncovered(pool.issue, last).is_none(),
        day_off: calendar.at(pool.issue).day_off,
    }
}

fn bound_explanation(pool: &PoolQuota, quota: &Quota, bound: &PoolBound, place: usize) -> BoundExplanation {
    let calibration = pool.run.trained.calibration(&pool.id);
    let pooled = |of: fn(&PoolCalibration) -> f64| {
        calibration.filter(|_| pool.aggregation == forecaster::bound::Aggregation::Pooled).map(of)
    };
    let total = |(index, total): (usize, &forecaster::bound::StepTotal)| StepTotalBody {
        step: step_number(index + 1),
        mean_gpus: total.mean_gpus,
        stddev_gpus: total.stddev_gpus,
        lowered_gpus: total.lowered_gpus,
    };
    BoundExplanation {
        aggregation: pool.aggregation.to_string(),
        aggregation_source: if pool.settings.aggregation.is_some() {
            AggregationSourceBody::Settings
        } else {
            AggregationSourceBody::Validation
        },
        trials: calibration.map(|known| known.scores.iter().map(trial).collect()).unwrap_or_default(),
        guarantee_rate: pool.settings.pool.guarantee_rate.as_f64(),
        steps: bound.hours.get(),
        multiplier: bound.multiplier,
        mean_correlation: pooled(|known| known.mean_correlation),
        step_correlation: pooled(|known| known.step_correlation),
        totals: bound.totals.iter().enumerate().map(total).collect(),
        deciding_step: bound.step.map(step_number),
        conformal: bound.conformal.as_ref().map(conformal),
        experts: bound.experts.iter().flatten().filter(|one| one.expert.states_over(bound.hours)).map(expert).collect(),
        organizations: bound.shares.iter().map(share).collect(),
        raised_from_gpus: bound.raised_from_gpus,
        returns_gpus: bound.returns_gpus,
        live: live_explanation(pool, bound, place),
        promise: Some(pool.settings.pool.promise.into()),
        kept: kept_explanation(pool, place),
        demand_bound_gpus: quota.demand_bound.as_gpus(),
    }
}

/// Corrections of the forecasts of a pool, for its explanation only.
#[must_use]
pub fn calibration(pool: &PoolQuota) -> CalibrationExplanation {
    let corrected = &pool.corrected;
    let calibrator = corrected.calibrator();
    let one = |((raw, issued), fallen_gpus): ((&DemandForecast, &DemandForecast), &f64)| {
        let correction = calibrator.correction(raw, issued)?;
        let [q50_gpus, q90_gpus, q95_gpus] = correction.quantiles_gpus;
        Some(OrganizationCorrection {
            organization: raw.series().organization.to_string(),
            residuals: correction.residuals,
            mean_gpus: correction.mean_gpus,
            q50_gpus,
            q90_gpus,
            q95_gpus,
            fallen_gpus: *fallen_gpus,
        })
    };
    CalibrationExplanation {
        correcting: calibrator.is_correcting(),
        newest_issue_time: calibrator.newest_issue().map(|issue| issue.to_string()),
        organizations: corrected
            .raw()
            .iter()
            .zip(corrected.issued())
            .zip(&corrected.fallen_gpus)
            .filter_map(one)
            .collect(),
    }
}

pub(super) fn step_number(step: usize) -> u8 {
    u8::try_from(step).unwrap_or(u8::MAX)
}

fn trial(one: &AggregationScore) -> AggregationTrial {
    AggregationTrial {
        aggregation: one.aggregation.to_string(),
        coverage: one.scores.coverage,
        coverage_interval: one.scores.coverage_interval,
        pinball_gpus: one.scores.pinball_gpus,
        over_reserved_gpus: one.scores.over_reserved_gpus,
    }
}

fn conformal(known: &ConformalHours) -> ConformalExplanation {
    ConformalExplanation {
        sum_gpus: known.centre.sum_gpus,
        total_gpus: known.centre.total_gpus,
        total_share: known.centre.total_share,
        centre_gpus: known.centre.centre_gpus,
        deviation_gpus: known.deviation_gpus,
        own_order_statistic: known.own,
        own_weight: ConformalHours::OWN_WEIGHT,
        shared_order_statistic: known.shared,
        residuals: known.residuals as u64,
        coverage: known.coverage,
    }
}

fn share(share: &OrganizationShare) -> OrganizationBound {
    OrganizationBound {
        organization: share.organization.to_string(),
        step: step_number(share.step),
        mean_gpus: share.mean_gpus,
        stddev_gpus: share.stddev_gpus,
        bound_gpus: share.bound_gpus,
    }
}

fn decision(decision: &EtaDecision) -> ReasonBody {
    match decision {
        EtaDecision::Hold(why) => ReasonBody { code: why.code().to_owned(), detail: why.to_string() },
        EtaDecision::Move { reason, .. } => ReasonBody { code: reason.code().to_owned(), detail: reason.to_string() },
    }
}

fn move_body(one: &EtaMove) -> EtaMoveBody {
    EtaMoveBody {
        at: one.at.to_string(),
        from: f64::from(one.from_micro) / MILLION,
        to: f64::from(one.to_micro) / MILLION,
        reason: one.reason.clone(),
        kept: one.kept,
        broken: one.broken,
    }
}

/// The forecasts of a pool's organizations, or of one of them.
#[must_use]
pub fn forecast_answer(pool: &PoolQuota, organization: Option<&str>) -> ForecastAnswer {
    let Run { id, trained } = &pool.run;
    let asked = pool.corrected.issued().iter();
    let asked = asked.filter(|one| organization.is_none_or(|name| one.series().organization.as_str() == name));
    ForecastAnswer {
        cluster: pool.id.cluster.to_string(),
        gpu_model: pool.id.gpu_model.to_string(),
        run_id: Some(id.to_string()),
        model: trained.spec.kind.to_string(),
        issue_time: pool.issue.to_string(),
        computed_at: UnixSeconds::to_string(&pool.computed_at),
        organizations: asked.map(OrganizationForecast::from).collect(),
    }
}
