//! Published figures of the GFS trace: counts and sums over its 466,867 jobs, and the paper's table 3.
//!
//! Source of all but the last part: the summary tables of github.com/sultanul-ovi/GPU-Cluster-Spot-Resource-Dataset-Analysis
//! on github.com/alibaba/clusterdata (cluster-trace-v2026-spot-gpu); the name of the file stands at each constant. Times are
//! nominal: a job counts with its whole duration, whenever it ends.

/// Jobs of the trace, and the days over which they were submitted (`daily_summary.csv`, without its last half hour).
pub const JOBS: u32 = 466_867;
/// Days of the trace.
pub const DAYS: f64 = 184.0;
/// GPU-seconds of all jobs: the sum of `job_type_summary.csv`, column `gpu_seconds`.
pub const GPU_SECONDS: f64 = 142_314_109_094.06;
/// The longest job: the length of the trace less one second (`org_by_gpu_seconds.csv`, `median_duration` of organization 16).
pub const LONGEST_S: u32 = 15_897_599;

/// Jobs and what they ask for.
#[derive(Debug, Clone, Copy)]
pub struct Sum<'a> {
    /// Name of the category.
    pub name: &'a str,
    /// Jobs.
    pub jobs: f64,
    /// GPU-seconds of the jobs.
    pub gpu_seconds: f64,
}

const fn sum(name: &'static str, jobs: f64, gpu_seconds: f64) -> Sum<'static> {
    Sum { name, jobs, gpu_seconds }
}

/// A GPU model: `demand_by_model.csv` (jobs, sum of GPUs, GPU-seconds).
#[derive(Debug, Clone, Copy)]
pub struct Model {
    /// Name of the category.
    pub name: &'static str,
    /// Jobs.
    pub jobs: f64,
    /// GPUs of the jobs.
    pub gpus: f64,
    /// GPU-seconds of the jobs.
    pub gpu_seconds: f64,
}

const fn model(name: &'static str, jobs: f64, gpus: f64, gpu_seconds: f64) -> Model {
    Model { name, jobs, gpus, gpu_seconds }
}

/// In the order of the columns of `organizations.csv`.
pub const MODELS: [Model; 6] = [
    model("A10", 228_643.0, 210_325.44, 52_819_975_029.56),
    model("A100-SXM4-80GB", 169_020.0, 828_768.0, 40_781_791_134.0),
    model("H800", 11_097.0, 721_498.0, 17_678_161_867.0),
    model("GPU-series-1", 18_911.0, 40_843.5, 18_781_312_609.0),
    model("GPU-series-2", 30_397.0, 442_571.0, 10_358_767_882.5),
    model("A800-SXM4-80GB", 8_799.0, 53_961.0, 1_894_100_572.0),
];
/// Index of the A100 in [`MODELS`].
pub const A100: usize = 1;

/// `job_type_summary.csv`.
pub const CLASSES: [Sum<'static>; 2] =
    [sum("HP", 415_713.0, 138_860_743_607.06), sum("Spot", 51_154.0, 3_453_365_487.0)];

/// `long_job_slices_by_type.csv`: HP short, HP long, Spot short, Spot long. Its counts show that long is from 6 hours on.
pub const CLASSES_BY_LENGTH: [Sum<'static>; 4] = [
    sum("HP up to 6 h", 355_453.0, 5_037_003_829.8),
    sum("HP over 6 h", 60_260.0, 133_823_739_777.26),
    sum("Spot up to 6 h", 45_961.0, 1_154_397_546.5),
    sum("Spot over 6 h", 5_193.0, 2_298_967_940.5),
];

/// `bucket_duration.csv`, shortest first.
pub const DURATIONS: [Sum<'static>; 7] = [
    sum("0 to 1 min", 57_687.0, 1_791_767.3),
    sum("1 to 10 min", 115_172.0, 155_245_743.7),
    sum("10 to 60 min", 162_994.0, 1_321_084_360.6),
    sum("1 to 6 hours", 65_561.0, 4_713_279_504.7),
    sum("6 to 24 hours", 28_365.0, 10_036_472_365.7),
    sum("1 to 3 days", 9_060.0, 14_533_574_502.0),
    sum("over 3 days", 28_028.0, 111_552_660_850.06),
];

/// `duration_quantiles.csv`: the share of jobs that are shorter, and the seconds.
pub const DURATION_QUANTILES: [(f64, f64); 4] =
    [(0.5, 1_216.0), (0.9, 45_773.4), (0.95, 461_465.3), (0.99, 5_663_026.3)];

/// `bucket_gpu_demand.csv`: GPUs of a job over all its workers. "0" is less than one GPU.
pub const GPUS: [Sum<'static>; 9] = [
    sum("0", 48_587.0, 1_069_695_774.56),
    sum("1", 297_596.0, 77_856_117_851.5),
    sum("2 to 4", 48_978.0, 11_171_263_736.5),
    sum("5 to 8", 45_752.0, 13_612_350_665.5),
    sum("9 to 16", 12_051.0, 5_058_028_729.5),
    sum("17 to 32", 6_760.0, 5_042_607_254.0),
    sum("33 to 64", 3_262.0, 3_693_953_010.0),
    sum("65 to 128", 1_594.0, 3_299_298_266.0),
    sum("129 plus", 2_287.0, 21_510_793_806.5),
];

/// `bucket_worker_num.csv`.
pub const WORKERS: [Sum<'static>; 5] = [
    sum("1", 427_584.0, 102_817_294_814.56),
    sum("2 to 8", 30_535.0, 13_544_281_776.0),
    sum("9 to 32", 7_169.0, 13_941_450_009.5),
    sum("33 to 128", 1_432.0, 11_007_600_979.5),
    sum("129 plus", 147.0, 1_003_481_514.5),
];

/// Jobs by local hour of submission: `hour_of_day_patterns.csv`.
pub const HOURS: [f64; 24] = [
    22_451.0, 15_929.0, 14_089.0, 13_387.0, 12_921.0, 14_128.0, 14_232.0, 15_038.0, 15_945.0, 16_972.0, 25_057.0,
    25_735.0, 19_770.0, 19_276.0, 25_304.0, 25_039.0, 27_015.0, 25_376.0, 20_016.0, 21_189.0, 21_885.0, 19_162.0,
    18_813.0, 18_138.0,
];

/// GPU-seconds by local hour of submission: `hour_of_day_patterns.csv`.
pub const GPU_SECONDS_BY_HOUR: [f64; 24] = [
    26_340_504_883.71,
    3_759_686_825.9,
    2_551_805_293.5,
    2_157_562_728.3,
    1_850_031_875.5,
    2_148_851_534.4,
    2_602_743_845.5,
    2_118_133_761.3,
    2_207_711_373.3,
    3_259_701_013.1,
    9_346_196_125.2,
    11_027_173_855.7,
    6_266_258_840.4,
    3_913_773_797.3,
    8_619_720_545.6,
    9_461_584_371.7,
    9_635_504_212.9,
    7_445_681_758.7,
    4_992_890_648.4,
    5_324_728_843.05,
    5_390_992_628.8,
    4_857_302_446.6,
    3_443_216_389.3,
    3_592_351_495.9,
];

/// Shares by local hour, without what was running when the trace began, all of which stands in hour 0: the mean of its
/// neighbours takes the place of that hour. Of [`HOURS`] that leaves out some 5,400 jobs.
#[must_use]
pub fn by_hour(hours: [f64; 24]) -> [f64; 24] {
    let mut arrivals = hours;
    arrivals[0] = f64::midpoint(hours[23], hours[1]);
    let sum: f64 = arrivals.iter().sum();
    arrivals.map(|hour| hour / sum)
}

/// Median jobs of a Monday, Tuesday, … in `daily_summary.csv` (days 1 to 183; day 0 is Friday, 2024-03-01).
pub const JOBS_BY_WEEKDAY: [f64; 7] = [2_467.0, 2_582.0, 2_649.0, 2_095.5, 2_095.0, 1_710.0, 1_771.0];

/// Coefficient of variation of jobs a day over any 35 of days 1 to 183 of `daily_summary.csv`: the least and the most.
pub const DAILY_VARIATION: (f64, f64) = (0.170, 0.966);
/// Median jobs of a Saturday or Sunday over the median of the other days, over any 35 of the same days: the least and the
/// most.
pub const WEEKEND: (f64, f64) = (0.567, 1.115);

/// `inter_arrival_quantiles.csv`: the share of gaps between submissions that are shorter, and the seconds.
pub const GAP_QUANTILES: [(f64, f64); 4] = [(0.5, 16.0), (0.9, 86.0), (0.95, 126.0), (0.99, 252.0)];

/// Nodes of one shape.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Index in [`MODELS`].
    pub model: usize,
    /// GPUs of one node.
    pub gpus: u32,
    /// vCPUs of one node.
    pub vcpus: u32,
    /// Number of nodes.
    pub nodes: u32,
}

const fn shape(model: usize, gpus: u32, vcpus: u32, nodes: u32) -> Shape {
    Shape { model, gpus, vcpus, nodes }
}

/// `node_info_df.csv`, counted by its last three columns.
pub const FLEET: [Shape; 10] = [
    shape(0, 1, 126, 2),
    shape(0, 1, 128, 2_492),
    shape(1, 8, 128, 432),
    shape(2, 8, 192, 219),
    shape(3, 1, 128, 1),
    shape(3, 1, 192, 901),
    shape(3, 4, 192, 10),
    shape(3, 8, 192, 77),
    shape(4, 8, 192, 122),
    shape(5, 8, 128, 22),
];

/// The cluster of the paper's simulations: 287 nodes of 8 A100 (§4.1); vCPUs as the A100 nodes of `node_info_df.csv`.
pub const FLEET_A100: [Shape; 1] = [shape(A100, 8, 128, 287)];

/// GPUs asked for by all jobs alive in an hour over the fleet's GPUs, mean and highest of 163 days:
/// `hourly_concurrency_by_model.csv` by [`MODELS`].
pub const LOAD: [[f64; 2]; 6] = [[1.39, 1.94], [0.77, 1.46], [0.71, 3.53], [0.74, 1.28], [0.76, 2.38], [0.73, 2.01]];

/// One organization: a row of `org_by_gpu_seconds.csv` with its row of `org_model_mix_share.csv`.
#[derive(Debug, Clone, Copy)]
pub struct Tenant {
    /// Number of the organization.
    pub id: u32,
    /// Jobs.
    pub jobs: f64,
    /// GPU-seconds of the jobs.
    pub gpu_seconds: f64,
    /// GPUs of the jobs.
    pub gpus: f64,
    /// Median runtime in seconds.
    pub median_duration_s: f64,
    /// Shares of its GPU-seconds by [`MODELS`].
    pub mix: [f64; 6],
}

/// The 84 organizations, most GPU-seconds first.
#[must_use]
pub fn tenants() -> Vec<Tenant> {
    let row = |cells: Vec<f64>| Tenant {
        id: cells[0] as u32,
        jobs: cells[1],
        gpu_seconds: cells[2],
        gpus: cells[3],
        median_duration_s: cells[4],
        mix: [cells[5], cells[6], cells[7], cells[8], cells[9], cells[10]],
    };
    numbers(include_str!("organizations.csv")).into_iter().map(row).collect()
}

/// `worker_count_distribution.csv`: workers and jobs.
#[must_use]
pub fn workers() -> Vec<(u32, f64)> {
    numbers(include_str!("workers.csv")).into_iter().map(|cells| (cells[0] as u32, cells[1])).collect()
}

fn numbers(table: &str) -> Vec<Vec<f64>> {
    let number = |cell: &str| cell.parse().expect("the tables of this crate hold numbers");
    table.lines().skip(1).map(|line| line.split(',').map(number).collect()).collect()
}

/// The paper's table 3 and its table 5 (a): one class of the tasks of April to June 2024 on the A100 cluster.
#[derive(Debug, Clone, Copy)]
pub struct Table3 {
    /// Name of the category.
    pub name: &'static str,
    /// Jobs.
    pub jobs: f64,
    /// Percent of tasks whose pods ask for less than 1, 1, 2, 4, 8 GPUs.
    pub by_request: [f64; 5],
    /// Percent of gangs.
    pub gang: f64,
    /// Table 5 (a), row GFS: completion less queueing time, that is, how long a task runs.
    pub mean_duration_s: f64,
}

/// Both classes of the paper's table 3.
pub const TABLE_3: [Table3; 2] = [
    Table3 {
        name: "HP",
        jobs: 138_403.0,
        by_request: [0.11, 55.11, 13.37, 7.53, 23.69],
        gang: 8.66,
        mean_duration_s: 17_777.1 - 28.4,
    },
    Table3 {
        name: "Spot",
        jobs: 26_635.0,
        by_request: [0.82, 67.35, 5.67, 12.00, 14.04],
        gang: 27.26,
        mean_duration_s: 10_438.7 - 323.0,
    },
];
/// April to June.
pub const TABLE_3_DAYS: f64 = 91.0;
/// GPUs per pod, as classes.
pub const REQUESTS: [&str; 5] = ["<1", "1", "2", "4", "8"];
