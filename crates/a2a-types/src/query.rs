//! The query strings of HTTP+JSON: what a call without a body asks for beside its path.

use std::fmt::Write as _;

use percent_encoding::{percent_decode_str, utf8_percent_encode};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{
    GetTaskRequest, JsonObject, ListTaskPushNotificationConfigsRequest, ListTasksRequest, TaskId,
    route::ENCODED,
};

/// Members that stand in the path.
const IN_PATH: [&str; 3] = ["tenant", "id", "taskId"];
/// Members that are true or false.
const BOOLEANS: [&str; 2] = ["includeArtifacts", "include_artifacts"];

impl GetTaskRequest {
    /// The query string, without a question mark; empty if nothing is asked for beyond the task.
    pub fn to_query(&self) -> String {
        to_query(self)
    }

    /// Reads the query string of a request for a task; the tenant is left to whoever read the path.
    ///
    /// # Errors
    ///
    /// If a value is wrong; the error begins with its name.
    pub fn from_query(id: &TaskId, query: &str) -> serde_json::Result<Self> {
        from_query(query, Some(("id", id)))
    }
}

impl ListTasksRequest {
    /// The query string, without a question mark; empty if everything is left to the agent.
    pub fn to_query(&self) -> String {
        to_query(self)
    }

    /// Reads the query string of a request for tasks; the tenant is left to whoever read the path.
    ///
    /// # Errors
    ///
    /// If a value is wrong; the error begins with its name. A state nobody knows is kept, for the agent to refuse.
    pub fn from_query(query: &str) -> serde_json::Result<Self> {
        from_query(query, None)
    }
}

impl ListTaskPushNotificationConfigsRequest {
    /// The query string, without a question mark; empty if the first page is wanted.
    pub fn to_query(&self) -> String {
        to_query(self)
    }

    /// Reads the query string of a request for a task's webhooks; the tenant is left to whoever read the path.
    ///
    /// # Errors
    ///
    /// If a value is wrong; the error begins with its name.
    pub fn from_query(task_id: &TaskId, query: &str) -> serde_json::Result<Self> {
        from_query(query, Some(("taskId", task_id)))
    }
}

fn to_query<T: Serialize>(request: &T) -> String {
    let Ok(Value::Object(members)) = serde_json::to_value(request) else { return String::new() };
    let mut query = String::new();
    for (name, value) in members.iter().filter(|(name, _)| !IN_PATH.contains(&name.as_str())) {
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Bool(_) | Value::Number(_) => value.to_string(),
            // No request without a body has any of these.
            Value::Null | Value::Array(_) | Value::Object(_) => continue,
        };
        let separator = if query.is_empty() { "" } else { "&" };
        // Writing to a string cannot fail.
        let _ = write!(query, "{separator}{name}={}", utf8_percent_encode(&text, ENCODED));
    }
    query
}

/// Reads a query as the object it stands for. What the object does not know is ignored, and the path wins.
fn from_query<T: DeserializeOwned>(
    query: &str,
    in_path: Option<(&str, &TaskId)>,
) -> serde_json::Result<T> {
    let mut members = JsonObject::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, text) = pair.split_once('=').unwrap_or((pair, ""));
        let (name, text) = (decode(name), decode(text));
        if IN_PATH.contains(&name.as_str()) || name == "task_id" {
            continue;
        }
        let value = match text.as_str() {
            "" => Value::Null,
            "true" if BOOLEANS.contains(&name.as_str()) => Value::Bool(true),
            "false" if BOOLEANS.contains(&name.as_str()) => Value::Bool(false),
            _ => Value::String(text),
        };
        members.insert(name, value);
    }
    if let Some((name, id)) = in_path {
        members.insert(name.to_owned(), Value::String(id.as_str().to_owned()));
    }
    serde_json::from_value(Value::Object(members))
}

/// Decodes as forms do: a plus is a space, and broken UTF-8 is replaced.
fn decode(text: &str) -> String {
    let text = text.replace('+', " ");
    percent_decode_str(&text).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{FieldViolation, TaskState};

    fn full() -> ListTasksRequest {
        ListTasksRequest {
            context_id: Some("c 1&2".into()),
            status: Some(TaskState::Working),
            page_size: Some(10),
            page_token: Some("a+b/c=".to_owned()),
            history_length: Some(0),
            status_timestamp_after: Some("2026-11-30T12:00:00.5Z".parse().unwrap()),
            include_artifacts: Some(false),
            ..ListTasksRequest::default()
        }
    }

    #[test]
    fn list_is_written_and_read() {
        let query = full().to_query();
        let mut pairs: Vec<&str> = query.split('&').collect();
        pairs.sort_unstable();
        assert_eq!(
            pairs,
            [
                "contextId=c%201%262",
                "historyLength=0",
                "includeArtifacts=false",
                "pageSize=10",
                "pageToken=a%2Bb%2Fc%3D",
                "status=TASK_STATE_WORKING",
                "statusTimestampAfter=2026-11-30T12%3A00%3A00.500Z",
            ]
        );
        assert_eq!(ListTasksRequest::from_query(&query).unwrap(), full());
        assert_eq!(ListTasksRequest::default().to_query(), "");
        assert_eq!(ListTasksRequest::from_query("").unwrap(), ListTasksRequest::default());
    }

    #[test]
    fn path_and_tenant_are_no_part_of_the_query() {
        let mut bare = GetTaskRequest::new("t1");
        bare.history_length = Some(0);
        let mut request = bare.clone();
        request.tenant = Some("acme".to_owned());
        assert_eq!(request.to_query(), "historyLength=0");
        let read =
            GetTaskRequest::from_query(&"t1".into(), "historyLength=0&id=t2&tenant=x").unwrap();
        assert_eq!(read, bare);
        let mut request = ListTaskPushNotificationConfigsRequest::new("t1");
        assert_eq!(request.to_query(), "");
        request.page_size = 5;
        request.page_token = Some("n".to_owned());
        let task = TaskId::from("t1");
        let read =
            ListTaskPushNotificationConfigsRequest::from_query(&task, "pageSize=5&page_token=n");
        assert_eq!(read.unwrap(), request);
    }

    #[test]
    fn wrong_values_are_named() {
        for (query, field) in [
            ("pageSize=abc", "pageSize"),
            ("includeArtifacts=maybe", "includeArtifacts"),
            ("statusTimestampAfter=yesterday", "statusTimestampAfter"),
        ] {
            let error = ListTasksRequest::from_query(query).unwrap_err();
            assert_eq!(FieldViolation::from_decode_error(&error).unwrap().field, field);
        }
        let read =
            ListTasksRequest::from_query("status=TASK_STATE_RUNNING&A2A-Version=1.0&x").unwrap();
        assert_eq!(read.status, Some(TaskState::Unknown("TASK_STATE_RUNNING".to_owned())));
    }

    proptest! {
        #[test]
        fn every_text_comes_back(token in "\\PC{1,30}", context in "\\PC{1,30}") {
            let request = ListTasksRequest {
                page_token: Some(token),
                context_id: Some(context.into()),
                ..ListTasksRequest::default()
            };
            prop_assert_eq!(ListTasksRequest::from_query(&request.to_query()).unwrap(), request);
        }

        #[test]
        fn no_query_panics(query in "\\PC{0,60}") {
            let _ = ListTasksRequest::from_query(&query);
        }
    }
}
