//! Where on the path a state stands.

use std::fmt;

/// What can be under way when the process is killed, in the order of the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    /// The message is on disk, its answer is not.
    SendInFlight,
    /// The task is known and the turn waits for it.
    AttendedWait,
    /// The outcome is on disk, not yet in the conversation.
    Claimed,
    /// The outcome is in the conversation's queue.
    AcceptedDelivery,
    /// A prompt of the owner is in the queue.
    AcceptedPrompt,
    /// A run was going on.
    Run,
    /// An answer is committed and not shown.
    Answer,
    /// A watch follows a task.
    Watching,
    /// Nothing was open.
    AtRest,
}

impl Phase {
    /// All of them.
    pub(super) const ALL: [Self; 9] = [
        Self::SendInFlight,
        Self::AttendedWait,
        Self::Claimed,
        Self::AcceptedDelivery,
        Self::AcceptedPrompt,
        Self::Run,
        Self::Answer,
        Self::Watching,
        Self::AtRest,
    ];

    /// Finds what stands in this phase; nothing does at rest.
    pub(super) fn query(self) -> Option<&'static str> {
        Some(match self {
            Self::SendInFlight => "SELECT message_id FROM sends WHERE state = 'sending'",
            Self::AttendedWait => "SELECT task_id FROM watches WHERE state = 'attended'",
            Self::Claimed => "SELECT task_id FROM watches WHERE state = 'claimed'",
            Self::AcceptedDelivery => {
                "SELECT key FROM inbound WHERE consumed_by IS NULL AND origin = 'delivery'"
            }
            Self::AcceptedPrompt => {
                "SELECT key FROM inbound WHERE consumed_by IS NULL AND origin = 'owner'"
            }
            Self::Run => {
                "SELECT e.target FROM entries e WHERE e.ends_run = 0
                 AND e.seq = (SELECT max(seq) FROM entries l WHERE l.target = e.target)"
            }
            Self::Answer => "SELECT key FROM outbox WHERE state IN ('queued', 'sending')",
            Self::Watching => "SELECT task_id FROM watches WHERE state = 'watching'",
            Self::AtRest => return None,
        })
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SendInFlight => "send on disk, answer in flight",
            Self::AttendedWait => "attended wait",
            Self::Claimed => "claimed, not delivered",
            Self::AcceptedDelivery => "delivery accepted, not consumed",
            Self::AcceptedPrompt => "prompt accepted, not consumed",
            Self::Run => "run under way",
            Self::Answer => "answer committed, not shown",
            Self::Watching => "watching",
            Self::AtRest => "at rest",
        })
    }
}
