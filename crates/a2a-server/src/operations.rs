//! The operations of the protocol, independent of any binding.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use volcanic_a2a_types::{
    CancelTaskRequest, GetTaskRequest, SendMessageRequest, SendMessageResponse,
    SubscribeToTaskRequest, Task, TaskId, TaskState,
};
use volcanic_base::{Chance, Clock};
use volcanic_net::Transport;

use crate::{
    caller::Caller,
    config::ServerConfig,
    error::OperationError,
    executor::Executor,
    push::PushSender,
    store::TaskStore,
    tasks::{Tasks, task_event},
};

mod list;
mod push_configs;
mod run;
mod send;
mod stream;

pub use stream::{EventStream, StreamError};

/// What the core needs from its host.
#[derive(Debug, Clone)]
pub struct OperationDeps {
    /// Does the work.
    pub executor: Arc<dyn Executor>,
    /// Keeps the tasks.
    pub store: Arc<dyn TaskStore>,
    /// Tells the time of statuses.
    pub clock: Arc<dyn Clock>,
    /// Makes ids.
    pub chance: Arc<Chance>,
    /// Calls webhooks; `None` = this server sends no pushes. It decides which addresses may be reached.
    pub push: Option<Arc<dyn Transport>>,
}

/// The operations of the protocol, each on behalf of a [`Caller`] who sees only what is theirs.
///
/// Every operation runs to its end although the one who asked for it may go away. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Operations {
    core: Arc<Core>,
}

#[derive(Debug)]
pub(crate) struct Core {
    config: Arc<ServerConfig>,
    executor: Arc<dyn Executor>,
    tasks: Arc<Tasks>,
    running: Arc<Semaphore>,
    tracker: TaskTracker,
    cancel: CancellationToken,
}

impl Operations {
    /// Starts the core. Turns and pushes run on `tracker` until `cancel`; pushes that an earlier process left are sent.
    pub fn spawn(
        config: Arc<ServerConfig>,
        deps: OperationDeps,
        tracker: &TaskTracker,
        cancel: CancellationToken,
    ) -> Self {
        let pushes = deps.push.map(|transport| PushSender {
            config: Arc::new(config.push.clone()),
            transport,
            tracker: tracker.clone(),
            cancel: cancel.clone(),
        });
        let tasks = Tasks::new(deps.store, deps.clock, deps.chance, config.fanout.clone(), pushes);
        let core = Core {
            running: Arc::new(Semaphore::new(config.max_running)),
            config,
            executor: deps.executor,
            tasks,
            tracker: tracker.clone(),
            cancel,
        };
        let operations = Self { core: Arc::new(core) };
        if operations.sends_pushes() {
            let core = Arc::clone(&operations.core);
            tracker.spawn(async move {
                let cancel = core.cancel.clone();
                cancel.run_until_cancelled(core.resume_pushes()).await
            });
        }
        operations
    }

    /// Whether this server sends pushes.
    pub fn sends_pushes(&self) -> bool {
        self.core.tasks.sends_pushes()
    }

    /// Sends a message. Answers when the task has ended or waits for somebody, or as soon as it exists if the request
    /// says so.
    ///
    /// # Errors
    ///
    /// [`OperationError`], before anything was begun.
    pub async fn send(
        &self,
        caller: &Caller,
        request: SendMessageRequest,
    ) -> Result<SendMessageResponse, OperationError> {
        let caller = caller.clone();
        self.run(async move |core| core.send(caller, request).await).await
    }

    /// Sends a message and follows what comes of it.
    ///
    /// # Errors
    ///
    /// [`OperationError`], before anything was begun.
    pub async fn stream(
        &self,
        caller: &Caller,
        request: SendMessageRequest,
    ) -> Result<EventStream, OperationError> {
        let caller = caller.clone();
        self.run(async move |core| core.send_streaming(caller, request).await).await
    }

    /// Reads a task.
    ///
    /// # Errors
    ///
    /// [`OperationError::TaskNotFound`], also for a stranger's task; wrong parameters.
    pub async fn get(
        &self,
        caller: &Caller,
        request: GetTaskRequest,
    ) -> Result<Task, OperationError> {
        let caller = caller.clone();
        self.run(async move |core| {
            let history = history_length(request.history_length)?;
            core.read(&caller, &request.id, history).await
        })
        .await
    }

    /// Cancels a task. A canceled task is answered with itself.
    ///
    /// # Errors
    ///
    /// [`OperationError::TaskNotCancelable`] if it has ended otherwise, [`OperationError::TaskNotFound`].
    pub async fn cancel(
        &self,
        caller: &Caller,
        request: CancelTaskRequest,
    ) -> Result<Task, OperationError> {
        let caller = caller.clone();
        self.run(async move |core| core.cancel_task(&caller, &request.id).await).await
    }

    /// Follows a task: a snapshot first, then everything that happens after it.
    ///
    /// # Errors
    ///
    /// [`OperationError::Unsupported`] if it has ended, [`OperationError::TaskNotFound`].
    pub async fn subscribe(
        &self,
        caller: &Caller,
        request: SubscribeToTaskRequest,
    ) -> Result<EventStream, OperationError> {
        let caller = caller.clone();
        self.run(async move |core| core.subscribe(&caller, &request.id).await).await
    }

    /// Runs an operation where nobody can cut it off half-way: the request's future may be dropped at any moment.
    async fn run<T, F>(&self, work: impl FnOnce(Arc<Core>) -> F) -> Result<T, OperationError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, OperationError>> + Send + 'static,
    {
        let running = self.core.tracker.spawn(work(Arc::clone(&self.core)));
        match running.await {
            Ok(result) => result,
            Err(error) => {
                tracing::error!(%error, "operation failed");
                Err(OperationError::Internal)
            }
        }
    }
}

impl Core {
    async fn read(
        &self,
        caller: &Caller,
        id: &TaskId,
        history: Option<usize>,
    ) -> Result<Task, OperationError> {
        let cell = self.tasks.cell(id);
        let mut state = cell.lock(&self.tasks).await?;
        let record = state.record_of(&caller.name)?;
        Ok(with_history(&record.task, history))
    }

    async fn cancel_task(&self, caller: &Caller, id: &TaskId) -> Result<Task, OperationError> {
        let cell = self.tasks.cell(id);
        let mut state = cell.lock(&self.tasks).await?;
        let record = state.record_of(&caller.name)?;
        match &record.task.status.state {
            TaskState::Canceled => return Ok(record.task.clone()),
            ended if ended.is_terminal() => {
                return Err(OperationError::TaskNotCancelable { state: ended.clone() });
            }
            _ => {}
        }
        let status = self.tasks.status(TaskState::Canceled, None);
        cell.change(&self.tasks, &mut state, status, None).await?;
        let task = state.record_of(&caller.name)?.task.clone();
        let active = state.active.take();
        drop(state);
        if let Some(active) = active {
            active.phases.advance(crate::tasks::TurnPhase::Settled);
            active.cancel.cancel();
            // Whoever cancels and sends again should not find the context still busy.
            active.ended.cancelled().await;
        }
        Ok(task)
    }

    async fn subscribe(&self, caller: &Caller, id: &TaskId) -> Result<EventStream, OperationError> {
        let cell = self.tasks.cell(id);
        let mut state = cell.lock(&self.tasks).await?;
        let record = state.record_of(&caller.name)?;
        if record.task.status.state.is_terminal() {
            return Err(OperationError::unsupported("the task has ended, read it with GetTask"));
        }
        let snapshot = task_event(&record.task);
        let reader = cell.fanout.subscribe().ok_or_else(too_many_streams)?;
        drop(state);
        Ok(EventStream::subscription(snapshot, reader, cell, self.cancel.clone()))
    }

    /// Sends what an earlier process left to be sent, and what it was cut off from.
    async fn resume_pushes(&self) {
        let summaries = match self.tasks.store().summaries().await {
            Ok(summaries) => summaries,
            Err(error) => {
                tracing::error!(%error, "failed to look for pushes to send");
                return;
            }
        };
        for summary in summaries {
            let cut_off = summary.has_push_configs
                && matches!(summary.state, TaskState::Submitted | TaskState::Working);
            if !(summary.has_pending_push || cut_off) {
                continue;
            }
            // Loading a task does both: it fails one that was cut off, and starts its pushes.
            if let Err(error) = self.tasks.cell(&summary.id).lock(&self.tasks).await {
                tracing::warn!(%error, task.id = %summary.id, "failed to resume pushes");
            }
        }
    }
}

fn too_many_streams() -> OperationError {
    OperationError::unsupported("the task has too many streams")
}

/// Reads a `historyLength`.
fn history_length(asked: Option<i32>) -> Result<Option<usize>, OperationError> {
    asked
        .map(|length| {
            usize::try_from(length)
                .map_err(|_| OperationError::invalid("historyLength", "must not be negative"))
        })
        .transpose()
}

/// A task with at most so many of its latest messages.
fn with_history(task: &Task, length: Option<usize>) -> Task {
    let mut task = task.clone();
    if let Some(length) = length {
        let excess = task.history.len().saturating_sub(length);
        task.history.drain(..excess);
    }
    task
}
