//! The last seven days of scores.

use super::JUDGED;
use super::band::{Judgement, Standing, judge};
use super::scored::{BoundOutcome, ScoredIssue, Tally};
use std::collections::BTreeMap;
use vocab::{HorizonHours, HourStart, Organization, PoolId, SeriesId};

/// A tally of one issue hour: a forecast has at most 168 steps. Sums are rounded as they are when they are stored, so that
/// a restart finds the same.
#[derive(Debug, Clone, Copy)]
struct Small {
    hours: u8,
    unmeasured: u8,
    covered: u8,
    below: u8,
    abs_error_gpus: f32,
    last_value_abs_error_gpus: f32,
}

impl From<&Tally> for Small {
    fn from(tally: &Tally) -> Self {
        Self {
            hours: tally.hours as u8,
            unmeasured: tally.unmeasured as u8,
            covered: tally.covered as u8,
            below: tally.below as u8,
            abs_error_gpus: tally.abs_error_gpus as f32,
            last_value_abs_error_gpus: tally.last_value_abs_error_gpus as f32,
        }
    }
}

impl From<Small> for Tally {
    fn from(small: Small) -> Self {
        Self {
            hours: small.hours.into(),
            unmeasured: small.unmeasured.into(),
            covered: small.covered.into(),
            below: small.below.into(),
            abs_error_gpus: small.abs_error_gpus.into(),
            last_value_abs_error_gpus: small.last_value_abs_error_gpus.into(),
        }
    }
}

#[derive(Debug)]
struct Entry {
    run: i64,
    horizon: HorizonHours,
    tallies: Vec<(u32, Small)>,
    bounds: Vec<BoundOutcome>,
}

/// Scores by issue hour, each hour once. A series and an issue hour take 16 bytes.
#[derive(Debug, Default)]
pub struct Window {
    names: Vec<SeriesId>,
    /// The pool of each name, by its place among `pools`.
    pool_of: Vec<usize>,
    pools: Vec<PoolId>,
    places: BTreeMap<SeriesId, u32>,
    issues: BTreeMap<HourStart, Entry>,
}

/// How often a pool's bound held.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct BoundRecord {
    /// Issue hours whose bound could be held against the pool's peak.
    pub issues: usize,
    /// Issue hours at which the bound held.
    pub held: usize,
    /// Issue hours with an hour that was not measured whole.
    pub unmeasured: usize,
    /// Sum of the rates that were promised, one an issue hour.
    rates: f64,
    /// The longest hours that a bound covered.
    longest: Option<HorizonHours>,
}

impl BoundRecord {
    fn add(&mut self, one: &BoundOutcome) {
        let Some(held) = one.held else {
            self.unmeasured += 1;
            return;
        };
        self.issues += 1;
        self.held += usize::from(held);
        self.rates += one.rate.as_f64();
        self.longest = self.longest.max(Some(one.hours));
    }

    /// Share of bounds that held.
    #[must_use]
    pub fn coverage(&self) -> Option<f64> {
        (self.issues > 0).then(|| self.held as f64 / self.issues as f64)
    }

    /// The mean rate at which they should.
    #[must_use]
    pub fn rate(&self) -> Option<f64> {
        (self.issues > 0).then(|| self.rates / self.issues as f64)
    }
}

/// One organization's sums.
#[derive(Debug, Clone, PartialEq)]
pub struct OrganizationDrift {
    /// The organization.
    pub organization: Organization,
    /// Its tally.
    pub tally: Tally,
}

/// How the forecasts of a pool fared.
#[derive(Debug, Clone, PartialEq)]
pub struct PoolDrift {
    /// The pool.
    pub pool: PoolId,
    /// First and last issue hour that was scored.
    pub first: HourStart,
    /// Newest issue hour.
    pub last: HourStart,
    /// Issue hours with a scored hour.
    pub issues: usize,
    /// Tally of all organizations.
    pub all: Tally,
    /// Tally of each organization.
    pub organizations: Vec<OrganizationDrift>,
    /// How often the bound held.
    pub bound: BoundRecord,
    /// The same of the serving run's forecasts: another run's misses are not its own.
    run_horizon: Option<HorizonHours>,
    run_issues: usize,
    /// Tally of the run that serves.
    pub of_run: Tally,
    /// How often the bound of the run that serves held.
    pub bound_of_run: BoundRecord,
}

impl PoolDrift {
    fn new(pool: PoolId, first: HourStart) -> Self {
        Self {
            pool,
            first,
            last: first,
            issues: 0,
            all: Tally::default(),
            organizations: Vec::new(),
            bound: BoundRecord::default(),
            run_horizon: None,
            run_issues: 0,
            of_run: Tally::default(),
            bound_of_run: BoundRecord::default(),
        }
    }

    /// The coverage of the 0.9 quantile by the run that serves, beside its band.
    #[must_use]
    pub fn judge_coverage(&self, before: Standing) -> Judgement {
        let shares = self.of_run.coverage().zip(self.of_run.below_share());
        judge(shares, JUDGED.1, self.run_issues, self.run_horizon.unwrap_or(HorizonHours::ONE), before)
    }

    /// How often the bounds of the run that serves held, beside their band. A bound that holds too often breaks no
    /// promise, so there is no upper end.
    #[must_use]
    pub fn judge_bound(&self, before: Standing) -> Judgement {
        let record = &self.bound_of_run;
        let shares = record.coverage().map(|share| (share, 0.0));
        judge(shares, record.rate().unwrap_or(0.0), record.issues, record.longest.unwrap_or(HorizonHours::ONE), before)
    }
}

impl Window {
    /// Adds the scores of an issue hour that a run was asked at. An hour that is there already stays as it is.
    pub fn add(&mut self, run: i64, scored: &ScoredIssue) {
        if self.issues.contains_key(&scored.issue) {
            return;
        }
        let tallies = scored.series.iter().map(|(series, tally)| (self.place(series), tally.into())).collect();
        let entry = Entry { run, horizon: scored.horizon, tallies, bounds: scored.bounds.clone() };
        self.issues.insert(scored.issue, entry);
    }

    fn place(&mut self, series: &SeriesId) -> u32 {
        if let Some(place) = self.places.get(series) {
            return *place;
        }
        let place = self.names.len() as u32;
        let pool = self.pools.iter().position(|known| *known == series.pool).unwrap_or_else(|| {
            self.pools.push(series.pool.clone());
            self.pools.len() - 1
        });
        self.names.push(series.clone());
        self.pool_of.push(pool);
        self.places.insert(series.clone(), place);
        place
    }

    /// Forgets the issue hours before `hour`.
    pub fn forget_before(&mut self, hour: HourStart) {
        self.issues = self.issues.split_off(&hour);
    }

    /// Issue hours that it holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.issues.len()
    }

    /// Whether no issue hour was scored.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.issues.is_empty()
    }

    /// How each pool fared, in their order, and `run`'s part of it.
    #[must_use]
    pub fn report(&self, run: i64) -> Vec<PoolDrift> {
        let mut pools: Vec<Option<PoolDrift>> = vec![None; self.pools.len()];
        let mut organizations: Vec<Tally> = vec![Tally::default(); self.names.len()];
        for (issue, entry) in &self.issues {
            self.add_to(&mut pools, &mut organizations, *issue, entry, entry.run == run);
        }
        for (series, place) in &self.places {
            let tally = organizations[*place as usize];
            if let Some(pool) = pools[self.pool_of[*place as usize]].as_mut().filter(|_| tally != Tally::default()) {
                pool.organizations.push(OrganizationDrift { organization: series.organization.clone(), tally });
            }
        }
        let mut pools: Vec<_> = pools.into_iter().flatten().collect();
        pools.sort_by(|one, other| one.pool.cmp(&other.pool));
        pools
    }

    fn add_to(
        &self,
        pools: &mut [Option<PoolDrift>],
        organizations: &mut [Tally],
        issue: HourStart,
        entry: &Entry,
        is_of_run: bool,
    ) {
        let mut has_scored = vec![false; pools.len()];
        for &(place, small) in &entry.tallies {
            let (number, tally) = (self.pool_of[place as usize], Tally::from(small));
            let pool = pools[number].get_or_insert_with(|| PoolDrift::new(self.pools[number].clone(), issue));
            pool.last = issue;
            pool.all.add(&tally);
            organizations[place as usize].add(&tally);
            if is_of_run {
                pool.of_run.add(&tally);
            }
            has_scored[number] |= tally.hours > 0;
        }
        let scored = pools.iter_mut().zip(&has_scored).filter(|(_, has_scored)| **has_scored);
        for pool in scored.filter_map(|(pool, _)| pool.as_mut()) {
            pool.issues += 1;
            if is_of_run {
                pool.run_issues += 1;
                pool.run_horizon = pool.run_horizon.max(Some(entry.horizon));
            }
        }
        for bound in &entry.bounds {
            let Some(pool) = pools.iter_mut().flatten().find(|pool| pool.pool == bound.pool) else { continue };
            pool.bound.add(bound);
            if is_of_run {
                pool.bound_of_run.add(bound);
            }
        }
    }
}
