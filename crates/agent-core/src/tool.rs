//! The seam to tools.

use std::fmt;

use async_trait::async_trait;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::model::ToolSpec;
use crate::prompt::{Hops, Origin, PromptKey, SourceRef, TargetId};

/// Something the model can call.
#[async_trait]
pub trait Tool: Send + Sync + fmt::Debug {
    /// What the model is told about it. The schema's `required` members and types are checked before a call.
    fn spec(&self) -> ToolSpec;

    /// Whether calls of one reply must run one after the other.
    fn is_sequential(&self) -> bool {
        false
    }

    /// Runs one call. Failures are results too: [`ToolOutput::error`].
    ///
    /// # Cancel safety
    /// The future is dropped when the run is aborted; `context.cancel` is cancelled first and the tool has a short grace.
    async fn call(&self, arguments: Value, context: ToolContext) -> ToolOutput;
}

/// What a call knows about the run it belongs to.
#[derive(Debug, Clone)]
pub struct ToolContext {
    /// The conversation.
    pub target: TargetId,
    /// The model's id of the call.
    pub call_id: String,
    /// Assistants between the run's prompt and the owner: the highest of what the run consumed.
    pub hops: Hops,
    /// Who started the run.
    pub origin: Origin,
    /// The message that started the run.
    pub source: Option<SourceRef>,
    /// The latest prompt of the owner in the conversation, the run's own included; a key that no prompt has as long as there
    /// is none since the conversation began. Another one than at an earlier call means that the owner wrote, or began anew.
    pub owner_word: PromptKey,
    /// Cancelled when the run is aborted.
    pub cancel: CancellationToken,
}

/// The result of a call.
pub struct ToolOutput {
    /// What the model reads.
    pub text: String,
    /// Whether the call failed.
    pub is_error: bool,
    /// The delivery this result settles; see [`crate::NewEntry::delivery_key`]. If the run then ends without an answer, the
    /// person is shown `text`, as with a delivered prompt.
    pub delivery_key: Option<PromptKey>,
    /// Called once the result is on disk. Not called when the key turned out to be taken, or on a crash:
    /// whoever passes it must be able to find that out later.
    pub on_committed: Option<Box<dyn FnOnce() + Send>>,
}

impl ToolOutput {
    /// A result.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_error: false, delivery_key: None, on_committed: None }
    }

    /// A failure the model can read.
    pub fn error(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_error: true, delivery_key: None, on_committed: None }
    }
}

impl fmt::Debug for ToolOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolOutput")
            .field("is_error", &self.is_error)
            .field("bytes", &self.text.len())
            .field("delivery_key", &self.delivery_key)
            .finish_non_exhaustive()
    }
}
