//! compare.html: the figures of the policies side by side, and their course.

use crate::run::Outcome;
use crate::tally::{Sample, Summary};
use maud::{Markup, html};
use pages::{Axis, Chart, legend};

/// What the page says of the trace.
#[derive(Debug, Clone)]
pub struct Told {
    pub trace: String,
    pub how: String,
    pub gpus: u64,
}

/// A column of the table: its name, what it means, and its value in text.
type Figure = (&'static str, &'static str, fn(&Summary) -> String);

const FIGURES: [Figure; 15] = [
    ("HP queue", "mean seconds from an HP task's submission to its start", |one| format!("{:.1}", one.hp_queue_mean_s)),
    ("HP queue p99", "99 of 100 HP tasks started within so many seconds", |one| format!("{:.0}", one.hp_queue_p99_s)),
    ("HP JCT", "mean seconds from an HP task's submission to its end", |one| format!("{:.0}", one.hp_jct_mean_s)),
    ("spot JCT", "the same for spot", |one| format!("{:.0}", one.spot_jct_mean_s)),
    ("spot queue", "mean seconds that a spot task waited, all its waits together", |one| {
        format!("{:.0}", one.spot_queue_mean_s)
    }),
    ("e", "evictions of runs of spot tasks", |one| format!("{:.3}", one.eviction_rate)),
    ("broken", "guarantee periods that an eviction broke, of those that were kept or broken", |one| {
        format!("{:.3}", one.guarantee_eviction_rate)
    }),
    (
        "1 − K",
        "GPUs whose promise HP broke before its hours were over; a task that ends early says nothing of what came after (1 − Kaplan–Meier survival, of the longest promise)",
        |one| share(one.promises.last().map(|one| one.broken_share)),
    ),
    ("1 − K, long", "the same of jobs that take as long as the promise, or longer", |one| {
        share(one.promises.last().and_then(|one| one.broken_share_long))
    }),
    ("lost GPU h", "GPU hours that evictions cost: work since the last checkpoint, and what a restart takes", |one| {
        format!("{:.0}", one.lost_gpu_hours)
    }),
    ("allocation", "share of all GPUs in use, from the first submission to the last", |one| {
        format!("{:.3}", one.allocation_rate)
    }),
    ("finished", "tasks", |one| one.finished.to_string()),
    ("rests", "times a task was kept from being evicted over and over", |one| one.rests.to_string()),
    ("CPU s", "of the simulation without training", |one| format!("{:.2}", one.cpu_s)),
    ("training CPU s", "of fits during the simulation", |one| format!("{:.2}", one.train_cpu_s)),
];

fn share(share: Option<f64>) -> String {
    share.map_or_else(|| "-".to_owned(), |share| format!("{share:.3}"))
}

/// The page. The same runs give the same bytes, but for CPU times.
#[must_use]
pub fn page(named: &[(String, Outcome)], told: &Told) -> String {
    let title = format!("Policies on {}", told.trace);
    let header = html! { header { h1 { (title) } p class="how" { (told.how) } } };
    let main = html! { (table(named)) (courses(named, told)) };
    pages::document(&title, &header, &main, "simulate compare")
}

fn table(named: &[(String, Outcome)]) -> Markup {
    html! {
        section {
            h2 { "Figures" }
            div class="wide" {
                table class="tight" {
                    thead { tr { th { "policy" } @for (name, ..) in FIGURES { th { (name) } } } }
                    tbody {
                        @for (policy, run) in named {
                            tr { th scope="row" { (policy) } @for (_, _, value) in FIGURES { td { (value(&run.summary)) } } }
                        }
                    }
                }
            }
            dl class="how" { @for (name, meaning, _) in FIGURES { div { b { (name) } ": " (meaning) "." } } }
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

fn courses(named: &[(String, Outcome)], told: &Told) -> Markup {
    let last = named.iter().filter_map(|(_, run)| run.course.last()).map(hours).fold(1.0, f64::max);
    let most = |of: fn(&Sample) -> f64| named.iter().flat_map(|(_, run)| run.course.iter().map(of)).fold(1.0, f64::max);
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
    let gpus = told.gpus as f64;
    html! {
        @for (policy, run) in named {
            @let course = &run.course;
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
