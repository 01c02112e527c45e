//! Errors by hour of the week.

use super::Material;
use std::array;

/// Mean absolute error of the median, in GPUs: `[weekday][hour of day]`, Monday first; `None` where no hour was scored.
pub type HourOfWeek = [[Option<f64>; 24]; 7];

/// Of the subject, by the local hour of the target.
pub fn hour_of_week(material: &Material<'_>) -> HourOfWeek {
    let mut sums = [[(0.0, 0_usize); 24]; 7];
    for row in material.scored(material.subject) {
        let (weekday, hour) = material.place_in_week(row.target());
        let (sum, count) = &mut sums[weekday][hour];
        *sum += (row.forecast.quantiles_gpus[0] - row.actual_gpus).abs();
        *count += 1;
    }
    array::from_fn(|day| {
        array::from_fn(|hour| {
            let (sum, count) = sums[day][hour];
            (count > 0).then(|| sum / count as f64)
        })
    })
}
