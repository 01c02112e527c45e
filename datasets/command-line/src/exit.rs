//! Exit codes.

use crate::print_notice;
use std::process::ExitCode;

/// How a program ends (DESIGN §5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Failure = 1,
    Usage = 2,
    DataInvalid = 3,
    ConfigInvalid = 4,
    /// Trying again may help.
    Unavailable = 5,
    /// Reserved.
    Stale = 6,
    /// An accuracy gate failed.
    Gate = 7,
}

impl Exit {
    /// Those that a program of today ends with.
    pub const USED: [Self; 6] =
        [Self::Failure, Self::Usage, Self::DataInvalid, Self::ConfigInvalid, Self::Unavailable, Self::Gate];

    /// For the help.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Failure => "failed",
            Self::Usage => "wrong usage",
            Self::DataInvalid => "bad data",
            Self::ConfigInvalid => "bad settings",
            Self::Unavailable => "unavailable: try again",
            Self::Stale => "stale",
            Self::Gate => "a gate was missed",
        }
    }
}

/// A program's last words.
#[derive(Debug)]
pub struct Failure {
    /// Exit code.
    pub exit: Exit,
    /// Text on stderr.
    pub message: String,
}

impl Failure {
    /// A failure with the text of `message`.
    pub fn new(exit: Exit, message: impl std::fmt::Display) -> Self {
        Self { exit, message: message.to_string() }
    }
}

/// Prints a failure to stderr and gives the exit code.
#[must_use]
pub fn finish(outcome: Result<(), Failure>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            print_notice(format_args!("error: {}", failure.message));
            ExitCode::from(failure.exit as u8)
        }
    }
}
