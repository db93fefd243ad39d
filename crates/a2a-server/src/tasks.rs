//! The tasks somebody is concerned with: one cell each, loaded once, changed in one place.
//!
//! A cell lives as long as a turn, a stream, a push or an operation holds it. Every change goes through its lock:
//! into the record, onto the disk, out as an event, in that order.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use bytes::Bytes;
use tokio::sync::{Mutex as AsyncMutex, MutexGuard as AsyncMutexGuard};
use volcanic_a2a_types::{
    ContextId, Message, MessageId, Part, PushConfigId, Role, StreamResponse, Task, TaskId,
    TaskPushNotificationConfig, TaskState, TaskStatus, TaskStatusUpdateEvent,
};
use volcanic_base::{Chance, Clock};

use crate::{
    error::OperationError,
    fanout::{EventEnd, Fanout, FanoutBudget, FanoutLimits, LoggedEvent},
    push::PushSender,
    store::{PendingPush, TaskRecord, TaskStore, TaskStoreError},
};

mod turn;

pub(crate) use turn::{ActiveTurn, Opening, TurnPhase, TurnPhases};

/// What the core works with.
#[derive(Debug)]
pub(crate) struct Tasks {
    store: Arc<dyn TaskStore>,
    clock: Arc<dyn Clock>,
    chance: Arc<Chance>,
    limits: FanoutLimits,
    budget: FanoutBudget,
    pushes: Option<PushSender>,
    cells: Mutex<HashMap<TaskId, Weak<TaskCell>>>,
    /// Which turn works in a caller's context.
    busy: Mutex<HashMap<ContextKey, TurnKey>>,
}

/// A context as its caller knows it.
pub(crate) type ContextKey = (String, ContextId);

/// One turn of one task.
pub(crate) type TurnKey = (TaskId, u64);

/// A task somebody holds.
#[derive(Debug)]
pub(crate) struct TaskCell {
    pub(crate) id: TaskId,
    pub(crate) fanout: Arc<Fanout>,
    state: AsyncMutex<CellState>,
    tasks: Weak<Tasks>,
}

/// What a cell knows, behind its lock.
#[derive(Debug, Default)]
pub(crate) struct CellState {
    loaded: bool,
    pub(crate) record: Option<TaskRecord>,
    /// What the task begins with, until its first event makes it real.
    pub(crate) opening: Option<Opening>,
    pub(crate) active: Option<ActiveTurn>,
    pub(crate) last_turn: u64,
    /// Configurations whose pushes somebody is sending.
    pub(crate) pushing: HashSet<PushConfigId>,
}

/// Whether an id has the form that this server makes and can use as a file's name.
pub(crate) fn is_plain_id(id: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=100).contains(&id.len()) && id.bytes().all(plain)
}

impl Tasks {
    pub(crate) fn new(
        store: Arc<dyn TaskStore>,
        clock: Arc<dyn Clock>,
        chance: Arc<Chance>,
        limits: FanoutLimits,
        pushes: Option<PushSender>,
    ) -> Arc<Self> {
        Arc::new(Self {
            store,
            clock,
            chance,
            limits,
            budget: FanoutBudget::default(),
            pushes,
            cells: Mutex::default(),
            busy: Mutex::default(),
        })
    }

    pub(crate) fn store(&self) -> &dyn TaskStore {
        self.store.as_ref()
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        self.clock.as_ref()
    }

    pub(crate) fn chance(&self) -> &Chance {
        &self.chance
    }

    pub(crate) fn sends_pushes(&self) -> bool {
        self.pushes.is_some()
    }

    /// The cell of a task that may or may not exist.
    pub(crate) fn cell(self: &Arc<Self>, id: &TaskId) -> Arc<TaskCell> {
        let mut cells = self.lock_cells();
        if let Some(cell) = cells.get(id).and_then(Weak::upgrade) {
            return cell;
        }
        let cell = Arc::new(self.new_cell(id.clone(), CellState::default()));
        cells.insert(id.clone(), Arc::downgrade(&cell));
        cell
    }

    /// The cell of a task that does not exist yet.
    pub(crate) fn fresh_cell(self: &Arc<Self>) -> Arc<TaskCell> {
        let id = TaskId::new(self.chance.uuid().to_string());
        let state = CellState { loaded: true, ..CellState::default() };
        let cell = Arc::new(self.new_cell(id.clone(), state));
        self.lock_cells().insert(id, Arc::downgrade(&cell));
        cell
    }

    fn new_cell(self: &Arc<Self>, id: TaskId, state: CellState) -> TaskCell {
        TaskCell {
            id,
            fanout: Arc::new(Fanout::new(self.limits.clone(), self.budget.clone())),
            state: AsyncMutex::new(state),
            tasks: Arc::downgrade(self),
        }
    }

    /// Takes a context for a turn, unless another turn has it.
    pub(crate) fn claim(&self, context: &ContextKey, turn: TurnKey) -> Result<(), OperationError> {
        let mut busy = self.lock_busy();
        if busy.contains_key(context) {
            return Err(OperationError::unsupported(
                "context busy, retry when the current task ends",
            ));
        }
        busy.insert(context.clone(), turn);
        Ok(())
    }

    /// Gives a context back, if the turn still has it.
    pub(crate) fn release(&self, context: &ContextKey, turn: &TurnKey) {
        let mut busy = self.lock_busy();
        if busy.get(context) == Some(turn) {
            busy.remove(context);
        }
    }

    pub(crate) fn agent_message(
        &self,
        task: Option<&TaskId>,
        context: Option<&ContextId>,
        parts: Vec<Part>,
    ) -> Message {
        let id = MessageId::new(self.chance.uuid().to_string());
        let mut message = Message::new(id, Role::Agent, parts);
        message.task_id = task.cloned();
        message.context_id = context.cloned();
        message
    }

    pub(crate) fn status(&self, state: TaskState, message: Option<Message>) -> TaskStatus {
        let mut status = TaskStatus::new(state);
        status.message = message;
        status.timestamp = Some(self.clock.now().into());
        status
    }

    fn lock_cells(&self) -> MutexGuard<'_, HashMap<TaskId, Weak<TaskCell>>> {
        self.cells.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_busy(&self) -> MutexGuard<'_, HashMap<ContextKey, TurnKey>> {
        self.busy.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TaskCell {
    /// Locks the cell, with its task loaded. A task that the store calls running though no turn stands behind it was
    /// cut off by a restart, and fails here.
    ///
    /// # Errors
    ///
    /// If the store cannot be read.
    pub(crate) async fn lock(
        self: &Arc<Self>,
        tasks: &Arc<Tasks>,
    ) -> Result<AsyncMutexGuard<'_, CellState>, TaskStoreError> {
        let mut state = self.state.lock().await;
        if !state.loaded {
            state.record = tasks.store.load(&self.id).await?;
            self.fail_if_orphaned(tasks, &mut state).await?;
            // Not before: as long as the end of an orphan cannot be kept, the next one to ask tries again.
            state.loaded = true;
            self.start_pushes(tasks, &mut state);
        }
        Ok(state)
    }

    async fn fail_if_orphaned(
        self: &Arc<Self>,
        tasks: &Arc<Tasks>,
        state: &mut CellState,
    ) -> Result<(), TaskStoreError> {
        let Some(record) = &state.record else { return Ok(()) };
        if !matches!(record.task.status.state, TaskState::Submitted | TaskState::Working) {
            return Ok(());
        }
        let context = record.task.context_id.clone();
        let told = vec![Part::text("server restarted")];
        let message = tasks.agent_message(Some(&self.id), context.as_ref(), told);
        let status = tasks.status(TaskState::Failed, Some(message));
        tracing::info!(task.id = %self.id, "task was cut off by a restart");
        self.change(tasks, state, status, None).await
    }

    /// Makes the task real with its first status, durably, and tells the streams.
    pub(crate) async fn open(
        self: &Arc<Self>,
        tasks: &Arc<Tasks>,
        state: &mut CellState,
        status: TaskStatus,
    ) -> Result<(), TaskStoreError> {
        let Some(opening) = &state.opening else { return Ok(()) };
        let mut task = Task::new(self.id.clone(), opening.context_id.clone(), status);
        task.history.push(opening.message.clone());
        let mut record = TaskRecord::new(task, opening.caller.clone());
        record.push_configs.extend(opening.push_config.clone());
        // Whoever began the task knows that it exists; the first push is for what comes after that.
        if !matches!(record.task.status.state, TaskState::Submitted) {
            queue_pushes(&mut record);
        }
        tasks.store.save(&record).await?;
        self.fanout.publish(task_event(&record.task)).await;
        state.record = Some(record);
        state.opening = None;
        self.start_pushes(tasks, state);
        Ok(())
    }

    /// Changes the status of the task, durably, and then tells the streams. `incoming` joins the history first.
    ///
    /// # Errors
    ///
    /// If the change could not be kept; then nothing has changed.
    pub(crate) async fn change(
        self: &Arc<Self>,
        tasks: &Arc<Tasks>,
        state: &mut CellState,
        status: TaskStatus,
        incoming: Option<Message>,
    ) -> Result<(), TaskStoreError> {
        let Some(record) = &mut state.record else { return Ok(()) };
        let event = status_event(&record.task, &status);
        let history = record.task.history.len();
        let pending = record.pending_push.len();
        let former = std::mem::replace(&mut record.task.status, status);
        record.task.history.extend(former.message.clone());
        record.task.history.extend(incoming);
        queue_pushes(record);
        if let Err(error) = tasks.store.save(record).await {
            record.task.status = former;
            record.task.history.truncate(history);
            record.pending_push.truncate(pending);
            return Err(error);
        }
        self.fanout.publish(event).await;
        self.start_pushes(tasks, state);
        Ok(())
    }

    fn start_pushes(self: &Arc<Self>, tasks: &Arc<Tasks>, state: &mut CellState) {
        if let Some(pushes) = &tasks.pushes {
            pushes.start(tasks, self, state);
        }
    }
}

/// A cell leaves the table when its last holder lets go.
impl Drop for TaskCell {
    fn drop(&mut self) {
        let Some(tasks) = self.tasks.upgrade() else { return };
        let mut cells = tasks.lock_cells();
        if cells.get(&self.id).is_some_and(|cell| cell.strong_count() == 0) {
            cells.remove(&self.id);
        }
    }
}

impl CellState {
    /// Ends the turn that works on the task.
    pub(crate) fn abandon(&mut self) {
        self.active = None;
    }

    /// Ends the turn although the end of its task could not be kept. Whoever locks the cell next loads the task as an
    /// orphan and fails it; otherwise its streams would wait for ever.
    pub(crate) fn orphan(&mut self) {
        self.active = None;
        self.loaded = false;
    }

    /// The record, if it is the caller's. A stranger's task looks like one that does not exist.
    pub(crate) fn record_of(&mut self, caller: &str) -> Result<&mut TaskRecord, OperationError> {
        let own = self.record.as_mut().filter(|record| record.caller == caller);
        own.ok_or(OperationError::TaskNotFound)
    }
}

/// One call per configuration for the status the task has now.
fn queue_pushes(record: &mut TaskRecord) {
    let status = &record.task.status;
    let ids = record
        .push_configs
        .iter()
        .filter_map(|config: &TaskPushNotificationConfig| config.id.clone());
    let wanted = ids.map(|config_id| PendingPush { config_id, status: status.clone() });
    record.pending_push.extend(wanted);
}

/// The event that shows a whole task.
pub(crate) fn task_event(task: &Task) -> LoggedEvent {
    encode(&StreamResponse::Task(task.clone()), end_of(&task.status.state))
}

fn status_event(task: &Task, status: &TaskStatus) -> LoggedEvent {
    let context = task.context_id.clone().unwrap_or_else(|| ContextId::new(""));
    let event = TaskStatusUpdateEvent::new(task.id.clone(), context, status.clone());
    encode(&StreamResponse::StatusUpdate(event), end_of(&status.state))
}

fn end_of(state: &TaskState) -> EventEnd {
    match state {
        TaskState::InputRequired => EventEnd::Input,
        state if state.is_terminal() => EventEnd::Terminal,
        _ => EventEnd::Open,
    }
}

/// Encodes an event once for all streams.
pub(crate) fn encode(event: &StreamResponse, end: EventEnd) -> LoggedEvent {
    let json = serde_json::to_vec(event).unwrap_or_else(|error| {
        tracing::error!(%error, "failed to encode an event");
        Vec::new()
    });
    LoggedEvent { json: Bytes::from(json), end }
}
