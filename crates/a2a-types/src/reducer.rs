//! How events change a task that is held in memory.
//!
//! This is for tasks of our own: nothing bounds what they grow to, and each change of status looks through the history. Who
//! follows the task of somebody else takes events as hints and reads it.

use crate::{
    Artifact, JsonObject, StreamResponse, Task, TaskArtifactUpdateEvent, TaskStatusUpdateEvent,
};

/// What an event did to a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applied {
    /// The task was brought up to date.
    Changed,
    /// The event came after the end, where nothing can change any more.
    Late,
    /// The event is about another task.
    OtherTask,
    /// The event is a direct message, which is about no task's state.
    DirectMessage,
}

impl Task {
    /// Brings the task up to date with an event of its stream.
    pub fn apply(&mut self, event: &StreamResponse) -> Applied {
        match event {
            StreamResponse::Task(snapshot) => self.apply_snapshot(snapshot),
            StreamResponse::StatusUpdate(event) => self.apply_status(event),
            StreamResponse::ArtifactUpdate(event) => self.apply_artifact(event),
            StreamResponse::Message(_) => Applied::DirectMessage,
        }
    }

    /// Takes over a snapshot. After the end only one that has ended too counts: agents repeat it before they close.
    pub fn apply_snapshot(&mut self, snapshot: &Self) -> Applied {
        if snapshot.id != self.id {
            return Applied::OtherTask;
        }
        if self.status.state.is_terminal() && !snapshot.status.state.is_terminal() {
            return Applied::Late;
        }
        self.clone_from(snapshot);
        Applied::Changed
    }

    /// Takes over a status. The message of the one before goes to the history, where agents move it as well.
    pub fn apply_status(&mut self, event: &TaskStatusUpdateEvent) -> Applied {
        if event.task_id != self.id {
            return Applied::OtherTask;
        }
        if self.status.state.is_terminal() {
            return Applied::Late;
        }
        let before = std::mem::replace(&mut self.status, event.status.clone());
        if let Some(message) = before.message {
            let still_shown = self
                .status
                .message
                .as_ref()
                .is_some_and(|now| now.message_id == message.message_id);
            let kept = self.history.iter().any(|known| known.message_id == message.message_id);
            if !still_shown && !kept {
                self.history.push(message);
            }
        }
        merge(&mut self.metadata, event.metadata.as_ref());
        Applied::Changed
    }

    /// Takes over an artifact: a chunk extends the one with the same id, a whole one is added or replaces it. A chunk
    /// of an artifact that never began is the agent's fault; it begins one.
    pub fn apply_artifact(&mut self, event: &TaskArtifactUpdateEvent) -> Applied {
        if event.task_id != self.id {
            return Applied::OtherTask;
        }
        if self.status.state.is_terminal() {
            return Applied::Late;
        }
        let id = &event.artifact.artifact_id;
        match self.artifacts.iter_mut().find(|known| known.artifact_id == *id) {
            Some(known) if event.append => extend(known, &event.artifact),
            Some(known) => known.clone_from(&event.artifact),
            None => self.artifacts.push(event.artifact.clone()),
        }
        merge(&mut self.metadata, event.metadata.as_ref());
        Applied::Changed
    }
}

fn extend(artifact: &mut Artifact, chunk: &Artifact) {
    artifact.parts.extend_from_slice(&chunk.parts);
    if chunk.name.is_some() {
        artifact.name.clone_from(&chunk.name);
    }
    if chunk.description.is_some() {
        artifact.description.clone_from(&chunk.description);
    }
    for extension in &chunk.extensions {
        if !artifact.extensions.contains(extension) {
            artifact.extensions.push(extension.clone());
        }
    }
    merge(&mut artifact.metadata, chunk.metadata.as_ref());
    artifact.extra.extend(chunk.extra.clone());
}

fn merge(into: &mut Option<JsonObject>, from: Option<&JsonObject>) {
    if let Some(from) = from {
        into.get_or_insert_default().extend(from.clone());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Message, Part, TaskState, TaskStatus};

    fn task(state: TaskState) -> Task {
        Task::new("t", "c", TaskStatus::new(state))
    }

    fn status(state: TaskState) -> StreamResponse {
        TaskStatusUpdateEvent::new("t", "c", TaskStatus::new(state)).into()
    }

    fn chunk(id: &str, text: &str) -> TaskArtifactUpdateEvent {
        TaskArtifactUpdateEvent::new("t", "c", Artifact::new(id, vec![Part::text(text)]))
    }

    fn texts(task: &Task) -> Vec<Vec<&str>> {
        task.artifacts
            .iter()
            .map(|artifact| artifact.parts.iter().filter_map(Part::as_text).collect())
            .collect()
    }

    #[test]
    fn chunks_extend_their_artifact_and_whole_ones_replace_it() {
        let mut task = task(TaskState::Working);
        for event in [
            chunk("a", "1"),
            chunk("a", "2").appending(),
            chunk("b", "x"),
            chunk("a", "3").appending(),
        ] {
            assert_eq!(task.apply(&event.into()), Applied::Changed);
        }
        assert_eq!(texts(&task), [vec!["1", "2", "3"], vec!["x"]]);
        task.apply_artifact(&chunk("a", "new"));
        assert_eq!(texts(&task), [vec!["new"], vec!["x"]]);
    }

    #[test]
    fn chunk_of_an_unknown_artifact_begins_it() {
        let mut task = task(TaskState::Working);
        task.apply_artifact(&chunk("a", "late").appending().closing());
        assert_eq!(texts(&task), [vec!["late"]]);
    }

    #[test]
    fn late_event_after_final_is_ignored() {
        let mut ended = task(TaskState::Completed);
        let before = ended.clone();
        assert_eq!(ended.apply(&status(TaskState::Working)), Applied::Late);
        assert_eq!(ended.apply(&chunk("a", "x").into()), Applied::Late);
        assert_eq!(ended.apply(&task(TaskState::Working).into()), Applied::Late);
        assert_eq!(ended, before);
        let mut whole = task(TaskState::Completed);
        whole.artifacts.push(Artifact::new("a", vec![Part::text("x")]));
        assert_eq!(ended.apply(&whole.clone().into()), Applied::Changed);
        assert_eq!(ended, whole);
    }

    #[test]
    fn events_of_other_tasks_and_direct_messages_change_nothing() {
        let mut mine = task(TaskState::Working);
        let before = mine.clone();
        let other = TaskStatusUpdateEvent::new("o", "c", TaskStatus::new(TaskState::Failed));
        assert_eq!(mine.apply(&other.into()), Applied::OtherTask);
        assert_eq!(
            mine.apply(&Message::agent("m", vec![Part::text("hi")]).into()),
            Applied::DirectMessage
        );
        assert_eq!(mine, before);
    }

    #[test]
    fn message_of_the_status_before_moves_to_the_history_once() {
        let mut task = task(TaskState::Working);
        let said = |id: &str| Message::agent(id, vec![Part::text(id)]);
        let mut step = |id: &str| {
            let status = TaskStatus::new(TaskState::Working).with_message(said(id));
            task.apply_status(&TaskStatusUpdateEvent::new("t", "c", status));
        };
        for id in ["one", "one", "two", "three"] {
            step(id);
        }
        assert_eq!(task.history, [said("one"), said("two")]);
        assert_eq!(task.status.message, Some(said("three")));
    }

    #[test]
    fn metadata_is_merged() {
        let mut task = task(TaskState::Working);
        task.metadata = json!({"kept": 1, "changed": 1}).as_object().cloned();
        let mut event = TaskStatusUpdateEvent::new("t", "c", TaskStatus::new(TaskState::Working));
        event.metadata = json!({"changed": 2, "new": 3}).as_object().cloned();
        task.apply_status(&event);
        assert_eq!(task.metadata, json!({"kept": 1, "changed": 2, "new": 3}).as_object().cloned());
    }
}
