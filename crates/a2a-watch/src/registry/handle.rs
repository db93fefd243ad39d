//! The way to talk to the registry.

use std::path::PathBuf;
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use volcanic_a2a_types::{ContextId, TaskId};

use crate::order::{
    AgentsError, AgentsReport, SendEnd, SendError, SendOrder, TaskError, TaskQuery, TaskReport,
    WatchView,
};
use crate::record::{WatchId, WatchTarget};

use super::asking::Ask;

/// The largest push token that is looked at, in bytes; ours have 43.
const MAX_TOKEN: usize = 4096;

pub(super) enum Command {
    Send(Box<SendCommand>),
    Ask(Box<AskCommand>),
    Push { id: WatchId, digest: [u8; 32], reply: oneshot::Sender<bool> },
    Agents { workspace: PathBuf, reply: oneshot::Sender<Result<AgentsReport, AgentsError>> },
    Watches { target: Option<WatchTarget>, reply: oneshot::Sender<Vec<WatchView>> },
    Restore { reply: oneshot::Sender<()> },
    Flush { target: WatchTarget },
}

pub(super) struct SendCommand {
    pub(super) order: SendOrder,
    pub(super) wait: Duration,
    pub(super) left: CancellationToken,
    pub(super) reply: oneshot::Sender<Result<SendEnd, SendError>>,
    /// Used once the agent answered with a task.
    pub(super) started: Option<oneshot::Sender<Started>>,
}

/// A task that a send led to.
#[derive(Debug)]
pub(super) struct Started {
    pub(super) task_id: TaskId,
    pub(super) context_id: Option<ContextId>,
    /// The label of its state.
    pub(super) state: String,
}

pub(super) struct AskCommand {
    pub(super) query: TaskQuery,
    pub(super) ask: Ask,
    pub(super) reply: oneshot::Sender<Result<TaskReport, TaskError>>,
}

/// Talks to a running registry; cheap to clone.
#[derive(Debug, Clone)]
pub struct WatchHandle {
    commands: mpsc::Sender<Command>,
    /// How long after its wait a caller stays while the registry struggles with the disk.
    patience: Duration,
}

impl WatchHandle {
    pub(super) fn new(commands: mpsc::Sender<Command>, patience: Duration) -> Self {
        Self { commands, patience }
    }

    /// Sends a message and waits up to `wait` for the task to settle; zero hands over at once.
    ///
    /// The registry owns the send: when `cancel` is cancelled the call returns at once with what the registry has said by then,
    /// else [`SendEnd::Left`]; the send goes on, and what comes of it is delivered.
    ///
    /// # Errors
    /// [`SendError`]; after [`SendError::Unknown`] the message may have arrived, after any other it did not.
    ///
    /// # Cancel safety
    /// Dropping the future is the same as cancelling.
    pub async fn send(
        &self,
        order: SendOrder,
        wait: Duration,
        cancel: CancellationToken,
    ) -> Result<SendEnd, SendError> {
        let (reply, mut end) = oneshot::channel();
        let left = CancellationToken::new();
        let _leave_on_drop = left.clone().drop_guard();
        let (start, started) = oneshot::channel();
        let command = SendCommand { order, wait, left, reply, started: Some(start) };
        let command = Command::Send(Box::new(command));
        self.commands.send(command).await.map_err(|_| SendError::Stopped)?;
        let overdue = async {
            match started.await {
                Ok(started) => {
                    tokio::time::sleep(wait.saturating_add(self.patience)).await;
                    started
                }
                // The message led to no task.
                Err(_) => std::future::pending().await,
            }
        };
        let early = tokio::select! {
            biased;
            // A registry that ends refuses what has not left; everything else is known at its next start.
            end = &mut end => return end.unwrap_or(Ok(SendEnd::Left)),
            () = cancel.cancelled() => SendEnd::Left,
            // The registry goes on keeping the task, or finds the message again after a crash.
            Started { task_id, context_id, state } = overdue => {
                SendEnd::HandedOver { task_id, context_id, state }
            }
        };
        // What the registry said until now counts as heard there.
        end.close();
        end.try_recv().unwrap_or(Ok(early))
    }

    /// Asks every agent of a workspace for its card, all at once.
    ///
    /// # Errors
    /// [`AgentsError`]; an agent that is out of reach is not one.
    pub async fn agents(&self, workspace: PathBuf) -> Result<AgentsReport, AgentsError> {
        let (reply, end) = oneshot::channel();
        let command = Command::Agents { workspace, reply };
        self.commands.send(command).await.map_err(|_| AgentsError::Stopped)?;
        end.await.unwrap_or(Err(AgentsError::Stopped))
    }

    /// Reads a task. When it is settled and this conversation watches it, the report carries the right to tell.
    ///
    /// # Errors
    /// [`TaskError`].
    pub async fn status(&self, query: TaskQuery) -> Result<TaskReport, TaskError> {
        self.ask(query, Ask::Status).await
    }

    /// Stops this conversation's watch of a task and cancels the task. A task that could not be canceled is watched on.
    ///
    /// # Errors
    /// [`TaskError`]; a refusal of the agent is not one, see [`TaskReport::refused`].
    pub async fn cancel(&self, query: TaskQuery) -> Result<TaskReport, TaskError> {
        self.ask(query, Ask::Cancel).await
    }

    async fn ask(&self, query: TaskQuery, ask: Ask) -> Result<TaskReport, TaskError> {
        let (reply, end) = oneshot::channel();
        let command = Command::Ask(Box::new(AskCommand { query, ask, reply }));
        self.commands.send(command).await.map_err(|_| TaskError::Stopped)?;
        end.await.unwrap_or(Err(TaskError::Stopped))
    }

    /// Takes a push. Only the token is looked at; the body is never trusted and the task is read instead.
    ///
    /// Returns whether a watch with that id and token exists.
    pub async fn on_push(&self, watch_id: &str, token: &str, body: &[u8]) -> bool {
        tracing::trace!(bytes = body.len(), "push received");
        let token = token.as_bytes();
        let digest = Sha256::digest(token.get(..MAX_TOKEN).unwrap_or(token)).into();
        let (reply, known) = oneshot::channel();
        let command = Command::Push { id: WatchId::new(watch_id), digest, reply };
        if self.commands.send(command).await.is_err() {
            return false;
        }
        known.await.unwrap_or(false)
    }

    /// The live watches of one conversation, or of all, oldest first. Empty once the registry has stopped.
    pub async fn watches(&self, target: Option<WatchTarget>) -> Vec<WatchView> {
        let (reply, views) = oneshot::channel();
        if self.commands.send(Command::Watches { target, reply }).await.is_err() {
            return Vec::new();
        }
        views.await.unwrap_or_default()
    }

    /// Takes up what earlier processes left: call it once, at start. Returns when the watches are re-armed; reads and
    /// deliveries go on in the background.
    pub async fn restore(&self) {
        let (reply, done) = oneshot::channel();
        if self.commands.send(Command::Restore { reply }).await.is_ok() {
            let _ = done.await;
        }
    }

    /// Says that a conversation is known (again): results kept for it go out.
    pub async fn flush(&self, target: WatchTarget) {
        let _ = self.commands.send(Command::Flush { target }).await;
    }
}
