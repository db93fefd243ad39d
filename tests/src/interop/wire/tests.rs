use serde_json::json;

use super::*;

fn exchange(request: &str, response: &str) -> Exchange {
    Exchange {
        request: request.replace('\n', "\r\n").into_bytes(),
        response: response.replace('\n', "\r\n").into_bytes(),
    }
}

#[test]
fn calls_of_one_connection_are_told_apart_with_their_answers() {
    let asked = r#"{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"id":"t"}}"#;
    let said = r#"{"result":{"id":"t","contextId":"c","kind":"task","status":{"state":"input-required"}}}"#;
    let record = exchange(
        &format!(
            "GET /open/.well-known/agent-card.json HTTP/1.1\nhost: x\n\nPOST /open/rpc HTTP/1.1\nA2A-Version: 0.3\ncontent-length: {}\n\n{asked}",
            asked.len()
        ),
        &format!(
            "HTTP/1.1 200 OK\ncontent-length: 2\n\n{{}}HTTP/1.1 200 OK\ncontent-length: {}\n\n{said}",
            said.len()
        ),
    );
    let calls = calls(&[record]);
    assert_eq!(calls.len(), 2);
    assert_eq!((&calls[0].operation, calls[0].binding), (&Operation::Card, None));
    assert_eq!(calls[1].operation, Operation::GetTask);
    assert_eq!(calls[1].binding, Some(WireBinding::JsonRpc));
    assert_eq!(calls[1].header("a2a-version"), Some("0.3"));
    assert_eq!(calls[1].params, json!({"id": "t"}));
    let task = calls[1].task().unwrap();
    assert_eq!(
        (task.id.as_str(), task.context.as_str(), task.state.as_str()),
        ("t", "c", "input-required")
    );
}

#[test]
fn routes_and_reasons_of_http_json_are_understood() {
    let refused = r#"{"error":{"code":400,"details":[{"reason":"TASK_NOT_CANCELABLE"}]}}"#;
    let record = exchange(
        "POST /open/rest/tasks/t:cancel?x=1 HTTP/1.1\ncontent-length: 2\n\n{}",
        &format!("HTTP/1.1 400 Bad Request\ncontent-length: {}\n\n{refused}", refused.len()),
    );
    let calls = calls(&[record]);
    assert_eq!(calls[0].operation, Operation::CancelTask);
    assert_eq!(calls[0].error().as_deref(), Some("TASK_NOT_CANCELABLE"));
    assert_eq!(calls[0].status(), Some(400));
}

#[test]
fn a_stream_that_breaks_off_shows_its_whole_events_and_that_it_broke_off() {
    let first = "data: {\"task\":{\"id\":\"t\",\"status\":{\"state\":\"TASK_STATE_WORKING\"}}}\n\n";
    let first = first.replace('\n', "\r\n");
    let second =
        "data: {\"artifactUpdate\":{\"artifact\":{\"parts\":[{\"text\":\"a\"},{\"text\":\"b\"}]}}}";
    let mut record = exchange("GET /open/rest/tasks/t:subscribe HTTP/1.1\n\n", "");
    record.response = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{first}\r\n{:x}\r\n{second}",
        first.len(),
        second.len() + 10
    )
    .into_bytes();
    let calls = calls(&[record]);
    assert_eq!(calls[0].operation, Operation::SubscribeToTask);
    assert!(calls[0].is_stream() && !calls[0].is_whole());
    let task = WireTask { id: "t".to_owned(), context: String::new(), state: "working".to_owned() };
    assert_eq!(calls[0].events(), [WireEvent::Task(task), WireEvent::Artifact("ab".to_owned())]);
}
