//! Answers on their way to the screen: how they are encoded as outbox rows, and who sends them.

mod body;
mod sender;

pub(crate) use body::source_of;
pub use body::{ChatAnswers, answer_rows};
pub use sender::{OutboxSender, SenderPauses};
