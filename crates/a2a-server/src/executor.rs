//! The seam between the protocol and whatever does the work.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;
use volcanic_a2a_types::{ContextId, JsonObject, Message, Role, Task, TaskId};

use crate::caller::Caller;

mod sink;

pub use sink::{SinkError, TaskSink};

/// Does the work of an agent.
#[async_trait]
pub trait Executor: Send + Sync + fmt::Debug {
    /// Works on one message and says through `sink` what comes of it.
    ///
    /// The turn ends with the first of: a terminal state, a question, a reply. What is emitted after that is refused,
    /// and the caller may send the next message at once. Returning without any of them fails the task; so does a panic.
    /// After [`TaskSink::auth_required`] it may return or go on.
    ///
    /// `cancel` fires when the task was canceled or the server stops; return soon then, or the future is dropped.
    async fn execute(&self, turn: Turn, sink: TaskSink, cancel: CancellationToken);
}

/// One message to work on, and where it belongs.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Turn {
    /// Who sent it.
    pub caller: Caller,
    /// The task; it exists once something was emitted.
    pub task_id: TaskId,
    /// The context.
    pub context_id: ContextId,
    /// The message.
    pub message: Message,
    /// The task as it stands, with this message in its history; `None` on its first turn.
    pub task: Option<Arc<Task>>,
    /// How many agents the work has come through.
    pub hops: u32,
    /// What the caller can take; empty = anything.
    pub accepted_output_modes: Vec<String>,
    /// The metadata of the request.
    pub metadata: Option<JsonObject>,
}

impl Turn {
    /// The texts of the user's messages in this task, oldest first, this one last.
    pub fn user_texts(&self) -> Vec<String> {
        match &self.task {
            Some(task) => {
                let own = task.history.iter().filter(|m| m.role == Role::User);
                own.map(text_of).collect()
            }
            None => vec![text_of(&self.message)],
        }
    }
}

/// The text parts of a message, one below the other.
pub(crate) fn text_of(message: &Message) -> String {
    let texts: Vec<&str> = message.texts().collect();
    texts.join("\n")
}
