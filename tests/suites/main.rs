//! Suites that cross crates. Those that need a database run on both: `make test` brings a Postgres along.
#![allow(clippy::unwrap_used, reason = "in a test, what should have worked and did not is a failure of the test")]

mod browser;
mod calendar;
mod cases;
mod chart;
mod days_ahead;
mod demo;
mod deploy;
mod elastic;
mod fuzz;
mod generate;
mod inflate;
mod job_lists;
mod kubernetes;
mod main_job;
mod manners;
mod no_database;
mod object_storage;
mod of_models;
mod operator;
mod outside;
mod peers;
mod price;
mod prometheus;
mod public_data;
mod served;
mod service;
mod simulate;
mod slurm;
mod store;
mod tidy;
mod timing;
mod topology;
mod traces;
mod usage_file;
mod users;
