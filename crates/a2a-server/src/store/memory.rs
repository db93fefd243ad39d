//! Tasks in memory, gone with the process.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use volcanic_a2a_types::TaskId;

use super::{TaskRecord, TaskStore, TaskStoreError, TaskSummary};

/// How many ended tasks are kept unless the host says otherwise.
const DEFAULT_CAPACITY: usize = 10_000;

/// Keeps tasks in memory; for demonstrations and tests. When it is full, the oldest ended task makes room.
#[derive(Debug)]
pub struct MemoryTasks {
    capacity: usize,
    tasks: Mutex<HashMap<TaskId, TaskRecord>>,
}

impl MemoryTasks {
    /// Creates a store that keeps `capacity` tasks, more only while more have not ended.
    pub fn with_capacity(capacity: usize) -> Self {
        Self { capacity, tasks: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<TaskId, TaskRecord>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for MemoryTasks {
    fn default() -> Self {
        Self::with_capacity(DEFAULT_CAPACITY)
    }
}

#[async_trait]
impl TaskStore for MemoryTasks {
    async fn load(&self, id: &TaskId) -> Result<Option<TaskRecord>, TaskStoreError> {
        Ok(self.lock().get(id).cloned())
    }

    async fn save(&self, record: &TaskRecord) -> Result<(), TaskStoreError> {
        let mut tasks = self.lock();
        if tasks.len() >= self.capacity && !tasks.contains_key(&record.task.id) {
            let ended = tasks.values().filter(|kept| kept.task.status.state.is_terminal());
            let oldest = ended.min_by_key(|kept| kept.summary().status_at);
            if let Some(id) = oldest.map(|kept| kept.task.id.clone()) {
                tasks.remove(&id);
            }
        }
        tasks.insert(record.task.id.clone(), record.clone());
        Ok(())
    }

    async fn summaries(&self) -> Result<Vec<TaskSummary>, TaskStoreError> {
        Ok(self.lock().values().map(TaskRecord::summary).collect())
    }
}
