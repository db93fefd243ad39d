//! `volcanic card`: what an agent says about itself, and what is wrong with how it says it.

use std::{fmt::Write as _, sync::Arc};

use anyhow::Result;
use serde_json::{Value, json};
use volcanic_a2a_client::{ClientError, RemoteAgent, ServedCard, sanitize_remote_line};
use volcanic_a2a_types::{
    AgentCard, CardCheck, CardHeaders, JsonText, check_card, check_served_card, v03,
};

use super::{Contact, target, target::Target};
use crate::{
    args::CardArgs,
    config::CliConfig,
    exit::{Exit, Failure, UsageError, told},
    output::{Format, write_json, write_line},
};

mod page;

use page::{Page, Used};

/// The longest of what is said about a finding, in characters.
const LINE: usize = 400;
/// How much of an error about a card is told, in characters.
const REASON: usize = 200;

/// A card, wherever it is from.
struct Seen<'a> {
    text: String,
    /// How it is served, if it is.
    headers: Option<CardHeaders>,
    /// How its agent would be called.
    contact: Result<Contact<'a>>,
    /// Whether it is the user's own file.
    is_at_hand: bool,
}

/// Shows or checks a card.
///
/// # Errors
/// When there is no card to be had; without `--validate` also when it cannot be understood.
pub(crate) async fn card(args: &CardArgs, config: &CliConfig, format: Format) -> Result<Exit> {
    if args.of.no_card && !args.extended {
        let text = "--no-card leaves only the card for authenticated callers: add --extended";
        return Err(UsageError::new(text).into());
    }
    let mut seen = public(args, config, format).await?;
    if args.extended {
        let mut contact = seen.contact?;
        if !args.of.no_card {
            contact.target.card = Some(read(&seen.text, contact.target.name(), seen.is_at_hand)?);
        }
        let text = contact.ask(async |remote| remote.extended_card_text().await).await?;
        seen = Seen { text: text.into(), headers: None, contact: Ok(contact), is_at_hand: false };
    }
    if args.validate {
        return validate(&seen, format);
    }
    show(args, seen, format).await
}

/// The public card, if one is needed.
async fn public<'a>(args: &'a CardArgs, config: &CliConfig, format: Format) -> Result<Seen<'a>> {
    let of = &args.of;
    let at_hand = if of.no_card { None } else { target::card_at_hand(&of.agent)? };
    if let Some(text) = at_hand {
        // A card that leads nowhere can be shown all the same.
        let contact = Target::of_card_text(of, &text)
            .and_then(|target| Contact::with(of, target, config, format));
        return Ok(Seen { text, headers: None, contact, is_at_hand: true });
    }
    let contact = Contact::open(of, config, format)?;
    if of.no_card {
        let (text, headers) = (String::new(), None);
        return Ok(Seen { text, headers, contact: Ok(contact), is_at_hand: false });
    }
    let caller = &contact.caller;
    let reading = RemoteAgent::served_card(
        contact.target.entry(),
        Arc::clone(&caller.transport),
        &caller.keys,
        &caller.config,
    );
    contact.live.says("asking");
    let ServedCard { text, headers } = contact.bounded(reading).await?;
    Ok(Seen { text, headers: Some(headers), contact: Ok(contact), is_at_hand: false })
}

/// Understands a card.
fn read(text: &str, agent: &str, is_at_hand: bool) -> Result<AgentCard> {
    v03::read_card(text.trim_start_matches('\u{feff}'))
        .map_err(|error| unreadable(&error, agent, is_at_hand))
}

fn unreadable(error: &serde_json::Error, agent: &str, is_at_hand: bool) -> anyhow::Error {
    let reason = sanitize_remote_line(&error.to_string(), REASON);
    let advice = "With --validate all that is wrong with it is told.";
    if is_at_hand {
        let text = format!("the card cannot be used: {reason}. {advice}");
        return UsageError::new(text).into();
    }
    let reason = format!("it is not valid: {reason}");
    let error = ClientError::Card { agent: agent.to_owned(), reason };
    Failure::from(error).advising(advice).into()
}

async fn show(args: &CardArgs, seen: Seen<'_>, format: Format) -> Result<Exit> {
    let Seen { text, contact, is_at_hand, .. } = seen;
    let agent = contact.as_ref().map_or("agent", |contact| contact.target.name()).to_owned();
    if format == Format::Json {
        let card = json_of(&text).map_err(|error| unreadable(&error, &agent, is_at_hand))?;
        write_json(&card)?;
        return Ok(Exit::Done);
    }
    let card = read(&text, &agent, is_at_hand)?;
    let used = match contact {
        Ok(mut contact) => {
            contact.target.card = Some(card.clone());
            contact.bounded(contact.connect()).await.map(|remote| Used {
                index: remote.interface_index(),
                is_wanted: !args.of.bindings.is_empty()
                    || args.of.protocol.is_some()
                    || contact.target.is_particular(),
            })
        }
        Err(error) => Err(error),
    };
    let used = used.map_err(|error| told(&error));
    write_line(Page { card: &card, used: &used })?;
    Ok(Exit::Done)
}

/// The text as JSON, with its members as they stand there.
fn json_of(text: &str) -> serde_json::Result<JsonText> {
    serde_json::from_str(text.trim_start_matches('\u{feff}'))
}

fn validate(seen: &Seen<'_>, format: Format) -> Result<Exit> {
    let check = match &seen.headers {
        Some(headers) => check_served_card(&seen.text, headers),
        None => check_card(&seen.text),
    };
    match format {
        Format::Json => {
            let findings: Vec<Value> = check.findings.iter().map(finding_json).collect();
            let counts = json!({ "errors": check.errors, "warnings": check.warnings });
            let found = Found { card: json_of(&seen.text).ok(), findings, counts };
            write_json(&found)?;
        }
        Format::Text => write_line(lines(&check))?,
    }
    Ok(if check.is_valid() { Exit::Done } else { Exit::Failed })
}

/// What is printed of a check.
#[derive(serde::Serialize)]
struct Found {
    /// Null if it is no JSON at all.
    card: Option<JsonText>,
    findings: Vec<Value>,
    #[serde(flatten)]
    counts: Value,
}

fn finding_json(finding: &volcanic_a2a_types::CardFinding) -> Value {
    json!({
        "severity": finding.severity.to_string(),
        "path": finding.path,
        "problem": finding.problem,
        "rule": finding.rule,
    })
}

fn lines(check: &CardCheck) -> String {
    let mut lines = String::new();
    for finding in &check.findings {
        let line = |text: &str| sanitize_remote_line(text, LINE);
        let place = if finding.path.is_empty() { "the card" } else { &finding.path };
        let (severity, problem) = (finding.severity, line(&finding.problem));
        // Writing to a string cannot fail.
        let _ = writeln!(lines, "{severity}: {}: {problem}\n  {}", line(place), finding.rule);
    }
    let more = (check.errors + check.warnings).saturating_sub(check.findings.len());
    if more > 0 {
        let _ = writeln!(lines, "and {more} more");
    }
    let counted = |count: usize, word: &str| match count {
        1 => format!("1 {word}"),
        count => format!("{count} {word}s"),
    };
    let verdict = if check.is_valid() { "The card is valid" } else { "The card is not valid" };
    let (errors, warnings) = (counted(check.errors, "error"), counted(check.warnings, "warning"));
    let _ = write!(lines, "{verdict}: {errors}, {warnings}.");
    lines
}
