//! Puts what came into the workspace.

use std::{collections::HashSet, io};

use volcanic_a2a_types::{ContextId, TaskId, TaskState};
use volcanic_base::{ConfineError, ConfinedDir};

use super::{InlineFile, MAX_INLINE_LINES, TaskOutcome, names};

/// Where received files go, by agent.
const INBOX: &str = "inbox/a2a";
/// Received files are for their owner alone, and not executable.
const FILE_MODE: u32 = 0o600;
/// How many names are tried before a clash is given up; nobody gets there by accident.
const MAX_NUMBER: u32 = 10_000;

/// An outcome whose files are in the workspace, ready to be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedOutcome {
    /// The task; `None` for a reply without one.
    pub task_id: Option<TaskId>,
    /// Its context.
    pub context_id: Option<ContextId>,
    /// Where the task stands; `None` for a reply.
    pub state: Option<TaskState>,
    /// The text that is told in place, as the agent wrote it.
    pub answer: String,
    /// The file that holds the whole text, if it is longer than that; a path from the workspace.
    pub answer_file: Option<String>,
    /// Whether the task waits for us.
    pub question: bool,
    /// The saved files; paths from the workspace.
    pub saved: Vec<String>,
    /// Where further content can be fetched.
    pub links: Vec<String>,
    /// The names of files that are too large.
    pub skipped: Vec<String>,
    /// How many files there are beyond those.
    pub more_files: usize,
    /// How many parts hold nothing that can be read.
    pub unreadable: usize,
    /// The largest file that is taken, in bytes.
    pub max_file_bytes: u64,
}

/// An error while saving what came.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SaveError {
    /// The folder or a file in it cannot be used.
    #[error("failed to save what agent \"{agent}\" sent")]
    Confined {
        /// The agent.
        agent: String,
        /// Why.
        #[source]
        source: ConfineError,
    },
    /// A file could not be written.
    #[error("failed to write what agent \"{agent}\" sent")]
    Write {
        /// The agent.
        agent: String,
        /// Why.
        #[source]
        source: io::Error,
    },
}

impl TaskOutcome {
    /// Saves the files, and an answer too long to be told, to `inbox/a2a/<agent>/`; they are on disk when this returns.
    /// No file is overwritten: a taken name gets a number, except that a file with the very same content is used as it
    /// is, so that saving again after a crash leaves no second copy. Blocks.
    ///
    /// # Errors
    ///
    /// [`SaveError`]; files written before it stay.
    pub fn save(self, workspace: &ConfinedDir, agent: &str) -> Result<SavedOutcome, SaveError> {
        let shown = head_of(&self.answer, self.inline_bytes);
        let is_long = shown.len() < self.answer.trim_end().len();
        let mut saved = SavedOutcome {
            answer: shown.to_owned(),
            answer_file: None,
            task_id: self.task_id,
            context_id: self.context_id,
            state: self.state,
            question: self.question,
            saved: Vec::new(),
            links: self.links,
            skipped: self.skipped,
            more_files: self.more_files,
            unreadable: self.unreadable,
            max_file_bytes: self.max_file_bytes,
        };
        if !is_long && self.files.is_empty() {
            return Ok(saved);
        }
        let mut inbox = Inbox::open(workspace, agent)?;
        if is_long {
            let text = InlineFile {
                name: Some("answer.txt".to_owned()),
                media_type: None,
                bytes: self.answer.into(),
            };
            saved.answer_file = Some(inbox.put(&text)?);
        }
        for file in &self.files {
            saved.saved.push(inbox.put(file)?);
        }
        inbox.sync()?;
        Ok(saved)
    }
}

/// The beginning of a text, within the limits and in whole lines where that is possible.
fn head_of(text: &str, max_bytes: usize) -> &str {
    let text = text.trim_end();
    let lines_end = text
        .match_indices('\n')
        .nth(MAX_INLINE_LINES - 1)
        .map_or(text.len(), |(newline, _)| newline);
    if lines_end <= max_bytes {
        return &text[..lines_end];
    }
    let mut end = max_bytes;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    match text[..end].rfind('\n') {
        Some(newline) if newline > 0 => &text[..newline],
        Some(_) | None => &text[..end],
    }
}

/// The folder of one agent.
struct Inbox<'a> {
    agent: &'a str,
    path: String,
    folder: ConfinedDir,
    /// The names in it, in lower case: some file systems know no other.
    taken: HashSet<String>,
}

impl<'a> Inbox<'a> {
    fn open(workspace: &ConfinedDir, agent: &'a str) -> Result<Self, SaveError> {
        let path = format!("{INBOX}/{agent}");
        let open = || {
            workspace.create_dir_all(&path)?;
            let folder = workspace.open_dir(&path)?;
            folder.sweep_temp_files(".")?;
            let taken = folder
                .list(".")?
                .into_iter()
                .map(|entry| entry.name.to_string_lossy().to_lowercase())
                .collect();
            Ok((folder, taken))
        };
        let (folder, taken) = open().map_err(|source| Self::confined(agent, source))?;
        Ok(Self { agent, path, folder, taken })
    }

    /// Saves one file and returns its path from the workspace.
    fn put(&mut self, file: &InlineFile) -> Result<String, SaveError> {
        let wanted = names::safe_name(file.name.as_deref(), file.media_type.as_deref());
        let mut number = 1;
        loop {
            let name = if number == 1 { wanted.clone() } else { names::numbered(&wanted, number) };
            if self.has_content(&name, &file.bytes) {
                return Ok(format!("{}/{name}", self.path));
            }
            if self.taken.insert(name.to_lowercase()) {
                match self.folder.create_new(&name, &file.bytes, FILE_MODE) {
                    Ok(()) => return Ok(format!("{}/{name}", self.path)),
                    Err(ConfineError::AlreadyExists { path: _ }) => {}
                    Err(source) => return Err(Self::confined(self.agent, source)),
                }
            }
            number += 1;
            if number > MAX_NUMBER {
                return Err(self.write(io::Error::other("too many files of the same name")));
            }
        }
    }

    fn has_content(&self, name: &str, bytes: &[u8]) -> bool {
        self.taken.contains(&name.to_lowercase())
            && self.folder.read_to_limit(name, bytes.len() as u64).is_ok_and(|found| found == bytes)
    }

    /// Makes the names durable.
    fn sync(&self) -> Result<(), SaveError> {
        self.folder.sync().map_err(|source| self.write(source))
    }

    fn write(&self, source: io::Error) -> SaveError {
        SaveError::Write { agent: self.agent.to_owned(), source }
    }

    fn confined(agent: &str, source: ConfineError) -> SaveError {
        SaveError::Confined { agent: agent.to_owned(), source }
    }
}
