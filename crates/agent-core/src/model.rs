//! The seam to language models.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::content::{Block, Message};

/// A language model.
#[async_trait]
pub trait Model: Send + Sync + fmt::Debug {
    /// The name hosts show and log, e.g. `openai:gpt-5` or `scripted`.
    fn id(&self) -> &str;

    /// What the model can take.
    fn capabilities(&self) -> Capabilities;

    /// Starts one reply.
    ///
    /// Never panics. Every stream ends with exactly one [`ModelEvent::Done`] or [`ModelEvent::Failed`], also after
    /// `cancel` (then with [`ModelErrorKind::Aborted`]). Retrying is the session's business, so that the user sees it.
    async fn stream(
        &self,
        request: ModelRequest,
        cancel: CancellationToken,
    ) -> BoxStream<'static, ModelEvent>;
}

/// What a model can take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// Whether tools may be offered.
    pub tools: bool,
    /// The context window in tokens.
    pub context_window: u64,
}

/// One request for a reply.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelRequest {
    /// The system prompt; empty for none.
    pub system: String,
    /// The conversation, oldest first. Every tool call has its result right after its reply.
    pub messages: Vec<Message>,
    /// The tools on offer.
    pub tools: Vec<ToolSpec>,
}

/// A tool as the model sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// The name, `[a-z0-9_]+`.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// JSON Schema of the arguments object.
    pub parameters: Value,
}

/// What a reply's stream yields.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelEvent {
    /// The provider accepted the request.
    Start {
        /// The provider's id of the reply.
        response_id: Option<String>,
    },
    /// More text of a block.
    TextDelta {
        /// Position of the block in the reply.
        block: u32,
        /// The new text.
        text: String,
    },
    /// More reasoning of a block.
    ThinkingDelta {
        /// Position of the block in the reply.
        block: u32,
        /// The new text.
        text: String,
    },
    /// A tool call begins.
    ToolCallStart {
        /// Position of the block in the reply.
        block: u32,
        /// The tool's name.
        name: String,
    },
    /// More of a tool call's arguments.
    ToolArgsDelta {
        /// Position of the block in the reply.
        block: u32,
        /// The new JSON text.
        json: String,
    },
    /// A block is complete.
    BlockEnd {
        /// Position of the block in the reply.
        block: u32,
        /// The parsed block.
        content: Block,
    },
    /// The reply is complete.
    Done {
        /// Why it stopped.
        stop: StopReason,
        /// What it cost.
        usage: Usage,
    },
    /// The reply failed; nothing follows.
    Failed {
        /// Why.
        error: ModelError,
        /// What had arrived.
        partial: PartialReply,
    },
}

/// The blocks of a reply that did not complete.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PartialReply {
    /// The blocks so far, the last one possibly cut.
    pub blocks: Vec<Block>,
    /// What it cost so far.
    pub usage: Usage,
}

/// Why a reply stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The model was done.
    Stop,
    /// The model wants its tool calls run.
    ToolUse,
    /// The output limit cut the reply.
    Length,
    /// The model or its filter declined.
    Refusal,
}

/// Tokens of one reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Input tokens, cached ones included.
    pub input: u64,
    /// Output tokens.
    pub output: u64,
}

/// Why a reply failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    /// The kind, decided by the adapter from status and error type.
    pub kind: ModelErrorKind,
    /// The HTTP status, when there was one.
    pub status: Option<u16>,
    /// How long the provider asks to wait.
    pub retry_after: Option<Duration>,
    /// A readable text without keys and without URLs.
    pub message: String,
}

/// The kinds of [`ModelError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelErrorKind {
    /// Too many requests; retry.
    RateLimited,
    /// The provider is overloaded; retry.
    Overloaded,
    /// The connection failed; retry.
    Transport,
    /// The stream ended before its last frame; retry.
    Truncated,
    /// The input is larger than the window.
    ContextOverflow,
    /// The key is missing or refused.
    Auth,
    /// The account has no quota left.
    Quota,
    /// The provider refused the content.
    Refused,
    /// The request is wrong.
    BadRequest,
    /// The caller cancelled.
    Aborted,
}

impl ModelErrorKind {
    /// Whether the same request may succeed a little later.
    pub fn is_transient(self) -> bool {
        match self {
            Self::RateLimited | Self::Overloaded | Self::Transport | Self::Truncated => true,
            Self::ContextOverflow
            | Self::Auth
            | Self::Quota
            | Self::Refused
            | Self::BadRequest
            | Self::Aborted => false,
        }
    }
}
