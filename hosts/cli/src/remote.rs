//! Remote agents from the command line: `agents`, `send`, `status`, `cancel`. None of them touches a watch.

use std::{
    fmt::Write as _,
    io::{Write as _, stderr, stdout},
    path::Path,
    sync::Arc,
};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use url::Url;
use volcanic_a2a_client::{
    AGENTS_FILE, AgentEntry, AgentName, ClientConfig, ClientError, KeyResolver, KeySource,
    RemoteAgent, read_agents,
};
use volcanic_base::Secret;
use volcanic_host::{TransportSetupError, agent_transport, key_resolver};
use volcanic_net::Transport;

use crate::{
    args::AgentArgs,
    config::CliConfig,
    exit::{Exit, OrUsage as _, UsageError},
    home::Home,
};

mod agents;
mod tasks;
mod waiting;

pub(crate) use agents::agents;
pub(crate) use tasks::{cancel, send, status};

/// Largest key file read.
const MAX_KEY_BYTES: u64 = 16 << 10;

/// What a command works with.
struct Caller {
    transport: Arc<dyn Transport>,
    keys: KeyResolver,
    config: ClientConfig,
    max_file_bytes: u64,
}

impl Caller {
    fn new(config: &CliConfig, workspace: &Path) -> Result<Self> {
        let secrets = Home::secrets_of(workspace, &config.home)?;
        Ok(Self {
            transport: transport(config)?,
            keys: key_resolver(config.environment.agent_keys.clone(), secrets),
            config: config.client.calls(),
            max_file_bytes: config.client.max_file_bytes,
        })
    }

    async fn connect(&self, entry: &AgentEntry) -> Result<RemoteAgent, ClientError> {
        RemoteAgent::connect(
            entry,
            Arc::clone(&self.transport),
            Arc::clone(&self.keys),
            &self.config,
        )
        .await
    }
}

/// The transport to agents.
pub(crate) fn transport(config: &CliConfig) -> Result<Arc<dyn Transport>> {
    agent_transport(config.ca_file.as_deref()).map_err(|error| match error {
        TransportSetupError::Certificates { .. } => UsageError::of(error).into(),
        error => error.into(),
    })
}

/// The agent of that name in agents.json, or the one at that URL.
fn find(args: &AgentArgs) -> Result<AgentEntry> {
    let named = args.agent.as_str();
    if named.contains("://") {
        let url = Url::parse(named).with_context(|| format!("`{named}` is no URL")).or_usage()?;
        if !matches!(url.scheme(), "http" | "https") {
            let text =
                format!("`{named}` is no http or https URL, and agents are reached by no other");
            return Err(UsageError::new(text).into());
        }
        let name = AgentName::new("agent").context("the name of a nameless agent is wrong")?;
        let mut entry = AgentEntry::new(name, url);
        entry.key = args.key_file.as_deref().map(read_key).transpose()?.map(KeySource::Plain);
        return Ok(entry);
    }
    if args.key_file.is_some() {
        return Err(UsageError::new(format!(
            "--key-file is for an agent given by URL; the key of \"{named}\" stands in its entry in agents.json"
        ))
        .into());
    }
    let file = read_agents(&args.at.workspace).or_usage()?;
    file.agent(named).cloned().ok_or_else(|| {
        let names: Vec<_> = file.agents.iter().map(|entry| entry.name.as_str()).collect();
        let path = args.at.workspace.join(AGENTS_FILE);
        let listed = if names.is_empty() { "no agents".to_owned() } else { names.join(", ") };
        let mut text = format!(
            "there is no agent \"{named}\": {} lists {listed}. Add {{\"name\": \"{named}\", \"url\": \"https://…\"}} to it, name another folder with --workspace, or give the agent's URL instead",
            path.display()
        );
        for skipped in &file.skipped {
            text.push_str("\n  skipped in that file: ");
            text.push_str(skipped);
        }
        UsageError::new(text).into()
    })
}

fn read_key(path: &Path) -> Result<Secret> {
    let shown = path.display();
    let unusable = || format!("the key file `{shown}` cannot be used");
    let metadata = std::fs::metadata(path).with_context(unusable).or_usage()?;
    if !metadata.is_file() {
        return Err(UsageError::new(format!("{}: it is no regular file", unusable())).into());
    }
    if metadata.len() > MAX_KEY_BYTES {
        let text = format!("{}: it is over {MAX_KEY_BYTES} bytes", unusable());
        return Err(UsageError::new(text).into());
    }
    let key = std::fs::read_to_string(path).with_context(unusable).or_usage()?;
    let key = key.trim();
    if key.is_empty() {
        return Err(UsageError::new(format!("{}: it is empty", unusable())).into());
    }
    Ok(Secret::new(key))
}

/// Tells a failure and which exit code it is.
fn fail(error: &ClientError, as_json: bool) -> Result<Exit> {
    let exit = match error {
        ClientError::Unreachable { .. } => Exit::Unreachable,
        ClientError::KeyRejected { .. } => Exit::KeyRefused,
        ClientError::TimedOut { .. } => Exit::TimedOut,
        // It never came to a call: the entry in agents.json names a key that is not there.
        ClientError::Key { .. } => Exit::Usage,
        _ => Exit::Failed,
    };
    if as_json {
        write_json(&json!({ "error": error.to_string() }))?;
    } else {
        writeln!(stderr(), "{error}")?;
    }
    Ok(exit)
}

/// Writes a line of JSON in which no character can steer a terminal.
fn write_json(value: &Value) -> Result<()> {
    let mut line = String::new();
    for character in value.to_string().chars() {
        // Outside of ASCII, JSON has characters only inside of strings, where they may be written as escapes. The line
        // breaks of Unicode are among them, so that a line stays a line.
        match character {
            '\u{7f}'..='\u{9f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                // Writing to a string cannot fail.
                let _ = write!(line, "\\u{:04x}", u32::from(character));
            }
            plain => line.push(plain),
        }
    }
    writeln!(stdout(), "{line}").context("failed to write the result")
}
