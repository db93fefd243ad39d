//! What came of a remote task: an answer, files and links.
//!
//! [`RemoteAgent::outcome_of`](crate::RemoteAgent::outcome_of) takes a task apart without touching anything; [`TaskOutcome::save`] puts the files into
//! the workspace, on disk before it returns, so that they can be named in what is told.

use std::mem;

use bytes::Bytes;
use volcanic_a2a_types::{
    Artifact, ContextId, Message, Omitted, Part, PartContent, Task, TaskId, TaskState,
};

use crate::remote::scrub::Scrubber;

mod names;
mod save;

pub use save::{INBOX, SavedOutcome, UnsavedFile};

/// How many files of one task are saved.
pub(crate) const MAX_FILES: usize = 20;
/// How many links of one task are told.
const MAX_LINKS: usize = 20;
/// The longest link that is kept, in bytes; more than is shown of one.
const MAX_LINK_BYTES: usize = 16 << 10;
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
    /// Where further content can be fetched, the first 20 places; nothing here fetches it.
    pub links: Vec<String>,
    /// How many links there are beyond those.
    pub more_links: usize,
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
    pub(crate) fn from_task(task: Task, max_file_bytes: u64) -> Self {
        let Task { id, context_id, status, mut artifacts, history, omitted, .. } = task;
        drop(history);
        let (state, mut said) = (status.state, status.message);
        let mut outcome = Self::empty(max_file_bytes);
        for artifact in &mut artifacts {
            for part in &mut artifact.parts {
                outcome.take(part, artifact.name.as_deref());
            }
            outcome.count(artifact.omitted);
        }
        if let Some(message) = &mut said {
            outcome.take_files(message);
        }
        outcome.count(omitted);
        let made = artifacts_text(artifacts);
        let said = || said.map(message_text).unwrap_or_default();
        outcome.answer = match state {
            TaskState::InputRequired | TaskState::AuthRequired => join(said(), made),
            TaskState::Failed | TaskState::Rejected => join(made, said()),
            _ if made.trim().is_empty() => said(),
            _ => made,
        };
        outcome.question = state.is_interrupted();
        outcome.task_id = Some(id);
        outcome.context_id = context_id;
        outcome.state = Some(state);
        outcome
    }

    /// Takes a reply without a task apart.
    pub(crate) fn from_message(mut message: Message, max_file_bytes: u64) -> Self {
        let mut outcome = Self::empty(max_file_bytes);
        outcome.take_files(&mut message);
        outcome.context_id = message.context_id.take();
        outcome.answer = message_text(message);
        outcome
    }

    /// The same without our secrets.
    pub(crate) fn masked(mut self, scrubber: &Scrubber) -> Self {
        self.answer = scrubber.text(self.answer);
        for text in self.links.iter_mut().chain(&mut self.skipped) {
            *text = scrubber.text(mem::take(text));
        }
        for link in &mut self.links {
            link.truncate(link.floor_char_boundary(MAX_LINK_BYTES));
            link.shrink_to_fit();
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
            more_links: 0,
            skipped: Vec::new(),
            more_files: 0,
            unreadable: 0,
            max_file_bytes,
            inline_bytes: MAX_INLINE_BYTES,
        }
    }

    /// Takes the files and links of a message.
    fn take_files(&mut self, message: &mut Message) {
        for part in &mut message.parts {
            self.take(part, None);
        }
        self.count(message.omitted);
    }

    /// Takes a file or a link; text stays where it is.
    fn take(&mut self, part: &mut Part, fallback: Option<&str>) {
        match &mut part.content {
            PartContent::Raw(bytes) => {
                let bytes = mem::take(bytes);
                let name = part.filename.take().or_else(|| fallback.map(str::to_owned));
                if self.files.len() + self.skipped.len() >= MAX_FILES {
                    self.more_files += 1;
                } else if bytes.len() as u64 > self.max_file_bytes {
                    self.skipped.push(name.unwrap_or_else(|| "a file without a name".to_owned()));
                } else {
                    let media_type = part.media_type.take();
                    self.files.push(InlineFile { name, media_type, bytes });
                }
            }
            PartContent::Url(url) if self.links.len() < MAX_LINKS => {
                self.links.push(mem::take(url));
            }
            PartContent::Url(_) => self.more_links += 1,
            // Some agents add empty parts; there is nothing to tell about those.
            PartContent::Unknown => {
                self.unreadable += usize::from(*part != Part::new(PartContent::Unknown));
            }
            _ => {}
        }
    }

    /// Counts what was left out when the answer was read.
    fn count(&mut self, omitted: Omitted) {
        self.more_files += omitted.files;
        self.more_links += omitted.links;
    }
}

/// The `response` artifact, else all of them.
fn artifacts_text(mut artifacts: Vec<Artifact>) -> String {
    let has_text = |artifact: &Artifact| artifact.parts.iter().any(is_visible);
    let is_response = |artifact: &Artifact| {
        artifact.artifact_id == RESPONSE || artifact.name.as_deref() == Some(RESPONSE)
    };
    // A response without a word is no answer.
    let has_response = artifacts.iter().any(|artifact| is_response(artifact) && has_text(artifact));
    artifacts.retain(|artifact| has_text(artifact) && (!has_response || is_response(artifact)));
    let mut all = Joined::of(artifacts.iter().flat_map(|artifact| &artifact.parts));
    for artifact in artifacts {
        all.begin_line();
        // Without a break between them: a streamed artifact has one part per chunk.
        for part in artifact.parts {
            match part.content {
                PartContent::Text(text) => all.push(text),
                PartContent::Data(value) => {
                    all.begin_line();
                    all.push(value.into());
                }
                _ => {}
            }
        }
    }
    all.text
}

/// A message's parts, one below the other.
fn message_text(mut message: Message) -> String {
    message.parts.retain(is_visible);
    let mut all = Joined::of(&message.parts);
    for part in message.parts {
        all.begin_line();
        match part.content {
            PartContent::Text(text) => all.push(text),
            PartContent::Data(value) => all.push(value.into()),
            _ => {}
        }
    }
    all.text
}

fn is_visible(part: &Part) -> bool {
    text_of(part).is_some_and(|text| !text.trim().is_empty())
}

/// The text or data of a part.
fn text_of(part: &Part) -> Option<&str> {
    match &part.content {
        PartContent::Text(text) => Some(text),
        PartContent::Data(value) => Some(value.as_str()),
        _ => None,
    }
}

/// Texts that become one. An answer may be as large as memory allows: each is let go as soon as it is added, the only one is
/// not copied, and what they become is not moved while it grows.
struct Joined {
    text: String,
    /// How long it gets at most.
    length: usize,
}

impl Joined {
    /// Nothing yet, of the texts that are in `parts`.
    fn of<'p>(parts: impl IntoIterator<Item = &'p Part>) -> Self {
        // Each may get a line break before it.
        let length = parts.into_iter().filter_map(text_of).map(|text| text.len() + 1).sum();
        Self { text: String::new(), length }
    }

    fn push(&mut self, text: String) {
        if self.text.is_empty() && text.len() + 1 >= self.length {
            self.text = text;
            return;
        }
        self.text.reserve_exact(self.length.saturating_sub(self.text.len()));
        self.text.push_str(&text);
    }

    /// Ends the last line, so that what follows stands on lines of its own.
    fn begin_line(&mut self) {
        self.text.truncate(self.text.trim_end_matches('\n').len());
        if !self.text.is_empty() {
            self.text.push('\n');
        }
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
