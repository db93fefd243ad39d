//! Work that an agent keeps track of.

use serde::de::{Deserializer, SeqAccess};

use crate::{
    ArtifactId, ContextId, JsonObject, Message, Omitted, Part, TaskId, TaskState, WireTimestamp,
    part,
    wire::{Reading, WireItem, wire_object},
};

wire_object! {
    /// Work that an agent keeps track of (specification: `Task`).
    pub struct Task keeps extra counts omitted {
        /// Made by the agent.
        id: TaskId = Required("id"),
        /// The context it belongs to; agents nearly always say it.
        context_id: Option<ContextId> = Optional("contextId" | "context_id"),
        /// Where it stands.
        status: TaskStatus = Required("status"),
        /// What it has brought forth.
        artifacts: Vec<Artifact> = List("artifacts"),
        /// What was said, as far as the agent keeps and tells it.
        history: Vec<Message> = History("history"),
        /// Further values, keyed by extension.
        metadata: Option<JsonObject> = Optional("metadata"),
    }
}

wire_object! {
    /// Where a task stands (specification: `TaskStatus`).
    pub struct TaskStatus keeps extra {
        /// The state; [`TaskState::Unspecified`] if the agent did not say.
        state: TaskState = Plain("state"),
        /// A word on it: progress, a question, what went wrong.
        message: Option<Message> = Optional("message"),
        /// Since when.
        timestamp: Option<WireTimestamp> = Optional("timestamp"),
    }
}

wire_object! {
    /// Something a task has brought forth (specification: `Artifact`).
    ///
    /// The specification wants at least one part. Reading accepts none: one empty artifact must not make the outcome
    /// of a whole task unreadable, and a last chunk often has nothing to add.
    pub struct Artifact keeps extra counts omitted {
        /// Unique within the task.
        artifact_id: ArtifactId = Required("artifactId" | "artifact_id"),
        /// A name for people.
        name: Option<String> = Optional("name"),
        /// A description for people.
        description: Option<String> = Optional("description"),
        /// The content.
        parts: Vec<Part> = Array("parts"),
        /// Further values, keyed by extension.
        metadata: Option<JsonObject> = Optional("metadata"),
        /// The URIs of extensions that had a hand in it.
        extensions: Vec<String> = List("extensions"),
    }
}

impl Task {
    /// Creates a task without artifacts or history.
    pub fn new(
        id: impl Into<TaskId>,
        context_id: impl Into<ContextId>,
        status: TaskStatus,
    ) -> Self {
        Self {
            id: id.into(),
            context_id: Some(context_id.into()),
            status,
            artifacts: Vec::new(),
            history: Vec::new(),
            metadata: None,
            extra: JsonObject::new(),
            omitted: Omitted::default(),
        }
    }

    /// The state it is in.
    pub fn state(&self) -> &TaskState {
        &self.status.state
    }
}

impl TaskStatus {
    /// Creates a status without message or timestamp.
    pub fn new(state: TaskState) -> Self {
        Self { state, message: None, timestamp: None, extra: JsonObject::new() }
    }

    /// Sets the moment since when it holds.
    #[must_use]
    pub fn at(mut self, moment: impl Into<WireTimestamp>) -> Self {
        self.timestamp = Some(moment.into());
        self
    }

    /// Sets the message.
    #[must_use]
    pub fn with_message(mut self, message: Message) -> Self {
        self.message = Some(message);
        self
    }
}

impl Artifact {
    /// Creates an artifact without name or description.
    pub fn new(artifact_id: impl Into<ArtifactId>, parts: Vec<Part>) -> Self {
        Self {
            artifact_id: artifact_id.into(),
            name: None,
            description: None,
            parts,
            metadata: None,
            extensions: Vec::new(),
            extra: JsonObject::new(),
            omitted: Omitted::default(),
        }
    }

    /// Sets the name.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }
}

impl<'de> WireItem<'de> for Task {
    fn read_item<D: Deserializer<'de>>(
        deserializer: D,
        reading: &Reading,
    ) -> Result<Self, D::Error> {
        Self::read_object(deserializer, reading)
    }
}

impl<'de> WireItem<'de> for Artifact {
    fn read_item<D: Deserializer<'de>>(
        deserializer: D,
        reading: &Reading,
    ) -> Result<Self, D::Error> {
        Self::read_object(deserializer, reading)
    }

    fn spill<A: SeqAccess<'de>>(
        items: &mut Vec<Self>,
        list: A,
        reading: &Reading,
    ) -> Result<(), A::Error> {
        part::spill::artifacts(items, list, reading)
    }
}
