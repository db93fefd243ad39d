//! What the record of a proxy says: which operations were called, over which binding, and what came back.

use std::fmt::Write as _;

use serde_json::Value;
use volcanic_testkit::Exchange;

mod http;

use http::Message;

/// The most characters of a body in a report.
const SHOWN: usize = 1500;

/// An operation of A2A, whatever the binding and the dialect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Operation {
    Card,
    SendMessage,
    SendStreamingMessage,
    GetTask,
    ListTasks,
    CancelTask,
    SubscribeToTask,
    CreatePushConfig,
    GetPushConfig,
    ListPushConfigs,
    DeletePushConfig,
    Unknown(String),
}

/// How an operation was called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WireBinding {
    JsonRpc,
    HttpJson,
}

/// One call and its answer.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) operation: Operation,
    /// None for the card, which has no binding.
    pub(super) binding: Option<WireBinding>,
    request: Message,
    /// The parameters over JSON-RPC, the body over HTTP+JSON.
    pub(super) params: Value,
    answer: Option<Message>,
}

/// A task in an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WireTask {
    pub(super) id: String,
    pub(super) context: String,
    /// In the words of 0.3, such as `input-required`.
    pub(super) state: String,
}

/// An event of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WireEvent {
    Task(WireTask),
    Status(String),
    /// An artifact's text.
    Artifact(String),
    Other,
}

/// All calls of a record, connection by connection.
pub(super) fn calls(exchanges: &[Exchange]) -> Vec<Call> {
    exchanges.iter().flat_map(on_connection).collect()
}

/// The record for people: one block per call, long bodies cut.
pub(super) fn transcript(calls: &[Call]) -> String {
    let mut text = String::new();
    for call in calls {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "> {}\n  {}", call.request.first, shown(&call.request.body));
        match &call.answer {
            Some(answer) => {
                let cut = if answer.is_whole { "" } else { " (cut off)" };
                let _ = writeln!(text, "< {}{cut}\n  {}", answer.first, shown(&answer.body));
            }
            None => text.push_str("< no answer\n"),
        }
    }
    text
}

fn shown(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let text = text.trim();
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{} … ({} bytes)", &text[..at], body.len()),
        None => text.to_owned(),
    }
}

fn on_connection(exchange: &Exchange) -> Vec<Call> {
    let mut answers = http::messages(&exchange.response).into_iter();
    let requests = http::messages(&exchange.request);
    requests.into_iter().map(|request| Call::new(request, answers.next())).collect()
}

impl Call {
    fn new(request: Message, answer: Option<Message>) -> Self {
        let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let mut words = request.first.split(' ');
        let verb = words.next().unwrap_or_default();
        let target = words.next().unwrap_or_default();
        let path = target.split('?').next().unwrap_or_default();
        let (operation, binding, params) = if path.contains("/.well-known/") {
            (Operation::Card, None, Value::Null)
        } else if let Some((_, route)) = path.split_once("/rest/") {
            (Operation::of_route(verb, route), Some(WireBinding::HttpJson), body)
        } else {
            let method = body["method"].as_str().unwrap_or_default();
            let operation = Operation::of_method(method);
            (operation, Some(WireBinding::JsonRpc), body["params"].clone())
        };
        Self { operation, binding, request, params, answer }
    }

    /// Whether the request names a task, or the answer does.
    pub(super) fn is_about(&self, task: &str) -> bool {
        let answer = self.answer.as_ref().map(|answer| String::from_utf8_lossy(&answer.body));
        self.request.first.contains(task)
            || self.params.to_string().contains(task)
            || answer.is_some_and(|answer| answer.contains(task))
    }

    /// A header of the request.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.request.header(name)
    }

    /// The request's verb and target.
    pub(super) fn target(&self) -> &str {
        &self.request.first
    }

    pub(super) fn status(&self) -> Option<u16> {
        self.answer.as_ref()?.first.split(' ').nth(1)?.parse().ok()
    }

    /// Whether the answer is a stream of events.
    pub(super) fn is_stream(&self) -> bool {
        let media = self.answer.as_ref().and_then(|answer| answer.header("content-type"));
        media.is_some_and(|media| media.starts_with("text/event-stream"))
    }

    /// Whether the answer came to its end.
    pub(super) fn is_whole(&self) -> bool {
        self.answer.as_ref().is_some_and(|answer| answer.is_whole)
    }

    fn body(&self) -> Value {
        let body = self.answer.as_ref().map(|answer| serde_json::from_slice(&answer.body));
        body.and_then(Result::ok).unwrap_or_default()
    }

    /// The result over JSON-RPC, the body over HTTP+JSON.
    pub(super) fn result(&self) -> Value {
        self.result_in(self.body())
    }

    fn result_in(&self, mut body: Value) -> Value {
        match self.binding {
            Some(WireBinding::JsonRpc) => body["result"].take(),
            Some(WireBinding::HttpJson) | None => body,
        }
    }

    /// The error's code over JSON-RPC, its reason over HTTP+JSON.
    pub(super) fn error(&self) -> Option<String> {
        let error = &self.body()["error"];
        match self.binding? {
            WireBinding::JsonRpc => Some(error["code"].as_i64()?.to_string()),
            WireBinding::HttpJson => {
                let details = error["details"].as_array()?;
                let reason = details.iter().find_map(|detail| detail["reason"].as_str())?;
                Some(reason.to_owned())
            }
        }
    }

    /// The task that came back.
    pub(super) fn task(&self) -> Option<WireTask> {
        WireTask::of(&self.result())
    }

    /// The events of a stream, as far as they are whole.
    pub(super) fn events(&self) -> Vec<WireEvent> {
        let body = self.answer.as_ref().map(|answer| String::from_utf8_lossy(&answer.body));
        let body = body.unwrap_or_default();
        let data = body.lines().filter_map(|line| line.strip_prefix("data:"));
        let values = data.filter_map(|data| serde_json::from_str(data.trim()).ok());
        values.map(|value| WireEvent::of(&self.result_in(value))).collect()
    }
}

impl WireTask {
    /// Reads a task, bare or wrapped.
    fn of(value: &Value) -> Option<Self> {
        let task = value.get("task").unwrap_or(value);
        Some(Self {
            id: task["id"].as_str()?.to_owned(),
            context: task["contextId"].as_str().unwrap_or_default().to_owned(),
            state: state(&task["status"]["state"])?,
        })
    }
}

impl WireEvent {
    fn of(value: &Value) -> Self {
        let kind = value["kind"].as_str();
        let old = |wanted| (kind == Some(wanted)).then_some(value);
        if let Some(update) = value.get("statusUpdate").or_else(|| old("status-update")) {
            return state(&update["status"]["state"]).map_or(Self::Other, Self::Status);
        }
        if let Some(update) = value.get("artifactUpdate").or_else(|| old("artifact-update")) {
            let parts = update["artifact"]["parts"].as_array();
            let texts = parts.into_iter().flatten().filter_map(|part| part["text"].as_str());
            return Self::Artifact(texts.collect());
        }
        WireTask::of(value).map_or(Self::Other, Self::Task)
    }
}

fn state(value: &Value) -> Option<String> {
    let name = value.as_str()?;
    Some(name.trim_start_matches("TASK_STATE_").to_ascii_lowercase().replace('_', "-"))
}

impl Operation {
    fn of_method(method: &str) -> Self {
        match method {
            "SendMessage" | "message/send" => Self::SendMessage,
            "SendStreamingMessage" | "message/stream" => Self::SendStreamingMessage,
            "GetTask" | "tasks/get" => Self::GetTask,
            "ListTasks" => Self::ListTasks,
            "CancelTask" | "tasks/cancel" => Self::CancelTask,
            "SubscribeToTask" | "tasks/resubscribe" => Self::SubscribeToTask,
            "CreateTaskPushNotificationConfig" | "tasks/pushNotificationConfig/set" => {
                Self::CreatePushConfig
            }
            "GetTaskPushNotificationConfig" | "tasks/pushNotificationConfig/get" => {
                Self::GetPushConfig
            }
            "ListTaskPushNotificationConfigs" | "tasks/pushNotificationConfig/list" => {
                Self::ListPushConfigs
            }
            "DeleteTaskPushNotificationConfig" | "tasks/pushNotificationConfig/delete" => {
                Self::DeletePushConfig
            }
            other => Self::Unknown(other.to_owned()),
        }
    }

    fn of_route(verb: &str, route: &str) -> Self {
        let segments: Vec<&str> = route.split('/').collect();
        match (verb, segments.as_slice()) {
            ("POST", ["message:send"]) => Self::SendMessage,
            ("POST", ["message:stream"]) => Self::SendStreamingMessage,
            ("GET", ["tasks"]) => Self::ListTasks,
            ("POST", ["tasks", id]) if id.ends_with(":cancel") => Self::CancelTask,
            (_, ["tasks", id]) if id.ends_with(":subscribe") => Self::SubscribeToTask,
            ("GET", ["tasks", _]) => Self::GetTask,
            ("POST", ["tasks", _, "pushNotificationConfigs"]) => Self::CreatePushConfig,
            ("GET", ["tasks", _, "pushNotificationConfigs"]) => Self::ListPushConfigs,
            ("GET", ["tasks", _, "pushNotificationConfigs", _]) => Self::GetPushConfig,
            ("DELETE", ["tasks", _, "pushNotificationConfigs", _]) => Self::DeletePushConfig,
            _ => Self::Unknown(format!("{verb} {route}")),
        }
    }
}

#[cfg(test)]
mod tests;
