//! An agent that follows rules instead of a model: for the demo, for tests, for trying things out.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use tokio_util::sync::CancellationToken;
use volcanic_a2a_types::{AgentSkill, Artifact, Part, PartContent};
use volcanic_base::Clock;

use crate::{
    card::CardProfile,
    executor::{Executor, SinkError, TaskSink, Turn},
};

mod journal;
mod rules;
mod template;

pub use journal::{Journal, JournalEntry, JournalFile};
pub use rules::{ScriptRules, ScriptRulesError};

use rules::{FileTemplate, Match, Outcome, parse_after};

/// The artifact that carries an answer.
const RESPONSE: &str = "response";

/// Says how far a long task is no more than this many times.
const PROGRESS_STEPS: u32 = 4;

/// An executor that does what [`ScriptRules`] say and writes what it received into a [`Journal`].
#[derive(Debug)]
pub struct ScriptedAgent {
    rules: ScriptRules,
    journal: Arc<Journal>,
    clock: Arc<dyn Clock>,
}

impl ScriptedAgent {
    /// Creates an agent.
    pub fn new(rules: ScriptRules, journal: Arc<Journal>, clock: Arc<dyn Clock>) -> Self {
        Self { rules, journal, clock }
    }

    /// The card of the agent with the built-in rules.
    pub fn card() -> CardProfile {
        let skill = |id: &str, name: &str, description: &str, examples: &[&str]| {
            let mut skill = AgentSkill::new(id, name, description, vec!["demo".to_owned()]);
            skill.examples = examples.iter().map(|example| (*example).to_owned()).collect();
            skill
        };
        CardProfile {
            name: "demo agent".to_owned(),
            description: "Follows a few fixed rules, so that what an assistant can do with a remote agent can be seen \
                          without a model."
                .to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            skills: vec![
                skill("echo", "Echo", "Answers with what it was sent.", &["echo hello"]),
                skill("report", "Report", "Writes a text into a file.", &["report all is well"]),
                skill("book", "Book", "Books something, after asking for the day.", &["book a table"]),
                skill("slow", "Slow work", "Works so many seconds before it answers.", &["slow 5s hello"]),
                skill("fail", "Failure", "Fails, or declines.", &["fail out of paper", "reject this"]),
            ],
            input_modes: vec!["text/plain".to_owned(), "application/octet-stream".to_owned()],
            output_modes: vec!["text/plain".to_owned()],
        }
    }

    /// The card of an agent with rules of its own: what they are named is what it can do. Text of the rules themselves
    /// is not shown.
    pub fn card_of(rules: &ScriptRules) -> CardProfile {
        let mut skills: Vec<AgentSkill> = Vec::new();
        for (name, rule) in rules.named() {
            if skills.iter().all(|skill| skill.id != name) {
                skills.push(AgentSkill::new(name, name, rule.description(), scripted()));
            }
        }
        if skills.is_empty() {
            let said = "Answers what its rules fit.";
            skills.push(AgentSkill::new("rules", "Rules", said, scripted()));
        }
        CardProfile {
            name: "scripted agent".to_owned(),
            description: "Follows the rules it was started with.".to_owned(),
            skills,
            ..Self::card()
        }
    }

    async fn follow(
        &self,
        turn: &Turn,
        sink: &TaskSink,
        cancel: &CancellationToken,
    ) -> Result<(), SinkError> {
        let files = describe_files(turn);
        let Some(Match { rule, values }) = self.rules.find(&turn.user_texts(), &files) else {
            return sink.fail("No rule fits this message.").await;
        };
        if let Outcome::Reply(text) = &rule.outcome {
            return sink.reply(vec![Part::text(text.fill(&values))]).await;
        }
        sink.accept().await?;
        if let Some(after) = &rule.after {
            match parse_after(&after.fill(&values)) {
                Ok(length) => {
                    if !work(length, sink, cancel).await? {
                        return Ok(());
                    }
                }
                Err(problem) => return sink.fail(&problem).await,
            }
        }
        match &rule.outcome {
            Outcome::Ask(question) => sink.ask(&question.fill(&values)).await,
            Outcome::Fail(reason) => sink.fail(&reason.fill(&values)).await,
            Outcome::Reject(reason) => sink.reject(&reason.fill(&values)).await,
            Outcome::Reply(text) => sink.reply(vec![Part::text(text.fill(&values))]).await,
            Outcome::Done { say, file, chunks } => {
                sink.working().await?;
                if let Some(FileTemplate { name, media_type, text }) = file {
                    let name = name.fill(&values);
                    let bytes = Bytes::from(text.fill(&values));
                    let part = Part::raw(bytes, media_type.clone(), name.clone());
                    sink.artifact(Artifact::new(name.as_str(), vec![part]).with_name(name)).await?;
                }
                if let Some(say) = say {
                    answer(sink, &say.fill(&values), *chunks).await?;
                }
                sink.complete().await
            }
        }
    }
}

/// The tag of skills that come from rules.
fn scripted() -> Vec<String> {
    vec!["scripted".to_owned()]
}

#[async_trait]
impl Executor for ScriptedAgent {
    async fn execute(&self, turn: Turn, sink: TaskSink, cancel: CancellationToken) {
        let entry = JournalEntry::of(&turn, self.clock.now());
        if let Err(error) = self.journal.append(entry).await {
            tracing::error!(%error, "failed to write the journal");
            let _ = sink.fail("The journal could not be written.").await;
            return;
        }
        match self.follow(&turn, &sink, &cancel).await {
            // The task was canceled meanwhile.
            Ok(()) | Err(SinkError::Closed) => {}
            Err(error) => tracing::error!(%error, "failed to keep the task"),
        }
    }
}

/// Stays working for so long. False if it was told to stop.
async fn work(
    length: Duration,
    sink: &TaskSink,
    cancel: &CancellationToken,
) -> Result<bool, SinkError> {
    sink.working().await?;
    let step = (length / PROGRESS_STEPS).max(Duration::from_secs(1));
    let mut left = length;
    while !left.is_zero() {
        let pause = step.min(left);
        if cancel.run_until_cancelled(tokio::time::sleep(pause)).await.is_none() {
            return Ok(false);
        }
        left -= pause;
        if !left.is_zero() {
            let text = format!("still working, about {} s left", left.as_secs_f64().ceil());
            sink.progress(&text).await?;
        }
    }
    Ok(true)
}

/// Gives the answer as an artifact, in so many pieces.
async fn answer(sink: &TaskSink, text: &str, chunks: usize) -> Result<(), SinkError> {
    let pieces = split(text, chunks);
    let mut pieces = pieces.iter().map(|piece| vec![Part::text(piece.as_str())]);
    let first = Artifact::new(RESPONSE, pieces.next().unwrap_or_default()).with_name(RESPONSE);
    let Some(last) = pieces.next_back() else { return sink.artifact(first).await };
    sink.begin_artifact(first).await?;
    for piece in pieces {
        sink.append(RESPONSE.into(), piece).await?;
    }
    sink.append_last(RESPONSE.into(), last).await
}

/// Cuts a text into at most so many pieces of about the same length, at least one.
fn split(text: &str, pieces: usize) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    let length = characters.len().div_ceil(pieces.max(1)).max(1);
    if characters.is_empty() {
        return vec![String::new()];
    }
    characters.chunks(length).map(|piece| piece.iter().collect()).collect()
}

/// What `$files` stands for: nothing, or a line that names what came with the message.
fn describe_files(turn: &Turn) -> String {
    let files = turn.message.parts.iter().filter_map(|part| match &part.content {
        PartContent::Raw(bytes) => {
            let name = part.filename.as_deref().unwrap_or("unnamed");
            Some(format!("{name} ({} bytes)", bytes.len()))
        }
        _ => None,
    });
    let files: Vec<String> = files.collect();
    if files.is_empty() { String::new() } else { format!("\nFiles received: {}", files.join(", ")) }
}
