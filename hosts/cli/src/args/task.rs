//! What can be asked about tasks.

use std::time::Duration;

use clap::{Args, ValueEnum};
use volcanic_a2a_types::{TaskState, WireTimestamp};

use super::{AgentArgs, duration, id, pause};

/// A task of an agent.
#[derive(Debug, Clone, Args)]
pub struct TaskArgs {
    #[command(flatten)]
    #[expect(missing_docs, reason = "described where it is defined")]
    pub at: AgentArgs,
    /// The task's id.
    #[arg(value_parser = id)]
    pub task: String,
}

/// `volcanic status`.
#[derive(Debug, Args)]
pub struct StatusArgs {
    #[command(flatten)]
    #[expect(missing_docs, reason = "described where it is defined")]
    pub of: TaskArgs,
    /// Wait this long for the outcome instead of answering at once, e.g. 90s or 10m.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub wait: Option<Duration>,
    /// Also ask for this many messages of the task's history, and show them.
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    pub history: u32,
    /// The pause between two questions while waiting for an agent that does not stream [default: from 1s, growing].
    #[arg(long, value_name = "TIME", value_parser = pause)]
    pub poll_interval: Option<Duration>,
}

/// `volcanic tasks`.
#[derive(Debug, Args)]
pub struct TasksArgs {
    #[command(flatten)]
    #[expect(missing_docs, reason = "described where it is defined")]
    pub of: AgentArgs,
    /// Only tasks of this conversation.
    #[arg(long, value_name = "ID", value_parser = id)]
    pub context: Option<String>,
    /// Only tasks in this state.
    #[arg(long, value_name = "STATE", value_enum)]
    pub status: Option<StateName>,
    /// Only tasks whose status is of this moment or later, e.g. 2026-11-30T08:00:00Z.
    #[arg(long, value_name = "MOMENT", value_parser = moment)]
    pub since: Option<WireTimestamp>,
    /// How many tasks a page has, 1 to 100 [default: the agent's].
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(i32).range(1..=100))]
    pub page_size: Option<i32>,
    /// Begin where another page ended.
    #[arg(long, value_name = "TOKEN", allow_hyphen_values = true)]
    pub page_token: Option<String>,
    /// Go on to the last page; 100 pages at most.
    #[arg(long)]
    pub all: bool,
    /// Also ask for this many messages of each history; they are in the JSON.
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    pub history: u32,
    /// Also ask for what the tasks have brought forth; it is in the JSON.
    #[arg(long)]
    pub artifacts: bool,
}

/// `volcanic subscribe`.
#[derive(Debug, Args)]
pub struct SubscribeArgs {
    #[command(flatten)]
    #[expect(missing_docs, reason = "described where it is defined")]
    pub of: TaskArgs,
    /// Listen this long at most, e.g. 90s or 10m.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub timeout: Option<Duration>,
}

/// `volcanic watch`.
#[derive(Debug, Args)]
pub struct WatchArgs {
    #[command(flatten)]
    #[expect(missing_docs, reason = "described where it is defined")]
    pub of: TaskArgs,
    /// Follow it this long at most, e.g. 90s or 10m [default: `A2AClient__WatchTimeout`, a day].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub timeout: Option<Duration>,
    /// The pause between two questions where the agent does not stream [default: from 1s, growing].
    #[arg(long, value_name = "TIME", value_parser = pause)]
    pub poll_interval: Option<Duration>,
}

/// A state, as it is spelt on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "the names say it")]
pub enum StateName {
    Submitted,
    Working,
    Completed,
    Failed,
    Canceled,
    Rejected,
    InputRequired,
    AuthRequired,
}

impl From<StateName> for TaskState {
    fn from(name: StateName) -> Self {
        match name {
            StateName::Submitted => Self::Submitted,
            StateName::Working => Self::Working,
            StateName::Completed => Self::Completed,
            StateName::Failed => Self::Failed,
            StateName::Canceled => Self::Canceled,
            StateName::Rejected => Self::Rejected,
            StateName::InputRequired => Self::InputRequired,
            StateName::AuthRequired => Self::AuthRequired,
        }
    }
}

fn moment(text: &str) -> Result<WireTimestamp, String> {
    text.parse().map_err(|_| "a moment is written like 2026-11-30T08:00:00Z".to_owned())
}
