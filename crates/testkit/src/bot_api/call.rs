//! The journal's lines.

use serde_json::Value;

/// One request of a bot.
#[derive(Debug, Clone, PartialEq)]
pub struct BotCall {
    /// The method as the bot spelt it.
    pub method: String,
    /// Its parameters, uploaded files left out.
    pub params: Value,
    /// What became of it.
    pub outcome: BotOutcome,
}

/// What became of a request.
#[derive(Debug, Clone, PartialEq)]
pub enum BotOutcome {
    /// It is under way: a long poll, or a hung call.
    Open,
    /// It was done and answered with this result.
    Done(Value),
    /// It was refused.
    Refused {
        /// The error code.
        code: u16,
        /// The description.
        description: String,
    },
    /// It was done, and the connection was cut before the answer.
    DoneAndCut,
    /// The connection was cut before anything was done.
    Cut,
    /// The bot went away before there was an answer.
    Abandoned,
}

impl BotCall {
    /// A parameter as text, also when it is a number.
    pub fn param(&self, name: &str) -> Option<String> {
        match self.params.get(name)? {
            Value::String(text) => Some(text.clone()),
            Value::Null => None,
            other => Some(other.to_string()),
        }
    }

    /// Whether the method is `name`, in any case.
    pub fn is(&self, name: &str) -> bool {
        self.method.eq_ignore_ascii_case(name)
    }

    /// Whether it was done and answered.
    pub fn succeeded(&self) -> bool {
        matches!(self.outcome, BotOutcome::Done(_))
    }
}
