//! ElasticFlow without deadlines, as Cornucopia's comparison runs it (§5.1).
//!
//! The least share with which a job meets a deadline that never comes is its minimum, so everybody is admitted, and in the
//! order of arrival. What is left goes one by one where it gains most. Left out: admission by deadline, and allotments in
//! powers of two for the sake of placement.

use super::allot::{Allotments, Change, Standing};
use super::job::{ElasticJob, JobNumber};
use super::{Left, Scheduler};

/// A minimum may take what others hold above theirs.
const STANDING: Standing = Standing { min: 0, request: 1, beyond: Some(1), in_turn: false };

#[derive(Debug, Clone)]
pub struct Flow {
    allotments: Allotments,
}

impl Flow {
    #[must_use]
    pub fn new(gpus: u32) -> Self {
        Self { allotments: Allotments::new(gpus) }
    }
}

impl Scheduler for Flow {
    fn arrive(&mut self, job: ElasticJob, _: i64, _: i64) {
        self.allotments.add(job, STANDING);
    }

    fn leave(&mut self, number: JobNumber, _: i64) {
        self.allotments.remove(number);
    }

    fn next_ms(&self) -> Option<i64> {
        None
    }

    fn replan(&mut self, _: i64, _: &Left<'_>) -> Vec<Change> {
        self.allotments.settle()
    }
}
