//! inflate.html: figures side by side, and the curves with their spread.

use super::Filled;
use super::curve::ENDS_AT;
use super::trace::Trace;
use crate::args::Inflate;
use crate::spread::Spread;
use maud::{Markup, html};
use pages::{Axis, Chart, legend};
use std::path::Path;

/// Lines that are distinct in one picture.
const LINES: usize = 8;
/// In percent: where placing begins to fail.
const GRAR_FROM: usize = 80;

/// The page. The same runs give the same bytes, but for CPU times.
pub fn page(all: &[Filled], trace: &Trace, what: &Inflate) -> String {
    let name = |path: &Path| path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let title = format!("Policies that fill {}", name(&what.nodes));
    let how = format!(
        "{} nodes with {} GPUs of {} models ({}), filled with the {} pods of {} in an order that is drawn, then with any of \
         them again, until they have asked for {ENDS_AT} % of the GPUs; no pod leaves. {} seeds: means, and deviations as \
         bands. The target of fragmentation is the trace itself: {} specs.",
        trace.nodes.len(),
        trace.gpus,
        trace.models.len(),
        name(&what.nodes),
        trace.pods.len(),
        name(&what.pods),
        what.seeds,
        trace.workload.target().len(),
    );
    let header = html! { header { h1 { (title) } p class="how" { (how) } } };
    let main = html! { (table(all)) @for some in all.chunks(LINES) { (charts(some)) } };
    pages::document(&title, &header, &main, "simulate inflate")
}

fn table(all: &[Filled]) -> Markup {
    let heads = |word: &'static str, of: &Filled, digits: usize| -> Vec<(String, usize)> {
        let by = if word == "GRAR" { &of.figures.grar_at } else { &of.figures.eopc_kw_at };
        let mut percents: Vec<u64> = by.keys().filter_map(|at| at.parse().ok()).collect();
        percents.sort_unstable();
        percents.iter().map(|at| (at.to_string(), digits)).collect()
    };
    html! {
        section {
            h2 { "Figures" }
            div class="wide" {
                table class="tight" {
                    @if let Some(first) = all.first() {
                        thead { tr {
                            th { "policy" }
                            th { "failed pods" }
                            @for (at, _) in heads("GRAR", first, 4) { th { "GRAR@" (at) } }
                            @for (at, _) in heads("EOPC", first, 1) { th { "EOPC kW@" (at) } }
                            th { "CPU s" }
                        } }
                    }
                    tbody {
                        @for one in all {
                            tr {
                                th scope="row" { (one.policy) }
                                td { (one.figures.failed_pods.text(0)) }
                                @for (at, digits) in heads("GRAR", one, 4) { td { (one.figures.grar_at[&at].text(digits)) } }
                                @for (at, digits) in heads("EOPC", one, 1) { td { (one.figures.eopc_kw_at[&at].text(digits)) } }
                                td { (one.figures.cpu_s.text(2)) }
                            }
                        }
                    }
                }
            }
            p class="how" {
                "GRAR: GPUs placed of those that were asked for. EOPC: what all nodes draw. @: when pods have asked for so many \
                 percent of all GPUs. Failed pods: those that no node had room for, of a whole run."
            }
        }
    }
}

fn charts(some: &[Filled]) -> Markup {
    let names: Vec<_> =
        some.iter().enumerate().map(|(place, one)| (format!("line m{place}"), one.policy.clone())).collect();
    let most = some.iter().flat_map(|one| &one.curves.eopc_kw).fold(1.0, |most: f64, at| most.max(at.mean + at.sd));
    let least = some.iter().flat_map(|one| &one.curves.grar).fold(1.0, |least: f64, at| least.min(at.mean - at.sd));
    let asked = |from: usize| Axis::between("GPUs asked for, % of all", from as f64, ENDS_AT as f64, 6);
    let power = Chart {
        width: 560.0,
        height: 340.0,
        x: asked(0),
        y: Axis::from_zero("kW", most, 6),
        says: "Power of all nodes against the GPUs asked for, a line a policy".to_owned(),
    };
    let placed = Chart {
        width: 560.0,
        height: 340.0,
        x: asked(GRAR_FROM),
        y: Axis::between("GRAR", least.max(0.0), 1.0, 6),
        says: "Share of the GPUs asked for that was placed, a line a policy".to_owned(),
    };
    html! {
        section {
            h2 { "Power, and what was placed" }
            (legend(&names))
            div class="pair" {
                (figure("EOPC", &lines(&power, some, 0, |one| &one.curves.eopc_kw)))
                (figure("GRAR, from where placing may begin to fail", &lines(&placed, some, GRAR_FROM, |one| &one.curves.grar)))
            }
        }
    }
}

fn figure(title: &str, drawn: &Markup) -> Markup {
    html! { figure { div class="plot" { h3 { (title) } (drawn) } } }
}

/// Bands of one deviation, and the means over them.
fn lines(chart: &Chart, some: &[Filled], from: usize, of: fn(&Filled) -> &[Spread]) -> Markup {
    let points = |one| of(one).iter().enumerate().skip(from).map(|(percent, at)| (percent as f64, *at));
    chart.render(&html! {
        @for (place, one) in some.iter().enumerate() {
            @let band: Vec<_> = points(one).map(|(x, at)| (x, at.mean - at.sd, at.mean + at.sd)).collect();
            path class=(format!("band faint m{place}")) d=(chart.area(&band, 0.0)) {}
        }
        @for (place, one) in some.iter().enumerate() {
            path class=(format!("line m{place}")) d=(chart.line(points(one).map(|(x, at)| (x, Some(at.mean))))) {}
        }
    })
}
