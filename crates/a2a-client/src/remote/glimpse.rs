//! The little of a task that can be read when the whole cannot.

use serde::Deserialize;
use serde_json::value::RawValue;
use volcanic_a2a_types::{TaskId, TaskState, v03};

use crate::{AgentProtocol, ClientError};

/// The longest id and state that are looked at, in bytes.
const MAX_SHOWN: usize = 64 << 10;

/// A task's id and state, whatever the rest of it looks like.
#[derive(Deserialize)]
struct TaskGlimpse<'a> {
    #[serde(borrow)]
    id: &'a RawValue,
    #[serde(borrow)]
    status: &'a RawValue,
}

#[derive(Deserialize)]
struct StatusGlimpse<'a> {
    #[serde(borrow)]
    state: &'a RawValue,
}

/// The error that reading `answer` came to; it says where the task `asked` stands if the answer says so much.
pub(super) fn beside(
    error: ClientError,
    protocol: AgentProtocol,
    answer: &str,
    asked: Option<&TaskId>,
) -> ClientError {
    let ClientError::Unexpected { agent, reason } = error else { return error };
    match asked.and_then(|asked| state_of(protocol, answer, asked)) {
        Some(state) => ClientError::UnreadableTask { agent, state, reason },
        None => ClientError::Unexpected { agent, reason },
    }
}

/// The state of task `asked`, if `answer` is that task and says so much.
fn state_of(protocol: AgentProtocol, answer: &str, asked: &TaskId) -> Option<TaskState> {
    let task: TaskGlimpse<'_> = object(answer)?;
    let status: StatusGlimpse<'_> = object(task.status.get())?;
    let short = |value: &RawValue| (value.get().len() <= MAX_SHOWN).then(|| value.get().to_owned());
    let id: String = serde_json::from_str(&short(task.id)?).ok()?;
    let state = short(status.state)?;
    if id != asked.as_str() {
        return None;
    }
    match protocol {
        AgentProtocol::V1 => serde_json::from_str(&state).ok(),
        AgentProtocol::V03 => v03::read_state(&state).ok(),
    }
}

/// Reads an object. The parser's error about anything else would hold a copy of it.
fn object<'a, T: Deserialize<'a>>(json: &'a str) -> Option<T> {
    if json.trim_start().starts_with('{') { serde_json::from_str(json).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(result: &str, expected: Option<&TaskState>) {
        let found = state_of(AgentProtocol::V1, result, &TaskId::from("t1"));
        assert_eq!(found.as_ref(), expected);
        let old = result.replace("TASK_STATE_COMPLETED", "completed");
        let found = state_of(AgentProtocol::V03, &old, &TaskId::from("t1"));
        assert_eq!(found.as_ref(), expected, "{old}");
    }

    #[test]
    fn state_is_found_whatever_stands_beside_it() {
        let deep = format!("{}{}", "[".repeat(1000), "]".repeat(1000));
        for beside in ["5", "{}", "[null]", r#""yesterday""#, &deep] {
            check(
                &format!(
                    r#"{{"id": "t1", "contextId": {beside}, "artifacts": {beside}, "status":
                       {{"timestamp": {beside}, "message": {beside}, "state": "TASK_STATE_COMPLETED"}}}}"#
                ),
                Some(&TaskState::Completed),
            );
        }
    }

    #[test]
    fn what_names_no_state_or_another_task_says_nothing() {
        for result in [
            "null",
            "5",
            r#"{"id": "t1"}"#,
            r#"{"id": "t1", "status": "TASK_STATE_COMPLETED"}"#,
            r#"{"id": "t1", "status": {"state": {}}}"#,
            r#"{"id": "t2", "status": {"state": "TASK_STATE_COMPLETED"}}"#,
            r#"{"status": {"state": "TASK_STATE_COMPLETED"}}"#,
        ] {
            check(result, None);
        }
    }
}
