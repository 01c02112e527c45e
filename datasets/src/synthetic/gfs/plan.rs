//! From the table to jobs with times, in steps.

use super::arrivals::{self, Habit, Window};
use super::cells;
use super::draw::{self, Draft};
use super::durations::{self, Sums};
use super::made::Job;
use super::published::{self, MODELS, Sum};
use super::standing::Standing;
use super::table::{self, Expected};
use super::{DAY_S, GfsCluster, HOUR_S, Shares};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Fewer jobs of an organization cannot be moved to its published GPU-seconds.
const ENOUGH_JOBS: f64 = 20.0;
/// Streams of chance beside those by row.
const ONLY_JOBS: u64 = 1 << 20;
const HABITS: u64 = 1 << 21;
const TIMES: u64 = 1 << 22;
/// Organizations that come again have streams of their own, this far apart.
const AGAIN: u64 = 1 << 32;

/// Everything that the jobs of one organization depend on.
struct Plan {
    expected: Expected,
    window: Window,
    scale: f64,
    seed: u64,
}

/// The factors that all organizations share.
struct Shared {
    standing: Standing,
    habits: Vec<Habit>,
}

pub fn jobs(what: &GfsCluster) -> Vec<Job> {
    let plan = Plan::of(what);
    // 1. The jobs of all organizations of the tables, with durations whose sums hold.
    let mut drafts: Vec<Vec<Draft>> = (0..plan.expected.tenants.len()).map(|tenant| plan.drafts(tenant, 0)).collect();
    plan.calibrate(what.shares, &mut drafts);
    // 2. What they share, and their times.
    let shared = plan.shared(what, &drafts);
    for (tenant, drafts) in drafts.iter_mut().enumerate() {
        plan.spread(drafts, tenant, 0, &shared);
    }
    // 3. The organizations that were asked for.
    let mut jobs = plan.chosen(what.organizations, &drafts, &shared);
    jobs.sort_by_key(|job| job.submit_s);
    fill_first_and_last_hour(&mut jobs, what.days);
    jobs
}

/// A reader of the list has no other way to know where the window begins and ends.
fn fill_first_and_last_hour(jobs: &mut [Job], days: u32) {
    let last_hour_s = days * DAY_S - HOUR_S;
    if let [first, .., last] = jobs {
        first.submit_s %= HOUR_S;
        last.submit_s = last_hour_s + last.submit_s % HOUR_S;
    }
}

impl Plan {
    fn of(what: &GfsCluster) -> Self {
        let (expected, days) = match what.shares {
            Shares::Trace => (table::trace(), published::DAYS),
            Shares::A100 => (table::a100(), published::TABLE_3_DAYS),
        };
        let window =
            Window { days: what.days, first_hour: what.first_local_hour(), first_weekday: what.first_weekday() };
        Self { expected, window, scale: f64::from(what.days) / days, seed: what.seed }
    }

    fn rng(&self, stream: u64) -> ChaCha8Rng {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream(stream);
        rng
    }

    fn rows_of(&self, tenant: usize) -> impl Iterator<Item = usize> {
        (0..self.expected.rows.len()).filter(move |row| self.expected.rows[*row].tenant == tenant)
    }

    /// Row by row; at least one job, where the organization has a row at all.
    fn drafts(&self, tenant: usize, streams: u64) -> Vec<Draft> {
        let draw = |row: usize| draw::row(&self.expected, row, self.scale, &mut self.rng(streams + row as u64));
        let mut drafts: Vec<Draft> = self.rows_of(tenant).flat_map(draw).collect();
        let most = self.rows_of(tenant).max_by(|a, b| self.expected.jobs(*a).total_cmp(&self.expected.jobs(*b)));
        if let Some(row) = most.filter(|_| drafts.is_empty()) {
            let mut rng = self.rng(streams + ONLY_JOBS + row as u64);
            drafts.push(draw::only_job(&self.expected, row, self.scale, &mut rng));
        }
        drafts
    }

    fn calibrate(&self, shares: Shares, drafts: &mut [Vec<Draft>]) {
        let mut all: Vec<&mut Draft> = drafts.iter_mut().flatten().collect();
        let sums = match shares {
            Shares::Trace => self.sums(&all),
            Shares::A100 => self.sums_a100(&all),
        };
        durations::calibrate(&mut all, &sums);
    }

    fn sums(&self, drafts: &[&mut Draft]) -> Vec<Sums> {
        let of = |sums: &[Sum<'_>]| sums.iter().map(|sum| Some(sum.gpu_seconds * self.scale)).collect();
        let enough = |jobs: f64| jobs * self.scale > ENOUGH_JOBS;
        let tenants = self.expected.tenants.iter();
        let tenants = tenants.map(|tenant| enough(tenant.jobs).then_some(tenant.gpu_seconds * self.scale)).collect();
        let models = MODELS.iter().map(|model| Some(model.gpu_seconds * self.scale)).collect();
        let long = |draft: &Draft| usize::from(draft.bounds_s.0 >= f64::from(cells::LONG_S));
        vec![
            Sums::of_work(drafts, |draft| cells::worker_bucket(draft.workers), of(&published::WORKERS)),
            Sums::of_work(drafts, |draft| draft.tenant as usize, tenants),
            Sums::of_work(drafts, |draft| usize::from(draft.model), models),
            Sums::of_work(drafts, |draft| cells::gpu_bucket(draft.milli()), of(&published::GPUS)),
            Sums::of_work(drafts, |draft| cells::duration_bucket(draft.bounds_s.0 as u32), of(&published::DURATIONS)),
            Sums::of_work(drafts, |draft| usize::from(draft.spot) * 2 + long(draft), of(&published::CLASSES_BY_LENGTH)),
        ]
    }

    fn sums_a100(&self, drafts: &[&mut Draft]) -> Vec<Sums> {
        let class = |draft: &Draft| usize::from(draft.spot);
        let hp_work = vec![Some(table::a100_hp_work() * self.scale), None];
        let seconds = published::TABLE_3.iter().map(|class| Some(class.jobs * class.mean_duration_s * self.scale));
        vec![Sums::of_work(drafts, class, hp_work), Sums::of_seconds(drafts, class, seconds.collect())]
    }

    fn shared(&self, what: &GfsCluster, drafts: &[Vec<Draft>]) -> Shared {
        let window_s = f64::from(what.days * DAY_S);
        let standing = Standing::of(drafts.iter().flatten(), &table::fleets(what.fleet()), window_s);
        let tenants = 0..self.expected.tenants.len();
        let mut habits: Vec<_> =
            tenants.clone().map(|tenant| Habit::draw(&mut self.rng(HABITS + tenant as u64))).collect();
        let jobs: Vec<_> = tenants.map(|tenant| self.jobs_by_length(tenant)).collect();
        arrivals::rake_hours(&mut habits, &jobs);
        Shared { standing, habits }
    }

    /// Expected jobs of an organization, short and large (see [`arrivals::LARGE_S`]).
    fn jobs_by_length(&self, tenant: usize) -> [f64; 2] {
        let mut jobs = [0.0; 2];
        for row in self.rows_of(tenant) {
            for (column, cell) in self.expected.row(row).iter().enumerate() {
                let (_, span) = self.expected.column(column);
                jobs[usize::from(f64::from(cells::SPANS[span].from_s) >= arrivals::LARGE_S)] += cell;
            }
        }
        jobs
    }

    fn spread(&self, drafts: &mut [Draft], tenant: usize, streams: u64, shared: &Shared) {
        let mut rng = self.rng(streams + TIMES + tenant as u64);
        for draft in drafts.iter_mut() {
            let stands = rng.random::<f64>() < shared.standing.chance(draft);
            draft.submit_s = stands.then_some(0);
        }
        for row in drafts.chunk_by_mut(|a, b| (a.model, a.spot) == (b.model, b.spot)) {
            arrivals::spread(row, &shared.habits[tenant], self.window, &mut rng);
        }
    }

    /// The largest of the organizations, and where there are too few of them, the smallest quarter again and again.
    fn chosen(&self, organizations: u32, drafts: &[Vec<Draft>], shared: &Shared) -> Vec<Job> {
        let ranked = self.expected.largest_first();
        let id = |tenant: usize| self.expected.tenants[tenant].id;
        let kept = ranked.iter().take(organizations as usize);
        let mut jobs: Vec<Job> =
            kept.flat_map(|tenant| drafts[*tenant].iter().map(|draft| draft.job(id(*tenant)))).collect();
        let tail = &ranked[ranked.len() * 3 / 4..];
        for number in 0..(organizations as usize).saturating_sub(ranked.len()) {
            let (tenant, streams) = (tail[number % tail.len()], AGAIN * (number as u64 + 1));
            let mut drafts = self.drafts(tenant, streams);
            self.spread(&mut drafts, tenant, streams, shared);
            let new_id = self.expected.tenants.len() + number;
            jobs.extend(drafts.iter().map(|draft| draft.job(new_id as u32)));
        }
        jobs
    }
}
