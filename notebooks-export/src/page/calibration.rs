//! Calibration: overall, and by organization.

use super::{View, figure, gpus, legend, line_class};
use crate::analysis::{Coverage, Curve, PIT_BINS, coverage, curve, pit};
use maud::{Markup, html};
use pages::{Axis, Chart, percent};

/// Organizations that get a line of the picture.
const SHOWN: usize = 40;
const ROW: f64 = 18.0;

pub fn section(view: &View<'_>) -> Markup {
    let how =
        "A bound at 0.9 should hold nine times out of ten: less often breaks promises, more often keeps GPUs idle.";
    let models = view.models.iter().enumerate();
    let names: Vec<_> =
        models.map(|(place, model)| (line_class(place, model.is_baseline), model.name.clone())).collect();
    let curves: Vec<Curve> = (0..view.models.len()).map(|model| curve(&view.material.scored(model))).collect();
    let rows = view.material.scored(view.material.subject);
    let all = coverage(view.material);
    let content = html! {
        (legend(&names))
        div class="pair" {
            (figure("Promised level against the share of hours below it. Lines: the Gaussian; dots: the exported \
                quantiles 0.5, 0.9 and 0.95. On the diagonal a promise is kept exactly; above it the reserve is too large.",
                &curve_chart(view, &curves)))
            (figure(&format!("PIT of {}: place of the demand in its forecast distribution. Flat at 1 is correct; a hill is \
                a distribution that is too wide, a bowl one that is too narrow.", view.subject()), &pit_chart(&pit(&rows))))
        }
        h3 { "Coverage by organization" }
        p class="how" { "Share of hours at or below the 0.9 quantile of " (view.subject()) ", with its 90 % interval over days. \
            Right of the line: safer than promised." }
        (figure("", &coverage_chart(view, &all)))
        @if all.len() > SHOWN {
            p class="how" { "The " (SHOWN) " with the lowest coverage; all " (all.len()) " are in metrics.csv." }
        }
    };
    super::section("calibration", "Calibration", how, &content)
}

fn curve_chart(view: &View<'_>, curves: &[Curve]) -> Markup {
    let axis = |label: &str| Axis::between(label, 0.0, 1.0, 5);
    let says = "Promised level against observed share, a line a model".to_owned();
    let chart = Chart { width: 460.0, height: 340.0, x: axis("promised level"), y: axis("share of hours below"), says };
    let drawn = html! {
        path class="line diagonal" d=(chart.line([(0.0, Some(0.0)), (1.0, Some(1.0))])) {}
        @for (place, (model, curve)) in view.models.iter().zip(curves).enumerate() {
            path class=(line_class(place, model.is_baseline)) d=(chart.line(curve.gaussian.iter().map(|(level, share)| (*level, Some(*share))))) {}
            @for (level, share) in curve.quantiles {
                circle class=(format!("dot m{}", place % 8)) cx=(chart.x(level)) cy=(chart.y(share)) r="4" {
                    title { (model.name) ": quantile " (level) " held in " (percent(share)) }
                }
            }
        }
    };
    chart.render(&drawn)
}

fn pit_chart(bins: &[f64; PIT_BINS]) -> Markup {
    let most = bins.iter().copied().fold(1.2, f64::max);
    let chart = Chart {
        width: 460.0,
        height: 340.0,
        x: Axis::between("place in the distribution", 0.0, 1.0, 5),
        y: Axis::from_zero("times as often as even", most, 5),
        says: "PIT histogram".to_owned(),
    };
    let width = chart.x(1.0 / PIT_BINS as f64) - chart.x(0.0);
    let drawn = html! {
        @for (place, bar) in bins.iter().enumerate() {
            @let from = place as f64 / PIT_BINS as f64;
            rect class="bar" x=(chart.x(from) + 0.5) y=(chart.y(*bar)) width=(width - 1.0) height=(chart.y(0.0) - chart.y(*bar)) {
                title { (percent(from)) " to " (percent(from + 1.0 / PIT_BINS as f64)) ": " (format!("{bar:.2}")) }
            }
        }
        path class="line diagonal" d=(chart.line([(0.0, Some(1.0)), (1.0, Some(1.0))])) {}
    };
    chart.render(&drawn)
}

fn coverage_chart(view: &View<'_>, all: &[Coverage]) -> Markup {
    const LEFT: f64 = 190.0;
    const RIGHT: f64 = 735.0;
    let shown = &all[..all.len().min(SHOWN)];
    let least = shown.iter().map(|one| one.interval[0].min(one.share)).fold(0.8, f64::min);
    let axis = Axis::between("", least, 1.0, 6);
    let x = |share: f64| LEFT + axis.share(share) * (RIGHT - LEFT);
    let (height, bottom) = (shown.len() as f64 * ROW + 30.0, shown.len() as f64 * ROW + 4.0);
    let y = |place: usize| 4.0 + (place as f64 + 0.5) * ROW;
    html! {
        svg class="broad" viewBox=(format!("0 0 940 {height}")) role="img" aria-label="Coverage of the 0.9 quantile, a line an organization" {
            @for (value, _) in &axis.ticks {
                line class="grid" x1=(x(*value)) x2=(x(*value)) y1="2" y2=(bottom) {}
                text class="tick mid" x=(x(*value)) y=(bottom + 14.0) { (percent(*value)) }
            }
            line class="line promise" x1=(x(0.9)) x2=(x(0.9)) y1="2" y2=(bottom) {}
            @for (place, one) in shown.iter().enumerate() {
                text class="tick end" x=(LEFT - 8.0) y=(y(place) + 3.5) { (view.series_name(one.series)) }
                line class="whisker" x1=(x(one.interval[0])) x2=(x(one.interval[1])) y1=(y(place)) y2=(y(place)) {}
                circle class=(if one.share < 0.9 { "dot low" } else { "dot kept" }) cx=(x(one.share)) cy=(y(place)) r="4" {
                    title { (view.series_name(one.series)) ": " (percent(one.share)) " of " (one.rows) " hours" }
                }
                text class="tick" x=(RIGHT + 14.0) y=(y(place) + 3.5) {
                    (percent(one.share)) ", mean " (gpus(one.mean_demand_gpus)) ", MAE " (gpus(one.mae_gpus))
                }
            }
        }
    }
}
