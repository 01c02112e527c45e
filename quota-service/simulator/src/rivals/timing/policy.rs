//! The policies of timing by their names.

/// How one deferral differs from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LazerRules {
    /// Whether GPUs that fall idle go to deferred newcomers, too, and at any event. As printed only jobs of the waiting
    /// queue get them, and only at a completion, so that a newcomer preempts whom the completion handler has just loaded.
    pub deferred_take_idle: bool,
    /// Whether a load that would be cut off is waited for, as long as no deferral exceeds h: what is known need not be
    /// predicted.
    pub waits_for_loads: bool,
    /// The load that F counts.
    pub futile: Futile,
    /// Whether the model learns on once it is exploited.
    pub learns_on: bool,
}

/// Which load counts as futile (Lazer, Eq. 2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Futile {
    /// That of a newcomer while which a shorter job arrives, as printed: right where the two compete for the same GPUs.
    NextShorter,
    /// That of a newcomer whom a later one would choose, and that of whom the newcomer would pause.
    WouldBePaused,
}

/// The order of jobs, and when it is decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimingPolicy {
    /// Shortest job first: nobody is preempted.
    Sjf,
    /// Shortest remaining time first, at every arrival and completion, or at intervals.
    Srtf { interval_ms: Option<i64> },
    /// Least attained GPU-time in queues (2D-LAS).
    Tiresias,
    /// Shortest remaining time first, deferred.
    Lazer(LazerRules),
}

impl TimingPolicy {
    /// With what stands in the way of its aim put right ([`LazerRules`]).
    pub const LAZER: Self = Self::Lazer(LazerRules {
        deferred_take_idle: true,
        waits_for_loads: true,
        futile: Futile::WouldBePaused,
        learns_on: true,
    });
    /// As printed, but that idle GPUs count.
    pub const LAZER_PAPER: Self = Self::Lazer(LazerRules {
        deferred_take_idle: false,
        waits_for_loads: false,
        futile: Futile::NextShorter,
        learns_on: false,
    });

    /// All names with their policies. Pollux and Sia plan each minute, Muri and Gavel every 360 s, Optimus every 600 s
    /// (Lazer §3.1).
    pub const ALL: [(&'static str, Self); 8] = [
        ("lazer", Self::LAZER),
        ("lazer-paper", Self::LAZER_PAPER),
        ("srtf", Self::Srtf { interval_ms: None }),
        ("sjf", Self::Sjf),
        ("srtf-60", Self::Srtf { interval_ms: Some(60_000) }),
        ("srtf-360", Self::Srtf { interval_ms: Some(360_000) }),
        ("srtf-600", Self::Srtf { interval_ms: Some(600_000) }),
        ("tiresias", Self::Tiresias),
    ];

    /// The policy of that name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, policy)| *policy)
    }
}
