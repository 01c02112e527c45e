//! Logs when the certificate of a service ends, that it does so soon, and that it has ended: rustls shows it still, and only clients
//! refuse it.

use crate::certificate::moment;
use std::ops::RangeInclusive;
use std::time::{SystemTime, UNIX_EPOCH};

/// Time for people to renew a certificate, in seconds: a week.
const SOON_S: i64 = 7 * 86_400;

/// How near the end of a certificate is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Far,
    /// It has not begun.
    Early,
    Soon,
    Over,
}

/// The end of the certificate as it was last checked: each stage of each certificate is logged once.
#[derive(Debug, Default)]
pub struct Ending {
    /// None before the first check of a certificate.
    stage: Option<Stage>,
}

impl Ending {
    /// Checks when the certificate and those behind it are valid, and answers the end, all in seconds since 1970; nothing is known of a certificate
    /// without one.
    pub fn note(&mut self, valid: Option<&RangeInclusive<i64>>) -> Option<i64> {
        let (from_s, until_s) = (*valid?.start(), *valid?.end());
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now_s = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
        let until = moment(until_s);
        match self.moved(from_s..=until_s, now_s) {
            None => {}
            Some(Stage::Far) => tracing::info!(until, "the certificate, and those behind it, are valid until then"),
            Some(Stage::Early) => tracing::error!(
                begins_in_s = from_s.saturating_sub(now_s),
                from = moment(from_s),
                "the certificate, or one behind it, is not valid yet, and clients refuse it: set another one, or correct the clock"
            ),
            Some(Stage::Soon) => tracing::warn!(
                ends_in_s = until_s.saturating_sub(now_s),
                until,
                "the certificate, or one behind it, ends within a week: renew its file, which is read again by itself"
            ),
            Some(Stage::Over) => tracing::error!(
                ends_in_s = until_s.saturating_sub(now_s),
                until,
                "the certificate, or one behind it, has expired, and clients refuse it: renew its file, which is read again by itself"
            ),
        }
        Some(until_s)
    }

    /// The stage at a time, where it is another one than before.
    fn moved(&mut self, valid: RangeInclusive<i64>, now_s: i64) -> Option<Stage> {
        let stage = match valid.end().saturating_sub(now_s) {
            ..=0 => Stage::Over,
            _ if now_s < *valid.start() => Stage::Early,
            1..SOON_S => Stage::Soon,
            _ => Stage::Far,
        };
        (self.stage.replace(stage) != Some(stage)).then_some(stage)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_stage_of_a_certificate_is_logged_once_and_again_after_a_renewal() {
        let mut ending = Ending::default();
        let until_s = 100 * 86_400;
        let of = |ending: &mut Ending, day: i64| ending.moved(0..=until_s, day * 86_400);
        assert_eq!([90, 93].map(|day| of(&mut ending, day)), [Some(Stage::Far), None], "a week and more");
        assert_eq!(ending.moved(0..=until_s, 93 * 86_400 + 1), Some(Stage::Soon));
        assert_eq!([95, 100, 101].map(|day| of(&mut ending, day)), [None, Some(Stage::Over), None]);
        assert_eq!(ending.moved(0..=200 * 86_400, 101 * 86_400), Some(Stage::Far), "renewed");
        assert_eq!(ending.moved(0..=200 * 86_400, 195 * 86_400), Some(Stage::Soon));
        let next = 196 * 86_400..=400 * 86_400;
        assert_eq!(
            [195, 196].map(|day| ending.moved(next.clone(), day * 86_400)),
            [Some(Stage::Early), Some(Stage::Far)]
        );
    }

    #[test]
    fn the_end_of_a_certificate_is_logged_as_a_time() {
        assert_eq!(moment(1_709_251_200), "2024-03-01T00:00:00Z");
    }
}
