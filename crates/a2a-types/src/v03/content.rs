//! Messages, parts, artifacts, tasks, and how an answer should be.

use serde_json::{Value, json};

use super::{each, one, push, rename};
use crate::JsonObject;

/// How Python's SDK marks data that is no object and was wrapped into one for 0.3.
pub(crate) const WRAPPED_DATA: &str = "data_part_compat";

const STATE_PREFIX: &str = "TASK_STATE_";
const ROLE_PREFIX: &str = "ROLE_";

pub(super) fn write_task(task: &mut Value) {
    let Value::Object(members) = task else { return };
    // 0.3 requires it; agents of 1.0 nearly always say it.
    members.entry("contextId").or_insert_with(|| json!(""));
    one(members, "status", write_status);
    each(members, "artifacts", write_artifact);
    each(members, "history", write_message);
    members.insert("kind".to_owned(), json!("task"));
}

pub(super) fn write_status(status: &mut Value) {
    let Value::Object(members) = status else { return };
    members.entry("state").or_insert_with(|| json!("unknown"));
    one(members, "state", |state| write_name(state, STATE_PREFIX));
    one(members, "message", write_message);
}

pub(super) fn read_message(message: &mut Value) {
    let Value::Object(members) = message else { return };
    members.remove("kind");
    one(members, "role", |role| read_name(role, ROLE_PREFIX));
    each(members, "parts", read_part);
}

pub(super) fn write_message(message: &mut Value) {
    let Value::Object(members) = message else { return };
    one(members, "role", |role| write_name(role, ROLE_PREFIX));
    each(members, "parts", write_part);
    members.insert("kind".to_owned(), json!("message"));
}

pub(super) fn write_artifact(artifact: &mut Value) {
    if let Value::Object(members) = artifact {
        each(members, "parts", write_part);
    }
}

/// `input-required` becomes `TASK_STATE_INPUT_REQUIRED`. A name of 1.0 stays, and so does one that no name of 0.3 looks
/// like.
pub(crate) fn new_name(old: String, prefix: &str) -> String {
    let is_old = old.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
    if !is_old || old.is_empty() {
        return old;
    }
    match old.as_str() {
        "unknown" => format!("{prefix}UNSPECIFIED"),
        "cancelled" => format!("{prefix}CANCELED"),
        other => format!("{prefix}{}", other.to_ascii_uppercase().replace('-', "_")),
    }
}

fn read_name(name: &mut Value, prefix: &str) {
    if let Value::String(old) = name {
        *old = new_name(std::mem::take(old), prefix);
    }
}

fn write_name(name: &mut Value, prefix: &str) {
    let Value::String(new) = name else { return };
    if let Some(new) = new.strip_prefix(prefix) {
        let old = new.to_ascii_lowercase().replace('_', "-");
        *name = Value::String(if old == "unspecified" { "unknown".to_owned() } else { old });
    }
}

/// The kind of a part needs no reading: what it holds shows it.
pub(super) fn read_part(part: &mut Value) {
    let Value::Object(members) = part else { return };
    members.remove("kind");
    if let Some(Value::Object(mut file)) = members.remove("file") {
        rename(&mut file, "fileWithBytes", "bytes");
        rename(&mut file, "fileWithUri", "uri");
        for (old, new) in
            [("bytes", "raw"), ("uri", "url"), ("mimeType", "mediaType"), ("name", "filename")]
        {
            if let Some(value) = file.remove(old) {
                members.entry(new).or_insert(value);
            }
        }
    }
    let is_wrapped = members.get("metadata").and_then(|metadata| metadata.get(WRAPPED_DATA))
        == Some(&Value::Bool(true));
    if is_wrapped {
        unwrap_data(members);
    }
}

fn unwrap_data(members: &mut JsonObject) {
    let Some(Value::Object(data)) = members.get_mut("data") else { return };
    if data.len() != 1 {
        return;
    }
    let Some(value) = data.remove("value") else { return };
    members.insert("data".to_owned(), value);
    if let Some(Value::Object(metadata)) = members.get_mut("metadata") {
        metadata.remove(WRAPPED_DATA);
        if metadata.is_empty() {
            members.remove("metadata");
        }
    }
}

fn write_part(part: &mut Value) {
    let Value::Object(members) = part else { return };
    let kind = if members.contains_key("text") {
        "text"
    } else if members.contains_key("raw") || members.contains_key("url") {
        "file"
    } else if members.contains_key("data") {
        "data"
    } else {
        return;
    };
    let described =
        [("mimeType", members.remove("mediaType")), ("name", members.remove("filename"))];
    match kind {
        "file" => {
            let (name, content) = match members.remove("raw") {
                Some(raw) => ("bytes", Some(raw)),
                None => ("uri", members.remove("url")),
            };
            let mut file = JsonObject::new();
            for (name, value) in [(name, content)].into_iter().chain(described) {
                file.extend(value.map(|value| (name.to_owned(), value)));
            }
            members.insert("file".to_owned(), Value::Object(file));
        }
        "data" => wrap_data(members),
        _ => {}
    }
    members.insert("kind".to_owned(), json!(kind));
}

/// Data of 0.3 is an object; other values are wrapped the way Python's SDK does it and unwraps it.
fn wrap_data(members: &mut JsonObject) {
    let Some(data) = members.get_mut("data").filter(|data| !data.is_object()) else { return };
    let value = data.take();
    *data = json!({ "value": value });
    let metadata = members.entry("metadata").or_insert_with(|| json!({}));
    if let Value::Object(metadata) = metadata {
        metadata.insert(WRAPPED_DATA.to_owned(), Value::Bool(true));
    }
}

pub(super) fn read_send(members: &mut JsonObject) {
    one(members, "message", read_message);
    let Some(Value::Object(configuration)) = members.get_mut("configuration") else { return };
    let is_blocking = configuration.remove("blocking");
    if is_blocking == Some(Value::Bool(false)) {
        configuration.insert("returnImmediately".to_owned(), Value::Bool(true));
    }
    read_history_length(configuration);
    rename(configuration, "pushNotificationConfig", "taskPushNotificationConfig");
    one(configuration, "taskPushNotificationConfig", |config| {
        if let Value::Object(config) = config {
            push::read_authentication(config);
        }
    });
}

/// Whether to wait is always written: absent, agents of 0.3 take it one way and the other.
pub(super) fn write_send(members: &mut JsonObject) {
    one(members, "message", write_message);
    let configuration = members.entry("configuration").or_insert_with(|| json!({}));
    let Value::Object(configuration) = configuration else { return };
    let immediately = configuration.remove("returnImmediately") == Some(Value::Bool(true));
    configuration.insert("blocking".to_owned(), Value::Bool(!immediately));
    write_history_length(configuration);
    rename(configuration, "taskPushNotificationConfig", "pushNotificationConfig");
    one(configuration, "pushNotificationConfig", |config| {
        if let Value::Object(config) = config {
            config.remove("tenant");
            config.remove("taskId");
            push::write_authentication(config);
        }
    });
}

/// In 0.3 a length of 0 is no limit.
pub(super) fn read_history_length(members: &mut JsonObject) {
    if members.get("historyLength").and_then(Value::as_i64) == Some(0) {
        members.remove("historyLength");
    }
}

/// In 0.3 a length of 0 is no limit; 1 is the least that can be asked for.
pub(super) fn write_history_length(members: &mut JsonObject) {
    if members.get("historyLength").and_then(Value::as_i64) == Some(0) {
        members.insert("historyLength".to_owned(), json!(1));
    }
}
