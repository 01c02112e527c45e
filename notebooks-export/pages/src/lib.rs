//! Pictures as SVG that takes its colours from the page, and the style of the page: no script, no font, no network.

mod axis;
mod heatmap;
mod number;

pub use axis::Axis;
pub use heatmap::heatmap;
pub use number::{fine_gpus, gpus, percent, signed_gpus, signed_percent};

use maud::{DOCTYPE, Markup, PreEscaped, html};
use std::fmt::Write;

/// Of every page: light and dark, screen and paper.
const STYLE: &str = include_str!("style.css");

/// A whole page: its header, what it says, and by which command it was made.
#[must_use]
pub fn document(title: &str, header: &Markup, main: &Markup, command: &str) -> String {
    let document = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="generator" content=(concat!("Headroom ", env!("CARGO_PKG_VERSION")));
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                (header)
                main { (main) }
                footer { "Made by Headroom " (env!("CARGO_PKG_VERSION")) ", " (command) "." }
            }
        }
    };
    document.into_string()
}

const LEFT: f64 = 52.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 40.0;
/// Wider pictures are moved sideways on a phone instead of being made too small to read.
const BROAD: f64 = 600.0;

/// A frame with two axes; values become places in it.
pub struct Chart {
    pub width: f64,
    pub height: f64,
    pub x: Axis,
    pub y: Axis,
    /// Description of the figure for screen readers.
    pub says: String,
}

impl Chart {
    #[must_use]
    pub fn x(&self, value: f64) -> f64 {
        LEFT + self.x.share(value) * (self.width - LEFT - RIGHT)
    }

    #[must_use]
    pub fn y(&self, value: f64) -> f64 {
        self.height - BOTTOM - self.y.share(value) * (self.height - TOP - BOTTOM)
    }

    /// A line through the points, broken where a value is missing.
    #[must_use]
    pub fn line(&self, points: impl IntoIterator<Item = (f64, Option<f64>)>) -> String {
        let (mut path, mut is_drawn) = (String::new(), false);
        for (x, y) in points {
            let Some(y) = y else {
                is_drawn = false;
                continue;
            };
            push(&mut path, if is_drawn { 'L' } else { 'M' }, self.x(x), self.y(y));
            is_drawn = true;
        }
        path
    }

    /// As [`Chart::line`], each value held until the next: for what belongs to an hour.
    #[must_use]
    pub fn steps(&self, points: impl IntoIterator<Item = (f64, Option<f64>)>, each: f64) -> String {
        let corners = points.into_iter().flat_map(|(x, y)| [(x, y), (x + each, y)]);
        self.line(corners)
    }

    /// The area between two lines over the same places, each value held for `each`.
    #[must_use]
    pub fn area(&self, points: &[(f64, f64, f64)], each: f64) -> String {
        let mut path = String::new();
        let corner = |x: f64, y: f64, path: &mut String| {
            let command = if path.is_empty() { 'M' } else { 'L' };
            push(path, command, self.x(x), self.y(y));
        };
        for (x, _, upper) in points {
            corner(*x, *upper, &mut path);
            corner(x + each, *upper, &mut path);
        }
        for (x, lower, _) in points.iter().rev() {
            corner(x + each, *lower, &mut path);
            corner(*x, *lower, &mut path);
        }
        if !path.is_empty() {
            path.push('Z');
        }
        path
    }

    /// The frame with what is drawn in it.
    #[must_use]
    pub fn render(&self, drawn: &Markup) -> Markup {
        let (right, bottom) = (self.width - RIGHT, self.height - BOTTOM);
        let is_broad = self.width > BROAD;
        html! {
            svg class=[is_broad.then_some("broad")] viewBox=(format!("0 0 {} {}", self.width, self.height)) role="img"
                aria-label=(self.says) {
                @for (value, label) in &self.y.ticks {
                    line class="grid" x1=(LEFT) x2=(right) y1=(short(self.y(*value))) y2=(short(self.y(*value))) {}
                    text class="tick end" x=(LEFT - 6.0) y=(short(self.y(*value) + 3.5)) { (label) }
                }
                @for (value, label) in &self.x.ticks {
                    line class="grid" y1=(TOP) y2=(bottom) x1=(short(self.x(*value))) x2=(short(self.x(*value))) {}
                    @let is_last = self.x(*value) > right - 8.0;
                    text class=(if is_last { "tick end" } else { "tick mid" }) y=(bottom + 15.0)
                        x=(short(self.x(*value) + if is_last { RIGHT } else { 0.0 })) { (label) }
                }
                text class="axis mid" x=(f64::midpoint(LEFT, right)) y=(self.height - 6.0) { (self.x.label) }
                text class="axis mid" transform=(format!("translate(12 {}) rotate(-90)", f64::midpoint(TOP, bottom))) {
                    (self.y.label)
                }
                (drawn)
            }
        }
    }
}

fn push(path: &mut String, command: char, x: f64, y: f64) {
    // Tenths of a unit are finer than a screen shows.
    write!(path, "{command}{} {}", short(x), short(y)).expect("a string takes all");
}

/// A coordinate with one digit behind the point.
#[must_use]
pub fn short(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// Legend of a figure: class and name.
#[must_use]
pub fn legend(entries: &[(String, String)]) -> Markup {
    html! {
        ul class="legend" {
            @for (class, name) in entries {
                li { svg viewBox="0 0 24 10" aria-hidden="true" { line class=(class) x1="0" x2="24" y1="5" y2="5" {} } (name) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart() -> Chart {
        let axis = |label: &str| Axis::from_zero(label, 10.0, 5);
        Chart { width: 166.0, height: 150.0, x: axis("x"), y: axis("y"), says: "a test".to_owned() }
    }

    #[test]
    fn a_line_is_broken_where_nothing_was_measured() {
        let points = [(0.0, Some(0.0)), (5.0, Some(10.0)), (6.0, None), (10.0, Some(0.0))];
        assert_eq!(chart().line(points), "M52 110L102 10M152 110");
    }

    #[test]
    fn an_area_holds_each_value_for_its_hour() {
        assert_eq!(chart().area(&[(0.0, 0.0, 10.0)], 10.0), "M52 10L152 10L152 110L52 110Z");
        assert_eq!(chart().area(&[], 1.0), "");
    }

    #[test]
    fn what_is_drawn_stands_in_a_frame_with_words_for_those_who_do_not_see_it() {
        let drawn = chart().render(&html! { path d="M0 0" {} }).into_string();
        assert!(drawn.starts_with(r#"<svg viewBox="0 0 166 150" role="img" aria-label="a test">"#), "{drawn}");
        assert!(drawn.ends_with(r#"<path d="M0 0"></path></svg>"#), "{drawn}");
    }
}
