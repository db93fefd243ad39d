//! The search for sends whose end nobody knows: left open by an earlier process, or by a job that broke off.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use volcanic_a2a_client::RemoteAgent;
use volcanic_a2a_types::Task;
use volcanic_base::Secret;

use super::Registry;
use super::closing::OpenSend;
use super::context::{Context, stays_at};
use super::jobs::{JobEnd, Owner};
use super::sending::{First, Sent, find, known};
use crate::delivery::Delivery;
use crate::machine::{Continuation, WatchEvent, elapsed, noted};
use crate::notice;
use crate::order::AgentError;
use crate::record::{SendRecord, WatchId, WatchRecord, unknown_send_key};

/// What was found out about a send that was left open.
pub(super) enum Recovered {
    /// Its task is kept now.
    Task(Box<WatchRecord>),
    /// It continued the task of the watch that is held for it.
    Continued,
    /// Nobody knows.
    Unknown,
    /// The registry stopped first.
    Stopped,
}

/// Looks for an open send, as long as the agent cannot be asked and the time for it is not over. `tokens` are what the agent
/// may repeat.
async fn recover(
    context: &Context,
    send: &mut SendRecord,
    held: Option<&WatchRecord>,
    tokens: &[Secret],
) -> Recovered {
    let pauses = &context.config.lookup_pauses;
    let now = context.clock.now();
    let since = send.sought_since.map_or(now, |since| noted(since, now));
    let (mut step, mut is_noted) = (0, send.sought_since == Some(since));
    send.sought_since = Some(since);
    // From here on by the monotonic clock: a wall clock that is set, or a machine that sleeps, looks for nothing meanwhile.
    let (before, began) = (elapsed(since, now), Instant::now());
    loop {
        if !is_noted {
            is_noted = note(context, send).await;
        }
        let looked =
            tokio::time::timeout(context.config.lookup_timeout, look(context, send, tokens));
        let looked = tokio::select! {
            looked = looked => looked,
            () = context.stop.cancelled() => return Recovered::Stopped,
        };
        match looked {
            Ok(Ok(Some((task, _)))) if held.is_some_and(|held| held.task_id == task.id) => {
                return Recovered::Continued;
            }
            Ok(Ok(Some((task, remote)))) => {
                let (first, answered) = (First::attended(), send.answered.clone());
                return match known(context, send, first, task, remote, answered).await {
                    Sent::Task { record, .. } => Recovered::Task(record),
                    Sent::Replied { .. }
                    | Sent::Failed { .. }
                    | Sent::Unknown { .. }
                    | Sent::Stopped => Recovered::Stopped,
                };
            }
            Ok(Ok(None)) => return Recovered::Unknown,
            Ok(Err(AgentError::Client(error))) if !error.is_transient() => {
                return Recovered::Unknown;
            }
            // Somebody may be editing the file.
            Ok(Err(_)) | Err(_) => {}
        }
        let passed = before.saturating_add(began.elapsed());
        let left = context.config.lookup_limit.saturating_sub(passed);
        if left.is_zero() {
            return Recovered::Unknown;
        }
        let pause = pauses.get(step).or(pauses.last()).copied().unwrap_or(Duration::from_secs(1));
        step += 1;
        tokio::select! {
            () = tokio::time::sleep(pause.min(left)) => {}
            () = context.stop.cancelled() => return Recovered::Stopped,
        }
    }
}

/// Keeps since when a send is looked for. A store that fails does not end the search.
async fn note(context: &Context, send: &SendRecord) -> bool {
    let Some(since) = send.sought_since else { return true };
    let since = context.clock.kept(since);
    let noted = context.deps.store.note_sought(&send.message_id, since).await;
    if let Err(error) = &noted {
        tracing::warn!(error = %error, "since when a send is looked for could not be kept");
    }
    noted.is_ok()
}

async fn look(
    context: &Context,
    send: &SendRecord,
    tokens: &[Secret],
) -> Result<Option<(Task, RemoteAgent)>, AgentError> {
    let entry = context.entry(&send.workspace, &send.agent).await?;
    if stays_at(&entry, &send.origin).is_err() {
        return Ok(None);
    }
    let remote = context.connect(&send.workspace, &entry).await.map_err(AgentError::Client)?;
    let remote = remote.concealing(tokens);
    let task = find(&remote, send).await.map_err(AgentError::Client)?;
    Ok(task.map(|task| (task, remote)))
}

impl Registry {
    /// Looks for the end of an open send; `held` is the watch that waits for it.
    pub(super) fn spawn_recover(&mut self, send: SendRecord, held: Option<WatchRecord>) {
        let (context, tokens) = (Arc::clone(&self.context), self.tokens_near(&send, held.as_ref()));
        let held_id = held.as_ref().map(|held| held.id.clone());
        let owner = Owner::Recover(Box::new(send.clone()), held_id.clone());
        let mut send = Box::new(send);
        let job = self.jobs.set.spawn(async move {
            let recovered = recover(&context, &mut send, held.as_ref(), &tokens).await;
            JobEnd::Recovered { send, held: held_id, recovered }
        });
        self.jobs.own(&job, owner);
    }

    pub(super) fn on_recovered(
        &mut self,
        send: &SendRecord,
        held: Option<WatchId>,
        recovered: Recovered,
    ) {
        match (recovered, held) {
            (Recovered::Task(record), held) => {
                if let Some(id) = held {
                    self.release(&id, true);
                }
                let answered = send.answered.clone();
                let answered = answered.filter(|_| send.task_id.as_ref() == Some(&record.task_id));
                self.on_counted(&send.message_id, *record, answered);
            }
            (Recovered::Continued, Some(id)) => {
                let continuation = Continuation {
                    message_id: send.message_id.clone(),
                    hops: send.hops,
                    source_ref: send.source_ref.clone(),
                    answered: send.answered.clone(),
                };
                self.feed(&id, WatchEvent::Continued(continuation));
            }
            (Recovered::Unknown, held) => {
                if let Some(id) = held {
                    self.release(&id, true);
                }
                let reason = "the assistant was stopped while the message was on its way";
                let delivery = Delivery {
                    target: send.target.clone(),
                    key: unknown_send_key(&send.message_id),
                    text: notice::unknown_send(&send.agent, send.context_id.as_ref(), reason),
                    hops: send.hops,
                    source_ref: send.source_ref.clone(),
                };
                let (message_id, end_reason) = (send.message_id.clone(), Some(reason.to_owned()));
                self.spawn_close(OpenSend { message_id, delivery, end_reason }, true);
            }
            (Recovered::Continued, None) | (Recovered::Stopped, _) => {}
        }
    }

    /// The job of a send broke off: the store knows how far it came.
    pub(super) fn look_for_lost(&mut self, send: Box<SendRecord>, held: Option<WatchId>) {
        let context = Arc::clone(&self.context);
        self.jobs.set.spawn(async move {
            loop {
                match context.deps.store.open_sends().await {
                    Ok(open) => {
                        let kept = open.into_iter().find(|kept| kept.message_id == send.message_id);
                        let is_kept = kept.is_some();
                        let send = kept.map_or(send, Box::new);
                        return JobEnd::Lost { send, held, is_kept };
                    }
                    Err(error) => {
                        tracing::error!(error = %error, "a send that broke off cannot be read");
                    }
                }
                if !context.may_retry().await {
                    return JobEnd::Done;
                }
            }
        });
    }

    pub(super) fn on_lost(&mut self, mut send: SendRecord, held: Option<WatchId>, is_kept: bool) {
        if is_kept && send.end_reason.is_none() {
            let held = held
                .and_then(|id| self.watches.get(&id))
                .map(|followed| followed.watch.record().clone());
            return self.spawn_recover(send, held);
        }
        self.release_held(held);
        send.end_reason
            .get_or_insert_with(|| "something went wrong here before it left".to_owned());
        self.tell_unsent(send, true, is_kept);
    }
}
