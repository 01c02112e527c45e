//! Whether a share is still what was promised.

use vocab::HorizonHours;

/// Half the width of the band that a share must leave: 99 % of a normal distribution.
const LEAVES: f64 = 2.575_829_303_548_901;
/// Half the width of the band to which it must come back: 95 %. The gap between the two keeps a share at the edge from
/// being reported again and again.
const COMES_BACK: f64 = 1.959_963_984_540_054;
/// Nothing is judged on less than a day, nor on fewer independent forecasts than this.
const LEAST_ISSUES: usize = 24;
const LEAST_INDEPENDENT: usize = 3;

/// Where a share stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Standing {
    /// Too few hours to judge.
    #[default]
    TooFew,
    /// The share is inside the band.
    Inside,
    /// Demand lies above its quantile, or above the pool's bound, more often than promised.
    Below,
    /// Demand lies below its quantile more often than it should: more is reserved than needed.
    Above,
}

impl Standing {
    /// Name in answers.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TooFew => "too_few_hours",
            Self::Inside => "inside",
            Self::Below => "below",
            Self::Above => "above",
        }
    }

    /// Whether the share has left its band.
    #[must_use]
    pub const fn is_outside(self) -> bool {
        matches!(self, Self::Below | Self::Above)
    }
}

/// A share beside its band.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Judgement {
    /// Where the share stands.
    pub standing: Standing,
    /// Issue hours that were scored, and how many it takes.
    pub issues: usize,
    /// Least number of issue hours for a judgement.
    pub least_issues: usize,
    /// `None` while there are too few.
    pub band: Option<[f64; 2]>,
}

/// Issue hours that it takes to judge forecasts of `overlap` hours.
#[must_use]
pub fn least_issues(overlap: HorizonHours) -> usize {
    LEAST_ISSUES.max(LEAST_INDEPENDENT * overlap.steps())
}

/// Judges the share of hours at or below a quantile at `p`, and the share strictly below it, over `issues` issue hours,
/// of which each shares its hours with the `overlap` − 1 before it.
///
/// The band is that of a binomial share, p ± z √(p (1 − p) / n), as a normal distribution has it, cut at 0 and 1. n counts
/// independent forecasts: `issues` / `overlap`, since forecasts that share an hour miss it together. Organizations of a
/// pool and the steps of one forecast count as one for the same reason; where they are independent after all, the band is
/// wider than it need be and warns later, but not falsely. A share that was outside comes back at a narrower band.
///
/// ```
/// use forecaster::drift::{Standing, judge};
/// use vocab::HorizonHours;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // 36 forecasts of 4 h are 9 independent ones: the band around 0.9 begins at 0.9 − 2.576 × √(0.09 / 9) = 0.642.
/// let standing = |share| -> Result<_, vocab::HorizonError> {
///     Ok(judge(Some((share, share)), 0.9, 36, HorizonHours::new(4)?, Standing::Inside).standing)
/// };
/// assert_eq!(standing(0.65)?, Standing::Inside);
/// assert_eq!(standing(0.60)?, Standing::Below);
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn judge(shares: Option<(f64, f64)>, p: f64, issues: usize, overlap: HorizonHours, before: Standing) -> Judgement {
    let least_issues = least_issues(overlap);
    let unjudged = Judgement { standing: Standing::TooFew, issues, least_issues, band: None };
    let Some((at_or_below, below)) = shares.filter(|_| issues >= least_issues) else { return unjudged };
    let independent = issues as f64 / overlap.steps() as f64;
    let z = if before.is_outside() { COMES_BACK } else { LEAVES };
    let half = z * (p * (1.0 - p) / independent).sqrt();
    let band = [(p - half).max(0.0), (p + half).min(1.0)];
    let standing = if at_or_below < band[0] {
        Standing::Below
    } else if below > band[1] {
        Standing::Above
    } else {
        Standing::Inside
    };
    Judgement { standing, issues, least_issues, band: Some(band) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hours(hours: u64) -> HorizonHours {
        HorizonHours::new(hours).unwrap()
    }

    fn standing(share: f64, issues: usize, overlap: u64, before: Standing) -> Standing {
        judge(Some((share, share)), 0.9, issues, hours(overlap), before).standing
    }

    /// 36 issue hours of 4 h are 9 independent forecasts: √(0.09 / 9) = 0.1, and 0.9 − 2.5758 × 0.1 = 0.6424.
    #[test]
    fn the_band_is_that_of_a_share_of_independent_forecasts() {
        let judged = judge(Some((0.8, 0.8)), 0.9, 36, hours(4), Standing::Inside);
        let [low, high] = judged.band.unwrap();
        assert!((low - 0.642_417).abs() < 1e-6 && high == 1.0, "{judged:?}");
        assert_eq!(standing(0.643, 36, 4, Standing::Inside), Standing::Inside);
        assert_eq!(standing(0.642, 36, 4, Standing::Inside), Standing::Below);
        assert_eq!(standing(0.643, 36, 1, Standing::Inside), Standing::Below, "36 forecasts of one hour say more");
    }

    /// 168 forecasts of one hour: √(0.09 / 168) = 0.023146, and 0.9 + 2.5758 × 0.023146 = 0.95962.
    #[test]
    fn hours_below_their_quantile_too_often_are_above_the_band_and_ties_are_not() {
        assert_eq!(standing(0.9597, 168, 1, Standing::Inside), Standing::Above);
        assert_eq!(standing(0.9595, 168, 1, Standing::Inside), Standing::Inside);
        let ties = judge(Some((1.0, 0.2)), 0.9, 168, hours(1), Standing::Inside);
        assert_eq!(ties.standing, Standing::Inside, "at zero for days");
    }

    /// Back at 0.9 − 1.96 × 0.1 = 0.704.
    #[test]
    fn what_has_left_comes_back_at_a_narrower_band() {
        for (share, back) in [(0.70, Standing::Below), (0.71, Standing::Inside)] {
            assert_eq!(standing(share, 36, 4, Standing::Below), back);
            assert_eq!(standing(share, 36, 4, Standing::Inside), Standing::Inside);
        }
    }

    #[test]
    fn nothing_is_judged_on_a_few_hours() {
        assert_eq!([least_issues(hours(1)), least_issues(hours(4)), least_issues(hours(24))], [24, 24, 72]);
        assert_eq!(standing(0.0, 23, 4, Standing::Inside), Standing::TooFew);
        assert_eq!(standing(0.0, 24, 4, Standing::Inside), Standing::Below);
        assert_eq!(judge(None, 0.9, 500, hours(4), Standing::Inside).standing, Standing::TooFew);
    }
}
