//! What callers ask of the registry and what they get.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::oneshot;
use volcanic_a2a_client::{AgentEntry, AgentsFileError, ClientError, RemoteAgent, SavedOutcome};
use volcanic_a2a_types::{ContextId, Part, TaskId};

use crate::record::{WatchSource, WatchState, WatchTarget};
use crate::store::WatchStoreError;

/// A message for a remote agent.
#[derive(Debug, Clone)]
pub struct SendOrder {
    /// The conversation it comes from.
    pub target: WatchTarget,
    /// That conversation's workspace, absolute.
    pub workspace: PathBuf,
    /// The agent's name in that workspace.
    pub agent: String,
    /// The text, the first part of the message; left out when empty.
    pub text: String,
    /// The other parts, attached files.
    pub parts: Vec<Part>,
    /// The context it continues.
    pub context_id: Option<ContextId>,
    /// The task it continues. With it and without `context_id`, the context is looked up.
    pub task_id: Option<TaskId>,
    /// Hops of the run that sends it; the message carries one more.
    pub hops: u32,
    /// The host's handle of the message that started the run.
    pub source_ref: Option<String>,
    /// In a run that a delivery started: the key of what the owner wrote last. So many messages go out without another
    /// word of the owner.
    pub unattended: Option<String>,
}

/// How a send ended for its caller.
#[derive(Debug)]
pub enum SendEnd {
    /// The agent answered with a message and made no task.
    Replied {
        /// Its context.
        context_id: Option<ContextId>,
        /// Its text, files and links; it has no task.
        reply: SavedOutcome,
        /// To be confirmed once the result is on disk.
        settle: SettleTicket,
    },
    /// The task settled in time.
    Settled {
        /// What came of it.
        outcome: SavedOutcome,
        /// To be confirmed once the result is on disk; `None` when the conversation knows this state already.
        settle: Option<SettleTicket>,
    },
    /// The task goes on; its outcome will be delivered.
    HandedOver {
        /// The task.
        task_id: TaskId,
        /// Its context.
        context_id: Option<ContextId>,
        /// The label of the state it was seen in last.
        state: String,
    },
    /// The caller gave up waiting. The send goes on, and whatever comes of it will be delivered.
    Left,
}

/// Why a send failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The agent is not usable from this workspace, or refused; nothing is left behind.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// The agent works on another task in that context, which this conversation watches.
    #[error("agent \"{agent}\" is busy with task {task_id} in that context")]
    ContextBusy {
        /// The agent.
        agent: String,
        /// The watched task.
        task_id: TaskId,
    },
    /// Another call of this conversation has the task in its hands.
    #[error("another call is dealing with task {task_id} just now")]
    TaskBusy {
        /// The task.
        task_id: TaskId,
    },
    /// The message may have reached the agent, and nobody can say what became of it.
    #[error("agent \"{agent}\" may or may not have received the message: {reason}")]
    Unknown {
        /// The agent.
        agent: String,
        /// Why the outcome is not known, readable.
        reason: String,
        /// To be confirmed once the result is on disk.
        settle: SettleTicket,
    },
    /// As many messages as may went out from delivered runs without a word of the owner; this one did not.
    #[error("{limit} messages to agents went out since the user wrote last")]
    Unattended {
        /// How many may.
        limit: u32,
    },
    /// The send could not be kept, so it did not leave.
    #[error("failed to keep the message before sending it")]
    Store(#[from] WatchStoreError),
    /// The registry has stopped.
    #[error("the watch registry has stopped")]
    Stopped,
}

/// Why an agent could not be asked, or how it refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// The workspace's `agents.json` has no such agent.
    #[error("unknown agent \"{agent}\"")]
    Unknown {
        /// The name asked for.
        agent: String,
        /// The names it has.
        known: Vec<String>,
    },
    /// The agent's entry in the workspace's `agents.json` cannot be used; somebody may be editing it.
    #[error("the entry of agent \"{agent}\" in agents.json cannot be used: {reason}")]
    Skipped {
        /// The name asked for.
        agent: String,
        /// Everything that is wrong with the entry, for people to read.
        reason: String,
    },
    /// The agent's entry points to another server than the one where the task runs; nothing was asked there.
    #[error(
        "the entry of agent \"{agent}\" in agents.json points to another server than {origin}, where the task runs"
    )]
    Moved {
        /// The agent.
        agent: String,
        /// Where the task runs.
        origin: String,
    },
    /// The workspace's `agents.json` cannot be read.
    #[error("{0}")]
    File(#[source] AgentsFileError),
    /// The agent could not be reached or refused; the text is for the reader.
    #[error("{0}")]
    Client(#[source] ClientError),
}

/// The agents of a workspace, asked just now.
#[derive(Debug)]
pub struct AgentsReport {
    /// The usable entries in the file's order.
    pub agents: Vec<AgentReport>,
    /// Why each other entry was left out, for people to read.
    pub skipped: Vec<String>,
    /// What looks like a mistake in the usable ones, for people to read.
    pub warnings: Vec<String>,
}

/// One agent of a workspace.
#[derive(Debug)]
pub struct AgentReport {
    /// Its entry.
    pub entry: AgentEntry,
    /// The agent with a fresh card, or why it is out of reach.
    pub remote: Result<RemoteAgent, ClientError>,
}

/// Why the agents of a workspace could not be asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentsError {
    /// The workspace's `agents.json` cannot be read.
    #[error("{0}")]
    File(#[source] AgentsFileError),
    /// The registry has stopped.
    #[error("the watch registry has stopped")]
    Stopped,
}

/// Names a task for `status` and `cancel`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskQuery {
    /// The conversation that asks.
    pub target: WatchTarget,
    /// That conversation's workspace, absolute.
    pub workspace: PathBuf,
    /// The agent's name in that workspace.
    pub agent: String,
    /// The task.
    pub task_id: TaskId,
}

/// Where a task stands.
#[derive(Debug)]
pub struct TaskReport {
    /// The task as the agent tells it, settled or not.
    pub outcome: SavedOutcome,
    /// To be confirmed once the result is on disk; `None` when no watch's outcome is told by it.
    pub settle: Option<SettleTicket>,
    /// Whether the task is settled.
    pub settled: bool,
    /// Whether this conversation goes on watching the task.
    pub watched: bool,
    /// How the agent refused to cancel; always `None` for `status`.
    pub refused: Option<String>,
}

/// Why a task could not be asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TaskError {
    /// The agent is not usable, could not be reached or refused.
    #[error("{source}")]
    Agent {
        /// The reason.
        source: AgentError,
        /// Whether this conversation goes on watching the task.
        watched: bool,
    },
    /// Another call of this conversation has the task in its hands.
    #[error("another call is dealing with task {task_id} just now")]
    Busy {
        /// The task.
        task_id: TaskId,
    },
    /// The registry has stopped.
    #[error("the watch registry has stopped")]
    Stopped,
}

/// The right to tell an outcome.
///
/// Whoever holds it puts the outcome into the conversation under [`SettleTicket::delivery_key`] and then confirms. A ticket
/// that is dropped instead, or lost in a crash, makes the registry deliver the outcome itself under the same key: the
/// conversation has it once either way.
pub struct SettleTicket {
    delivery_key: String,
    confirm: oneshot::Sender<()>,
    /// Dropped when the ticket's time is over, before the holder goes on: the registry learns the rest a moment later.
    telling: Arc<()>,
}

impl SettleTicket {
    pub(crate) fn new(delivery_key: String) -> (Self, oneshot::Receiver<()>) {
        let (confirm, confirmed) = oneshot::channel();
        (Self { delivery_key, confirm, telling: Arc::default() }, confirmed)
    }

    pub(crate) fn telling(&self) -> Weak<()> {
        Arc::downgrade(&self.telling)
    }

    /// The key the outcome must be committed under.
    pub fn delivery_key(&self) -> &str {
        &self.delivery_key
    }

    /// Says that the outcome is in the conversation, on disk.
    pub fn confirm(self) {
        // A registry that has stopped finds out at its next start.
        let _ = self.confirm.send(());
    }
}

impl fmt::Debug for SettleTicket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SettleTicket")
            .field("delivery_key", &self.delivery_key)
            .finish_non_exhaustive()
    }
}

/// A watch as people see it.
#[derive(Debug, Clone, PartialEq)]
pub struct WatchView {
    /// The conversation.
    pub target: WatchTarget,
    /// The agent's name.
    pub agent: String,
    /// The task.
    pub task_id: TaskId,
    /// Its context, once known.
    pub context_id: Option<ContextId>,
    /// How it learns about changes.
    pub source: WatchSource,
    /// Where it stands.
    pub state: WatchState,
    /// How long it has been going on.
    pub age: Duration,
    /// When it is checked next; `None` while it is being checked or somebody waits for it.
    pub next_check_at: Option<Timestamp>,
    /// How long until then.
    pub next_check_in: Option<Duration>,
    /// What the last check found, a state label or a reason.
    pub last_seen: Option<String>,
    /// Failed checks in a row.
    pub failures: u32,
}
