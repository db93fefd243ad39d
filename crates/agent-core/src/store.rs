//! What a session needs kept: prompts, entries and the answers on their way to the screen.

use std::fmt;

use async_trait::async_trait;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::content::{Block, ToolReply};
use crate::model::{StopReason, Usage};
use crate::prompt::{InboundId, NewPrompt, Origin, Prompt, PromptKey, SourceRef, TargetId};

/// Keeps conversations. Every method that writes is one commit: all of it is on disk when it returns, or nothing.
#[async_trait]
pub trait SessionStore: Send + Sync + fmt::Debug {
    /// Puts a prompt into its conversation's queue, once per key.
    ///
    /// # Errors
    /// [`StoreError`] when the commit failed; the prompt is then not accepted.
    async fn accept(&self, prompt: NewPrompt) -> Result<Accepted, StoreError>;

    /// Those of `keys` that are taken in a conversation, by a prompt or by an entry that settled a delivery.
    ///
    /// # Errors
    /// [`StoreError`] when the read failed.
    async fn taken(
        &self,
        target: &TargetId,
        keys: Vec<PromptKey>,
    ) -> Result<Vec<PromptKey>, StoreError>;

    /// The accepted prompts that no run has consumed, oldest first, at most 256.
    ///
    /// # Errors
    /// [`StoreError`] when the read failed.
    async fn waiting(&self, target: &TargetId) -> Result<Vec<Prompt>, StoreError>;

    /// Writes everything in `commit` at once.
    ///
    /// # Errors
    /// [`StoreError::Taken`] when an entry's delivery key is in the conversation already or a prompt was consumed before;
    /// [`StoreError::Failed`] when the commit failed. Nothing is written in either case.
    async fn commit(&self, commit: Commit) -> Result<Vec<Entry>, StoreError>;

    /// The entries since the last [`EntryBody::Reset`], oldest first.
    ///
    /// # Errors
    /// [`StoreError`] when the read failed.
    async fn entries(&self, target: &TargetId) -> Result<Vec<Entry>, StoreError>;

    /// Takes the oldest unsent outbox item and marks it [`OutboxState::Sending`].
    ///
    /// An item found in `Sending` from an earlier process comes back with [`OutboxItem::may_repeat`] set.
    ///
    /// # Errors
    /// [`StoreError`] when the commit failed.
    async fn next_outbox(&self, target: &TargetId) -> Result<Option<OutboxItem>, StoreError>;

    /// Marks an item as sent, with the host's id of what is now on the screen. One that is marked already stays as it is: a
    /// commit that failed may be on disk, and its caller tries again.
    ///
    /// # Errors
    /// [`StoreError`] when the commit failed.
    async fn outbox_sent(&self, id: OutboxId, message_id: Option<String>)
    -> Result<(), StoreError>;

    /// Puts an item back into the queue after a send that certainly did not happen.
    ///
    /// # Errors
    /// [`StoreError`] when the commit failed.
    async fn outbox_retry(&self, id: OutboxId) -> Result<(), StoreError>;

    /// Gives an item up, with the reason kept beside it.
    ///
    /// # Errors
    /// [`StoreError`] when the commit failed.
    async fn outbox_failed(&self, id: OutboxId, reason: String) -> Result<(), StoreError>;

    /// The targets that have waiting prompts, unsent outbox items or an unfinished run.
    ///
    /// # Errors
    /// [`StoreError`] when the read failed.
    async fn targets_with_work(&self) -> Result<Vec<TargetId>, StoreError>;
}

/// What became of an accepted prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accepted {
    /// It is in the queue now.
    New(InboundId),
    /// Its key is known in this conversation already, as a prompt or as a tool's result.
    AlreadyThere,
}

/// One step of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct Commit {
    /// The conversation.
    pub target: TargetId,
    /// The prompts that the first entry consumes.
    pub consume: Vec<InboundId>,
    /// The entries, in order.
    pub entries: Vec<NewEntry>,
    /// What goes to the screen because of them.
    pub outbox: Vec<NewOutbox>,
}

/// An entry to be written.
#[derive(Debug, Clone, PartialEq)]
pub struct NewEntry {
    /// What it says.
    pub body: EntryBody,
    /// The delivery it settles: the key is taken for ever, so no later prompt can carry the same outcome.
    pub delivery_key: Option<PromptKey>,
}

impl NewEntry {
    /// An entry that settles no delivery.
    pub fn plain(body: EntryBody) -> Self {
        Self { body, delivery_key: None }
    }
}

/// A written entry.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Its place in the conversation, from 1, without gaps.
    pub seq: u64,
    /// When it was written.
    pub at: Timestamp,
    /// What it says.
    pub body: EntryBody,
}

/// What an entry says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum EntryBody {
    /// A consumed prompt.
    User {
        /// The text as the model reads it, header included.
        text: String,
        /// Who wrote it.
        origin: Origin,
        /// The key it was accepted under.
        key: PromptKey,
        /// Assistants between it and the owner.
        hops: u32,
        /// The message it belongs to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        source: Option<SourceRef>,
    },
    /// A complete reply.
    Assistant {
        /// Its blocks.
        blocks: Vec<Block>,
        /// Why it stopped.
        stop: StopReason,
        /// The model that wrote it.
        model: String,
        /// What it cost.
        usage: Usage,
    },
    /// The result of a tool call.
    Tool(ToolReply),
    /// A reply that failed or was aborted; never part of the model's input.
    Failed {
        /// What had arrived.
        blocks: Vec<Block>,
        /// The readable reason.
        reason: String,
        /// Whether the owner stopped it.
        aborted: bool,
        /// Whether the run ended with it (else a retry follows).
        last: bool,
    },
    /// A run was taken up again after the process had ended in the middle of it.
    Resumed,
    /// The conversation starts anew here (`/new`).
    Reset,
}

impl EntryBody {
    /// Whether a run is over with this entry, so that a conversation whose last entry says `false` was interrupted.
    ///
    /// A complete reply ends its run unless it holds tool calls: those always get results, and another reply follows.
    pub fn ends_run(&self) -> bool {
        match self {
            Self::Assistant { blocks, .. } => {
                !blocks.iter().any(|block| matches!(block, Block::ToolCall(_)))
            }
            Self::Failed { last, .. } => *last,
            Self::Reset => true,
            Self::User { .. } | Self::Tool(_) | Self::Resumed => false,
        }
    }
}

/// Something for the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewOutbox {
    /// Its key: a second item under the same key and target changes nothing.
    pub key: String,
    /// What to show, in the host's own encoding.
    pub body: String,
    /// The message it answers.
    pub source: Option<SourceRef>,
}

/// Names an outbox item within its store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OutboxId(pub i64);

/// An outbox item that was taken for sending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboxItem {
    /// Its id.
    pub id: OutboxId,
    /// The conversation.
    pub target: TargetId,
    /// Its key.
    pub key: String,
    /// What to show.
    pub body: String,
    /// The message it answers.
    pub source: Option<SourceRef>,
    /// How often sending was begun before.
    pub attempts: u32,
    /// Whether it may be on the screen already: an earlier attempt has no known end.
    pub may_repeat: bool,
}

/// Where an outbox item stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutboxState {
    /// Waits.
    Queued,
    /// Was handed to the screen; the end is not known.
    Sending,
    /// Is on the screen.
    Sent,
    /// Was given up.
    Failed,
}

/// An error of a [`SessionStore`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A key or prompt of the commit was taken before.
    #[error("`{key}` is in conversation `{target}` already")]
    Taken {
        /// The conversation.
        target: TargetId,
        /// The key or prompt id.
        key: String,
    },
    /// The store could not do it.
    #[error("failed to {action}")]
    Failed {
        /// What was being done.
        action: &'static str,
        /// Why it failed.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}
