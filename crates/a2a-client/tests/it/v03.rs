//! Calls in the JSON-RPC dialect of 0.3.

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use futures::StreamExt as _;
use serde_json::{Value, json};
use volcanic_a2a_client::{AgentBinding, AgentEntry, AgentProtocol, ClientError, EventStream};
use volcanic_a2a_types::{
    A2aErrorKind, AuthenticationInfo, ListTaskPushNotificationConfigsRequest, ListTasksRequest,
    Message, Part, SendMessageConfiguration, SendMessageRequest, SendMessageResponse,
    StreamResponse, TaskPushNotificationConfig, TaskState,
};

use crate::agent::{
    KEY, LIMIT, Running, Script, Seen, card, connect, connected, error, event, event_stream, keyed,
    result,
};

/// A card of 0.3 with `more` members over it.
fn old_card(more: &Value) -> axum::Json<Value> {
    let mut card = json!({
        "name": "Old agent", "description": "For tests", "version": "1",
        "url": "/a2a", "protocolVersion": "0.3.0", "preferredTransport": "JSONRPC",
        "capabilities": {"streaming": true, "pushNotifications": true},
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"], "skills": []
    });
    for (name, value) in more.as_object().unwrap() {
        card[name] = value.clone();
    }
    axum::Json(card)
}

fn old(answer: impl Fn(&Seen) -> Response + Send + Sync + 'static) -> Script {
    Script::new(answer).with_card(|_| old_card(&json!({})).into_response())
}

fn old_task(id: &str, state: &str) -> Value {
    json!({"kind": "task", "id": id, "contextId": "c1", "status": {"state": state, "timestamp": "2026-11-30T12:32:23.730326+00:00"}})
}

fn update(task: &str, state: &str, is_final: bool) -> Value {
    json!({"kind": "status-update", "taskId": task, "contextId": "c1", "status": {"state": state}, "final": is_final})
}

fn message() -> Message {
    Message::user("m1", vec![Part::text("hi"), Part::raw(&b"hi"[..], "text/plain", "a.txt")])
}

/// Method and parameters of every call.
fn told(script: &Script) -> Vec<(String, Value)> {
    let told = |seen: Seen| {
        (seen.body["method"].as_str().unwrap().to_owned(), seen.body["params"].clone())
    };
    script.calls().into_iter().map(told).collect()
}

async fn states(events: EventStream) -> Vec<String> {
    let told = |event: Result<StreamResponse, ClientError>| match event {
        Ok(event) => event.status().map_or("-".to_owned(), |status| status.state.label()),
        Err(error) => error.to_string(),
    };
    tokio::time::timeout(LIMIT, events.map(told).collect()).await.unwrap()
}

#[tokio::test]
async fn message_goes_out_in_the_old_dialect_and_a_task_comes_back() {
    let script = old(|seen| result(seen, &old_task("t1", "input-required")));
    let running = Running::start(&script).await;
    let agent = connect(&keyed(running.entry())).await.unwrap();
    let mut request = SendMessageRequest::new(message());
    request.configuration = Some(SendMessageConfiguration::immediate());
    let SendMessageResponse::Task(task) = agent.send_message(request).await.unwrap() else {
        panic!("no task")
    };
    assert_eq!(task.status.state, TaskState::InputRequired);
    let call = &script.calls()[0];
    assert_eq!(
        call.body,
        json!({"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {
            "message": {"kind": "message", "messageId": "m1", "role": "user", "parts": [
                {"kind": "text", "text": "hi"},
                {"kind": "file", "file": {"bytes": "aGk=", "mimeType": "text/plain", "name": "a.txt"}}]},
            "configuration": {"blocking": false}}})
    );
    assert_eq!(call.header("a2a-version"), Some("0.3"));
    assert_eq!(call.header("x-api-key"), Some(KEY));
    assert_eq!((agent.binding(), agent.protocol()), (AgentBinding::JsonRpc, AgentProtocol::V03));
}

#[tokio::test]
async fn reply_without_a_task_comes_back_also_without_a_kind() {
    for kind in [json!("message"), Value::Null] {
        let script = old(move |seen| {
            result(
                seen,
                &json!({"kind": kind, "messageId": "r", "role": "agent", "parts": [{"kind": "text", "text": "yo"}]}),
            )
        });
        let (_running, agent) = connected(&script).await;
        let answer = agent.send_message(SendMessageRequest::new(message())).await.unwrap();
        assert_eq!(
            answer,
            SendMessageResponse::Message(Message::agent("r", vec![Part::text("yo")]))
        );
    }
}

#[tokio::test]
async fn every_call_has_its_old_method_and_parameters() {
    let nested = || {
        json!({"taskId": "t1", "pushNotificationConfig": {"id": "p1", "url": "https://x/",
            "authentication": {"schemes": ["Bearer"], "credentials": "c"}}})
    };
    let script = old(move |seen| match seen.body["method"].as_str().unwrap() {
        "tasks/pushNotificationConfig/list" => result(seen, &json!([nested()])),
        // Python's SDK drops a result of null.
        "tasks/pushNotificationConfig/delete" => {
            axum::Json(json!({"jsonrpc": "2.0", "id": seen.body["id"]})).into_response()
        }
        "agent/getAuthenticatedExtendedCard" => {
            result(seen, &old_card(&json!({"name": "Extended"})).0)
        }
        method if method.starts_with("tasks/pushNotificationConfig/") => result(seen, &nested()),
        _ => result(seen, &old_task("t1", "canceled")),
    });
    let (_running, agent) = connected(&script).await;
    agent.get_task(&"t1".into(), Some(0)).await.unwrap();
    let task = agent.cancel_task(&"t1".into()).await.unwrap();
    assert_eq!(task.status.state, TaskState::Canceled);
    let mut config = TaskPushNotificationConfig::new("https://x/").with_task("t1");
    config.id = Some("p1".into());
    config.authentication = Some(AuthenticationInfo::bearer("c"));
    assert_eq!(agent.create_push_config(config.clone()).await.unwrap(), config);
    assert_eq!(agent.get_push_config(&"t1".into(), &"p1".into()).await.unwrap(), config);
    let listed = ListTaskPushNotificationConfigsRequest::new("t1");
    assert_eq!(agent.list_push_configs(listed).await.unwrap().configs, [config]);
    agent.delete_push_config(&"t1".into(), &"p1".into()).await.unwrap();
    assert_eq!(agent.extended_card().await.unwrap().name, "Extended");
    let reference = json!({"id": "t1", "pushNotificationConfigId": "p1"});
    let expected = [
        ("tasks/get", json!({"id": "t1", "historyLength": 1})),
        ("tasks/cancel", json!({"id": "t1"})),
        ("tasks/pushNotificationConfig/set", nested()),
        ("tasks/pushNotificationConfig/get", reference.clone()),
        ("tasks/pushNotificationConfig/list", json!({"id": "t1"})),
        ("tasks/pushNotificationConfig/delete", reference),
        ("agent/getAuthenticatedExtendedCard", json!({})),
    ];
    assert_eq!(told(&script), expected.map(|(method, params)| (method.to_owned(), params)));
}

#[tokio::test]
async fn tasks_cannot_be_listed_and_nothing_is_sent() {
    let script = old(|seen| result(seen, &old_task("t1", "working")));
    let (_running, agent) = connected(&script).await;
    let error = agent.list_tasks(ListTasksRequest::default()).await.unwrap_err();
    assert_eq!(error.to_string(), "Agent \"travel-bot\" speaks A2A 0.3, which has no ListTasks.");
    assert_eq!(error.rpc_kind(), Some(A2aErrorKind::UnsupportedOperation));
    assert!(!error.may_have_arrived() && !error.is_transient());
    assert_eq!(script.calls().len(), 0);
}

#[tokio::test]
async fn message_is_followed_until_the_agent_says_final() {
    let script = old(|seen| {
        let chunk = json!({"kind": "artifact-update", "taskId": "t1", "contextId": "c1", "artifact":
            {"artifactId": "a", "parts": [{"kind": "text", "text": "x"}]}});
        let events = [
            old_task("t1", "submitted"),
            update("t1", "working", false),
            chunk,
            update("t1", "input-required", true),
        ];
        let events: String = events.iter().map(|told| event(seen, told)).collect();
        // The connection stays open after the last event.
        let body = futures::stream::once(async { Ok::<_, std::convert::Infallible>(events) });
        event_stream(Body::from_stream(body.chain(futures::stream::pending())))
    });
    let (_running, agent) = connected(&script).await;
    let request = SendMessageRequest::new(message());
    let events = agent.send_streaming_message(request).await.unwrap();
    assert_eq!(states(events).await, ["submitted", "working", "-", "input-required"]);
    let call = &script.calls()[0];
    assert_eq!(call.body["method"], "message/stream");
    assert_eq!(
        (call.header("accept"), call.header("a2a-version")),
        (Some("text/event-stream"), Some("0.3"))
    );
}

#[tokio::test]
async fn subscription_begins_with_a_read() {
    let script = old(|seen| match seen.body["method"].as_str().unwrap() {
        "tasks/get" => result(seen, &old_task("t1", "working")),
        _ => event_stream(Body::from(event(seen, &update("t1", "completed", true)))),
    });
    let (_running, agent) = connected(&script).await;
    let events = agent.subscribe(&"t1".into()).await.unwrap();
    assert_eq!(states(events).await, ["working", "completed"]);
    let reference = json!({"id": "t1"});
    assert_eq!(
        told(&script),
        [("tasks/get".to_owned(), reference.clone()), ("tasks/resubscribe".to_owned(), reference)]
    );
}

#[tokio::test]
async fn subscription_to_a_task_that_has_ended_is_the_task() {
    let script = old(|seen| result(seen, &old_task("t1", "completed")));
    let (_running, agent) = connected(&script).await;
    let events = agent.subscribe(&"t1".into()).await.unwrap();
    assert_eq!(states(events).await, ["completed"]);
    assert_eq!(script.calls().len(), 1);
}

#[tokio::test]
async fn task_that_ends_between_read_and_subscription_is_an_error_of_its_kind() {
    let script = old(|seen| {
        if seen.body["method"] == "tasks/get" {
            result(seen, &old_task("t1", "working"))
        } else {
            let refusal =
                json!({"code": -32602, "message": "Task t1 is in terminal state: completed"});
            let response = json!({"jsonrpc": "2.0", "id": seen.body["id"], "error": refusal});
            event_stream(Body::from(format!("data: {response}\r\n\r\n")))
        }
    });
    let (_running, agent) = connected(&script).await;
    let mut events = agent.subscribe(&"t1".into()).await.unwrap();
    events.next().await.unwrap().unwrap();
    let error = events.next().await.unwrap().unwrap_err();
    assert_eq!(error.rpc_kind(), Some(A2aErrorKind::UnsupportedOperation));
    assert!(events.next().await.is_none());
}

#[tokio::test]
async fn events_of_another_task_or_request_end_the_stream() {
    let script = old(|seen| match seen.body["method"].as_str().unwrap() {
        "tasks/get" => result(seen, &old_task("t1", "working")),
        _ => event_stream(Body::from(event(seen, &update("t2", "completed", true)))),
    });
    let (_running, agent) = connected(&script).await;
    let told = states(agent.subscribe(&"t1".into()).await.unwrap()).await;
    assert!(told[1].ends_with("it is about another task."), "{told:?}");
}

#[tokio::test]
async fn errors_with_any_data_are_readable() {
    for data in [json!(null), json!("text"), json!([{"type": "missing"}]), json!({"a": 1})] {
        let script = old(move |seen| {
            error(seen, &json!({"code": -32001, "message": "Task not found", "data": data}))
        });
        let (_running, agent) = connected(&script).await;
        let error = agent.get_task(&"t1".into(), None).await.unwrap_err();
        assert_eq!(error.to_string(), "Agent \"travel-bot\" refused: Task not found (-32001)");
        assert_eq!(error.rpc_kind(), Some(A2aErrorKind::TaskNotFound));
    }
    // Python's SDK leaves the id out when it could not read the request.
    let script = old(|_| {
        axum::Json(json!({"jsonrpc": "2.0", "error": {"code": -32700, "message": "bad"}}))
            .into_response()
    });
    let (_running, agent) = connected(&script).await;
    let error = agent.get_task(&"t1".into(), None).await.unwrap_err();
    assert_eq!(error.rpc_kind(), Some(A2aErrorKind::ParseError));
}

#[tokio::test]
async fn task_that_cannot_be_read_still_says_where_it_stands() {
    let script = old(|seen| {
        let mut broken = old_task("t1", "input-required");
        broken["status"]["message"] = json!(5);
        result(seen, &broken)
    });
    let (_running, agent) = connected(&script).await;
    let error = agent.get_task(&"t1".into(), None).await.unwrap_err();
    assert_eq!(error.unreadable_task().unwrap().0, &TaskState::InputRequired);
}

#[tokio::test]
async fn answer_that_cannot_be_read_still_says_which_task_the_message_began() {
    let script = old(|seen| {
        let mut broken = old_task("t1", "working");
        broken["artifacts"] = json!({"odd": true});
        result(seen, &broken)
    });
    let (_running, agent) = connected(&script).await;
    let error = agent.send_message(SendMessageRequest::new(message())).await.unwrap_err();
    let begun = error.begun_task().unwrap();
    assert_eq!((begun.id.as_str(), begun.state()), ("t1", &TaskState::Working));
    assert_eq!(begun.context_id.as_ref().unwrap().as_str(), "c1");
}

#[tokio::test]
async fn answers_that_are_none_are_refused() {
    for answer in [json!({}), json!([]), json!("x"), json!({"kind": "new"}), json!({"task": 1})] {
        let script = old(move |seen| result(seen, &answer));
        let (_running, agent) = connected(&script).await;
        let error = agent.send_message(SendMessageRequest::new(message())).await.unwrap_err();
        assert!(matches!(error, ClientError::Unexpected { .. }), "{error:?}");
    }
}

#[tokio::test]
async fn new_interface_of_a_dual_card_is_preferred_and_the_entry_overrules_that() {
    let interface = |version: &str| json!({"url": "/a2a", "protocolBinding": "JSONRPC", "protocolVersion": version});
    let dual = old_card(&json!({"supportedInterfaces": [interface("0.3"), interface("1.0")]})).0;
    let script = Script::new(|seen| match seen.header("a2a-version").unwrap() {
        "0.3" => result(seen, &old_task("t1", "working")),
        _ => result(seen, &crate::agent::task("t1", "WORKING")),
    })
    .with_card(move |_| axum::Json(dual.clone()).into_response());
    let running = Running::start(&script).await;
    for (protocol, method) in [
        (None, "GetTask"),
        (Some(AgentProtocol::V1), "GetTask"),
        (Some(AgentProtocol::V03), "tasks/get"),
    ] {
        let entry = AgentEntry { protocol, ..running.entry() };
        let task = connect(&entry).await.unwrap().get_task(&"t1".into(), None).await.unwrap();
        assert_eq!(task.status.state, TaskState::Working);
        assert_eq!(told(&script).pop().unwrap().0, method);
    }
}

#[tokio::test]
async fn schemes_of_an_old_card_say_where_the_key_goes() {
    for (schemes, header, value) in [
        (
            json!({"k": {"type": "apiKey", "in": "header", "name": "X-Agent-Key"}}),
            "x-agent-key",
            KEY.to_owned(),
        ),
        (
            json!({"b": {"type": "http", "scheme": "bearer"}}),
            "authorization",
            format!("Bearer {KEY}"),
        ),
    ] {
        let script = old(|seen| result(seen, &old_task("t1", "working")))
            .with_card(move |_| old_card(&json!({"securitySchemes": schemes})).into_response());
        let running = Running::start(&script).await;
        let agent = connect(&keyed(running.entry())).await.unwrap();
        agent.get_task(&"t1".into(), None).await.unwrap();
        assert_eq!(script.calls()[0].header(header), Some(value.as_str()));
    }
}

#[tokio::test]
async fn extended_card_of_an_old_agent_is_used() {
    let offer = json!({"supportsAuthenticatedExtendedCard": true});
    let script = Script::new(|seen| match seen.body["method"].as_str().unwrap() {
        "agent/getAuthenticatedExtendedCard" => {
            result(seen, &old_card(&json!({"name": "Extended"})).0)
        }
        _ => result(seen, &old_task("t1", "working")),
    })
    .with_card(move |_| old_card(&offer).into_response());
    let running = Running::start(&script).await;
    let agent = connect(&keyed(running.entry())).await.unwrap();
    assert_eq!(agent.card().name, "Extended");
    agent.get_task(&"t1".into(), None).await.unwrap();
}

#[tokio::test]
async fn old_card_without_json_rpc_gets_a_reason() {
    let script = Script::new(|_| card(&json!({})).into_response())
        .with_card(|_| old_card(&json!({"preferredTransport": "GRPC"})).into_response());
    let running = Running::start(&script).await;
    let error = connect(&running.entry()).await.unwrap_err();
    assert!(
        error.to_string().ends_with(
            "it offers GRPC 0.3.0, and none of that is JSONRPC or HTTP+JSON 1.0, or JSONRPC 0.3."
        ),
        "{error}"
    );
}
