//! How much past waits of the class count beside the futures.
//!
//! Both state a distribution of each start; what is served is their mixture, so that futures which disagree with what usually happens
//! keep their share and no more. The share follows from the losses of earlier statements: with d the loss of the usual waits less
//! that of the futures, weighed by age and by how many forecasts came in the same hour,
//!
//! ```text
//! z = Σ w d / √(Σ w d²),   share of the usual waits = π / (π + (1 − π) exp(η z))
//! ```
//!
//! z is a paired t-statistic: one large loss makes it 1 at most, and n alike ones √n. A task that still waits counts by the loss that is
//! certain, that of the levels below its wait so far: short waits are known first, and by them alone the usual waits look right.

use crate::calibration::{Issued, LEVELS, pinball};
use crate::starts::Starts;

/// π: the share of the usual waits before anything is known.
const PRIOR_SHARE: f64 = 0.3;
/// η.
const RATE: f64 = 2.0;
/// A forecast counts half as much after so many seconds.
pub(crate) const COUNTS_HALF_S: f64 = 7.0 * 86_400.0;

/// Losses of usual waits beside those of the futures, as earlier starts correct these.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Contest {
    lost_more: f64,
    squares: f64,
}

/// For how long a task waited, in seconds.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Waited {
    /// It started then.
    Until(f64),
    /// It waits still.
    SoFar(f64),
}

impl Contest {
    /// Learns how a forecast fared; one beside which no usual waits were known says nothing.
    pub fn learn(&mut self, issued: &Issued, waited: Waited, weight: f64) {
        let Some(usual) = issued.usual else { return };
        let more = waited.loss_s(&usual.levels_s) - waited.loss_s(&issued.corrected_s);
        self.lost_more += weight * more;
        self.squares += weight * more * more;
    }

    /// The share of the usual waits.
    pub fn usual_share(&self) -> f64 {
        let z = if self.squares > 0.0 { self.lost_more / self.squares.sqrt() } else { 0.0 };
        PRIOR_SHARE / (PRIOR_SHARE + (1.0 - PRIOR_SHARE) * (RATE * z).exp())
    }

    /// The mixture of what both state; futures alone where few waits are known.
    pub fn mix(&self, futures: &Starts, usual: Option<&Starts>) -> Starts {
        let share = self.usual_share();
        let mixed = usual.and_then(|usual| Starts::mixed(&[(1.0 - share, futures), (share, usual)], futures.futures()));
        mixed.unwrap_or_else(|| futures.clone())
    }
}

impl Waited {
    /// The mean pinball loss over the levels in seconds, as far as it is certain.
    pub fn loss_s(self, stated_s: &[f32; LEVELS.len()]) -> f64 {
        let of = |(level, at): (&f64, &f32)| match self {
            Self::SoFar(so_far_s) if so_far_s <= f64::from(*at) => 0.0,
            Self::Until(wait_s) | Self::SoFar(wait_s) => pinball(wait_s, f64::from(*at), *level),
        };
        LEVELS.iter().zip(stated_s).map(of).sum::<f64>() / LEVELS.len() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibration::POINTS;
    use crate::waits::Usual;
    use vocab::UnixSeconds;

    /// Starts that lie evenly from one time to another, in seconds.
    fn evenly(from_s: f64, to_s: f64) -> Starts {
        Starts::of((0..61).map(|path| from_s + (to_s - from_s) * f64::from(path) / 60.0).collect()).unwrap()
    }

    fn issued(futures: &Starts, usual: &Starts) -> Issued {
        let corrected_s = LEVELS.map(|level| futures.quantile_s(level) as f32);
        let points_s = std::array::from_fn(|place| futures.quantile_s(place as f64 / (POINTS - 1) as f64) as f32);
        let usual = Some(Usual::of(usual));
        Issued { at: UnixSeconds::new(1_790_000_000), points_s, corrected_s, usual, served_s: corrected_s }
    }

    /// After so many waits that were spread over an hour.
    fn after(count: usize, issued: &Issued) -> Contest {
        let mut contest = Contest::default();
        for number in 0..count {
            contest.learn(issued, Waited::Until((number * 7 % 61) as f64 * 60.0), 1.0);
        }
        contest
    }

    #[test]
    fn of_futures_and_usual_waits_those_are_served_that_fared_better() {
        let (hour, days) = (evenly(0.0, 3_600.0), evenly(100_000.0, 200_000.0));
        let median_s = |futures: &Starts, usual: &Starts, count: usize| {
            after(count, &issued(futures, usual)).mix(futures, Some(usual)).quantile_s(0.5)
        };
        assert!(median_s(&days, &hour, 0) > 100_000.0, "futures come first");
        assert!(median_s(&days, &hour, 30) < 3_600.0);
        assert!((median_s(&hour, &days, 30) - 1_800.0).abs() < 120.0);
        assert_eq!(after(0, &issued(&hour, &days)).mix(&hour, None), hour);
    }

    #[test]
    fn tasks_that_still_wait_count_against_the_usual_waits_that_they_have_passed() {
        let (hour, days) = (evenly(0.0, 3_600.0), evenly(1_000.0, 200_000.0));
        let issued = issued(&days, &hour);
        let mut contest = after(10, &issued);
        let before = contest.usual_share();
        assert!(before > 0.9, "short waits are known first: {before}");
        for _ in 0..10 {
            contest.learn(&issued, Waited::SoFar(150_000.0), 1.0);
        }
        assert!(contest.usual_share() < 0.1, "{}", contest.usual_share());
    }

    #[test]
    fn only_levels_that_a_wait_has_passed_lose_for_certain() {
        let stated_s = [0.0, 0.0, 0.0, 100.0, 200.0, 200.0, 200.0];
        assert_eq!(
            Waited::SoFar(100.0).loss_s(&stated_s),
            Waited::Until(100.0).loss_s(&[0.0, 0.0, 0.0, 100.0, 100.0, 100.0, 100.0])
        );
        assert!(Waited::SoFar(150.0).loss_s(&stated_s) < Waited::Until(150.0).loss_s(&stated_s));
    }
}
