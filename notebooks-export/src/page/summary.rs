//! The report in a few sentences.

use super::{View, gpus};
use crate::analysis::{BoundLine, PoolView};
use maud::{Markup, html};
use pages::{fine_gpus, percent};

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
    let start = format!(
        "{} has a mean error of {} GPUs per hour and organization (MAE of the median)",
        own.name,
        fine_gpus(error)
    );
    let against = view.reference().filter(|name| *name != own.name).and_then(|name| view.scores_of(name));
    let Some(other) = against.filter(|other| other.scores.mae_median_gpus > 0.0) else { return Some(start + ".") };
    let ratio = error / other.scores.mae_median_gpus - 1.0;
    let crps = own.scores.crps_gpus / other.scores.crps_gpus.max(f64::MIN_POSITIVE) - 1.0;
    let change = |ratio: f64| format!("{:.0} % {}", (ratio * 100.0).abs(), if ratio > 0.0 { "more" } else { "less" });
    let both = format!("{}, and {} by CRPS, which scores the whole distribution", change(ratio), change(crps));
    Some(format!("{start}, {} by {}: {both}.", fine_gpus(other.scores.mae_median_gpus), other.name))
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

/// The aggregation that serves a pool, in the facts of a run: `earth:V100=mixture earth:P100=pooled`.
fn serving<'a>(facts: &'a str, pool: &str) -> Option<&'a str> {
    let start = format!("{pool}=");
    let found = facts.match_indices(&start).find(|(at, _)| *at == 0 || facts[..*at].ends_with(' '));
    found.and_then(|(at, _)| facts[at + start.len()..].split(' ').next())
}

/// Result of the bound of a pool: of the aggregation that serves where a run is reported, else of the mixture, which most pools are
/// served by, else of the one with the least loss among those that kept the promise.
fn promise(view: &View<'_>, pool: &PoolView) -> Option<String> {
    let rate = view.material.bounds?.rate.as_f64();
    let start = format!("Pool {}, promise of {} h at {}:", pool.pool, pool.hours.get(), percent(rate));
    let result = |line: &BoundLine| {
        let (issues, idle) = (line.scores.issues, gpus(line.scores.over_reserved_gpus));
        format!("{} of {issues} issue times, with an idle reserve of {idle} GPUs", percent(line.scores.coverage))
    };
    let facts = view.material.serving.get(view.subject());
    let serves = facts.and_then(|facts| serving(facts, &pool.pool.to_string()));
    let line_of = |name: &str| pool.of(view.subject()).find(|line| line.aggregation == name);
    if let Some(line) = serves.and_then(line_of).or_else(|| line_of("mixture")) {
        let what = if serves.is_some() { ", which serves," } else { "" };
        return Some(format!("{start} the {} bound{what} held at {}.", line.aggregation, result(line)));
    }
    let loss = |line: &&BoundLine| line.scores.pinball_gpus;
    let least = |a: &&BoundLine, b: &&BoundLine| loss(a).total_cmp(&loss(b));
    if let Some(line) = pool.of(view.subject()).filter(|line| line.scores.coverage >= rate).min_by(least) {
        return Some(format!("{start} the {} bound held at {}.", line.aggregation, result(line)));
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
        format!(", when demand {} by {} from the hour before", if by < 0.0 { "fell" } else { "rose" }, gpus(by.abs()))
    });
    let start = view.short_day(hour.target);
    Some(format!(
        "The worst hour was {start}: an error of {} GPUs over all organizations{what}.",
        gpus(hour.error_gpus)
    ))
}

#[cfg(test)]
mod tests {
    use super::serving;

    #[test]
    fn the_serving_aggregation_is_that_of_the_whole_name_of_the_pool() {
        let facts = "a-earth:V100=pooled earth:V100=mixture earth:A 100=conformal";
        assert_eq!(serving(facts, "earth:V100"), Some("mixture"));
        assert_eq!(serving(facts, "earth:A 100"), Some("conformal"));
        assert_eq!((serving(facts, "earth:V1"), serving("", "earth:V100")), (None, None));
    }
}
