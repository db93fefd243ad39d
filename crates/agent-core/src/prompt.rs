//! Prompts on their way into a conversation: who is meant, under which key, from where.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Names one conversation: a Telegram chat id, or the terminal's own.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TargetId(String);

impl TargetId {
    /// Wraps a name.
    pub fn new(name: impl Into<String>) -> Self {
        Self(name.into())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TargetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The key under which a prompt enters a conversation at most once, for ever.
///
/// Typed lines have `cli:<uuid>`, Telegram messages `tg:<chat>:<message>`, deliveries `a2a:<watch>:<told state>`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PromptKey(String);

impl PromptKey {
    /// Wraps a key.
    pub fn new(key: impl Into<String>) -> Self {
        Self(key.into())
    }

    /// The key.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PromptKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Who wrote a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The owner.
    Owner,
    /// A remote agent's result or question, framed as data.
    Delivery,
}

/// How many assistants stand between the owner and this prompt; 0 for the owner's own words.
pub type Hops = u32;

/// The host's handle of the message that started something, so that an answer can reply to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SourceRef(String);

impl SourceRef {
    /// Wraps a handle; its meaning is the host's own.
    pub fn new(handle: impl Into<String>) -> Self {
        Self(handle.into())
    }

    /// The handle.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A prompt to be accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPrompt {
    /// The conversation it is for.
    pub target: TargetId,
    /// Its key: a second prompt under the same key and target changes nothing.
    pub key: PromptKey,
    /// Who wrote it.
    pub origin: Origin,
    /// Assistants between it and the owner.
    pub hops: Hops,
    /// The message it belongs to.
    pub source: Option<SourceRef>,
    /// The text, without the timestamp header.
    pub text: String,
}

/// Names an accepted prompt within its store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct InboundId(pub i64);

/// An accepted prompt that waits for its run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// Its place in the order of acceptance.
    pub id: InboundId,
    /// The prompt as it was accepted.
    pub prompt: NewPrompt,
    /// When it was accepted.
    pub accepted_at: jiff::Timestamp,
}
