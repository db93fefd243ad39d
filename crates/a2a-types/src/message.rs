//! What the two sides say to each other.

use serde::de::Deserializer;

use crate::{
    ContextId, JsonObject, MessageId, Omitted, Part, Role, TaskId,
    wire::{
        Blank as _, Reading, WireItem,
        quick::{self, Quick},
        wire_object,
    },
};

wire_object! {
    /// One turn of the conversation (specification: `Message`).
    ///
    /// Reading accepts a message without parts, as some agents report one, and parts without content;
    /// [`SendMessageRequest`] accepts neither.
    ///
    /// [`SendMessageRequest`]: crate::SendMessageRequest
    pub struct Message keeps extra counts omitted {
        /// Chosen by the sender.
        message_id: MessageId = Required("messageId" | "message_id"),
        /// The context it belongs to.
        context_id: Option<ContextId> = Optional("contextId" | "context_id"),
        /// The task it continues or is about.
        task_id: Option<TaskId> = Optional("taskId" | "task_id"),
        /// Who speaks.
        role: Role = Required("role"),
        /// The content.
        parts: Vec<Part> = Array("parts"),
        /// Further values, keyed by extension.
        metadata: Option<JsonObject> = Optional("metadata"),
        /// The URIs of extensions that had a hand in it.
        extensions: Vec<String> = List("extensions"),
        /// Other tasks given as context.
        reference_task_ids: Vec<TaskId> = List("referenceTaskIds" | "reference_task_ids"),
    }
}

impl Message {
    /// Creates a message of the given role, without context or task.
    pub fn new(message_id: impl Into<MessageId>, role: Role, parts: Vec<Part>) -> Self {
        Self {
            message_id: message_id.into(),
            context_id: None,
            task_id: None,
            role,
            parts,
            metadata: None,
            extensions: Vec::new(),
            reference_task_ids: Vec::new(),
            extra: JsonObject::new(),
            omitted: Omitted::default(),
        }
    }

    /// Creates a message from the client to the agent.
    pub fn user(message_id: impl Into<MessageId>, parts: Vec<Part>) -> Self {
        Self::new(message_id, Role::User, parts)
    }

    /// Creates a message from the agent to the client.
    pub fn agent(message_id: impl Into<MessageId>, parts: Vec<Part>) -> Self {
        Self::new(message_id, Role::Agent, parts)
    }

    /// Sets the context.
    #[must_use]
    pub fn with_context(mut self, context_id: impl Into<ContextId>) -> Self {
        self.context_id = Some(context_id.into());
        self
    }

    /// Sets the task.
    #[must_use]
    pub fn with_task(mut self, task_id: impl Into<TaskId>) -> Self {
        self.task_id = Some(task_id.into());
        self
    }

    /// The text of its text parts, one after another.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(Part::as_text)
    }
}

impl<'de> WireItem<'de> for Message {
    fn read_item<D: Deserializer<'de>>(
        deserializer: D,
        reading: &Reading,
    ) -> Result<Self, D::Error> {
        Self::read_object(deserializer, reading)
    }

    fn fill_item(
        place: &mut Option<Self>,
        quick: &mut Quick<'de>,
        reading: &Reading,
    ) -> quick::Result<()> {
        place.insert(Self::blank()).fill_object(quick, reading)
    }

    fn push_item(
        items: &mut Vec<Self>,
        quick: &mut Quick<'de>,
        reading: &Reading,
    ) -> quick::Result<()> {
        items.push(Self::blank());
        items.last_mut().map_or(Ok(()), |item| item.fill_object(quick, reading))
    }
}
