//! What an agent reports while it is followed, checked against what was asked.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use futures::{Stream, StreamExt as _, stream::BoxStream};
use volcanic_a2a_types::{ContextId, Message, StreamResponse, Task, TaskId};

use crate::ClientError;

const OTHER_TASK: &str = "it is about another task";
const OTHER_CONTEXT: &str = "it is about another context";

/// The task and context that answers must be about. Without a task the first one that is named counts from then on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Expected {
    task_id: Option<TaskId>,
    context_id: Option<ContextId>,
}

impl Expected {
    pub(super) fn of_task(task_id: &TaskId) -> Self {
        Self { task_id: Some(task_id.clone()), context_id: None }
    }

    pub(super) fn of_message(message: &Message) -> Self {
        Self { task_id: message.task_id.clone(), context_id: message.context_id.clone() }
    }

    /// Checks a task, or says what is wrong with it.
    pub(super) fn task(&self, task: &Task) -> Result<(), &'static str> {
        if self.task_id.as_ref().is_some_and(|asked| *asked != task.id) {
            return Err(OTHER_TASK);
        }
        match (&self.context_id, &task.context_id) {
            (Some(asked), Some(found)) if asked != found => Err(OTHER_CONTEXT),
            (Some(_), Some(_)) | (None, _) | (_, None) => Ok(()),
        }
    }

    /// Checks an event, or says what is wrong with it. The context of an update is not checked: known servers make up
    /// another one.
    fn event(&mut self, event: &StreamResponse) -> Result<(), &'static str> {
        if let StreamResponse::Task(task) = event {
            self.task(task)?;
        }
        match (&self.task_id, event.task_id()) {
            (Some(asked), Some(found)) if asked != found => Err(OTHER_TASK),
            (None, Some(found)) => {
                self.task_id = Some(found.clone());
                Ok(())
            }
            (Some(_), Some(_)) | (_, None) => Ok(()),
        }
    }
}

/// What an agent reports about a task while it is followed. After an error there is nothing more.
pub struct EventStream {
    agent: String,
    expected: Expected,
    /// `None` after an error.
    events: Option<BoxStream<'static, Result<StreamResponse, ClientError>>>,
}

impl EventStream {
    pub(super) fn new(
        agent: &str,
        expected: Expected,
        events: impl Stream<Item = Result<StreamResponse, ClientError>> + Send + 'static,
    ) -> Self {
        Self { agent: agent.to_owned(), expected, events: Some(events.boxed()) }
    }
}

impl Stream for EventStream {
    type Item = Result<StreamResponse, ClientError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Self { agent, expected, events } = &mut *self;
        let Some(open) = events else { return Poll::Ready(None) };
        // Looked at where it lies, as it is large.
        let polled = open.poll_next_unpin(cx);
        let fault = match &polled {
            Poll::Pending => return polled,
            Poll::Ready(Some(Ok(event))) => expected.event(event).err(),
            Poll::Ready(Some(Err(_)) | None) => {
                *events = None;
                return polled;
            }
        };
        let Some(reason) = fault else { return polled };
        *events = None;
        let (agent, reason) = (agent.clone(), reason.to_owned());
        Poll::Ready(Some(Err(ClientError::Unexpected { agent, reason })))
    }
}

impl fmt::Debug for EventStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventStream").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use volcanic_a2a_types::{Part, TaskState, TaskStatus, TaskStatusUpdateEvent};

    use super::*;

    #[test]
    fn first_task_named_counts_from_then_on() {
        let update = |task: &str| {
            TaskStatusUpdateEvent::new(task, "odd", TaskStatus::new(TaskState::Working)).into()
        };
        let message = Message::user("m", vec![Part::text("x")]).with_context("c");
        let mut expected = Expected::of_message(&message);
        assert_eq!(expected.event(&update("t1")), Ok(()));
        assert_eq!(expected.event(&update("t2")), Err(OTHER_TASK));
        let task = |id: &str, context: &str| {
            Task::new(id, context, TaskStatus::new(TaskState::Working)).into()
        };
        assert_eq!(expected.event(&task("t1", "c")), Ok(()));
        assert_eq!(expected.event(&task("t1", "d")), Err(OTHER_CONTEXT));
        let direct = Message::agent("r", vec![Part::text("x")]);
        assert_eq!(Expected::of_task(&"t".into()).event(&direct.into()), Ok(()));
    }
}
