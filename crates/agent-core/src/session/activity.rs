//! What a session tells about itself while it works.

use std::time::Duration;

use jiff::Timestamp;

use crate::prompt::{Origin, PromptKey};

/// Something that happened in a session.
///
/// What an event speaks of is on disk before it is sent, but for the deltas. A reader that lags loses the oldest events;
/// answers are never lost that way, they are in the outbox.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionEvent {
    /// A run began, or was taken up again after a restart.
    RunStarted {
        /// Its prompt.
        key: PromptKey,
        /// Who wrote the prompt.
        origin: Origin,
    },
    /// More text of the reply that is being written. It may yet turn out to be part of a failed attempt.
    TextDelta {
        /// The new text.
        text: String,
    },
    /// A tool call began.
    ToolStarted {
        /// The tool.
        name: String,
        /// Its arguments in one short line.
        summary: String,
    },
    /// A tool call ended.
    ToolEnded {
        /// The tool.
        name: String,
        /// Whether it failed.
        is_error: bool,
    },
    /// A request failed and will be tried again.
    Retrying {
        /// The number of the coming attempt, from 2.
        attempt: u32,
        /// The pause before it.
        wait: Duration,
        /// Why the last one failed.
        reason: String,
    },
    /// A run ended with an answer.
    Answered {
        /// Its prompt.
        key: PromptKey,
        /// The text shown.
        text: String,
    },
    /// A run failed for good, or the store did.
    RunFailed {
        /// The readable reason.
        reason: String,
    },
    /// The owner stopped a run.
    RunAborted {
        /// Its prompt.
        key: PromptKey,
    },
    /// There is something new in the outbox.
    OutboxReady,
    /// Nothing is left to do.
    Idle,
}

/// What a session is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionStatus {
    /// The run that is going on.
    pub running: Option<RunStatus>,
    /// How many prompts wait behind it.
    pub waiting: usize,
}

/// A run that is going on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunStatus {
    /// Its prompt.
    pub key: PromptKey,
    /// Who wrote the prompt.
    pub origin: Origin,
    /// When it began in this process.
    pub started_at: Timestamp,
    /// What it is busy with.
    pub activity: SessionActivity,
}

/// What a run is busy with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionActivity {
    /// The model writes.
    Model,
    /// Tools run.
    Tools {
        /// Their names, in the order of the calls.
        names: Vec<String>,
    },
    /// A failed request waits for its next attempt.
    Retry,
}

/// The state that handles and actor share: who asked, how far it got, what runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Gauge {
    /// How often the session was asked to look for work.
    pub(super) asked: u64,
    /// The value of `asked` that the last look which found nothing had seen.
    pub(super) settled: u64,
    pub(super) busy: bool,
    pub(super) running: Option<RunStatus>,
    pub(super) closed: bool,
}

impl Gauge {
    /// A session that has yet to take its first look.
    pub(super) fn starting() -> Self {
        Self { asked: 1, settled: 0, busy: false, running: None, closed: false }
    }

    /// Whether everything that was asked for before now is done.
    pub(super) fn is_idle(&self) -> bool {
        self.closed || (!self.busy && self.settled == self.asked)
    }
}
