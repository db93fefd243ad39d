//! Jobs of a single watch: read the task, register for pushes, deliver.

use std::path::Path;

use volcanic_a2a_client::{
    AgentEntry, ClientError, RemoteAgent, SavedOutcome, TaskOutcome, render_delivery,
};
use volcanic_a2a_types::{
    A2aErrorKind, ContextId, Credential, PushConfigId, Task, TaskPushNotificationConfig, TaskState,
};
use volcanic_base::{ConfinedDir, Secret};

use super::calls::Called;
use super::context::{Context, blocking, stays_at};
use super::origins::Reach;
use crate::delivery::{Delivery, DeliveryEnd, DeliveryError};
use crate::machine::{ReadResult, SettledState, is_answered};
use crate::notice;
use crate::order::AgentError;
use crate::record::WatchRecord;

/// Reads a watch's task; only what this finds decides anything. `tokens` are what the agent may repeat.
pub(super) async fn read(
    context: &Context,
    record: &WatchRecord,
    tokens: &[Secret],
) -> Called<ReadResult> {
    let entry = match entry_of(context, record).await {
        Ok(entry) => entry,
        Err(result) => return Called::without_call(result),
    };
    let remote = match context.connect_for_watch(&record.workspace, &entry).await {
        // A connection of this process need not be the one that the token was sent over.
        Ok(remote) => remote.concealing(record.push_token.as_ref()),
        // Whatever is wrong with the card says nothing about the task.
        Err(error) => return reached(&error).map(|()| passing(&error)),
    };
    match remote.get_task(&record.task_id, Some(0)).await {
        Ok(task) => Called::answered(told(context, record, remote, tokens, task).await),
        Err(error) => {
            context.forget(&record.workspace, &record.agent);
            let error = remote.concealing(tokens).masked(error);
            reached(&error).map(|()| failed(record, &error))
        }
    }
}

/// The agent's entry, if it lets a watch's task be asked for.
pub(super) async fn entry_of(
    context: &Context,
    record: &WatchRecord,
) -> Result<AgentEntry, ReadResult> {
    match context.entry(&record.workspace, &record.agent).await {
        Ok(entry) if record.origin.is_empty() => {
            Err(ReadResult::OriginKnown { origin: entry.origin() })
        }
        Ok(entry) if stays_at(&entry, &record.origin).is_ok() => Ok(entry),
        Ok(_) => Err(ReadResult::OriginMoved),
        Err(AgentError::Unknown { .. }) => Err(ReadResult::AgentMissing),
        Err(
            error @ (AgentError::Skipped { .. }
            | AgentError::Moved { .. }
            | AgentError::File(_)
            | AgentError::Client(_)),
        ) => Err(ReadResult::AgentsFileBad { reason: error.to_string() }),
    }
}

/// What an error of a call tells about the origin.
pub(super) fn reached(error: &ClientError) -> Called<()> {
    let reach = match error {
        // The call was taken, and its answer broke off.
        ClientError::Unreachable { source, .. } if !source.never_left() => Reach::Unanswered,
        ClientError::Unreachable { .. } | ClientError::Http { status: 502..=504, .. } => {
            Reach::Unreached
        }
        ClientError::TimedOut { .. } => Reach::Unanswered,
        // The key cannot be had here.
        ClientError::Key { .. } => Reach::Nothing,
        _ => Reach::Answered,
    };
    Called { result: (), reach, put_off: error.retry_after() }
}

fn passing(error: &ClientError) -> ReadResult {
    ReadResult::Failed { reason: error.to_string(), retry_after: error.retry_after() }
}

fn failed(record: &WatchRecord, error: &ClientError) -> ReadResult {
    if error.rpc_kind() == Some(A2aErrorKind::TaskNotFound) {
        return ReadResult::NotFound;
    }
    if let Some(limit) = error.too_large() {
        return news(record, SettledState::too_large(), None, || notice::too_large(record, limit));
    }
    if let Some((state, reason)) = error.unreadable_task() {
        return unreadable(record, state, reason);
    }
    passing(error)
}

/// A task that settled stays as it is, so what cannot be read now is not waited for: the owner is told that it is there.
fn unreadable(record: &WatchRecord, state: &TaskState, reason: &str) -> ReadResult {
    let label = state.label();
    if !state.is_settled() || record.told.contains(&label) {
        let reason = format!("it is {label}, and cannot be read: {reason}");
        return ReadResult::Failed { reason, retry_after: None };
    }
    let text = || notice::unreadable(record, &label, reason);
    news(record, SettledState::unreadable(state), None, text)
}

/// What there is to tell about a settled task.
fn news(
    record: &WatchRecord,
    state: SettledState,
    context_id: Option<ContextId>,
    text: impl FnOnce() -> String,
) -> ReadResult {
    if record.told.contains(&state.mark) {
        ReadResult::ToldBefore { state, context_id }
    } else {
        ReadResult::Settled { state, text: text(), context_id }
    }
}

async fn told(
    context: &Context,
    record: &WatchRecord,
    remote: RemoteAgent,
    tokens: &[Secret],
    task: Task,
) -> ReadResult {
    let state = &task.status.state;
    let (label, context_id) = (state.label(), task.context_id.clone());
    let is_old = record.told.contains(&label) || is_answered(&record.told, &task.status);
    if !state.is_settled() || is_old {
        return ReadResult::Unsettled { label, context_id };
    }
    let state = SettledState::of(&task);
    if record.told.contains(&state.mark) {
        return ReadResult::ToldBefore { state, context_id };
    }
    // Not before: most reads find nothing to tell, and each token is looked for in several forms.
    let remote = remote.concealing(tokens);
    let saved = save(context, &record.workspace, &remote, task).await;
    let text = render_delivery(&record.agent, &saved);
    match saved.passing_failure() {
        None => ReadResult::Settled { state, text, context_id },
        Some(reason) => {
            let reason = format!("files could not be saved: {reason}");
            ReadResult::Unsaved { state, text, context_id, reason }
        }
    }
}

/// Takes a task's outcome apart and saves its files, synced.
pub(super) async fn save(
    context: &Context,
    workspace: &Path,
    remote: &RemoteAgent,
    task: Task,
) -> SavedOutcome {
    let mut outcome = remote.outcome_of(task, context.config.max_file_bytes);
    outcome.inline_bytes = context.config.inline_bytes;
    save_outcome(workspace, remote.name(), outcome).await
}

/// Saves an outcome's files, synced, as far as that is possible.
pub(super) async fn save_outcome(
    workspace: &Path,
    agent: &str,
    outcome: TaskOutcome,
) -> SavedOutcome {
    let (workspace, agent) = (workspace.to_owned(), agent.to_owned());
    blocking(move || match ConfinedDir::open(workspace) {
        Ok(workspace) => outcome.save(&workspace, &agent),
        Err(error) => outcome.save_nothing(&error),
    })
    .await
}

/// Gives the remote a push config; whether it took it.
pub(super) async fn register(context: &Context, record: &WatchRecord) -> bool {
    match try_register(context, record).await {
        Ok(registered) => registered,
        Err(error) => {
            tracing::info!(agent.name = record.agent, error = %error, "the agent takes no push config");
            false
        }
    }
}

async fn try_register(context: &Context, record: &WatchRecord) -> Result<bool, AgentError> {
    let (Some(base), Some(token)) = (&context.config.push_base, &record.push_token) else {
        return Ok(false);
    };
    let Some(_turn) = context.registration_turn(&record.origin).await else { return Ok(false) };
    let entry = context.entry(&record.workspace, &record.agent).await?;
    if stays_at(&entry, &record.origin).is_err() {
        return Ok(false);
    }
    let remote = context.connect(&record.workspace, &entry).await.map_err(AgentError::Client)?;
    if !remote.pushes() {
        return Ok(false);
    }
    let url = format!("{}/a2a/push/{}", base.as_str().trim_end_matches('/'), record.id);
    let mut config = TaskPushNotificationConfig::new(url);
    config.id = Some(PushConfigId::from(record.id.as_str()));
    config.task_id = Some(record.task_id.clone());
    config.token = Some(Credential::new(token.expose()));
    remote.create_push_config(config).await.map_err(AgentError::Client)?;
    Ok(true)
}

/// Takes the push config of a watch that is over back, if the remote still listens.
pub(super) async fn unregister(context: &Context, record: &WatchRecord) {
    let Some(_turn) = context.registration_turn(&record.origin).await else { return };
    let Ok(entry) = context.entry(&record.workspace, &record.agent).await else { return };
    if entry.origin() != record.origin {
        return;
    }
    let Ok(remote) = context.connect(&record.workspace, &entry).await else { return };
    let remote = remote.concealing(record.push_token.as_ref());
    let id = PushConfigId::from(record.id.as_str());
    if let Err(error) = remote.delete_push_config(&record.task_id, &id).await {
        tracing::debug!(agent.name = record.agent, error = %error, "the push config stays with the agent");
    }
}

/// Hands a claimed text to its conversation.
pub(super) async fn deliver(
    context: &Context,
    record: &WatchRecord,
) -> Result<DeliveryEnd, DeliveryError> {
    let delivery = Delivery {
        target: record.target.clone(),
        key: record.delivery_key.clone(),
        text: record.text.clone().unwrap_or_default(),
        hops: record.hops,
        source_ref: record.source_ref.clone(),
    };
    context.deps.delivery.deliver(&delivery).await
}
