//! The command line: what can be said, with help and examples.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use volcanic_host::parse_duration;

mod agent;
mod card;
mod examples;
mod message;
mod push_config;
mod task;

pub use agent::{AgentArgs, BindingName, ProtocolName};
pub use card::CardArgs;
pub use message::{MessageParts, PartArg, PartValue, SendArgs};
pub use push_config::{
    PushConfigCommand, PushConfigCreateArgs, PushConfigIdArgs, PushConfigListArgs,
};
pub use task::{StateName, StatusArgs, SubscribeArgs, TaskArgs, TasksArgs, WatchArgs};

/// A personal assistant that hands work to other agents and brings the outcome back.
#[derive(Debug, Parser)]
#[command(name = "volcanic", version, after_help = examples::ALL)]
pub struct Cli {
    /// The settings file [default: volcanic.toml in the home folder, if it is there].
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Print JSON on standard output, one value a line, errors as well.
    #[arg(long, global = true)]
    pub json: bool,
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
    /// Show what an agent says about itself, or check that by the specification.
    #[command(after_help = examples::CARD)]
    Card(CardArgs),
    /// Send a message to an agent and wait for the outcome.
    #[command(after_help = examples::SEND, override_usage = "volcanic send [OPTIONS] <AGENT> <TEXT or parts>")]
    Send(SendArgs),
    /// Ask an agent about a task.
    #[command(after_help = examples::STATUS)]
    Status(StatusArgs),
    /// Ask an agent to cancel a task.
    #[command(after_help = examples::CANCEL)]
    Cancel(TaskArgs),
    /// List the tasks that an agent has for us.
    #[command(after_help = examples::TASKS)]
    Tasks(TasksArgs),
    /// Print what an agent reports about a task, until it closes the stream.
    #[command(after_help = examples::SUBSCRIBE)]
    Subscribe(SubscribeArgs),
    /// Follow a task to its end, and print the outcome.
    #[command(after_help = examples::WATCH)]
    Watch(WatchArgs),
    /// Say where an agent reports a task's changes by itself (webhooks).
    #[command(subcommand, after_help = examples::PUSH_CONFIG)]
    PushConfig(PushConfigCommand),
    /// Show the tasks that the assistant of this workspace follows.
    #[command(after_help = examples::WATCHES)]
    Watches(WatchesArgs),
    /// Be a remote agent that follows rules, to try things on.
    #[command(after_help = examples::SERVE)]
    Serve(ServeArgs),
    /// Show everything on this machine: a remote agent, an assistant, and a crash in between.
    #[command(after_help = examples::DEMO)]
    Demo(DemoArgs),
    /// Show every setting, its value and where it comes from; secrets are masked.
    #[command(after_help = examples::SETTINGS)]
    Settings,
    /// Print what makes a shell complete these commands.
    #[command(after_help = examples::COMPLETIONS)]
    Completions(CompletionsArgs),
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
}

/// `volcanic watches`.
#[derive(Debug, Args)]
pub struct WatchesArgs {
    #[command(flatten)]
    #[expect(missing_docs, reason = "described where it is defined")]
    pub at: WorkspaceArgs,
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

/// `volcanic completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell.
    pub shell: Shell,
}

fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).map_err(|error| error.to_string())
}

/// An id, or a name: one that is empty comes from a variable that is not set, and would mean all there are.
fn id(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        return Err("it is empty".to_owned());
    }
    Ok(text.to_owned())
}

/// A pause between two questions: never none, as agents are asked over a network.
fn pause(text: &str) -> Result<Duration, String> {
    let pause = duration(text)?;
    if pause.is_zero() {
        return Err("a pause is at least 1s".to_owned());
    }
    Ok(pause)
}
