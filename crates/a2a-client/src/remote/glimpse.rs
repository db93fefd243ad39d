//! The little of a task that can be read when the whole cannot.

use serde::Deserialize;
use serde_json::json;
use volcanic_a2a_types::{METHOD_GET_TASK, TaskId, TaskState, v03};

use crate::{AgentProtocol, ClientError};

/// A task's id and state, whatever the rest of it looks like.
#[derive(Deserialize)]
struct TaskGlimpse {
    id: String,
    status: StatusGlimpse,
}

#[derive(Deserialize)]
struct StatusGlimpse {
    state: TaskState,
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
    let mut task: TaskGlimpse = serde_json::from_str(answer).ok()?;
    if protocol == AgentProtocol::V03 {
        let old = json!({"id": task.id, "status": {"state": task.status.state.as_str()}});
        task = v03::read_result(METHOD_GET_TASK, old).ok()?;
    }
    (task.id == asked.as_str()).then_some(task.status.state)
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
