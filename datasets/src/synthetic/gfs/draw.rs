//! Jobs drawn from the expected table: how many of each kind, and how large and long each of them is.

use super::cells::{FRACTIONS, REQUESTS_MILLI, SPANS};
use super::made::Job;
use super::table::Expected;
use rand::{Rng, RngExt};

/// vCPUs that a worker asks for with each of its GPUs, by model: never more than the node's share, so that eight GPUs of a
/// node can all be used. The rows of the trace that are published ask for 20 and 8 on A10 and for 15 on A100.
const VCPUS_PER_GPU: [&[u32]; 6] =
    [&[8, 16, 20, 32], &[8, 12, 15], &[12, 20, 23], &[8, 16, 20], &[12, 20, 23], &[8, 12, 15]];

/// A job before it has a time.
#[derive(Debug, Clone)]
pub struct Draft {
    pub tenant: u32,
    pub model: u8,
    pub spot: bool,
    pub request_milli: u32,
    pub workers: u32,
    pub vcpus: u32,
    pub duration_s: f64,
    /// Its duration may be moved between these.
    pub bounds_s: (f64, f64),
    /// Seconds from the start, once known.
    pub submit_s: Option<u32>,
}

impl Draft {
    #[must_use]
    pub fn gpus(&self) -> f64 {
        self.milli() as f64 / 1_000.0
    }

    /// Thousandths of a GPU, over all workers.
    #[must_use]
    pub fn milli(&self) -> u64 {
        u64::from(self.request_milli) * u64::from(self.workers)
    }

    /// The job, under the name of an organization.
    #[must_use]
    pub fn job(&self, organization: u32) -> Job {
        Job {
            organization,
            model: self.model,
            spot: self.spot,
            request_milli: self.request_milli as u16,
            workers: self.workers as u16,
            vcpus: self.vcpus as u16,
            submit_s: self.submit_s.expect("every job was given a time"),
            duration_s: self.duration_s.round() as u32,
        }
    }
}

/// The jobs of one row, `scale` of those expected, smallest first.
///
/// Stratified: one draw shifts a comb over the expected counts, so that each stretch of the row gets its number of jobs
/// to within one. Independent draws would miss the GPU-seconds by far, most of which are in few jobs.
pub fn row(expected: &Expected, row: usize, scale: f64, rng: &mut impl Rng) -> Vec<Draft> {
    let (cells, total) = (expected.row(row), expected.jobs(row));
    let count = (total * scale + rng.random::<f64>()).floor();
    let shift = rng.random::<f64>();
    let (mut drafts, mut reached) = (Vec::with_capacity(count as usize), 0.0);
    for (column, jobs) in cells.iter().enumerate() {
        reached += jobs / total * count;
        while (drafts.len() as f64) + shift < reached {
            drafts.push(draft(expected, row, column, rng));
        }
    }
    drafts
}

/// The one job of an organization for which the draw gave none: its commonest kind, with all of its work.
pub fn only_job(expected: &Expected, row: usize, scale: f64, rng: &mut impl Rng) -> Draft {
    let cells = expected.row(row);
    let commonest = (0..cells.len()).max_by(|a, b| cells[*a].total_cmp(&cells[*b])).expect("a table has columns");
    let mut draft = draft(expected, row, commonest, rng);
    let tenant = &expected.tenants[expected.rows[row].tenant];
    let duration_s = (tenant.gpu_seconds * scale / draft.gpus()).clamp(1.0, f64::from(SPANS[SPANS.len() - 1].to_s - 1));
    draft.duration_s = duration_s;
    draft.bounds_s = (duration_s, duration_s);
    draft
}

fn draft(expected: &Expected, row: usize, column: usize, rng: &mut impl Rng) -> Draft {
    let (size, span) = expected.column(column);
    let row = expected.rows[row];
    let request_milli = match REQUESTS_MILLI[size.request] {
        0 => weighted(&FRACTIONS, rng),
        whole => whole,
    };
    let fit = expected.most_gpus[row.model] * 1_000 / request_milli;
    let range = &expected.workers[size.workers];
    let workers = weighted(&range[..range.partition_point(|(workers, _)| *workers <= fit)], rng);
    let per_gpu = VCPUS_PER_GPU[row.model];
    let per_gpu = per_gpu[rng.random_range(0..per_gpu.len())];
    let span = SPANS[span];
    Draft {
        tenant: row.tenant as u32,
        model: row.model as u8,
        spot: row.spot,
        request_milli,
        workers,
        vcpus: (per_gpu * request_milli).div_ceil(1_000),
        duration_s: span.duration_s(rng.random()),
        bounds_s: span.bounds_s(),
        submit_s: None,
    }
}

fn weighted(choices: &[(u32, f64)], rng: &mut impl Rng) -> u32 {
    let mut left = rng.random::<f64>() * choices.iter().map(|(_, weight)| weight).sum::<f64>();
    let found = choices.iter().find(|(_, weight)| {
        left -= weight;
        left < 0.0
    });
    found.or(choices.last()).expect("there is something to choose from").0
}
