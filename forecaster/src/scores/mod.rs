//! How good forecasts were. Definitions are the project's (DESIGN §5); units are GPUs by default.

mod losses;
mod pool;
mod series;

pub use losses::{IssueLosses, StepLoss, losses};
pub(crate) use pool::largest_of_one_gpus;
pub use pool::{PoolPair, PoolScores, actual_peak_gpus, score_pool, share_interval};
pub use series::{Coverage, ScoreSums, Scored, Scores, collect, pinball, score};

/// Comparisons of GPUs allow for this much rounding.
pub(crate) const TOLERANCE_GPUS: f64 = 1e-6;
