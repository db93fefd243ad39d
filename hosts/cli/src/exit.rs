//! How the program ends, as other programs see it.

use std::{error::Error, fmt, process::ExitCode};

mod failure;

pub use failure::{Failure, report, told};

/// What a command came to; the numbers are a promise to scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done.
    Done,
    /// The task or the command failed.
    Failed,
    /// The command line, the environment or a file of the user's is wrong.
    Usage,
    /// The agent could not be reached.
    Unreachable,
    /// The agent refused the key.
    KeyRefused,
    /// The outcome did not come in time.
    TimedOut,
    /// The agent asks something.
    NeedsInput,
}

/// Something that the user gave us is wrong, and only the user can mend it. The text says how, causes and all.
#[derive(Debug)]
pub struct UsageError(String);

/// Marks an error as one of the user's input.
pub(crate) trait OrUsage<T> {
    /// The same error, as a [`UsageError`].
    fn or_usage(self) -> anyhow::Result<T>;
}

impl Exit {
    /// The number.
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Unreachable => 3,
            Self::KeyRefused => 4,
            Self::TimedOut => 5,
            Self::NeedsInput => 6,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

impl UsageError {
    /// What is wrong, and how it can be mended.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub(crate) fn of(error: impl Into<anyhow::Error>) -> Self {
        Self(told(&error.into()))
    }
}

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for UsageError {}

impl<T, E: Into<anyhow::Error>> OrUsage<T> for Result<T, E> {
    fn or_usage(self) -> anyhow::Result<T> {
        self.map_err(|error| UsageError::of(error).into())
    }
}
