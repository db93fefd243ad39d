//! The assistant in a terminal, remote agents from the command line, and the demo that needs no token and no key.
//!
//! Everything is reached through [`run`]. The library exists so that tests can break each leg of the tour
//! ([`run_tour`]).

mod args;
mod assistant;
mod chat;
mod config;
mod demo;
mod exit;
mod home;
mod input;
mod remote;
mod screen;
mod serve;
mod terminal;
mod watches;
mod workspace;

use anyhow::Result;

use chat::Afterwards;

pub use args::{
    AgentArgs, AgentsArgs, ChatArgs, Cli, Command, DemoArgs, SendArgs, ServeArgs, StatusArgs,
    TaskArgs, WatchesArgs, WorkspaceArgs,
};
pub use config::CliConfig;
pub use demo::{TourDeps, run_tour};
pub use exit::{Exit, UsageError, told};

/// Does what the command line says.
///
/// # Errors
/// With a text for the user, a [`UsageError`] when it is the user's to mend; commands that tell failures of an agent
/// apart by exit code return an [`Exit`] instead.
pub async fn run(cli: Cli, config: &CliConfig) -> Result<Exit> {
    match cli.command {
        Command::Chat(args) => chat::chat(&args, config, Afterwards::Kept).await,
        Command::Agents(args) => remote::agents(&args, config).await,
        Command::Send(args) => remote::send(&args, config).await,
        Command::Status(args) => remote::status(&args, config).await,
        Command::Cancel(args) => remote::cancel(&args, config).await,
        Command::Watches(args) => watches::watches(&args, config).await,
        Command::Serve(args) => serve::serve(&args).await,
        Command::Demo(args) => demo::demo(&args, config).await,
    }
}
