//! What a scripted agent received, kept before it does anything about it.

use std::{
    collections::VecDeque,
    fmt::Write as _,
    fs::{File, OpenOptions},
    io::{self, Write as _},
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use volcanic_a2a_types::{ContextId, MessageId, PartContent, TaskId};

use crate::executor::{Turn, text_of};

/// Entries kept in memory; the oldest go first.
const KEPT: usize = 10_000;

/// One received message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct JournalEntry {
    /// When the work on it began.
    pub time: Timestamp,
    /// Who sent it.
    pub caller: String,
    /// The task it belongs to.
    pub task_id: TaskId,
    /// The context it belongs to.
    pub context_id: ContextId,
    /// Its id, made by the sender.
    pub message_id: MessageId,
    /// Its text.
    pub text: String,
    /// Its files.
    pub files: Vec<JournalFile>,
    /// How many agents the work came through.
    pub hops: u32,
}

/// One received file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct JournalFile {
    /// Its name, if it has one.
    pub name: Option<String>,
    /// The SHA-256 of its content, in hex.
    pub sha256: String,
    /// Its length.
    pub bytes: usize,
}

/// Keeps entries in memory or in a file of one JSON object per line.
#[derive(Debug)]
pub struct Journal {
    place: Place,
}

#[derive(Debug)]
enum Place {
    Memory(Mutex<VecDeque<JournalEntry>>),
    File(Arc<Mutex<File>>),
}

impl JournalEntry {
    pub(super) fn of(turn: &Turn, time: Timestamp) -> Self {
        let files = turn.message.parts.iter().filter_map(|part| match &part.content {
            PartContent::Raw(bytes) => Some(JournalFile {
                name: part.filename.clone(),
                sha256: hex(&Sha256::digest(bytes)),
                bytes: bytes.len(),
            }),
            _ => None,
        });
        Self {
            time,
            caller: turn.caller.name.clone(),
            task_id: turn.task_id.clone(),
            context_id: turn.context_id.clone(),
            message_id: turn.message.message_id.clone(),
            text: text_of(&turn.message),
            files: files.collect(),
            hops: turn.hops,
        }
    }
}

impl Journal {
    /// Keeps entries in memory.
    pub fn in_memory() -> Self {
        Self { place: Place::Memory(Mutex::default()) }
    }

    /// Appends entries to a file, which is created if it is missing. Each is on disk before the work on it begins.
    ///
    /// # Errors
    ///
    /// If the file cannot be opened.
    pub fn to_file(path: impl AsRef<Path>) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self { place: Place::File(Arc::new(Mutex::new(file))) })
    }

    /// What is kept in memory, oldest first; nothing for a file.
    pub fn entries(&self) -> Vec<JournalEntry> {
        match &self.place {
            Place::Memory(entries) => lock(entries).iter().cloned().collect(),
            Place::File(_) => Vec::new(),
        }
    }

    /// Reads the lines of a journal's file. A last line that a crash cut short is left out.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or a whole line is no entry.
    pub fn read(path: impl AsRef<Path>) -> io::Result<Vec<JournalEntry>> {
        let text = std::fs::read_to_string(path)?;
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().map(|line| serde_json::from_str(line).map_err(io::Error::from)).collect()
    }

    pub(super) async fn append(&self, entry: JournalEntry) -> io::Result<()> {
        let file = match &self.place {
            Place::Memory(entries) => {
                let mut entries = lock(entries);
                if entries.len() >= KEPT {
                    entries.pop_front();
                }
                entries.push_back(entry);
                return Ok(());
            }
            Place::File(file) => Arc::clone(file),
        };
        let mut line = serde_json::to_vec(&entry)?;
        line.push(b'\n');
        let writing = tokio::task::spawn_blocking(move || {
            let mut file = lock(&file);
            file.write_all(&line)?;
            file.sync_data()
        });
        writing.await.map_err(io::Error::other)?
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}
