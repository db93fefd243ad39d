//! Errors of operations, the same for every binding.

use std::time::Duration;

use volcanic_a2a_types::{A2aErrorKind, TaskState};

use crate::store::TaskStoreError;

/// Why an operation was not carried out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OperationError {
    /// There is no such task for this caller.
    #[error("task not found")]
    TaskNotFound,
    /// There is no such push configuration on the task.
    #[error("push configuration not found")]
    PushConfigNotFound,
    /// The task has ended.
    #[error("the task is {state} and cannot be canceled")]
    TaskNotCancelable {
        /// How it ended.
        state: TaskState,
    },
    /// This server sends no pushes.
    #[error("push notifications are not supported")]
    PushNotSupported,
    /// The operation is not possible now, or not here.
    #[error("{reason}")]
    Unsupported {
        /// What is in the way, for the caller to read.
        reason: String,
    },
    /// A parameter is wrong.
    #[error("invalid parameters: {problem}")]
    InvalidParams {
        /// The path of the member, in its JSON name; empty if it is not one member.
        field: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The request is for a protocol version that is not spoken here.
    #[error("A2A version {asked} is not supported, use 1.0")]
    VersionNotSupported {
        /// The version asked for.
        asked: String,
    },
    /// Too much is going on.
    #[error("the server is busy")]
    Busy {
        /// When to try again.
        retry_after: Duration,
    },
    /// The server is going away before the task exists.
    #[error("the server is shutting down")]
    ShuttingDown,
    /// The task could not be kept.
    #[error("internal error")]
    Store(#[from] TaskStoreError),
    /// Something that must not happen did.
    #[error("internal error")]
    Internal,
}

impl OperationError {
    pub(crate) fn unsupported(reason: impl Into<String>) -> Self {
        Self::Unsupported { reason: reason.into() }
    }

    pub(crate) fn invalid(field: &str, problem: impl Into<String>) -> Self {
        Self::InvalidParams { field: field.to_owned(), problem: problem.into() }
    }

    /// The protocol's kind of the error, from which a binding takes code, status and reason.
    pub fn kind(&self) -> A2aErrorKind {
        match self {
            Self::TaskNotFound | Self::PushConfigNotFound => A2aErrorKind::TaskNotFound,
            Self::TaskNotCancelable { .. } => A2aErrorKind::TaskNotCancelable,
            Self::PushNotSupported => A2aErrorKind::PushNotificationNotSupported,
            Self::Unsupported { .. } => A2aErrorKind::UnsupportedOperation,
            Self::InvalidParams { .. } => A2aErrorKind::InvalidParams,
            Self::VersionNotSupported { .. } => A2aErrorKind::VersionNotSupported,
            Self::Busy { .. } | Self::ShuttingDown | Self::Store(_) | Self::Internal => {
                A2aErrorKind::Internal
            }
        }
    }

    /// When to try again, if that helps.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Busy { retry_after } => Some(*retry_after),
            Self::ShuttingDown => Some(Duration::from_secs(5)),
            Self::TaskNotFound
            | Self::PushConfigNotFound
            | Self::TaskNotCancelable { .. }
            | Self::PushNotSupported
            | Self::Unsupported { .. }
            | Self::InvalidParams { .. }
            | Self::VersionNotSupported { .. }
            | Self::Store(_)
            | Self::Internal => None,
        }
    }
}
