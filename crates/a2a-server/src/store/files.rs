//! Tasks as files, one JSON file each.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use volcanic_a2a_types::TaskId;
use volcanic_base::{ConfineError, ConfinedDir, EntryKind, sweep_temp_files};

use super::{TaskRecord, TaskStore, TaskStoreError, TaskSummary};

/// Only the owner reads task files: they hold webhook tokens.
const FILE_MODE: u32 = 0o600;

/// Keeps each task in `<folder>/<taskId>.json`, replaced atomically at every change.
///
/// Nothing is created before the first task is. A file that cannot be read as a task counts as none, with a warning
/// that names it. Lists come from an index in memory, built at first use; a single task is read fresh.
#[derive(Debug, Clone)]
pub struct FileTasks {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    root: ConfinedDir,
    folder: PathBuf,
    max_bytes: u64,
    index: Mutex<Option<HashMap<TaskId, TaskSummary>>>,
}

impl FileTasks {
    /// Keeps tasks under `folder`, a path relative to `root`. Files over `max_bytes` are neither written nor read.
    pub fn new(root: ConfinedDir, folder: impl Into<PathBuf>, max_bytes: u64) -> Self {
        let inner = Inner { root, folder: folder.into(), max_bytes, index: Mutex::default() };
        Self { inner: Arc::new(inner) }
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Inner) -> Result<T, TaskStoreError> + Send + 'static,
    ) -> Result<T, TaskStoreError> {
        let inner = Arc::clone(&self.inner);
        let done = tokio::task::spawn_blocking(move || work(&inner)).await;
        done.map_err(|_| TaskStoreError::Interrupted)?
    }
}

#[async_trait]
impl TaskStore for FileTasks {
    async fn load(&self, id: &TaskId) -> Result<Option<TaskRecord>, TaskStoreError> {
        let Some(name) = file_name(id) else { return Ok(None) };
        let id = id.clone();
        self.blocking(move |inner| {
            let path = inner.folder.join(name);
            Ok(inner.read(&path)?.filter(|record| record.task.id == id))
        })
        .await
    }

    async fn save(&self, record: &TaskRecord) -> Result<(), TaskStoreError> {
        let id = &record.task.id;
        let name = file_name(id).ok_or(TaskStoreError::Interrupted)?;
        let bytes = serde_json::to_vec(record).map_err(|source| TaskStoreError::Encode {
            id: id.clone(),
            source: Arc::new(source),
        })?;
        let limit = self.inner.max_bytes;
        if bytes.len() as u64 > limit {
            return Err(TaskStoreError::TooLarge { id: id.clone(), limit });
        }
        let summary = record.summary();
        self.blocking(move |inner| inner.write(&inner.folder.join(name), &bytes, summary)).await
    }

    async fn summaries(&self) -> Result<Vec<TaskSummary>, TaskStoreError> {
        self.blocking(|inner| {
            let mut index = inner.index();
            if index.is_none() {
                *index = Some(inner.scan()?);
            }
            Ok(index.iter().flat_map(HashMap::values).cloned().collect())
        })
        .await
    }
}

impl Inner {
    fn index(&self) -> MutexGuard<'_, Option<HashMap<TaskId, TaskSummary>>> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self, path: &Path) -> Result<Option<TaskRecord>, TaskStoreError> {
        let bytes = match self.root.read_to_limit(path, self.max_bytes) {
            Ok(bytes) => bytes,
            Err(ConfineError::NotFound { .. }) => return Ok(None),
            Err(error @ ConfineError::Io { .. }) => return Err(access(path, error)),
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "task file is unusable");
                return Ok(None);
            }
        };
        match serde_json::from_slice(&bytes) {
            Ok(record) => Ok(Some(record)),
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "task file is malformed");
                Ok(None)
            }
        }
    }

    fn write(&self, path: &Path, bytes: &[u8], summary: TaskSummary) -> Result<(), TaskStoreError> {
        let written = match self.root.write_atomic(path, bytes, FILE_MODE) {
            Err(ConfineError::NotFound { .. }) => self
                .root
                .create_dir_all(&self.folder)
                .and_then(|()| self.root.write_atomic(path, bytes, FILE_MODE)),
            written => written,
        };
        written.map_err(|error| access(path, error))?;
        if let Some(index) = self.index().as_mut() {
            index.insert(summary.id.clone(), summary);
        }
        Ok(())
    }

    fn scan(&self) -> Result<HashMap<TaskId, TaskSummary>, TaskStoreError> {
        let entries = match self.root.list(&self.folder) {
            Ok(entries) => entries,
            Err(ConfineError::NotFound { .. }) => return Ok(HashMap::new()),
            Err(error) => return Err(access(&self.folder, error)),
        };
        if let Err(error) = sweep_temp_files(self.root.path().join(&self.folder)) {
            tracing::debug!(%error, "failed to sweep the task folder");
        }
        let mut index = HashMap::new();
        for entry in entries.into_iter().filter(|entry| entry.kind == EntryKind::File) {
            let path = Path::new(&entry.name);
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            let Some(record) = self.read(&self.folder.join(path))? else { continue };
            if file_name(&record.task.id).is_some_and(|name| Path::new(&name) == path) {
                index.insert(record.task.id.clone(), record.summary());
            }
        }
        Ok(index)
    }
}

/// The file of a task; `None` for an id that this server would not have made.
fn file_name(id: &TaskId) -> Option<String> {
    crate::tasks::is_plain_id(id.as_str()).then(|| format!("{id}.json"))
}

fn access(path: &Path, source: ConfineError) -> TaskStoreError {
    TaskStoreError::Access { path: path.to_owned(), source: Arc::new(source) }
}
