//! Waiting for the outcome of a task, as long as the user wants to.

use std::time::Duration;

use futures::StreamExt as _;
use tokio::{
    signal,
    time::{Instant, sleep_until, timeout},
};
use volcanic_a2a_client::{ClientError, RemoteAgent};
use volcanic_a2a_types::{StreamResponse, Task, TaskId, TaskState};

/// Between two reads of a task whose agent cannot stream.
const POLL: Duration = Duration::from_secs(1);

/// Reads the task until it settles or the time is up or Ctrl-C is pressed; the last that is known of it.
///
/// # Errors
/// What a read failed with, if it will fail again; anything else may pass.
pub(super) async fn wait(
    remote: &RemoteAgent,
    task: Task,
    time: Duration,
) -> Result<Task, ClientError> {
    let mut latest = task;
    if latest.status.state.is_settled() || time.is_zero() {
        return Ok(latest);
    }
    // Running out of time or patience is an outcome: the task as it stands is told, with its id.
    tokio::select! {
        read = timeout(time, until_settled(remote, &mut latest)) => {
            if let Ok(read) = read {
                read?;
            }
        }
        _ = signal::ctrl_c() => {}
    }
    Ok(latest)
}

async fn until_settled(remote: &RemoteAgent, latest: &mut Task) -> Result<(), ClientError> {
    if remote.streams() {
        follow(remote, &latest.id).await;
    }
    loop {
        let asked_at = Instant::now();
        match remote.get_task(&latest.id, Some(0)).await {
            Ok(task) => *latest = task,
            Err(error) if error.is_transient() => tracing::debug!(%error, "failed to read a task"),
            Err(error) => return Err(error),
        }
        if latest.status.state.is_settled() {
            return Ok(());
        }
        sleep_until(asked_at + POLL).await;
    }
}

/// Follows a stream until it hints at the end or breaks off; only a read decides.
async fn follow(remote: &RemoteAgent, task: &TaskId) {
    let Ok(mut events) = remote.subscribe(task).await else { return };
    while let Some(Ok(event)) = events.next().await {
        let state = match &event {
            StreamResponse::Task(task) => Some(&task.status.state),
            StreamResponse::StatusUpdate(update) => Some(&update.status.state),
            _ => None,
        };
        if state.is_some_and(TaskState::is_settled) {
            return;
        }
    }
}
