//! Demand and its forecast.

use super::{View, figure, gpus, legend};
use crate::analysis::{Band, BandPoint, bands};
use maud::{Markup, html};
use pages::{Axis, Chart};

/// Organizations that get a picture.
const SHOWN: usize = 8;

pub fn section(view: &View<'_>) -> Markup {
    let step = view.material.horizon();
    let all = bands(view.material, step);
    let shown = &all[..all.len().min(SHOWN)];
    let how = format!(
        "Forecast {step} hours before the end of each hour by {}. The line is the measured demand; the bands reach from the \
         quantile 0.1 over the median and 0.9 to 0.95. A line above the upper band is a forecast that was too low.",
        view.subject()
    );
    let names = [
        ("line actual", "measured demand"),
        ("line median", "median"),
        ("swatch inner", "0.1 to 0.9"),
        ("swatch outer", "0.9 to 0.95"),
    ]
    .map(|(class, name)| (class.to_owned(), name.to_owned()));
    let rest = all.len() - shown.len();
    let content = html! {
        (legend(&names))
        div class="pair" { @for band in shown { (figure("", &picture(view, band))) } }
        @if rest > 0 {
            p class="how" { "The " (SHOWN) " series with the most demand; " (rest) " more are in forecasts.parquet." }
        }
    };
    super::section("demand", "Demand and its forecast", &how, &content)
}

fn picture(view: &View<'_>, band: &Band) -> Markup {
    let points = &band.points;
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return html! {} };
    let from = first.target;
    let at = |point: &BandPoint| point.target.hours_since(from) as f64;
    let most = |point: &BandPoint| point.quantiles_gpus[2].max(point.actual_gpus.unwrap_or(0.0));
    let name = view.series_name(band.series);
    let chart = Chart {
        width: 460.0,
        height: 220.0,
        x: Axis::days("", view.material.local(from), view.material.local(last.target.plus_hours(1))),
        y: Axis::from_zero("GPUs", points.iter().map(most).fold(0.0, f64::max), 4),
        says: format!("Demand of {name} and its forecast, hour by hour"),
    };
    let lower: Vec<_> = points.iter().map(|point| (at(point), point.low_gpus, point.quantiles_gpus[1])).collect();
    let upper: Vec<_> =
        points.iter().map(|point| (at(point), point.quantiles_gpus[1], point.quantiles_gpus[2])).collect();
    let drawn = html! {
        path class="band inner" d=(chart.area(&lower, 1.0)) {}
        path class="band outer" d=(chart.area(&upper, 1.0)) {}
        path class="line median" d=(chart.steps(points.iter().map(|point| (at(point), Some(point.quantiles_gpus[0]))), 1.0)) {}
        path class="line actual" d=(chart.steps(points.iter().map(|point| (at(point), point.actual_gpus)), 1.0)) {}
    };
    html! {
        h3 { (name) " " span class="aside" { "mean " (gpus(band.mean_demand_gpus)) " GPUs" } }
        (chart.render(&drawn))
    }
}
