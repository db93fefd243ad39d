//! Puts what came into the workspace.

use std::{
    collections::HashSet,
    fs::File,
    io::{self, Read as _},
};

use volcanic_a2a_types::{ContextId, TaskId, TaskState};
use volcanic_base::{ConfineError, ConfinedDir, with_causes};

use super::{InlineFile, MAX_INLINE_LINES, TaskOutcome, names};

/// Where received files go: the folder in a workspace that has one for each agent.
pub const INBOX: &str = "inbox/a2a";
/// How the file with an answer too long to be told is called.
const ANSWER_FILE: &str = "answer.txt";
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
    /// Whether the whole text is longer than that.
    pub is_cut: bool,
    /// The file that holds the whole of a longer text, if it could be saved; a path from the workspace.
    pub answer_file: Option<String>,
    /// Whether the task waits for us.
    pub question: bool,
    /// The saved files; paths from the workspace.
    pub saved: Vec<String>,
    /// The files that could not be saved.
    pub unsaved: Vec<UnsavedFile>,
    /// Where further content can be fetched.
    pub links: Vec<String>,
    /// How many links there are beyond those.
    pub more_links: usize,
    /// The names of files that are too large.
    pub skipped: Vec<String>,
    /// How many files there are beyond those.
    pub more_files: usize,
    /// How many parts hold nothing that can be read.
    pub unreadable: usize,
    /// The largest file that is taken, in bytes.
    pub max_file_bytes: u64,
}

impl SavedOutcome {
    /// Why files could not be saved, if trying again later may help with each of them.
    pub fn passing_failure(&self) -> Option<&str> {
        let all_pass = self.unsaved.iter().all(|file| file.may_pass);
        self.unsaved.first().filter(|_| all_pass).map(|file| file.reason.as_str())
    }
}

/// A file that came and could not be saved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsavedFile {
    /// What it was to be called; made safe, so it can be shown.
    pub name: String,
    /// Why, for people to read.
    pub reason: String,
    /// Whether the reason may pass by itself, as when the disk is full.
    pub may_pass: bool,
}

/// Why something cannot be saved.
#[derive(Debug, Clone)]
struct SaveFailure {
    reason: String,
    may_pass: bool,
}

impl SaveFailure {
    fn of(error: &ConfineError) -> Self {
        // What stands in the way stays until somebody takes it away; what the system lacks may come.
        let may_pass = match error {
            ConfineError::Io { source, path: _ } => !matches!(
                source.kind(),
                io::ErrorKind::PermissionDenied
                    | io::ErrorKind::ReadOnlyFilesystem
                    | io::ErrorKind::Unsupported
                    | io::ErrorKind::FileTooLarge
                    | io::ErrorKind::InvalidFilename
            ),
            _ => false,
        };
        Self { reason: with_causes(error), may_pass }
    }
}

impl TaskOutcome {
    /// Saves the files, and an answer too long to be told, to `inbox/a2a/<agent>/`; they are on disk when this returns.
    /// No file is overwritten: a taken name gets a number, except that a file with the very same content is used as it
    /// is, so that saving again after a crash, or after a failure, leaves no second copy. What cannot be saved is named
    /// with the reason, and the text is there all the same. Blocks.
    pub fn save(&self, workspace: &ConfinedDir, agent: &str) -> SavedOutcome {
        let mut saved = self.unsaved_yet();
        if !saved.is_cut && self.files.is_empty() {
            return saved;
        }
        let mut inbox = match Inbox::open(workspace, agent) {
            Ok(inbox) => inbox,
            Err(error) => {
                self.note_unsaved(&mut saved, &SaveFailure::of(&error));
                return saved;
            }
        };
        if saved.is_cut {
            saved.answer_file =
                saved.keep(inbox.put(ANSWER_FILE, self.answer.as_bytes()), ANSWER_FILE);
        }
        for file in &self.files {
            let name = file.safe_name();
            let path = saved.keep(inbox.put(&name, &file.bytes), &name);
            saved.saved.extend(path);
        }
        if let Err(error) = inbox.sync() {
            // What is there may be gone after a crash, so it does not count, and nobody is told of it.
            inbox.take_back();
            saved = self.unsaved_yet();
            self.note_unsaved(&mut saved, &SaveFailure::of(&error));
        }
        saved
    }

    /// The outcome when there is no workspace to save files to.
    pub fn save_nothing(&self, error: &ConfineError) -> SavedOutcome {
        let mut saved = self.unsaved_yet();
        self.note_unsaved(&mut saved, &SaveFailure::of(error));
        saved
    }

    fn unsaved_yet(&self) -> SavedOutcome {
        let shown = head_of(&self.answer, self.inline_bytes);
        SavedOutcome {
            answer: shown.to_owned(),
            is_cut: shown.len() < self.answer.trim_end().len(),
            answer_file: None,
            task_id: self.task_id.clone(),
            context_id: self.context_id.clone(),
            state: self.state.clone(),
            question: self.question,
            saved: Vec::new(),
            unsaved: Vec::new(),
            links: self.links.clone(),
            more_links: self.more_links,
            skipped: self.skipped.clone(),
            more_files: self.more_files,
            unreadable: self.unreadable,
            max_file_bytes: self.max_file_bytes,
        }
    }

    fn note_unsaved(&self, saved: &mut SavedOutcome, failure: &SaveFailure) {
        let answer = saved.is_cut.then(|| ANSWER_FILE.to_owned());
        for name in answer.into_iter().chain(self.files.iter().map(InlineFile::safe_name)) {
            saved.note_unsaved(&name, failure);
        }
    }
}

impl SavedOutcome {
    /// The path of a saved file; one that is not saved is noted.
    fn keep(&mut self, put: Result<String, SaveFailure>, name: &str) -> Option<String> {
        put.map_err(|failure| self.note_unsaved(name, &failure)).ok()
    }

    fn note_unsaved(&mut self, name: &str, SaveFailure { reason, may_pass }: &SaveFailure) {
        let (name, reason, may_pass) = (name.to_owned(), reason.clone(), *may_pass);
        self.unsaved.push(UnsavedFile { name, reason, may_pass });
    }
}

impl InlineFile {
    fn safe_name(&self) -> String {
        names::safe_name(self.name.as_deref(), self.media_type.as_deref())
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

/// Whether a file has this content. Looks at a little at a time, as there may be no room for another copy of it.
fn is_same(mut file: File, bytes: &[u8]) -> io::Result<bool> {
    const PIECE: usize = 64 << 10;
    if file.metadata()?.len() != bytes.len() as u64 {
        return Ok(false);
    }
    let mut piece = vec![0; PIECE];
    for expected in bytes.chunks(PIECE) {
        let found = &mut piece[..expected.len()];
        file.read_exact(found)?;
        if found != expected {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The folder of one agent.
struct Inbox {
    path: String,
    folder: ConfinedDir,
    /// The names in it, in lower case: some file systems know no other.
    taken: HashSet<String>,
    /// What was made here.
    made: Vec<String>,
}

impl Inbox {
    fn open(workspace: &ConfinedDir, agent: &str) -> Result<Self, ConfineError> {
        let path = format!("{INBOX}/{agent}");
        workspace.create_dir_all(&path)?;
        let folder = workspace.open_dir(&path)?;
        folder.sweep_temp_files(".")?;
        let taken = folder
            .list(".")?
            .into_iter()
            .map(|entry| entry.name.to_string_lossy().to_lowercase())
            .collect();
        Ok(Self { path, folder, taken, made: Vec::new() })
    }

    /// Saves one file under a safe name and returns its path from the workspace.
    fn put(&mut self, wanted: &str, bytes: &[u8]) -> Result<String, SaveFailure> {
        let mut number = 1;
        loop {
            let name =
                if number == 1 { wanted.to_owned() } else { names::numbered(wanted, number) };
            if self.has_content(&name, bytes) {
                return Ok(format!("{}/{name}", self.path));
            }
            let lower = name.to_lowercase();
            if !self.taken.contains(&lower) {
                match self.folder.create_new(&name, bytes, FILE_MODE) {
                    Ok(()) => {
                        self.taken.insert(lower);
                        self.made.push(name.clone());
                        return Ok(format!("{}/{name}", self.path));
                    }
                    Err(ConfineError::AlreadyExists { path: _ }) => {
                        self.taken.insert(lower);
                    }
                    Err(error) => return Err(SaveFailure::of(&error)),
                }
            }
            number += 1;
            if number > MAX_NUMBER {
                let reason = "too many files have the same name".to_owned();
                return Err(SaveFailure { reason, may_pass: false });
            }
        }
    }

    fn has_content(&self, name: &str, bytes: &[u8]) -> bool {
        self.taken.contains(&name.to_lowercase())
            && self.folder.open_file(name).is_ok_and(|file| is_same(file, bytes).unwrap_or(false))
    }

    /// Removes what was made, as far as that is possible.
    fn take_back(&self) {
        for name in &self.made {
            let _ = self.folder.remove_file(name);
        }
    }

    /// Makes the names durable.
    fn sync(&self) -> Result<(), ConfineError> {
        self.folder
            .sync()
            .map_err(|source| ConfineError::Io { path: self.path.clone().into(), source })
    }
}
