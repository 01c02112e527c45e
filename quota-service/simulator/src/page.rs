//! compare.html: the figures of the policies side by side, and their course.

use crate::figures::{Row, present};
use crate::tally::Sample;
use maud::{Markup, html};
use pages::{Axis, Chart, legend};

/// The page's facts of the trace.
#[derive(Debug, Clone)]
pub struct Header {
    pub trace: String,
    pub how: String,
    pub gpus: u64,
}

/// The page. The same runs give the same bytes, but for CPU times.
#[must_use]
pub fn page(rows: &[Row], header: &Header) -> String {
    let title = format!("Policies on {}", header.trace);
    let top = html! { header { h1 { (title) } p class="how" { (header.how) } } };
    let main = html! { (crate::price::section(rows)) (table(rows)) (courses(rows, header)) };
    pages::document(&title, &top, &main, "simulate compare")
}

fn table(rows: &[Row]) -> Markup {
    html! {
        section {
            h2 { "Figures" }
            div class="wide" {
                table class="tight" {
                    thead { tr { th { "policy" } @for figure in present(rows) { th { (figure.head) } } } }
                    tbody {
                        @for row in rows {
                            tr { th scope="row" { (row.name) } @for figure in present(rows) { td { (row.cell(figure)) } } }
                        }
                    }
                }
            }
            dl class="how" { @for figure in present(rows) { div { b { (figure.head) } ": " (figure.meaning) "." } } }
        }
    }
}

fn eta(sample: &Sample) -> f64 {
    sample.eta.unwrap_or(0.0)
}

/// Hours since the first submission.
fn hours(sample: &Sample) -> f64 {
    sample.at_s as f64 / 3_600.0
}

fn courses(rows: &[Row], header: &Header) -> Markup {
    let last = rows.iter().filter_map(|row| row.course.last()).map(hours).fold(1.0, f64::max);
    let most = |of: fn(&Sample) -> f64| rows.iter().flat_map(|row| row.course.iter().map(of)).fold(1.0, f64::max);
    let days = || {
        let axis = Axis::from_zero("days", last / 24.0, 8);
        Axis {
            from: axis.from * 24.0,
            to: axis.to * 24.0,
            ticks: axis.ticks.into_iter().map(|(at, text)| (24.0 * at, text)).collect(),
            ..axis
        }
    };
    let chart = |label: &str, most: f64, says: String| Chart {
        width: 460.0,
        height: 190.0,
        x: days(),
        y: Axis::from_zero(label, most, 4),
        says,
    };
    let names = |all: &[(&str, &str)]| {
        let owned: Vec<_> = all.iter().map(|(class, name)| ((*class).to_owned(), (*name).to_owned())).collect();
        legend(&owned)
    };
    let gpus = header.gpus as f64;
    html! {
        @for Row { name: policy, course, .. } in rows {
            section {
                h2 { (policy) }
                (names(&[("swatch inner", "HP"), ("swatch outer", "spot"), ("line m1", "quota, waiting, eta or evictions")]))
                div class="pair" {
                    (figure("GPUs in use, and the quota", &allocation(&chart("GPUs", gpus, format!("{policy}: GPUs in use by HP and spot, and the quota, hour by hour")), course, gpus)))
                    (figure("Spot tasks that wait", &line(&chart("tasks", most(|one| one.spot_waiting as f64), format!("{policy}: spot tasks that wait")), course, |one| one.spot_waiting as f64)))
                    (figure("Evictions an hour", &line(&chart("evictions", most(|one| one.evictions as f64), format!("{policy}: evictions in each hour")), course, |one| one.evictions as f64)))
                    @if course.iter().any(|one| one.eta.is_some()) {
                        (figure("Eta", &line(&chart("eta", most(eta), format!("{policy}: eta")), course, eta)))
                    }
                }
            }
        }
    }
}

fn figure(title: &str, drawn: &Markup) -> Markup {
    html! { figure { div class="plot" { h3 { (title) } (drawn) } } }
}

fn allocation(chart: &Chart, course: &[Sample], gpus: f64) -> Markup {
    let hp: Vec<_> = course.iter().map(|one| (hours(one), 0.0, one.hp_gpus)).collect();
    let spot: Vec<_> = course.iter().map(|one| (hours(one), one.hp_gpus, one.hp_gpus + one.spot_gpus)).collect();
    let quota = course.iter().map(|one| (hours(one), one.quota_gpus.map(|quota| quota.min(gpus))));
    chart.render(&html! {
        path class="band inner" d=(chart.area(&hp, 1.0)) {}
        path class="band outer" d=(chart.area(&spot, 1.0)) {}
        path class="line m1" d=(chart.steps(quota, 1.0)) {}
    })
}

fn line(chart: &Chart, course: &[Sample], of: fn(&Sample) -> f64) -> Markup {
    let points = course.iter().map(|one| (hours(one), Some(of(one))));
    chart.render(&html! { path class="line m1" d=(chart.steps(points, 1.0)) {} })
}
