//! Which of a task's texts people have read already, as they came in.

use std::collections::HashMap;

use sha2::{Digest as _, Sha256};
use volcanic_a2a_types::{
    ArtifactId, Message, Part, PartContent, StreamResponse, Task, TaskStatus,
};

/// The most artifacts that are remembered; who has more is told again what came of it.
const MAX_ARTIFACTS: usize = 1000;

/// What was shown of a task, as fingerprints: it may be too long to be kept.
#[derive(Default)]
pub(super) struct Heard {
    /// By the fingerprint of the artifact's id.
    artifacts: HashMap<[u8; 32], Sha256>,
    /// What its last status said.
    status: Option<[u8; 32]>,
    /// There was more than is remembered.
    is_over: bool,
}

impl Heard {
    /// Notes what an event shows.
    pub(super) fn event(&mut self, event: &StreamResponse) {
        match event {
            StreamResponse::Task(task) => {
                self.status(&task.status);
                for artifact in &task.artifacts {
                    self.artifact(&artifact.artifact_id, &artifact.parts, false);
                }
            }
            StreamResponse::StatusUpdate(event) => self.status(&event.status),
            StreamResponse::ArtifactUpdate(event) => {
                self.artifact(&event.artifact.artifact_id, &event.artifact.parts, event.append);
            }
            _ => {}
        }
    }

    fn artifact(&mut self, id: &ArtifactId, parts: &[Part], more: bool) {
        let id = fingerprint(id);
        if !self.artifacts.contains_key(&id) && self.artifacts.len() >= MAX_ARTIFACTS {
            self.is_over = true;
            return;
        }
        let known = self.artifacts.entry(id).or_default();
        if !more {
            known.reset();
        }
        add(known, parts);
    }

    fn status(&mut self, status: &TaskStatus) {
        self.status = status.message.as_ref().map(said_by);
    }

    /// Whether there is a text in the task, and all of it was shown.
    pub(super) fn is_all_of(&self, task: &Task) -> bool {
        let said = task.status.message.as_ref().filter(|message| has_text(&message.parts));
        let mut artifacts = task.artifacts.iter().filter(|artifact| has_text(&artifact.parts));
        let is_any = said.is_some() || artifacts.clone().next().is_some();
        is_any
            && !self.is_over
            && said.is_none_or(|message| self.status == Some(said_by(message)))
            && artifacts.all(|artifact| {
                let mut whole = Sha256::new();
                add(&mut whole, &artifact.parts);
                let shown = self.artifacts.get(&fingerprint(&artifact.artifact_id));
                shown.is_some_and(|shown| shown.clone().finalize() == whole.finalize())
            })
    }
}

fn fingerprint(id: &ArtifactId) -> [u8; 32] {
    Sha256::digest(id.as_str()).into()
}

fn said_by(message: &Message) -> [u8; 32] {
    let mut said = Sha256::new();
    add(&mut said, &message.parts);
    said.finalize().into()
}

/// Adds texts one after the other: an artifact that came in chunks may be read in other pieces.
fn add(to: &mut Sha256, parts: &[Part]) {
    for part in parts {
        to.update(text_of(part));
    }
}

fn has_text(parts: &[Part]) -> bool {
    parts.iter().any(|part| !text_of(part).trim().is_empty())
}

/// What an outcome tells as text; files and links it names in lines of their own.
fn text_of(part: &Part) -> &str {
    match &part.content {
        PartContent::Text(text) => text,
        PartContent::Data(value) => value.as_str(),
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use volcanic_a2a_types::{Artifact, TaskArtifactUpdateEvent, TaskState};

    use super::*;

    fn update(id: &str, text: &str) -> TaskArtifactUpdateEvent {
        TaskArtifactUpdateEvent::new("t", "c", Artifact::new(id, vec![Part::text(text)]))
    }

    fn task(artifacts: &[(&str, &[&str])], said: Option<&str>) -> Task {
        let mut status = TaskStatus::new(TaskState::Completed);
        status.message = said.map(|said| Message::agent("m", vec![Part::text(said)]));
        let mut task = Task::new("t", "c", status);
        task.artifacts = artifacts
            .iter()
            .map(|(id, texts)| {
                Artifact::new(*id, texts.iter().map(|text| Part::text(*text)).collect())
            })
            .collect();
        task
    }

    #[test]
    fn what_came_in_chunks_was_shown_however_it_is_put_together() {
        let mut heard = Heard::default();
        heard.event(&update("a", "old").into());
        heard.event(&update("a", "one ").into());
        heard.event(&update("a", "two").appending().into());
        heard.event(&update("b", "three").into());
        assert!(heard.is_all_of(&task(&[("a", &["one two"])], None)));
        assert!(heard.is_all_of(&task(&[("a", &["one ", "two"]), ("b", &["three"])], None)));
        assert!(!heard.is_all_of(&task(&[("a", &["one two three"])], None)));
        assert!(!heard.is_all_of(&task(&[("c", &["one two"])], None)));
        assert!(!heard.is_all_of(&task(&[("a", &["one two"])], Some("done"))));
        assert!(!heard.is_all_of(&task(&[], None)), "there is nothing to point at");
    }

    #[test]
    fn the_last_words_of_a_status_count() {
        let mut heard = Heard::default();
        heard.event(&task(&[("a", &["one"])], Some("soon")).into());
        assert!(!heard.is_all_of(&task(&[("a", &["one"])], Some("done"))));
        heard.event(&task(&[("a", &["one"])], Some("done")).into());
        assert!(heard.is_all_of(&task(&[("a", &["one"])], Some("done"))));
    }
}
