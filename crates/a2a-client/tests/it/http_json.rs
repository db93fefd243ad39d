//! Calls over HTTP+JSON.

use axum::{
    body::Body,
    http::StatusCode,
    response::{IntoResponse, Redirect, Response},
};
use futures::StreamExt as _;
use serde_json::{Value, json};
use volcanic_a2a_client::{
    AgentBinding, AgentEntry, AgentProtocol, ClientConfig, ClientError, EventStream,
};
use volcanic_a2a_types::{
    A2aErrorKind, AuthenticationInfo, ListTaskPushNotificationConfigsRequest, ListTasksRequest,
    Message, Part, SendMessageConfiguration, SendMessageRequest, SendMessageResponse,
    StreamResponse, TaskPushNotificationConfig, TaskState,
};

use crate::agent::{
    KEY, LIMIT, Running, Script, Seen, card, connect, connect_with, connected, event_stream, keyed,
    network, task,
};

mod streams;

fn interface(more: &Value) -> Value {
    let mut interface =
        json!({"url": "/rest", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"});
    for (name, value) in more.as_object().unwrap() {
        interface[name] = value.clone();
    }
    interface
}

/// An agent with one interface, which answers so.
fn over(interface: Value, answer: impl Fn(&Seen) -> Response + Send + Sync + 'static) -> Script {
    Script::new(answer).with_card(move |_| {
        let capabilities =
            json!({"streaming": true, "pushNotifications": true, "extendedAgentCard": true});
        card(&json!({"supportedInterfaces": [interface], "capabilities": capabilities}))
            .into_response()
    })
}

fn rest(answer: impl Fn(&Seen) -> Response + Send + Sync + 'static) -> Script {
    over(interface(&json!({})), answer)
}

/// JSON as agents send it over this binding.
fn json_of(status: u16, body: &Value) -> Response {
    let status = StatusCode::from_u16(status).unwrap();
    (status, [("content-type", "application/a2a+json; charset=utf-8")], body.to_string())
        .into_response()
}

fn refusal(status: u16, reason: &str) -> Response {
    let detail = json!({"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason, "domain": "a2a-protocol.org"});
    json_of(
        status,
        &json!({"error": {"code": status, "status": "X", "message": "no\n", "details": [detail]}}),
    )
}

fn message() -> Message {
    Message::user("m1", vec![Part::text("hi")])
}

fn told(script: &Script) -> Vec<String> {
    script.calls().iter().map(Seen::told).collect()
}

async fn all(events: EventStream) -> Vec<Result<StreamResponse, ClientError>> {
    tokio::time::timeout(LIMIT, events.collect()).await.unwrap()
}

/// What reading a task makes of an answer.
async fn got(answer: impl Fn(&Seen) -> Response + Send + Sync + 'static) -> ClientError {
    let (_running, agent) = connected(&rest(answer)).await;
    agent.get_task(&"t1".into(), None).await.unwrap_err()
}

#[tokio::test]
async fn message_goes_out_and_a_task_comes_back() {
    let script = rest(|_| json_of(200, &json!({"task": task("t1", "WORKING")})));
    let running = Running::start(&script).await;
    let agent = connect(&keyed(running.entry())).await.unwrap();
    let before = script.calls().len();
    let mut request = SendMessageRequest::new(message());
    request.configuration = Some(SendMessageConfiguration::immediate());
    let SendMessageResponse::Task(task) = agent.send_message(request).await.unwrap() else {
        panic!("no task")
    };
    assert_eq!(task.status.state, TaskState::Working);
    let call = &script.calls()[before];
    assert_eq!((call.verb.as_str(), call.path.as_str()), ("POST", "/rest/message:send"));
    assert_eq!(
        call.body,
        json!({"message": {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "hi"}]},
               "configuration": {"returnImmediately": true}})
    );
    for (name, value) in [
        ("a2a-version", "1.0"),
        ("content-type", "application/a2a+json"),
        ("accept", "application/a2a+json, application/json"),
        ("x-api-key", KEY),
    ] {
        assert_eq!(call.header(name), Some(value), "{name}");
    }
    assert_eq!((agent.binding(), agent.protocol()), (AgentBinding::HttpJson, AgentProtocol::V1));
}

fn answer_all(seen: &Seen) -> Response {
    let webhook = json!({"id": "p1", "taskId": "t/1", "url": "https://x/"});
    match (seen.verb.as_str(), seen.path.trim_start_matches("/rest")) {
        ("GET", "/tasks") => {
            json_of(200, &json!({"tasks": [], "nextPageToken": "", "pageSize": 50, "totalSize": 0}))
        }
        ("POST", "/tasks/t%2F1/pushNotificationConfigs") => json_of(201, &webhook),
        ("GET", "/tasks/t%2F1/pushNotificationConfigs/p1") => json_of(200, &webhook),
        ("GET", "/tasks/t%2F1/pushNotificationConfigs") => {
            json_of(200, &json!({"configs": [webhook]}))
        }
        ("DELETE", _) => StatusCode::NO_CONTENT.into_response(),
        ("GET", "/extendedAgentCard") => json_of(200, &card(&json!({"name": "Extended"})).0),
        _ => json_of(200, &task("t/1", "CANCELED")),
    }
}

#[tokio::test]
async fn every_call_has_its_verb_path_and_query() {
    let script = rest(answer_all);
    let (_running, agent) = connected(&script).await;
    let task_id = "t/1".into();
    agent.get_task(&task_id, None).await.unwrap();
    agent.get_task(&task_id, Some(0)).await.unwrap();
    agent.cancel_task(&task_id).await.unwrap();
    agent.list_tasks(ListTasksRequest::default()).await.unwrap();
    let mut listing = ListTasksRequest::default();
    listing.context_id = Some("c 1".into());
    listing.include_artifacts = Some(true);
    agent.list_tasks(listing).await.unwrap();
    let mut config = TaskPushNotificationConfig::new("https://x/").with_task(task_id.clone());
    config.authentication = Some(AuthenticationInfo::bearer("c"));
    assert_eq!(agent.create_push_config(config).await.unwrap().id, Some("p1".into()));
    agent.get_push_config(&task_id, &"p1".into()).await.unwrap();
    let mut request = ListTaskPushNotificationConfigsRequest::new(task_id.clone());
    request.page_size = 5;
    assert_eq!(agent.list_push_configs(request).await.unwrap().configs.len(), 1);
    agent.delete_push_config(&task_id, &"p1".into()).await.unwrap();
    assert_eq!(agent.extended_card().await.unwrap().name, "Extended");
    assert_eq!(
        told(&script),
        [
            "GET /rest/tasks/t%2F1",
            "GET /rest/tasks/t%2F1?historyLength=0",
            r#"POST /rest/tasks/t%2F1:cancel {"id":"t/1"}"#,
            "GET /rest/tasks",
            "GET /rest/tasks?contextId=c%201&includeArtifacts=true",
            r#"POST /rest/tasks/t%2F1/pushNotificationConfigs {"authentication":{"credentials":"c","scheme":"Bearer"},"taskId":"t/1","url":"https://x/"}"#,
            "GET /rest/tasks/t%2F1/pushNotificationConfigs/p1",
            "GET /rest/tasks/t%2F1/pushNotificationConfigs?pageSize=5",
            "DELETE /rest/tasks/t%2F1/pushNotificationConfigs/p1",
            "GET /rest/extendedAgentCard",
        ]
    );
    for call in script.calls() {
        assert_eq!(call.header("a2a-version"), Some("1.0"));
        let has_body = !call.body.is_null();
        assert_eq!(call.header("content-type").is_some(), has_body, "{}", call.told());
    }
}

#[tokio::test]
async fn tenant_stands_in_the_path_and_in_bodies_but_in_no_query() {
    let more = json!({"tenant": "acme/1", "url": "/rest/?via=gate"});
    let script = over(interface(&more), |_| json_of(200, &task("t1", "WORKING")));
    let (_running, agent) = connected(&script).await;
    agent.get_task(&"t1".into(), Some(2)).await.unwrap();
    agent.cancel_task(&"t1".into()).await.unwrap();
    assert_eq!(
        told(&script),
        [
            "GET /rest/acme%2F1/tasks/t1?via=gate&historyLength=2",
            r#"POST /rest/acme%2F1/tasks/t1:cancel?via=gate {"id":"t1","tenant":"acme/1"}"#,
        ],
        "the interface's own query stays"
    );
}

#[tokio::test]
async fn deleting_takes_every_kind_of_yes() {
    for answer in [(204, ""), (200, "{}"), (200, ""), (200, "null")] {
        let script =
            rest(move |_| (StatusCode::from_u16(answer.0).unwrap(), answer.1).into_response());
        let (_running, agent) = connected(&script).await;
        agent.delete_push_config(&"t1".into(), &"p1".into()).await.unwrap();
    }
}

#[tokio::test]
async fn errors_of_the_protocol_are_the_same_as_over_json_rpc() {
    let error = got(|_| refusal(404, "TASK_NOT_FOUND")).await;
    assert_eq!(error.to_string(), "Agent \"travel-bot\" refused: no\\u{a} (-32001)");
    assert_eq!(error.rpc_kind(), Some(A2aErrorKind::TaskNotFound));
    assert!(!error.may_have_arrived() && !error.is_transient());
    // Some agents choose other statuses; the reason wins.
    let error = got(|_| refusal(409, "TASK_NOT_CANCELABLE")).await;
    assert_eq!(error.rpc_kind(), Some(A2aErrorKind::TaskNotCancelable));
    let error = got(|_| refusal(415, "CONTENT_TYPE_NOT_SUPPORTED")).await;
    assert_eq!(error.rpc_kind(), Some(A2aErrorKind::ContentTypeNotSupported));
    let error = got(|_| {
        json_of(
            500,
            &json!({"error": {"code": 500, "status": "INTERNAL", "message": "unknown exception"}}),
        )
    })
    .await;
    assert_eq!((error.rpc_kind(), error.is_transient()), (Some(A2aErrorKind::Internal), true));
}

#[tokio::test]
async fn old_problem_documents_are_read() {
    let error = got(|_| {
        json_of(404, &json!({"type": "https://a2a-protocol.org/errors/task-not-found", "title": "Task Not Found", "detail": "no t1"}))
    })
    .await;
    assert_eq!(error.rpc_kind(), Some(A2aErrorKind::TaskNotFound));
    assert!(error.to_string().contains("no t1"), "{error}");
}

#[tokio::test]
async fn gateways_and_frameworks_say_nothing_about_a_task() {
    for body in
        ["Not Found", "", r#"{"detail":"Not Found"}"#, r#"{"message":"Not Found"}"#, "<html>"]
    {
        let error = got(move |_| (StatusCode::NOT_FOUND, body).into_response()).await;
        assert!(matches!(error, ClientError::Http { status: 404, .. }), "{body}: {error:?}");
        assert_eq!(error.rpc_kind(), None);
    }
    let error = got(|_| {
        let body = json!({"error": {"code": 503, "status": "UNAVAILABLE", "message": "later"}});
        let mut response = json_of(503, &body);
        response.headers_mut().insert("retry-after", "30".parse().unwrap());
        response
    })
    .await;
    assert_eq!(error.retry_after(), Some(std::time::Duration::from_secs(30)));
    assert!(error.is_transient(), "{error:?}");
    let error = got(|_| json_of(504, &json!({"message": "Endpoint request timed out"}))).await;
    assert!(error.may_have_arrived(), "the agent behind it may have acted");
}

#[tokio::test]
async fn rejected_key_is_readable() {
    let script = rest(|_| refusal(401, "UNAUTHENTICATED"));
    let running = Running::start(&script).await;
    let agent = connect(&keyed(running.entry())).await.unwrap();
    for error in [
        agent.get_task(&"t1".into(), None).await.unwrap_err(),
        agent.subscribe(&"t1".into()).await.unwrap_err(),
    ] {
        assert!(
            error.to_string().starts_with("Agent \"travel-bot\" rejected the key (401). "),
            "{error}"
        );
    }
}

#[tokio::test]
async fn answers_to_something_else_are_refused() {
    for (answer, reason) in [
        (json!({"id": "t2", "status": {}}), "it is about another task"),
        (json!({"id": "t1"}), "`status`: required but missing"),
        (
            json!({"id": "t2", "status": {"state": "TASK_STATE_COMPLETED", "message": 5}}),
            "`status.message`",
        ),
        (json!("x"), "invalid type"),
    ] {
        let error = got(move |_| json_of(200, &answer)).await;
        let text = format!("Agent \"travel-bot\" gave an answer that cannot be used: {reason}");
        assert!(error.to_string().starts_with(&text), "{error}");
    }
    let script = rest(|seen| match seen.path.as_str() {
        "/rest/tasks" => json_of(200, &json!({"tasks": [task("t1", "WORKING")]})),
        _ if seen.verb == "POST" => json_of(200, &json!({"taskId": "t2", "url": "u"})),
        "/rest/tasks/t1/pushNotificationConfigs" => {
            json_of(200, &json!({"configs": [{"taskId": "t2", "url": "u"}]}))
        }
        _ => json_of(200, &json!({"taskId": "t1", "id": "p2", "url": "u"})),
    });
    let (_running, agent) = connected(&script).await;
    let mut listing = ListTasksRequest::default();
    listing.context_id = Some("c2".into());
    let config = TaskPushNotificationConfig::new("u").with_task("t1");
    let listed = ListTaskPushNotificationConfigsRequest::new("t1");
    for (error, reason) in [
        (agent.list_tasks(listing).await.unwrap_err(), "another context"),
        (agent.create_push_config(config).await.unwrap_err(), "another task"),
        (agent.list_push_configs(listed).await.unwrap_err(), "another task"),
        (agent.get_push_config(&"t1".into(), &"p1".into()).await.unwrap_err(), "another webhook"),
    ] {
        assert!(error.to_string().contains(reason), "{error}");
    }
}

#[tokio::test]
async fn key_that_is_repeated_is_masked() {
    let script = rest(|seen| {
        let key = seen.header("x-api-key").unwrap();
        if seen.verb == "GET" {
            json_of(
                400,
                &json!({"error": {"code": 400, "message": format!("key {key}"), "details": [key]}}),
            )
        } else {
            let body = json!({"error": {"code": 500, "message": key}});
            event_stream(Body::from(format!("event: error\ndata: {body}\n\n")))
        }
    });
    let running = Running::start(&script).await;
    let agent = connect(&keyed(running.entry())).await.unwrap();
    let error = agent.get_task(&"t1".into(), None).await.unwrap_err();
    assert_eq!(error.to_string(), "Agent \"travel-bot\" refused: key *** (-32600)");
    let events = all(agent.subscribe(&"t1".into()).await.unwrap()).await;
    let shown = format!("{error:?} {events:?}");
    assert!(shown.contains("***") && !shown.contains(KEY), "{shown}");
}

#[tokio::test]
async fn task_that_cannot_be_read_still_says_where_it_stands() {
    let error = got(|_| {
        json_of(
            200,
            &json!({"id": "t1", "status": {"state": "TASK_STATE_COMPLETED", "message": 5}}),
        )
    })
    .await;
    assert_eq!(error.unreadable_task().unwrap().0, &TaskState::Completed);
}

#[tokio::test]
async fn answer_that_cannot_be_read_still_says_which_task_the_message_began() {
    let broken =
        json!({"task": {"id": "t1", "status": {"state": "TASK_STATE_COMPLETED", "message": 5}}});
    let script = rest(move |_| json_of(200, &broken));
    let (_running, agent) = connected(&script).await;
    let message = Message::user("m1", vec![Part::text("hi")]);
    let error = agent.send_message(SendMessageRequest::new(message)).await.unwrap_err();
    let begun = error.begun_task().unwrap();
    assert_eq!(
        (begun.id.as_str(), begun.context_id.as_ref(), begun.state()),
        ("t1", None, &TaskState::Completed)
    );
}

#[tokio::test]
async fn redirect_takes_the_key_nowhere() {
    let elsewhere = rest(|_| json_of(200, &task("t1", "WORKING")));
    let target = Running::start(&elsewhere).await;
    let address = target.address;
    let script = rest(move |seen| {
        Redirect::temporary(&format!("http://{address}{}", seen.path)).into_response()
    });
    let running = Running::start(&script).await;
    let agent = connect(&keyed(running.entry())).await.unwrap();
    for error in [
        agent.get_task(&"t1".into(), None).await.unwrap_err(),
        agent.subscribe(&"t1".into()).await.unwrap_err(),
        agent.delete_push_config(&"t1".into(), &"p1".into()).await.unwrap_err(),
    ] {
        assert!(error.to_string().ends_with("a redirect, which is not followed."), "{error}");
    }
    assert!(elsewhere.seen().is_empty());
}

#[tokio::test]
async fn tenant_of_a_hostile_card_leads_to_no_other_path() {
    for (tenant, path) in
        [("..", "/rest/%2E%2E/tasks/t1"), ("../../x?y#z", "/rest/..%2F..%2Fx%3Fy%23z/tasks/t1")]
    {
        let script =
            over(interface(&json!({"tenant": tenant})), |_| json_of(200, &task("t1", "WORKING")));
        let (_running, agent) = connected(&script).await;
        agent.get_task(&"t1".into(), None).await.unwrap();
        assert_eq!(told(&script), [format!("GET {path}")]);
    }
}

#[tokio::test]
async fn answers_are_limited_whatever_their_status() {
    let config = ClientConfig { answer_limit: 1000, ..ClientConfig::default() };
    for (status, told) in [
        (200, "The answer of agent \"travel-bot\" is larger than 1000 bytes."),
        // A failure is told by its status, whatever comes with it.
        (400, "Agent \"travel-bot\" answered with HTTP 400."),
    ] {
        let script = rest(move |_| json_of(status, &json!({"x": "y".repeat(2000)})));
        let running = Running::start(&script).await;
        let agent = connect_with(&running.entry(), network(), &config).await.unwrap();
        let error = agent.get_task(&"t1".into(), None).await.unwrap_err();
        assert_eq!(error.to_string(), told);
        assert_eq!(error.too_large(), (status == 200).then_some(1000));
    }
}

#[tokio::test]
async fn entry_chooses_the_binding() {
    let rpc = json!({"url": "/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"});
    let both = json!({"supportedInterfaces": [rpc, interface(&json!({}))]});
    let script = Script::new(|_| json_of(200, &task("t1", "WORKING")))
        .with_card(move |_| card(&both).into_response());
    let running = Running::start(&script).await;
    let entry = AgentEntry { binding: Some(AgentBinding::HttpJson), ..running.entry() };
    connect(&entry).await.unwrap().get_task(&"t1".into(), None).await.unwrap();
    assert_eq!(told(&script), ["GET /rest/tasks/t1"]);
}
