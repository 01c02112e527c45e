//! Common parts of the suites: databases, programs, a service with a clock of its own, fixtures written as text, public data.

pub mod check;
mod database;
pub mod fixture;
mod parquet;
mod programs;
mod prometheus;
mod proxy;
mod public_data;
mod service;
mod slurm;
mod small_disk;
pub mod storage;

pub use self::parquet::parquet_of_csv;
pub use self::prometheus::{Prometheus, has_prometheus};
pub use database::{TestDatabase, database_on, fresh_database};
pub use programs::{
    Listening, Ran, exit_without_stderr, free_address, program, program_interrupted, program_names, program_path,
    program_to_closed_pipe, program_to_file, program_with, send_to,
};
pub use proxy::{Fault, Proxy};
pub use public_data::{public_data, workspace_root};
pub use service::{Answer, TestService, panel, promote, promote_bytes, promote_over, promoted};
pub use slurm::{Lent, Slurm, slurm};
pub use small_disk::SmallDisk;
pub use store::Backend;
