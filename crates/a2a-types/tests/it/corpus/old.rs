//! What was recorded of 0.3. It is read as 1.0, written as 0.3 again, and must mean the same.

use std::fs;

use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use volcanic_a2a_types::{
    A2aErrorKind, CancelTaskRequest, DeleteTaskPushNotificationConfigRequest, FromWire,
    GetExtendedAgentCardRequest, GetTaskPushNotificationConfigRequest, GetTaskRequest,
    ListTaskPushNotificationConfigsRequest, ListTaskPushNotificationConfigsResponse, RpcError,
    RpcId, RpcOutcome, RpcRequest, RpcResponse, SendMessageRequest, SendMessageResponse,
    StreamResponse, SubscribeToTaskRequest, Task, TaskPushNotificationConfig, v03,
};

use super::{Entry, Examined, Outcome, check, corpus, events, load};
use crate::meaning::compare;

pub(super) fn examine(entry: &Entry, is_stream: bool) -> Examined {
    match entry.binding.as_str() {
        "data model" => examine_object(entry),
        "JSONRPC 0.3" if is_stream => examine_stream(entry),
        "JSONRPC 0.3" => examine_exchange(entry),
        "webhook" => examine_push(&load(&entry.file)["request"]["body"]),
        _ if entry.kind.contains("card") || entry.kind.contains("Card") => {
            check_card(&load(&entry.file)["response"]["body"])
                .map(|()| Outcome::Checked("0.3 cards"))
        }
        "HTTP+JSON 0.3" => Ok(Outcome::SetAside("0.3 over HTTP+JSON, which nobody here speaks")),
        other => Err(format!("no such binding: {other}")),
    }
}

/// Reads, writes, compares by meaning, and reads again.
fn check_old<T: PartialEq>(
    value: &Value,
    read: impl Fn(Value) -> serde_json::Result<T>,
    write: impl Fn(&T) -> serde_json::Result<Value>,
) -> Result<(), String> {
    let first = read(value.clone()).map_err(|error| error.to_string())?;
    let written = write(&first).map_err(|error| error.to_string())?;
    compare(value, &written, &[])?;
    let again = read(written.clone()).map_err(|error| format!("written, then: {error}"))?;
    let stable = write(&again).map_err(|error| error.to_string())? == written;
    if stable { Ok(()) } else { Err("writing twice differs".to_owned()) }
}

fn check_params<T: Serialize + DeserializeOwned + PartialEq>(
    method: &str,
    params: &Value,
) -> Result<(), String> {
    let read = |params| v03::read_params::<T>(method, params);
    check_old(params, read, |params| v03::write_params(method, params))
}

fn check_answer<T: Serialize + FromWire + PartialEq>(
    method: &str,
    result: &Value,
) -> Result<(), String> {
    let read = |result: Value| v03::read_result::<T>(&result.to_string());
    check_old(result, read, |result| v03::write_result(method, result))
}

fn check_event(event: &Value) -> Result<(), String> {
    let read = |event: Value| v03::read_event(&event.to_string());
    check_old(event, read, |(event, is_final)| v03::write_event(event, *is_final))
}

fn check_card(card: &Value) -> Result<(), String> {
    let read = |card: Value| v03::read_card(&card.to_string());
    check_old(&as_we_write_it(card), read, v03::write_card)
}

/// The card without what has no place in 1.0, and with what it leaves to defaults.
fn as_we_write_it(card: &Value) -> Value {
    let mut card = card.clone();
    let members = card.as_object_mut().unwrap();
    members.entry("preferredTransport").or_insert_with(|| json!("JSONRPC"));
    members.entry("protocolVersion").or_insert_with(|| json!("0.3.0"));
    let (main, preferred) = (members["url"].clone(), members["preferredTransport"].clone());
    if let Some(Value::Array(others)) = members.get_mut("additionalInterfaces") {
        others.retain(|other| (&other["url"], &other["transport"]) != (&main, &preferred));
    }
    if let Some(Value::Object(capabilities)) = members.get_mut("capabilities") {
        capabilities.remove("stateTransitionHistory");
    }
    if let Some(Value::Object(schemes)) = members.get_mut("securitySchemes") {
        for flows in schemes.values_mut().filter_map(|scheme| scheme.get_mut("flows")) {
            let flows = flows.as_object_mut().unwrap();
            if flows.contains_key("authorizationCode") {
                flows.retain(|name, _| name == "authorizationCode");
            }
        }
    }
    card
}

fn examine_object(entry: &Entry) -> Examined {
    let value = load(&entry.file);
    match entry.kind.as_str() {
        "AgentCard 0.3" => check_card(&value)?,
        "Task 0.3" => check_answer::<Task>("GetTask", &value)?,
        "TaskStatusUpdateEvent 0.3" | "TaskArtifactUpdateEvent 0.3" => check_event(&value)?,
        "Part 0.3" => {
            let message =
                json!({"kind": "message", "messageId": "m", "role": "agent", "parts": [value]});
            check_event(&message)?;
        }
        other => return Err(format!("no such object: {other}")),
    }
    Ok(Outcome::Checked("0.3 objects"))
}

/// Agents of 1.0 push their own objects also to webhooks registered in 0.3.
fn examine_push(body: &Value) -> Examined {
    if body.get("kind").is_some() {
        check_event(body)?;
    } else {
        check::<StreamResponse>(body, &[])?;
        v03::read_event(&body.to_string()).map_err(|error| error.to_string())?;
    }
    Ok(Outcome::Checked("0.3 push deliveries"))
}

fn examine_stream(entry: &Entry) -> Examined {
    if fs::read(corpus().join(&entry.file)).unwrap().is_empty() {
        return Ok(Outcome::SetAside("0.3 stream that broke off before its first event"));
    }
    let mut ended = false;
    for event in events(&entry.file)? {
        if ended {
            return Err("something after the last event".to_owned());
        }
        let response =
            RpcResponse::decode(event.data.as_bytes()).map_err(|error| error.to_string())?;
        match response.outcome {
            RpcOutcome::Error(error) => check_error(&error)?,
            RpcOutcome::Result(result) => {
                let result: Value = serde_json::from_str(result.get()).unwrap();
                check_event(&result)?;
                ended = v03::read_event(&result.to_string()).unwrap().1;
            }
        }
    }
    Ok(Outcome::Checked("0.3 streams"))
}

fn check_error(error: &RpcError) -> Result<(), String> {
    let value = serde_json::to_value(error).unwrap();
    check::<RpcError>(&value, &[])?;
    error.kind().map(drop).ok_or_else(|| "an error of no kind".to_owned())
}

fn examine_exchange(entry: &Entry) -> Examined {
    let exchange = load(&entry.file);
    let request = &exchange["request"]["body"];
    let request = request["__raw__"].as_str().map_or_else(|| request.to_string(), str::to_owned);
    let response = &exchange["response"];
    let read = read_request(&request);
    if response["bodyFile"].is_string() {
        read.map_err(|error| error.to_string())?;
        return Ok(Outcome::Checked("0.3 requests for a stream, which is a file of its own"));
    }
    let body = response["body"].to_string();
    let response = RpcResponse::decode(body.as_bytes()).map_err(|error| error.to_string())?;
    match (read, response.outcome) {
        (Ok((id, _)), _) if id != response.id => Err("the id is another".to_owned()),
        (Ok(_), RpcOutcome::Error(error)) => {
            check_error(&error).map(|()| Outcome::Checked("0.3 exchanges with an error"))
        }
        (Ok((_, method)), RpcOutcome::Result(result)) => {
            let result: Value = serde_json::from_str(result.get()).unwrap();
            check_result(method, &result).map(|()| Outcome::Checked("0.3 exchanges"))
        }
        (Err(_), RpcOutcome::Error(error)) => {
            check_error(&error).map(|()| Outcome::Checked("0.3 requests that both sides refuse"))
        }
        (Err(error), RpcOutcome::Result(_)) => Err(format!("request: {error}")),
    }
}

fn read_request(body: &str) -> Result<(RpcId, &'static str), RpcError> {
    let request = RpcRequest::decode(body.as_bytes()).map_err(|rejection| *rejection.error)?;
    let method = v03::method_from_name(&request.method)
        .ok_or_else(|| RpcError::of(A2aErrorKind::MethodNotFound, request.method.to_string()))?;
    let mut params: Value = request.params()?;
    let checked = match method {
        "SendMessage" | "SendStreamingMessage" => {
            // Written always, for agents take its absence one way and the other.
            let configuration = &mut params["configuration"];
            if configuration["blocking"].is_null() {
                configuration["blocking"] = json!(true);
            }
            check_params::<SendMessageRequest>(method, &params)
        }
        "GetTask" => check_params::<GetTaskRequest>(method, &params),
        "CancelTask" => check_params::<CancelTaskRequest>(method, &params),
        "SubscribeToTask" => check_params::<SubscribeToTaskRequest>(method, &params),
        "CreateTaskPushNotificationConfig" => {
            check_params::<TaskPushNotificationConfig>(method, &params)
        }
        "GetTaskPushNotificationConfig" => {
            check_params::<GetTaskPushNotificationConfigRequest>(method, &params)
        }
        "ListTaskPushNotificationConfigs" => {
            check_params::<ListTaskPushNotificationConfigsRequest>(method, &params)
        }
        "DeleteTaskPushNotificationConfig" => {
            check_params::<DeleteTaskPushNotificationConfigRequest>(method, &params)
        }
        "GetExtendedAgentCard" => check_params::<GetExtendedAgentCardRequest>(method, &params),
        other => Err(format!("no such method: {other}")),
    };
    checked.map_err(|error| RpcError::of(A2aErrorKind::InvalidParams, error))?;
    Ok((request.id, method))
}

fn check_result(method: &str, result: &Value) -> Result<(), String> {
    match method {
        "SendMessage" => check_answer::<SendMessageResponse>(method, result),
        "GetTask" | "CancelTask" => check_answer::<Task>(method, result),
        "CreateTaskPushNotificationConfig" | "GetTaskPushNotificationConfig" => {
            check_answer::<TaskPushNotificationConfig>(method, result)
        }
        "ListTaskPushNotificationConfigs" => {
            check_answer::<ListTaskPushNotificationConfigsResponse>(method, result)
        }
        "DeleteTaskPushNotificationConfig" if result.is_null() => Ok(()),
        "GetExtendedAgentCard" => check_card(result),
        other => Err(format!("{other} answered {result}")),
    }
}
