//! What is played with each agent: the rows of the matrix.

use std::{fmt, time::Duration};

use super::{actor::Player, peer::Column};

/// A scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Scenario {
    /// Cards and skills.
    List,
    /// A task that is done at once.
    Send,
    /// A file there, and another one back.
    Files,
    /// Links and data.
    Parts,
    /// A question, and its answer on the same task.
    Question,
    /// A task that fails.
    Failed,
    /// A task that is refused.
    Rejected,
    /// A long task, and how it stands meanwhile.
    SlowThenStatus,
    /// A task that is canceled.
    Cancel,
    /// A task that is over when it is to be canceled.
    CancelTooLate,
    /// An agent that streams, while its task is waited for.
    Streaming,
    /// An agent that does not stream.
    NotStreaming,
    /// A message whose answer is the stream.
    StreamedSend,
    /// A task that is followed by itself.
    Subscribe,
    /// A stream that breaks off.
    StreamCut,
    /// A key that is right, and one that is wrong.
    WrongKey,
    /// An agent that cannot be reached for a while.
    AgentDown,
    /// An agent that keeps its caller waiting whatever that asked for.
    HoldsBack,
    /// The tasks of an agent.
    ListTasks,
    /// The webhooks of a task.
    PushConfigs,
    /// A long task whose result is found by polling.
    Polled,
    /// A long task whose result is announced by a stream.
    Streamed,
    /// A long task whose result is announced by a push.
    Pushed,
}

/// A row of the matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Row {
    pub(super) scenario: Scenario,
    pub(super) player: Player,
}

impl Row {
    /// All of them, in the order of the matrix.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        Scenario::ALL.into_iter().flat_map(|scenario| {
            [Player::Tool, Player::CommandLine].map(|player| Self { scenario, player })
        })
    }

    /// Whether there is a column to play it in.
    pub(super) fn is_played(self) -> bool {
        Column::ALL.into_iter().any(|column| self.not_applicable(column).is_none())
    }

    /// Why there is nothing to play in a column, if so.
    pub(super) fn not_applicable(self, column: Column) -> Option<&'static str> {
        match (self.scenario, self.player) {
            (Scenario::StreamedSend | Scenario::Subscribe, Player::Tool) => Some(
                "the tool has no action that streams: a dropped stream would end the work on some servers",
            ),
            (Scenario::ListTasks, Player::Tool) => Some("the tool has no action that lists tasks"),
            (Scenario::PushConfigs, Player::Tool) => {
                Some("the tool has no action for webhooks; its watches make them, see pushed")
            }
            (Scenario::Polled | Scenario::Streamed | Scenario::Pushed, Player::CommandLine) => {
                Some("the command line follows nothing after it has ended")
            }
            (Scenario::ListTasks, Player::CommandLine) if column == Column::Python03Rpc => {
                Some("A2A 0.3 has no ListTasks over JSON-RPC")
            }
            _ => None,
        }
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.scenario.name(), self.player)
    }
}

impl Scenario {
    const ALL: [Self; 23] = [
        Self::List,
        Self::Send,
        Self::Files,
        Self::Parts,
        Self::Question,
        Self::Failed,
        Self::Rejected,
        Self::SlowThenStatus,
        Self::Cancel,
        Self::CancelTooLate,
        Self::Streaming,
        Self::NotStreaming,
        Self::StreamedSend,
        Self::Subscribe,
        Self::StreamCut,
        Self::WrongKey,
        Self::AgentDown,
        Self::HoldsBack,
        Self::ListTasks,
        Self::PushConfigs,
        Self::Polled,
        Self::Streamed,
        Self::Pushed,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::Send => "send",
            Self::Files => "files both ways",
            Self::Parts => "URL and data parts",
            Self::Question => "question and answer",
            Self::Failed => "failed",
            Self::Rejected => "rejected",
            Self::SlowThenStatus => "slow, then status",
            Self::Cancel => "cancel",
            Self::CancelTooLate => "cancel too late",
            Self::Streaming => "streaming",
            Self::NotStreaming => "not streaming",
            Self::StreamedSend => "streamed send",
            Self::Subscribe => "subscribe",
            Self::StreamCut => "stream cut",
            Self::WrongKey => "wrong key",
            Self::AgentDown => "agent down",
            Self::HoldsBack => "ignores returnImmediately",
            Self::ListTasks => "list tasks",
            Self::PushConfigs => "push configs",
            Self::Polled => "result by poll",
            Self::Streamed => "result by stream",
            Self::Pushed => "result by push",
        }
    }

    /// Which of the peer's agents it is played with.
    pub(super) fn kind(self) -> &'static str {
        match self {
            Self::WrongKey => "keyed",
            Self::NotStreaming => "still",
            // There a result does not come by itself before it is asked for.
            Self::SlowThenStatus | Self::AgentDown | Self::Polled => "quiet",
            _ => "open",
        }
    }

    /// How long an outcome is waited for before the task is handed over or left.
    pub(super) fn wait(self) -> Duration {
        match self {
            Self::SlowThenStatus
            | Self::Cancel
            | Self::AgentDown
            | Self::PushConfigs
            | Self::Polled
            | Self::Streamed
            | Self::Pushed => Duration::from_secs(1),
            _ => Duration::from_secs(20),
        }
    }

    /// What the report of a broken peer must say: that the check failed which the breakage is about, and no other.
    pub(super) fn fault_when_broken(self) -> &'static str {
        match self {
            Self::List => "did not show the skill",
            Self::Send | Self::SlowThenStatus | Self::StreamCut | Self::AgentDown => {
                "did not show the answer"
            }
            Self::Files => "the file holds \"not what was asked\"",
            Self::Parts => "did not show the data",
            Self::Question => "did not show a task that is input-required",
            Self::Failed => "did not show a task that is failed",
            Self::Rejected => "did not show a task that is rejected",
            Self::Cancel => "did not show a task that is canceled",
            Self::CancelTooLate => "did not show the refusal",
            Self::Streaming | Self::StreamedSend | Self::Subscribe => {
                "the stream did not bring the steps one by one"
            }
            Self::NotStreaming => "it was subscribed to",
            Self::WrongKey => "did not show that the key was rejected",
            Self::HoldsBack => "the agent answered before the task had ended",
            Self::ListTasks => "did not show the other task",
            Self::PushConfigs => "the webhook is still there",
            Self::Polled | Self::Streamed => "did not bring the result",
            Self::Pushed => "no result was pushed",
        }
    }
}
