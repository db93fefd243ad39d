//! What a scripted model says once.

use std::time::Duration;

use serde_json::Value;

use crate::{
    content::{Block, ToolCall},
    model::{ModelError, ModelErrorKind, StopReason},
};

/// One reply of a [`crate::ScriptedModel`].
#[derive(Debug, Clone, PartialEq)]
pub struct ScriptedReply {
    pub(super) blocks: Vec<Block>,
    pub(super) end: ReplyClose,
}

/// How a scripted reply ends.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ReplyClose {
    /// As its blocks suggest.
    Natural,
    Stop(StopReason),
    Fail(ModelError),
    /// Not before it is cancelled.
    Hang,
}

impl ScriptedReply {
    /// Says a text.
    pub fn say(text: impl Into<String>) -> Self {
        Self { blocks: Vec::new(), end: ReplyClose::Natural }.and_say(text)
    }

    /// Calls a tool.
    pub fn call(tool: impl Into<String>, arguments: Value) -> Self {
        Self { blocks: Vec::new(), end: ReplyClose::Natural }.and_call(tool, arguments)
    }

    /// Fails before it says anything.
    pub fn fail(kind: ModelErrorKind, message: impl Into<String>) -> Self {
        Self { blocks: Vec::new(), end: ReplyClose::Natural }.then_fail(kind, message)
    }

    /// Says nothing until it is cancelled.
    pub fn hang() -> Self {
        Self { blocks: Vec::new(), end: ReplyClose::Hang }
    }

    /// Goes on with a text.
    #[must_use]
    pub fn and_say(mut self, text: impl Into<String>) -> Self {
        self.blocks.push(Block::Text { text: text.into() });
        self
    }

    /// Goes on with a call of a tool. Its id is made up when it is sent.
    #[must_use]
    pub fn and_call(self, tool: impl Into<String>, arguments: Value) -> Self {
        let (id, name) = (String::new(), tool.into());
        self.and_block(Block::ToolCall(ToolCall {
            id,
            name,
            arguments: Ok(arguments),
            replay: None,
        }))
    }

    /// Goes on with any block, as it is; a call without an id gets one.
    #[must_use]
    pub fn and_block(mut self, block: Block) -> Self {
        self.blocks.push(block);
        self
    }

    /// Stops for this reason instead of the one its blocks suggest.
    #[must_use]
    pub fn stopping(mut self, stop: StopReason) -> Self {
        self.end = ReplyClose::Stop(stop);
        self
    }

    /// Fails after what it said.
    #[must_use]
    pub fn then_fail(mut self, kind: ModelErrorKind, message: impl Into<String>) -> Self {
        let (status, retry_after, message) = (None, None, message.into());
        self.end = ReplyClose::Fail(ModelError { kind, status, retry_after, message });
        self
    }

    /// Asks to be left alone for so long when it fails.
    #[must_use]
    pub fn retry_after(mut self, pause: Duration) -> Self {
        if let ReplyClose::Fail(error) = &mut self.end {
            error.retry_after = Some(pause);
        }
        self
    }

    /// After what it said, goes on forever until it is cancelled.
    #[must_use]
    pub fn then_hang(mut self) -> Self {
        self.end = ReplyClose::Hang;
        self
    }
}
