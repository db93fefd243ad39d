//! The JSON-RPC dialect of A2A 0.3, as conversions to and from the objects of 1.0.
//!
//! Nothing here holds an object of 0.3. Tasks, messages and events are read by the objects of 1.0, told to mind the
//! dialect; the JSON of what is rare and small is rewritten into that of 1.0 and read as such, and so is what is written,
//! the other way round. What is wrong is told under the names of 1.0. Methods are named as in 1.0
//! everywhere; [`method_name`] and [`method_from_name`] translate them.
//!
//! 0.3 lacks what has no place in it: `ListTasks`, a tenant, a list of webhooks by pages, the file name and media type of
//! text and data. Those are left out when written.

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{
    A2aErrorKind, AgentCard, FromWire, JsonObject, ListTaskPushNotificationConfigsResponse,
    METHOD_CANCEL_TASK, METHOD_CREATE_PUSH_CONFIG, METHOD_DELETE_PUSH_CONFIG,
    METHOD_GET_EXTENDED_CARD, METHOD_GET_PUSH_CONFIG, METHOD_GET_TASK, METHOD_LIST_PUSH_CONFIGS,
    METHOD_SEND_MESSAGE, METHOD_SEND_STREAMING_MESSAGE, METHOD_SUBSCRIBE_TO_TASK, Message,
    RpcError, SendMessageResponse, StreamResponse, Task, TaskArtifactUpdateEvent,
    TaskPushNotificationConfig, TaskState, TaskStatusUpdateEvent, WireLimits, from_wire,
    wire::{Dialect, Reading, WireItem},
};

mod card;
mod content;
mod event;
mod push;
mod security;

pub(crate) use content::{WRAPPED_DATA, new_name};
use event::EventKind;

/// The header of 0.3 that lists extensions.
pub const EXTENSIONS_HEADER: &str = "X-A2A-Extensions";

/// The methods of 1.0 that 0.3 has, and their names there.
const METHODS: [(&str, &str); 10] = [
    (METHOD_SEND_MESSAGE, "message/send"),
    (METHOD_SEND_STREAMING_MESSAGE, "message/stream"),
    (METHOD_GET_TASK, "tasks/get"),
    (METHOD_CANCEL_TASK, "tasks/cancel"),
    (METHOD_SUBSCRIBE_TO_TASK, "tasks/resubscribe"),
    (METHOD_CREATE_PUSH_CONFIG, "tasks/pushNotificationConfig/set"),
    (METHOD_GET_PUSH_CONFIG, "tasks/pushNotificationConfig/get"),
    (METHOD_LIST_PUSH_CONFIGS, "tasks/pushNotificationConfig/list"),
    (METHOD_DELETE_PUSH_CONFIG, "tasks/pushNotificationConfig/delete"),
    (METHOD_GET_EXTENDED_CARD, "agent/getAuthenticatedExtendedCard"),
];

/// What 0.3 calls a method of 1.0; none if it has no such method.
pub fn method_name(method: &str) -> Option<&'static str> {
    METHODS.iter().find(|(new, _)| *new == method).map(|(_, old)| *old)
}

/// What 1.0 calls a method of 0.3.
pub fn method_from_name(name: &str) -> Option<&'static str> {
    METHODS.iter().find(|(_, old)| *old == name).map(|(new, _)| *new)
}

/// Writes the parameters of a method.
///
/// # Errors
///
/// If they cannot be written as JSON.
pub fn write_params<P: Serialize>(method: &str, params: &P) -> serde_json::Result<Value> {
    let mut params = serde_json::to_value(params)?;
    if let Value::Object(members) = &mut params {
        members.remove("tenant");
        match method {
            METHOD_SEND_MESSAGE | METHOD_SEND_STREAMING_MESSAGE => content::write_send(members),
            METHOD_GET_TASK => content::write_history_length(members),
            METHOD_CREATE_PUSH_CONFIG => push::write_config(members),
            METHOD_GET_PUSH_CONFIG | METHOD_DELETE_PUSH_CONFIG | METHOD_LIST_PUSH_CONFIGS => {
                push::write_reference(members);
            }
            _ => {}
        }
    }
    Ok(params)
}

/// Reads the parameters of a method.
///
/// # Errors
///
/// If they are wrong; the error begins with the place, by the names of 1.0.
pub fn read_params<P: DeserializeOwned>(method: &str, mut params: Value) -> serde_json::Result<P> {
    if let Value::Object(members) = &mut params {
        members.remove("tenant");
        match method {
            METHOD_SEND_MESSAGE | METHOD_SEND_STREAMING_MESSAGE => content::read_send(members),
            METHOD_GET_TASK => content::read_history_length(members),
            METHOD_CREATE_PUSH_CONFIG => push::read_config(members),
            METHOD_GET_PUSH_CONFIG | METHOD_DELETE_PUSH_CONFIG | METHOD_LIST_PUSH_CONFIGS => {
                push::read_reference(members);
            }
            _ => {}
        }
    }
    serde_json::from_value(params)
}

/// Writes the result of a method that answers once.
///
/// # Errors
///
/// If it cannot be written as JSON.
pub fn write_result<R: Serialize>(method: &str, result: &R) -> serde_json::Result<Value> {
    let mut result = serde_json::to_value(result)?;
    match method {
        METHOD_SEND_MESSAGE => Ok(event::write(result)),
        METHOD_GET_TASK | METHOD_CANCEL_TASK => {
            content::write_task(&mut result);
            Ok(result)
        }
        METHOD_CREATE_PUSH_CONFIG | METHOD_GET_PUSH_CONFIG => {
            if let Value::Object(members) = &mut result {
                push::write_config(members);
            }
            Ok(result)
        }
        METHOD_LIST_PUSH_CONFIGS => Ok(push::write_list(result)),
        METHOD_DELETE_PUSH_CONFIG => Ok(Value::Null),
        METHOD_GET_EXTENDED_CARD => {
            card::write(&mut result);
            Ok(result)
        }
        _ => Ok(result),
    }
}

/// Reads the result of a method that answers once.
///
/// # Errors
///
/// If it is not what the method returns; the error begins with the place, by the names of 1.0.
pub fn read_result<R: FromWire>(result: &str) -> serde_json::Result<R> {
    R::from_wire_v03(result)
}

/// Reads where a task stands.
///
/// # Errors
///
/// If it is not the name of a state.
pub fn read_state(state: &str) -> serde_json::Result<TaskState> {
    let name: TaskState = serde_json::from_str(state)?;
    Ok(TaskState::from_wire_name(&new_name(name.as_str().to_owned(), "TASK_STATE_")))
}

/// Reads an object that is told apart by nothing but where it stands.
pub(crate) fn read_object<'de, T: WireItem<'de>>(json: &'de str) -> serde_json::Result<T> {
    from_wire::read(json, &Reading::answer(json.len(), Dialect::V03))
}

pub(crate) fn read_stream_response(json: &str) -> serde_json::Result<StreamResponse> {
    read_event(json).map(|(event, _)| event)
}

pub(crate) fn read_send_response(json: &str) -> serde_json::Result<SendMessageResponse> {
    match event::kind_of(json)? {
        EventKind::Task => read_object(json).map(SendMessageResponse::Task),
        EventKind::Message => read_object(json).map(SendMessageResponse::Message),
        EventKind::StatusUpdate | EventKind::ArtifactUpdate | EventKind::Unknown => {
            SendMessageResponse::from_wire(json, WireLimits::Answer)
        }
    }
}

pub(crate) fn read_push_config(json: &str) -> serde_json::Result<TaskPushNotificationConfig> {
    let mut config = from_wire::read_tree(json)?;
    if let Value::Object(members) = &mut config {
        push::read_config(members);
    }
    serde_json::from_value(config)
}

pub(crate) fn read_push_configs(
    json: &str,
) -> serde_json::Result<ListTaskPushNotificationConfigsResponse> {
    from_wire::read_tree(json).map(push::read_list).and_then(serde_json::from_value)
}

/// Writes one event of a stream, or the body of a push. `is_final` says that no other event follows; only a status can
/// carry that.
///
/// # Errors
///
/// If the event cannot be written as JSON.
pub fn write_event(event: &StreamResponse, is_final: bool) -> serde_json::Result<Value> {
    let mut written = event::write(serde_json::to_value(event)?);
    if matches!(event, StreamResponse::StatusUpdate(_)) {
        written["final"] = Value::Bool(is_final);
    }
    Ok(written)
}

/// Reads one event of a stream, or the body of a push, and whether it says that no other follows.
///
/// # Errors
///
/// If it is none; the error begins with the place, by the names of 1.0.
pub fn read_event(event: &str) -> serde_json::Result<(StreamResponse, bool)> {
    let reading = Reading::answer(event.len(), Dialect::V03);
    let read = match event::kind_of(event)? {
        EventKind::Task => from_wire::read::<Task>(event, &reading)?.into(),
        EventKind::Message => from_wire::read::<Message>(event, &reading)?.into(),
        EventKind::StatusUpdate => {
            from_wire::read::<TaskStatusUpdateEvent>(event, &reading)?.into()
        }
        EventKind::ArtifactUpdate => {
            from_wire::read::<TaskArtifactUpdateEvent>(event, &reading)?.into()
        }
        // Agents of 1.0 push their own objects to webhooks that were registered in 0.3.
        EventKind::Unknown => StreamResponse::from_wire(event, WireLimits::Answer)?,
    };
    Ok((read, reading.is_final()))
}

/// Reads a card of 1.0, of 0.3, or one that is both, where the interfaces of 1.0 count.
///
/// # Errors
///
/// If it is none; the error begins with the place, by the names of 1.0.
pub fn read_card(card: &str) -> serde_json::Result<AgentCard> {
    if card::is_new(card)? {
        return AgentCard::from_wire(card, WireLimits::Answer);
    }
    let mut card = from_wire::read_tree(card)?;
    card::read(&mut card);
    serde_json::from_value(card)
}

/// Writes a card of 0.3. Its own address is that of the first interface of 0.3, or of the first at all.
///
/// # Errors
///
/// If it cannot be written as JSON.
pub fn write_card(card: &AgentCard) -> serde_json::Result<Value> {
    let mut written = serde_json::to_value(card)?;
    card::write(&mut written);
    Ok(written)
}

/// The error as 0.3 says it: what it has no code for becomes an invalid request.
pub fn write_error(mut error: RpcError) -> RpcError {
    let is_unknown = match A2aErrorKind::from_rpc_code(error.code) {
        Some(A2aErrorKind::ExtensionSupportRequired | A2aErrorKind::VersionNotSupported) => true,
        Some(_) | None => false,
    };
    if is_unknown {
        error.code = A2aErrorKind::InvalidRequest.rpc_code().unwrap_or(error.code);
    }
    error
}

/// The error of a method as 1.0 says it. The codes mean the same, except that a subscription to a task that has ended is
/// refused for its parameters, of which there is only the id.
pub fn read_error(method: &str, error: RpcError) -> RpcError {
    let is_ended =
        method == METHOD_SUBSCRIBE_TO_TASK && error.kind() == Some(A2aErrorKind::InvalidParams);
    if is_ended { RpcError::of(A2aErrorKind::UnsupportedOperation, error.message) } else { error }
}

/// Gives a member another name, unless something has that already.
fn rename(members: &mut JsonObject, from: &str, to: &str) {
    if let Some(value) = members.remove(from) {
        members.entry(to).or_insert(value);
    }
}

/// Rewrites each item of a list that may be there.
fn each(members: &mut JsonObject, name: &str, rewrite: fn(&mut Value)) {
    if let Some(Value::Array(items)) = members.get_mut(name) {
        items.iter_mut().for_each(rewrite);
    }
}

/// Rewrites a member that may be there.
fn one(members: &mut JsonObject, name: &str, rewrite: fn(&mut Value)) {
    if let Some(value) = members.get_mut(name) {
        rewrite(value);
    }
}

/// An object with one member.
fn wrapped(name: &str, value: Value) -> Value {
    Value::Object(JsonObject::from_iter([(name.to_owned(), value)]))
}

#[cfg(test)]
mod tests;
