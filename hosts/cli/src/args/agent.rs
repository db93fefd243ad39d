//! Which agent is called, and how.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use volcanic_a2a_client::{AgentBinding, AgentProtocol};

use super::{WorkspaceArgs, id};

/// The heading over these options in help texts.
const HEADING: &str = "How the agent is called";

/// How an agent is found and called.
#[derive(Debug, Clone, Args)]
pub struct AgentArgs {
    /// A name from the workspace's agents.json, an http(s) URL, a host (`agent.example:8080`), or the file of a card
    /// (`-` is standard input).
    #[arg(value_parser = id)]
    pub agent: String,
    /// A file that holds the key of an agent that is not in agents.json; keys are never given on the command line.
    #[arg(long, value_name = "FILE", help_heading = HEADING)]
    pub key_file: Option<PathBuf>,
    /// The variable that holds it: `A2A_KEY_` and more.
    #[arg(long, value_name = "NAME", conflicts_with = "key_file", help_heading = HEADING)]
    pub key_env: Option<String>,
    /// A further header, `NAME: VALUE`; the value may be `env:A2A_KEY_…`. May be given several times.
    #[arg(long = "header", value_name = "HEADER", help_heading = HEADING)]
    pub headers: Vec<String>,
    /// The binding, instead of the card's first fitting one; the first that the card offers when several are given.
    #[arg(
        long = "binding",
        value_name = "BINDING",
        value_enum,
        ignore_case = true,
        value_delimiter = ',',
        help_heading = HEADING
    )]
    pub bindings: Vec<BindingName>,
    /// The version of the protocol, instead of the card's best one.
    #[arg(long, value_name = "VERSION", value_enum, help_heading = HEADING)]
    pub protocol: Option<ProtocolName>,
    /// The tenant to name when the card's interface names none.
    #[arg(long, value_name = "TENANT", help_heading = HEADING)]
    pub tenant: Option<String>,
    /// Read no card: AGENT is the URL of the interface itself. Needs --binding.
    #[arg(long, requires = "bindings", help_heading = HEADING)]
    pub no_card: bool,
    /// Say on standard error what is exchanged with the agent; keys are masked in it.
    #[arg(long, help_heading = HEADING)]
    pub debug: bool,
    #[command(flatten)]
    #[expect(missing_docs, reason = "described where it is defined")]
    pub at: WorkspaceArgs,
}

/// A binding, as it is spelt on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BindingName {
    /// JSON-RPC over HTTP.
    Jsonrpc,
    /// HTTP and JSON.
    #[value(alias = "http+json", alias = "http-json")]
    Rest,
}

/// A version of the protocol, as it is spelt on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ProtocolName {
    /// A2A 1.0.
    #[value(name = "1.0")]
    V1,
    /// A2A 0.3.
    #[value(name = "0.3")]
    V03,
}

impl From<BindingName> for AgentBinding {
    fn from(name: BindingName) -> Self {
        match name {
            BindingName::Jsonrpc => Self::JsonRpc,
            BindingName::Rest => Self::HttpJson,
        }
    }
}

impl From<ProtocolName> for AgentProtocol {
    fn from(name: ProtocolName) -> Self {
        match name {
            ProtocolName::V1 => Self::V1,
            ProtocolName::V03 => Self::V03,
        }
    }
}

impl AgentArgs {
    /// The options that lead to the same agent in another command, for hints.
    pub(crate) fn options(&self) -> Vec<String> {
        let mut words = Vec::new();
        let mut option =
            |name: &str, value: &str| words.extend([name.to_owned(), value.to_owned()]);
        let shown = |path: &Path| path.display().to_string();
        if let Some(file) = &self.key_file {
            option("--key-file", &shown(file));
        }
        if let Some(name) = &self.key_env {
            option("--key-env", name);
        }
        for header in &self.headers {
            option("--header", header);
        }
        for binding in self.bindings.iter().filter_map(ValueEnum::to_possible_value) {
            option("--binding", binding.get_name());
        }
        if let Some(protocol) = self.protocol.as_ref().and_then(ValueEnum::to_possible_value) {
            option("--protocol", protocol.get_name());
        }
        if let Some(tenant) = &self.tenant {
            option("--tenant", tenant);
        }
        if self.at.workspace != Path::new(".") {
            option("--workspace", &shown(&self.at.workspace));
        }
        if self.no_card {
            words.push("--no-card".to_owned());
        }
        words
    }
}
