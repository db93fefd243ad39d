//! `volcanic agents`: who may be called, and what their cards say.

use std::io::Write;

use anyhow::Result;
use serde_json::{Value, json};
use volcanic_a2a_client::{
    AGENTS_FILE, AgentEntry, ClientError, RemoteAgent, read_agents, sanitize_remote_line,
};

use super::{Caller, write_json};
use crate::{
    args::AgentsArgs,
    config::CliConfig,
    exit::{Exit, OrUsage as _},
    workspace,
};

/// The longest text of a card that is shown on a line, in characters.
const CARD_LINE: usize = 300;

/// Lists the agents. One that cannot be reached is listed as such: that is an answer, not a failure.
///
/// # Errors
/// When the workspace or agents.json cannot be read.
pub(crate) async fn agents(args: &AgentsArgs, config: &CliConfig) -> Result<Exit> {
    workspace::open(&args.at.workspace)?;
    let caller = Caller::new(config, &args.at.workspace)?;
    let file = read_agents(&args.at.workspace).or_usage()?;
    let asked =
        futures::future::join_all(file.agents.iter().map(|entry| caller.connect(entry))).await;
    let pairs = file.agents.iter().zip(&asked);
    if args.json {
        let agents: Vec<Value> = pairs.map(|(entry, asked)| agent_json(entry, asked)).collect();
        write_json(&json!({ "agents": agents, "skipped": file.skipped }))?;
        return Ok(Exit::Done);
    }
    let mut out = std::io::stdout();
    if file.agents.is_empty() {
        let path = args.at.workspace.join(AGENTS_FILE);
        writeln!(
            out,
            "No agents. Write some to {}: [{{\"name\": \"travel-bot\", \"url\": \"https://travel.example/\"}}]",
            path.display()
        )?;
    }
    for (entry, asked) in pairs {
        match asked {
            Ok(remote) => write_agent(&mut out, entry, remote)?,
            Err(error) => {
                let how = if was_asked(error) { "unreachable" } else { "not asked" };
                writeln!(out, "{} ({}): {how} ({error})", entry.name, entry.shown_url())?;
            }
        }
    }
    for skipped in &file.skipped {
        writeln!(out, "skipped: {skipped}")?;
    }
    Ok(Exit::Done)
}

fn write_agent(out: &mut impl Write, entry: &AgentEntry, remote: &RemoteAgent) -> Result<()> {
    let card = remote.card();
    let said = entry.description.as_deref().unwrap_or(&card.description);
    let line = |text: &str| sanitize_remote_line(text, CARD_LINE);
    let streams = if remote.streams() { ", streams" } else { "" };
    let pushes = if remote.pushes() { ", pushes" } else { "" };
    writeln!(out, "{} ({}): {}{streams}{pushes}", entry.name, entry.shown_url(), line(&card.name))?;
    writeln!(out, "  {}", line(said))?;
    for skill in &card.skills {
        writeln!(out, "  - {}: {}", line(&skill.id), line(&skill.description))?;
    }
    Ok(())
}

fn agent_json(entry: &AgentEntry, asked: &Result<RemoteAgent, ClientError>) -> Value {
    let (name, url) = (entry.name.as_str(), entry.shown_url());
    match asked {
        Ok(remote) => json!({ "name": name, "url": url, "card": remote.card() }),
        Err(error) => {
            let how = if was_asked(error) { "unreachable" } else { "notAsked" };
            json!({ "name": name, "url": url, how: error.to_string() })
        }
    }
}

/// Whether the agent heard of us: without the key that its entry names, nobody is called.
fn was_asked(error: &ClientError) -> bool {
    !matches!(error, ClientError::Key { .. })
}
