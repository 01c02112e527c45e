//! Definitions of the terms of the page.

use super::View;
use maud::{Markup, html};

/// Term and definition. As computed by `forecaster::scores`.
pub const DEFINITIONS: [(&str, &str); 14] = [
    ("Demand", "GPUs of high-priority work, running and pending, the peak within the hour."),
    ("Step", "Step 1 is the hour that starts at the issue time, the first instant after the history of the model."),
    ("MAE", "Mean over all series, issue times and steps of |median − demand|, in GPUs."),
    (
        "RMSE",
        "Square root of the mean of (mean forecast − demand)², in GPUs. Rare jumps count in the mean forecast, so that it may be above \
         the 0.95 quantile where demand stands still.",
    ),
    (
        "Pinball loss at p",
        "max(p · (demand − quantile), (p − 1) · (demand − quantile)), averaged, in GPUs. Its minimum is the quantile at \
         p: at 0.9 a missing GPU costs nine times an idle one.",
    ),
    (
        "CRPS",
        "Continuous ranked probability score of the Gaussian with the forecast's mean and deviation, averaged, in GPUs: the \
         MAE of a whole distribution (Gneiting and Raftery 2007, eq. 21). Deviations count as at least 0.001 GPU.",
    ),
    ("Held at p", "Share of hours with demand ≤ the quantile at p, equality within 10⁻⁶ GPU. Also called coverage."),
    (
        "MAQE at p",
        "Mean over series of max(0, p − share of hours at or below the quantile, share below it − p). The paper that names \
         it (GFS) does not define it in full; this is Headroom's definition: ties cost no series anything, and a low bound gains none.",
    ),
    ("Skill", "1 − loss of the model / loss of the baseline on the same hours."),
    (
        "Calibration curve, PIT",
        "Share of hours below each level of the forecast, and the density of Φ((demand − mean) / deviation). Demand that \
         equals its bound counts at the promised level.",
    ),
    (
        "Kept rate",
        "Share of issue times whose peak over the promised hours stayed at or below the bound (within 10⁻⁶ GPU).",
    ),
    ("Idle reserve", "Mean of max(0, bound − peak): GPUs that spot work could have had."),
    ("Shortfall", "Mean of max(0, peak − bound): promised GPUs that high-priority work needed."),
    (
        "Interval",
        "5 % and 95 % quantiles over 500 draws of whole days (UTC), seeded: hours of one day are not independent.",
    ),
];

pub fn section(view: &View<'_>) -> Markup {
    let aggregations = "sum-of-bounds adds the organizations' own bounds (the GFS paper); independent adds variances; pooled \
                        adds them with the correlation seen on validation and corrects for the largest of the hours; conformal \
                        corrects the sum by the difference to the pool's measured peaks of the week before; mixture \
                        weighs conformal, the last value and other experts, each calibrated on its own misses, by how their \
                        bounds fared.";
    let content = html! {
        dl class="terms" {
            @for (term, meaning) in DEFINITIONS { div { dt { (term) } dd { (meaning) } } }
            @if !view.pools.is_empty() { div { dt { "Aggregations" } dd { (aggregations) } } }
        }
        p class="how" {
            "Recording gaps are not scored. The scores of this page are in \
             metrics.csv, every forecast is in forecasts.parquet; report.ipynb computes the scores again from there."
        }
    };
    super::section("definitions", "Definitions", "", &content)
}
