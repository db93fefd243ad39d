//! The little of a task that can be read when the whole cannot.

use serde::Deserialize;
use volcanic_a2a_types::{RpcId, RpcOutcome, RpcResponse, TaskId, TaskState};

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

/// The state of task `asked`, if `body` is the response to request `id` and its result says so much.
pub(super) fn state_of(body: &[u8], id: &RpcId, asked: &TaskId) -> Option<TaskState> {
    let response = RpcResponse::decode(body).ok().filter(|response| response.id == *id)?;
    let RpcOutcome::Result(result) = response.outcome else { return None };
    let task: TaskGlimpse = serde_json::from_str(result.get()).ok()?;
    (task.id == asked.as_str()).then_some(task.status.state)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(result: &str, expected: Option<&TaskState>) {
        let body = format!(r#"{{"jsonrpc": "2.0", "id": 1, "result": {result}}}"#);
        let found = state_of(body.as_bytes(), &RpcId::from(1), &TaskId::from("t1"));
        assert_eq!(found.as_ref(), expected);
        assert_eq!(state_of(body.as_bytes(), &RpcId::from(2), &TaskId::from("t1")), None);
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
