//! Sending a message: where a turn begins.

use std::{sync::Arc, time::Duration};

use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;
use volcanic_a2a_types::{
    ContextId, HOPS_METADATA, JsonObject, Message, Role, SendMessageRequest, SendMessageResponse,
    TaskPushNotificationConfig, TaskState,
};

use super::{Core, EventStream, history_length, too_many_streams, with_history};
use crate::{
    caller::Caller,
    error::OperationError,
    executor::{TaskSink, Turn},
    fanout::{EventReader, LoggedEvent},
    tasks::{
        ActiveTurn, CellState, ContextKey, Opening, TaskCell, TurnPhase, TurnPhases, is_plain_id,
        task_event,
    },
};

/// A turn that has begun.
struct Begun {
    cell: Arc<TaskCell>,
    phase: watch::Receiver<TurnPhase>,
    events: Option<(Option<LoggedEvent>, EventReader)>,
}

/// A checked request.
struct Checked {
    caller: Caller,
    message: Message,
    hops: u32,
    accepted_output_modes: Vec<String>,
    metadata: Option<JsonObject>,
    push_config: Option<TaskPushNotificationConfig>,
    streams: bool,
}

/// The turn's place: a cell, a number, a context that is taken for it.
struct Place {
    cell: Arc<TaskCell>,
    number: u64,
    context: ContextKey,
    permit: OwnedSemaphorePermit,
}

impl Core {
    pub(super) async fn send(
        self: Arc<Self>,
        caller: Caller,
        request: SendMessageRequest,
    ) -> Result<SendMessageResponse, OperationError> {
        let configuration = request.configuration.as_ref();
        let history = history_length(configuration.and_then(|c| c.history_length))?;
        let at_once = configuration.is_some_and(|c| c.return_immediately);
        let checked = self.check(caller, request, false)?;
        let mut begun = self.begin(checked).await?;
        let phase = self.wait(&mut begun.phase, at_once).await?;
        if let TurnPhase::Replied(message) = phase {
            return Ok(SendMessageResponse::Message(*message));
        }
        let state = begun.cell.lock(&self.tasks).await?;
        let record = state.record.as_ref().ok_or(OperationError::Internal)?;
        Ok(SendMessageResponse::Task(with_history(&record.task, history)))
    }

    pub(super) async fn send_streaming(
        self: Arc<Self>,
        caller: Caller,
        request: SendMessageRequest,
    ) -> Result<EventStream, OperationError> {
        let checked = self.check(caller, request, true)?;
        let mut begun = self.begin(checked).await?;
        match self.wait(&mut begun.phase, true).await? {
            TurnPhase::Replied(message) => Ok(EventStream::of_message(*message)),
            TurnPhase::Pending | TurnPhase::Open | TurnPhase::Settled | TurnPhase::Lost => {
                let (snapshot, reader) = begun.events.ok_or(OperationError::Internal)?;
                let cancel = self.cancel.clone();
                Ok(EventStream::of_turn(snapshot, reader, begun.cell, cancel))
            }
        }
    }

    /// Waits for the phase that the caller wants. A stop of the server ends the wait with what there is.
    async fn wait(
        &self,
        phases: &mut watch::Receiver<TurnPhase>,
        at_once: bool,
    ) -> Result<TurnPhase, OperationError> {
        let wanted = |phase: &TurnPhase| match phase {
            TurnPhase::Pending => false,
            TurnPhase::Open => at_once,
            TurnPhase::Settled | TurnPhase::Replied(_) | TurnPhase::Lost => true,
        };
        let reached = match self.cancel.run_until_cancelled(phases.wait_for(wanted)).await {
            Some(reached) => Some(reached.map_err(|_| OperationError::Internal)?.clone()),
            None => None,
        };
        let reached = reached.unwrap_or_else(|| phases.borrow().clone());
        match reached {
            TurnPhase::Pending | TurnPhase::Lost if self.cancel.is_cancelled() => {
                Err(OperationError::ShuttingDown)
            }
            TurnPhase::Lost => Err(OperationError::Internal),
            phase => Ok(phase),
        }
    }

    fn check(
        &self,
        caller: Caller,
        request: SendMessageRequest,
        streams: bool,
    ) -> Result<Checked, OperationError> {
        let message = request.message;
        if message.role != Role::User {
            return Err(OperationError::invalid("message.role", "must be ROLE_USER"));
        }
        if message.message_id.as_str().is_empty() {
            return Err(OperationError::invalid("message.messageId", "must not be empty"));
        }
        if message.parts.is_empty() {
            return Err(OperationError::invalid("message.parts", "must not be empty"));
        }
        let hops = hops(request.metadata.as_ref())
            .or_else(|| hops(message.metadata.as_ref()))
            .unwrap_or(0);
        let (modes, push_config) = match request.configuration {
            Some(c) => (c.accepted_output_modes, c.task_push_notification_config),
            None => (Vec::new(), None),
        };
        let push_config = match push_config {
            Some(config) => {
                Some(self.checked_config(config, "configuration.taskPushNotificationConfig")?)
            }
            None => None,
        };
        Ok(Checked {
            caller,
            message,
            hops,
            accepted_output_modes: modes,
            metadata: request.metadata,
            push_config,
            streams,
        })
    }

    async fn begin(self: &Arc<Self>, checked: Checked) -> Result<Begun, OperationError> {
        if self.cancel.is_cancelled() {
            return Err(OperationError::ShuttingDown);
        }
        let permit = Arc::clone(&self.running)
            .try_acquire_owned()
            .map_err(|_| OperationError::Busy { retry_after: Duration::from_secs(1) })?;
        match checked.message.task_id.clone() {
            Some(id) => {
                let cell = self.tasks.cell(&id);
                self.continue_task(cell, checked, permit).await
            }
            None => self.new_task(checked, permit).await,
        }
    }

    async fn new_task(
        self: &Arc<Self>,
        mut checked: Checked,
        permit: OwnedSemaphorePermit,
    ) -> Result<Begun, OperationError> {
        let context_id = match checked.message.context_id.take() {
            Some(id) if is_plain_id(id.as_str()) => id,
            Some(_) => {
                let problem = "must be 1 to 100 letters, digits, - or _";
                return Err(OperationError::invalid("message.contextId", problem));
            }
            None => ContextId::new(self.tasks.chance().uuid().to_string()),
        };
        let cell = self.tasks.fresh_cell();
        let context = (checked.caller.name.clone(), context_id.clone());
        self.tasks.claim(&context, (cell.id.clone(), 1))?;
        checked.message.context_id = Some(context_id.clone());
        checked.message.task_id = Some(cell.id.clone());
        let mut state = cell.lock(&self.tasks).await?;
        state.opening = Some(Opening {
            caller: checked.caller.name.clone(),
            context_id,
            message: checked.message.clone(),
            push_config: checked.push_config.take().map(|config| config.with_task(cell.id.clone())),
        });
        let events = if checked.streams {
            cell.fanout.subscribe().map(|reader| (None, reader))
        } else {
            None
        };
        let place = Place { cell: Arc::clone(&cell), number: 1, context, permit };
        let phase = self.start(&mut state, place, checked, TurnPhase::Pending);
        drop(state);
        Ok(Begun { cell, phase, events })
    }

    async fn continue_task(
        self: &Arc<Self>,
        cell: Arc<TaskCell>,
        mut checked: Checked,
        permit: OwnedSemaphorePermit,
    ) -> Result<Begun, OperationError> {
        let mut state = cell.lock(&self.tasks).await?;
        let max_configs = self.config.push.max_configs;
        let running = state.active.is_some();
        let record = state.record_of(&checked.caller.name)?;
        let context_id = record.task.context_id.clone().ok_or(OperationError::Internal)?;
        if checked.message.context_id.as_ref().is_some_and(|asked| *asked != context_id) {
            let problem = "is not the context of the task";
            return Err(OperationError::invalid("message.contextId", problem));
        }
        let at = &record.task.status.state;
        if at.is_terminal() {
            let reason = format!("the task is {at}, send a new one in its context");
            return Err(OperationError::unsupported(reason));
        }
        if running || !at.is_interrupted() {
            return Err(OperationError::unsupported(
                "context busy, retry when the current task ends",
            ));
        }
        let number = state.last_turn + 1;
        let context = (checked.caller.name.clone(), context_id.clone());
        self.tasks.claim(&context, (cell.id.clone(), number))?;
        checked.message.context_id = Some(context_id);
        checked.message.task_id = Some(cell.id.clone());
        // From here on the context must be given back.
        let began = self.resume(&cell, &mut state, &mut checked, max_configs).await;
        let events = match began {
            Ok(events) => events,
            Err(error) => {
                self.tasks.release(&context, &(cell.id.clone(), number));
                return Err(error);
            }
        };
        let place = Place { cell: Arc::clone(&cell), number, context, permit };
        let phase = self.start(&mut state, place, checked, TurnPhase::Open);
        drop(state);
        Ok(Begun { cell, phase, events })
    }

    /// Puts the task back to work with the new message.
    async fn resume(
        &self,
        cell: &Arc<TaskCell>,
        state: &mut CellState,
        checked: &mut Checked,
        max_configs: usize,
    ) -> Result<Option<(Option<LoggedEvent>, EventReader)>, OperationError> {
        // Before anything changes: a refusal leaves the task as it was.
        let reader = if checked.streams {
            Some(cell.fanout.subscribe().ok_or_else(too_many_streams)?)
        } else {
            None
        };
        let record = state.record_of(&checked.caller.name)?;
        let former = record.push_configs.clone();
        if let Some(config) = checked.push_config.take() {
            super::push_configs::put(record, config, max_configs)?;
        }
        let status = self.tasks.status(TaskState::Working, None);
        let message = checked.message.clone();
        if let Err(error) = cell.change(&self.tasks, state, status, Some(message)).await {
            state.record_of(&checked.caller.name)?.push_configs = former;
            return Err(error.into());
        }
        let Some(mut reader) = reader else { return Ok(None) };
        // The snapshot shows the change already.
        reader.skip_to_end();
        let snapshot = task_event(&state.record_of(&checked.caller.name)?.task);
        Ok(Some((Some(snapshot), reader)))
    }

    /// Starts the executor. The cell's lock is held, so nothing can come between.
    fn start(
        self: &Arc<Self>,
        state: &mut CellState,
        place: Place,
        checked: Checked,
        phase: TurnPhase,
    ) -> watch::Receiver<TurnPhase> {
        let Place { cell, number, context, permit } = place;
        let phases = TurnPhases::new(phase);
        let watched = phases.watch();
        let cancel = self.cancel.child_token();
        let ended = CancellationToken::new();
        state.last_turn = number;
        state.active = Some(ActiveTurn {
            number,
            cancel: cancel.clone(),
            phases: phases.clone(),
            ended: ended.clone(),
        });
        let turn = Turn {
            caller: checked.caller,
            task_id: cell.id.clone(),
            context_id: context.1.clone(),
            message: checked.message,
            task: state.record.as_ref().map(|record| Arc::new(record.task.clone())),
            hops: checked.hops,
            accepted_output_modes: checked.accepted_output_modes,
            metadata: checked.metadata,
        };
        let span = tracing::info_span!("turn", task.id = %cell.id, context.id = %context.1);
        let sink = TaskSink::new(Arc::clone(&self.tasks), cell, number, context, phases);
        let core = Arc::clone(self);
        let running = async move {
            core.run_turn(turn, &sink, cancel).await;
            sink.release();
            ended.cancel();
            drop(permit);
        };
        self.tracker.spawn(running.instrument(span));
        watched
    }
}

fn hops(metadata: Option<&JsonObject>) -> Option<u32> {
    let value = metadata?.get(HOPS_METADATA)?;
    // Peers that keep numbers as doubles send 1.0.
    let whole = value.as_u64().or_else(|| {
        let number = value.as_f64()?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "checked to be whole and in range"
        )]
        let whole =
            (number.fract() == 0.0 && (0.0..1e9).contains(&number)).then_some(number as u64);
        whole
    });
    Some(whole.and_then(|hops| u32::try_from(hops).ok()).unwrap_or(u32::MAX))
}
