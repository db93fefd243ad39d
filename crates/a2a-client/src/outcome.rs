//! What came of a remote task: an answer, files and links.
//!
//! [`RemoteAgent::outcome_of`](crate::RemoteAgent::outcome_of) takes a task apart without touching anything; [`TaskOutcome::save`] puts the files into
//! the workspace, on disk before it returns, so that they can be named in what is told.

use std::mem;

use bytes::Bytes;
use volcanic_a2a_types::{
    Artifact, ContextId, Message, Part, PartContent, Task, TaskId, TaskState,
};

use crate::remote::scrub::Scrubber;

mod names;
mod save;

pub use save::{SavedOutcome, UnsavedFile};

/// How many files of one task are saved.
pub(crate) const MAX_FILES: usize = 20;
/// How much text is told in place unless the host says otherwise; a longer answer goes to a file, and this much of it is
/// told.
pub const MAX_INLINE_BYTES: usize = 50 * 1024;
/// The same in lines.
pub(crate) const MAX_INLINE_LINES: usize = 2000;

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
    /// The first 20 files that are not too large.
    pub files: Vec<InlineFile>,
    /// Where further content can be fetched; nothing here fetches it.
    pub links: Vec<String>,
    /// The names of files that are too large.
    pub skipped: Vec<String>,
    /// How many files there are beyond those.
    pub more_files: usize,
    /// How many parts hold nothing that can be read, such as a file in broken base64.
    pub unreadable: usize,
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
    pub(crate) fn from_task(task: &Task, max_file_bytes: u64) -> Self {
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
        let left_out = task.artifacts.iter().map(|artifact| artifact.omitted);
        for omitted in left_out.chain(said.map(|message| message.omitted)).chain([task.omitted]) {
            outcome.more_files += omitted.files;
        }
        let made = artifacts_text(&task.artifacts);
        let said = said.map(message_text).unwrap_or_default();
        outcome.answer = match state {
            TaskState::InputRequired | TaskState::AuthRequired => join(said, made),
            TaskState::Failed | TaskState::Rejected => join(made, said),
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
    pub(crate) fn from_message(message: &Message, max_file_bytes: u64) -> Self {
        let mut outcome = Self::empty(max_file_bytes);
        for part in &message.parts {
            outcome.take(part, None);
        }
        outcome.more_files += message.omitted.files;
        outcome.answer = message_text(message);
        outcome.context_id.clone_from(&message.context_id);
        outcome
    }

    /// The same without our secrets.
    pub(crate) fn masked(mut self, scrubber: &Scrubber) -> Self {
        self.answer = scrubber.text(self.answer);
        for text in self.links.iter_mut().chain(&mut self.skipped) {
            *text = scrubber.text(mem::take(text));
        }
        for file in &mut self.files {
            file.name = file.name.take().map(|name| scrubber.text(name));
            file.bytes = scrubber.file(mem::take(&mut file.bytes));
        }
        self
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
            unreadable: 0,
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
            // Some agents add empty parts; there is nothing to tell about those.
            PartContent::Unknown if *part != Part::new(PartContent::Unknown) => {
                self.unreadable += 1;
            }
            _ => {}
        }
    }
}

/// The `response` artifact, else all of them.
fn artifacts_text(artifacts: &[Artifact]) -> String {
    let is_response = |artifact: &&Artifact| {
        artifact.artifact_id == RESPONSE || artifact.name.as_deref() == Some(RESPONSE)
    };
    let mut text = String::new();
    for artifact in artifacts.iter().filter(is_response) {
        push_artifact(&mut text, artifact);
    }
    // A response without a word is no answer.
    if text.is_empty() {
        for artifact in artifacts {
            push_artifact(&mut text, artifact);
        }
    }
    text
}

/// An artifact's parts without a break between them: a streamed artifact has one part per chunk. One without a visible
/// character leaves no trace.
fn push_artifact(all: &mut String, artifact: &Artifact) {
    if !artifact.parts.iter().any(is_visible) {
        return;
    }
    begin_line(all);
    for part in &artifact.parts {
        match &part.content {
            PartContent::Text(text) => all.push_str(text),
            PartContent::Data(value) => {
                begin_line(all);
                all.push_str(value.as_str());
            }
            _ => {}
        }
    }
}

/// A message's parts, one below the other.
fn message_text(message: &Message) -> String {
    let mut all = String::new();
    for part in message.parts.iter().filter(|part| is_visible(part)) {
        begin_line(&mut all);
        match &part.content {
            PartContent::Text(text) => all.push_str(text),
            PartContent::Data(value) => all.push_str(value.as_str()),
            _ => {}
        }
    }
    all
}

fn is_visible(part: &Part) -> bool {
    match &part.content {
        PartContent::Text(text) => !text.trim().is_empty(),
        PartContent::Data(_) => true,
        _ => false,
    }
}

/// Ends the last line, so that what follows stands on lines of its own.
fn begin_line(all: &mut String) {
    all.truncate(all.trim_end_matches('\n').len());
    if !all.is_empty() {
        all.push('\n');
    }
}

/// Two texts on lines of their own; an empty one, or one that repeats the other, leaves no trace.
fn join(mut first: String, mut second: String) -> String {
    match (first.trim().is_empty(), second.trim().is_empty()) {
        (true, _) => return second,
        (false, true) => return first,
        (false, false) if first.trim() == second.trim() => return first,
        (false, false) => {}
    }
    first.truncate(first.trim_end_matches('\n').len());
    first.push('\n');
    // The longer one stays where it is.
    if first.len() < second.len() {
        second.insert_str(0, &first);
        second
    } else {
        first.push_str(&second);
        first
    }
}

#[cfg(test)]
mod tests;
