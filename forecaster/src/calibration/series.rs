//! Evidence of the recent past about one organization's forecasts.

use super::correction::{Correction, deviation, error_of_step_gpus};
use super::fallen::{Below, Fallen};
use super::quantiles::{Between, Demand, QuantileExperts, QuantileLosses, Statements, losses};
use super::reach::Reach;
use super::residual::{Counts, MISSING, WINDOW_HOURS, code, slot};
use super::seasonal::Seasonal;
use pulp::{Simd, WithSimd};
use vocab::{HorizonHours, HourStart, SeriesId, StepForecast};

/// The exported quantiles that residuals correct: place among the exported ones, and level.
pub const LEVELS: [(usize, f64); 2] = [(1, 0.9), (2, 0.95)];
/// Of a longer horizon four steps stand for all, so that the state stays small.
const RECORDED_STEPS: usize = 4;
/// Below so many issue times an organization's forecasts stay as they are.
const LEAST_ISSUES: usize = 24;
/// With so many issue times the upper quantiles are corrected whole, with fewer in proportion: the order statistics of a
/// day or two of overlapping residuals say little.
const ENOUGH_ISSUES: usize = 96;
/// Where demand was above the 0.9 quantile in most hours of so many issue times its level has risen, and the upper
/// quantiles with it; where it was in nearly all of them, the median and the mean, too.
const LATELY_ISSUES: usize = 12;
const MOST: f64 = 0.5;
const NEARLY_ALL: f64 = 0.9;
/// How many of the hours must have been measured.
const LATELY_SHARE: f64 = 0.75;
/// Weight of the organization's own order statistic beside that of all organizations.
const OWN_WEIGHT: f64 = 0.5;
/// Deviations that the median moves after an issue time with every hour on the same side.
const MEDIAN_RATE: f64 = 0.01;
/// 0.5^(1/72): errors of the mean lose half of their weight in three days.
const ERROR_DECAY: f64 = 0.990_419_149;
/// The mean error is shrunk toward zero as if so many issue times without error had been seen, and this much of it
/// corrects.
const ERROR_PRIOR_ISSUES: f64 = 24.0;
const ERROR_WEIGHT: f64 = 0.3;
/// Amounts are kept to a thousandth of a GPU: closer to a whole number is whole.
const WHOLE_GPUS: f64 = 5e-4;
/// A quantile of whole GPUs is rounded down but for this last part of a GPU.
const ROUNDED_UP_GPUS: f64 = 0.3;

/// The steps whose residuals are kept: all of them, or four that are evenly spread.
pub fn recorded_steps(horizon: HorizonHours) -> Vec<usize> {
    let (steps, kept) = (horizon.steps(), horizon.steps().min(RECORDED_STEPS));
    (1..=kept).map(|number| number * steps / kept - 1).collect()
}

/// One organization.
#[derive(Debug, Clone, PartialEq)]
pub struct SeriesState {
    /// The series.
    pub id: SeriesId,
    /// `[issue time by slot][level][recorded step]`.
    pub codes: Vec<i8>,
    /// The addition to the median, in deviations.
    pub median: f64,
    /// Sum of actual − mean, in GPUs, and how many hours that stands for; both fade.
    pub error_gpus: f64,
    /// Hours of the errors that count.
    pub error_hours: f64,
    /// Every hour seen so far was a whole number of GPUs.
    pub is_whole: bool,
    /// The experts on the upper quantiles.
    pub quantiles: QuantileExperts,
    /// Own order statistics, in deviations; follow from `codes`.
    own: [f64; 2],
    /// How far above the 0.9 quantile demand was lately in most hours, and in nearly all, in deviations, where it was;
    /// follow from `codes`.
    risen: [Option<f64>; 2],
    /// Residuals at each level; follows from `codes`.
    count: usize,
}

/// The yield of one issue time: of each step the forecast and, where it was measured, the demand.
pub struct Lesson<'a> {
    /// Forecast of each step.
    pub steps: &'a [StepForecast],
    /// Measured demand of each step, in GPUs.
    pub actual_gpus: &'a [f64],
    /// Whether each step was measured.
    pub measured: &'a [bool],
    /// Demand of the organization before and after the issue time.
    pub demand: Demand<'a>,
    /// How far it fell within the hour before the issue time, in GPUs; zero where that is not known.
    pub fallen_gpus: f64,
}

/// Inputs of a correction beside the organization's own state.
pub struct Inputs<'a> {
    /// Hours of the forecast.
    pub horizon: HorizonHours,
    /// How far it reaches.
    pub reach: &'a Reach,
    /// Where each step lies between those whose residuals are kept.
    pub between: &'a [Between],
    /// The order statistics of all organizations, in deviations.
    pub shared: [f64; 2],
    /// Demand of the hour before it, where it was measured.
    pub latest_gpus: Option<f64>,
    /// Demand before it.
    pub demand: Option<Demand<'a>>,
    /// How far means and medians follow falls.
    pub fallen: &'a Fallen,
    /// How far demand fell within the hour before it, in GPUs; zero where that is not known.
    pub fallen_gpus: f64,
}

impl Inputs<'_> {
    /// By how many GPUs the median of a step, counted from 0, follows the fall of the hour before.
    fn median_fall_gpus(&self, step: usize) -> f64 {
        if self.fallen_gpus > 0.0 { self.fallen.parts(step).median * self.fallen_gpus } else { 0.0 }
    }

    /// Lowers the means by what they follow of the fall of the hour before. Returns by how many GPUs, step by step; nothing where there
    /// was none.
    pub fn follow_fall(&self, steps: &mut [StepForecast]) -> Vec<f64> {
        if self.fallen_gpus <= 0.0 {
            return Vec::new();
        }
        let lower = |(number, step): (usize, &mut StepForecast)| {
            let lowered_gpus = (self.fallen.parts(number).mean * self.fallen_gpus).min(step.mean_gpus);
            step.mean_gpus -= lowered_gpus;
            lowered_gpus
        };
        steps.iter_mut().enumerate().map(lower).collect()
    }
}

impl SeriesState {
    /// A series of which nothing is known.
    pub fn new(id: SeriesId, horizon: HorizonHours) -> Self {
        let recorded = recorded_steps(horizon);
        Self {
            id,
            codes: vec![MISSING; WINDOW_HOURS * LEVELS.len() * recorded.len()],
            median: 0.0,
            error_gpus: 0.0,
            error_hours: 0.0,
            is_whole: true,
            quantiles: QuantileExperts::new(recorded.len(), &Reach::over(horizon)),
            own: [0.0; 2],
            risen: [None; 2],
            count: 0,
        }
    }

    fn slot_mut(&mut self, issue: HourStart) -> &mut [i8] {
        let width = self.codes.len() / WINDOW_HOURS;
        let start = slot(issue) * width;
        &mut self.codes[start..start + width]
    }

    /// Empties the slot of an issue time, and takes its residuals out of those of all organizations.
    pub fn forget(&mut self, issue: HourStart, shared: &mut [Counts; 2]) {
        let slot = self.slot_mut(issue);
        for (codes, counts) in slot.chunks(slot.len() / LEVELS.len()).zip(shared) {
            codes.iter().copied().for_each(|code| counts.remove(code));
        }
        slot.fill(MISSING);
    }

    /// Learns from an issue time whose hours are over; its slot is empty.
    pub fn learn(
        &mut self,
        issue: HourStart,
        lesson: &Lesson<'_>,
        (recorded, reach, fallen): (&[usize], &Reach, &Fallen),
        shared: &mut [Counts; 2],
    ) {
        let steps = lesson.steps.len() as f64;
        let measured = || (0..lesson.steps.len()).filter(|step| lesson.measured[*step]);
        if measured().next().is_none() {
            return;
        }
        (self.error_gpus, self.error_hours) = (self.error_gpus * ERROR_DECAY, self.error_hours * ERROR_DECAY);
        let mut pull = 0.0;
        for step in measured() {
            let (forecast, actual) = (&lesson.steps[step], lesson.actual_gpus[step]);
            self.is_whole &= (actual - actual.round()).abs() < WHOLE_GPUS;
            // Bounds rest on the mean that this corrects, and stay as they are without falls.
            self.error_gpus += actual - forecast.mean_gpus;
            self.error_hours += 1.0;
            // A miss of the median by not following a fall is no error of the series.
            let followed_gpus =
                if lesson.fallen_gpus > 0.0 { fallen.parts(step).median * lesson.fallen_gpus } else { 0.0 };
            let off = actual - (forecast.quantiles_gpus[0] + self.median * deviation(forecast) - followed_gpus);
            pull += if off > 0.0 {
                0.5
            } else if off < 0.0 {
                -0.5
            } else {
                0.0
            };
        }
        self.median += MEDIAN_RATE * pull / steps;
        let slot = self.slot_mut(issue);
        for (number, &step) in recorded.iter().enumerate().filter(|(_, step)| lesson.measured[**step]) {
            let (forecast, actual) = (&lesson.steps[step], lesson.actual_gpus[step]);
            for (level, (place, _)) in LEVELS.iter().enumerate() {
                let code = code((actual - forecast.quantiles_gpus[*place]) / deviation(forecast));
                shared[level].remove(std::mem::replace(&mut slot[level * recorded.len() + number], code));
                shared[level].add(code);
            }
        }
        self.quantiles.settle_rises(&lesson.demand, recorded, reach);
    }

    /// Passes on what came after demand had fallen, against what would have been issued without it.
    pub fn teach_falls(&self, lesson: &Lesson<'_>, horizon: HorizonHours, fallen: &mut Fallen) {
        if lesson.fallen_gpus <= 0.0 {
            return;
        }
        let error_gpus = self.error_of_mean_gpus(horizon);
        for step in (0..lesson.steps.len()).filter(|step| lesson.measured[*step]) {
            let (forecast, actual) = (&lesson.steps[step], lesson.actual_gpus[step]);
            let median_gpus = forecast.quantiles_gpus[0] + self.median * deviation(forecast);
            let below = Below {
                fallen_gpus: lesson.fallen_gpus,
                mean_gpus: forecast.mean_gpus + error_of_step_gpus(error_gpus, forecast) - actual,
                median_gpus: median_gpus - actual,
            };
            fallen.learn(step, forecast, &below);
        }
    }

    /// The recent error of the mean that corrects, in GPUs.
    fn error_of_mean_gpus(&self, horizon: HorizonHours) -> f64 {
        let prior = ERROR_PRIOR_ISSUES * horizon.steps() as f64;
        ERROR_WEIGHT * self.error_gpus / (self.error_hours + prior)
    }

    const fn recorded(&self) -> usize {
        self.codes.len() / WINDOW_HOURS / LEVELS.len()
    }

    /// Whether the window holds no residual any more: the organization was not measured for a week.
    pub fn is_forgotten(&self) -> bool {
        self.codes.iter().all(|code| *code == MISSING)
    }

    /// Works out what follows from the residuals, the last of them those of `newest`. `counts` is room to count in.
    pub fn settle(&mut self, newest: HourStart, reach: &Reach, counts: &mut Counts) {
        let recorded = self.recorded();
        for (level, (_, p)) in LEVELS.iter().enumerate() {
            counts.clear();
            let of_level = self.codes.chunks(recorded).skip(level).step_by(LEVELS.len());
            of_level.flatten().for_each(|code| counts.add(*code));
            self.own[level] = counts.order_statistic(*p).unwrap_or(0.0);
            self.count = counts.total();
        }
        self.risen = if reach.follows_levels { self.risen(newest, counts) } else { [None; 2] };
    }

    fn risen(&self, newest: HourStart, counts: &mut Counts) -> [Option<f64>; 2] {
        let (recorded, width) = (self.recorded(), self.codes.len() / WINDOW_HOURS);
        counts.clear();
        for back in 0..LATELY_ISSUES {
            let start = slot(newest.plus_hours(-(back as i64))) * width;
            self.codes[start..start + recorded].iter().for_each(|code| counts.add(*code));
        }
        let enough = counts.total() as f64 >= LATELY_SHARE * (LATELY_ISSUES * recorded) as f64;
        [MOST, NEARLY_ALL].map(|share| counts.order_statistic(1.0 - share).filter(|above| enough && *above > 0.0))
    }

    /// Number of residuals that count.
    pub const fn residuals(&self) -> usize {
        self.count
    }

    /// Whether enough is known to correct a forecast.
    pub fn is_known(&self) -> bool {
        self.count >= LEAST_ISSUES * self.recorded()
    }

    /// How its forecasts are corrected.
    fn correction(&self, of: &Inputs<'_>) -> Correction {
        let known = (self.count as f64 / (ENOUGH_ISSUES * self.recorded()) as f64).min(1.0);
        Correction {
            median: self.median,
            risen: self.risen,
            upper: [0, 1].map(|level| OWN_WEIGHT * self.own[level] + (1.0 - OWN_WEIGHT) * of.shared[level]),
            known,
            part: of.reach.correction,
        }
    }

    /// The upper quantiles of the experts at step `number`, from 0, whose `corrected` ones are known.
    fn statements(
        &self,
        number: usize,
        (step, corrected): (&StepForecast, [f64; 3]),
        (of, seasonal): (&Inputs<'_>, &Seasonal),
    ) -> [Statements; LEVELS.len()] {
        let earlier_gpus = seasonal.earlier_gpus(number, of.demand.as_ref());
        let between = of.between.get(number);
        [0, 1].map(|level| {
            let place = LEVELS[level].0;
            let of_model = [corrected[place], step.quantiles_gpus[place]];
            let earlier = seasonal.statements(level, number, earlier_gpus);
            self.quantiles.statements((level, between), of_model, of.latest_gpus, earlier)
        })
    }

    /// Losses of the experts on its upper quantiles with a forecast, by the present state. Those of earlier days are judged by what
    /// they rose by as it was known at the issue time: by the present state they would know the hours that they are judged by.
    pub fn losses(&self, lesson: &Lesson<'_>, of: &Inputs<'_>) -> QuantileLosses {
        let measured = (0..lesson.steps.len()).filter(|step| lesson.measured[*step]);
        let seasonal = Seasonal::before(lesson.demand.issue, &lesson.demand, lesson.steps.len(), of.reach);
        let correction = self.correction(of);
        let one = |step: usize| {
            let forecast = &lesson.steps[step];
            let (corrected, _) = correction.of(forecast);
            (lesson.actual_gpus[step], self.statements(step, (forecast, corrected), (of, &seasonal)))
        };
        losses(&measured.map(one).collect::<Vec<_>>())
    }

    /// The steps of a forecast as they are issued.
    pub fn correct(&self, steps: &[StepForecast], of: &Inputs<'_>) -> Vec<StepForecast> {
        let (mut shares, correction) = (self.quantiles.shares(), self.correction(of));
        let error_gpus = self.error_of_mean_gpus(of.horizon);
        let one = |(number, step): (usize, &StepForecast)| {
            let (corrected, centre) = correction.of(step);
            let statements = self.statements(number, (step, corrected), (of, self.quantiles.seasonal()));
            let mut upper = |level: usize| shares[level].mix(&statements[level]);
            let (q50, q95) = (corrected[0], upper(1));
            let q90 = upper(0).max(q50);
            let error = error_of_step_gpus(error_gpus, step);
            StepForecast {
                mean_gpus: (step.mean_gpus + error.max(centre)).max(0.0),
                stddev_gpus: step.stddev_gpus,
                quantiles_gpus: [(q50 - of.median_fall_gpus(number)).max(0.0), q90, q95.max(q90)],
            }
        };
        let mut corrected: Vec<StepForecast> = steps.iter().enumerate().map(one).collect();
        if self.is_whole {
            pulp::Arch::new().dispatch(ToWhole(&mut corrected));
        }
        corrected
    }
}

/// Where demand is whole GPUs its quantiles are, too: one in between is beaten by the next below, or else above. The order of
/// quantiles stays.
struct ToWhole<'a>(&'a mut [StepForecast]);

impl WithSimd for ToWhole<'_> {
    type Output = ();

    // Rounding down is one instruction on all but the oldest processors, and a call elsewhere.
    #[expect(clippy::inline_always, reason = "it is compiled for these registers, in the caller")]
    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        for step in self.0 {
            for quantile_gpus in &mut step.quantiles_gpus {
                *quantile_gpus = (*quantile_gpus + ROUNDED_UP_GPUS).floor();
            }
        }
    }
}
