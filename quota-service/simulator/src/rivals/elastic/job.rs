//! A job whose GPUs may change while it runs.

use placement::elastic::{Profile, Scaling};
use std::sync::Arc;

/// A job by its place in the order of submission: where nothing else decides, the lower one comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct JobNumber(pub u32);

/// The user's description of a job (Cornucopia §3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Label {
    /// A person waits for it to begin.
    Interactive,
    /// It has to be done some day.
    Batch,
}

/// Why GPUs are not those of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum JobFault {
    #[error("{min} to {max} GPUs, and {request} asked for: write 1 ≤ minimum ≤ request ≤ maximum")]
    Order { min: u32, request: u32, max: u32 },
    #[error("the profile ends at {known} GPUs, the job asks for {request}: measure it up to the request at least")]
    Unmeasured { known: u32, request: u32 },
}

/// A job and how many GPUs it may hold; with none it is stripped and waits.
#[derive(Debug, Clone, PartialEq)]
pub struct ElasticJob {
    number: JobNumber,
    label: Label,
    min: u32,
    request: u32,
    max: u32,
    profile: Arc<Profile>,
    /// Whether a GPU has to be tried to be known (Cornucopia's Alg. 1).
    learns: bool,
    /// On the clock of the caller; none: it is done when it is done.
    deadline_ms: Option<i64>,
}

impl ElasticJob {
    /// # Errors
    /// The numbers contradict each other, or the profile ends below the request.
    pub fn new(
        number: JobNumber,
        label: Label,
        [min, request, max]: [u32; 3],
        profile: Arc<Profile>,
    ) -> Result<Self, JobFault> {
        if min < 1 || min > request || request > max {
            return Err(JobFault::Order { min, request, max });
        }
        let known = profile.gpus_most();
        if request > known {
            return Err(JobFault::Unmeasured { known, request });
        }
        Ok(Self { number, label, min, request, max: max.min(known), profile, learns: false, deadline_ms: None })
    }

    /// One that runs on any number of GPUs up to twice its request, as far as it is measured (Cornucopia §4.3).
    ///
    /// # Errors
    /// The profile ends below the request.
    pub fn elastic(number: JobNumber, label: Label, request: u32, profile: Arc<Profile>) -> Result<Self, JobFault> {
        Self::new(number, label, [1, request, request.saturating_mul(2)], profile)
    }

    /// One that runs on its request alone (model parallelism, or a user who wants the same bits again).
    ///
    /// # Errors
    /// The profile ends below the request.
    pub fn fixed(number: JobNumber, label: Label, request: u32, profile: Arc<Profile>) -> Result<Self, JobFault> {
        Self::new(number, label, [request; 3], profile)
    }

    /// The same, with a profile that holds only as far as the job has been seen to run.
    #[must_use]
    pub fn learning(self) -> Self {
        Self { learns: true, ..self }
    }

    /// The same, wanted until then.
    #[must_use]
    pub fn due(self, deadline_ms: i64) -> Self {
        Self { deadline_ms: Some(deadline_ms), ..self }
    }

    #[must_use]
    pub const fn number(&self) -> JobNumber {
        self.number
    }

    #[must_use]
    pub const fn label(&self) -> Label {
        self.label
    }

    /// Until when it is wanted.
    #[must_use]
    pub const fn deadline_ms(&self) -> Option<i64> {
        self.deadline_ms
    }

    /// The fewest GPUs on which it runs.
    #[must_use]
    pub const fn min(&self) -> u32 {
        self.min
    }

    /// The GPUs that its user asked for.
    #[must_use]
    pub const fn request(&self) -> u32 {
        self.request
    }

    /// The most GPUs that it can use.
    #[must_use]
    pub const fn max(&self) -> u32 {
        self.max
    }

    /// How many times as fast it is on so many GPUs as on those it asked for.
    #[must_use]
    pub fn speed(&self, gpus: u32) -> f64 {
        self.profile.speed(gpus) / self.profile.speed(self.request)
    }

    /// The believed gain of the GPU after `gpus`, where the job has held `measured` at most: one that is not measured counts
    /// as the last one that is.
    #[must_use]
    pub fn gain(&self, gpus: u32, measured: u32) -> Scaling {
        let seen = if self.learns { gpus.min(measured.saturating_sub(1)) } else { gpus };
        if self.min == self.max || gpus < self.min { Scaling::LINEAR } else { self.profile.gain(seen) }
    }

    /// GPUs that it takes next: its minimum at once, then one by one; none at its maximum.
    #[must_use]
    pub const fn step_up(&self, gpus: u32) -> u32 {
        if gpus == 0 {
            self.min
        } else if gpus < self.max {
            1
        } else {
            0
        }
    }

    /// GPUs that it gives next: one by one down to its minimum, then all; none without any.
    #[must_use]
    pub const fn step_down(&self, gpus: u32) -> u32 {
        if gpus > self.min { 1 } else { gpus }
    }
}
