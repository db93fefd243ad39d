//! What a watch is told and what it asks for.

use std::time::Duration;

use volcanic_a2a_types::{ContextId, MessageId};
use volcanic_base::Secret;

use super::SettledState;

/// What the registry tells a watch.
#[derive(Debug)]
pub(crate) enum WatchEvent {
    /// The timer rang.
    Due,
    /// A push with the right token arrived, or the stream tells that the task may have settled.
    Hinted(Hint),
    /// The read ended.
    Read(ReadResult),
    /// The write ended.
    Written,
    /// The write failed.
    WriteFailed,
    /// The push config was accepted by the remote.
    Registered,
    /// The remote takes no push config.
    NotRegistered,
    /// The text is in the conversation.
    Delivered,
    /// The conversation is not known now.
    NotNow,
    /// The delivery failed for a reason that passes.
    DeliverFailed,
    /// The conversation is known again.
    Flush,
    /// A caller takes the watch for itself: nothing is read or delivered until it lets go.
    Hold,
    /// The caller lets go without the outcome.
    Release {
        /// What a push is to carry, when somebody listens for pushes.
        push_token: Option<Secret>,
        /// Whether the caller saw a hint that the task settled.
        hinted: bool,
    },
    /// The outcome that the caller got is on disk.
    Confirmed {
        /// What was told.
        state: SettledState,
        /// What a push is to carry, should the watch go on.
        push_token: Option<Secret>,
    },
    /// The caller that holds the watch sent another message to the task.
    Continued(Continuation),
    /// Somebody who does not hold the watch sent another message to the task.
    ContinuedBeside {
        /// [`crate::WatchRecord::continuations`] with it.
        continuations: u32,
        /// How the question stood that it answers, if it answers one.
        answered: Option<String>,
    },
    /// A send led to the task, and follows it by a watch of its own: this one did not know where it runs.
    Superseded,
    /// A call that the watch waits for had not begun and is taken back.
    Withdrawn,
    /// The stream that was asked for is open.
    StreamOpened,
    /// The stream that was asked for cannot be had now.
    StreamFailed,
    /// The stream that was open ended, or broke.
    StreamEnded,
    /// The agent has no streams.
    NoStreams,
    /// There are as many streams as there may be.
    NoPlace,
    /// There may be one stream more.
    Place,
}

/// What makes a watch read its task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hint {
    /// A push.
    Push,
    /// An event of the stream that is open.
    Stream,
    /// A stream was opened, ended or cannot be had: what came before or after it was missed.
    Gap,
    /// The pause between two reads is over.
    Poll,
    /// The slow read beside pushes is due.
    SafetyRead,
    /// The registry begins to follow the task, or does so again.
    Begin,
}

impl Hint {
    /// The name it is logged under.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Push => "push",
            Self::Stream => "stream",
            Self::Gap => "gap",
            Self::Poll => "poll",
            Self::SafetyRead => "safety-read",
            Self::Begin => "begin",
        }
    }
}

/// Another message to a watched task.
#[derive(Debug, Clone)]
pub(crate) struct Continuation {
    /// The message.
    pub(crate) message_id: MessageId,
    /// Hops of the run that sent it.
    pub(crate) hops: u32,
    /// The host's handle of the message that started that run.
    pub(crate) source_ref: Option<String>,
    /// How the question stood that it answers, if it answers one.
    pub(crate) answered: Option<String>,
}

/// How a read of the remote task ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ReadResult {
    /// Nothing to tell.
    Unsettled {
        /// The state's label.
        label: String,
        /// The task's context.
        context_id: Option<ContextId>,
    },
    /// Something to tell; the files are saved.
    Settled {
        /// The state.
        state: SettledState,
        /// The framed text.
        text: String,
        /// The task's context.
        context_id: Option<ContextId>,
    },
    /// As `Settled`, but files could not be saved for a reason that may pass.
    Unsaved {
        /// The state.
        state: SettledState,
        /// The framed text, which names the files that are missing.
        text: String,
        /// The task's context.
        context_id: Option<ContextId>,
        /// The readable reason.
        reason: String,
    },
    /// The outcome that was told last, and nothing new.
    ToldBefore {
        /// The state.
        state: SettledState,
        /// The task's context.
        context_id: Option<ContextId>,
    },
    /// No answer that counts.
    Failed {
        /// The readable reason.
        reason: String,
        /// How long the remote asks to wait.
        retry_after: Option<Duration>,
    },
    /// The remote says that it does not know the task.
    NotFound,
    /// The workspace's file has no such agent.
    AgentMissing,
    /// The workspace's file cannot be read as such.
    AgentsFileBad {
        /// The readable reason.
        reason: String,
    },
    /// The agent's entry points to another origin now.
    OriginMoved,
    /// Where an imported task runs was not known; its agent's entry tells.
    OriginKnown {
        /// The origin.
        origin: String,
    },
    /// Another watch of the conversation follows the same task.
    FollowedElsewhere,
}

impl ReadResult {
    /// Whether the agent itself said something about the task.
    pub(super) fn is_of_the_agent(&self) -> bool {
        match self {
            Self::Unsettled { .. }
            | Self::Settled { .. }
            | Self::Unsaved { .. }
            | Self::ToldBefore { .. }
            | Self::NotFound => true,
            Self::Failed { .. }
            | Self::AgentMissing
            | Self::AgentsFileBad { .. }
            | Self::OriginMoved
            | Self::OriginKnown { .. }
            | Self::FollowedElsewhere => false,
        }
    }
}

/// What the registry does for a watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WatchEffect {
    /// Set the watch's timer, in place of an earlier one.
    Wait(Duration),
    /// Read the task.
    Read,
    /// Open a stream, in place of one that is held.
    Subscribe,
    /// Write the record under its epoch.
    Write,
    /// Give the remote a push config.
    Register,
    /// Hand the text to the conversation.
    Deliver,
    /// The holder's continuation is on disk: wait for the task.
    Attend,
    /// The watch is over and its tombstone on disk.
    End,
}
