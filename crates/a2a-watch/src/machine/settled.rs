//! What tells one settled state of a task from another.

use std::io;

use sha2::{Digest as _, Sha256};
use volcanic_a2a_types::{Task, TaskState, TaskStatus};

/// Stands between label and digest in a mark; no label holds it.
const SEPARATOR: char = '#';
/// Before a note of a question that was answered.
const ANSWERED: &str = "answered#";

/// A settled state of a task, as it is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SettledState {
    /// The state's label, as in the delivery key.
    pub(crate) label: String,
    /// The label with a digest of what the agent says: two reads that find the same have the same mark.
    pub(crate) mark: String,
    /// Whether the task stays like that.
    pub(crate) is_final: bool,
}

impl SettledState {
    /// The state of a task that was read.
    pub(crate) fn of(task: &Task) -> Self {
        let mut digest = Sha256::new();
        // A time or the id of a message tells apart what reads the same; history and metadata may change without meaning
        // anything. Writing into a digest cannot fail, and what was JSON can be written as such.
        let _ = serde_json::to_writer(Hashing(&mut digest), &(&task.status, &task.artifacts));
        Self::new(&task.status.state, &format!("{:x}", digest.finalize()))
    }

    /// The labels of the states that end a watch once they are told.
    pub(crate) fn last_labels() -> impl Iterator<Item = String> {
        let states = [
            TaskState::Completed,
            TaskState::Failed,
            TaskState::Canceled,
            TaskState::Rejected,
            TaskState::InputRequired,
        ];
        states.into_iter().map(|state| state.label())
    }

    /// Whether that is the label of a settled state.
    pub(crate) fn is_label(label: &str) -> bool {
        label == super::AUTH_REQUIRED || Self::last_labels().any(|last| last == label)
    }

    /// The state of a task of which no more can be read.
    pub(crate) fn unreadable(state: &TaskState) -> Self {
        Self::new(state, "unreadable")
    }

    /// A task that is larger than is read.
    pub(crate) fn too_large() -> Self {
        let label = "too-large".to_owned();
        Self { mark: format!("{label}{SEPARATOR}"), label, is_final: true }
    }

    fn new(state: &TaskState, what: &str) -> Self {
        let label = state.label();
        Self { mark: format!("{label}{SEPARATOR}{what}"), label, is_final: state.is_terminal() }
    }
}

/// How a question stood when it was answered, as it is kept among what was told; `None` if nothing is asked. Many agents
/// say nothing of a task until they have something to say, and show the question until then.
pub(crate) fn answered(status: &TaskStatus) -> Option<String> {
    Some(format!("{ANSWERED}{}", status.question_note()?))
}

/// Whether a question is one that was answered.
pub(crate) fn is_answered(told: &[String], status: &TaskStatus) -> bool {
    told.iter()
        .filter_map(|told| told.strip_prefix(ANSWERED))
        .any(|note| status.is_question_of(note))
}

/// Whether something that was told is the mark of an outcome.
pub(super) fn is_mark(told: &str) -> bool {
    told.contains(SEPARATOR) && !is_answer(told)
}

/// Whether something that was told is the note of a question that was answered.
pub(crate) fn is_answer(told: &str) -> bool {
    told.starts_with(ANSWERED)
}

/// Whether something among what was told is news to nobody after a message that nobody waits for: the mark of an outcome, or
/// a question that was answered.
pub(crate) fn outlasts_round(told: &str) -> bool {
    told.contains(SEPARATOR)
}

/// Writes into a digest.
pub(crate) struct Hashing<'a>(pub(crate) &'a mut Sha256);

impl io::Write for Hashing<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn mark(task: &serde_json::Value) -> String {
        SettledState::of(&serde_json::from_value(task.clone()).unwrap()).mark
    }

    #[test]
    fn same_answer_has_the_same_mark_and_a_new_one_another() {
        let said =
            |id: &str| json!({"messageId": id, "role": "ROLE_AGENT", "parts": [{"text": "Done."}]});
        let status = |id| json!({"state": "TASK_STATE_COMPLETED", "message": said(id)});
        let first = json!({"id": "t1", "contextId": "c1", "status": status("s1")});
        let later = json!({"id": "t1", "contextId": "c1", "status": status("s1"), "history": [said("h")], "metadata": {"n": 1}});
        assert_eq!(mark(&first), mark(&later));
        assert!(mark(&first).starts_with("completed#") && is_mark(&mark(&first)));
        let again = json!({"id": "t1", "contextId": "c1", "status": status("s2")});
        assert_ne!(mark(&first), mark(&again));
    }

    /// Up to format 3 of the store a question was noted so, whatever it asked. That is the mark of no outcome, as there is no
    /// such digest, and goes with the next one: a question that stands through the update may be told once more.
    #[test]
    fn mark_of_an_earlier_format_is_of_no_question_and_no_outcome() {
        let old = "input-required#answered".to_owned();
        let asks = TaskStatus::new(TaskState::InputRequired);
        assert!(is_mark(&old) && !is_answer(&old));
        assert!(!is_answered(std::slice::from_ref(&old), &asks));
        assert_ne!(
            mark(&json!({"id": "t1", "status": {"state": "TASK_STATE_INPUT_REQUIRED"}})),
            old
        );
    }

    #[test]
    fn question_is_answered_once_it_is_noted() {
        let asks =
            json!({"state": "TASK_STATE_INPUT_REQUIRED", "timestamp": "2026-11-30T08:00:00Z"});
        let asks: TaskStatus = serde_json::from_value(asks).unwrap();
        let told = [answered(&asks).unwrap()];
        assert_eq!((is_mark(&told[0]), outlasts_round(&told[0])), (false, true));
        assert!(is_answered(&told, &asks));
        assert!(!is_answered(&[], &asks));
        assert_eq!(answered(&TaskStatus::new(TaskState::Working)), None);
    }
}
