//! The wait inside `send`: until the task settles, the time is up, or the caller leaves.

use std::ops::ControlFlow;
use std::time::Duration;

use futures::StreamExt as _;
use tokio::time::Instant;
use volcanic_a2a_client::{ClientError, HintStream, RemoteAgent, SavedOutcome, TaskHint};
use volcanic_a2a_types::Task;

use super::context::Context;
use super::reading::save;
use super::streaming::may_have_settled;
use crate::machine::{SettledState, is_answered};
use crate::record::WatchRecord;

/// How a wait ended.
pub(super) enum Waited {
    /// The task settled; its files are saved, or named as not saved.
    Settled {
        /// The state.
        state: SettledState,
        /// What came of it.
        outcome: Box<SavedOutcome>,
    },
    /// It did not, or nobody waits any longer.
    Unsettled(Progress),
}

/// What is known of a task that is waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Progress {
    /// Whether there was a hint that it has settled.
    pub(super) hinted: bool,
    /// The label of its state.
    pub(super) state: String,
    /// How long the agent asks to be left alone.
    pub(super) put_off: Option<Duration>,
}

/// Waits for a task that the caller's message went to. `left` ends when the caller does.
pub(super) async fn attend(
    context: &Context,
    record: &WatchRecord,
    remote: &RemoteAgent,
    mut progress: Progress,
    wait: Duration,
    left: impl Future<Output = ()>,
) -> Waited {
    if wait.is_zero() {
        return Waited::Unsettled(progress);
    }
    let settled = tokio::select! {
        biased;
        () = context.stop.cancelled() => None,
        () = left => None,
        settled = tokio::time::timeout(wait, settle(context, record, remote, &mut progress)) => settled.ok(),
    };
    let Some(task) = settled.flatten() else { return Waited::Unsettled(progress) };
    let state = SettledState::of(&task);
    let outcome = save(context, &record.workspace, remote, task).await;
    Waited::Settled { state, outcome: Box::new(outcome) }
}

/// Reads the task after every hint until a read finds it settled. Nothing comes of a settled task that cannot be read: its
/// watch tells that.
async fn settle(
    context: &Context,
    record: &WatchRecord,
    remote: &RemoteAgent,
    progress: &mut Progress,
) -> Option<Task> {
    let mut next = Instant::now();
    if !progress.hinted
        && remote.streams()
        && let Ok(stream) = remote.subscribe_for_hints(&record.task_id).await
    {
        // A stream that fails or ends is one more hint; from then on the task is read at intervals.
        match follow(context, record, remote, progress, stream).await {
            ControlFlow::Break(task) => return task,
            ControlFlow::Continue(at) => next = at,
        }
    }
    loop {
        tokio::time::sleep_until(next).await;
        let asked_at = Instant::now();
        if let ControlFlow::Break(task) = look(context, record, remote, progress).await {
            return task;
        }
        next = asked_at + context.config.wait_poll.max(progress.put_off.unwrap_or_default());
    }
}

/// Follows a stream until it ends or hints at a settled task. What is too large to tell is read for at once, and after that
/// at most so often, as after pushes. It breaks as [`look`] does, and else says when the agent lets itself be asked again.
async fn follow(
    context: &Context,
    record: &WatchRecord,
    remote: &RemoteAgent,
    progress: &mut Progress,
    mut stream: HintStream,
) -> ControlFlow<Option<Task>, Instant> {
    let mut put_off_until = Instant::now();
    let (mut rests_until, mut is_due) = (put_off_until, false);
    loop {
        tokio::select! {
            biased;
            () = tokio::time::sleep_until(rests_until), if is_due => {
                is_due = false;
                if let ControlFlow::Break(task) = look(context, record, remote, progress).await {
                    return ControlFlow::Break(task);
                }
                let now = Instant::now();
                put_off_until = now + progress.put_off.unwrap_or_default();
                rests_until = put_off_until.max(now + context.config.push_gap);
            }
            heard = until_hint(&mut stream, &record.told) => match heard {
                Heard::Large => is_due = true,
                Heard::Settled => {
                    progress.hinted = true;
                    return ControlFlow::Continue(put_off_until);
                }
                Heard::End => return ControlFlow::Continue(put_off_until),
            },
        }
    }
}

/// Reads the task once. It breaks with the settled task, or with nothing if only its watch can tell of it.
async fn look(
    context: &Context,
    WatchRecord { task_id, told, .. }: &WatchRecord,
    remote: &RemoteAgent,
    progress: &mut Progress,
) -> ControlFlow<Option<Task>> {
    match remote.get_task(task_id, Some(0)).await {
        Ok(task) if task.status.state.is_settled() && !is_answered(told, &task.status) => {
            progress.hinted = true;
            return ControlFlow::Break(Some(task));
        }
        Ok(task) => {
            progress.state = task.status.state.label();
            progress.put_off = None;
        }
        Err(error) if is_for_the_watch(&error) => {
            progress.hinted = true;
            return ControlFlow::Break(None);
        }
        Err(error) => {
            tracing::debug!(task.id = %task_id, error = %error, "a read inside the wait failed");
            progress.put_off =
                error.retry_after().map(|pause| pause.min(context.config.retry_after_cap));
        }
    }
    ControlFlow::Continue(())
}

/// Whether a read again would find the same: the watch tells it.
fn is_for_the_watch(error: &ClientError) -> bool {
    error.too_large().is_some()
        || error.unreadable_task().is_some_and(|(state, _)| state.is_settled())
}

/// What a stream says.
enum Heard {
    Settled,
    /// Something that is larger than is kept of an event: it may be anything.
    Large,
    End,
}

/// Follows a stream until it hints at a settled task or ends.
///
/// # Cancel safety
///
/// Nothing is lost when the future is dropped.
async fn until_hint(stream: &mut HintStream, told: &[String]) -> Heard {
    while let Some(Ok(hint)) = stream.next().await {
        let TaskHint::Event(event) = &hint else { return Heard::Large };
        let is_old = event.status().is_some_and(|status| is_answered(told, status));
        if may_have_settled(&hint) && !is_old {
            return Heard::Settled;
        }
    }
    Heard::End
}
