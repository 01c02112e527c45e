//! Behaviour when a cluster is not as it was in training: each case is synthetic, played hour by hour as the service would
//! go through it, and scored. The figures of ARCHITECTURE.md are those that `--nocapture` prints here.

mod capacity;
mod cold_start;
mod gaps;
mod holidays;
mod leaving;
mod level;
mod made;
mod played;

use forecaster::blend::Settings;
use forecaster::{ModelKind, Trained};
use made::{Made, WEEK};
use played::{Played, play, trained_on};
use std::sync::OnceLock;

const WEEKS: usize = 6;
/// Hours that the model has seen: three weeks.
const LEARNED: usize = 3 * WEEK;
/// When a case begins: at no round hour, a day and a bit after the training.
const AT: usize = LEARNED + 30;
/// The first hour at which the horizon is no longer measured whole.
const END: usize = WEEKS * WEEK - 4;
/// The one that cases happen to: 44 GPUs on average, in a pool of about 150.
const LARGE: &str = "org-001";
/// One that came five days before the end of the training.
const LATE: &str = "late";

/// Six organizations, and one that came late.
fn usual() -> Made {
    let late = Made::new(9, WEEKS, 13).demand["org-008"].clone();
    Made::new(6, WEEKS, 7).add(LATE, late).change(LATE, 0..LEARNED - 120, |_| f64::NAN)
}

/// The default model of three usual weeks.
fn learned() -> &'static Trained {
    static LEARNED_ONCE: OnceLock<Trained> = OnceLock::new();
    LEARNED_ONCE.get_or_init(|| trained_on(&usual().panel(), LEARNED, ModelKind::DEFAULT, Settings::DEFAULT))
}

/// The case without a change: other cases are compared with it.
fn nothing_happens() -> &'static Played {
    static PLAYED_ONCE: OnceLock<Played> = OnceLock::new();
    PLAYED_ONCE.get_or_init(|| play(learned(), &usual()))
}
