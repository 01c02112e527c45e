//! Days that depart from the week: days off outside of weekends, such as holidays, and working days within them. The calendar of a
//! target says that it is a day off, which Saturdays are, too; these features say that it is one more than the week has, and which of
//! the hours that it is compared with were.

use datasets::Panel;
use datasets::window::Window;
use std::ops::Range;

const DAY_HOURS: usize = 24;
const WEEK_HOURS: usize = 168;
/// Features of a target.
pub(super) const OF_TARGET: usize = 4;
/// A history with fewer hours of such days has one of them at most, which teaches more of that one than of the next.
const HOURS_LEAST: usize = 36;

/// Appends how much the day of a target departs from the week, how much more than that of the last hour seen, and how much the days
/// did whose hours it is compared with: the last one seen, and the one a week before.
pub(super) fn append(window: &Window<'_>, step: usize, to: &mut Vec<f32>) {
    let target = departs_at(window, step);
    let yesterday = ago(window, DAY_HOURS - step % DAY_HOURS);
    to.extend([target, target - ago(window, 1), yesterday, ago(window, WEEK_HOURS - step % WEEK_HOURS)]);
}

/// Whether a target of these steps lies on a day that departs from the week in another way than that of the last hour seen.
pub(super) fn is_crossed(window: &Window<'_>, mut steps: Range<usize>) -> bool {
    let now = ago(window, 1);
    steps.any(|step| departs_at(window, step) != now)
}

/// Whether the calendar has at least two such days in these hours of a panel.
pub(super) fn are_in(panel: &Panel, hours: Range<usize>) -> bool {
    let calendar = panel.features()[hours].iter();
    calendar.filter(|hour| hour.departure_from_week() != 0).count() >= HOURS_LEAST
}

fn departs_at(window: &Window<'_>, step: usize) -> f32 {
    window.targets.get(step).map_or(0.0, |hour| f32::from(hour.departure_from_week()))
}

/// The same of a seen hour; 1 is the last.
fn ago(window: &Window<'_>, hours: usize) -> f32 {
    let place = window.seen.len().checked_sub(hours);
    place.map_or(0.0, |place| f32::from(window.seen[place].departure_from_week()))
}
