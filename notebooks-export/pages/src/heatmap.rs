//! A week as a map: a row a day, a column an hour.

use super::number::gpus;
use maud::{Markup, html};

const CELL: f64 = 26.0;
const LEFT: f64 = 40.0;
const TOP: f64 = 18.0;
const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

/// Values in GPUs, the stronger the colour the larger; what was not measured stays empty.
#[must_use]
pub fn heatmap(values: &[[Option<f64>; 24]; 7], says: &str) -> Markup {
    let most = values.iter().flatten().flatten().fold(0.0, |most: f64, value| most.max(*value));
    let (width, height) = (LEFT + 24.0 * CELL, TOP + 7.0 * CELL);
    html! {
        svg viewBox=(format!("0 0 {width} {height}")) role="img" aria-label=(says) {
            @for hour in (0..24).step_by(3) {
                text class="tick mid" x=(LEFT + (f64::from(hour) + 0.5) * CELL) y="12" { (format!("{hour:02}")) }
            }
            @for (row, (day, hours)) in DAYS.iter().zip(values).enumerate() {
                text class="tick end" x=(LEFT - 6.0) y=(TOP + (row as f64 + 0.5) * CELL + 4.0) { (day) }
                @for (column, value) in hours.iter().enumerate() {
                    (cell(row, column, *value, most, day))
                }
            }
        }
    }
}

fn cell(row: usize, column: usize, value: Option<f64>, most: f64, day: &str) -> Markup {
    let (x, y) = (LEFT + column as f64 * CELL, TOP + row as f64 * CELL);
    let side = CELL - 2.0;
    let Some(value) = value else {
        return html! { rect class="empty" x=(x) y=(y) width=(side) height=(side) rx="3" {} };
    };
    let share = if most > 0.0 { value / most } else { 0.0 };
    let title = format!("{day} {column:02}:00: {} GPUs", gpus(value));
    // Below a tenth a cell would look empty.
    let opacity = format!("{:.2}", 0.1 + 0.9 * share);
    html! {
        rect class="heat" x=(x) y=(y) width=(side) height=(side) rx="3" fill-opacity=(opacity) { title { (title) } }
    }
}
