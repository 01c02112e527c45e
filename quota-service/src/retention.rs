//! Retention: the leader of the first cluster deletes old rows each hour, and `database retain` does.

use crate::config::Config;
use crate::core::Core;
use std::sync::Arc;
use std::time::Duration;
use store::{AuditOf, Size, Store, StoreError};
use vocab::UnixSeconds;

const DAY_S: i64 = vocab::SECONDS_PER_DAY;
/// Models look back 35 days: usage that is younger is not forgotten.
pub const LEAST_USAGE_DAYS: u32 = 36;
/// How often the size is noted, and what is old is looked for.
const EVERY: Duration = Duration::from_hours(1);
/// Notes of the size are kept for two weeks: growth is measured over them.
const SIZES_KEPT_S: i64 = 14 * DAY_S;

/// Kinds of rows that are deleted by age.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Usage,
    /// Quotas as they were answered, with their explanations.
    History,
    /// Tasks that have ended.
    Tasks,
    Audit,
    /// Reported states of pools in the audit.
    Reports,
    /// Days of GPU time.
    Statements,
}

impl Kind {
    /// As it is written in settings, flags and rows.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Usage => "usage",
            Self::History => "history",
            Self::Tasks => "tasks",
            Self::Audit => "audit",
            Self::Reports => "reports",
            Self::Statements => "statements",
        }
    }

    /// Forgets what is older than so many days; answers before when, and how many rows.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn forget(self, store: &dyn Store, before: UnixSeconds) -> Result<u64, StoreError> {
        match self {
            // A time before the calendar has no usage before it.
            Self::Usage => match before.hour() {
                Ok(hour) => store.delete_usage_before(hour).await,
                Err(_) => Ok(0),
            },
            Self::History => store.delete_quotas_before(before).await,
            Self::Tasks => store.delete_ended_tasks_before(before).await,
            Self::Audit => store.delete_audit_before(before, AuditOf::Everything).await,
            Self::Reports => store.delete_audit_before(before, AuditOf::ReportedStates).await,
            Self::Statements => store.delete_statement_days_before(before).await,
        }
    }
}

/// The instant so many days before `now`.
#[must_use]
pub fn before(now: UnixSeconds, days: u32) -> UnixSeconds {
    now.plus_s(-i64::from(days) * DAY_S)
}

/// Why usage is not kept for so few days.
#[must_use]
pub fn refused(usage_days: u32) -> Option<String> {
    let is_good = usage_days == 0 || usage_days >= LEAST_USAGE_DAYS;
    (!is_good)
        .then(|| format!("{usage_days} is below {LEAST_USAGE_DAYS}: models look back 35 days; 0 keeps it for ever"))
}

/// Kinds and days of the settings.
#[must_use]
pub fn of(config: &Config) -> Vec<(Kind, u32)> {
    let all = [
        (Kind::Usage, config.retain_usage_days),
        (Kind::History, config.retain_history_days),
        (Kind::Tasks, config.retain_tasks_days),
        (Kind::Audit, config.retain_audit_days),
        (Kind::Reports, config.retain_reports_days),
        (Kind::Statements, config.retain_statements_days),
    ];
    all.into_iter().filter(|(_, days)| *days > 0).collect()
}

/// After so long, it is looked again whether this service writes for the first cluster.
const AGAIN: Duration = Duration::from_secs(10);

/// Looks each hour, and first when this service begins to write. Ends when the service stops; at once under a virtual
/// clock, which stores nothing.
pub async fn run(core: Arc<Core>) {
    if core.clock.is_virtual() {
        return;
    }
    let mut stop = core.stopping.subscribe();
    loop {
        let looked = tokio::select! {
            looked = look(&core) => looked,
            _ = stop.wait_for(|stopped| *stopped) => return,
        };
        let rest = match looked {
            Ok(true) => EVERY,
            Ok(false) => AGAIN,
            Err(fault) => {
                tracing::warn!(%fault, "cannot delete old rows: tried again in an hour");
                EVERY
            }
        };
        tokio::select! {
            () = tokio::time::sleep(rest) => {}
            _ = stop.wait_for(|stopped| *stopped) => return,
        }
    }
}

/// Notes the size of the database and forgets what is old, where this service writes for the first cluster; answers whether it
/// does.
///
/// # Errors
/// The database does not answer.
pub async fn look(core: &Core) -> Result<bool, StoreError> {
    let clusters = core.store.clusters().await?;
    let Some(led) = clusters.first().and_then(|cluster| core.leases.led(&cluster.name)) else { return Ok(false) };
    let (held, now) = (led.store.as_ref(), core.clock.now());
    for (kind, days) in of(&core.config) {
        let rows = kind.forget(held, before(now, days)).await?;
        if rows > 0 {
            tracing::info!(kind = kind.as_str(), days, rows, "old rows are deleted");
        }
    }
    let size = Size { at: now, bytes: held.size_bytes().await? };
    held.note_size(size, now.plus_s(-SIZES_KEPT_S)).await?;
    Ok(true)
}

/// Bytes a day by which the notes grew, over at least six hours; `None` of less.
#[must_use]
pub fn growth_bytes_a_day(sizes: &[Size]) -> Option<i64> {
    let (first, last) = (sizes.first()?, sizes.last()?);
    let took_s = last.at.since_s(first.at);
    if took_s < DAY_S / 4 {
        return None;
    }
    let grown = i128::from(last.bytes) - i128::from(first.bytes);
    i64::try_from(grown * i128::from(DAY_S) / i128::from(took_s)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_measured_over_hours_and_not_from_one_note() {
        let size = |hours: i64, bytes| Size { at: UnixSeconds::new(hours * 3_600), bytes };
        assert_eq!(growth_bytes_a_day(&[]), None);
        assert_eq!(growth_bytes_a_day(&[size(0, 5), size(5, 500)]), None, "five hours say little");
        assert_eq!(growth_bytes_a_day(&[size(0, 1_000), size(3, 9_000), size(12, 2_000)]), Some(2_000));
        assert_eq!(growth_bytes_a_day(&[size(0, 2_000), size(24, 1_000)]), Some(-1_000));
    }

    #[test]
    fn usage_is_kept_for_as_long_as_models_look_back_or_for_ever() {
        assert_eq!((refused(0), refused(36)), (None, None));
        assert!(refused(35).unwrap().contains("models look back 35 days"));
        let kept: Vec<_> = of(&Config::default()).into_iter().map(|(kind, days)| (kind.as_str(), days)).collect();
        assert_eq!(
            kept,
            [("history", 28), ("tasks", 28), ("audit", 90), ("reports", 3), ("statements", 1_100)],
            "usage is kept for ever"
        );
    }
}
