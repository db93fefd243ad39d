//! What the codec takes and refuses.

use std::sync::Arc;

use http::StatusCode;
use serde_json::{Value, json};
use volcanic_a2a_server::{ServerConfig, StaticKeys};
use volcanic_base::Secret;

use crate::remote::{Remote, Setup, header, json_of, message, response_of, state_of};

const JSON: (&str, &str) = ("content-type", "application/json");

async fn raw(remote: &Remote, body: &str) -> Value {
    json_of(remote.post("/a2a", body.to_owned(), &[JSON]).await).await
}

#[tokio::test]
async fn message_is_answered_with_a_completed_task() {
    let remote = Setup::default().start().await;
    let task = remote.send("echo hello").await;
    assert_eq!(state_of(&task), "COMPLETED");
    assert_eq!(response_of(&task), "echo: hello");
    assert_eq!(task["history"].as_array().unwrap().len(), 1);
    assert_eq!(task["history"][0]["taskId"], task["id"]);
    assert_eq!(task["history"][0]["contextId"], task["contextId"]);
    assert!(task["status"]["timestamp"].as_str().unwrap().ends_with('Z'));
    let id = task["id"].as_str().unwrap();
    let without = remote.call("GetTask", json!({"id": id, "historyLength": 0})).await;
    assert_eq!(without.get("history"), None);
    assert_eq!(response_of(&without), "echo: hello");
}

#[tokio::test]
async fn request_as_curl_sends_it_needs_no_version() {
    let remote = Setup::default().start().await;
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":
        {"message":{"role":"ROLE_USER","messageId":"m1","parts":[{"text":"hi"}]}}}"#;
    let answer = raw(&remote, body).await;
    assert_eq!(answer["id"], 1);
    assert_eq!(response_of(&answer["result"]["task"]), "You said: hi");
}

#[tokio::test]
async fn what_is_no_request_is_told_by_its_code() {
    let remote = Setup::default().start().await;
    for (body, code) in [
        ("{", -32700),
        ("[]", -32600),
        (r#"{"jsonrpc":"2.0","id":7}"#, -32600),
        (r#"{"jsonrpc":"1.0","id":7,"method":"GetTask"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":7,"method":"Nothing"}"#, -32601),
        (r#"{"jsonrpc":"2.0","id":7,"method":"GetTask"}"#, -32602),
        (r#"{"jsonrpc":"2.0","id":7,"method":"GetTask","params":[]}"#, -32602),
        (r#"{"jsonrpc":"2.0","id":7,"method":"GetTask","params":{"id":"x"}}"#, -32001),
        (r#"{"jsonrpc":"2.0","id":7,"method":"message/send","params":{}}"#, -32009),
        (r#"{"jsonrpc":"2.0","id":7,"method":"GetExtendedAgentCard"}"#, -32004),
    ] {
        let answer = raw(&remote, body).await;
        assert_eq!(answer["error"]["code"], code, "{body}: {answer}");
    }
}

#[tokio::test]
async fn errors_carry_their_reason_and_the_wrong_member() {
    let remote = Setup::default().start().await;
    let answer = remote.answer("GetTask", &json!({"id": "nobody"})).await;
    assert_eq!(
        answer["error"],
        json!({"code": -32001, "message": "Task not found", "data": [{
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": "TASK_NOT_FOUND",
            "domain": "a2a-protocol.org",
        }]})
    );
    let mut wrong = message("x");
    wrong["message"]["role"] = "ROLE_AGENT".into();
    let answer = remote.answer("SendMessage", &wrong).await;
    assert_eq!(answer["error"]["code"], -32602);
    let details = answer["error"]["data"].as_array().unwrap();
    assert!(
        details.iter().any(|detail| detail["fieldViolations"][0]["field"] == "message.role"),
        "{answer}"
    );
}

#[tokio::test]
async fn wrong_parameters_begin_nothing() {
    let remote = Setup::default().start().await;
    let change = |pointer: &str, value: Value| {
        let mut params = message("x");
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        params.pointer_mut(parent).unwrap()[name] = value;
        params
    };
    for params in [
        change("/message/messageId", "".into()),
        change("/message/parts", json!([])),
        change("/message/parts", json!([{"text": "a", "url": "b"}])),
        change("/message/contextId", "not a plain id".into()),
        change("/configuration", json!({"historyLength": -1})),
    ] {
        assert_eq!(remote.code("SendMessage", params.clone()).await, -32602, "{params}");
    }
    assert_eq!(remote.call("ListTasks", json!({})).await["totalSize"], 0);
}

#[tokio::test]
async fn explicit_version_that_is_not_spoken_is_refused() {
    let remote = Setup::default().start().await;
    let body = r#"{"jsonrpc":"2.0","id":7,"method":"ListTasks"}"#;
    for (path, version, code) in [
        ("/a2a", "0.3", Some(-32009)),
        ("/a2a", "2.0", Some(-32009)),
        ("/a2a", "newest", Some(-32009)),
        ("/a2a?A2A-Version=0.3", "", Some(-32009)),
        ("/a2a?A2A-Version=1.0", "", None),
        ("/a2a", "1.0.1", None),
        ("/a2a", "", None),
    ] {
        let response = remote.post(path, body, &[JSON, ("a2a-version", version)]).await;
        let answer = json_of(response).await;
        assert_eq!(answer["error"]["code"].as_i64(), code, "{path} {version}: {answer}");
    }
}

#[tokio::test]
async fn caller_is_known_before_the_body_is_read() {
    let keys = [("ann".to_owned(), Secret::new("k-ann")), ("bob".to_owned(), Secret::new("k-bob"))];
    let setup = Setup { auth: Arc::new(StaticKeys::new(keys)), ..Setup::default() };
    let remote = setup.start().await;
    for key in ["", "wrong"] {
        let response = remote.with_key(key).post("/a2a", "{", &[JSON]).await;
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
        assert_eq!(header(response.headers(), "www-authenticate"), "Bearer realm=\"a2a\"");
    }
    let (ann, bob) = (remote.with_key("k-ann"), remote.with_key("k-bob"));
    let task = ann.send("echo mine").await;
    let id = json!({"id": task["id"]});
    assert_eq!(response_of(&ann.call("GetTask", id.clone()).await), "echo: mine");
    for method in ["GetTask", "CancelTask", "SubscribeToTask"] {
        assert_eq!(bob.code(method, id.clone()).await, -32001, "{method}");
    }
    assert_eq!(bob.call("ListTasks", json!({})).await["totalSize"], 0);
    let mut params = message("into a stranger's task");
    params["message"]["taskId"] = task["id"].clone();
    assert_eq!(bob.code("SendMessage", params).await, -32001);
}

#[tokio::test]
async fn large_bodies_and_other_types_are_refused() {
    let config = ServerConfig { max_body_bytes: 1000, ..ServerConfig::default() };
    let remote = Setup { config, ..Setup::default() }.start().await;
    let response = remote.post("/a2a", vec![b' '; 1001], &[JSON]).await;
    assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE);
    for wrong in ["text/plain", ""] {
        let response = remote.post("/a2a", "{}", &[("content-type", wrong)]).await;
        assert_eq!(response.status(), StatusCode::UNSUPPORTED_MEDIA_TYPE);
    }
    let typed = [("content-type", "application/json; charset=utf-8")];
    assert_eq!(remote.post("/a2a", "{}", &typed).await.status(), StatusCode::OK);
}

#[tokio::test]
async fn more_than_a_request_may_hold_is_refused_by_its_member() {
    let remote = Setup::default().start().await;
    let message = |rest: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"SendMessage","params":{{"message":{{"messageId":"m","role":"ROLE_USER",{rest}}}}}}}"#
        )
    };
    let list = |item: &str, count: usize| vec![item; count].join(",");
    for (field, limit, rest) in [
        (
            "message.parts",
            "at most 1000 entries are taken",
            format!(r#""parts":[{}]"#, list(r#"{"text":""}"#, 700_000)),
        ),
        (
            "message.extensions",
            "at most 1000 entries are taken",
            format!(r#""parts":[{{"text":"x"}}],"extensions":[{}]"#, list(r#""e""#, 1001)),
        ),
        (
            "message.parts[0].data",
            "more than 4194304 bytes of text and data",
            format!(r#""parts":[{{"data":[{}]}}]"#, list("0", 2_200_000)),
        ),
        (
            "message.metadata.a",
            "more values than 1048576 bytes of memory hold",
            format!(r#""parts":[{{"text":"x"}}],"metadata":{{"a":[{}]}}"#, list("0", 100_000)),
        ),
    ] {
        let answer = raw(&remote, &message(&rest)).await;
        assert_eq!(answer["error"]["code"], -32602, "{field}: {answer}");
        let violation = &answer["error"]["data"][1]["fieldViolations"][0];
        assert_eq!(violation["field"], field, "{answer}");
        let told = violation["description"].as_str().unwrap();
        assert!(told.contains(limit), "{field}: {told}");
    }
    assert_eq!(remote.call("ListTasks", json!({})).await["totalSize"], 0);
}

#[tokio::test]
async fn pages_of_other_names_for_this_machine_are_turned_away() {
    let remote = Setup::default().start().await;
    let body = r#"{"jsonrpc":"2.0","id":7,"method":"ListTasks"}"#;
    let response = remote.post("/a2a", body, &[JSON, ("host", "rebound.example:80")]).await;
    assert_eq!(response.status(), StatusCode::FORBIDDEN);
}
