//! What can be said about the webhooks of a task.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{TaskArgs, examples, id};

/// `volcanic push-config`.
#[derive(Debug, Subcommand)]
pub enum PushConfigCommand {
    /// Register a webhook for a task.
    #[command(after_help = examples::PUSH_CONFIG)]
    Create(PushConfigCreateArgs),
    /// Show one webhook of a task.
    #[command(after_help = examples::PUSH_CONFIG)]
    Get(PushConfigIdArgs),
    /// List the webhooks of a task.
    #[command(after_help = examples::PUSH_CONFIG)]
    List(PushConfigListArgs),
    /// Remove a webhook of a task.
    #[command(after_help = examples::PUSH_CONFIG)]
    Delete(PushConfigIdArgs),
}

/// `volcanic push-config create`.
#[derive(Debug, Args)]
pub struct PushConfigCreateArgs {
    #[command(flatten)]
    #[expect(missing_docs, reason = "described where it is defined")]
    pub of: TaskArgs,
    /// Where the agent is to report changes.
    pub url: String,
    /// The webhook's id; one with the same id is replaced [default: the agent makes one].
    #[arg(long, value_name = "ID", value_parser = id)]
    pub id: Option<String>,
    /// A file that holds the token the agent sends along, so that the receiver knows who asked for this.
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// The variable that holds it: `A2A_KEY_` and more.
    #[arg(long, value_name = "NAME", conflicts_with = "token_file")]
    pub token_env: Option<String>,
    /// How the agent proves itself to the receiver, e.g. Bearer.
    #[arg(long, value_name = "SCHEME")]
    pub auth_scheme: Option<String>,
    /// A file that holds what it proves itself with.
    #[arg(long, value_name = "FILE", requires = "auth_scheme")]
    pub auth_file: Option<PathBuf>,
    /// The variable that holds it: `A2A_KEY_` and more.
    #[arg(long, value_name = "NAME", requires = "auth_scheme", conflicts_with = "auth_file")]
    pub auth_env: Option<String>,
}

/// A webhook of a task.
#[derive(Debug, Args)]
pub struct PushConfigIdArgs {
    #[command(flatten)]
    #[expect(missing_docs, reason = "described where it is defined")]
    pub of: TaskArgs,
    /// The webhook's id.
    #[arg(value_parser = id)]
    pub id: String,
}

/// `volcanic push-config list`.
#[derive(Debug, Args)]
pub struct PushConfigListArgs {
    #[command(flatten)]
    #[expect(missing_docs, reason = "described where it is defined")]
    pub of: TaskArgs,
    /// How many webhooks a page has [default: the agent's].
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(i32).range(1..))]
    pub page_size: Option<i32>,
    /// Begin where another page ended.
    #[arg(long, value_name = "TOKEN", allow_hyphen_values = true)]
    pub page_token: Option<String>,
}
