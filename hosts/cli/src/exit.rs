//! How the program ends, as other programs see it.

use std::process::ExitCode;

/// What a command came to; the numbers are a promise to scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done.
    Done,
    /// The task or the command failed.
    Failed,
    /// The command line or a file of the user's is wrong.
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
