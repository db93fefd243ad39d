//! Exchanges over HTTP+JSON.

use serde_json::{Value, json};
use volcanic_a2a_types::{
    CancelTaskRequest, GetTaskRequest, HttpError, ListTaskPushNotificationConfigsRequest,
    ListTasksRequest, METHOD_CANCEL_TASK, METHOD_CREATE_PUSH_CONFIG, METHOD_DELETE_PUSH_CONFIG,
    METHOD_GET_EXTENDED_CARD, METHOD_GET_PUSH_CONFIG, METHOD_GET_TASK, METHOD_LIST_PUSH_CONFIGS,
    METHOD_LIST_TASKS, METHOD_SEND_MESSAGE, METHOD_SEND_STREAMING_MESSAGE,
    METHOD_SUBSCRIBE_TO_TASK, Route, SendMessageRequest, TaskPushNotificationConfig,
    is_json_media_type,
};

use super::{Entry, Examined, METHODS, Outcome, check, check_result, load};
use crate::meaning::compare;

pub(super) fn examine(entry: &Entry) -> Examined {
    let exchange = load(&entry.file);
    let read = read_request(&exchange["request"]);
    let response = &exchange["response"];
    let status = u16::try_from(response["status"].as_u64().unwrap_or_default()).unwrap_or_default();
    let method = entry.kind.trim_end_matches(" (exchange)");
    if let Ok(route) = &read
        && METHODS.contains(&method)
        && method_of(route) != method
    {
        return Err(format!("{method} is taken for {route:?}"));
    }
    if !(200..300).contains(&status) {
        return examine_error(response, status, read.is_err());
    }
    // What the recorded agent took, we take.
    let route = read?;
    if response["bodyFile"].is_string() {
        return Ok(Outcome::Checked("HTTP+JSON requests for a stream, which is a file of its own"));
    }
    let is_deleted = matches!(route, Route::DeletePushConfig(..));
    if is_deleted && (status == 204) != response["body"].is_null() {
        return Err("a body under 204, or none under another status".to_owned());
    }
    check_media_type(response)?;
    check_result(method_of(&route), &response["body"])
        .map(|()| Outcome::Checked("HTTP+JSON exchanges"))
}

fn examine_error(response: &Value, status: u16, is_refused: bool) -> Examined {
    let body = &response["body"];
    if body["__raw__"].is_string() {
        // Written by a framework that knows no such path or verb; neither do we.
        return if is_refused {
            Ok(Outcome::Checked("HTTP+JSON paths that both sides refuse"))
        } else {
            Err("a path that the recorded agent did not have".to_owned())
        };
    }
    check_media_type(response)?;
    check_error(status, &body.to_string())
        .map(|()| Outcome::Checked("HTTP+JSON exchanges with an error"))
}

fn check_media_type(response: &Value) -> Result<(), String> {
    let found = response["headers"]["content-type"].as_str().unwrap_or_default();
    if is_json_media_type(found) { Ok(()) } else { Err(format!("not JSON: {found}")) }
}

/// Reads an error, writes it again, and checks that it is of a kind that belongs under its status.
pub(super) fn check_error(status: u16, body: &str) -> Result<(), String> {
    let error = HttpError::decode(status, body.as_bytes()).ok_or("no error of the protocol")?;
    let kind = error.kind().ok_or("an error of no kind")?;
    if kind.http_status() != error.http_status {
        return Err(format!("{} is read as {kind:?}", error.http_status));
    }
    let named = error.error_info().is_some_and(|info| info.kind() == Some(kind));
    // Only what nobody foresaw comes without a name.
    if !named && error.http_status != 500 {
        return Err("an error without a reason".to_owned());
    }
    let written = error.encode().map_err(|error| error.to_string())?;
    let (before, after) =
        (serde_json::from_str(body).unwrap(), serde_json::from_slice(&written).unwrap());
    compare(&before, &after, &[])
}

/// Reads a request as a server does and writes it again.
fn read_request(request: &Value) -> Result<Route, String> {
    let target = request["path"].as_str().unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let verb = request["method"].as_str().unwrap_or_default();
    let below = path.split_once("/rest").map_or(path, |(_, below)| below);
    let (tenant, route) = Route::parse(verb, below).map_err(|error| error.to_string())?;
    if route.path(tenant.as_deref()) != below {
        return Err(format!("{below} became {}", route.path(tenant.as_deref())));
    }
    let body = &request["body"];
    if body["__raw__"].is_string() {
        return Err("no JSON".to_owned());
    }
    match &route {
        Route::SendMessage | Route::SendStreamingMessage => check::<SendMessageRequest>(body, &[])?,
        Route::CreatePushConfig(_) => check::<TaskPushNotificationConfig>(body, &[])?,
        Route::CancelTask(task) => {
            // Everything in it may be left out, and what stands in the path is.
            let mut body = if body.is_null() { json!({}) } else { body.clone() };
            body["id"] = json!(task.as_str());
            check::<CancelTaskRequest>(&body, &[])?;
        }
        Route::GetTask(task) => {
            let read =
                GetTaskRequest::from_query(task, query).map_err(|error| error.to_string())?;
            check_query(query, &read.to_query())?;
        }
        Route::ListTasks => {
            let read = ListTasksRequest::from_query(query).map_err(|error| error.to_string())?;
            check_query(query, &read.to_query())?;
        }
        Route::ListPushConfigs(task) => {
            let read = ListTaskPushNotificationConfigsRequest::from_query(task, query)
                .map_err(|error| error.to_string())?;
            check_query(query, &read.to_query())?;
        }
        _ => check_query(query, "")?,
    }
    Ok(route)
}

/// The order of a query means nothing, and moments are written with milliseconds.
fn check_query(before: &str, after: &str) -> Result<(), String> {
    let whole = |pair: &str| match pair.split_once('=') {
        Some(("statusTimestampAfter", moment)) => {
            moment.trim_end_matches('Z').trim_end_matches(".000").to_owned()
        }
        Some(_) | None => pair.to_owned(),
    };
    let sorted = |query: &str| {
        let mut pairs: Vec<String> = query.split('&').map(whole).collect();
        pairs.sort_unstable();
        pairs
    };
    if sorted(before) == sorted(after) { Ok(()) } else { Err(format!("{before} became {after}")) }
}

fn method_of(route: &Route) -> &'static str {
    match route {
        Route::SendMessage => METHOD_SEND_MESSAGE,
        Route::SendStreamingMessage => METHOD_SEND_STREAMING_MESSAGE,
        Route::GetTask(_) => METHOD_GET_TASK,
        Route::ListTasks => METHOD_LIST_TASKS,
        Route::CancelTask(_) => METHOD_CANCEL_TASK,
        Route::SubscribeToTask(_) => METHOD_SUBSCRIBE_TO_TASK,
        Route::CreatePushConfig(_) => METHOD_CREATE_PUSH_CONFIG,
        Route::GetPushConfig(..) => METHOD_GET_PUSH_CONFIG,
        Route::ListPushConfigs(_) => METHOD_LIST_PUSH_CONFIGS,
        Route::DeletePushConfig(..) => METHOD_DELETE_PUSH_CONFIG,
        Route::GetExtendedCard => METHOD_GET_EXTENDED_CARD,
        other => panic!("no method for {other:?}"),
    }
}
