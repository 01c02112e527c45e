//! The statement of a time: one row for each pool and organization, and for each pool.

use crate::day::{Caused, DayAccounts, Line, PoolLine};
use crate::prices::{Charges, GpuPrices, PoolCharges, Prices};
use crate::time::{Day, GpuTime};
use std::collections::BTreeMap;
use vocab::{Organization, PoolId};

/// An organization in a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrganizationRow {
    /// The pool.
    pub pool: PoolId,
    /// The day; `None` for the whole time.
    pub day: Option<Day>,
    /// The organization.
    pub organization: Organization,
    /// Its GPU time.
    pub line: Line,
    /// Its charges; `None` without prices for the GPU model.
    pub charges: Option<Charges>,
}

/// A pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolRow {
    /// The pool.
    pub pool: PoolId,
    /// The day; `None` for the whole time.
    pub day: Option<Day>,
    /// Seconds that were accounted for.
    pub accounted_s: u64,
    /// GPU time that no organization held.
    pub line: PoolLine,
    /// The sum of its organizations.
    pub total: Line,
    /// The sum of their charges.
    pub charges: Option<Charges>,
    /// Its costs.
    pub costs: Option<PoolCharges>,
}

impl PoolRow {
    /// Of the capacity, the share in which tasks ran whose work was not lost; `None` without capacity.
    #[must_use]
    pub fn goodput(&self) -> Option<f64> {
        share(self.total.ran().less(self.total.lost()), self.line.capacity)
    }

    /// Of the capacity, the share that tasks held.
    #[must_use]
    pub fn allocation(&self) -> Option<f64> {
        share(self.total.held(), self.line.capacity)
    }
}

fn share(part: GpuTime, of: GpuTime) -> Option<f64> {
    (of > GpuTime::ZERO).then(|| part.milli_gpu_s() as f64 / of.milli_gpu_s() as f64)
}

/// One organization's HP tasks that evicted another one's spot tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preemption {
    /// The pool.
    pub pool: PoolId,
    /// The organization of the HP tasks.
    pub by: Organization,
    /// The organization of the spot tasks.
    pub of: Organization,
    /// The evictions.
    pub caused: Caused,
}

/// Rows in the order of pools, days and organizations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Statement {
    /// By pool, day and organization.
    pub organizations: Vec<OrganizationRow>,
    /// By pool and day.
    pub pools: Vec<PoolRow>,
    /// By pool, over the whole time; those with the most lost work first.
    pub preemptions: Vec<Preemption>,
}

/// Days of a pool together. Charges are rounded by day, so that the days of a month add up to it.
#[derive(Default)]
struct Sum {
    accounts: DayAccounts,
    /// Empty without prices.
    charges: BTreeMap<Organization, Charges>,
    costs: Option<PoolCharges>,
}

impl Sum {
    fn add(&mut self, day: &DayAccounts, prices: Option<&GpuPrices>) {
        self.accounts += day;
        let Some(prices) = prices else { return };
        for (organization, line) in &day.organizations {
            *self.charges.entry(organization.clone()).or_default() += &Charges::of(line, prices);
        }
        *self.costs.get_or_insert_default() += &PoolCharges::of(&day.pool, &day.total(), prices);
    }
}

impl Statement {
    /// The statement of days of pools; one row a day where `daily`, else one for the whole time.
    #[must_use]
    pub fn of(days: &BTreeMap<(PoolId, Day), DayAccounts>, prices: &Prices, daily: bool) -> Self {
        let mut sums: BTreeMap<(&PoolId, Option<Day>), Sum> = BTreeMap::new();
        let mut preemptions: BTreeMap<(&PoolId, Organization, Organization), Caused> = BTreeMap::new();
        for ((pool, day), accounts) in days {
            sums.entry((pool, daily.then_some(*day))).or_default().add(accounts, prices.of(&pool.gpu_model));
            for (of, line) in &accounts.organizations {
                for (by, caused) in &line.evicted_by {
                    *preemptions.entry((pool, by.clone(), of.clone())).or_default() += caused;
                }
            }
        }
        let mut statement = Self::default();
        for ((pool, day), sum) in sums {
            statement.add(pool, day, sum);
        }
        let row = |((pool, by, of), caused): ((&PoolId, _, _), _)| Preemption { pool: pool.clone(), by, of, caused };
        statement.preemptions = preemptions.into_iter().map(row).collect();
        statement.preemptions.sort_by(|a, b| {
            let worst = |one: &Preemption| (one.caused.lost, one.caused.evictions);
            worst(b).cmp(&worst(a)).then_with(|| (&a.pool, &a.by, &a.of).cmp(&(&b.pool, &b.by, &b.of)))
        });
        statement
    }

    fn add(&mut self, pool: &PoolId, day: Option<Day>, sum: Sum) {
        let Sum { accounts, mut charges, costs } = sum;
        let total = accounts.total();
        // The sum of rounded charges, so that the columns of a statement add up.
        let mut charged = costs.map(|_| Charges::default());
        for (organization, line) in accounts.organizations {
            let charges = charges.remove(&organization);
            if let (Some(charged), Some(charges)) = (&mut charged, &charges) {
                *charged += charges;
            }
            self.organizations.push(OrganizationRow { pool: pool.clone(), day, organization, line, charges });
        }
        let (pool, accounted_s, line) = (pool.clone(), accounts.accounted_s, accounts.pool);
        self.pools.push(PoolRow { pool, day, accounted_s, line, total, charges: charged, costs });
    }

    /// Only the rows of one organization: without those of pools, and of preemptions those that concern it.
    #[must_use]
    pub fn of_organization(mut self, organization: &Organization) -> Self {
        self.organizations.retain(|row| row.organization == *organization);
        self.pools.clear();
        self.preemptions.retain(|row| row.by == *organization || row.of == *organization);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prices::Micros;
    use vocab::UnixSeconds;

    #[test]
    fn the_charges_of_days_add_up_to_those_of_the_whole_time() {
        let (pool, second) = (PoolId::parse("demo:A100").unwrap(), GpuTime::of(1_000, 1));
        let day = |number: i64| {
            let mut day = DayAccounts::default();
            let line = Line { hp: second, ..Line::default() };
            day.organizations.insert(Organization::parse("vision").unwrap(), line);
            day.pool.capacity = second;
            ((pool.clone(), Day::of(UnixSeconds::new(number * vocab::SECONDS_PER_DAY))), day)
        };
        let days: BTreeMap<_, _> = (0..10).map(day).collect();
        // A GPU-second costs 1.4 millionths: 1 on each of ten days, and 14 on all of them.
        let price = Micros::price(0.005_04).unwrap();
        let of_model = GpuPrices { hp: price, owned: price, ..GpuPrices::default() };
        let prices = Prices { default: Some(of_model), ..Prices::default() };
        for daily in [false, true] {
            let statement = Statement::of(&days, &prices, daily);
            let hp: f64 = statement.organizations.iter().map(|row| row.charges.unwrap().hp.units()).sum();
            let owned: f64 = statement.pools.iter().map(|row| row.costs.unwrap().owned.units()).sum();
            assert_eq!([hp, owned].map(|units| (units * 1e6).round()), [10.0; 2], "by day: {daily}");
        }
    }
}
