//! Whether a run may serve.

use crate::run::KeptScores;

/// A new run may lose this share against the promoted one, each beside the last value on its own validation part: weeks
/// differ, and an equal model should not fail for a hard week.
const TOLERANCE: f64 = 0.05;

/// What a run has to reach.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Gate {
    /// Of the median, in GPUs.
    pub max_mae_gpus: Option<f64>,
    /// Of the 0.9 quantile.
    pub min_coverage: Option<f64>,
}

/// Why a run does not pass; `None` where it does. Without thresholds of the caller's, the promoted run is the measure.
#[must_use]
pub fn refusal(gate: Gate, new: &KeptScores, promoted: Option<&KeptScores>) -> Option<String> {
    let scores = &new.model;
    if let Some(most) = gate.max_mae_gpus.filter(|most| scores.mae_median_gpus > *most) {
        return Some(format!("its MAE of {:.3} GPUs is above --max-mae {most}", scores.mae_median_gpus));
    }
    if let Some(least) = gate.min_coverage.filter(|least| scores.coverage_q90 < *least) {
        return Some(format!("its coverage of {:.3} is below --min-coverage {least}", scores.coverage_q90));
    }
    if gate != Gate::default() {
        return None;
    }
    let (ours, theirs) = (new.relative_pinball(), promoted?.relative_pinball());
    (ours > theirs * (1.0 + TOLERANCE)).then(|| {
        format!(
            "its pinball loss at 0.9 is {ours:.3} times the last value's, that of the promoted run {theirs:.3} times"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::tests::kept;

    #[test]
    fn thresholds_are_named_when_they_are_missed() {
        let gate = |max_mae_gpus, min_coverage| Gate { max_mae_gpus, min_coverage };
        let new = kept(5.0, 0.88, 1.0);
        assert_eq!(refusal(gate(Some(4.0), None), &new, None).unwrap(), "its MAE of 5.000 GPUs is above --max-mae 4");
        assert!(refusal(gate(None, Some(0.9)), &new, None).unwrap().contains("below --min-coverage 0.9"));
        assert_eq!(refusal(gate(Some(5.0), Some(0.88)), &new, Some(&kept(1.0, 0.9, 0.1))), None);
    }

    #[test]
    fn without_thresholds_a_run_may_not_be_clearly_worse_than_the_promoted_one() {
        let promoted = kept(5.0, 0.9, 1.0);
        assert_eq!(refusal(Gate::default(), &kept(9.0, 0.5, 1.04), Some(&promoted)), None);
        assert!(refusal(Gate::default(), &kept(5.0, 0.9, 1.06), Some(&promoted)).unwrap().contains("1.060 times"));
        assert_eq!(refusal(Gate::default(), &kept(5.0, 0.9, 9.0), None), None, "a first run has no rival");
    }
}
