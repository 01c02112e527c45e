//! Results of deferrals: F, the load that would have been in vain.

use super::job::JobNumber;
use placement::timing::predictor::Context;
use std::collections::VecDeque;

/// A deferral of which F is not yet known.
#[derive(Debug, Clone)]
struct Open {
    job: JobNumber,
    context: Context,
    deferral_ms: i64,
    /// Loading that would have begun at once would have lasted from here to there: A + p, and A + p + ℓ (Eq. 2).
    from_ms: i64,
    until_ms: i64,
    futile_ms: i64,
    is_known: bool,
}

/// Deferrals in the order of their arrivals.
#[derive(Debug, Clone, Default)]
pub(super) struct Observed {
    open: VecDeque<Open>,
}

impl Observed {
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// A newcomer is put off; `cut_off_ms` is what is left of loads that starting it at once would cut off.
    pub fn open(&mut self, now_ms: i64, job: JobNumber, context: &Context, deferral_ms: i64, cut_off_ms: i64) {
        let from_ms = now_ms + context.save_ms;
        let until_ms = from_ms + context.load_ms;
        let (context, futile_ms) = (*context, cut_off_ms);
        self.open.push_back(Open { job, context, deferral_ms, from_ms, until_ms, futile_ms, is_known: false });
    }

    /// A job arrives. Of whom it would pause and who would be loading by now, the load up to now is futile: a deferral
    /// as long would have spared it (Eq. 2, Eq. 4). The first such arrival counts.
    pub fn arrived(&mut self, now_ms: i64, would_pause: impl Fn(JobNumber) -> bool) {
        for open in &mut self.open {
            let is_loading = open.from_ms < now_ms && now_ms <= open.until_ms;
            if is_loading && !open.is_known && would_pause(open.job) {
                open.futile_ms = open.futile_ms.max(now_ms - open.from_ms);
                open.is_known = true;
            }
        }
    }

    /// The next deferral whose load would be over: its context, X and F; F = 0 where nothing was futile.
    pub fn known(&mut self, now_ms: i64) -> Option<(Context, i64, i64)> {
        let at = self.open.iter().position(|open| open.is_known || open.until_ms < now_ms)?;
        let open = self.open.remove(at)?;
        Some((open.context, open.deferral_ms, open.futile_ms))
    }
}
