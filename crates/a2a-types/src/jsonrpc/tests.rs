use serde_json::json;

use super::*;
use crate::{GetTaskRequest, Task};

#[track_caller]
fn check_rejected(body: &str, id: impl Into<RpcId>, kind: A2aErrorKind) {
    let rejection = RpcRequest::decode(body.as_bytes()).unwrap_err();
    assert_eq!((rejection.id, rejection.error.kind()), (id.into(), Some(kind)), "{body}");
}

#[test]
fn request_is_read_without_copies() {
    let body = br#"{"jsonrpc":"2.0","id":"req-abc","method":"GetTask","params":{"id":"t1","historyLength":0}}"#;
    let request = RpcRequest::decode(body).unwrap();
    assert!(matches!(request.method, Cow::Borrowed(METHOD_GET_TASK)));
    assert_eq!(request.id, RpcId::from("req-abc"));
    let mut expected = GetTaskRequest::new("t1");
    expected.history_length = Some(0);
    assert_eq!(request.params::<GetTaskRequest>().unwrap(), expected);
}

#[test]
fn ids_are_echoed_exactly() {
    for id in ["1", "-7", "18446744073709551615", "null", "\"1\"", "\"\""] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"X"}}"#);
        let request = RpcRequest::decode(body.as_bytes()).unwrap();
        let answer = RpcResponse::encode_result(&request.id, &json!({})).unwrap();
        assert_eq!(answer, format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
    }
    assert_eq!(RpcRequest::decode(br#"{"jsonrpc":"2.0","method":"X"}"#).unwrap().id, RpcId::Null);
}

#[test]
fn what_is_no_request_is_refused_with_the_right_code() {
    use A2aErrorKind::{InvalidParams, InvalidRequest, ParseError};
    check_rejected(r#"{"jsonrpc": "2.0", "id": 1, "method": "#, RpcId::Null, ParseError);
    check_rejected("", RpcId::Null, ParseError);
    check_rejected("{} {}", RpcId::Null, ParseError);
    check_rejected(r#"[{"jsonrpc":"2.0","id":1,"method":"X"}]"#, RpcId::Null, InvalidRequest);
    check_rejected("7", RpcId::Null, InvalidRequest);
    check_rejected(r#"{"jsonrpc":"2.0","id":1.5,"method":"X"}"#, RpcId::Null, InvalidRequest);
    check_rejected(r#"{"jsonrpc":"2.0","id":{"a":1},"method":"X"}"#, RpcId::Null, InvalidRequest);
    check_rejected(r#"{"jsonrpc":"2.0","id":true,"method":"X"}"#, RpcId::Null, InvalidRequest);
    check_rejected(r#"{"id":1,"method":"X"}"#, 1, InvalidRequest);
    check_rejected(r#"{"jsonrpc":"1.0","id":1,"method":"X"}"#, 1, InvalidRequest);
    check_rejected(r#"{"jsonrpc":"2.0","id":1}"#, 1, InvalidRequest);
    check_rejected(r#"{"jsonrpc":"2.0","id":1,"method":5}"#, 1, InvalidRequest);
    check_rejected(r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"X"}"#, RpcId::Null, InvalidRequest);
    check_rejected(r#"{"jsonrpc":"2.0","id":"a","method":"X","params":["t"]}"#, "a", InvalidParams);
}

#[test]
fn wrong_parameters_name_the_member() {
    let body = br#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"historyLength":1}}"#;
    let error = RpcRequest::decode(body).unwrap().params::<GetTaskRequest>().unwrap_err();
    assert_eq!(error.kind(), Some(A2aErrorKind::InvalidParams));
    assert!(error.message.contains("`id`: required but missing"), "{}", error.message);
    assert_eq!(error.data.unwrap()[1]["fieldViolations"][0]["field"], "id");
    let none = br#"{"jsonrpc":"2.0","id":1,"method":"GetTask"}"#;
    RpcRequest::decode(none).unwrap().params::<GetTaskRequest>().unwrap_err();
}

#[test]
fn written_request_reads_back() {
    let body =
        RpcRequest::encode(&RpcId::from(7), METHOD_GET_TASK, &GetTaskRequest::new("t1")).unwrap();
    assert_eq!(body, r#"{"jsonrpc":"2.0","id":7,"method":"GetTask","params":{"id":"t1"}}"#);
    let request = RpcRequest::decode(&body).unwrap();
    assert_eq!(request.params::<GetTaskRequest>().unwrap(), GetTaskRequest::new("t1"));
}

/// Reads what a response carries.
fn carried<T: FromWire>(body: &[u8]) -> Result<serde_json::Result<T>, RpcError> {
    match RpcResponse::decode(body).unwrap().outcome {
        RpcOutcome::Result(result) => Ok(T::from_wire(result.get(), WireLimits::Answer)),
        RpcOutcome::Error(error) => Err(error),
    }
}

#[test]
fn response_carries_a_result_an_error_or_nothing() {
    let task =
        br#"{"jsonrpc":"2.0","id":1,"result":{"id":"t","status":{"state":"TASK_STATE_WORKING"}}}"#;
    assert_eq!(RpcResponse::decode(task).unwrap().id, RpcId::from(1));
    assert_eq!(carried::<Task>(task).unwrap().unwrap().id, "t");

    let error = RpcError::of(A2aErrorKind::TaskNotFound, "Task not found");
    let body = RpcResponse::encode_error(&RpcId::Null, &error).unwrap();
    assert_eq!(carried::<Task>(&body).unwrap_err(), error);

    for body in
        [br#"{"jsonrpc":"2.0","id":1,"result":null}"#.as_slice(), br#"{"jsonrpc":"2.0","id":1}"#]
    {
        carried::<()>(body).unwrap().unwrap();
        carried::<Task>(body).unwrap().unwrap_err();
    }
}

#[test]
fn error_wins_over_a_null_result() {
    let body = br#"{"jsonrpc":"2.0","id":1,"result":null,"error":{"code":-32601,"message":"Method not found"}}"#;
    let error = carried::<Task>(body).unwrap_err();
    assert_eq!(error.kind(), Some(A2aErrorKind::MethodNotFound));
}

#[test]
fn wrong_result_says_where() {
    let body = br#"{"jsonrpc":"2.0","id":1,"result":{"id":"t","status":{"message":{"role":"ROLE_AGENT"}}}}"#;
    let error = carried::<Task>(body).unwrap().unwrap_err();
    assert!(
        error.to_string().starts_with("`status.message.messageId`: required but missing"),
        "{error}"
    );
}

/// The task in the response to request 1: the long way, and the short one, which may find nothing instead.
fn both_ways(body: &str) -> (Option<Task>, Option<Task>) {
    let response = RpcResponse::decode(body.as_bytes()).ok();
    let is_ours = response.is_some_and(|response| response.id == RpcId::from(1));
    let long = is_ours.then(|| carried(body.as_bytes()).ok()?.ok()).flatten();
    (long, short_way(body, &RpcId::from(1)))
}

fn short_way(body: &str, id: &RpcId) -> Option<Task> {
    let mut task = None;
    Task::fill_from_response(&mut task, body, id);
    task
}

const USUAL: &str = r#"{"id":1,"jsonrpc":"2.0","result":{"id":"t","status":{"state":"TASK_STATE_WORKING"},"x":[1]}}"#;

#[test]
fn what_is_usual_is_read_the_short_way() {
    let task = r#""result":{"id":"t","status":{"state":"TASK_STATE_WORKING"},"x":[1]}"#;
    for body in [
        USUAL,
        &format!(r#"{{{task},"jsonrpc":"2.0","id":1}}"#),
        &format!(r#" {{ "jsonrpc" : "2.0" , "id" : 1 , "more" : {{}} , {task} }} "#),
    ] {
        let (long, short) = both_ways(body);
        assert!(short.is_some() && short == long, "{body}");
    }
    let named = RpcId::from("one");
    let body = USUAL.replace("\"id\":1", "\"id\":\"one\"");
    assert!(short_way(&body, &named).is_some());
    assert!(short_way(USUAL, &named).is_none());
}

#[test]
fn short_way_finds_nothing_in_what_is_unusual() {
    let wrong = [
        USUAL.replace("\"id\":1", "\"id\":2"),
        USUAL.replace("\"id\":1", "\"id\":\"1\""),
        USUAL.replace("\"id\":1", "\"id\":null"),
        USUAL.replace("\"id\":1", "\"id\":2,\"id\":1"),
        USUAL.replace("\"id\":1", "\"id\":1,\"id\":1"),
        USUAL.replace("\"id\":1,", ""),
        USUAL.replace("2.0", "1.0"),
        USUAL.replace("\"jsonrpc\":\"2.0\",", ""),
        USUAL.replace("\"id\":1,", "\"id\":1,\"result\":{},"),
        USUAL.replace("\"id\":1,", "\"id\":1,\"error\":{\"code\":1},"),
        USUAL.replace("\"id\":\"t\"", "\"id\":7"),
        format!("{USUAL}{USUAL}"),
        format!("[{USUAL}]"),
        "\"text\"".to_owned(),
    ];
    for body in wrong {
        assert_eq!(both_ways(&body), (None, None), "{body}");
    }
}

proptest::proptest! {
    #[test]
    fn short_way_never_finds_what_the_long_way_does_not(at in 0..USUAL.len(), byte in " -~", cut in 0_usize..3) {
        let mut body = USUAL.to_owned();
        body.replace_range(at..(at + cut).min(USUAL.len()), &byte);
        let (long, short) = both_ways(&body);
        proptest::prop_assert!(short.is_none() || short == long, "{}", body);
    }
}

#[test]
fn what_is_no_response_is_refused() {
    for body in [
        "",
        "[]",
        "null",
        "<html>",
        "{}",
        r#"{"jsonrpc":"2.0","id":[],"result":1}"#,
        r#"{"jsonrpc":"2.0","error":7}"#,
    ] {
        RpcResponse::decode(body.as_bytes()).unwrap_err();
    }
}

#[test]
fn reason_of_the_protocol_wins_over_the_code() {
    let error: RpcError = serde_json::from_value(json!({
        "code": -32603,
        "message": "x",
        "data": [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "TASK_NOT_FOUND", "domain": "a2a-protocol.org"}],
    }))
    .unwrap();
    assert_eq!(error.kind(), Some(A2aErrorKind::TaskNotFound));
    let error: RpcError = serde_json::from_value(json!({"code": -32002, "data": "busy"})).unwrap();
    assert_eq!((error.kind(), error.message.as_str()), (Some(A2aErrorKind::TaskNotCancelable), ""));
}

#[test]
fn kinds_that_only_http_can_say_become_an_invalid_request() {
    assert_eq!(RpcError::of(A2aErrorKind::Forbidden, "no").code, -32600);
}
