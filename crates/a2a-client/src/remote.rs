//! One remote agent: its card, how it is authenticated to, its calls and streams.

use std::{fmt, sync::Arc};

use futures::{
    StreamExt,
    stream::{empty, iter},
};
use volcanic_a2a_types::{
    AgentCard, CancelTaskRequest, GetExtendedAgentCardRequest, GetTaskRequest, ListTasksRequest,
    Message, SendMessageRequest, SendMessageResponse, SubscribeToTaskRequest, Task, TaskId,
};
use volcanic_base::Secret;
use volcanic_net::Transport;

use crate::{
    AgentBinding, AgentEntry, AgentProtocol, ClientConfig, ClientError, KeyResolver, TaskOutcome,
};

pub(crate) mod auth;
mod binding;
mod card;
mod endpoint;
mod events;
mod glimpse;
mod http_json;
mod jsonrpc;
mod line;
mod mask;
mod operation;
mod page;
pub(crate) mod scrub;
mod stream;
mod webhooks;

use binding::Binding;
use card::KeptCard;
use events::Expected;
use line::Line;
use operation::StreamMessage;
use scrub::Concealed;
use stream::Events;

pub use card::ServedCard;
pub use events::{EventStream, HintStream, TaskHint};
pub use mask::KeyMask;
pub use page::{TaskPage, UnreadableListed};

/// A connection to one remote agent, with its card read. Clones share it.
#[derive(Clone)]
pub struct RemoteAgent {
    inner: Arc<Inner>,
    /// The secrets of [`RemoteAgent::concealing`].
    concealed: Concealed,
}

struct Inner {
    name: String,
    origin: String,
    card: Arc<AgentCard>,
    /// Which interface of the card is called.
    interface: usize,
    /// Whether something of the query of the entry's address stands in its address.
    is_said: bool,
    binding: Binding,
    /// How the public card came here; `None` if it was at hand.
    read: Option<ReadCard>,
}

/// A public card, and what was asked for it.
#[derive(Clone)]
struct ReadCard {
    entry: AgentEntry,
    line: Arc<Line>,
    card: KeptCard,
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
        Self::connect_knowing(None, entry, transport, &keys, config).await
    }

    /// Connects anew, as after a failure or once the card counts no longer. If nothing has changed on this side, the
    /// agent is only asked whether its card has (RFC 9111, as section 8.6 of the specification wants it); a card that was
    /// read for another entry, or with another key, is not used.
    ///
    /// # Errors
    ///
    /// [`ClientError`]: the key cannot be had, the card cannot be read, or it leads nowhere we can or may go.
    pub async fn reconnect(
        &self,
        entry: &AgentEntry,
        transport: Arc<dyn Transport>,
        keys: KeyResolver,
        config: &ClientConfig,
    ) -> Result<Self, ClientError> {
        Self::connect_knowing(self.inner.read.as_ref(), entry, transport, &keys, config).await
    }

    async fn connect_knowing(
        known: Option<&ReadCard>,
        entry: &AgentEntry,
        transport: Arc<dyn Transport>,
        keys: &KeyResolver,
        config: &ClientConfig,
    ) -> Result<Self, ClientError> {
        let line = Arc::new(Line::new(entry, transport, keys, config)?);
        let known = known
            .filter(|known| known.entry == *entry && known.line.carries_the_same(&line))
            .map(|known| &known.card);
        let card = card::fetch(&line, &entry.url, known).await;
        let card = card.map_err(|error| line.masked(error))?;
        let public = Arc::clone(&card.card);
        let read = ReadCard { entry: entry.clone(), line: Arc::clone(&line), card };
        let public = Self::over(entry, &line, public, Some(read.clone()))?;
        if !(line.has_key() && public.inner.card.capabilities.has_extended_card()) {
            return Ok(public);
        }
        let extended = public.extended_card().await;
        match extended.and_then(|card| Self::over(entry, &line, Arc::new(card), Some(read))) {
            // What an extended card says where something of ours was masked, nobody knows.
            Ok(extended) if public.inner.is_said && !extended.inner.is_said => Ok(public),
            Ok(extended) => Ok(extended),
            Err(error) => {
                tracing::debug!(agent.name = %entry.name, %error, "no extended card, the public one stays");
                Ok(public)
            }
        }
    }

    /// Uses a card that is at hand instead of reading one. A relative address in it counts from the entry's URL.
    ///
    /// # Errors
    ///
    /// [`ClientError`]: the key cannot be had, or the card leads nowhere we can or may go.
    pub fn with_card(
        entry: &AgentEntry,
        card: AgentCard,
        transport: Arc<dyn Transport>,
        keys: &KeyResolver,
        config: &ClientConfig,
    ) -> Result<Self, ClientError> {
        let line = Arc::new(Line::new(entry, transport, keys, config)?);
        Self::over(entry, &line, Arc::new(card), None)
    }

    fn over(
        entry: &AgentEntry,
        line: &Arc<Line>,
        card: Arc<AgentCard>,
        read: Option<ReadCard>,
    ) -> Result<Self, ClientError> {
        let said = read.as_ref().map(|read| Arc::clone(&read.card.said)).unwrap_or_default();
        let target = card::choose(entry, &card, &said, line).map_err(|error| line.masked(error))?;
        let (interface, is_said) = (target.interface, target.is_said);
        let binding = Binding::new(Arc::clone(line), &card, target);
        let binding = binding.map_err(|error| line.masked(error))?;
        let (name, origin) = (entry.name.to_string(), entry.origin());
        let inner = Inner { name, origin, card, interface, is_said, binding, read };
        Ok(Self { inner: Arc::new(inner), concealed: Concealed::default() })
    }

    /// The agent's name in the file.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The origin of the configured URL, serialised: where the key belongs.
    pub fn origin(&self) -> String {
        self.inner.origin.clone()
    }

    /// Whether the public card still counts, by what the agent said when it was read; an hour if it said nothing, at
    /// least a minute and at most a day. If not, [`RemoteAgent::reconnect`] asks for a newer one.
    pub fn is_card_fresh(&self) -> bool {
        self.inner.read.as_ref().is_none_or(|read| read.card.is_fresh())
    }

    /// The card in use. What it says is the agent's word: show it through
    /// [`sanitize_remote_line`](crate::sanitize_remote_line).
    pub fn card(&self) -> &AgentCard {
        &self.inner.card
    }

    /// Which of the card's interfaces is called, counted from 0.
    pub fn interface_index(&self) -> usize {
        self.inner.interface
    }

    /// Whether the agent can be subscribed to.
    pub fn streams(&self) -> bool {
        self.inner.card.capabilities.can_stream()
    }

    /// Whether the agent calls webhooks.
    pub fn pushes(&self) -> bool {
        self.inner.card.capabilities.can_push()
    }

    /// The binding it is spoken to over.
    pub fn binding(&self) -> AgentBinding {
        self.inner.binding.binding()
    }

    /// The version of the protocol it is spoken to in.
    pub fn protocol(&self) -> AgentProtocol {
        self.inner.binding.protocol()
    }

    /// Takes a task of this agent apart, without our secrets: one that came in pieces is whole only now. `max_file_bytes`
    /// is the largest file that is taken.
    ///
    /// The answer is the `response` artifact, else every artifact's text, else the status message. For a task that waits
    /// for us the status message, which is the question, comes first; one that failed or was rejected says why in its
    /// status message, so that is told too.
    pub fn outcome_of(&self, task: Task, max_file_bytes: u64) -> TaskOutcome {
        TaskOutcome::from_task(task, max_file_bytes).masked(self.inner.binding.line().scrubber())
    }

    /// The same of a reply of this agent without a task.
    pub fn outcome_of_reply(&self, message: Message, max_file_bytes: u64) -> TaskOutcome {
        TaskOutcome::from_message(message, max_file_bytes)
            .masked(self.inner.binding.line().scrubber())
    }

    /// The same connection, for who goes on with what these secrets were sent for in earlier calls: they are taken out of all
    /// that the agent says, as long as what is returned, a clone of it or a stream that was opened with it is there. Those
    /// that were concealed before still are.
    #[must_use]
    pub fn concealing<'s>(mut self, secrets: impl IntoIterator<Item = &'s Secret>) -> Self {
        let concealed = self.inner.binding.line().scrubber().learn(secrets);
        self.concealed = self.concealed.and(concealed);
        self
    }

    /// An error of an earlier call without what is [concealed](Self::concealing) now.
    #[must_use]
    pub fn masked(&self, error: ClientError) -> ClientError {
        self.inner.binding.line().masked(error)
    }

    fn tenant(&self) -> Option<String> {
        self.inner.binding.tenant()
    }

    /// Reads the card for authenticated callers. The one in use stays as it is.
    ///
    /// # Errors
    ///
    /// [`ClientError`], also if the agent has no such card.
    pub async fn extended_card(&self) -> Result<AgentCard, ClientError> {
        let mut request = GetExtendedAgentCardRequest::default();
        request.tenant = self.tenant();
        self.inner.binding.call_for_card(&request).await
    }

    /// Sends a message. The task or message that comes back belongs to the task and context of the message, as far as both
    /// name some.
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
        let answer = self.inner.binding.call(&request).await?;
        self.expects(Expected::of_message(&request.message).answer(&answer))?;
        Ok(answer)
    }

    /// Sends a message and follows what comes of it: the task and its changes, or one message. The stream ends when the
    /// agent closes it, which says nothing about the task.
    ///
    /// # Errors
    ///
    /// [`ClientError`]; [`ClientError::may_have_arrived`] tells whether the agent may have acted on it. An item that is
    /// an error is the last one.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves open whether the message arrived. Dropping the stream stops nothing at the agent.
    pub async fn send_streaming_message(
        &self,
        mut request: SendMessageRequest,
    ) -> Result<EventStream, ClientError> {
        request.tenant = self.tenant();
        let expected = Expected::of_message(&request.message);
        let events = self.inner.binding.open_stream(&StreamMessage(request)).await?;
        let events = events.concealing(self.concealed.clone());
        Ok(EventStream::new(&self.inner.name, expected, events))
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
        self.checked(self.inner.binding.call(&request).await?, task_id)
    }

    /// Asks a task to stop and returns where it stands then.
    ///
    /// # Errors
    ///
    /// [`ClientError`], also if another task comes back.
    pub async fn cancel_task(&self, task_id: &TaskId) -> Result<Task, ClientError> {
        let mut request = CancelTaskRequest::new(task_id.clone());
        request.tenant = self.tenant();
        self.checked(self.inner.binding.call(&request).await?, task_id)
    }

    /// Lists tasks. Those of the page that cannot be read are named and hide no others.
    ///
    /// # Errors
    ///
    /// [`ClientError`], also if tasks of another context come back. A2A 0.3 has no lists.
    pub async fn list_tasks(&self, mut request: ListTasksRequest) -> Result<TaskPage, ClientError> {
        request.tenant = self.tenant();
        let page = self.inner.binding.call(&request).await?;
        if let Some(asked) = &request.context_id {
            let is_other =
                |task: &Task| task.context_id.as_ref().is_some_and(|found| found != asked);
            if page.tasks.iter().any(is_other) {
                return Err(self.unexpected("it is about another context"));
            }
        }
        Ok(page)
    }

    /// Follows a task. The first event is usually the task as it stands; the stream ends when the agent closes it, which
    /// says nothing about the task.
    ///
    /// Agents of 0.3 do not say where the task stands, so it is read first; if it has ended, that is all there is.
    ///
    /// # Errors
    ///
    /// [`ClientError`]. An item that is an error is the last one.
    pub async fn subscribe(&self, task_id: &TaskId) -> Result<EventStream, ClientError> {
        let (snapshot, events) = self.open_subscription(task_id).await?;
        let events = events.map_or_else(|| empty().boxed(), StreamExt::boxed);
        let events = iter(snapshot.map(|task| Ok(task.into()))).chain(events);
        Ok(EventStream::new(&self.inner.name, Expected::of_task(task_id), events))
    }

    /// Follows a task as [`RemoteAgent::subscribe`] does, for who reads it anew whenever there is news of it: little of each
    /// event is kept, so that many tasks can be followed whose agents say much.
    ///
    /// # Errors
    ///
    /// As [`RemoteAgent::subscribe`].
    pub async fn subscribe_for_hints(&self, task_id: &TaskId) -> Result<HintStream, ClientError> {
        let (snapshot, events) = self.open_subscription(task_id).await?;
        Ok(HintStream::new(&self.inner.name, Expected::of_task(task_id), snapshot, events))
    }

    /// Where a task stands, if its stream would not tell, and the stream, if there can be one.
    async fn open_subscription(
        &self,
        task_id: &TaskId,
    ) -> Result<(Option<Task>, Option<Events>), ClientError> {
        let snapshot = match self.protocol() {
            AgentProtocol::V1 => None,
            AgentProtocol::V03 => Some(self.get_task(task_id, None).await?),
        };
        if snapshot.as_ref().is_some_and(|task| task.state().is_terminal()) {
            return Ok((snapshot, None));
        }
        let mut request = SubscribeToTaskRequest::new(task_id.clone());
        request.tenant = self.tenant();
        let events = self.inner.binding.open_stream(&request).await?;
        Ok((snapshot, Some(events.concealing(self.concealed.clone()))))
    }

    fn checked(&self, task: Task, asked: &TaskId) -> Result<Task, ClientError> {
        self.expects(Expected::of_task(asked).task(&task))?;
        Ok(task)
    }

    fn expects(&self, checked: Result<(), &'static str>) -> Result<(), ClientError> {
        checked.map_err(|reason| self.unexpected(reason))
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
