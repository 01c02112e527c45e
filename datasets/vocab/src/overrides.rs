//! Overrides: knowledge of people about the hours ahead, which no history has.

use crate::{MilliGpus, PoolId, UnixSeconds};

/// Effect of an override on the demand bound of its hours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OverrideKind {
    /// HP work will need so many GPUs beyond what is forecast: a launch.
    Reserve,
    /// HP work will need so many GPUs less than is forecast: a team on leave.
    Release,
}

impl OverrideKind {
    /// Both kinds.
    pub const ALL: [Self; 2] = [Self::Reserve, Self::Release];

    /// As it is written in requests and rows.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Reserve => "reserve",
            Self::Release => "release",
        }
    }

    /// Reads the text of `as_str`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

/// The number of an override.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OverrideId(pub u64);

/// From `from` on and before `to`, `gpus` more or fewer are kept for the HP work of a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Override {
    /// Pool of the override.
    pub pool: PoolId,
    /// Effect on the demand bound.
    pub kind: OverrideKind,
    /// GPUs that are reserved or released.
    pub gpus: MilliGpus,
    /// Begin of the override.
    pub from: UnixSeconds,
    /// After `from`.
    pub to: UnixSeconds,
}
