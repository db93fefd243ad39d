//! The little of a task that can be read when the whole cannot.

use serde::Deserialize;
use serde_json::value::RawValue;
use volcanic_a2a_types::{Message, Task, TaskId, TaskState, TaskStatus, v03};

use super::events::Expected;
use crate::{AgentProtocol, ClientError};

/// The longest id and state that are looked at, in bytes.
const MAX_SHOWN: usize = 64 << 10;

/// Which task an answer is to be about.
pub(super) enum Asked<'a> {
    /// None.
    Nothing,
    /// This one, which is the answer.
    Task(&'a TaskId),
    /// The one that this message leads to, if it leads to one.
    TaskOf(&'a Message),
}

/// The answer to a message in A2A 1.0.
#[derive(Deserialize)]
struct SentGlimpse<'a> {
    #[serde(borrow)]
    task: &'a RawValue,
}

/// A task's ids and state, whatever the rest of it looks like.
#[derive(Deserialize)]
struct TaskGlimpse<'a> {
    #[serde(borrow)]
    id: &'a RawValue,
    #[serde(borrow, default, rename = "contextId")]
    context_id: Option<&'a RawValue>,
    #[serde(borrow)]
    status: &'a RawValue,
}

#[derive(Deserialize)]
struct StatusGlimpse<'a> {
    #[serde(borrow)]
    state: &'a RawValue,
}

/// The error that reading `answer` came to; it says which task the answer is about and where that stands, if the answer
/// says so much.
pub(super) fn beside(
    error: ClientError,
    protocol: AgentProtocol,
    answer: &str,
    asked: &Asked<'_>,
) -> ClientError {
    let ClientError::Unexpected { agent, reason } = error else { return error };
    match asked {
        Asked::Task(asked) => {
            if let Some(state) = state_of(protocol, answer, asked) {
                return ClientError::UnreadableTask { agent, state, reason };
            }
        }
        Asked::TaskOf(message) => {
            if let Some(task) = task_of(protocol, answer, message) {
                return ClientError::UnreadableAnswer { agent, task: Box::new(task), reason };
            }
        }
        Asked::Nothing => {}
    }
    ClientError::Unexpected { agent, reason }
}

/// The id of a task, if it has one that can be read.
pub(super) fn id_of(task: &str) -> Option<TaskId> {
    #[derive(Deserialize)]
    struct IdGlimpse<'a> {
        #[serde(borrow)]
        id: &'a RawValue,
    }

    let id = object::<IdGlimpse<'_>>(task)?.id.get();
    if id.len() > MAX_SHOWN {
        return None;
    }
    serde_json::from_str::<String>(id).ok().filter(|id| !id.is_empty()).map(TaskId::from)
}

/// The state of task `asked`, if `answer` is that task and says so much.
fn state_of(protocol: AgentProtocol, answer: &str, asked: &TaskId) -> Option<TaskState> {
    let task = read(protocol, answer)?;
    (task.id == *asked).then_some(task.status.state)
}

/// The task that `message` led to, as far as `answer` tells it.
fn task_of(protocol: AgentProtocol, answer: &str, message: &Message) -> Option<Task> {
    let answer = match protocol {
        AgentProtocol::V1 => object::<SentGlimpse<'_>>(answer)?.task.get(),
        AgentProtocol::V03 => answer,
    };
    let task = read(protocol, answer)?;
    Expected::of_message(message).task(&task).is_ok().then_some(task)
}

/// Ids and state of a task; the rest of it stays empty.
fn read(protocol: AgentProtocol, task: &str) -> Option<Task> {
    let task: TaskGlimpse<'_> = object(task)?;
    let status: StatusGlimpse<'_> = object(task.status.get())?;
    let short = |value: &RawValue| (value.get().len() <= MAX_SHOWN).then(|| value.get().to_owned());
    let text = |value| serde_json::from_str::<String>(&short(value)?).ok();
    // One that is empty names no task that could be asked for.
    let id = text(task.id).filter(|id| !id.is_empty())?;
    let context_id = task.context_id.and_then(text);
    let state = short(status.state)?;
    let state = match protocol {
        AgentProtocol::V1 => serde_json::from_str(&state).ok(),
        AgentProtocol::V03 => v03::read_state(&state).ok(),
    }?;
    let mut task = Task::new(id, "", TaskStatus::new(state));
    task.context_id = context_id.map(Into::into);
    Some(task)
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
    fn a_task_with_an_empty_id_is_not_named() {
        let task = |id: &str| format!(r#"{{"id": "{id}", "status": {{"state": "completed"}}}}"#);
        assert!(read(AgentProtocol::V03, &task("t1")).is_some());
        assert!(read(AgentProtocol::V03, &task("")).is_none());
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
