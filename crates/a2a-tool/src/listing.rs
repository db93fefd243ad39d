//! `agents`: the agents of a workspace and what they can do, asked all at once.

use std::fmt::Write as _;
use std::path::Path;

use volcanic_a2a_client::{
    AGENTS_FILE, AgentEntry, AgentsFile, AgentsFileError, sanitize_remote_line,
};
use volcanic_a2a_types::{AgentCard, AgentSkill};
use volcanic_a2a_watch::{AgentReport, AgentsError, WatchHandle};

/// Skills shown per agent.
const MAX_SKILLS: usize = 50;
/// Examples shown per skill.
const MAX_EXAMPLES: usize = 3;
/// How much of a remote's description is shown, in characters.
const MAX_DESCRIPTION: usize = 1000;
/// How much of any shorter text of a remote is shown, in characters.
const MAX_LINE: usize = 200;

/// Reads a workspace's agents off the runtime's threads. The error is for the model and names the file.
pub(crate) async fn read(workspace: &Path) -> Result<AgentsFile, String> {
    let workspace = workspace.to_owned();
    match tokio::task::spawn_blocking(move || volcanic_a2a_client::read_agents(&workspace)).await {
        Ok(read) => read.map_err(|error| file_error(&error)),
        // The text of a panic may hold whatever was at hand, so it is shown nowhere.
        Err(_) => Err(format!("{AGENTS_FILE} could not be read")),
    }
}

/// Lists the agents, each with its card or why it is out of reach. The error is for the model.
pub(crate) async fn list(workspace: &Path, watches: &WatchHandle) -> Result<String, String> {
    let report = watches.agents(workspace.to_owned()).await.map_err(|error| match error {
        AgentsError::File(error) => file_error(&error),
        error => format!("The agents were not asked: {error}."),
    })?;
    if report.agents.is_empty() && report.skipped.is_empty() {
        return Ok(format!("No agents are configured. They stand in {AGENTS_FILE}."));
    }
    let mut blocks: Vec<String> = report.agents.iter().map(describe).collect();
    blocks.extend(report.skipped.iter().map(|reason| format!("skipped: {reason}")));
    blocks.extend(report.warnings.iter().map(|warning| format!("warning: {warning}")));
    Ok(blocks.join("\n\n"))
}

/// How a file that cannot be used is told.
pub(crate) fn file_error(error: &AgentsFileError) -> String {
    format!("{error}. No agents are known until that is mended.")
}

fn describe(report: &AgentReport) -> String {
    let entry = &report.entry;
    match &report.remote {
        Ok(remote) => card(entry, remote.card()),
        Err(error) => {
            let mut block = entry.name.as_str().to_owned();
            if let Some(description) = &entry.description {
                push(&mut block, format_args!(": {description}"));
            }
            push(&mut block, format_args!("\n  unreachable ({})", error.reason()));
            block
        }
    }
}

fn card(entry: &AgentEntry, card: &AgentCard) -> String {
    let line = |text: &str, max| sanitize_remote_line(text, max);
    let description = match &entry.description {
        Some(own) => own.clone(),
        None => line(&card.description, MAX_DESCRIPTION),
    };
    let mut block = format!("{}: {description}", entry.name.as_str());
    let mut abilities = Vec::new();
    if card.capabilities.can_stream() {
        abilities.push("streams");
    }
    if card.capabilities.can_push() {
        abilities.push("pushes");
    }
    let abilities = if abilities.is_empty() {
        "neither streams nor pushes".to_owned()
    } else {
        abilities.join(", ")
    };
    push(&mut block, format_args!("\n  card: {} ({abilities})", line(&card.name, MAX_LINE)));
    for shown in card.skills.iter().take(MAX_SKILLS) {
        skill(&mut block, shown);
    }
    let more = card.skills.len().saturating_sub(MAX_SKILLS);
    if more > 0 {
        push(&mut block, format_args!("\n  … and {more} more skills"));
    }
    block
}

fn skill(block: &mut String, skill: &AgentSkill) {
    let line = |text: &str, max| sanitize_remote_line(text, max);
    let (id, name) = (line(&skill.id, MAX_LINE), line(&skill.name, MAX_LINE));
    push(
        block,
        format_args!("\n  skill {id} ({name}): {}", line(&skill.description, MAX_DESCRIPTION)),
    );
    let examples: Vec<_> = skill
        .examples
        .iter()
        .take(MAX_EXAMPLES)
        .map(|example| format!("\"{}\"", line(example, MAX_LINE)))
        .collect();
    if !examples.is_empty() {
        push(block, format_args!(" e.g. {}", examples.join(", ")));
    }
}

fn push(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    // Writing into a string cannot fail.
    let _ = text.write_fmt(arguments);
}
