//! Reads and rewrites what official SDKs put on the wire. Every file is either checked or set aside with a reason.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use bytes::Bytes;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;
use volcanic_a2a_types::{
    A2aErrorKind, AgentCard, CancelTaskRequest, DeleteTaskPushNotificationConfigRequest,
    GetExtendedAgentCardRequest, GetTaskPushNotificationConfigRequest, GetTaskRequest,
    ListTaskPushNotificationConfigsRequest, ListTaskPushNotificationConfigsResponse,
    ListTasksRequest, ListTasksResponse, METHOD_CANCEL_TASK, METHOD_CREATE_PUSH_CONFIG,
    METHOD_DELETE_PUSH_CONFIG, METHOD_GET_EXTENDED_CARD, METHOD_GET_PUSH_CONFIG, METHOD_GET_TASK,
    METHOD_LIST_PUSH_CONFIGS, METHOD_LIST_TASKS, METHOD_SEND_MESSAGE,
    METHOD_SEND_STREAMING_MESSAGE, METHOD_SUBSCRIBE_TO_TASK, Message, Part, RpcError, RpcId,
    RpcOutcome, RpcRequest, RpcResponse, SendMessageRequest, SendMessageResponse, SseDecoder,
    SseEvent, SseLimits, StreamResponse, SubscribeToTaskRequest, Task, TaskArtifactUpdateEvent,
    TaskPushNotificationConfig, TaskStatus, TaskStatusUpdateEvent, v03,
};

use crate::meaning::compare;

mod http;
mod old;

/// Members of 0.3 that dual agents put into a 1.0 card.
const LEGACY_CARD: [&str; 5] = [
    "url",
    "preferredTransport",
    "protocolVersion",
    "additionalInterfaces",
    "supportsAuthenticatedExtendedCard",
];

/// Requests that the recorded SDK treats otherwise than the specification; whether we take them, and whether we take
/// the answer (one of them echoes what should have been refused).
const QUIRKS: [(&str, bool, bool); 5] = [
    ("quirk.bad-base64-accepted.json", false, true),
    ("quirk.extra-envelope-member-rejected.json", true, true),
    ("quirk.list-unknown-status-ignored.json", true, true),
    ("quirk.part-without-content-accepted.json", false, true),
    ("quirk.v03-kind-member-ignored.json", true, true),
];

const METHODS: [&str; 11] = [
    METHOD_SEND_MESSAGE,
    METHOD_SEND_STREAMING_MESSAGE,
    METHOD_GET_TASK,
    METHOD_LIST_TASKS,
    METHOD_CANCEL_TASK,
    METHOD_SUBSCRIBE_TO_TASK,
    METHOD_CREATE_PUSH_CONFIG,
    METHOD_GET_PUSH_CONFIG,
    METHOD_LIST_PUSH_CONFIGS,
    METHOD_DELETE_PUSH_CONFIG,
    METHOD_GET_EXTENDED_CARD,
];

#[derive(Deserialize)]
struct Manifest {
    files: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    file: String,
    #[serde(rename = "type")]
    kind: String,
    binding: String,
}

/// What became of a file.
enum Outcome {
    Checked(&'static str),
    SetAside(&'static str),
}

type Examined = Result<Outcome, String>;

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/corpus")
}

fn load(file: &str) -> Value {
    serde_json::from_slice(&fs::read(corpus().join(file)).unwrap()).unwrap()
}

/// Reads, writes, compares by meaning, and reads again.
fn check<T: DeserializeOwned + Serialize + PartialEq>(
    value: &Value,
    forgotten: &[&str],
) -> Result<(), String> {
    let read: T = serde_json::from_str(&value.to_string()).map_err(|error| error.to_string())?;
    let written = serde_json::to_string(&read).map_err(|error| error.to_string())?;
    compare(value, &serde_json::from_str(&written).unwrap(), forgotten)?;
    // Timestamps finer than a millisecond are cut when written, so it is the second writing that must be stable.
    let again: T =
        serde_json::from_str(&written).map_err(|error| format!("written, then: {error}"))?;
    let stable = serde_json::to_string(&again).map_err(|error| error.to_string())? == written;
    if stable { Ok(()) } else { Err("writing twice differs".to_owned()) }
}

fn check_params(method: &str, params: &Value) -> Result<(), String> {
    match method {
        "SendMessage" | "SendStreamingMessage" => check::<SendMessageRequest>(params, &[]),
        "GetTask" => check::<GetTaskRequest>(params, &["futureField"]),
        "ListTasks" => check::<ListTasksRequest>(params, &[]),
        "CancelTask" => check::<CancelTaskRequest>(params, &[]),
        "SubscribeToTask" => check::<SubscribeToTaskRequest>(params, &[]),
        "CreateTaskPushNotificationConfig" => check::<TaskPushNotificationConfig>(params, &[]),
        "GetTaskPushNotificationConfig" => {
            check::<GetTaskPushNotificationConfigRequest>(params, &[])
        }
        "ListTaskPushNotificationConfigs" => {
            check::<ListTaskPushNotificationConfigsRequest>(params, &[])
        }
        "DeleteTaskPushNotificationConfig" => {
            check::<DeleteTaskPushNotificationConfigRequest>(params, &[])
        }
        "GetExtendedAgentCard" => check::<GetExtendedAgentCardRequest>(params, &[]),
        other => Err(format!("no such method: {other}")),
    }
}

fn check_result(method: &str, result: &Value) -> Result<(), String> {
    match method {
        "SendMessage" => check::<SendMessageResponse>(result, &[]),
        "SendStreamingMessage" | "SubscribeToTask" => check::<StreamResponse>(result, &[]),
        "GetTask" | "CancelTask" => check::<Task>(result, &[]),
        "ListTasks" => check::<ListTasksResponse>(result, &[]),
        "CreateTaskPushNotificationConfig" | "GetTaskPushNotificationConfig" => {
            check::<TaskPushNotificationConfig>(result, &[])
        }
        "ListTaskPushNotificationConfigs" => {
            check::<ListTaskPushNotificationConfigsResponse>(result, &[])
        }
        "DeleteTaskPushNotificationConfig"
            if result.is_null() || *result == serde_json::json!({}) =>
        {
            Ok(())
        }
        "GetExtendedAgentCard" => check::<AgentCard>(result, &LEGACY_CARD),
        other => Err(format!("{other} answered {result}")),
    }
}

/// Checks a JSON-RPC response to `method`; returns whether it is an error.
fn check_response(method: &str, id: Option<&RpcId>, body: &str) -> Result<bool, String> {
    let response = RpcResponse::decode(body.as_bytes()).map_err(|error| error.to_string())?;
    match response.outcome {
        RpcOutcome::Error(error) => {
            let is_of_its_request =
                id.is_none_or(|id| *id == response.id) || response.id == RpcId::Null;
            let value: Value = serde_json::from_str(body).unwrap();
            check::<RpcError>(&value["error"], &[])?;
            let kind = error.kind().ok_or("an error of no kind")?;
            if kind.rpc_code() != Some(error.code) {
                return Err(format!("code {} is read as {kind:?}", error.code));
            }
            if is_of_its_request { Ok(true) } else { Err("the id is another".to_owned()) }
        }
        RpcOutcome::Result(_) if id.is_some_and(|id| *id != response.id) => {
            Err("the id is another".to_owned())
        }
        RpcOutcome::Result(result) => {
            check_result(method, &serde_json::from_str(result.get()).unwrap()).map(|()| false)
        }
    }
}

/// Reads a request as a server does and compares its parameters; an error is what a server would answer.
fn read_request(body: &str) -> Result<(RpcId, String), RpcError> {
    let request = RpcRequest::decode(body.as_bytes()).map_err(|rejection| *rejection.error)?;
    let (id, method) = (request.id.clone(), request.method.to_string());
    if !METHODS.contains(&method.as_str()) {
        return Err(RpcError::of(A2aErrorKind::MethodNotFound, method));
    }
    let params: Value = request.params().unwrap_or(Value::Null);
    check_params(&method, &params)
        .map_err(|error| RpcError::of(A2aErrorKind::InvalidParams, error))?;
    Ok((id, method))
}

fn examine_rpc_exchange(entry: &Entry) -> Examined {
    let exchange = load(&entry.file);
    let request = &exchange["request"]["body"];
    let request = request["__raw__"].as_str().map_or_else(|| request.to_string(), str::to_owned);
    let response = &exchange["response"];
    let name = entry.file.rsplit('/').next().unwrap_or_default();
    let quirk = QUIRKS.iter().find(|(quirk, _, _)| *quirk == name);
    if quirk.is_none() && name.starts_with("quirk.") {
        return Err("a quirk that nobody judged".to_owned());
    }

    let read = read_request(&request);
    let answer = match &read {
        _ if response["bodyFile"].is_string() => Ok(false),
        Ok((id, method)) => check_response(method, Some(id), &response["body"].to_string()),
        Err(_) => {
            let asked: Value = serde_json::from_str(&request).unwrap_or_default();
            check_response(
                asked["method"].as_str().unwrap_or_default(),
                None,
                &response["body"].to_string(),
            )
        }
    };
    if let Some((_, request_taken, answer_taken)) = quirk {
        let as_judged = (read.is_ok(), answer.is_ok()) == (*request_taken, *answer_taken);
        return if as_judged {
            Ok(Outcome::Checked("JSON-RPC quirks"))
        } else {
            Err(format!("{read:?}, {answer:?}"))
        };
    }
    match (read, answer?) {
        (Ok(_), _) => Ok(Outcome::Checked("JSON-RPC exchanges")),
        // We may refuse only what the recorded agent refused as well.
        (Err(_), true) => Ok(Outcome::Checked("JSON-RPC requests that both sides refuse")),
        (Err(error), false) => Err(format!("request: {error}")),
    }
}

fn events(file: &str) -> Result<Vec<SseEvent<'static>>, String> {
    let bytes = fs::read(corpus().join(file)).unwrap();
    let decode = |size: usize| {
        let mut decoder = SseDecoder::new(SseLimits {
            max_event: 1 << 20,
            max_line: 1 << 20,
            max_comment: 1 << 10,
            max_kept: 1 << 20,
        });
        let mut events = Vec::new();
        for piece in bytes.chunks(size).map(Some).chain([None]) {
            match piece {
                Some(piece) => decoder.push(Bytes::copy_from_slice(piece)),
                None => decoder.finish(),
            }
            while let Some(event) = decoder.next_event().map_err(|error| error.to_string())? {
                events.push(event.into_owned());
            }
        }
        Ok::<_, String>(events)
    };
    let events = decode(bytes.len())?;
    if events.is_empty() || events != decode(7)? {
        return Err("no events, or others when cut".to_owned());
    }
    Ok(events)
}

fn examine_stream(entry: &Entry, in_envelope: bool) -> Examined {
    for event in events(&entry.file)? {
        let is_error = match in_envelope {
            true => check_response("SubscribeToTask", None, &event.data)?,
            false if event.name.as_deref() == Some("error") => {
                http::check_error(200, &event.data)?;
                true
            }
            false => {
                let data = serde_json::from_str(&event.data).map_err(|error| error.to_string())?;
                check::<StreamResponse>(&data, &[])?;
                false
            }
        };
        if is_error != (event.name.as_deref() == Some("error")) {
            return Err(format!("event {:?} with {}", event.name, event.data));
        }
    }
    Ok(Outcome::Checked(if in_envelope { "JSON-RPC streams" } else { "HTTP+JSON streams" }))
}

fn examine_object(entry: &Entry) -> Examined {
    let value = load(&entry.file);
    match entry.kind.as_str() {
        "AgentCard" => check::<AgentCard>(&value, &[]),
        "CancelTaskRequest" => check::<CancelTaskRequest>(&value, &[]),
        "GetTaskRequest" => check::<GetTaskRequest>(&value, &[]),
        "ListTaskPushNotificationConfigsResponse" => {
            check::<ListTaskPushNotificationConfigsResponse>(&value, &[])
        }
        "ListTasksRequest" => check::<ListTasksRequest>(&value, &[]),
        "ListTasksResponse" => check::<ListTasksResponse>(&value, &[]),
        "Message" => check::<Message>(&value, &[]),
        "Part" => check::<Part>(&value, &[]),
        "SendMessageRequest" => check::<SendMessageRequest>(&value, &[]),
        "SendMessageResponse" => check::<SendMessageResponse>(&value, &[]),
        "StreamResponse" => check::<StreamResponse>(&value, &[]),
        "Task" => check::<Task>(&value, &[]),
        "TaskArtifactUpdateEvent" => check::<TaskArtifactUpdateEvent>(&value, &[]),
        "TaskPushNotificationConfig" => check::<TaskPushNotificationConfig>(&value, &[]),
        "TaskStatus" => check::<TaskStatus>(&value, &[]),
        "TaskStatusUpdateEvent" => check::<TaskStatusUpdateEvent>(&value, &[]),
        other => Err(format!("no such object: {other}")),
    }
    .map(|()| Outcome::Checked("objects"))
}

fn examine(entry: &Entry) -> Examined {
    let is_stream = Path::new(&entry.file).extension().is_some_and(|extension| extension == "sse");
    match entry.binding.as_str() {
        _ if entry.file.starts_with("v0.3/") => old::examine(entry, is_stream),
        "data model" => examine_object(entry),
        "JSONRPC" if is_stream => examine_stream(entry, true),
        "JSONRPC" => examine_rpc_exchange(entry),
        "HTTP+JSON" if is_stream => examine_stream(entry, false),
        "HTTP+JSON" => http::examine(entry),
        "webhook" => check::<StreamResponse>(&load(&entry.file)["request"]["body"], &[])
            .map(|()| Outcome::Checked("push deliveries")),
        "signing" => check::<AgentCard>(&load(&entry.file)["card"], &[])
            .map(|()| Outcome::Checked("signed cards")),
        "well-known" => examine_served_card(entry),
        other => Err(format!("no such binding: {other}")),
    }
}

fn examine_served_card(entry: &Entry) -> Examined {
    let exchange = load(&entry.file);
    match &exchange["response"]["body"] {
        Value::Null if exchange["response"]["status"] == 304 => {
            Ok(Outcome::SetAside("a card that is not sent again (304) has no body"))
        }
        card => {
            check::<AgentCard>(card, &LEGACY_CARD)?;
            // Read as one that may be of 0.3, the card of 1.0 must stay what it is.
            let as_any = v03::read_card(&card.to_string()).map_err(|error| error.to_string())?;
            if serde_json::from_value::<AgentCard>(card.clone()).is_ok_and(|card| card == as_any) {
                Ok(Outcome::Checked("served cards"))
            } else {
                Err("another card when 0.3 is possible".to_owned())
            }
        }
    }
}

fn files_under(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files_under(&path, found);
        } else {
            found.insert(path.strip_prefix(corpus()).unwrap().to_str().unwrap().to_owned());
        }
    }
}

#[test]
fn every_recorded_file_is_accounted_for() {
    let manifest: Manifest = serde_json::from_value(load("manifest.json")).unwrap();
    let mut present = BTreeSet::new();
    files_under(&corpus(), &mut present);
    present.remove("manifest.json");
    let listed: BTreeSet<String> = manifest.files.iter().map(|entry| entry.file.clone()).collect();
    assert_eq!(present, listed, "the manifest names every file and no other");

    let (mut checked, mut set_aside) = (BTreeMap::new(), BTreeMap::new());
    let mut failures = Vec::new();
    for entry in &manifest.files {
        match examine(entry) {
            Ok(Outcome::Checked(what)) => *checked.entry(what).or_insert(0) += 1,
            Ok(Outcome::SetAside(why)) => *set_aside.entry(why).or_insert(0) += 1,
            Err(error) => failures.push(format!("{}: {error}", entry.file)),
        }
    }
    println!("{} files; checked: {checked:#?}; set aside: {set_aside:#?}", listed.len());
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
    let (checked, set_aside): (i32, i32) = (checked.values().sum(), set_aside.values().sum());
    assert_eq!((checked, set_aside), (476, 27), "what is checked must not become less unseen");
}
