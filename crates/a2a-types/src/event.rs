//! What an agent answers, and what it reports while a task runs.

use crate::{
    Artifact, ContextId, JsonObject, Message, Task, TaskId, TaskStatus,
    wire::{wire_object, wire_oneof},
};

wire_object! {
    /// A task changed its status (specification: `TaskStatusUpdateEvent`).
    pub struct TaskStatusUpdateEvent keeps extra {
        /// The task.
        task_id: TaskId = Required("taskId" | "task_id"),
        /// Its context. Some agents name a wrong one: find a stream's task by its id alone.
        context_id: ContextId = Required("contextId" | "context_id"),
        /// The new status.
        status: TaskStatus = Required("status"),
        /// Further values, keyed by extension.
        metadata: Option<JsonObject> = Optional("metadata"),
    }
}

wire_object! {
    /// A task brought forth an artifact or more of one (specification: `TaskArtifactUpdateEvent`).
    pub struct TaskArtifactUpdateEvent keeps extra {
        /// The task.
        task_id: TaskId = Required("taskId" | "task_id"),
        /// Its context. Some agents name a wrong one: find a stream's task by its id alone.
        context_id: ContextId = Required("contextId" | "context_id"),
        /// The artifact, or the chunk of it.
        artifact: Artifact = Required("artifact"),
        /// Whether the parts go to the end of the artifact with the same id, instead of replacing it.
        append: bool = Plain("append"),
        /// Whether this is the last chunk of the artifact.
        last_chunk: bool = Plain("lastChunk" | "last_chunk"),
        /// Further values, keyed by extension.
        metadata: Option<JsonObject> = Optional("metadata"),
    }
}

wire_oneof! {
    /// One event of a stream, and the body of a push (specification: `StreamResponse`).
    pub enum StreamResponse {
        /// The whole task as it stands.
        Task(Task) = "task",
        /// A direct answer without a task.
        Message(Message) = "message",
        /// A change of status.
        StatusUpdate(TaskStatusUpdateEvent) = "statusUpdate" | "status_update",
        /// An artifact or a chunk of one.
        ArtifactUpdate(TaskArtifactUpdateEvent) = "artifactUpdate" | "artifact_update",
    }
}

wire_oneof! {
    /// The answer to a message (specification: `SendMessageResponse`). The agent chooses; clients handle both.
    #[expect(clippy::large_enum_variant, reason = "one per call and taken apart at once; a box would only be in the way")]
    pub enum SendMessageResponse {
        /// Work that is kept track of.
        Task(Task) = "task",
        /// A direct answer without a task.
        Message(Message) = "message",
    }
}

impl TaskStatusUpdateEvent {
    /// Creates an event without metadata.
    pub fn new(
        task_id: impl Into<TaskId>,
        context_id: impl Into<ContextId>,
        status: TaskStatus,
    ) -> Self {
        Self {
            task_id: task_id.into(),
            context_id: context_id.into(),
            status,
            metadata: None,
            extra: JsonObject::new(),
        }
    }
}

impl TaskArtifactUpdateEvent {
    /// Creates an event that brings a whole artifact.
    pub fn new(
        task_id: impl Into<TaskId>,
        context_id: impl Into<ContextId>,
        artifact: Artifact,
    ) -> Self {
        Self {
            task_id: task_id.into(),
            context_id: context_id.into(),
            artifact,
            append: false,
            last_chunk: false,
            metadata: None,
            extra: JsonObject::new(),
        }
    }

    /// Makes it a chunk that goes to the end of the artifact.
    #[must_use]
    pub fn appending(mut self) -> Self {
        self.append = true;
        self
    }

    /// Makes it the last chunk of the artifact.
    #[must_use]
    pub fn closing(mut self) -> Self {
        self.last_chunk = true;
        self
    }
}

impl StreamResponse {
    /// The task it is about; a direct message may name none.
    pub fn task_id(&self) -> Option<&TaskId> {
        match self {
            Self::Task(task) => Some(&task.id),
            Self::Message(message) => message.task_id.as_ref(),
            Self::StatusUpdate(event) => Some(&event.task_id),
            Self::ArtifactUpdate(event) => Some(&event.task_id),
        }
    }

    /// The status it tells of, if it does.
    pub fn status(&self) -> Option<&TaskStatus> {
        match self {
            Self::Task(task) => Some(&task.status),
            Self::StatusUpdate(event) => Some(&event.status),
            Self::Message(_) | Self::ArtifactUpdate(_) => None,
        }
    }
}
