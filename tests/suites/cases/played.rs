//! A case hour by hour, as the service would go through it, and its scores.

use super::made::{Made, hour, hours, id, pool};
use datasets::Panel;
use datasets::window::Window;
use forecaster::blend::Settings;
use forecaster::bound::{Aggregation, bounds};
use forecaster::calibration::{Issued, Online, Switch};
use forecaster::scores::{PoolPair, PoolScores, Scores, actual_peak_gpus, collect, score, score_pool};
use forecaster::{Fit, ModelKind, ModelSpec, Predict, PredictError, Trained, forecast, train, trained};
use std::ops::Range;
use vocab::{DemandForecast, GuaranteeRate, HorizonHours, SeriesId};

const RATE: GuaranteeRate = GuaranteeRate::GFS;
const LOOKBACK_HOURS: usize = vocab::HOURS_PER_WEEK as usize;

pub fn horizon() -> HorizonHours {
    HorizonHours::new(4).unwrap()
}

/// A model of the hours before `until`.
pub fn trained_on(panel: &Panel, until: usize, kind: ModelKind, settings: Settings) -> Trained {
    // The last value needs no more than that.
    let lookback_hours = if kind == ModelKind::LastValue { 1 } else { LOOKBACK_HOURS };
    let spec = ModelSpec { kind, horizon: horizon(), lookback_hours, seed: 1 };
    let split = trained::split(panel, hour(until), &spec).unwrap();
    let fit = Fit { panel, split, spec, settings };
    train(&fit, RATE, Switch::Auto, &mut |_| ()).unwrap().0
}

/// The forecasts of each issue hour.
pub struct Played {
    panel: Panel,
    /// The first issue hour.
    from: usize,
    raw: Vec<Vec<DemandForecast>>,
    issued: Vec<Issued>,
    /// B_H over the horizon.
    pub bounds_gpus: Vec<f64>,
    last_value: Vec<Vec<DemandForecast>>,
}

/// A model that is kept from seeing that it could forecast one series.
pub struct Unknowing<'a>(pub &'a Trained, pub SeriesId);

impl Predict for Unknowing<'_> {
    fn lookback_hours(&self) -> usize {
        self.0.lookback_hours()
    }

    fn least_hours(&self) -> usize {
        self.0.least_hours()
    }

    fn horizon(&self) -> HorizonHours {
        self.0.horizon()
    }

    fn knows(&self, series: &SeriesId) -> bool {
        *series != self.1
    }

    fn predict(&self, windows: &[Window<'_>]) -> Result<Vec<DemandForecast>, PredictError> {
        self.0.predict(windows)
    }
}

/// Plays `made` from the end of the training on.
pub fn play(trained: &Trained, made: &Made) -> Played {
    play_by(trained, trained, made)
}

/// The same, where `model` speaks instead.
pub fn play_by(model: &dyn Predict, trained: &Trained, made: &Made) -> Played {
    let panel = made.panel();
    let from = panel.index_of(trained.data.to).unwrap();
    let rule = trained_on(&panel, from, ModelKind::LastValue, Settings::DEFAULT);
    let mut online = Online::new(trained.calibrator.clone());
    let (mut raw, mut issued, mut bounds_gpus, mut last_value) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let chosen = trained.calibration(&pool()).map_or(Aggregation::SumOfBounds, |known| known.chosen);
    for issue in (from..panel.hours()).map(hour) {
        let source = forecast(model, &panel, issue).unwrap();
        let one = online.issue(&panel, issue, source.clone(), RATE);
        let members: Vec<_> = one.forecasts.iter().collect();
        let conformal = one.conformal.get(&pool());
        let bound = bounds(&members, chosen, trained.calibration(&pool()), conformal, RATE, &[horizon()]).unwrap();
        bounds_gpus.push(bound[0].bound.as_gpus());
        last_value.push(forecast(&rule, &panel, issue).unwrap());
        raw.push(source);
        issued.push(one);
    }
    Played { panel, from, raw, issued, bounds_gpus, last_value }
}

/// Of which forecasts.
#[derive(Clone, Copy)]
pub enum Source {
    Issued,
    Raw,
    LastValue,
}

impl Played {
    fn place(&self, organization: &str) -> usize {
        self.panel.series().iter().position(|one| *one.id() == id(organization)).unwrap()
    }

    fn at(&self, source: Source, hour: usize) -> &[DemandForecast] {
        match source {
            Source::Issued => &self.issued[hour - self.from].forecasts,
            Source::Raw => &self.raw[hour - self.from],
            Source::LastValue => &self.last_value[hour - self.from],
        }
    }

    /// The issued forecast of an organization.
    pub fn of(&self, organization: &str, hour: usize) -> &DemandForecast {
        &self.at(Source::Issued, hour)[self.place(organization)]
    }

    /// The largest 0.9 quantile within the horizon.
    pub fn reserved_gpus(&self, organization: &str, hour: usize) -> f64 {
        self.of(organization, hour).steps().iter().fold(0.0, |most, step| step.quantiles_gpus[1].max(most))
    }

    pub fn bound_gpus(&self, hour: usize) -> f64 {
        self.bounds_gpus[hour - self.from]
    }

    /// Scores of one organization, or of all.
    pub fn scores(&self, source: Source, organization: Option<&str>, range: Range<usize>) -> Scores {
        let rolled: Vec<_> = range.clone().map(|hour| self.at(source, hour).to_vec()).collect();
        let (rows, _) = collect(&self.panel, hours(&range), &rolled, horizon());
        let of = organization.map(|name| self.place(name));
        let rows: Vec<_> = rows.into_iter().filter(|row| of.is_none_or(|place| row.series == place)).collect();
        score(&rows).expect("hours that were measured")
    }

    /// How many hours of the forecasts were scored.
    pub fn scored_hours(&self, organization: &str, range: Range<usize>) -> usize {
        self.scores(Source::Issued, Some(organization), range).rows
    }

    pub fn pool(&self, range: Range<usize>) -> PoolScores {
        let pair = |hour: usize| {
            let peak_gpus = actual_peak_gpus(&self.panel, &pool(), super::made::hour(hour), horizon())?;
            Some(PoolPair { issue: super::made::hour(hour), bound_gpus: self.bound_gpus(hour), peak_gpus })
        };
        score_pool(&range.filter_map(pair).collect::<Vec<_>>(), RATE).expect("peaks that were measured")
    }

    /// A line for a table: MAE, pinball 0.9, coverage; then of the pool: share under, GPUs reserved too many.
    pub fn line(&self, what: &str, organization: Option<&str>, range: Range<usize>) {
        let one = |source| {
            let s = self.scores(source, organization, range.clone());
            format!("{:6.2} {:6.3} {:5.3}", s.mae_median_gpus, s.pinball_gpus[0], s.coverage[0])
        };
        let pool = self.pool(range.clone());
        println!(
            "{what:40} {range:?} issued {} | raw {} | last {} | under {:.3} over {:6.2} short {:.3} pin {:.3} n {}",
            one(Source::Issued),
            one(Source::Raw),
            one(Source::LastValue),
            1.0 - pool.coverage,
            pool.over_reserved_gpus,
            pool.shortfall_gpus,
            pool.pinball_gpus,
            pool.issues,
        );
    }
}
