//! Calls and their answers.

use axum::{
    http::StatusCode,
    response::{IntoResponse as _, Response},
};
use serde_json::{Value, json};
use volcanic_a2a_client::{ClientError, RemoteAgent};
use volcanic_a2a_types::{
    A2aErrorKind, ListTaskPushNotificationConfigsRequest, ListTasksRequest, Message, Part,
    SendMessageConfiguration, SendMessageRequest, SendMessageResponse, TaskPushNotificationConfig,
    TaskState,
};

use crate::agent::{Script, Seen, card, connected, error, result, task};

fn message() -> Message {
    Message::user("m1", vec![Part::text("hi")])
}

async fn get(agent: &RemoteAgent) -> Result<volcanic_a2a_types::Task, ClientError> {
    agent.get_task(&"t1".into(), None).await
}

/// What `get_task` makes of an answer.
async fn got(answer: impl Fn(&Seen) -> Response + Send + Sync + 'static) -> ClientError {
    let (_running, agent) = connected(&Script::new(answer)).await;
    get(&agent).await.unwrap_err()
}

#[tokio::test]
async fn message_goes_out_as_json_rpc_and_a_task_comes_back() {
    let script = Script::new(|seen| result(seen, &json!({"task": task("t1", "WORKING")})));
    let (_running, agent) = connected(&script).await;
    let mut request = SendMessageRequest::new(message());
    request.configuration = Some(SendMessageConfiguration::immediate());
    let SendMessageResponse::Task(task) = agent.send_message(request).await.unwrap() else {
        panic!("no task")
    };
    assert_eq!(task.status.state, TaskState::Working);
    let call = &script.calls()[0];
    assert_eq!(
        call.body,
        json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {
            "message": {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "hi"}]},
            "configuration": {"returnImmediately": true}}})
    );
    assert_eq!(call.header("a2a-version"), Some("1.0"));
    assert_eq!(call.header("content-type"), Some("application/json"));
    assert_eq!(call.header("accept"), Some("application/json"));
}

#[tokio::test]
async fn reply_without_a_task_comes_back() {
    let reply = json!({"message": {"messageId": "r", "contextId": "c1", "role": "ROLE_AGENT", "parts": [{"text": "yo"}]}});
    let script = Script::new(move |seen| result(seen, &reply));
    let (_running, agent) = connected(&script).await;
    let answer = agent.send_message(SendMessageRequest::new(message())).await.unwrap();
    assert!(matches!(answer, SendMessageResponse::Message(_)), "{answer:?}");
}

#[tokio::test]
async fn every_call_has_its_method_and_parameters() {
    let script = Script::new(|seen| match seen.body["method"].as_str().unwrap() {
        "ListTasks" => {
            result(seen, &json!({"tasks": [], "nextPageToken": "", "pageSize": 50, "totalSize": 0}))
        }
        "ListTaskPushNotificationConfigs" => result(seen, &json!({})),
        "CreateTaskPushNotificationConfig" | "GetTaskPushNotificationConfig" => {
            result(seen, &json!({"id": "p1", "taskId": "t1", "url": "https://x/"}))
        }
        "DeleteTaskPushNotificationConfig" => result(seen, &Value::Null),
        _ => result(seen, &task("t1", "CANCELED")),
    });
    let (_running, agent) = connected(&script).await;
    agent.get_task(&"t1".into(), Some(0)).await.unwrap();
    agent.cancel_task(&"t1".into()).await.unwrap();
    agent.list_tasks(ListTasksRequest::default()).await.unwrap();
    let config = TaskPushNotificationConfig::new("https://x/").with_task("t1");
    agent.create_push_config(config).await.unwrap();
    agent.get_push_config(&"t1".into(), &"p1".into()).await.unwrap();
    let listed = ListTaskPushNotificationConfigsRequest::new("t1");
    assert_eq!(agent.list_push_configs(listed).await.unwrap().configs, []);
    agent.delete_push_config(&"t1".into(), &"p1".into()).await.unwrap();
    let sent: Vec<_> = script
        .calls()
        .iter()
        .map(|seen| format!("{} {} {}", seen.body["id"], seen.body["method"], seen.body["params"]))
        .collect();
    assert_eq!(
        sent,
        [
            r#"1 "GetTask" {"historyLength":0,"id":"t1"}"#,
            r#"2 "CancelTask" {"id":"t1"}"#,
            r#"3 "ListTasks" {}"#,
            r#"4 "CreateTaskPushNotificationConfig" {"taskId":"t1","url":"https://x/"}"#,
            r#"5 "GetTaskPushNotificationConfig" {"id":"p1","taskId":"t1"}"#,
            r#"6 "ListTaskPushNotificationConfigs" {"taskId":"t1"}"#,
            r#"7 "DeleteTaskPushNotificationConfig" {"id":"p1","taskId":"t1"}"#,
        ]
    );
}

#[tokio::test]
async fn tenant_of_the_interface_goes_along() {
    let script = Script::new(|seen| result(seen, &task("t1", "WORKING"))).with_card(|_| {
        card(&json!({"supportedInterfaces": [
            {"url": "/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0", "tenant": "acme"}]}))
        .into_response()
    });
    let (_running, agent) = connected(&script).await;
    get(&agent).await.unwrap();
    assert_eq!(script.calls()[0].body["params"]["tenant"], "acme");
}

#[tokio::test]
async fn errors_of_the_protocol_are_readable_and_have_a_kind() {
    let error =
        got(|seen| error(seen, &json!({"code": -32001, "message": "Task not\nfound \u{202e}"})))
            .await;
    assert_eq!(
        error.to_string(),
        "Agent \"travel-bot\" refused: Task not\\u{a}found \\u{202e} (-32001)"
    );
    assert_eq!(error.rpc_kind(), Some(A2aErrorKind::TaskNotFound));
    assert!(!error.may_have_arrived() && !error.is_transient());
}

#[tokio::test]
async fn reason_in_the_details_wins_over_the_code() {
    let details = json!({"code": -32603, "message": "x", "data": [
        {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "TASK_NOT_FOUND", "domain": "a2a-protocol.org"}]});
    let error = got(move |seen| error(seen, &details)).await;
    assert_eq!(error.rpc_kind(), Some(A2aErrorKind::TaskNotFound));
}

#[tokio::test]
async fn error_of_the_protocol_counts_under_any_status() {
    let error = got(|seen| {
        let body = error(seen, &json!({"code": -32004, "message": "busy"}));
        (StatusCode::BAD_REQUEST, [("retry-after", "7")], body).into_response()
    })
    .await;
    assert_eq!(error.rpc_kind(), Some(A2aErrorKind::UnsupportedOperation));
    assert_eq!(error.retry_after(), Some(std::time::Duration::from_secs(7)));
}

#[tokio::test]
async fn busy_gateway_is_transient_and_says_when() {
    let error = got(|_| {
        (StatusCode::SERVICE_UNAVAILABLE, [("retry-after", "30")], "later").into_response()
    })
    .await;
    assert_eq!(error.to_string(), "Agent \"travel-bot\" answered with HTTP 503.");
    assert_eq!(error.retry_after(), Some(std::time::Duration::from_secs(30)));
    assert_eq!((error.is_transient(), error.rpc_kind()), (true, None));
}

#[tokio::test]
async fn missing_page_is_not_a_missing_task() {
    let error = got(|_| StatusCode::NOT_FOUND.into_response()).await;
    assert_eq!(error.rpc_kind(), None);
}

#[tokio::test]
async fn answers_to_something_else_are_refused() {
    for (answer, reason) in [
        (
            json!({"jsonrpc": "2.0", "id": 99, "result": task("t1", "WORKING")}),
            "it belongs to another request",
        ),
        (
            json!({"jsonrpc": "2.0", "id": "1", "result": task("t1", "WORKING")}),
            "it belongs to another request",
        ),
        (
            json!({"jsonrpc": "2.0", "result": task("t1", "WORKING")}),
            "it belongs to another request",
        ),
        (
            json!({"jsonrpc": "2.0", "id": 1, "result": task("t2", "WORKING")}),
            "it is about another task",
        ),
        (
            json!({"jsonrpc": "2.0", "id": 1, "result": {"id": "t1"}}),
            "`status`: required but missing",
        ),
        (json!({"id": 1, "result": {}}), "the response has a wrong member `jsonrpc`"),
        (json!("hello"), "it is not JSON-RPC"),
    ] {
        let error = got(move |_| axum::Json(answer.clone()).into_response()).await;
        let text = format!("Agent \"travel-bot\" gave an answer that cannot be used: {reason}");
        assert!(error.to_string().starts_with(&text), "{error}");
        assert!(error.may_have_arrived());
    }
}

#[tokio::test]
async fn error_without_an_id_is_ours() {
    let error = got(|_| {
        axum::Json(
            json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32700, "message": "bad"}}),
        )
        .into_response()
    })
    .await;
    assert_eq!(error.rpc_kind(), Some(A2aErrorKind::ParseError));
}

#[tokio::test]
async fn continued_task_must_stay_the_same_and_in_its_context() {
    for (asked, reason) in [
        (message().with_task("t2").with_context("c1"), "it is about another task"),
        (message().with_context("c2"), "it is about another context"),
    ] {
        let script = Script::new(|seen| result(seen, &json!({"task": task("t1", "WORKING")})));
        let (_running, agent) = connected(&script).await;
        let error = agent.send_message(SendMessageRequest::new(asked)).await.unwrap_err();
        assert!(error.to_string().ends_with(&format!("{reason}.")), "{error}");
    }
    let script = Script::new(|seen| result(seen, &json!({"task": task("t1", "WORKING")})));
    let (_running, agent) = connected(&script).await;
    let same = message().with_task("t1").with_context("c1");
    agent.send_message(SendMessageRequest::new(same)).await.unwrap();
}

#[tokio::test]
async fn task_that_cannot_be_read_still_says_where_it_stands() {
    let broken = json!({"id": "t1", "artifacts": [], "status": {
        "state": "TASK_STATE_COMPLETED", "message": 5}});
    let error = got(move |seen| result(seen, &broken)).await;
    let (state, reason) = error.unreadable_task().unwrap();
    assert_eq!(*state, TaskState::Completed);
    assert!(reason.contains("status.message"), "{reason}");
    assert!(
        error.to_string().starts_with(
            "Agent \"travel-bot\" says that the task is completed, but the rest of its answer cannot be used: "
        ),
        "{error}"
    );
    let other = json!({"id": "t2", "status": {"state": "TASK_STATE_COMPLETED", "message": 5}});
    let error = got(move |seen| result(seen, &other)).await;
    assert!(matches!(error, ClientError::Unexpected { .. }), "{error:?}");
}

#[tokio::test]
async fn answer_that_cannot_be_read_still_says_which_task_the_message_began() {
    let sent = async |answer: Value, asked: Message| {
        let script = Script::new(move |seen| result(seen, &answer));
        let (_running, agent) = connected(&script).await;
        agent.send_message(SendMessageRequest::new(asked)).await.unwrap_err()
    };
    let broken = json!({"task": {"id": "t1", "contextId": "c1", "artifacts": 5, "status": {
        "state": "TASK_STATE_WORKING", "message": 5}}});
    let error = sent(broken.clone(), message()).await;
    let begun = error.begun_task().unwrap();
    assert_eq!(
        (begun.id.as_str(), begun.context_id.as_ref().unwrap().as_str(), begun.state()),
        ("t1", "c1", &TaskState::Working)
    );
    assert!(error.may_have_arrived());
    assert!(
        error.to_string().starts_with(
            "Agent \"travel-bot\" took the message as task t1, which is working, but the rest of its answer cannot be used: "
        ),
        "{error}"
    );
    for asked in [message().with_task("t2"), message().with_context("c2")] {
        let error = sent(broken.clone(), asked).await;
        assert!(matches!(error, ClientError::Unexpected { .. }), "{error:?}");
    }
    for answer in [
        json!({"task": {"id": "t1", "status": {"state": {}}}}),
        json!({"task": {"id": 7, "status": {"state": "TASK_STATE_WORKING"}}}),
        json!({"message": {"messageId": 5, "id": "t1", "status": {"state": "TASK_STATE_WORKING"}}}),
        json!({"id": "t1", "status": {"state": "TASK_STATE_WORKING"}}),
    ] {
        let error = sent(answer.clone(), message()).await;
        assert!(matches!(error, ClientError::Unexpected { .. }), "{answer}: {error:?}");
    }
}

#[tokio::test]
async fn deep_json_is_refused() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let error = got(move |_| {
        format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"id":"t1","x":{deep}}}}}"#).into_response()
    })
    .await;
    assert!(matches!(error, ClientError::Unexpected { .. }), "{error:?}");
}
