//! `volcanic agents`: who may be called, and what their cards say.

use std::fmt::Write as _;

use anyhow::Result;
use futures::{StreamExt as _, stream};
use serde_json::{Value, json};
use volcanic_a2a_client::{
    AGENTS_FILE, AgentEntry, ClientError, RemoteAgent, read_agents, sanitize_remote_line,
};

use super::Caller;
use crate::{
    args::AgentsArgs,
    config::CliConfig,
    exit::{Exit, OrUsage as _},
    output::{Format, write_json, write_line},
    workspace,
};

/// How many agents are asked for their card at the same time.
const CARDS_AT_ONCE: usize = 16;

/// The longest text of a card that is shown on a line, in characters.
const CARD_LINE: usize = 300;

/// Lists the agents. One that cannot be reached is listed as such: that is an answer, not a failure.
///
/// # Errors
/// When the workspace or agents.json cannot be read.
pub(crate) async fn agents(args: &AgentsArgs, config: &CliConfig, format: Format) -> Result<Exit> {
    workspace::open(&args.at.workspace)?;
    let caller = Caller::new(&args.at, config)?;
    let file = read_agents(&args.at.workspace).or_usage()?;
    let asked = stream::iter(&file.agents).map(|entry| caller.connect(entry));
    let asked: Vec<_> = asked.buffered(CARDS_AT_ONCE).collect().await;
    let pairs = file.agents.iter().zip(&asked);
    if format == Format::Json {
        let agents: Vec<Value> = pairs.map(|(entry, asked)| agent_json(entry, asked)).collect();
        write_json(&json!({
            "agents": agents,
            "skipped": file.skipped,
            "warnings": file.warnings,
        }))?;
        return Ok(Exit::Done);
    }
    if file.agents.is_empty() {
        let path = args.at.workspace.join(AGENTS_FILE);
        write_line(format!(
            "No agents. Write some to {}: [{{\"name\": \"travel-bot\", \"url\": \"https://travel.example/\"}}]",
            path.display()
        ))?;
    }
    for (entry, asked) in pairs {
        match asked {
            Ok(remote) => write_line(agent_lines(entry, remote))?,
            Err(error) => {
                let how = if was_asked(error) { "unreachable" } else { "not asked" };
                write_line(format!(
                    "{} ({}): {how} ({})",
                    entry.name,
                    entry.shown_url(),
                    error.reason()
                ))?;
            }
        }
    }
    for skipped in &file.skipped {
        write_line(format!("skipped: {skipped}"))?;
    }
    for warning in &file.warnings {
        write_line(format!("to be looked at: {warning}"))?;
    }
    Ok(Exit::Done)
}

fn agent_lines(entry: &AgentEntry, remote: &RemoteAgent) -> String {
    let card = remote.card();
    let said = entry.description.as_deref().unwrap_or(&card.description);
    let line = |text: &str| sanitize_remote_line(text, CARD_LINE);
    let streams = if remote.streams() { ", streams" } else { "" };
    let pushes = if remote.pushes() { ", pushes" } else { "" };
    let (name, url) = (&entry.name, entry.shown_url());
    let mut lines =
        format!("{name} ({url}): {}{streams}{pushes}\n  {}", line(&card.name), line(said));
    for skill in &card.skills {
        // Writing to a string cannot fail.
        let _ = write!(lines, "\n  - {}: {}", line(&skill.id), line(&skill.description));
    }
    lines
}

fn agent_json(entry: &AgentEntry, asked: &Result<RemoteAgent, ClientError>) -> Value {
    let (name, url) = (entry.name.as_str(), entry.shown_url());
    match asked {
        Ok(remote) => json!({ "name": name, "url": url, "card": remote.card() }),
        Err(error) => {
            let how = if was_asked(error) { "unreachable" } else { "notAsked" };
            json!({ "name": name, "url": url, how: error.reason() })
        }
    }
}

/// Whether the agent heard of us: without the key that its entry names, nobody is called.
fn was_asked(error: &ClientError) -> bool {
    !matches!(error, ClientError::Key { .. })
}
