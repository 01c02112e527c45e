//! Usage rows out of Parquet files, on disk or on object storage.
//!
//! A file has the columns of `usage.csv`: `hour`, `cluster`, `gpu_model`, `organization` and `demand_gpus`. Files are read row group by
//! row group and page by page, so that memory holds no more than a few pages.

mod chunks;
mod columns;
mod environment;
mod error;
mod folder;
mod http;
mod location;
mod rows;

pub use error::SourceError;
pub use location::Files;
pub use rows::Wanted;
