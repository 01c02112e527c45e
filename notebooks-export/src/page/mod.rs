//! report.html: one file, without scripts and without a network, for screen and paper, light and dark.

mod calibration;
mod definitions;
mod demand;
mod hours;
mod models;
mod pools;
mod summary;

use crate::analysis::{self, Material, ModelView, PartialBounds, PoolView, WorstHour};
use maud::{Markup, html};
use pages::{gpus, legend};
use vocab::{HourStart, SeriesId};

/// Content of the page.
struct View<'a> {
    material: &'a Material<'a>,
    models: Vec<ModelView>,
    pools: Vec<PoolView>,
    worst: Vec<WorstHour>,
    partial_bounds: Vec<PartialBounds>,
}

/// The page. The same material gives the same bytes.
pub fn page(material: &Material<'_>, models: Vec<ModelView>, title: &str) -> String {
    let (pools, worst) = (analysis::pools(material), analysis::worst_hours(material));
    let view = View { material, models, pools, worst, partial_bounds: analysis::partial_bounds(material) };
    let main = html! {
        (summary::section(&view))
        (models::section(&view))
        (demand::section(&view))
        (pools::section(&view))
        (calibration::section(&view))
        (hours::section(&view))
        (models::by_step(&view))
        (definitions::section(&view))
    };
    pages::document(title, &header(&view, title), &main, "notebooks-export report")
}

fn header(view: &View<'_>, title: &str) -> Markup {
    let forecasts = view.material.forecasts;
    let issues = forecasts.rows.iter().map(|row| row.issue);
    let (first, last) = (issues.clone().min(), forecasts.rows.iter().map(crate::forecasts::ForecastRow::target).max());
    let issues = issues.collect::<std::collections::BTreeSet<_>>().len();
    let in_gap = forecasts.rows.iter().filter(|row| view.material.gaps.holds(forecasts, row)).count();
    html! {
        header {
            h1 { (title) }
            dl {
                (fact("Model in the pictures", view.subject()))
                (fact("Forecasts", &format!("up to {} hours ahead", view.material.horizon())))
                @if let (Some(first), Some(last)) = (first, last) {
                    (fact("Window", &format!("{} to {}", view.day(first), view.day(last))))
                }
                (fact("Times in", view.material.zone.name()))
                (fact("Organizations", &format!("{} series in {}", forecasts.series.len(), view.pool_names())))
                (fact("Rows", &row_count(forecasts.rows.len(), issues, in_gap)))
            }
        }
    }
}

fn fact(name: &str, value: &str) -> Markup {
    html! { div { dt { (name) } dd { (value) } } }
}

fn row_count(rows: usize, issues: usize, in_gap: usize) -> String {
    let all = format!("{rows}, from {issues} issue times");
    if in_gap == 0 { all } else { format!("{all}; {in_gap} in recording gaps and not scored") }
}

impl View<'_> {
    fn subject(&self) -> &str {
        &self.material.forecasts.models[self.material.subject]
    }

    fn reference(&self) -> Option<&str> {
        self.material.reference.map(|place| self.material.forecasts.models[place].as_str())
    }

    fn scores_of(&self, name: &str) -> Option<&ModelView> {
        self.models.iter().find(|view| view.name == name)
    }

    /// As the sentence needs it: the pool, or how many there are.
    fn pool_names(&self) -> String {
        let mut pools: Vec<String> =
            self.material.forecasts.series.iter().map(|series| series.pool.to_string()).collect();
        pools.sort();
        pools.dedup();
        match &pools[..] {
            [only] => format!("pool {only}"),
            many if many.len() <= 6 => format!("{} pools: {}", many.len(), many.join(", ")),
            many => format!("{} pools", many.len()),
        }
    }

    /// The organization, with as much of its pool as tells it from others.
    fn series_name(&self, series: usize) -> String {
        let all = &self.material.forecasts.series;
        let one: &SeriesId = &all[series];
        if all.iter().all(|other| other.pool == one.pool) {
            one.organization.to_string()
        } else if all.iter().all(|other| other.pool.cluster == one.pool.cluster) {
            format!("{} · {}", one.organization, one.pool.gpu_model)
        } else {
            format!("{} · {}", one.organization, one.pool)
        }
    }

    fn day(&self, hour: HourStart) -> String {
        self.material.local(hour).format("%a %-d %b %Y, %H:%M").to_string()
    }

    fn short_day(&self, hour: HourStart) -> String {
        self.material.local(hour).format("%a %-d %b, %H:%M").to_string()
    }
}

/// Colour and dash of a model: rules are dashed.
fn line_class(place: usize, is_baseline: bool) -> String {
    format!("line m{}{}", place % 8, if is_baseline { " dashed" } else { "" })
}

/// A section with a heading that can be linked to and a line on how to read it.
fn section(id: &str, heading: &str, how: &str, content: &Markup) -> Markup {
    html! {
        section id=(id) {
            h2 { (heading) }
            @if !how.is_empty() { p class="how" { (how) } }
            (content)
        }
    }
}

fn figure(caption: &str, drawn: &Markup) -> Markup {
    html! { figure { div class="plot" { (drawn) } @if !caption.is_empty() { figcaption { (caption) } } } }
}
