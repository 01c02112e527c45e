//! Forecasts as they are to be issued.

use super::cursor::Cursor;
use super::fallen::fallen_gpus;
use super::quantiles::Between;
use super::reach::Reach;
use super::series::{Inputs, SeriesState, recorded_steps};
use super::{Calibrator, demand_of};
use crate::side_by_side::side_by_side;
use datasets::Panel;
use vocab::DemandForecast;

/// Forecasts that one job corrects: enough that to find its first series costs nothing, few enough for all cores.
pub(super) const SERIES_AT_ONCE: usize = 256;

impl Calibrator {
    /// The forecasts as they are to be issued, in their order; `panel` holds demand up to their issue time. One of a series without a
    /// day of residuals, or of the cold-start rule, passes unchanged, as all do where the correction is switched off.
    #[must_use]
    pub fn apply(&self, panel: &Panel, raw: &[DemandForecast]) -> Vec<DemandForecast> {
        let (reach, between) = (Reach::over(self.horizon), Between::each(&recorded_steps(self.horizon)));
        let of = Inputs {
            horizon: self.horizon,
            reach: &reach,
            between: &between,
            shared: self.shared(),
            latest_gpus: None,
            demand: None,
            fallen: &self.fallen,
            fallen_gpus: 0.0,
        };
        let blocks: Vec<_> = raw.chunks(SERIES_AT_ONCE).collect();
        let issued = side_by_side(blocks.len(), |block| self.apply_to(panel, blocks[block], &of));
        issued.into_iter().flatten().collect()
    }

    /// The same for some of them; the latest demand of each is looked up.
    fn apply_to(&self, panel: &Panel, raw: &[DemandForecast], of: &Inputs<'_>) -> Vec<DemandForecast> {
        let all = panel.series();
        let (mut known, mut places) = (Cursor::default(), Cursor::default());
        let one = |forecast: &DemandForecast| {
            let Some(state) = self.known(forecast, &mut known) else { return forecast.clone() };
            let place = places.find(all.len(), |place| all[place].id(), forecast.series()).ok();
            let demand = place.and_then(|place| demand_of(panel, place, forecast.issue()));
            let latest_gpus = demand.and_then(|demand| demand.latest_gpus());
            let fallen_gpus = place.map_or(0.0, |place| fallen_gpus(panel, place, forecast.issue()));
            corrected(forecast, state, &Inputs { latest_gpus, demand, fallen_gpus, ..*of })
        };
        raw.iter().map(one).collect()
    }
}

fn corrected(forecast: &DemandForecast, state: &SeriesState, of: &Inputs<'_>) -> DemandForecast {
    let mut steps = state.correct(forecast.steps(), of);
    let lowered_gpus = of.follow_fall(&mut steps);
    let corrected = DemandForecast::new(forecast.series().clone(), forecast.issue(), forecast.origin(), steps);
    // Past a billion GPUs there is nothing to correct.
    corrected.map_or_else(|_| forecast.clone(), |corrected| corrected.with_lowered_means(lowered_gpus))
}
