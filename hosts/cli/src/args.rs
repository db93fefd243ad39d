//! The command line: what can be said, with help and examples.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand};
use volcanic_base::parse_duration;

/// A personal assistant that hands work to other agents and brings the outcome back.
#[derive(Debug, Parser)]
#[command(name = "volcanic", version, after_help = EXAMPLES)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "Examples:
  volcanic demo                                  see everything happen, without a token or a key
  volcanic chat --model openai:gpt-5             talk to the assistant (OPENAI_API_KEY is set)
  volcanic agents                                who may be called from this folder
  volcanic send travel-bot 'Rome in May' --wait 2m
  volcanic send http://localhost:5099/ hello     an agent by its address";

/// A command.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Talk to the assistant; results of long tasks arrive by themselves.
    Chat(ChatArgs),
    /// List the agents of the workspace with what their cards say.
    Agents(AgentsArgs),
    /// Send a message to an agent and wait for the outcome.
    Send(SendArgs),
    /// Ask an agent about a task.
    Status(StatusArgs),
    /// Ask an agent to cancel a task.
    Cancel(TaskArgs),
    /// Show the tasks that the assistant of this workspace follows.
    Watches(WatchesArgs),
    /// Be a remote agent.
    Serve(ServeArgs),
    /// Show everything on this machine: a remote agent, an assistant, and a crash in between.
    Demo(DemoArgs),
}

/// The workspace option.
#[derive(Debug, Clone, Args)]
pub struct WorkspaceArgs {
    /// The folder with `.volcanic/a2a/agents.json`, received files and the assistant's notes.
    #[arg(long, default_value = ".", value_name = "DIR")]
    pub workspace: PathBuf,
}

/// `volcanic chat`.
#[derive(Debug, Args)]
pub struct ChatArgs {
    #[command(flatten)]
    #[expect(missing_docs, reason = "described where it is defined")]
    pub at: WorkspaceArgs,
    /// `openai:MODEL` (any OpenAI-compatible server: OPENAI_API_KEY, OPENAI_BASE_URL), `scripted`, or `scripted:RULES.toml`.
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
}

/// `volcanic agents`.
#[derive(Debug, Args)]
pub struct AgentsArgs {
    #[command(flatten)]
    #[expect(missing_docs, reason = "described where it is defined")]
    pub at: WorkspaceArgs,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// How an agent is found.
#[derive(Debug, Clone, Args)]
pub struct AgentArgs {
    /// A name from agents.json, or an http(s) URL.
    pub agent: String,
    /// A file that holds the key for an agent given by URL.
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
    #[command(flatten)]
    #[expect(missing_docs, reason = "described where it is defined")]
    pub at: WorkspaceArgs,
}

/// `volcanic send`.
#[derive(Debug, Args)]
pub struct SendArgs {
    #[command(flatten)]
    #[expect(missing_docs, reason = "described where it is defined")]
    pub to: AgentArgs,
    /// The message.
    pub text: String,
    /// A file of the workspace to attach; may be given several times.
    #[arg(long = "file", value_name = "FILE")]
    pub files: Vec<String>,
    /// Continue this conversation with the agent.
    #[arg(long, value_name = "ID")]
    pub context: Option<String>,
    /// Answer the question of this task.
    #[arg(long, value_name = "ID")]
    pub task: Option<String>,
    /// How long to wait for the outcome.
    #[arg(long, default_value = "60s", value_name = "TIME", value_parser = duration)]
    pub wait: Duration,
    /// Print the task as JSON.
    #[arg(long)]
    pub json: bool,
}

/// A task of an agent.
#[derive(Debug, Clone, Args)]
pub struct TaskArgs {
    #[command(flatten)]
    #[expect(missing_docs, reason = "described where it is defined")]
    pub at: AgentArgs,
    /// The task's id.
    pub task: String,
    /// Print the task as JSON.
    #[arg(long)]
    pub json: bool,
}

/// `volcanic status`.
#[derive(Debug, Args)]
pub struct StatusArgs {
    #[command(flatten)]
    #[expect(missing_docs, reason = "described where it is defined")]
    pub of: TaskArgs,
    /// Wait this long for the outcome instead of answering at once.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub wait: Option<Duration>,
}

/// `volcanic watches`.
#[derive(Debug, Args)]
pub struct WatchesArgs {
    #[command(flatten)]
    #[expect(missing_docs, reason = "described where it is defined")]
    pub at: WorkspaceArgs,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// `volcanic serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Answer by rules: the built-in ones, or those of a file.
    #[arg(long, required = true, num_args = 0..=1, value_name = "RULES.toml")]
    pub scripted: Option<Option<PathBuf>>,
    /// Where to listen. Only loopback addresses: callers have no keys yet.
    #[arg(long, default_value = "127.0.0.1:8080", value_name = "ADDR")]
    pub listen: SocketAddr,
    /// The folder whose `.volcanic/a2a/tasks/` keeps the tasks.
    #[command(flatten)]
    pub at: WorkspaceArgs,
    /// Append a line of JSON for every message received.
    #[arg(long, value_name = "FILE")]
    pub journal: Option<PathBuf>,
}

/// `volcanic demo`.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Run the checked tour instead of a conversation, also on a terminal.
    #[arg(long)]
    pub tour: bool,
}

fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).map_err(|error| error.to_string())
}
