//! Where on the path a state stands.

use std::fmt;

/// What can be under way when the process is killed, in the order of the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    /// A prompt of the owner is in the queue.
    Prompt,
    /// The message is on disk and has not left.
    SendIntent,
    /// The message is with the agent; its answer is not on disk.
    AnswerInFlight,
    /// The task is known and the turn waits for it.
    AttendedWait,
    /// A watch follows a task that is not over.
    Watching,
    /// The task is over at its agent; the outcome is not on disk.
    Claim,
    /// The outcome is on disk, not yet in the conversation.
    Accept,
    /// The outcome is in the conversation; its watch does not know.
    Settle,
    /// `pending.json` is being replaced.
    View,
    /// A delivered outcome is in the queue.
    Delivered,
    /// A run of the owner's prompt was going on.
    Run,
    /// A run that an outcome started was going on.
    ResultRun,
    /// An answer is committed and not shown.
    Answer,
}

impl Phase {
    pub(super) const ALL: [Self; 13] = [
        Self::Prompt,
        Self::SendIntent,
        Self::AnswerInFlight,
        Self::AttendedWait,
        Self::Watching,
        Self::Claim,
        Self::Accept,
        Self::Settle,
        Self::View,
        Self::Delivered,
        Self::Run,
        Self::ResultRun,
        Self::Answer,
    ];

    /// Those in which a run proves nothing without enough kills.
    pub(super) const ASKED_FOR: [Self; 8] = [
        Self::SendIntent,
        Self::AnswerInFlight,
        Self::AttendedWait,
        Self::Watching,
        Self::Claim,
        Self::Accept,
        Self::Settle,
        Self::View,
    ];

    /// Finds in the database what stands in this phase. What is about the agent as well is told apart by what it has:
    /// see [`super::judge::Judge::standing`]. The replacing of the view is not in the database.
    pub(super) fn query(self) -> Option<&'static str> {
        Some(match self {
            Self::SendIntent | Self::AnswerInFlight => {
                "SELECT message_id FROM sends WHERE state = 'sending' AND end_reason IS NULL"
            }
            Self::AttendedWait => "SELECT task_id FROM watches WHERE state = 'attended'",
            Self::Watching => "SELECT task_id FROM watches WHERE state = 'watching'",
            Self::Claim => "SELECT task_id FROM watches WHERE state IN ('attended', 'watching')",
            Self::Accept => {
                "SELECT w.task_id FROM watches w WHERE w.state = 'claimed' AND NOT EXISTS (
                     SELECT 1 FROM inbound i WHERE i.target = w.target AND i.key = w.delivery_key)"
            }
            Self::Settle => {
                "SELECT w.task_id FROM watches w WHERE w.state <> 'done' AND EXISTS (
                     SELECT 1 FROM inbound i WHERE i.target = w.target AND i.key LIKE 'a2a:' || w.id || ':%')"
            }
            Self::Delivered => {
                "SELECT key FROM inbound WHERE consumed_by IS NULL AND origin = 'delivery'"
            }
            Self::Prompt => "SELECT key FROM inbound WHERE consumed_by IS NULL AND origin = 'owner'",
            Self::Run | Self::ResultRun => {
                "SELECT json_extract(u.body, '$.key') FROM entries u JOIN entries e ON e.target = u.target
                 WHERE e.ends_run = 0 AND e.seq = (SELECT max(seq) FROM entries l WHERE l.target = e.target)
                 AND u.seq = (SELECT max(seq) FROM entries p WHERE p.target = e.target
                              AND json_extract(p.body, '$.kind') = 'user')"
            }
            Self::Answer => "SELECT key FROM outbox WHERE state IN ('queued', 'sending')",
            Self::View => return None,
        })
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Prompt => "prompt in the queue",
            Self::SendIntent => "send intent: on disk, not with the agent",
            Self::AnswerInFlight => "answer in flight: with the agent, not known here",
            Self::AttendedWait => "attended wait",
            Self::Watching => "watching",
            Self::Claim => "claim: over at the agent, outcome not on disk",
            Self::Accept => "accept: outcome on disk, not in the conversation",
            Self::Settle => "settle: in the conversation, watch not ended",
            Self::View => "view: pending.json is being replaced",
            Self::Delivered => "outcome in the queue",
            Self::Run => "run of the owner",
            Self::ResultRun => "run that an outcome started",
            Self::Answer => "answer committed, not shown",
        })
    }
}
