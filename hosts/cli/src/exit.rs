//! How the program ends, as other programs see it.

use std::{error::Error, fmt, process::ExitCode};

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

    /// How the program ends with an error.
    pub fn of(error: &anyhow::Error) -> Self {
        if error.is::<UsageError>() { Self::Usage } else { Self::Failed }
    }
}

/// An error and its causes in one line, each said once: some errors tell their cause themselves.
pub fn told(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1) {
        let cause = cause.to_string();
        if !text.contains(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
    text
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

impl UsageError {
    pub(crate) fn new(text: impl Into<String>) -> Self {
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

#[cfg(test)]
mod tests {
    use anyhow::Context as _;

    use super::*;

    #[test]
    fn a_fault_of_the_users_is_told_apart_whatever_stands_around_it() {
        let wrong = Err::<(), _>(std::io::Error::other("no such thing")).context("the rules");
        let wrong = wrong.or_usage().context("the chat cannot start").unwrap_err();
        assert_eq!(Exit::of(&wrong), Exit::Usage);
        assert_eq!(told(&wrong), "the chat cannot start: the rules: no such thing");
        assert_eq!(Exit::of(&anyhow::anyhow!("the disk is full")), Exit::Failed);
    }
}
