//! Knowledge of a pool's starts: its jobs, its quotas, and how earlier forecasts fared.

use crate::calibration::{Calibration, Corrections, Coverage};
use crate::facts::{Ask, PoolFacts, WaitFacts};
use crate::forecast::{Wanted, futures_of, play};
use crate::memory::JobMemory;
use crate::starts::Starts;
use crate::steps::HORIZON_S;
use crate::waits::{Usual, Waits};
use placement::policy::Blocking;
use std::collections::{BTreeMap, BTreeSet};
use vocab::{TaskClass, TaskId, UnixSeconds};

/// Ended jobs of a class below which their durations are not known.
const LEAST_ENDED: usize = 30;
/// Of a class of which no forecast was made yet.
static UNSCORED: Calibration = Calibration::new();

/// Why a forecast says less than it seems to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Doubt {
    /// Few jobs of its class have ended: how long they run is not known.
    FewJobs,
    /// The pool was not watched for long enough: what will arrive is not known, and is taken as nothing.
    UnknownArrivals,
    /// Few forecasts of its class were held against a start: coverage is not known.
    NotCalibrated,
    /// In some futures it does not start within the horizon.
    BeyondHorizon,
    /// So long a guarantee is not offered.
    NotOffered,
    /// The policy puts evictions off, which the futures do not.
    TimedPolicy,
    /// Tasks shrink and grow, which those of the futures do not.
    Elastic,
    /// Organizations take turns by fair shares, which those of the futures do not.
    FairShares,
    /// Windows are sold ahead: the futures keep their GPUs from spot, and not from HP of other organizations.
    Reservations,
    /// It asks for GPUs that lie together, and the futures give it any.
    Affinity,
}

impl Doubt {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::FewJobs,
        Self::UnknownArrivals,
        Self::NotCalibrated,
        Self::BeyondHorizon,
        Self::NotOffered,
        Self::TimedPolicy,
        Self::Elastic,
        Self::FairShares,
        Self::Reservations,
        Self::Affinity,
    ];

    /// Stable name for programs.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::FewJobs => "few_jobs",
            Self::UnknownArrivals => "unknown_arrivals",
            Self::NotCalibrated => "not_calibrated",
            Self::BeyondHorizon => "beyond_horizon",
            Self::NotOffered => "guarantee_not_offered",
            Self::TimedPolicy => "timed_policy",
            Self::Elastic => "elastic_tasks",
            Self::FairShares => "fair_shares",
            Self::Reservations => "reservations",
            Self::Affinity => "affinity",
        }
    }
}

/// When a task will start.
#[derive(Debug, Clone, PartialEq)]
pub struct Forecast {
    /// As earlier forecasts suggest it.
    pub starts: Starts,
    /// As the futures have it.
    pub raw: Starts,
    /// As the levels of earlier starts move that.
    pub(crate) corrected: Starts,
    /// The waits of the class; none where few are known.
    pub(crate) usual: Option<Usual>,
    /// A gap in what is known.
    pub doubts: Vec<Doubt>,
}

/// When a task would start and end.
#[derive(Debug, Clone, PartialEq)]
pub struct Ends {
    /// Its start, from its submission on.
    pub forecast: Forecast,
    /// Its end, from the facts on: after its last run, where it is evicted; [`HORIZON_S`] stands for all that come later, and for
    /// all where its run time is not stated.
    pub ends: Starts,
    /// The same of a task that is known to start as it is submitted.
    pub started_at_once: Starts,
}

/// The jobs of a pool, and the calibration of the forecasts of their starts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StartExpert {
    pub(crate) memory: JobMemory,
    pub(crate) calibrations: BTreeMap<TaskClass, Calibration>,
    pub(crate) waits: BTreeMap<TaskClass, Waits>,
}

impl StartExpert {
    /// Learns which tasks run and wait, and which of those that forecasts are about have started.
    pub fn observe(&mut self, facts: &PoolFacts) {
        for (run, wait_s) in self.memory.waited(facts) {
            self.waits.entry(facts.class_of(run)).or_default().add(run.since, wait_s);
        }
        self.memory.observe(facts);
        let waiting: BTreeSet<&TaskId> = facts.waiting().collect();
        for calibration in self.calibrations.values_mut() {
            for run in &facts.running {
                calibration.started(&run.task, run.since);
            }
            // A task that started and ended in between was not seen.
            calibration.forget(|task| !waiting.contains(task));
        }
    }

    /// Notes the start of a task at its time.
    pub fn started(&mut self, task: &TaskId, at: UnixSeconds) {
        self.calibrations.values_mut().for_each(|calibration| calibration.started(task, at));
    }

    /// When each waiting task will start, in the order of the policy. Each first forecast of a wait is held against its start.
    pub fn issue(&mut self, facts: &PoolFacts, seed: u64) -> Vec<(TaskId, Forecast)> {
        let places: Vec<usize> = (0..facts.waiting.len()).collect();
        let all = self.at(facts, &places, seed);
        for (place, forecast) in all.iter().enumerate() {
            self.note(facts, place, forecast);
        }
        facts.waiting().cloned().zip(all).collect()
    }

    /// When one waiting task will start; none where it does not wait.
    #[must_use]
    pub fn of_waiting(&self, facts: &PoolFacts, task: &TaskId, seed: u64) -> Option<Forecast> {
        self.at(facts, &[facts.place_of(task)?], seed).pop()
    }

    /// When each of some tasks would start that are not submitted, if it alone were; in the order of the asks.
    #[must_use]
    pub fn of_new(&self, facts: &PoolFacts, asks: &[Ask], seed: u64) -> Vec<Forecast> {
        if facts.rules.blocking != Blocking::Nobody {
            // One that waits keeps others from starting.
            return asks.iter().filter_map(|ask| Some(self.ends(facts, ask, seed)?.forecast)).collect();
        }
        let (mut with_new, mut places) = (facts.clone(), Vec::new());
        for ask in asks {
            let place = with_new.ask(ask, true);
            places.iter_mut().filter(|before| **before >= place).for_each(|before| *before += 1);
            places.push(place);
        }
        self.at(&with_new, &places, seed)
    }

    /// When a task would start and end that is not submitted.
    #[must_use]
    pub fn ends(&self, facts: &PoolFacts, ask: &Ask, seed: u64) -> Option<Ends> {
        let mut with_new = facts.clone();
        let place = with_new.ask(ask, false);
        let wanted = Wanted { places: &[place], ends: ask.runs_s.is_some() };
        let futures = (futures_of(facts, &self.memory), seed);
        let mut times = play(&with_new, &self.memory, wanted, futures).pop()?;
        times.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.total_cmp(&other.1)));
        let after_s = f64::from(ask.after_s);
        let raw = Starts::of(times.iter().map(|(start, _)| start - after_s).collect())?;
        let forecast = self.served(&with_new, place, raw, &mut self.corrections(facts.at));
        let late =
            forecast.starts.each().zip(&times).map(|(start, (raw, end))| {
                if *end >= f64::from(HORIZON_S) { *end } else { start + after_s + end - raw }
            });
        let ends = Starts::of(late.map(|end| end.min(f64::from(HORIZON_S))).collect())?;
        // A future places nobody at its first instant. To a tenth of a second: its clock has no more digits.
        let after_start = |end: f64, raw: f64| after_s + ((end - raw) * 10.0).round() / 10.0;
        let ran =
            times.iter().map(|(raw, end)| if *end >= f64::from(HORIZON_S) { *end } else { after_start(*end, *raw) });
        Some(Ends { forecast, ends, started_at_once: Starts::of(ran.collect())? })
    }

    /// Has a forecast of a waiting task held against its start.
    pub fn watch(&mut self, facts: &PoolFacts, task: &TaskId, forecast: &Forecast) {
        if let Some(place) = facts.place_of(task) {
            self.note(facts, place, forecast);
        }
    }

    /// How forecasts of a class fared; none while there are few.
    #[must_use]
    pub fn coverage(&self, class: TaskClass) -> Option<Coverage> {
        self.calibrations.get(&class)?.coverage()
    }

    /// The jobs that were seen.
    #[must_use]
    pub const fn memory(&self) -> &JobMemory {
        &self.memory
    }

    fn note(&mut self, facts: &PoolFacts, place: usize, forecast: &Forecast) {
        let (class, task) = (facts.kind_of(place).class, &facts.waiting[place].task);
        self.calibrations.entry(class).or_default().issue(task, facts.at, forecast);
    }

    fn at(&self, facts: &PoolFacts, places: &[usize], seed: u64) -> Vec<Forecast> {
        let (wanted, futures) = (Wanted { places, ends: false }, futures_of(facts, &self.memory));
        let all = play(facts, &self.memory, wanted, (futures, seed));
        let mut corrections = self.corrections(facts.at);
        let one = |(place, times): (&usize, Vec<(f64, f64)>)| {
            let raw = Starts::of(times.into_iter().map(|(start, _)| start).collect())?;
            Some(self.served(facts, *place, raw, &mut corrections))
        };
        places.iter().zip(all).filter_map(one).collect()
    }

    fn corrections(&self, now: UnixSeconds) -> BTreeMap<TaskClass, Corrections<'_>> {
        let of = |class| self.calibrations.get(&class).unwrap_or(&UNSCORED).corrections(now);
        [TaskClass::Hp, TaskClass::Spot].map(|class| (class, of(class))).into()
    }

    fn served(
        &self,
        facts: &PoolFacts,
        place: usize,
        raw: Starts,
        corrections: &mut BTreeMap<TaskClass, Corrections<'_>>,
    ) -> Forecast {
        let (kind, wait) = (facts.kind_of(place), &facts.waiting[place]);
        // A task that cannot start does not start as others do.
        let so_far_s = facts.at.since_s(wait.queued);
        let usual = self.waits.get(&kind.class).filter(|_| facts.is_offered(kind));
        let usual = usual.and_then(|waits| waits.left(facts.at, so_far_s));
        let corrections = corrections.get_mut(&kind.class).expect("both classes have theirs");
        let forecast = corrections.of(raw, usual.as_ref());
        let doubts = self.doubts(facts, wait, &forecast.starts);
        Forecast { doubts, ..forecast }
    }

    fn doubts(&self, facts: &PoolFacts, wait: &WaitFacts, starts: &Starts) -> Vec<Doubt> {
        let kind = facts.kinds[usize::from(wait.kind)];
        let holds = |doubt: Doubt| match doubt {
            Doubt::FewJobs => self.memory.ended_jobs(kind.class) < LEAST_ENDED,
            Doubt::UnknownArrivals => !self.memory.knows_arrivals(facts.at),
            Doubt::NotCalibrated => self.coverage(kind.class).is_none(),
            Doubt::BeyondHorizon => starts.probability_by(f64::from(HORIZON_S)) < 1.0,
            Doubt::NotOffered => !facts.is_offered(kind),
            Doubt::TimedPolicy => facts.is_timed,
            Doubt::Elastic => facts.has_elastic,
            Doubt::FairShares => facts.has_shares && kind.class == TaskClass::Spot,
            Doubt::Reservations => !facts.windows.all.is_empty(),
            Doubt::Affinity => wait.is_choosy,
        };
        Doubt::ALL.into_iter().filter(|doubt| holds(*doubt)).collect()
    }
}
