//! What is told apart by a wrapper in 1.0 and by `kind` in 0.3.

use serde_json::{Value, json};

use super::{content, wrapped};
use crate::JsonObject;

/// Rewrites a bare task, message or update into the wrapped one, and says whether it is the last event of its stream.
/// Without a `kind` the members show what it is; with nothing to go by it stays as it is.
pub(super) fn read(event: Value) -> (Value, bool) {
    let Value::Object(mut members) = event else { return (event, false) };
    let kind = match members.get("kind") {
        Some(Value::String(kind)) => kind.clone(),
        Some(_) | None => infer(&members).to_owned(),
    };
    let mut is_final = false;
    let wrapper = match kind.as_str() {
        "task" => "task",
        "message" => "message",
        "status-update" => "statusUpdate",
        "artifact-update" => "artifactUpdate",
        // Agents of 1.0 push their own objects to webhooks that were registered in 0.3.
        _ => return (Value::Object(members), false),
    };
    match wrapper {
        "statusUpdate" => {
            members.remove("kind");
            is_final = members.remove("final") == Some(Value::Bool(true));
            super::one(&mut members, "status", content::read_status);
        }
        "artifactUpdate" => {
            members.remove("kind");
            super::one(&mut members, "artifact", content::read_artifact);
        }
        _ => {}
    }
    let mut inner = Value::Object(members);
    match wrapper {
        "task" => content::read_task(&mut inner),
        "message" => content::read_message(&mut inner),
        _ => {}
    }
    (wrapped(wrapper, inner), is_final)
}

fn infer(members: &JsonObject) -> &'static str {
    let has = |name: &str| members.contains_key(name);
    if has("messageId") {
        "message"
    } else if has("artifact") {
        "artifact-update"
    } else if has("taskId") && has("status") {
        "status-update"
    } else if has("id") && has("status") {
        "task"
    } else {
        ""
    }
}

/// Rewrites a wrapped task, message or update into the bare one.
pub(super) fn write(event: Value) -> Value {
    let Value::Object(mut members) = event else { return event };
    if let Some(mut task) = members.remove("task") {
        content::write_task(&mut task);
        return task;
    }
    if let Some(mut message) = members.remove("message") {
        content::write_message(&mut message);
        return message;
    }
    let (kind, update) = match (members.remove("statusUpdate"), members.remove("artifactUpdate")) {
        (Some(update), _) => ("status-update", update),
        (None, Some(update)) => ("artifact-update", update),
        (None, None) => return Value::Object(members),
    };
    let Value::Object(mut update) = update else { return update };
    super::one(&mut update, "status", content::write_status);
    super::one(&mut update, "artifact", content::write_artifact);
    update.insert("kind".to_owned(), json!(kind));
    Value::Object(update)
}
