//! Headroom on Slurm: records out of files, and what a real Slurm prints and obeys.

mod files;
