//! The agent core: sessions that turn prompts into answers.
//!
//! A session ([`spawn`]) takes prompts out of a durable queue, runs a [`Model`] and [`Tool`]s over them, and commits each step
//! before anybody hears of it. Disk, network and processes are reached only through the traits of this crate:
//! [`SessionStore`], [`Model`] and [`Tool`].

mod content;
mod header;
#[cfg(any(test, feature = "test-util"))]
mod memory;
mod model;
mod prompt;
mod scripted;
mod session;
mod store;
mod tool;

pub use content::{Block, Message, Replay, ToolCall, ToolReply};
#[cfg(any(test, feature = "test-util"))]
pub use memory::{MemoryOutbox, MemoryStore};
pub use model::{
    Capabilities, Model, ModelError, ModelErrorKind, ModelEvent, ModelRequest, PartialReply,
    StopReason, ToolSpec, Usage,
};
pub use prompt::{Hops, InboundId, NewPrompt, Origin, Prompt, PromptKey, SourceRef, TargetId};
pub use scripted::{ScriptedModel, ScriptedReply, ScriptedRules, ScriptedRulesError, ScriptedStep};
pub use session::{
    AbortEnd, Answer, AnswerFormat, AnswerKind, PlainAnswers, RetryConfig, RunStatus,
    SessionActivity, SessionConfig, SessionDeps, SessionError, SessionEvent, SessionHandle,
    SessionLimits, SessionStatus, spawn,
};
pub use store::{
    Accepted, Commit, Entry, EntryBody, NewEntry, NewOutbox, OutboxId, OutboxItem, OutboxState,
    SessionStore, StoreError,
};
pub use tool::{Tool, ToolContext, ToolOutput};
