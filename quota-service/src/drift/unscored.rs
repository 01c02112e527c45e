//! Forecasts that are not scored yet, and what they teach about peaks before.

use super::blocking;
use datasets::Panel;
use forecaster::calibration::{Calibrator, PeakGuesses};
use forecaster::drift::{Issued, is_due};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use store::{RunId, Store, StoreError, UnscoredIssue};
use vocab::{ClusterName, HourStart};

/// Forecasts of one cluster that are not scored yet, by issue hour.
pub struct Unscored {
    issues: VecDeque<UnscoredIssue>,
    /// Peaks as those of the run that serves have them; read from the database after a restart, as far as it is needed.
    guesses: BTreeMap<HourStart, Arc<PeakGuesses>>,
}

impl Unscored {
    pub fn new(issues: Vec<UnscoredIssue>) -> Self {
        Self { issues: issues.into(), guesses: BTreeMap::new() }
    }

    /// The oldest.
    pub fn front(&self) -> Option<&UnscoredIssue> {
        self.issues.front()
    }

    /// Takes the oldest out.
    pub fn pop_front(&mut self) {
        if let Some(one) = self.issues.pop_front() {
            self.guesses.remove(&one.issue);
        }
    }

    /// Adds the newest, with what it says of peaks if its run serves.
    pub fn push_back(&mut self, issue: UnscoredIssue, guesses: Option<PeakGuesses>) {
        self.guesses.extend(guesses.map(|guesses| (issue.issue, Arc::new(guesses))));
        self.issues.push_back(issue);
    }

    /// Another run serves: it learns from its own forecasts.
    pub fn forget_guesses(&mut self) {
        self.guesses.clear();
    }

    /// Has the calibrator of a run learn of the peaks that are over, of forecasts with later hours that are not. `None` where there is
    /// nothing to learn.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn teach(
        &mut self,
        store: &dyn Store,
        cluster: &ClusterName,
        panel: &Arc<Panel>,
        (run, calibrator): (RunId, &Arc<Calibrator>),
    ) -> Result<Option<Arc<Calibrator>>, StoreError> {
        let mut due = Vec::new();
        for (hours, taught) in calibrator.peaks_taught() {
            let issues = self.issues.iter().filter(|one| one.run_id == run && taught < Some(one.issue));
            // Oldest first: none is left out.
            let over = issues.take_while(|one| is_due(panel, one.issue, hours));
            due.extend(over.map(|one| (one.issue, one.issue.plus_hours(i64::from(hours.get())))));
        }
        let mut lessons = Vec::with_capacity(due.len());
        for (issue, until) in due {
            lessons.push((self.guesses(store, cluster, issue, calibrator).await?, until));
        }
        if lessons.is_empty() {
            return Ok(None);
        }
        let (panel, mut taught) = (panel.clone(), Calibrator::clone(calibrator));
        Ok(blocking(move || {
            for (guesses, until) in &lessons {
                taught.observe_peaks(&panel, guesses, *until);
            }
            Arc::new(taught)
        })
        .await)
    }

    /// Peaks as the forecasts of an issue hour have them; unreadable ones have none, and scoring will log them.
    async fn guesses(
        &mut self,
        store: &dyn Store,
        cluster: &ClusterName,
        issue: HourStart,
        calibrator: &Calibrator,
    ) -> Result<Arc<PeakGuesses>, StoreError> {
        if let Some(known) = self.guesses.get(&issue) {
            return Ok(known.clone());
        }
        let (stored, horizon) = (store.issued_forecasts(cluster, issue).await?, calibrator.horizon());
        let read = blocking(move || {
            let issued = stored.and_then(|stored| Issued::from_bytes(&stored.forecasts).ok());
            PeakGuesses::of(issue, issued.as_ref().map_or(&[], |issued| &issued.forecasts), horizon)
        });
        let read = Arc::new(read.await.unwrap_or_else(|| PeakGuesses::of(issue, &[], horizon)));
        self.guesses.insert(issue, read.clone());
        Ok(read)
    }
}
