//! The table of jobs by organization, GPU model, class, size and length, raked to everything that is published of it.

use super::cells::{self, SPANS, Size};
use super::published::{self, MODELS, Shape, Sum, TABLE_3, Tenant};
use super::rake::{Family, Table, rake};
use std::collections::BTreeMap;

/// Enough for every sum to be met to a few thousandths; the last of it is done to the durations of the jobs drawn.
const SWEEPS: u32 = 120;
/// An organization with less than this share of the GPU-seconds of a model has none of it.
const LEAST_MIX: f64 = 1e-5;
/// Organizations with fewer jobs than this show no spot jobs: nothing is published of theirs.
const LEAST_JOBS_FOR_SPOT: f64 = 200.0;

/// From here on, some 600 GPU-days, jobs get rare.
const RARE_GPU_SECONDS: f64 = 5e7;
/// No gang asks for more GPUs, by model: of the models that train it can be half the fleet and more, as the steps of
/// `hourly_concurrency_by_model.csv` are (176 nodes of H800 at once); of those that serve it is a tenth.
const GANG_GPUS: [u32; MODELS.len()] = [256, 1_024, 1_024, 128, 512, 88];
/// GPU-seconds of the HP jobs of the A100 cluster, as a share of its GPUs. Nothing is published of them but that 74 % of all
/// A100 were allocated (table 1), HP and spot; some of these GPU-seconds lie past the end of a window.
const A100_LOAD: f64 = 0.75;
/// No gang of the A100 cluster asks for more than this: a few of the trace's largest would be all of its work.
const A100_GANG_GPUS: u32 = 64;
/// Nor does one run longer: beside services of months, the mean durations of table 5 would leave seconds to all others.
const A100_LONGEST_S: u32 = 20 * super::DAY_S;

/// Organization and GPU model of jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// Index of the organization.
    pub tenant: usize,
    pub model: usize,
    pub spot: bool,
}

/// Expected jobs of the whole trace, and what rows and columns mean.
#[derive(Debug, Clone)]
pub struct Expected {
    pub tenants: Vec<Tenant>,
    pub rows: Vec<Row>,
    pub sizes: Vec<Size>,
    /// The largest gang of each model.
    pub most_gpus: [u32; MODELS.len()],
    /// Numbers of workers and how often each is seen, by range.
    pub workers: Vec<Vec<(u32, f64)>>,
    pub table: Table,
}

impl Expected {
    /// Size and span of a column.
    #[must_use]
    pub fn column(&self, column: usize) -> (Size, usize) {
        (self.sizes[column / SPANS.len()], column % SPANS.len())
    }

    /// Expected jobs of a row, by column.
    #[must_use]
    pub fn row(&self, row: usize) -> &[f64] {
        &self.table.cells[row * self.table.columns..][..self.table.columns]
    }

    #[must_use]
    pub fn jobs(&self, row: usize) -> f64 {
        self.row(row).iter().sum()
    }

    /// Organizations that have jobs, by their GPU-seconds.
    #[must_use]
    pub fn largest_first(&self) -> Vec<usize> {
        let mut sums = vec![0.0; self.tenants.len()];
        let work = self.work();
        for (row, cells) in self.rows.iter().zip(self.table.rows()) {
            sums[row.tenant] += cells.iter().zip(&work).map(|(jobs, work)| jobs * work).sum::<f64>();
        }
        let mut ranked: Vec<usize> = (0..sums.len()).filter(|tenant| sums[*tenant] > 0.0).collect();
        ranked.sort_by(|a, b| sums[*b].total_cmp(&sums[*a]).then(a.cmp(b)));
        ranked
    }

    fn columns(&self) -> impl Iterator<Item = (Size, usize)> {
        (0..self.table.columns).map(|column| self.column(column))
    }

    fn by_column<T>(&self, of: impl Fn(Size, usize) -> T) -> Vec<T> {
        self.columns().map(|(size, span)| of(size, span)).collect()
    }

    fn by_row(&self, of: impl FnMut(&Row) -> usize) -> Vec<usize> {
        self.rows.iter().map(of).collect()
    }

    /// GPU-seconds of one job, by column.
    fn work(&self) -> Vec<f64> {
        self.by_column(|size, span| size.mean_gpus * SPANS[span].mean_s())
    }
}

/// The table of the whole trace: 84 organizations, six models.
#[must_use]
pub fn trace() -> Expected {
    let mut expected = unraked(published::tenants());
    let families = families(&expected);
    rake(&mut expected.table, &families, SWEEPS);
    expected
}

/// The A100 rows of the trace, raked to the paper's table 3.
#[must_use]
pub fn a100() -> Expected {
    let trace = trace();
    let kept = |index: &usize| trace.rows[*index].model == published::A100;
    let indices: Vec<usize> = (0..trace.rows.len()).filter(kept).collect();
    let rows: Vec<Row> = indices.iter().map(|index| trace.rows[*index]).collect();
    let all: Vec<&[f64]> = trace.table.rows().collect();
    let cells = indices.iter().flat_map(|index| all[*index]).copied().collect();
    let most_gpus = [A100_GANG_GPUS; MODELS.len()];
    let mut expected = Expected { rows, most_gpus, table: Table { cells, ..trace.table }, ..trace };
    let left_out: Vec<bool> =
        expected.by_column(|size, span| size.least_gpus() > A100_GANG_GPUS || SPANS[span].to_s > A100_LONGEST_S);
    for row in expected.table.cells.chunks_exact_mut(expected.table.columns) {
        for (cell, _) in row.iter_mut().zip(&left_out).filter(|(_, left_out)| **left_out) {
            *cell = 0.0;
        }
    }
    let families = families_a100(&expected);
    rake(&mut expected.table, &families, SWEEPS);
    expected
}

fn unraked(tenants: Vec<Tenant>) -> Expected {
    let mut rows = Vec::new();
    for (index, tenant) in tenants.iter().enumerate() {
        for model in (0..MODELS.len()).filter(|model| tenant.mix[*model] > LEAST_MIX) {
            rows.push(Row { tenant: index, model, spot: false });
            if tenant.jobs >= LEAST_JOBS_FOR_SPOT {
                rows.push(Row { tenant: index, model, spot: true });
            }
        }
    }
    let sizes = cells::sizes();
    let columns = sizes.len() * SPANS.len();
    let workers: Vec<Vec<(u32, f64)>> =
        (0..cells::WORKER_RANGES.len()).map(|range| cells::workers_in(range).collect()).collect();
    let table = Table { columns, cells: Vec::new() };
    let mut expected = Expected { tenants, rows, sizes, workers, most_gpus: GANG_GPUS, table };
    let spans = span_weights();
    let workers: Vec<f64> = expected.workers.iter().map(|range| range.iter().map(|(_, jobs)| jobs).sum()).collect();
    let mean_s = SPANS.map(|span| span.mean_s());
    let mut cells = Vec::with_capacity(expected.rows.len() * columns);
    for row in &expected.rows {
        let (tenant, model) = (&expected.tenants[row.tenant], &MODELS[row.model]);
        let median_s = tenant.median_duration_s;
        // Where an organization's GPU-seconds are, its jobs are, in proportion to the model's jobs a GPU-second.
        let share = tenant.mix[row.model] * tenant.gpu_seconds * model.jobs / model.gpu_seconds;
        cells.extend(expected.columns().map(|(size, span)| {
            let shape = size_weight(size, row.model) * workers[size.workers];
            share
                * shape
                * spans[span]
                * span_of_model(row.model, span)
                * near(mean_s[span], median_s)
                * rare(size.mean_gpus * mean_s[span])
        }));
    }
    expected.table.cells = cells;
    expected
}

/// GPUs of each model.
#[must_use]
pub fn fleets(shapes: &[Shape]) -> [u32; MODELS.len()] {
    let mut gpus = [0; MODELS.len()];
    for shape in shapes {
        gpus[shape.model] += shape.gpus * shape.nodes;
    }
    gpus
}

/// An unpublished input: how often sizes are asked for before anything is raked.
fn size_weight(size: Size, model: usize) -> f64 {
    // A10 nodes have one GPU; most nodes of GPU-series-1, too.
    let many = cells::REQUESTS_MILLI[size.request] > 1_000;
    if (many && model == 0) || size.least_gpus() > GANG_GPUS[model] {
        return 0.0;
    }
    // Inference shares the small cards; table 3 shows one fraction in a thousand on A100.
    let fractions = [1.0, 0.002, 0.002, 0.3, 0.002, 0.002];
    let alone = [fractions[model], 1.0, 0.15, 0.15, 0.5];
    let gang = [0.0, 0.5, 0.2, 0.2, 1.0];
    let series_1 = if many && model == 3 { 0.1 } else { 1.0 };
    series_1 * if size.workers == 0 { alone[size.request] } else { gang[size.request] }
}

/// Of the longest services, which run past any window of weeks, GPU-series-1 would get more than fits its load.
fn span_of_model(model: usize, span: usize) -> f64 {
    if model == 3 && span == SPANS.len() - 1 { 0.2 } else { 1.0 }
}

fn span_weights() -> [f64; SPANS.len()] {
    let jobs = cells::jobs_by_span_share();
    SPANS.map(|span| jobs[span.share])
}

/// Durations lie about the organization's median, widely.
fn near(duration_s: f64, median_s: f64) -> f64 {
    let distance = (duration_s / median_s).ln() / 2.5;
    0.02 + (-0.5 * distance * distance).exp()
}

/// One job is not a visible part of all work.
fn rare(gpu_seconds: f64) -> f64 {
    1.0 / (1.0 + (gpu_seconds / RARE_GPU_SECONDS).powi(2))
}

fn jobs_of(sums: &[Sum<'_>]) -> Vec<Option<f64>> {
    sums.iter().map(|sum| Some(sum.jobs)).collect()
}

fn work_of(sums: &[Sum<'_>]) -> Vec<Option<f64>> {
    sums.iter().map(|sum| Some(sum.gpu_seconds)).collect()
}

/// Everything that is published of the trace.
fn families(expected: &Expected) -> Vec<Family> {
    let (tenants, work) = (&expected.tenants, expected.work());
    let gpus = expected.by_column(|size, _| size.mean_gpus);
    let everywhere = vec![0; expected.table.columns];
    let any_row = vec![0; expected.rows.len()];
    let by_row = |row_kind, jobs, sums| Family {
        row_kind,
        column_kind: everywhere.clone(),
        column_kinds: 1,
        jobs,
        sums: Some(sums),
    };
    let by_column = |column_kind: Vec<usize>, jobs: Vec<Option<f64>>, sums| Family {
        row_kind: any_row.clone(),
        column_kind,
        column_kinds: jobs.len(),
        jobs,
        sums,
    };
    let by_bucket =
        |column_kind, sums: &[Sum<'_>]| by_column(column_kind, jobs_of(sums), Some((work_of(sums), work.clone())));
    let ranges =
        (0..cells::WORKER_RANGES.len()).map(|range| Some(cells::workers_in(range).map(|(_, jobs)| jobs).sum()));
    let of_tenants = |of: fn(&Tenant) -> f64| tenants.iter().map(|tenant| Some(of(tenant))).collect::<Vec<_>>();
    vec![
        by_row(
            expected.by_row(|row| row.tenant),
            of_tenants(|tenant| tenant.jobs),
            (of_tenants(|tenant| tenant.gpus), gpus.clone()),
        ),
        by_row(
            expected.by_row(|row| row.model),
            MODELS.iter().map(|model| Some(model.jobs)).collect(),
            (MODELS.iter().map(|model| Some(model.gpus)).collect(), gpus),
        ),
        by_column(expected.by_column(|size, _| size.workers), ranges.collect(), None),
        by_bucket(expected.by_column(|size, _| size.worker_bucket()), &published::WORKERS),
        by_bucket(expected.by_column(|size, _| size.gpu_bucket()), &published::GPUS),
        by_bucket(expected.by_column(|_, span| SPANS[span].bucket), &published::DURATIONS),
        by_column(
            expected.by_column(|_, span| SPANS[span].share),
            cells::jobs_by_span_share().map(Some).to_vec(),
            None,
        ),
        Family {
            row_kind: expected.by_row(|row| usize::from(row.spot)),
            column_kind: expected.by_column(|_, span| usize::from(SPANS[span].from_s >= cells::LONG_S)),
            column_kinds: 2,
            jobs: jobs_of(&published::CLASSES_BY_LENGTH),
            sums: Some((work_of(&published::CLASSES_BY_LENGTH), work.clone())),
        },
        by_pair(expected, &work, &everywhere),
        by_row(
            expected.by_row(|row| row.tenant),
            of_tenants(|tenant| tenant.jobs),
            (of_tenants(|tenant| tenant.gpu_seconds), work.clone()),
        ),
    ]
}

/// GPU-seconds of each organization on each model; of its jobs there nothing is published.
fn by_pair(expected: &Expected, work: &[f64], everywhere: &[usize]) -> Family {
    let (mut pairs, mut sums) = (BTreeMap::new(), Vec::new());
    let row_kind = expected.by_row(|row| {
        *pairs.entry((row.tenant, row.model)).or_insert_with(|| {
            let tenant = &expected.tenants[row.tenant];
            sums.push(Some(tenant.gpu_seconds * tenant.mix[row.model]));
            sums.len() - 1
        })
    });
    let jobs = vec![None; sums.len()];
    Family { row_kind, column_kind: everywhere.to_vec(), column_kinds: 1, jobs, sums: Some((sums, work.to_vec())) }
}

/// GPU-seconds of the HP jobs of table 3.
#[must_use]
pub fn a100_hp_work() -> f64 {
    A100_LOAD
        * f64::from(fleets(&published::FLEET_A100)[published::A100])
        * published::TABLE_3_DAYS
        * f64::from(super::DAY_S)
}

/// Table 3: jobs by class and request, by class and gang; how long they run on average.
fn families_a100(expected: &Expected) -> Vec<Family> {
    let class = expected.by_row(|row| usize::from(row.spot));
    let by_class = |column_kind: Vec<usize>, jobs: Vec<Option<f64>>, sums| Family {
        row_kind: class.clone(),
        column_kind,
        column_kinds: jobs.len() / TABLE_3.len(),
        jobs,
        sums,
    };
    let requests = TABLE_3.iter().flat_map(|class| class.by_request.map(|percent| Some(class.jobs * percent / 100.0)));
    let gangs = TABLE_3.iter().flat_map(|class| [100.0 - class.gang, class.gang].map(|p| Some(class.jobs * p / 100.0)));
    let work = a100_hp_work();
    let seconds = TABLE_3.iter().map(|class| Some(class.jobs * class.mean_duration_s)).collect();
    vec![
        by_class(
            vec![0; expected.table.columns],
            TABLE_3.iter().map(|class| Some(class.jobs)).collect(),
            Some((seconds, expected.by_column(|_, span| SPANS[span].mean_s()))),
        ),
        by_class(
            vec![0; expected.table.columns],
            TABLE_3.iter().map(|class| Some(class.jobs)).collect(),
            Some((vec![Some(work), None], expected.work())),
        ),
        by_class(expected.by_column(|size, _| size.request), requests.collect(), None),
        by_class(expected.by_column(|size, _| usize::from(size.workers > 0)), gangs.collect(), None),
    ]
}
