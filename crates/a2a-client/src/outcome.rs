//! What came of a remote task: an answer, files and links.
//!
//! [`TaskOutcome::from_task`] takes a task apart without touching anything; [`TaskOutcome::save`] puts the files into
//! the workspace, on disk before it returns, so that they can be named in what is told.

use bytes::Bytes;
use volcanic_a2a_types::{
    Artifact, ContextId, Message, Part, PartContent, Task, TaskId, TaskState,
};

mod names;
mod save;

pub use save::{SaveError, SavedOutcome};

/// How many files of one task are saved.
pub const MAX_FILES: usize = 20;
/// How much text is told in place; a longer answer goes to a file, and this much of it is told.
pub const MAX_INLINE_BYTES: usize = 50 * 1024;
/// As [`MAX_INLINE_BYTES`], in lines.
pub const MAX_INLINE_LINES: usize = 2000;

/// The id or name of the artifact that is the answer when there are several.
const RESPONSE: &str = "response";

/// A file that came inside an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InlineFile {
    /// Its name as the agent gave it; not to be used as a path.
    pub name: Option<String>,
    /// Its media type, if the agent said.
    pub media_type: Option<String>,
    /// Its content.
    pub bytes: Bytes,
}

/// What came of a task, or a reply without one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskOutcome {
    /// The task; `None` for a reply without one.
    pub task_id: Option<TaskId>,
    /// Its context.
    pub context_id: Option<ContextId>,
    /// Where the task stands; `None` for a reply.
    pub state: Option<TaskState>,
    /// The text, as the agent wrote it.
    pub answer: String,
    /// Whether the task waits for us.
    pub question: bool,
    /// The first [`MAX_FILES`] files that are not too large.
    pub files: Vec<InlineFile>,
    /// Where further content can be fetched; nothing here fetches it.
    pub links: Vec<String>,
    /// The names of files that are too large.
    pub skipped: Vec<String>,
    /// How many files there are beyond those.
    pub more_files: usize,
    /// The largest file that is taken, in bytes.
    pub max_file_bytes: u64,
    /// How much text is told in place, in bytes. A host whose model has a small window lowers it.
    pub inline_bytes: usize,
}

impl TaskOutcome {
    /// Takes a task apart.
    ///
    /// The answer is the `response` artifact, else every artifact's text, else the status message. For a task that waits
    /// for us the status message, which is the question, comes first; one that failed or was rejected says why in its
    /// status message, so that is told too.
    pub fn from_task(task: &Task, max_file_bytes: u64) -> Self {
        let state = &task.status.state;
        let said = task.status.message.as_ref();
        let mut outcome = Self::empty(max_file_bytes);
        for part in task.artifacts.iter().flat_map(|artifact| {
            artifact.parts.iter().map(move |part| (artifact.name.as_deref(), part))
        }) {
            outcome.take(part.1, part.0);
        }
        for part in said.iter().flat_map(|message| &message.parts) {
            outcome.take(part, None);
        }
        let made = artifacts_text(&task.artifacts);
        let said = said.map(message_text).unwrap_or_default();
        outcome.answer = match state {
            TaskState::InputRequired | TaskState::AuthRequired => join(&said, &made),
            TaskState::Failed | TaskState::Rejected => join(&made, &said),
            _ if made.trim().is_empty() => said,
            _ => made,
        };
        outcome.question = state.is_interrupted();
        outcome.task_id = Some(task.id.clone());
        outcome.context_id.clone_from(&task.context_id);
        outcome.state = Some(state.clone());
        outcome
    }

    /// Takes a reply without a task apart.
    pub fn from_message(message: &Message, max_file_bytes: u64) -> Self {
        let mut outcome = Self::empty(max_file_bytes);
        for part in &message.parts {
            outcome.take(part, None);
        }
        outcome.answer = message_text(message);
        outcome.context_id.clone_from(&message.context_id);
        outcome
    }

    fn empty(max_file_bytes: u64) -> Self {
        Self {
            task_id: None,
            context_id: None,
            state: None,
            answer: String::new(),
            question: false,
            files: Vec::new(),
            links: Vec::new(),
            skipped: Vec::new(),
            more_files: 0,
            max_file_bytes,
            inline_bytes: MAX_INLINE_BYTES,
        }
    }

    /// Notes a file or a link.
    fn take(&mut self, part: &Part, fallback: Option<&str>) {
        match &part.content {
            PartContent::Raw(bytes) => {
                let name = part.filename.as_deref().or(fallback).map(str::to_owned);
                if self.files.len() + self.skipped.len() >= MAX_FILES {
                    self.more_files += 1;
                } else if bytes.len() as u64 > self.max_file_bytes {
                    self.skipped.push(name.unwrap_or_else(|| "a file without a name".to_owned()));
                } else {
                    let media_type = part.media_type.clone();
                    self.files.push(InlineFile { name, media_type, bytes: bytes.clone() });
                }
            }
            PartContent::Url(url) => self.links.push(url.clone()),
            _ => {}
        }
    }
}

/// The `response` artifact, else all of them.
fn artifacts_text(artifacts: &[Artifact]) -> String {
    let is_response = |artifact: &&Artifact| {
        artifact.artifact_id == RESPONSE || artifact.name.as_deref() == Some(RESPONSE)
    };
    let response: String = artifacts
        .iter()
        .filter(is_response)
        .map(artifact_text)
        .fold(String::new(), |a, b| join(&a, &b));
    if response.trim().is_empty() {
        artifacts.iter().map(artifact_text).fold(String::new(), |a, b| join(&a, &b))
    } else {
        response
    }
}

/// An artifact's parts without a break between them: a streamed artifact has one part per chunk.
fn artifact_text(artifact: &Artifact) -> String {
    let mut text = String::new();
    for part in &artifact.parts {
        match &part.content {
            PartContent::Text(part) => text.push_str(part),
            PartContent::Data(value) => text = join(&text, &value.to_string()),
            _ => {}
        }
    }
    text
}

/// A message's parts, one below the other.
fn message_text(message: &Message) -> String {
    message.parts.iter().fold(String::new(), |text, part| match &part.content {
        PartContent::Text(part) => join(&text, part),
        PartContent::Data(value) => join(&text, &value.to_string()),
        _ => text,
    })
}

/// Two texts on lines of their own; an empty one, or one that repeats the other, leaves no trace.
fn join(first: &str, second: &str) -> String {
    match (first.trim().is_empty(), second.trim().is_empty()) {
        (true, _) => second.to_owned(),
        (false, true) => first.to_owned(),
        (false, false) if first.trim() == second.trim() => first.to_owned(),
        (false, false) => format!("{}\n{second}", first.trim_end_matches('\n')),
    }
}

#[cfg(test)]
mod tests;
