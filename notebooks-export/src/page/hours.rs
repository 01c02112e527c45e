//! Errors by weekday and hour, and the worst hours.

use super::{View, figure, gpus};
use crate::analysis::{Share, WorstHour, hour_of_week};
use maud::{Markup, html};
use pages::{heatmap, signed_gpus};

pub fn section(view: &View<'_>) -> Markup {
    let how = format!(
        "Mean absolute error of {} in GPUs, by target hour. Stronger colours are larger errors.",
        view.subject()
    );
    let week = hour_of_week(view.material);
    let map = heatmap(&week, "Mean absolute error by weekday and hour of the day");
    let errors = week.iter().flatten().flatten();
    let (least, most) =
        errors.fold((f64::INFINITY, 0.0), |(least, most): (f64, f64), error| (least.min(*error), most.max(*error)));
    let scale = format!("The palest hour has {} GPUs, the strongest {}.", gpus(least), gpus(most));
    let content = html! {
        div class="narrow" { (figure(&scale, &map)) }
        h3 { "The ten worst hours" }
        p class="how" { "Error: the sum over organizations of |median − demand|, averaged over the forecasts of that hour. Demand: \
            the sum of the peaks of organizations, which need not fall on one moment. Hours of the same event are listed once." }
        div class="wide" { table class="worst" {
            thead { tr {
                th scope="col" { "Hour" } th scope="col" { "Error" }
                @if let Some(name) = view.reference() { th scope="col" { (name) } }
                th scope="col" { "Demand" } th class="word" scope="col" { "Cause" }
            } }
            tbody { @for hour in &view.worst { (row(view, hour)) } }
        } }
    };
    super::section("hours", "Errors over time", &how, &content)
}

fn row(view: &View<'_>, hour: &WorstHour) -> Markup {
    html! {
        tr {
            th scope="row" { (view.short_day(hour.target)) }
            td { (gpus(hour.error_gpus)) }
            @if view.reference().is_some() { td { (hour.reference_error_gpus.map(gpus).unwrap_or_default()) } }
            td { (gpus(hour.demand_gpus)) }
            td class="word" { (happened(view, hour)) }
        }
    }
}

fn happened(view: &View<'_>, hour: &WorstHour) -> String {
    let mut sentences = Vec::new();
    if hour.after_gap {
        sentences.push("First hour after a recording gap.".to_owned());
    }
    if let Some(before) = hour.before_gpus {
        let change = hour.demand_gpus - before;
        sentences.push(format!(
            "Demand went from {} to {} ({}).",
            gpus(before),
            gpus(hour.demand_gpus),
            signed_gpus(change)
        ));
    }
    sentences
        .extend(hour.series.iter().filter(|one| one.error_gpus > 0.1 * hour.error_gpus).map(|one| share(view, one)));
    if hour.neighbours > 0 {
        let hours = if hour.neighbours == 1 { "hour" } else { "hours" };
        sentences.push(format!("{} more neighbouring {hours} had similar errors.", hour.neighbours));
    }
    sentences.join(" ")
}

/// Demand of one organization, and its forecast.
fn share(view: &View<'_>, one: &Share) -> String {
    let came = match one.before_gpus {
        Some(before) if (before - one.actual_gpus).abs() >= 0.5 => {
            format!("went from {} to {}", gpus(before), gpus(one.actual_gpus))
        }
        _ => format!("was at {}", gpus(one.actual_gpus)),
    };
    let expected = format!("{} expected", gpus(one.median_gpus));
    let bound = if one.actual_gpus > one.q95_gpus {
        format!(", above the 0.95 quantile of {}", gpus(one.q95_gpus))
    } else {
        String::new()
    };
    format!("{} {came}, {expected}{bound}.", view.series_name(one.series))
}
