//! What an executor says about its task.

use std::sync::Arc;

use tokio::sync::MutexGuard;
use volcanic_a2a_types::{
    Artifact, ArtifactId, ContextId, Message, Part, StreamResponse, TaskArtifactUpdateEvent,
    TaskId, TaskState, TaskStatus,
};

use crate::{
    fanout::EventEnd,
    store::TaskStoreError,
    tasks::{CellState, ContextKey, TaskCell, Tasks, TurnKey, TurnPhase, TurnPhases, encode},
};

/// Why something said about a task was not taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SinkError {
    /// The turn is over: the task ended, was canceled, or waits for the next message.
    #[error("the turn is over")]
    Closed,
    /// The change could not be kept, and was not made.
    #[error("failed to keep the task")]
    Store(#[from] TaskStoreError),
}

/// Takes what an executor says about its task. Clones speak for the same turn.
///
/// A change of status is durable before anybody hears of it. Artifacts become durable with the next change of status.
#[derive(Debug, Clone)]
pub struct TaskSink {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    tasks: Arc<Tasks>,
    cell: Arc<TaskCell>,
    turn: u64,
    context: ContextKey,
    phases: TurnPhases,
}

impl TaskSink {
    pub(crate) fn new(
        tasks: Arc<Tasks>,
        cell: Arc<TaskCell>,
        turn: u64,
        context: ContextKey,
        phases: TurnPhases,
    ) -> Self {
        Self { inner: Arc::new(Inner { tasks, cell, turn, context, phases }) }
    }

    /// The task this speaks of.
    pub fn task_id(&self) -> &TaskId {
        &self.inner.cell.id
    }

    /// The context of the task.
    pub fn context_id(&self) -> &ContextId {
        &self.inner.context.1
    }

    /// Makes the task exist as "submitted", if it does not exist yet.
    ///
    /// # Errors
    ///
    /// As for [`TaskSink::working`].
    pub async fn accept(&self) -> Result<(), SinkError> {
        let mut state = self.lock().await?;
        if state.opening.is_some() {
            let status = self.inner.tasks.status(TaskState::Submitted, None);
            self.set(&mut state, status).await?;
        }
        Ok(())
    }

    /// Says that work goes on, unless that was the last thing said.
    ///
    /// # Errors
    ///
    /// [`SinkError::Closed`] if the turn is over, [`SinkError::Store`] if the change could not be kept.
    pub async fn working(&self) -> Result<(), SinkError> {
        let mut state = self.lock().await?;
        let said = state.record.as_ref().is_some_and(|record| {
            let status = &record.task.status;
            status.state == TaskState::Working && status.message.is_none()
        });
        if !said {
            let status = self.inner.tasks.status(TaskState::Working, None);
            self.set(&mut state, status).await?;
        }
        Ok(())
    }

    /// Says that work goes on, and how.
    ///
    /// # Errors
    ///
    /// As for [`TaskSink::working`].
    pub async fn progress(&self, text: &str) -> Result<(), SinkError> {
        self.status(TaskState::Working, Some(text)).await
    }

    /// Adds an artifact, or replaces the one with its id.
    ///
    /// # Errors
    ///
    /// As for [`TaskSink::working`].
    pub async fn artifact(&self, artifact: Artifact) -> Result<(), SinkError> {
        self.artifact_event(artifact, false, true).await
    }

    /// Begins an artifact that comes in pieces; the rest follows with [`TaskSink::append`].
    ///
    /// # Errors
    ///
    /// As for [`TaskSink::working`].
    pub async fn begin_artifact(&self, artifact: Artifact) -> Result<(), SinkError> {
        self.artifact_event(artifact, false, false).await
    }

    /// Adds parts to an artifact that was begun.
    ///
    /// # Errors
    ///
    /// As for [`TaskSink::working`].
    pub async fn append(&self, id: ArtifactId, parts: Vec<Part>) -> Result<(), SinkError> {
        self.artifact_event(Artifact::new(id, parts), true, false).await
    }

    /// Adds the last parts to an artifact that was begun.
    ///
    /// # Errors
    ///
    /// As for [`TaskSink::working`].
    pub async fn append_last(&self, id: ArtifactId, parts: Vec<Part>) -> Result<(), SinkError> {
        self.artifact_event(Artifact::new(id, parts), true, true).await
    }

    /// Asks the caller something; the answer begins the next turn.
    ///
    /// # Errors
    ///
    /// As for [`TaskSink::working`].
    pub async fn ask(&self, question: &str) -> Result<(), SinkError> {
        self.status(TaskState::InputRequired, Some(question)).await
    }

    /// Says that an authorization is needed, to be given outside of A2A. The turn may go on.
    ///
    /// # Errors
    ///
    /// As for [`TaskSink::working`].
    pub async fn auth_required(&self, text: &str) -> Result<(), SinkError> {
        self.status(TaskState::AuthRequired, Some(text)).await
    }

    /// Ends the task well.
    ///
    /// # Errors
    ///
    /// As for [`TaskSink::working`].
    pub async fn complete(&self) -> Result<(), SinkError> {
        self.status(TaskState::Completed, None).await
    }

    /// Ends the task badly.
    ///
    /// # Errors
    ///
    /// As for [`TaskSink::working`].
    pub async fn fail(&self, reason: &str) -> Result<(), SinkError> {
        self.status(TaskState::Failed, Some(reason)).await
    }

    /// Declines the task.
    ///
    /// # Errors
    ///
    /// As for [`TaskSink::working`].
    pub async fn reject(&self, reason: &str) -> Result<(), SinkError> {
        self.status(TaskState::Rejected, Some(reason)).await
    }

    /// Answers with a message instead of a task.
    ///
    /// # Errors
    ///
    /// [`SinkError::Closed`] if there is a task already.
    pub async fn reply(&self, parts: Vec<Part>) -> Result<(), SinkError> {
        let mut state = self.lock().await?;
        if state.opening.take().is_none() {
            return Err(SinkError::Closed);
        }
        let inner = &self.inner;
        let message = inner.tasks.agent_message(None, Some(&inner.context.1), parts);
        self.close(&mut state);
        self.inner.phases.advance(TurnPhase::Replied(Box::new(message)));
        Ok(())
    }

    async fn status(&self, to: TaskState, text: Option<&str>) -> Result<(), SinkError> {
        let mut state = self.lock().await?;
        let inner = &self.inner;
        let message = text.map(|text| self.message(vec![Part::text(text)]));
        let status = inner.tasks.status(to, message);
        self.set(&mut state, status).await
    }

    fn message(&self, parts: Vec<Part>) -> Message {
        let inner = &self.inner;
        inner.tasks.agent_message(Some(&inner.cell.id), Some(&inner.context.1), parts)
    }

    async fn set(&self, state: &mut CellState, status: TaskStatus) -> Result<(), SinkError> {
        let Inner { tasks, cell, phases, .. } = &*self.inner;
        let to = status.state.clone();
        if state.record.is_some() {
            cell.change(tasks, state, status, None).await?;
        } else {
            cell.open(tasks, state, status).await?;
        }
        if to.is_terminal() || to == TaskState::InputRequired {
            self.close(state);
        }
        phases.advance(if to.is_settled() { TurnPhase::Settled } else { TurnPhase::Open });
        Ok(())
    }

    async fn artifact_event(
        &self,
        artifact: Artifact,
        append: bool,
        last: bool,
    ) -> Result<(), SinkError> {
        let mut state = self.lock().await?;
        let Inner { tasks, cell, context, .. } = &*self.inner;
        if state.record.is_none() {
            self.set(&mut state, tasks.status(TaskState::Working, None)).await?;
        }
        let mut event = TaskArtifactUpdateEvent::new(cell.id.clone(), context.1.clone(), artifact);
        event.append = append;
        event.last_chunk = last;
        if let Some(record) = &mut state.record {
            record.task.apply_artifact(&event);
        }
        cell.fanout.publish(encode(&StreamResponse::ArtifactUpdate(event), EventEnd::Open)).await;
        Ok(())
    }

    /// Locks the cell, if this turn still works on it.
    async fn lock(&self) -> Result<MutexGuard<'_, CellState>, SinkError> {
        let state = self.inner.cell.lock(&self.inner.tasks).await?;
        match &state.active {
            Some(active) if active.number == self.inner.turn => Ok(state),
            Some(_) | None => Err(SinkError::Closed),
        }
    }

    /// Ends the turn, so that the caller may send the next message at once.
    fn close(&self, state: &mut CellState) {
        state.active = None;
        self.release();
    }

    fn key(&self) -> TurnKey {
        (self.inner.cell.id.clone(), self.inner.turn)
    }

    pub(crate) fn release(&self) {
        self.inner.tasks.release(&self.inner.context, &self.key());
    }

    /// Fails the task, unless it waits for an authorization: that can be given without a turn.
    pub(crate) async fn fail_unless_waiting(&self, reason: &str) -> Result<(), SinkError> {
        let waits = self
            .lock()
            .await?
            .record
            .as_ref()
            .is_some_and(|record| record.task.status.state == TaskState::AuthRequired);
        if waits { Ok(()) } else { self.fail(reason).await }
    }

    /// Says that the turn ended without a word, so that nobody waits for one.
    pub(crate) async fn abandon(&self) {
        self.leave(CellState::abandon).await;
    }

    /// Says that the turn ended and its word could not be kept.
    pub(crate) async fn orphan(&self) {
        self.leave(CellState::orphan).await;
    }

    async fn leave(&self, end: fn(&mut CellState)) {
        if let Ok(mut state) = self.lock().await {
            end(&mut state);
        }
        self.release();
        self.inner.phases.advance(TurnPhase::Lost);
    }
}
