//! What must survive a crash: sends and watches.

use std::fmt;

use async_trait::async_trait;
use jiff::Timestamp;
use volcanic_a2a_types::MessageId;

use crate::record::{SendRecord, WatchId, WatchRecord};

/// Keeps sends and watches. A watch with unfollowed continuations is returned with how the questions stood that those
/// answered ([`SendRecord::answered`]) among what was told. Every method that writes is one commit: all of it is on disk when it returns, or nothing.
#[async_trait]
pub trait WatchStore: Send + Sync + fmt::Debug {
    /// Keeps a send that is about to leave, or that did not come so far and has a reason; its state is
    /// [`crate::SendState::Sending`].
    ///
    /// Returns whether it was kept: a send with [`SendRecord::unattended`] is not when `unattended_limit` sends of its
    /// conversation have the same.
    ///
    /// # Errors
    /// [`WatchStoreError`] when the commit failed or the message id is known already; the send must then not leave.
    async fn begin_send(
        &self,
        send: &SendRecord,
        unattended_limit: u32,
    ) -> Result<bool, WatchStoreError>;

    /// Marks a send as [`crate::SendState::Known`] and, in the same commit, keeps the watch of the task it led to.
    ///
    /// When a live watch for the same (`target`, `agent`, `origin`, `task_id`) exists, the message is added to its
    /// [`WatchRecord::continuations`], its epoch stays, and it is returned; otherwise `watch` is inserted as given and
    /// returned. `None` in, `None` out: the remote answered without a task, or the watch knows the message already.
    ///
    /// A watch that is inserted knows what was told by the last one of the same task that is over
    /// ([`WatchRecord::know_what_was_told`]).
    ///
    /// A watch that is inserted takes over from those that follow its task without knowing where it runs (an empty
    /// [`WatchRecord::origin`]): in the same commit they are done, or once the text that they have claimed is delivered.
    ///
    /// # Errors
    /// [`WatchStoreError`] when the commit failed or the send is not known.
    async fn send_known(
        &self,
        message_id: &MessageId,
        watch: Option<&WatchRecord>,
    ) -> Result<Option<WatchRecord>, WatchStoreError>;

    /// Keeps why an open send did not leave. It stays open until [`WatchStore::end_send`], so that it is told, and counts
    /// no longer as unattended.
    ///
    /// # Errors
    /// [`WatchStoreError`] when the commit failed or there is no such open send.
    async fn note_unsent(
        &self,
        message_id: &MessageId,
        reason: &str,
    ) -> Result<(), WatchStoreError>;

    /// Keeps since when the end of an open send is looked for.
    ///
    /// # Errors
    /// [`WatchStoreError`] when the commit failed or there is no such open send.
    async fn note_sought(
        &self,
        message_id: &MessageId,
        since: Timestamp,
    ) -> Result<(), WatchStoreError>;

    /// Keeps how the question stands that an open send is about to answer.
    ///
    /// # Errors
    /// [`WatchStoreError`] when the commit failed or there is no such open send; the send must then not leave.
    async fn note_answered(
        &self,
        message_id: &MessageId,
        answered: &str,
    ) -> Result<(), WatchStoreError>;

    /// Marks a send as [`crate::SendState::Ended`] for `reason`.
    ///
    /// # Errors
    /// [`WatchStoreError`] when the commit failed or the send is not known.
    async fn end_send(&self, message_id: &MessageId, reason: &str) -> Result<(), WatchStoreError>;

    /// Keeps watches that no send of ours led to, in one commit, so that an import happens as a whole or not at all. A live
    /// watch for the same task is left as it is and returned instead.
    ///
    /// # Errors
    /// [`WatchStoreError`] when the commit failed; none is kept then.
    async fn add_watches(
        &self,
        watches: &[WatchRecord],
    ) -> Result<Vec<WatchRecord>, WatchStoreError>;

    /// Writes a watch if its kept epoch still is `expected_epoch`, with epoch `expected_epoch + 1` whatever
    /// `watch.epoch` says; [`WatchRecord::continuations`] stay as they are kept. Returns whether it was written.
    ///
    /// # Errors
    /// [`WatchStoreError`] when the commit failed; an unknown id is not an error but `false`.
    async fn update(
        &self,
        expected_epoch: u64,
        watch: &WatchRecord,
    ) -> Result<bool, WatchStoreError>;

    /// The watches that are not done, and those with unfollowed continuations, oldest first.
    ///
    /// # Errors
    /// [`WatchStoreError`] when the read failed.
    async fn live(&self) -> Result<Vec<WatchRecord>, WatchStoreError>;

    /// The sends that are still [`crate::SendState::Sending`], oldest first.
    ///
    /// # Errors
    /// [`WatchStoreError`] when the read failed.
    async fn open_sends(&self) -> Result<Vec<SendRecord>, WatchStoreError>;

    /// The watch with this id, done ones included.
    ///
    /// # Errors
    /// [`WatchStoreError`] when the read failed.
    async fn watch(&self, id: &WatchId) -> Result<Option<WatchRecord>, WatchStoreError>;

    /// Whether a send or watch, done ones included, was ever kept for `workspace`.
    ///
    /// # Errors
    /// [`WatchStoreError`] when the read failed.
    async fn knows_workspace(&self, workspace: &std::path::Path) -> Result<bool, WatchStoreError>;
}

/// An error of a [`WatchStore`].
#[derive(Debug, thiserror::Error)]
#[error("failed to {action}")]
pub struct WatchStoreError {
    /// What was being done.
    pub action: &'static str,
    /// Why it failed.
    #[source]
    pub source: Box<dyn std::error::Error + Send + Sync>,
}

impl WatchStoreError {
    /// An error while doing `action`.
    pub fn new(
        action: &'static str,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self { action, source: source.into() }
    }
}
