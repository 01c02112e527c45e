//! The price of a promise: how long spot takes against the share of its promises that HP breaks.

use crate::figures::{BROKEN, FIGURES, Figure, Row, SPOT_JCT};
use maud::{Markup, html};
use pages::{Axis, Chart, legend, short};

/// Lines that are distinct in one picture.
const LINES: usize = 8;
const HOUR_S: f64 = vocab::SECONDS_PER_HOUR as f64;
/// Two targets, or two points of a policy, closer together than that have one label.
const LABEL_WIDTH: f64 = 44.0;
const LABEL_HEIGHT: f64 = 12.0;
/// Labels of points this far to the right stand on their left.
const RIGHT_SIDE: f64 = 0.8;

/// A policy at one rate, in the picture.
struct Point<'a> {
    row: &'a Row,
    /// 1 − K, and its deviation.
    broken: (f64, f64),
    /// Hours of spot, and their deviation.
    jct_h: (f64, f64),
}

impl Point<'_> {
    fn of(row: &Row) -> Option<Point<'_>> {
        let (broken, jct) = (row.spread(&BROKEN)?, row.spread(&SPOT_JCT)?);
        Some(Point { row, broken: (broken.mean, broken.sd), jct_h: (jct.mean / HOUR_S, jct.sd / HOUR_S) })
    }

    /// The share that may break: 1 − p.
    fn target(&self) -> Option<f64> {
        self.row.rate.map(|rate| 1.0 - rate)
    }
}

/// Picture and table; nothing where no policy promised anything.
#[must_use]
pub fn section(rows: &[Row]) -> Markup {
    let points: Vec<Point<'_>> = rows.iter().filter_map(Point::of).collect();
    let lines = by_policy(&points);
    html! {
        @if !points.is_empty() {
            section {
                h2 { "What a promise costs" }
                p class="how" {
                    "Each point is a policy at a probability p: to the right more promises are broken, upwards spot takes longer. A dashed line \
                     marks the share 1 − p that may break; a point to the left of its own sells less than it could, one to the right \
                     breaks its promise. Policies without a quota know no p. "
                    @if rows.iter().any(|row| row.runs.len() > 1) { "Grey bars are one deviation of the draws." }
                }
                @for some in lines.chunks(LINES) { (picture(some)) }
                (table(rows))
            }
        }
    }
}

/// The points of each policy by falling p, policies in the order in which they were asked for.
fn by_policy<'a>(points: &'a [Point<'a>]) -> Vec<Vec<&'a Point<'a>>> {
    let mut lines: Vec<Vec<&Point<'_>>> = Vec::new();
    for point in points {
        match lines.iter_mut().find(|line| line.iter().all(|one| one.row.policy == point.row.policy)) {
            Some(line) => line.push(point),
            None => lines.push(vec![point]),
        }
    }
    for line in &mut lines {
        line.sort_by(|one, other| other.row.rate.partial_cmp(&one.row.rate).unwrap_or(std::cmp::Ordering::Equal));
    }
    lines
}

fn picture(lines: &[Vec<&Point<'_>>]) -> Markup {
    let all = || lines.iter().flatten();
    let most = |of: &dyn Fn(&Point<'_>) -> f64| all().map(|point| of(point)).fold(0.0, f64::max);
    let least_h = all().map(|point| point.jct_h.0 - point.jct_h.1).fold(f64::INFINITY, f64::min);
    let most_h = most(&|point| point.jct_h.0 + point.jct_h.1);
    let room_h = 0.05 * (most_h - least_h).max(0.1 * most_h);
    let right = most(&|point| (point.broken.0 + point.broken.1).max(point.target().unwrap_or(0.0)));
    let chart = Chart {
        width: 920.0,
        height: 420.0,
        x: Axis::from_zero("broken share of promised GPUs, 1 − K", 1.02 * right.max(0.01), 10),
        y: Axis::between("spot JCT, hours", (least_h - room_h).max(0.0), most_h + 2.0 * room_h, 6),
        says: "Completion time of spot against the share of promises that was broken, a line a policy".to_owned(),
    };
    let policy = |place: usize| format!("line m{place}");
    let mut names: Vec<_> =
        lines.iter().enumerate().map(|(place, line)| (policy(place), line[0].row.policy.clone())).collect();
    names.push(("line diagonal".to_owned(), "1 − p: the share that may break".to_owned()));
    let drawn = chart.render(&html! {
        (targets(&chart, lines))
        @for (place, line) in lines.iter().enumerate() {
            path class=(policy(place)) d=(chart.line(line.iter().map(|point| (point.broken.0, Some(point.jct_h.0))))) {}
        }
        @for (place, line) in lines.iter().enumerate() {
            @for point in line { (dot(&chart, point, place)) }
            @for (x, y, label) in labels(&chart, line) {
                @let is_right = x > RIGHT_SIDE * chart.width;
                text class=(if is_right { "tick end" } else { "tick" }) x=(short(x + if is_right { -6.0 } else { 6.0 }))
                    y=(short(y - 8.0)) { (label) }
            }
        }
    });
    html! {
        (legend(&names))
        figure { div class="plot" { (drawn) } }
    }
}

/// A dashed line at each share that may break, named by its p where there is room for that.
fn targets(chart: &Chart, lines: &[Vec<&Point<'_>>]) -> Markup {
    let mut rates: Vec<f64> = lines.iter().flatten().filter_map(|point| point.row.rate).collect();
    rates.sort_by(f64::total_cmp);
    rates.dedup();
    let mut named_at = f64::INFINITY;
    let mut named = Vec::new();
    for rate in rates {
        let has_room = named_at - chart.x(1.0 - rate) >= LABEL_WIDTH;
        named_at = if has_room { chart.x(1.0 - rate) } else { named_at };
        named.push((rate, has_room));
    }
    html! {
        @for (rate, has_room) in named {
            @let x = 1.0 - rate;
            path class="line diagonal" d=(chart.line([(x, Some(chart.y.from)), (x, Some(chart.y.to))])) {}
            @if has_room {
                text class="tick" x=(short(chart.x(x) + 4.0)) y=(short(chart.y(chart.y.to) + 11.0)) { "p " (rate) }
            }
        }
    }
}

/// Places and texts of what is written beside the points of a policy: its name where it is one, else their p, of neighbours
/// the first and the last one.
fn labels(chart: &Chart, line: &[&Point<'_>]) -> Vec<(f64, f64, String)> {
    let mut all: Vec<(f64, f64, String)> = Vec::new();
    for point in line {
        let (x, y) = (chart.x(point.broken.0), chart.y(point.jct_h.0));
        let text = match point.row.rate {
            Some(rate) if line.len() > 1 => rate.to_string(),
            _ => point.row.policy.clone(),
        };
        match all.last_mut().filter(|last| (x - last.0).abs() < LABEL_WIDTH && (y - last.1).abs() < LABEL_HEIGHT) {
            Some((.., words)) => *words = format!("{}–{text}", words.split('–').next().unwrap_or_default()),
            None => all.push((x, y, text)),
        }
    }
    all
}

/// A point with its deviations, and how far it is from its target.
fn dot(chart: &Chart, point: &Point<'_>, place: usize) -> Markup {
    let ((x, x_sd), (y, y_sd)) = (point.broken, point.jct_h);
    let line = |points: [(f64, f64); 2]| chart.line(points.map(|(x, y)| (x, Some(y))));
    let row = point.row;
    let title = format!("{}: 1 − K {x:.4}, spot JCT {:.0} s", row.name, y * HOUR_S);
    html! {
        @if let Some(target) = point.target() {
            path class=(format!("line dashed m{place}")) stroke-opacity=".45" d=(line([(x, y), (target, y)])) {}
        }
        @if row.runs.len() > 1 {
            path class="whisker" d=(line([(x - x_sd, y), (x + x_sd, y)])) {}
            path class="whisker" d=(line([(x, y - y_sd), (x, y + y_sd)])) {}
        }
        circle class=(format!("dot m{place}")) cx=(short(chart.x(x))) cy=(short(chart.y(y))) r="4.5" { title { (title) } }
    }
}

fn table(rows: &[Row]) -> Markup {
    let shown: Vec<&Figure> = FIGURES.iter().filter(|figure| figure.is_price).collect();
    html! {
        div class="wide" {
            table class="tight" {
                thead { tr {
                    th { "policy" } th { "p" } th { "1 − p" }
                    @for figure in &shown { th { (figure.head) } }
                } }
                tbody {
                    @for row in rows {
                        tr {
                            th scope="row" { (row.policy) }
                            td { @if let Some(rate) = row.rate { (rate) } }
                            td { @if let Some(rate) = row.rate { (may_break(rate)) } }
                            @for figure in &shown { td class=[verdict(row, figure)] { (row.cell(figure)) } }
                        }
                    }
                }
            }
        }
    }
}

/// 1 − p as it is written: without what is left of a difference of binary fractions.
fn may_break(rate: f64) -> f64 {
    ((1.0 - rate) * 1e6).round() / 1e6
}

/// Whether a promise was kept as often as was sold.
fn verdict(row: &Row, figure: &Figure) -> Option<&'static str> {
    let (rate, broken) = (row.rate?, row.spread(figure)?.mean);
    (figure.key == BROKEN.key).then_some(if broken <= may_break(rate) { "good" } else { "bad" })
}
