//! Bounds against the measured peaks.

use super::{View, figure, gpus, legend};
use crate::analysis::{BoundLine, PartialBounds, PoolView};
use maud::{Markup, html};
use pages::{Axis, Chart, percent};

/// Pools that get a picture.
const SHOWN: usize = 6;
/// Looks of bounds: each a colour and a dash of its own in the page's style.
const LOOKS: usize = 8;
const STRIP: f64 = 10.0;
/// Place of a strip and of its name above it.
const NAMED_STRIP: f64 = 26.0;

pub fn section(view: &View<'_>) -> Markup {
    let Some(bounds) = view.material.bounds else {
        let how = "No bounds: write them with train backtest --pool-out, and pass them with --pool-bounds.";
        return super::section("pools", "The pool's bound against its peak", how, &html! {});
    };
    let how = format!(
        "At each issue time the bound is the upper limit of high-priority demand over the promised hours, with \
         probability {}. The space between bound and peak is idle reserve; a peak above the bound breaks promises.",
        percent(bounds.rate.as_f64())
    );
    let content = html! {
        @for pool in view.pools.iter().take(SHOWN) { (of_pool(view, pool)) }
        @if view.pools.len() > SHOWN {
            p class="how" { "Figures of the first " (SHOWN) " of " (view.pools.len()) " pools; metrics.csv has all." }
        }
    };
    super::section("pools", "The pool's bound against its peak", &how, &content)
}

fn of_pool(view: &View<'_>, pool: &PoolView) -> Markup {
    let lines: Vec<&BoundLine> = pool.of(view.subject()).collect();
    let mut names = vec![("line actual".to_owned(), "measured peak".to_owned())];
    names.extend(lines.iter().enumerate().map(|(place, line)| (bound_class(place), line.aggregation.clone())));
    if pool.capacity_gpus.is_some() {
        names.push(("line capacity".to_owned(), "capacity".to_owned()));
    }
    html! {
        @let is_here = |part: &&PartialBounds| part.pool == pool.pool.to_string() && part.hours == pool.hours.get();
        h3 { (pool.pool) " " span class="aside" { "promise of " (pool.hours.get()) " h" } }
        @if let Some(part) = view.partial_bounds.iter().find(is_here) {
            p class="how" { (part.sentence(|issue| view.short_day(issue))) }
        }
        @if lines.is_empty() {
            p class="how" { "No bounds of " (view.subject()) "." }
        } @else {
            (legend(&names))
            (figure("Marks below the figure: issue times whose peak broke the bound.", &picture(view, pool, &lines)))
        }
        (table(view, pool))
    }
}

fn bound_class(place: usize) -> String {
    format!("line b{}", place % LOOKS)
}

fn picture(view: &View<'_>, pool: &PoolView, lines: &[&BoundLine]) -> Markup {
    let issues = lines.iter().flat_map(|line| &line.pairs).map(|pair| pair.issue);
    let (Some(from), Some(to)) = (issues.clone().min(), issues.max()) else { return html! {} };
    let values = lines.iter().flat_map(|line| &line.pairs).map(|pair| pair.bound_gpus.max(pair.peak_gpus));
    let most = values.fold(pool.capacity_gpus.unwrap_or(0.0), f64::max);
    let least = lines.iter().flat_map(|line| &line.pairs).map(|pair| pair.peak_gpus).fold(most, f64::min);
    let chart = Chart {
        width: 940.0,
        height: 300.0,
        x: Axis::days("", view.material.local(from), view.material.local(to.plus_hours(1))),
        y: Axis::between("GPUs", least, most, 5),
        says: format!("Bounds of {} and the measured peaks", pool.pool),
    };
    let at = |issue: vocab::HourStart| issue.hours_since(from) as f64;
    let peaks: Vec<_> = lines[0].pairs.iter().map(|pair| (at(pair.issue), Some(pair.peak_gpus))).collect();
    let drawn = html! {
        path class="line actual" d=(chart.steps(peaks, 1.0)) {}
        @for (place, line) in lines.iter().enumerate() {
            path class=(bound_class(place)) d=(chart.steps(line.pairs.iter().map(|pair| (at(pair.issue), Some(pair.bound_gpus))), 1.0)) {}
        }
        @if let Some(capacity) = pool.capacity_gpus {
            path class="line capacity" d=(chart.line([(chart.x.from, Some(capacity)), (chart.x.to, Some(capacity))])) {}
        }
    };
    html! { (chart.render(&drawn)) (strips(&chart, lines, at)) }
}

/// A strip an aggregation with a mark at each issue time whose promise was broken.
fn strips(chart: &Chart, lines: &[&BoundLine], at: impl Fn(vocab::HourStart) -> f64) -> Markup {
    let height = lines.len() as f64 * NAMED_STRIP + 4.0;
    html! {
        svg class="broad" viewBox=(format!("0 0 {} {height}", chart.width)) role="img" aria-label="Issue times whose peak broke the bound, a strip an aggregation" {
            @for (place, line) in lines.iter().enumerate() {
                @let y = (place + 1) as f64 * NAMED_STRIP - STRIP;
                text class="tick" x=(chart.x(chart.x.from)) y=(y - 3.0) { (line.aggregation) }
                rect class="strip" x=(chart.x(chart.x.from)) y=(y) width=(chart.x(chart.x.to) - chart.x(chart.x.from)) height=(STRIP) {}
                @for pair in line.pairs.iter().filter(|pair| pair.peak_gpus > pair.bound_gpus + 1e-6) {
                    rect class=(format!("broken b{}", place % LOOKS)) x=(chart.x(at(pair.issue))) y=(y) height=(STRIP)
                        width=(pages::short((chart.x(1.0) - chart.x(0.0)).max(1.5))) {}
                }
            }
        }
    }
}

/// All models where there is one pool; else the model of the pictures and the one that it is measured against.
fn table(view: &View<'_>, pool: &PoolView) -> Markup {
    let is_shown = |line: &&BoundLine| {
        view.pools.len() == 1 || line.model == view.subject() || Some(line.model.as_str()) == view.reference()
    };
    let rate = view.material.bounds.map_or(0.9, |bounds| bounds.rate.as_f64());
    html! {
        div class="wide" { table class="tight" {
            thead { tr {
                th scope="col" { "Model" } th class="word" scope="col" { "Aggregation" } th scope="col" { "Kept rate" }
                th scope="col" { "90 % interval" } th scope="col" { "Idle reserve" }
                th scope="col" { "Shortfall" } th scope="col" { "Pinball" }
            } }
            tbody { @for line in pool.lines.iter().filter(is_shown) {
                @let scores = &line.scores;
                tr class=[(line.model == view.subject()).then_some("subject")] {
                    th scope="row" { (line.model) } td class="word" { (line.aggregation) }
                    td class=(if line.under() <= 1.0 - rate + 1e-9 { "good" } else { "bad" }) { (percent(scores.coverage)) }
                    td { (percent(scores.coverage_interval[0])) " to " (percent(scores.coverage_interval[1])) }
                    td { (gpus(scores.over_reserved_gpus)) } td { (gpus(scores.shortfall_gpus)) } td { (gpus(scores.pinball_gpus)) }
                }
            } }
        } }
    }
}
