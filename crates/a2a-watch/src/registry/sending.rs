//! The job behind `send`: keep the intent, send once, keep what it led to.

use std::time::Duration;

use serde_json::Value;
use tokio::sync::oneshot;
use volcanic_a2a_client::{AgentEntry, ClientError, RemoteAgent, SavedOutcome};
use volcanic_a2a_types::{
    A2aErrorKind, ContextId, HOPS_METADATA, ListTasksRequest, Message, MessageId, Part,
    SendMessageConfiguration, SendMessageRequest, SendMessageResponse, Task,
};
use volcanic_base::Secret;

use super::context::{Context, stays_at};
use super::handle::{SendCommand, Started};
use super::reading::save_outcome;
use crate::machine::{answered, is_answered};
use crate::order::{AgentError, SendError, SendOrder};
use crate::record::{SendRecord, SendState, WatchId, WatchRecord, WatchState};

/// Tasks looked at when a send without an answer is searched for; the newest come first.
const LOOKUP_PAGE: i32 = 50;

/// How the job ended.
pub(super) enum Sent {
    /// The task exists and its watch is kept. The send is kept as known too, unless the watch was held for it: then the
    /// watch notes the message first, so that a crash in between leaves no doubt about what it covers.
    Task {
        /// The kept watch: a new one, or the one that followed the task before.
        record: Box<WatchRecord>,
        /// Whether the watch is the new one.
        new: bool,
        /// The connection, for the wait.
        remote: RemoteAgent,
        /// The label of the state it answered with.
        state: String,
        /// Whether the answer looked settled.
        hinted: bool,
        /// How the question stood that the message answered, if it answered one.
        answered: Option<String>,
    },
    /// The agent answered without a task. The send stays open until the caller confirms the answer.
    Replied {
        /// Its context.
        context_id: Option<ContextId>,
        /// The answer.
        reply: Box<SavedOutcome>,
    },
    /// It failed, and the message did not leave.
    Failed {
        /// Why.
        error: SendError,
        /// Whether it is kept, with the reason, until somebody is told.
        kept: bool,
    },
    /// The registry stopped first; the next process finds the send open.
    Stopped,
    /// Nobody knows. The send stays open until the caller confirms that it was told so.
    Unknown {
        /// Why, readable.
        reason: String,
    },
}

/// Sends one message. `held` is the watch that the registry holds for it, `tokens` are what the agent may repeat.
pub(super) async fn send(
    context: &Context,
    command: &mut SendCommand,
    message_id: &MessageId,
    held: Option<&WatchRecord>,
    tokens: &[Secret],
) -> Sent {
    let SendCommand { order, started, wait, .. } = command;
    let (order, first) = (&*order, First::of(context, *wait));
    let (entry, send) = match begin(context, order, message_id, held).await {
        Ok(begun) => begun,
        Err(error) => return Sent::Failed { error, kept: false },
    };
    let (remote, context_id, answered) = match prepare(context, order, &entry, &send, tokens).await
    {
        Ok(prepared) => prepared,
        Err(error) => return unsent(context, message_id, AgentError::Client(error).into()).await,
    };
    if let Some(answered) = &answered
        && let Err(error) = context.deps.store.note_answered(message_id, answered).await
    {
        // A process that found the answer alone would take the old question for its outcome.
        return unsent(context, message_id, error.into()).await;
    }
    match remote.send_message(request(order, message_id, context_id)).await {
        Ok(SendMessageResponse::Task(task)) => {
            announce(started, &task);
            kept(context, &send, first, task, remote, held, answered).await
        }
        Ok(SendMessageResponse::Message(message)) => {
            replied(context, &send, &remote, message).await
        }
        Ok(_) => Sent::Unknown { reason: "it answered with something we do not know".to_owned() },
        Err(error) if !error.may_have_arrived() => {
            context.forget(&order.workspace, &order.agent);
            unsent(context, message_id, AgentError::Client(error).into()).await
        }
        Err(error) => {
            context.forget(&order.workspace, &order.agent);
            let found = match error.begun_task() {
                Some(task) => Ok(Some(task.clone())),
                None => find(&remote, &send).await,
            };
            match found {
                Ok(Some(task)) => {
                    announce(started, &task);
                    kept(context, &send, first, task, remote, held, answered).await
                }
                Ok(None) | Err(_) => Sent::Unknown { reason: error.to_string() },
            }
        }
    }
}

/// How the watch of a new task is kept first.
pub(super) struct First {
    state: WatchState,
    /// Kept before the remote hears it, so that its first push finds it.
    push_token: Option<Secret>,
}

impl First {
    /// One that nobody waits for is the registry's at once: to write that it is attended, and then that it is not, takes a
    /// flush more and promises no more.
    fn of(context: &Context, wait: Duration) -> Self {
        if wait.is_zero() {
            Self { state: WatchState::Watching, push_token: context.push_token() }
        } else {
            Self::attended()
        }
    }

    /// Whoever has the task lets go of it later.
    pub(super) fn attended() -> Self {
        Self { state: WatchState::Attended, push_token: None }
    }
}

/// Tells the caller's side that there is a task, so that its wait ends whatever the disk does.
fn announce(started: &mut Option<oneshot::Sender<Started>>, task: &Task) {
    if let Some(started) = started.take() {
        // A caller that is gone does not wait.
        let _ = started.send(Started {
            task_id: task.id.clone(),
            context_id: task.context_id.clone(),
            state: task.status.state.label(),
        });
    }
}

/// Keeps the send. From here on it is told what becomes of it, whatever happens to its caller and to this process.
async fn begin(
    context: &Context,
    order: &SendOrder,
    message_id: &MessageId,
    held: Option<&WatchRecord>,
) -> Result<(AgentEntry, SendRecord), SendError> {
    let entry = context.entry(&order.workspace, &order.agent).await?;
    if let Some(held) = held.filter(|held| !held.origin.is_empty()) {
        stays_at(&entry, &held.origin)?;
    }
    let mut send = record(context, order, message_id, entry.origin());
    if send.context_id.is_none() {
        send.context_id = held.and_then(|held| held.context_id.clone());
    }
    let limit = context.config.unattended_sends;
    if context.deps.store.begin_send(&send, limit).await? {
        Ok((entry, send))
    } else {
        Err(SendError::Unattended { limit })
    }
}

/// A connection, the context that the message names, and how the question stands that it answers.
async fn prepare(
    context: &Context,
    order: &SendOrder,
    entry: &AgentEntry,
    send: &SendRecord,
    tokens: &[Secret],
) -> Result<(RemoteAgent, Option<ContextId>, Option<String>), ClientError> {
    let remote = context.connect(&order.workspace, entry).await?.concealing(tokens);
    let Some(task_id) = &order.task_id else { return Ok((remote, send.context_id.clone(), None)) };
    let (found, answered) = match remote.get_task(task_id, Some(0)).await {
        Ok(task) => (task.context_id, answered(&task.status)),
        // The agent will say what it thinks of the message.
        Err(error) if send.context_id.is_some() && has_nothing_to_read(&error) => (None, None),
        // A message that left without a note of the question it answers could get that question for its outcome.
        Err(error) => return Err(error),
    };
    // Some servers give a message with a task id alone a context of its own, so both are always sent.
    Ok((remote, send.context_id.clone().or(found), answered))
}

/// Whether reading the task again would show no question either.
fn has_nothing_to_read(error: &ClientError) -> bool {
    let is_denied = matches!(
        error.rpc_kind(),
        Some(
            A2aErrorKind::TaskNotFound
                | A2aErrorKind::UnsupportedOperation
                | A2aErrorKind::MethodNotFound
        )
    );
    // It is told as such, whatever it asks.
    is_denied || error.too_large().is_some() || error.unreadable_task().is_some()
}

/// What is kept of an order, to the agent at `origin`.
pub(super) fn record(
    context: &Context,
    order: &SendOrder,
    message_id: &MessageId,
    origin: String,
) -> SendRecord {
    SendRecord {
        message_id: message_id.clone(),
        target: order.target.clone(),
        workspace: order.workspace.clone(),
        agent: order.agent.clone(),
        origin,
        context_id: order.context_id.clone(),
        task_id: order.task_id.clone(),
        hops: order.hops,
        source_ref: order.source_ref.clone(),
        started_at: context.deps.clock.now(),
        state: SendState::Sending,
        end_reason: None,
        unattended: order.unattended.clone(),
        sought_since: None,
        answered: None,
    }
}

/// A kept send did not leave.
async fn unsent(context: &Context, message_id: &MessageId, error: SendError) -> Sent {
    if let Err(error) = context.deps.store.note_unsent(message_id, &error.to_string()).await {
        tracing::error!(error = %error, "why a send did not leave could not be kept");
    }
    Sent::Failed { error, kept: true }
}

fn request(
    order: &SendOrder,
    message_id: &MessageId,
    context_id: Option<ContextId>,
) -> SendMessageRequest {
    let text = (!order.text.is_empty()).then(|| Part::text(order.text.clone()));
    let parts = text.into_iter().chain(order.parts.iter().cloned()).collect();
    let mut message = Message::user(message_id.clone(), parts);
    message.context_id = context_id;
    message.task_id.clone_from(&order.task_id);
    let hops = Value::from(order.hops.saturating_add(1));
    message.metadata = Some(serde_json::Map::from_iter([(HOPS_METADATA.to_owned(), hops)]));
    let mut configuration = SendMessageConfiguration::immediate();
    configuration.history_length = Some(0);
    let mut request = SendMessageRequest::new(message);
    request.configuration = Some(configuration);
    request
}

/// Keeps the task a send led to, unless it is the held watch's own.
async fn kept(
    context: &Context,
    send: &SendRecord,
    first: First,
    task: Task,
    remote: RemoteAgent,
    held: Option<&WatchRecord>,
    answered: Option<String>,
) -> Sent {
    match held.filter(|held| held.task_id == task.id && held.origin == send.origin) {
        Some(held) => {
            let (state, hinted) = (task.status.state.label(), is_hinted(&task, answered.as_ref()));
            let record = Box::new(held.clone());
            Sent::Task { record, new: false, remote, state, hinted, answered }
        }
        None => known(context, send, first, task, remote, answered).await,
    }
}

/// Whether a task that a message was answered with looks settled.
fn is_hinted(task: &Task, answered: Option<&String>) -> bool {
    task.status.state.is_settled()
        && !answered.is_some_and(|told| is_answered(std::slice::from_ref(told), &task.status))
}

/// Keeps the task a send led to, with its watch as it is `first` if that is a new one. Goes on trying until the registry
/// stops: the task runs, whatever the disk does.
pub(super) async fn known(
    context: &Context,
    send: &SendRecord,
    first: First,
    task: Task,
    remote: RemoteAgent,
    answered: Option<String>,
) -> Sent {
    // An answer that led to another task than the one it was for says nothing about that one.
    let answered = answered.filter(|_| send.task_id.as_ref() == Some(&task.id));
    let record = new_watch(context, send, first, &task, answered.clone());
    let (state, hinted) = (task.status.state.label(), is_hinted(&task, answered.as_ref()));
    loop {
        let dated = context.clock.dated(record.clone());
        match context.deps.store.send_known(&send.message_id, Some(&dated)).await {
            Ok(kept) => {
                let mut kept = kept.unwrap_or_else(|| record.clone());
                let new = kept.id == record.id;
                if new {
                    kept.started_at = record.started_at;
                }
                let remote = remote.concealing(kept.push_token.as_ref());
                return Sent::Task { record: Box::new(kept), new, remote, state, hinted, answered };
            }
            Err(error) => tracing::error!(
                error = %error, task.id = %task.id, "a started task could not be kept and is tried again"
            ),
        }
        if !context.may_retry().await {
            return Sent::Stopped;
        }
    }
}

fn new_watch(
    context: &Context,
    send: &SendRecord,
    first: First,
    task: &Task,
    answered: Option<String>,
) -> WatchRecord {
    WatchRecord {
        told: answered.into_iter().collect(),
        context_id: task.context_id.clone().or_else(|| send.context_id.clone()),
        state: first.state,
        push_token: first.push_token,
        last_seen: Some(task.status.state.label()),
        hops: send.hops,
        source_ref: send.source_ref.clone(),
        message_id: Some(send.message_id.clone()),
        ..WatchRecord::begun(
            WatchId::random(&context.deps.chance, context.deps.clock.now()),
            send.target.clone(),
            send.workspace.clone(),
            (send.agent.clone(), send.origin.clone()),
            task.id.clone(),
            context.clock.now(),
        )
    }
}

async fn replied(
    context: &Context,
    send: &SendRecord,
    remote: &RemoteAgent,
    message: Message,
) -> Sent {
    let context_id = message.context_id.clone();
    let mut outcome = remote.outcome_of_reply(message, context.config.max_file_bytes);
    outcome.inline_bytes = context.config.inline_bytes;
    let reply = save_outcome(&send.workspace, &send.agent, outcome).await;
    Sent::Replied { context_id, reply: Box::new(reply) }
}

/// Looks for the task that carries the message of a send whose answer was lost.
pub(super) async fn find(
    remote: &RemoteAgent,
    send: &SendRecord,
) -> Result<Option<Task>, ClientError> {
    if let Some(task_id) = &send.task_id {
        let task = remote.get_task(task_id, Some(LOOKUP_PAGE.unsigned_abs())).await?;
        return Ok(carries(&task, &send.message_id).then_some(task));
    }
    let mut request = ListTasksRequest::default();
    request.context_id.clone_from(&send.context_id);
    request.page_size = Some(LOOKUP_PAGE);
    request.history_length = Some(LOOKUP_PAGE);
    let page = remote.list_tasks(request).await?;
    Ok(page.tasks.into_iter().find(|task| carries(task, &send.message_id)))
}

fn carries(task: &Task, message_id: &MessageId) -> bool {
    task.history.iter().any(|message| message.message_id == *message_id)
}
