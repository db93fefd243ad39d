//! Where tasks are kept: the contract, and what one kept task consists of.

use std::{fmt, path::PathBuf, sync::Arc};

use async_trait::async_trait;
use volcanic_a2a_types::{ContextId, TaskId, TaskState};

mod files;
mod memory;
mod record;

pub use files::FileTasks;
pub use memory::MemoryTasks;
pub use record::{PendingPush, TaskRecord};

/// Keeps tasks.
///
/// The server calls `save` once per change and never twice at a time for one task; when it returns, the task must
/// survive a crash.
#[async_trait]
pub trait TaskStore: Send + Sync + fmt::Debug {
    /// Reads a task. One that cannot be understood is `None`, and a warning names where it is.
    ///
    /// # Errors
    ///
    /// If the store cannot be read.
    async fn load(&self, id: &TaskId) -> Result<Option<TaskRecord>, TaskStoreError>;

    /// Writes a task, as a whole or not at all.
    ///
    /// # Errors
    ///
    /// If the task could not be made durable; the former version is then still there.
    async fn save(&self, record: &TaskRecord) -> Result<(), TaskStoreError>;

    /// Lists what is kept, in any order.
    ///
    /// # Errors
    ///
    /// If the store cannot be read.
    async fn summaries(&self) -> Result<Vec<TaskSummary>, TaskStoreError>;
}

/// What lists and the start of the server need to know of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskSummary {
    /// The task.
    pub id: TaskId,
    /// The caller it belongs to.
    pub caller: String,
    /// Its context.
    pub context_id: Option<ContextId>,
    /// Its state.
    pub state: TaskState,
    /// The time of its status, in milliseconds since 1970; 0 if it has none.
    pub status_at: i64,
    /// Whether somebody wants pushes about it.
    pub has_push_configs: bool,
    /// Whether pushes are still to be sent.
    pub has_pending_push: bool,
}

/// An error of a task store.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum TaskStoreError {
    /// A file could not be read or written.
    #[error("failed to access task file `{}`", path.display())]
    Access {
        /// The file.
        path: PathBuf,
        /// What was in the way.
        #[source]
        source: Arc<dyn std::error::Error + Send + Sync>,
    },
    /// A task could not be written as JSON.
    #[error("failed to encode task `{id}`")]
    Encode {
        /// The task.
        id: TaskId,
        /// Why not.
        #[source]
        source: Arc<serde_json::Error>,
    },
    /// A task is larger than this store reads.
    #[error("task `{id}` is larger than {limit} bytes")]
    TooLarge {
        /// The task.
        id: TaskId,
        /// The largest size, in bytes.
        limit: u64,
    },
    /// The work was cut off.
    #[error("the task store was interrupted")]
    Interrupted,
}
