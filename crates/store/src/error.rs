//! Why a piece of database work failed, before a trait's own error is made of it.

use std::sync::Arc;

use volcanic_a2a_watch::WatchStoreError;
use volcanic_agent_core::{StoreError, TargetId};

/// An error of one piece of work on the database.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DbError {
    /// A statement failed.
    #[error("a statement failed")]
    Statement(#[from] rusqlite::Error),
    /// The transaction that held the work did not reach the disk; the work of others shared it.
    #[error("the commit failed")]
    Commit(#[source] Arc<rusqlite::Error>),
    /// A value could not be turned into text or back.
    #[error("a stored value has an unknown shape")]
    Shape(#[from] serde_json::Error),
    /// A key or a prompt is taken.
    #[error("`{key}` is taken")]
    Taken {
        /// The conversation.
        target: TargetId,
        /// The key or prompt id.
        key: String,
    },
    /// A number does not fit its column.
    #[error("a number does not fit its column")]
    Range(#[from] std::num::TryFromIntError),
    /// The outbox item is not in flight in this process.
    #[error("outbox item {id} was not taken for sending")]
    NotInFlight {
        /// The item.
        id: i64,
    },
    /// Prompts were to be consumed without an entry that does it.
    #[error("prompts are consumed by an entry, and there is none")]
    NoEntry,
    /// No send has this message id.
    #[error("no send has message id `{message_id}`")]
    UnknownSend {
        /// The id.
        message_id: String,
    },
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
    /// The work panicked and was undone.
    #[error("the work panicked")]
    Panicked,
    /// The work was dropped before its end was known: the runtime stopped.
    #[error("the work was dropped, its end is not known")]
    Dropped,
}

impl DbError {
    /// The session family's error for `action`.
    pub(crate) fn into_session(self, action: &'static str) -> StoreError {
        match self {
            Self::Taken { target, key } => StoreError::Taken { target, key },
            other => StoreError::Failed { action, source: Box::new(other) },
        }
    }

    /// The watch family's error for `action`.
    pub(crate) fn into_watch(self, action: &'static str) -> WatchStoreError {
        WatchStoreError::new(action, self)
    }
}
