//! The assistant in a terminal, remote agents from the command line, and the demo that needs no token and no key.
//!
//! Everything is reached through [`run`]. The library exists so that tests can break each leg of the tour
//! ([`run_tour`]).

mod args;
mod assistant;
mod chat;
mod completions;
mod config;
mod demo;
mod disk;
mod exit;
mod held;
mod home;
mod input;
mod output;
mod pushes;
mod remote;
mod screen;
mod serve;
mod settings;
mod terminal;
mod watches;
mod workspace;

use anyhow::Result;

use chat::Afterwards;
use output::Format;

pub use args::{
    AgentArgs, AgentsArgs, BindingName, CardArgs, ChatArgs, Cli, Command, CompletionsArgs,
    DemoArgs, MessageParts, PartArg, PartValue, ProtocolName, PushConfigCommand,
    PushConfigCreateArgs, PushConfigIdArgs, PushConfigListArgs, SendArgs, ServeArgs, StateName,
    StatusArgs, SubscribeArgs, TaskArgs, TasksArgs, WatchArgs, WatchesArgs, WorkspaceArgs,
};
pub use completions::completions;
pub use config::CliConfig;
pub use demo::{TourDeps, run_tour};
pub use exit::{Exit, Failure, UsageError, report, told};

/// Does what the command line says.
///
/// # Errors
/// [`Failure::of`] says of each what it is and how the program ends with it.
pub async fn run(cli: Cli, config: &CliConfig) -> Result<Exit> {
    let format = if cli.json { Format::Json } else { Format::Text };
    match cli.command {
        Command::Chat(args) => chat::chat(&args, config, format, Afterwards::Kept).await,
        Command::Agents(args) => remote::agents(&args, config, format).await,
        Command::Card(args) => remote::card(&args, config, format).await,
        Command::Send(args) => remote::send(&args, config, format).await,
        Command::Status(args) => remote::status(&args, config, format).await,
        Command::Cancel(args) => remote::cancel(&args, config, format).await,
        Command::Tasks(args) => remote::tasks(&args, config, format).await,
        Command::Subscribe(args) => remote::subscribe(&args, config, format).await,
        Command::Watch(args) => remote::watch(&args, config, format).await,
        Command::PushConfig(command) => remote::push_config(&command, config, format).await,
        Command::Watches(args) => watches::watches(&args, config, format).await,
        Command::Serve(args) => serve::serve(&args, format).await,
        Command::Demo(args) => demo::demo(&args, config, format).await,
        Command::Settings => settings::settings(config, format),
        Command::Completions(args) => completions(&args),
    }
}
