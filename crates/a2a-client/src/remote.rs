//! One remote agent: its card, how it is authenticated to, its calls and streams.

use std::{fmt, sync::Arc};

use futures::{Stream, StreamExt as _, stream::BoxStream};
use volcanic_a2a_types::{
    AgentCard, CancelTaskRequest, DeleteTaskPushNotificationConfigRequest,
    GetExtendedAgentCardRequest, GetTaskRequest, ListTasksRequest, ListTasksResponse,
    METHOD_CANCEL_TASK, METHOD_CREATE_PUSH_CONFIG, METHOD_DELETE_PUSH_CONFIG,
    METHOD_GET_EXTENDED_CARD, METHOD_GET_TASK, METHOD_LIST_TASKS, METHOD_SEND_MESSAGE,
    METHOD_SUBSCRIBE_TO_TASK, Message, PushConfigId, SendMessageRequest, SendMessageResponse,
    StreamResponse, SubscribeToTaskRequest, Task, TaskId, TaskPushNotificationConfig,
};
use volcanic_net::Transport;

use crate::{AgentEntry, ClientConfig, ClientError, KeyResolver};

pub(crate) mod auth;
mod card;
mod glimpse;
mod jsonrpc;
mod line;
mod scrub;
mod stream;

use jsonrpc::JsonRpc;
use line::Line;

/// A connection to one remote agent, with its card read. Clones share it.
#[derive(Clone)]
pub struct RemoteAgent {
    inner: Arc<Inner>,
}

struct Inner {
    name: String,
    origin: String,
    card: AgentCard,
    rpc: JsonRpc,
}

impl RemoteAgent {
    /// Reads the agent's card and chooses how to speak to it. With a key, and a card that offers one, the extended card
    /// is read and used; if that fails, the public one stays.
    ///
    /// # Errors
    ///
    /// [`ClientError`]: the key cannot be had, the card cannot be read, or it leads nowhere we can or may go.
    pub async fn connect(
        entry: &AgentEntry,
        transport: Arc<dyn Transport>,
        keys: KeyResolver,
        config: &ClientConfig,
    ) -> Result<Self, ClientError> {
        let line = Arc::new(Line::new(entry, transport, &keys, config)?);
        let card = card::fetch(&line, &entry.url).await?;
        let public = Self::over(entry, &line, card)?;
        if !(line.has_key() && public.inner.card.capabilities.has_extended_card()) {
            return Ok(public);
        }
        match public.extended_card().await.and_then(|card| Self::over(entry, &line, card)) {
            Ok(extended) => Ok(extended),
            Err(error) => {
                tracing::debug!(agent.name = %entry.name, %error, "no extended card, the public one stays");
                Ok(public)
            }
        }
    }

    fn over(entry: &AgentEntry, line: &Arc<Line>, card: AgentCard) -> Result<Self, ClientError> {
        let target = card::choose(entry, &card, line)?;
        let rpc = JsonRpc::new(Arc::clone(line), &card, target)?;
        let inner = Inner { name: entry.name.to_string(), origin: entry.origin(), card, rpc };
        Ok(Self { inner: Arc::new(inner) })
    }

    async fn extended_card(&self) -> Result<AgentCard, ClientError> {
        let mut request = GetExtendedAgentCardRequest::default();
        request.tenant = self.tenant();
        self.inner.rpc.call_for_card(METHOD_GET_EXTENDED_CARD, &request).await
    }

    /// The agent's name in the file.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The origin of the configured URL, serialised: where the key belongs.
    pub fn origin(&self) -> String {
        self.inner.origin.clone()
    }

    /// The card in use. What it says is the agent's word: show it through
    /// [`sanitize_remote_line`](crate::frame::sanitize_remote_line).
    pub fn card(&self) -> &AgentCard {
        &self.inner.card
    }

    /// Whether the agent can be subscribed to.
    pub fn streams(&self) -> bool {
        self.inner.card.capabilities.can_stream()
    }

    /// Whether the agent calls webhooks.
    pub fn pushes(&self) -> bool {
        self.inner.card.capabilities.can_push()
    }

    fn tenant(&self) -> Option<String> {
        self.inner.rpc.tenant()
    }

    /// Sends a message. The task or message that comes back belongs to the task and context of the message, if it names
    /// some.
    ///
    /// # Errors
    ///
    /// [`ClientError`]; [`ClientError::may_have_arrived`] tells whether the agent may have acted on it.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves open whether the message arrived.
    pub async fn send_message(
        &self,
        mut request: SendMessageRequest,
    ) -> Result<SendMessageResponse, ClientError> {
        request.tenant = self.tenant();
        let answer = self.inner.rpc.call(METHOD_SEND_MESSAGE, &request).await?;
        if let SendMessageResponse::Task(task) = &answer {
            self.check_continues(task, &request.message)?;
        }
        Ok(answer)
    }

    /// Reads a task; `history_length` is how many messages of its history to return at most.
    ///
    /// # Errors
    ///
    /// [`ClientError`], also if another task comes back; [`ClientError::UnreadableTask`] if it is the right one, and no
    /// more than its state can be read.
    pub async fn get_task(
        &self,
        task_id: &TaskId,
        history_length: Option<u32>,
    ) -> Result<Task, ClientError> {
        let mut request = GetTaskRequest::new(task_id.clone());
        request.tenant = self.tenant();
        request.history_length =
            history_length.map(|length| i32::try_from(length).unwrap_or(i32::MAX));
        self.checked(
            self.inner.rpc.call_for_task(METHOD_GET_TASK, &request, task_id).await?,
            task_id,
        )
    }

    /// Asks a task to stop and returns where it stands then.
    ///
    /// # Errors
    ///
    /// [`ClientError`], also if another task comes back.
    pub async fn cancel_task(&self, task_id: &TaskId) -> Result<Task, ClientError> {
        let mut request = CancelTaskRequest::new(task_id.clone());
        request.tenant = self.tenant();
        self.checked(
            self.inner.rpc.call_for_task(METHOD_CANCEL_TASK, &request, task_id).await?,
            task_id,
        )
    }

    /// Lists tasks.
    ///
    /// # Errors
    ///
    /// [`ClientError`].
    pub async fn list_tasks(
        &self,
        mut request: ListTasksRequest,
    ) -> Result<ListTasksResponse, ClientError> {
        request.tenant = self.tenant();
        self.inner.rpc.call(METHOD_LIST_TASKS, &request).await
    }

    /// Follows a task. The first event is usually the task as it stands; the stream ends when the agent closes it, which
    /// says nothing about the task.
    ///
    /// # Errors
    ///
    /// [`ClientError`]. An item that is an error is the last one.
    pub async fn subscribe(&self, task_id: &TaskId) -> Result<EventStream, ClientError> {
        let mut request = SubscribeToTaskRequest::new(task_id.clone());
        request.tenant = self.tenant();
        let events = self.inner.rpc.open_stream(METHOD_SUBSCRIBE_TO_TASK, &request).await?;
        let (agent, task_id) = (self.clone(), task_id.clone());
        let checked = events.map(move |event| {
            let event = event?;
            match event.task_id() {
                // The context of an event is not checked: known servers make up another one.
                Some(found) if *found != task_id => {
                    Err(agent.unexpected("it is about another task"))
                }
                Some(_) | None => Ok(event),
            }
        });
        Ok(EventStream { events: until_error(checked).boxed() })
    }

    /// Registers a webhook for a task and returns what the agent made of it.
    ///
    /// # Errors
    ///
    /// [`ClientError`].
    pub async fn create_push_config(
        &self,
        mut config: TaskPushNotificationConfig,
    ) -> Result<TaskPushNotificationConfig, ClientError> {
        config.tenant = self.tenant();
        self.inner.rpc.call(METHOD_CREATE_PUSH_CONFIG, &config).await
    }

    /// Removes a webhook of a task.
    ///
    /// # Errors
    ///
    /// [`ClientError`].
    pub async fn delete_push_config(
        &self,
        task_id: &TaskId,
        id: &PushConfigId,
    ) -> Result<(), ClientError> {
        let mut request = DeleteTaskPushNotificationConfigRequest::new(task_id.clone(), id.clone());
        request.tenant = self.tenant();
        // Some agents answer with null, some with an empty object.
        let _: serde::de::IgnoredAny =
            self.inner.rpc.call(METHOD_DELETE_PUSH_CONFIG, &request).await?;
        Ok(())
    }

    fn checked(&self, task: Task, asked: &TaskId) -> Result<Task, ClientError> {
        if task.id == *asked { Ok(task) } else { Err(self.unexpected("it is about another task")) }
    }

    fn check_continues(&self, task: &Task, message: &Message) -> Result<(), ClientError> {
        if message.task_id.as_ref().is_some_and(|asked| *asked != task.id) {
            return Err(self.unexpected("it is about another task"));
        }
        match (&message.context_id, &task.context_id) {
            (Some(asked), Some(found)) if asked != found => {
                Err(self.unexpected("it is about another context"))
            }
            (Some(_), Some(_)) | (None, _) | (_, None) => Ok(()),
        }
    }

    fn unexpected(&self, reason: &str) -> ClientError {
        ClientError::Unexpected { agent: self.inner.name.clone(), reason: reason.to_owned() }
    }
}

impl fmt::Debug for RemoteAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteAgent")
            .field("name", &self.inner.name)
            .field("origin", &self.inner.origin)
            .finish_non_exhaustive()
    }
}

/// What an agent reports about a task while it is followed. After an error there is nothing more.
pub struct EventStream {
    events: BoxStream<'static, Result<StreamResponse, ClientError>>,
}

impl Stream for EventStream {
    type Item = Result<StreamResponse, ClientError>;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        self.events.poll_next_unpin(cx)
    }
}

impl fmt::Debug for EventStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventStream").finish_non_exhaustive()
    }
}

/// Passes items on up to and with the first error.
fn until_error<T, E>(
    stream: impl Stream<Item = Result<T, E>> + Send,
) -> impl Stream<Item = Result<T, E>> + Send
where
    T: Send,
    E: Send,
{
    stream.scan(false, |failed, item| {
        let next = (!*failed).then_some(item);
        *failed = next.as_ref().is_some_and(Result::is_err);
        std::future::ready(next)
    })
}
