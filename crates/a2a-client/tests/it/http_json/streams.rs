//! Streams of HTTP+JSON.

use axum::{
    body::Body,
    http::StatusCode,
    response::{IntoResponse as _, Response},
};
use serde_json::{Value, json};
use volcanic_a2a_client::{ClientError, RemoteAgent};
use volcanic_a2a_types::{A2aErrorKind, SendMessageRequest, StreamResponse};

use super::{all, json_of, message, refusal, rest, told};
use crate::agent::{connected, event_stream, task};

fn event(result: &Value) -> String {
    format!("data: {result}\r\n\r\n")
}

fn update(task: &str, state: &str) -> Value {
    json!({"statusUpdate": {"taskId": task, "contextId": "c9", "status": {"state": format!("TASK_STATE_{state}")}}})
}

fn told_states(events: &[Result<StreamResponse, ClientError>]) -> Vec<String> {
    let told = |event: &Result<StreamResponse, ClientError>| match event {
        Ok(event) => event.status().map_or("-".to_owned(), |status| status.state.label()),
        Err(error) => error.to_string(),
    };
    events.iter().map(told).collect()
}

#[tokio::test]
async fn message_is_followed() {
    let script = rest(|_| {
        let events = [
            ": ping\r\n\r\n".to_owned(),
            event(&json!({"task": task("t1", "WORKING")})),
            event(&update("t1", "COMPLETED")),
        ];
        event_stream(Body::from(events.concat()))
    });
    let (_running, agent) = connected(&script).await;
    let request = SendMessageRequest::new(message());
    let events = all(agent.send_streaming_message(request).await.unwrap()).await;
    assert_eq!(told_states(&events), ["working", "completed"]);
    let call = &script.calls()[0];
    assert_eq!((call.verb.as_str(), call.path.as_str()), ("POST", "/rest/message:stream"));
    assert_eq!(call.header("accept"), Some("text/event-stream"));
    assert_eq!(call.body["message"]["messageId"], "m1");
}

#[tokio::test]
async fn stream_that_strays_ends() {
    let script = rest(|_| {
        let events =
            [update("t1", "WORKING"), update("t2", "COMPLETED"), update("t1", "COMPLETED")];
        event_stream(Body::from(events.iter().map(event).collect::<String>()))
    });
    let (_running, agent) = connected(&script).await;
    let request = SendMessageRequest::new(message());
    let events = all(agent.send_streaming_message(request).await.unwrap()).await;
    let other =
        "Agent \"travel-bot\" gave an answer that cannot be used: it is about another task.";
    assert_eq!(told_states(&events), ["working", other], "the first task named is the one");
    let request = SendMessageRequest::new(message().with_task("t3"));
    let events = all(agent.send_streaming_message(request).await.unwrap()).await;
    assert_eq!(told_states(&events), [other]);
}

async fn subscribed(agent: &RemoteAgent) -> Result<Vec<String>, ClientError> {
    let events = agent.subscribe(&"t1".into()).await?;
    Ok(told_states(&all(events).await))
}

#[tokio::test]
async fn subscription_is_posted_and_has_no_body() {
    let script = rest(|_| event_stream(Body::from(event(&json!({"task": task("t1", "WORKING")})))));
    let (_running, agent) = connected(&script).await;
    assert_eq!(subscribed(&agent).await.unwrap(), ["working"]);
    assert_eq!(told(&script), ["POST /rest/tasks/t1:subscribe"]);
    assert_eq!(script.calls()[0].header("content-type"), None);
}

#[tokio::test]
async fn agent_that_knows_only_get_is_asked_again() {
    let frameworks: [fn() -> Response; 3] = [
        || StatusCode::METHOD_NOT_ALLOWED.into_response(),
        || (StatusCode::NOT_FOUND, "Not Found").into_response(),
        || json_of(405, &json!({"error": {"code": 405, "message": "Method not allowed"}})),
    ];
    for refuse in frameworks {
        let script = rest(move |seen| match seen.verb.as_str() {
            "GET" => event_stream(Body::from(event(&update("t1", "COMPLETED")))),
            _ => refuse(),
        });
        let (_running, agent) = connected(&script).await;
        assert_eq!(subscribed(&agent).await.unwrap(), ["completed"]);
        assert_eq!(
            told(&script),
            ["POST /rest/tasks/t1:subscribe", "GET /rest/tasks/t1:subscribe"]
        );
    }
}

#[tokio::test]
async fn agent_that_refuses_the_task_itself_is_not_asked_again() {
    for (status, reason, kind) in [
        (404, "TASK_NOT_FOUND", A2aErrorKind::TaskNotFound),
        (400, "UNSUPPORTED_OPERATION", A2aErrorKind::UnsupportedOperation),
    ] {
        let script = rest(move |_| refusal(status, reason));
        let (_running, agent) = connected(&script).await;
        let error = subscribed(&agent).await.unwrap_err();
        assert_eq!((error.rpc_kind(), script.calls().len()), (Some(kind), 1));
    }
    let script = rest(|_| StatusCode::NOT_FOUND.into_response());
    let (_running, agent) = connected(&script).await;
    let error = subscribed(&agent).await.unwrap_err();
    assert!(matches!(error, ClientError::Http { status: 404, .. }), "{error:?}");
    assert_eq!(script.calls().len(), 2);
    // A message is never sent twice.
    let request = SendMessageRequest::new(message());
    agent.send_streaming_message(request).await.unwrap_err();
    assert_eq!(script.calls().len(), 3);
}

#[tokio::test]
async fn error_in_a_stream_ends_it() {
    let body = json!({"error": {"code": 500, "status": "INTERNAL", "message": "broke"}});
    for (end, text) in [
        (format!("event: error\ndata: {body}\n\n"), "Agent \"travel-bot\" refused: broke (-32603)"),
        (format!("data: {body}\n\n"), "Agent \"travel-bot\" refused: broke (-32603)"),
        (
            "event: error\ndata: oops\n\n".to_owned(),
            "Agent \"travel-bot\" gave an answer that cannot be used: it reports an error without saying which.",
        ),
    ] {
        let script = rest(move |_| {
            let after = event(&update("t1", "COMPLETED"));
            event_stream(Body::from(format!("{}{end}{after}", event(&update("t1", "WORKING")))))
        });
        let (_running, agent) = connected(&script).await;
        assert_eq!(subscribed(&agent).await.unwrap(), ["working", text]);
    }
}

#[tokio::test]
async fn event_over_many_lines_is_one() {
    let script = rest(|_| {
        let pretty = serde_json::to_string_pretty(&update("t1", "COMPLETED")).unwrap();
        let lines: String =
            pretty.split_inclusive('\n').flat_map(|line| ["data: ", line]).collect();
        event_stream(Body::from(lines))
    });
    let (_running, agent) = connected(&script).await;
    assert_eq!(subscribed(&agent).await.unwrap(), ["completed"]);
}
