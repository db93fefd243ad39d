//! The way to talk to a session.

use std::sync::Arc;

use tokio::sync::{broadcast, mpsc, oneshot};

use super::{
    Shared,
    activity::{SessionEvent, SessionStatus},
    actor::Command,
};
use crate::{prompt::TargetId, store::StoreError};

/// Talks to a session's actor; clones talk to the same one.
#[derive(Debug, Clone)]
pub struct SessionHandle {
    shared: Arc<Shared>,
    commands: mpsc::Sender<Command>,
}

/// What a stop found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AbortEnd {
    /// Whether there was a run to stop.
    pub was_running: bool,
    /// How many prompts waited behind it; they are answered next.
    pub waiting: usize,
}

/// An error of a session.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The session has ended.
    #[error("the session has ended")]
    Closed,
    /// The store could not do it.
    #[error("failed to keep the conversation")]
    Store(#[from] StoreError),
}

impl SessionHandle {
    pub(super) fn new(shared: Arc<Shared>, commands: mpsc::Sender<Command>) -> Self {
        Self { shared, commands }
    }

    /// The conversation this is the session of.
    pub fn target(&self) -> &TargetId {
        &self.shared.target
    }

    /// Has the session look for waiting prompts. Call it after [`crate::SessionStore::accept`].
    pub fn wake(&self) {
        self.shared.gauge.send_modify(|gauge| gauge.asked += 1);
        self.shared.wake.notify_one();
    }

    /// Stops the run that is going on and waits until it has ended, with a result on record for each of its tool calls.
    /// Waiting prompts stay and the next one starts by itself.
    ///
    /// The outcome of a run that a delivery had started is still shown, as it came.
    ///
    /// # Errors
    ///
    /// [`SessionError::Closed`], or [`SessionError::Store`] if the queue could not be read. A run whose end the store did
    /// not take does nothing more; it is ended on record as soon as the store takes that.
    pub async fn abort(&self) -> Result<AbortEnd, SessionError> {
        let (reply, answer) = oneshot::channel();
        self.commands.send(Command::Abort(reply)).await.map_err(|_| SessionError::Closed)?;
        let (was_running, waiting) = answer.await.map_err(|_| SessionError::Closed)?;
        let waiting = match waiting {
            Some(waiting) => waiting,
            None => self.waiting().await?,
        };
        Ok(AbortEnd { was_running, waiting })
    }

    /// Begins the conversation anew: stops the run that is going on and appends [`crate::EntryBody::Reset`].
    /// Prompts that wait are answered in the new conversation.
    ///
    /// # Errors
    ///
    /// [`SessionError::Closed`] or, with nothing changed, [`SessionError::Store`].
    pub async fn reset(&self) -> Result<(), SessionError> {
        let (reply, answer) = oneshot::channel();
        self.commands.send(Command::Reset(reply)).await.map_err(|_| SessionError::Closed)?;
        answer.await.map_err(|_| SessionError::Closed)?.map_err(SessionError::from)
    }

    /// Says what the session is doing.
    ///
    /// # Errors
    ///
    /// [`SessionError::Store`] if the queue could not be read.
    pub async fn status(&self) -> Result<SessionStatus, SessionError> {
        let waiting = self.waiting().await?;
        let running = self.shared.gauge.borrow().running.clone();
        Ok(SessionStatus { running, waiting })
    }

    /// Whether a run is going on.
    pub fn is_running(&self) -> bool {
        self.shared.gauge.borrow().running.is_some()
    }

    /// Listens to what happens from now on.
    pub fn subscribe(&self) -> broadcast::Receiver<SessionEvent> {
        self.shared.events.subscribe()
    }

    /// Waits until everything that was accepted before the latest [`SessionHandle::wake`] is answered, or the session
    /// has ended, or its store has failed.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing.
    pub async fn wait_idle(&self) {
        let mut gauge = self.shared.gauge.subscribe();
        // Fails only when the sender is gone, which this handle holds.
        let _ = gauge.wait_for(super::activity::Gauge::is_idle).await;
    }

    async fn waiting(&self) -> Result<usize, SessionError> {
        Ok(self.shared.deps.store.waiting(&self.shared.target).await?.len())
    }
}
