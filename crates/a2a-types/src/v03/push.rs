//! Webhooks, which 0.3 puts one level deeper and names by the task's `id`.

use serde_json::{Value, json};

use super::rename;
use crate::JsonObject;

const NESTED: &str = "pushNotificationConfig";

/// `{taskId, pushNotificationConfig: {id, url, …}}` becomes flat.
pub(super) fn read_config(members: &mut JsonObject) {
    if let Some(Value::Object(config)) = members.remove(NESTED) {
        let task = members.remove("taskId");
        *members = config;
        members.extend(task.map(|task| ("taskId".to_owned(), task)));
    }
    read_authentication(members);
}

/// The flat object becomes `{taskId, pushNotificationConfig: {id, url, …}}`.
pub(super) fn write_config(members: &mut JsonObject) {
    members.remove("tenant");
    let task = members.remove("taskId");
    write_authentication(members);
    let config = std::mem::take(members);
    members.extend(task.map(|task| ("taskId".to_owned(), task)));
    members.insert(NESTED.to_owned(), Value::Object(config));
}

/// 0.3 lists schemes; 1.0 has one.
pub(super) fn read_authentication(config: &mut JsonObject) {
    let Some(Value::Object(authentication)) = config.get_mut("authentication") else { return };
    if let Some(Value::Array(mut schemes)) = authentication.remove("schemes")
        && !schemes.is_empty()
    {
        let first = schemes.swap_remove(0);
        authentication.entry("scheme").or_insert(first);
    }
    // Credentials for nothing: there is no way to send them.
    if !authentication.contains_key("scheme") {
        config.remove("authentication");
    }
}

pub(super) fn write_authentication(config: &mut JsonObject) {
    if let Some(Value::Object(authentication)) = config.get_mut("authentication")
        && let Some(scheme) = authentication.remove("scheme")
    {
        authentication.insert("schemes".to_owned(), json!([scheme]));
    }
}

/// `{id: task, pushNotificationConfigId}` becomes `{taskId, id}`. A configuration without an id has that of its task, as
/// Python's SDK gives it one.
pub(super) fn read_reference(members: &mut JsonObject) {
    rename(members, "id", "taskId");
    rename(members, "pushNotificationConfigId", "id");
    if let Some(task) = members.get("taskId").cloned() {
        members.entry("id").or_insert(task);
    }
}

pub(super) fn write_reference(members: &mut JsonObject) {
    for unknown in ["pageSize", "pageToken"] {
        members.remove(unknown);
    }
    rename(members, "id", "pushNotificationConfigId");
    rename(members, "taskId", "id");
}

/// A bare list becomes the only page.
pub(super) fn read_list(result: Value) -> Value {
    let Value::Array(mut configs) = result else { return result };
    for config in &mut configs {
        if let Value::Object(members) = config {
            read_config(members);
        }
    }
    super::wrapped("configs", Value::Array(configs))
}

pub(super) fn write_list(mut result: Value) -> Value {
    let Some(Value::Array(configs)) = result.get_mut("configs") else { return json!([]) };
    for config in &mut *configs {
        if let Value::Object(members) = config {
            write_config(members);
        }
    }
    Value::Array(std::mem::take(configs))
}
