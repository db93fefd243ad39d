//! A command's output: its end in memory, the whole of a long one in a file.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::fs::{self, File, OpenOptions};
use tokio::io::AsyncWriteExt as _;

use crate::truncate::{MAX_BYTES, MAX_LINES};

/// How many files of long outputs stay.
const FILES_KEPT: usize = 16;

/// Tells files of one process apart.
static NUMBER: AtomicU64 = AtomicU64::new(0);

/// Collects output. Never more than twice [`MAX_BYTES`] and a chunk are in memory.
#[derive(Debug)]
pub(crate) struct Output {
    directory: PathBuf,
    file_max: u64,
    tail: VecDeque<u8>,
    /// Bytes before `tail`.
    dropped: u64,
    lines: u64,
    /// The last byte was a carriage return, of which the next one decides what it was.
    after_return: bool,
    kept: Kept,
}

/// Where the whole of a long output is.
#[derive(Debug)]
pub(crate) enum Kept {
    /// It is not long.
    Nowhere,
    /// In this file.
    File {
        /// The open file.
        file: File,
        /// Its path.
        path: PathBuf,
        /// Its size so far.
        written: u64,
        /// The output went on after the file had reached its limit.
        full: bool,
    },
    /// It could not be kept.
    Failed(io::Error),
}

impl Output {
    pub(crate) fn new(directory: PathBuf, file_max: u64) -> Self {
        Self {
            directory,
            file_max,
            tail: VecDeque::new(),
            dropped: 0,
            lines: 0,
            after_return: false,
            kept: Kept::Nowhere,
        }
    }

    /// Takes the next bytes.
    pub(crate) async fn push(&mut self, chunk: &[u8]) {
        self.count(chunk);
        let long = self.tail.len() + chunk.len() > MAX_BYTES || self.lines > MAX_LINES as u64;
        if long && matches!(self.kept, Kept::Nowhere) {
            self.keep_whole().await;
        }
        self.keep(chunk).await;
        self.tail.extend(chunk);
        if self.tail.len() > 2 * MAX_BYTES {
            let excess = self.tail.len() - MAX_BYTES;
            self.tail.drain(..excess);
            self.dropped += excess as u64;
        }
    }

    /// Begins the file with everything that came before; nothing of that is dropped yet.
    pub(crate) async fn keep_whole(&mut self) {
        self.kept = match create(&self.directory).await {
            Ok((file, path)) => Kept::File { file, path, written: 0, full: false },
            Err(error) => Kept::Failed(error),
        };
        let before = Vec::from(std::mem::take(&mut self.tail));
        self.keep(&before).await;
        self.tail = before.into();
    }

    async fn keep(&mut self, bytes: &[u8]) {
        let Kept::File { file, written, full, .. } = &mut self.kept else { return };
        let room = usize::try_from(self.file_max.saturating_sub(*written)).unwrap_or(usize::MAX);
        let bytes = if bytes.len() > room {
            *full = true;
            &bytes[..room]
        } else {
            bytes
        };
        if let Err(error) = file.write_all(bytes).await {
            self.kept = Kept::Failed(error);
            return;
        }
        *written += bytes.len() as u64;
    }

    fn count(&mut self, chunk: &[u8]) {
        for byte in chunk {
            // A lone carriage return is shown as a line break.
            if *byte == b'\n' || self.after_return {
                self.lines += 1;
            }
            self.after_return = *byte == b'\r';
        }
    }

    /// The number of lines, the last one also counting when it has no line break.
    pub(crate) fn lines(&self) -> u64 {
        let open = self.tail.back().is_some_and(|byte| *byte != b'\n' && *byte != b'\r');
        self.lines + u64::from(open || self.after_return)
    }

    /// The number of bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.dropped + self.tail.len() as u64
    }

    /// The end of the output as text, and whether anything before it is missing.
    pub(crate) fn tail(&self) -> (String, bool) {
        let cut = self.dropped > 0;
        let continuation = |byte: &&u8| cut && **byte & 0b1100_0000 == 0b1000_0000;
        let skipped = self.tail.iter().take(3).take_while(continuation).count();
        let bytes: Vec<u8> = self.tail.iter().skip(skipped).copied().collect();
        (String::from_utf8_lossy(&bytes).into_owned(), cut)
    }

    /// Ends the file: written out when `needed`, removed when not.
    pub(crate) async fn finish(mut self, needed: bool) -> Kept {
        if needed && matches!(self.kept, Kept::Nowhere) {
            self.keep_whole().await;
        }
        if let Kept::File { file, path, .. } = &mut self.kept {
            let end = if needed { file.flush().await } else { fs::remove_file(&*path).await };
            if let Err(error) = end {
                return Kept::Failed(error);
            }
        }
        self.kept
    }
}

/// Makes a new file and removes the oldest of too many.
async fn create(directory: &Path) -> io::Result<(File, PathBuf)> {
    fs::create_dir_all(directory).await?;
    remove_oldest(directory).await?;
    loop {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = directory.join(format!("bash-{}-{number}.log", std::process::id()));
        // A process with this number may have left files here before.
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).await {
            Ok(file) => return Ok((file, path)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

async fn remove_oldest(directory: &Path) -> io::Result<()> {
    let mut files = Vec::new();
    let mut entries = fs::read_dir(directory).await?;
    while let Some(entry) = entries.next_entry().await? {
        let name = entry.file_name();
        let ours = name.to_str().is_some_and(|name| {
            name.strip_prefix("bash-").is_some_and(|rest| rest.contains(".log"))
        });
        if ours && let Ok(metadata) = entry.metadata().await {
            files.push((metadata.modified()?, entry.path()));
        }
    }
    files.sort();
    let excess = (files.len() + 1).saturating_sub(FILES_KEPT);
    for (_, path) in files.into_iter().take(excess) {
        fs::remove_file(path).await?;
    }
    Ok(())
}
