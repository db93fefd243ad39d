//! Work that an agent keeps track of.

use serde::de::{Deserializer, SeqAccess};

use crate::{
    ArtifactId, ContextId, JsonObject, Message, MessageId, Omitted, Part, TaskId, TaskState,
    WireTimestamp, part,
    wire::{
        Blank as _, Reading, WireItem,
        quick::{self, Quick},
        wire_object,
    },
};

/// How much of a message's id stands in the note of a question, in characters. Agents that make longer ones do not begin
/// them alike.
const NOTED: usize = 200;

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

impl TaskStatus {
    /// A note of the question that the task waits with, to be kept while it is answered; `None` if it asks nothing. It is
    /// short, whatever the agent says, and names state, moment and message.
    pub fn question_note(&self) -> Option<String> {
        let asked = self.message.as_ref().map(|asked| note_of(&asked.message_id));
        Some(format!("{}{}", self.question_head()?, asked.unwrap_or_default()))
    }

    /// Whether the task shows the question of a note still: nothing in it is newer. Many agents say nothing of a task until
    /// they have something to say and show the question until then; some clear its words as soon as they have the answer.
    pub fn is_question_of(&self, note: &str) -> bool {
        let Some(asked) = self.question_head().and_then(|head| note.strip_prefix(&head)) else {
            return false;
        };
        self.message.as_ref().is_none_or(|asks| note_of(&asks.message_id) == asked)
    }

    /// What is the same of a question as long as nothing newer is said.
    fn question_head(&self) -> Option<String> {
        let at = self.timestamp.as_ref().map(ToString::to_string).unwrap_or_default();
        self.state.is_interrupted().then(|| format!("{} {at} ", self.state))
    }
}

fn note_of(id: &MessageId) -> String {
    id.as_str().chars().take(NOTED).collect()
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

impl<'de> WireItem<'de> for Artifact {
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

    fn spill<A: SeqAccess<'de>>(
        items: &mut Vec<Self>,
        list: A,
        reading: &Reading,
    ) -> Result<(), A::Error> {
        part::spill::artifacts(items, list, reading)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(id: &str, at: &str) -> TaskStatus {
        TaskStatus::new(TaskState::InputRequired)
            .with_message(Message::agent(id, vec![Part::text("Which day?")]))
            .at(at.parse::<WireTimestamp>().unwrap())
    }

    #[test]
    fn question_is_the_noted_one_until_anything_in_it_is_newer() {
        let (now, later) = ("2026-11-30T08:00:00Z", "2026-11-30T08:00:01Z");
        let before = asked("m1", now);
        let note = before.question_note().unwrap();
        assert!(before.is_question_of(&note));
        let mut cleared = before.clone();
        cleared.message = None;
        assert!(cleared.is_question_of(&note));
        assert!(!asked("m2", now).is_question_of(&note));
        assert!(!asked("m1", later).is_question_of(&note));
        for state in [TaskState::AuthRequired, TaskState::Working, TaskState::Completed] {
            let other = TaskStatus { state, ..before.clone() };
            assert!(!other.is_question_of(&note), "{other:?}");
        }
    }

    #[test]
    fn question_without_message_or_moment_is_noted_and_newer_once_it_has_words() {
        let silent = TaskStatus::new(TaskState::InputRequired);
        let note = silent.question_note().unwrap();
        assert!(silent.is_question_of(&note));
        let words = Message::agent("m1", vec![Part::text("Which day?")]);
        assert!(!silent.with_message(words).is_question_of(&note));
    }

    #[test]
    fn note_is_short_whatever_the_agent_says_and_there_is_none_without_a_question() {
        let note = asked(&"ä".repeat(1 << 20), "2026-11-30T08:00:00Z").question_note().unwrap();
        assert!(note.len() < 500, "{}", note.len());
        assert_eq!(TaskStatus::new(TaskState::Working).question_note(), None);
        assert_eq!(TaskStatus::new(TaskState::Completed).question_note(), None);
    }
}
