//! The figures that policies are compared by: one list for the table, the page and its files.

use crate::spread::Spread;
use crate::tally::{Promised, Sample, Summary};

/// A column of a table.
pub struct Figure {
    /// As the JSON has it.
    pub key: &'static str,
    /// The head of its column, with the unit.
    pub head: &'static str,
    pub meaning: &'static str,
    /// Behind the point.
    pub digits: usize,
    /// Whether it belongs to what a promise costs.
    pub is_price: bool,
    pub of: fn(&Summary) -> Option<f64>,
}

/// A policy at one guarantee rate, on every draw of the jobs.
#[derive(Debug, Clone)]
pub struct Row {
    /// POLICY or POLICY:PREDICTOR; the same at each rate.
    pub policy: String,
    /// Probability that a guarantee holds; none where the policy has no quota.
    pub rate: Option<f64>,
    /// No other row has it: the policy, with @P where it is played at several rates.
    pub name: String,
    /// One for each draw.
    pub runs: Vec<Summary>,
    /// Of the first draw, hour by hour.
    pub course: Vec<Sample>,
}

impl Row {
    /// Over the draws that have the figure; none where no draw has it.
    #[must_use]
    pub fn spread(&self, figure: &Figure) -> Option<Spread> {
        let values: Vec<f64> = self.runs.iter().filter_map(figure.of).collect();
        (!values.is_empty()).then(|| Spread::of(&values))
    }

    /// The figure in text, with its deviation where there are several draws; empty where there is none.
    #[must_use]
    pub fn cell(&self, figure: &Figure) -> String {
        let digits = figure.digits;
        match self.spread(figure) {
            None => String::new(),
            Some(spread) if self.runs.len() > 1 => spread.text(digits),
            Some(Spread { mean, .. }) => format!("{mean:.digits$}"),
        }
    }
}

/// The figures of which at least one row has a value.
pub fn present(rows: &[Row]) -> impl Iterator<Item = &'static Figure> {
    FIGURES.iter().filter(|figure| rows.iter().any(|row| row.spread(figure).is_some()))
}

/// The longest promise: what spot tasks ask for.
fn promised(of: &Summary) -> Option<&Promised> {
    of.promises.last()
}

const fn figure(
    (key, head): (&'static str, &'static str),
    digits: usize,
    meaning: &'static str,
    of: fn(&Summary) -> Option<f64>,
) -> Figure {
    Figure { key, head, meaning, digits, is_price: false, of }
}

const fn price(
    (key, head): (&'static str, &'static str),
    digits: usize,
    meaning: &'static str,
    of: fn(&Summary) -> Option<f64>,
) -> Figure {
    Figure { is_price: true, ..figure((key, head), digits, meaning, of) }
}

/// Share of promised GPUs that were broken.
pub const BROKEN: Figure = price(
    ("broken_share", "1 − K"),
    4,
    "GPUs whose promise HP broke before its hours were over, of those that were promised; a task that ends early says \
     nothing of what came after (1 − Kaplan–Meier survival, of the longest promise)",
    |one| Some(promised(one)?.broken_share),
);

/// How long spot takes.
pub const SPOT_JCT: Figure =
    price(("spot_jct_mean_s", "spot JCT s"), 0, "mean seconds from a spot task's submission to its end", |one| {
        Some(one.spot_jct_mean_s)
    });

/// Every figure, in the order of its column.
pub static FIGURES: [Figure; 28] = [
    price(
        ("hp_queue_mean_s", "HP queue s"),
        1,
        "mean seconds from an HP task's submission to its start, the grace period of its victims included",
        |one| Some(one.hp_queue_mean_s),
    ),
    price(("hp_queue_p99_s", "HP p99 s"), 0, "99 of 100 HP tasks started within so many seconds", |one| {
        Some(one.hp_queue_p99_s)
    }),
    price(
        ("hp_evicting_share", "HP evicts"),
        4,
        "HP tasks that started on GPUs which spot had to leave for them",
        |one| Some(one.hp_evicting_share),
    ),
    figure(("hp_jct_mean_s", "HP JCT s"), 0, "mean seconds from an HP task's submission to its end", |one| {
        Some(one.hp_jct_mean_s)
    }),
    SPOT_JCT,
    figure(
        ("spot_queue_mean_s", "spot queue s"),
        0,
        "mean seconds that a spot task waited, all its waits together",
        |one| Some(one.spot_queue_mean_s),
    ),
    figure(("evictions", "evictions"), 0, "of spot tasks", |one| Some(one.evictions as f64)),
    figure(("eviction_rate", "e"), 3, "evictions of runs of spot tasks", |one| Some(one.eviction_rate)),
    price(("evictions_per_spot_job", "evictions/job"), 3, "evictions of a spot task, on average", |one| {
        Some(one.evictions_per_spot_job)
    }),
    figure(
        ("guarantee_eviction_rate", "broken"),
        4,
        "guarantee periods that an eviction broke, of those that were kept or broken",
        |one| (one.guarantee_periods > 0).then_some(one.guarantee_eviction_rate),
    ),
    BROKEN,
    price(("broken_share_long", "long"), 4, "1 − K of jobs that take as long as the promise, or longer", |one| {
        promised(one)?.broken_share_long
    }),
    price(
        ("broken_share_loaded", "loaded"),
        4,
        "1 − K of promises that began while jobs came: what waits at the end of a list is worked off beside less and less HP",
        |one| promised(one)?.broken_share_loaded,
    ),
    price(
        ("lost_gpu_hours", "lost GPU h"),
        0,
        "GPU hours that evictions cost: work since the last checkpoint, what a restart takes, and the grace period",
        |one| Some(one.lost_gpu_hours),
    ),
    figure(
        ("allocation_rate", "allocation"),
        3,
        "share of all GPUs in use, from the first submission to the last",
        |one| Some(one.allocation_rate),
    ),
    figure(("finished", "finished"), 0, "tasks", |one| Some(one.finished as f64)),
    figure(("rests", "rests"), 0, "times a task was kept from being evicted over and over", |one| {
        (one.rests > 0).then_some(one.rests as f64)
    }),
    figure(("cpu_s", "CPU s"), 2, "of the simulation without training", |one| Some(one.cpu_s)),
    figure(("train_cpu_s", "train CPU s"), 2, "of fits during the simulation", |one| {
        (one.train_cpu_s > 0.0).then_some(one.train_cpu_s)
    }),
    figure(("aligned_share", "aligned"), 4, "pods with an affinity whose GPUs lie as they ask", |one| {
        one.aligned_share
    }),
    figure(("jain", "Jain"), 3, "Jain's index of organizations' work by time in spot, per unit of weight", |one| {
        Some(one.fairness?.jain)
    }),
    figure(("max_min", "max-min"), 3, "the least of these shares by the largest", |one| Some(one.fairness?.max_min)),
    figure(("slowdown_max", "worst slowdown"), 2, "the slowest organization's time in spot by its work", |one| {
        Some(one.fairness?.slowdown_max)
    }),
    figure(("resizes", "resizes"), 0, "changes of the pods of elastic tasks", |one| Some(one.resizes? as f64)),
    figure(("shrinks", "shrinks"), 0, "those of them that took pods away", |one| Some(one.shrinks? as f64)),
    figure(("deferrals", "deferrals"), 0, "HP tasks whose evictions were put off", |one| Some(one.deferrals? as f64)),
    figure(
        ("reserved_queue_mean_s", "reserved queue s"),
        0,
        "mean seconds that a task of a reserved window waited",
        |one| one.reserved_queue_mean_s,
    ),
    figure(("reserved_queue_p99_s", "reserved p99 s"), 0, "99 of 100 of them started within so many seconds", |one| {
        one.reserved_queue_p99_s
    }),
];
