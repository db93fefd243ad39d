//! What a conversation is made of: blocks and messages, in a vendor-neutral shape that is safe to keep on disk.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One block of an assistant's reply, in the order the model gave them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block {
    /// Text for the reader.
    Text {
        /// The text, UTF-8, never trimmed.
        text: String,
    },
    /// The model's own reasoning; never shown as an answer.
    Thinking {
        /// The readable part, possibly empty when the vendor seals it.
        text: String,
        /// What the vendor wants back on the next request.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        replay: Option<Replay>,
    },
    /// A call of a tool.
    ToolCall(ToolCall),
}

/// A call of a tool as the model wrote it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The model's id of the call; a result names it again.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments, or the raw text when they were no JSON object.
    pub arguments: Result<Value, String>,
    /// What the vendor wants back on the next request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<Replay>,
}

/// An opaque value that a vendor wants to see again.
///
/// It is sent back only when `api`, `provider` and `model` all match the request, else it is dropped.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Replay {
    /// The dialect the value belongs to, e.g. `openai-chat`.
    pub api: String,
    /// The provider that made it.
    pub provider: String,
    /// The model that made it.
    pub model: String,
    /// The value.
    pub value: Value,
}

/// The result of one tool call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolReply {
    /// The id of the call it answers.
    pub call_id: String,
    /// The tool's name.
    pub name: String,
    /// The result as the model reads it.
    pub text: String,
    /// Whether the call failed.
    pub is_error: bool,
    /// Whether it settled a delivery: the text is an outcome that the person sees if the model cannot speak about it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub settles: bool,
}

/// One message of the model's input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// A prompt: typed by a person or delivered from outside.
    User {
        /// The whole text, timestamp header included.
        text: String,
    },
    /// A reply of the model.
    Assistant {
        /// Its blocks in order.
        blocks: Vec<Block>,
    },
    /// The result of one call of the reply before it.
    Tool(ToolReply),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_from_before_outcomes_were_marked_settles_nothing() {
        let kept = r#"{"call_id":"1","name":"a2a","text":"none","is_error":false}"#;
        let mut reply: ToolReply = serde_json::from_str(kept).unwrap();
        assert!(!reply.settles);
        assert_eq!(serde_json::to_string(&reply).unwrap(), kept);
        reply.settles = true;
        let again = serde_json::from_str(&serde_json::to_string(&reply).unwrap()).unwrap();
        assert_eq!(reply, again);
    }
}
