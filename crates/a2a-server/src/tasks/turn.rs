//! One turn of a task: what begins it, and how far it has come.

use std::sync::Arc;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use volcanic_a2a_types::{ContextId, Message, TaskPushNotificationConfig};

/// What a task that does not exist yet will begin with.
#[derive(Debug)]
pub(crate) struct Opening {
    pub(crate) caller: String,
    pub(crate) context_id: ContextId,
    pub(crate) message: Message,
    pub(crate) push_config: Option<TaskPushNotificationConfig>,
}

/// The turn that works on a task.
#[derive(Debug)]
pub(crate) struct ActiveTurn {
    pub(crate) number: u64,
    pub(crate) cancel: CancellationToken,
    pub(crate) phases: TurnPhases,
    /// Fires when the executor has returned or was dropped.
    pub(crate) ended: CancellationToken,
}

/// How far a turn has come.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TurnPhase {
    /// The agent has not said yet whether there is a task.
    Pending,
    /// There is a task, being worked on.
    Open,
    /// The task has ended or waits for somebody.
    Settled,
    /// The agent answered with a message and no task.
    Replied(Box<Message>),
    /// The turn ended and left no task, because the server stops or could not keep it.
    Lost,
}

/// The phase of a turn, for all who wait for it. It only moves forward.
#[derive(Debug, Clone)]
pub(crate) struct TurnPhases(Arc<watch::Sender<TurnPhase>>);

impl TurnPhases {
    pub(crate) fn new(phase: TurnPhase) -> Self {
        Self(Arc::new(watch::Sender::new(phase)))
    }

    pub(crate) fn watch(&self) -> watch::Receiver<TurnPhase> {
        self.0.subscribe()
    }

    pub(crate) fn advance(&self, next: TurnPhase) {
        self.0.send_if_modified(|phase| {
            let forward = match (&*phase, &next) {
                (TurnPhase::Pending, TurnPhase::Pending)
                | (TurnPhase::Open, TurnPhase::Pending | TurnPhase::Open | TurnPhase::Replied(_))
                | (TurnPhase::Settled | TurnPhase::Replied(_) | TurnPhase::Lost, _) => false,
                (TurnPhase::Pending | TurnPhase::Open, _) => true,
            };
            if forward {
                *phase = next;
            }
            forward
        });
    }
}
