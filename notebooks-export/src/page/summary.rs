//! The report in a few sentences.

use super::{View, gpus};
use crate::analysis::{BoundLine, PoolView};
use maud::{Markup, html};
use pages::percent;

fn sentences(view: &View<'_>) -> Vec<String> {
    let mut all = Vec::new();
    all.extend(errors(view));
    all.extend(bounds_of_organizations(view));
    all.extend(view.pools.iter().filter_map(|pool| promise(view, pool)).take(8));
    all.extend(view.partial_bounds.iter().map(|part| part.sentence(|issue| view.short_day(issue))).take(8));
    all.extend(worst(view));
    all
}

pub fn section(view: &View<'_>) -> Markup {
    let sentences = sentences(view);
    super::section("short", "In short", "", &html! { ul class="short" { @for one in &sentences { li { (one) } } } })
}

fn errors(view: &View<'_>) -> Option<String> {
    let own = view.scores_of(view.subject())?;
    let error = own.scores.mae_median_gpus;
    let start =
        format!("{} has a mean error of {} GPUs per hour and organization (MAE of the median)", own.name, gpus(error));
    let against = view.reference().filter(|name| *name != own.name).and_then(|name| view.scores_of(name));
    let Some(other) = against.filter(|other| other.scores.mae_median_gpus > 0.0) else { return Some(start + ".") };
    let ratio = error / other.scores.mae_median_gpus - 1.0;
    let crps = own.scores.crps_gpus / other.scores.crps_gpus.max(f64::MIN_POSITIVE) - 1.0;
    let change = |ratio: f64| format!("{:.0} % {}", (ratio * 100.0).abs(), if ratio > 0.0 { "more" } else { "less" });
    let both = format!("{}, and {} by CRPS, which scores the whole distribution", change(ratio), change(crps));
    Some(format!("{start}, {} by {}: {both}.", gpus(other.scores.mae_median_gpus), other.name))
}

fn bounds_of_organizations(view: &View<'_>) -> Option<String> {
    let own = view.scores_of(view.subject())?;
    let [q90, q95] = own.scores.coverage;
    let verdict = if q90 >= 0.9 { "as promised" } else { "too rarely" };
    Some(format!(
        "Its 0.9 quantile held in {} of the hours, {verdict}; its 0.95 quantile in {}.",
        percent(q90),
        percent(q95)
    ))
}

/// Result of the bound of a pool: the line with the least loss among those that kept the promise.
fn promise(view: &View<'_>, pool: &PoolView) -> Option<String> {
    let rate = view.material.bounds?.rate.as_f64();
    let loss = |line: &&BoundLine| line.scores.pinball_gpus;
    let least = |a: &&BoundLine, b: &&BoundLine| loss(a).total_cmp(&loss(b));
    let kept = pool.of(view.subject()).filter(|line| line.scores.coverage >= rate).min_by(least);
    let start = format!("Pool {}, promise of {} h at {}:", pool.pool, pool.hours.get(), percent(rate));
    if let Some(line) = kept {
        return Some(format!(
            "{start} the {} bound held at {} of {} issue times, with an idle reserve of {} GPUs.",
            line.aggregation,
            percent(line.scores.coverage),
            line.scores.issues,
            gpus(line.scores.over_reserved_gpus)
        ));
    }
    let best = pool.of(view.subject()).max_by(|a, b| a.scores.coverage.total_cmp(&b.scores.coverage))?;
    let (aggregation, held) = (&best.aggregation, percent(best.scores.coverage));
    Some(format!(
        "{start} no bound kept the promise; {aggregation} came closest with {held} of {}.",
        best.scores.issues
    ))
}

fn worst(view: &View<'_>) -> Option<String> {
    let hour = view.worst.first()?;
    let moved = hour.before_gpus.map(|before| hour.demand_gpus - before);
    let what = moved.map_or_else(String::new, |by| {
        format!(", when demand {} by {} within the hour", if by < 0.0 { "fell" } else { "rose" }, gpus(by.abs()))
    });
    let start = view.short_day(hour.target);
    Some(format!(
        "The worst hour was {start}: an error of {} GPUs over all organizations{what}.",
        gpus(hour.error_gpus)
    ))
}
