//! What tells one settled state of a task from another.

use std::io;

use sha2::{Digest as _, Sha256};
use volcanic_a2a_types::{Task, TaskState, TaskStatus};

/// Stands between label and digest in a mark; no label holds it.
const SEPARATOR: char = '#';

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
    let asked = status.message.as_ref().map(|asked| digest(asked.message_id.as_str()));
    Some(format!("{}{}", question(status)?, asked.unwrap_or_default()))
}

/// Whether a question is one that was answered: nothing in it is newer. Some agents clear its words as soon as they have the
/// answer.
pub(crate) fn is_answered(told: &[String], status: &TaskStatus) -> bool {
    let Some(question) = question(status) else { return false };
    let asks = status.message.as_ref().map(|asks| digest(asks.message_id.as_str()));
    told.iter()
        .filter_map(|told| told.strip_prefix(&question))
        .any(|asked| asks.as_ref().is_none_or(|asks| asks == asked))
}

/// What is the same of a question as long as nothing newer is said.
fn question(status: &TaskStatus) -> Option<String> {
    let state = &status.state;
    let asks = state.is_settled() && !state.is_terminal();
    let at = status.timestamp.as_ref().map(ToString::to_string).unwrap_or_default();
    asks.then(|| format!("{}{SEPARATOR}answered {at} ", state.label()))
}

fn digest(text: &str) -> String {
    format!("{:x}", Sha256::digest(text))
}

/// Whether something that was told is the mark of an outcome.
pub(super) fn is_mark(told: &str) -> bool {
    told.contains(SEPARATOR)
}

struct Hashing<'a>(&'a mut Sha256);

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

    #[test]
    fn question_is_answered_until_anything_in_it_is_newer() {
        let status = |state: &str, id: Option<&str>, at: &str| -> TaskStatus {
            let mut status = json!({"state": state, "timestamp": at});
            if let Some(id) = id {
                status["message"] = json!({"messageId": id, "role": "ROLE_AGENT", "parts": [{"text": "Which day?"}]});
            }
            serde_json::from_value(status).unwrap()
        };
        let (asks, at) = ("TASK_STATE_INPUT_REQUIRED", "2026-11-30T08:00:00Z");
        let told = [answered(&status(asks, Some("m1"), at)).unwrap()];
        assert!(is_mark(&told[0]));
        assert!(is_answered(&told, &status(asks, Some("m1"), at)));
        assert!(is_answered(&told, &status(asks, None, at)));
        assert!(!is_answered(&told, &status(asks, Some("m2"), at)));
        assert!(!is_answered(&told, &status(asks, Some("m1"), "2026-11-30T08:00:01Z")));
        assert!(!is_answered(&told, &status("TASK_STATE_AUTH_REQUIRED", Some("m1"), at)));
        assert!(!is_answered(&told, &status("TASK_STATE_COMPLETED", Some("m1"), at)));
        assert!(!is_answered(&[], &status(asks, Some("m1"), at)));
        assert_eq!(answered(&status("TASK_STATE_WORKING", Some("m1"), at)), None);
    }
}
