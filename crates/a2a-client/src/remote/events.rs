//! What an agent reports while it is followed, checked against what was asked.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll, ready},
};

use futures::{Stream, StreamExt as _, stream::BoxStream};
use volcanic_a2a_types::{ContextId, Message, SendMessageResponse, StreamResponse, Task, TaskId};

use super::stream::Events;
use crate::ClientError;

/// How much of an event is kept for a hint, in bytes. A status with a question is far smaller.
const MAX_HINT: usize = 64 << 10;

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
        self.ids(Some(&task.id), task.context_id.as_ref())
    }

    fn ids(
        &self,
        task_id: Option<&TaskId>,
        context_id: Option<&ContextId>,
    ) -> Result<(), &'static str> {
        if differ(self.task_id.as_ref(), task_id) {
            return Err(OTHER_TASK);
        }
        if differ(self.context_id.as_ref(), context_id) {
            return Err(OTHER_CONTEXT);
        }
        Ok(())
    }

    /// Checks what answers a message, or says what is wrong with it.
    pub(super) fn answer(&self, answer: &SendMessageResponse) -> Result<(), &'static str> {
        match answer {
            SendMessageResponse::Task(task) => self.task(task),
            SendMessageResponse::Message(message) => self.message(message),
            // Nothing else names anything.
            _ => Ok(()),
        }
    }

    /// Checks a message, or says what is wrong with it. It need not name anything.
    fn message(&self, message: &Message) -> Result<(), &'static str> {
        self.ids(message.task_id.as_ref(), message.context_id.as_ref())
    }

    /// Checks an event, or says what is wrong with it. The context of an update is not checked: known servers make up
    /// another one.
    fn event(&mut self, event: &StreamResponse) -> Result<(), &'static str> {
        match event {
            StreamResponse::Task(task) => self.task(task)?,
            StreamResponse::Message(message) => self.message(message)?,
            _ => {}
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

/// Whether both are named, and are not the same.
fn differ<T: PartialEq>(asked: Option<&T>, found: Option<&T>) -> bool {
    asked.zip(found).is_some_and(|(asked, found)| asked != found)
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

/// What a stream says about a task, for who reads the task anew when there is news of it.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "one at a time, and looked at at once")]
pub enum TaskHint {
    /// An event.
    Event(StreamResponse),
    /// An event that is larger than is kept. It may say anything.
    Large,
}

/// News of a task while it is followed. After an error there is nothing more.
pub struct HintStream {
    agent: String,
    expected: Expected,
    /// Where the task stood at the beginning, if nobody has heard it yet.
    snapshot: Option<Box<Task>>,
    /// `None` after an error, or where nothing can come any more.
    events: Option<Box<Events>>,
}

impl HintStream {
    pub(super) fn new(
        agent: &str,
        expected: Expected,
        snapshot: Option<Task>,
        events: Option<Events>,
    ) -> Self {
        let events = events.map(|events| Box::new(events.keeping_at_most(MAX_HINT)));
        Self { agent: agent.to_owned(), expected, snapshot: snapshot.map(Box::new), events }
    }
}

impl Stream for HintStream {
    type Item = Result<TaskHint, ClientError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Self { agent, expected, snapshot, events } = &mut *self;
        if let Some(task) = snapshot.take() {
            return Poll::Ready(Some(Ok(TaskHint::Event((*task).into()))));
        }
        let Some(open) = events else { return Poll::Ready(None) };
        let hint = match ready!(open.poll_hint(cx)) {
            Some(Ok(None)) => return Poll::Ready(Some(Ok(TaskHint::Large))),
            Some(Ok(Some(event))) => match expected.event(&event) {
                Ok(()) => return Poll::Ready(Some(Ok(TaskHint::Event(event)))),
                Err(reason) => {
                    let (agent, reason) = (agent.clone(), reason.to_owned());
                    Some(Err(ClientError::Unexpected { agent, reason }))
                }
            },
            Some(Err(error)) => Some(Err(error)),
            None => None,
        };
        *events = None;
        Poll::Ready(hint)
    }
}

impl fmt::Debug for HintStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HintStream").finish_non_exhaustive()
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

    #[test]
    fn reply_that_names_something_else_is_not_ours() {
        let reply = || Message::agent("r", vec![Part::text("x")]);
        let asked = Message::user("m", vec![Part::text("x")]).with_task("t").with_context("c");
        for (reply, found) in [
            (reply(), Ok(())),
            (reply().with_task("t").with_context("c"), Ok(())),
            (reply().with_task("u").with_context("c"), Err(OTHER_TASK)),
            (reply().with_task("t").with_context("d"), Err(OTHER_CONTEXT)),
            (reply().with_context("d"), Err(OTHER_CONTEXT)),
        ] {
            let mut expected = Expected::of_message(&asked);
            assert_eq!(expected.answer(&reply.clone().into()), found, "{reply:?}");
            assert_eq!(expected.event(&reply.clone().into()), found, "{reply:?}");
        }
    }
}
