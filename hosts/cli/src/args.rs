//! The command line: what can be said, with help and examples.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand};
use volcanic_host::parse_duration;

mod examples;

/// A personal assistant that hands work to other agents and brings the outcome back.
#[derive(Debug, Parser)]
#[command(name = "volcanic", version, after_help = examples::ALL)]
pub struct Cli {
    /// The settings file [default: volcanic.toml in the home folder, if it is there].
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// A command.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Talk to the assistant; results of long tasks arrive by themselves.
    #[command(after_help = examples::CHAT)]
    Chat(ChatArgs),
    /// List the agents of the workspace with what their cards say.
    #[command(after_help = examples::AGENTS)]
    Agents(AgentsArgs),
    /// Send a message to an agent and wait for the outcome.
    #[command(after_help = examples::SEND)]
    Send(SendArgs),
    /// Ask an agent about a task.
    #[command(after_help = examples::STATUS)]
    Status(StatusArgs),
    /// Ask an agent to cancel a task.
    #[command(after_help = examples::CANCEL)]
    Cancel(TaskArgs),
    /// Show the tasks that the assistant of this workspace follows.
    #[command(after_help = examples::WATCHES)]
    Watches(WatchesArgs),
    /// Be a remote agent that follows rules, to try things on.
    #[command(after_help = examples::SERVE)]
    Serve(ServeArgs),
    /// Show everything on this machine: a remote agent, an assistant, and a crash in between.
    #[command(after_help = examples::DEMO)]
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
    /// `openai:NAME` (`OPENAI_API_KEY`, or `OPENAI_BASE_URL` of any server that speaks chat completions), `scripted`, or
    /// `scripted:RULES.toml`. Without it a scripted model answers.
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
    /// A name from the workspace's agents.json, or an http(s) URL.
    pub agent: String,
    /// A file that holds the key of an agent given by URL; keys are never given on the command line.
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
    /// A file of the workspace to attach, as a path in it; may be given several times.
    #[arg(long = "file", value_name = "FILE")]
    pub files: Vec<String>,
    /// Continue this conversation with the agent.
    #[arg(long, value_name = "ID")]
    pub context: Option<String>,
    /// Answer the question of this task; its conversation is looked up.
    #[arg(long, value_name = "ID")]
    pub task: Option<String>,
    /// How long to wait for the outcome, e.g. 90s or 10m; the task goes on afterwards.
    #[arg(long, default_value = "60s", value_name = "TIME", value_parser = duration)]
    pub wait: Duration,
    /// Print the task as JSON; its files stay inside it and are not saved.
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
    /// Where to listen; port 0 takes a free one. Only loopback addresses: everybody who can reach it is answered.
    #[arg(long, default_value = "127.0.0.1:8080", value_name = "ADDR")]
    pub listen: SocketAddr,
    /// The folder where tasks are kept, in `.volcanic/a2a/tasks/`.
    #[arg(long, default_value = ".", value_name = "DIR")]
    pub workspace: PathBuf,
    /// A file that gets a line of JSON for every message received.
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
