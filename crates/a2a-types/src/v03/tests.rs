use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{
    Artifact, AuthenticationInfo, CancelTaskRequest, GetTaskPushNotificationConfigRequest,
    GetTaskRequest, ListTaskPushNotificationConfigsRequest,
    ListTaskPushNotificationConfigsResponse, Message, Part, PartContent, SendMessageConfiguration,
    SendMessageRequest, SendMessageResponse, Task, TaskArtifactUpdateEvent,
    TaskPushNotificationConfig, TaskState, TaskStatus, TaskStatusUpdateEvent,
};

fn all_parts() -> Vec<Part> {
    vec![
        Part::text("hi"),
        Part::raw(&b"hi"[..], "text/plain", "a.txt"),
        Part::url("https://files.example/x").with_media_type("image/png"),
        Part::data(json!({"a": 1})),
        Part::data(json!([1, 2])),
        Part::data(Value::Null),
    ]
}

fn all_parts_old() -> Value {
    json!([
        {"kind": "text", "text": "hi"},
        {"kind": "file", "file": {"bytes": "aGk=", "mimeType": "text/plain", "name": "a.txt"}},
        {"kind": "file", "file": {"uri": "https://files.example/x", "mimeType": "image/png"}},
        {"kind": "data", "data": {"a": 1}},
        {"kind": "data", "data": {"value": [1, 2]}, "metadata": {"data_part_compat": true}},
        {"kind": "data", "data": {"value": null}, "metadata": {"data_part_compat": true}}
    ])
}

#[test]
fn message_is_written_with_every_kind_of_part() {
    let mut configuration = SendMessageConfiguration::immediate();
    configuration.history_length = Some(0);
    let mut webhook = TaskPushNotificationConfig::new("https://hook.example");
    webhook.token = Some("tk".into());
    webhook.authentication = Some(AuthenticationInfo::bearer("c"));
    configuration.task_push_notification_config = Some(webhook);
    let mut request = SendMessageRequest::new(Message::user("m", all_parts()).with_task("t"));
    request.configuration = Some(configuration);
    request.tenant = Some("acme".to_owned());
    let written = write_params(METHOD_SEND_MESSAGE, &request).unwrap();
    assert_eq!(
        written,
        json!({
            "message": {"kind": "message", "messageId": "m", "taskId": "t", "role": "user", "parts": all_parts_old()},
            "configuration": {"blocking": false, "historyLength": 1, "pushNotificationConfig":
                {"url": "https://hook.example", "token": "tk",
                 "authentication": {"schemes": ["Bearer"], "credentials": "c"}}}
        })
    );
    let read: SendMessageRequest = read_params(METHOD_SEND_MESSAGE, written).unwrap();
    request.tenant = None;
    let configuration = request.configuration.as_mut().unwrap();
    configuration.history_length = Some(1);
    assert_eq!(read, request);
}

#[test]
fn whether_to_wait_is_always_written_and_absence_means_waiting() {
    let request = SendMessageRequest::new(Message::user("m", vec![Part::text("x")]));
    let written = write_params(METHOD_SEND_STREAMING_MESSAGE, &request).unwrap();
    assert_eq!(written["configuration"], json!({"blocking": true}));
    let bare = json!({"message": {"messageId": "m", "role": "user", "parts": [{"text": "x"}]}, "configuration": {"historyLength": 0}});
    let read: SendMessageRequest = read_params(METHOD_SEND_MESSAGE, bare).unwrap();
    assert_eq!(read.configuration, Some(SendMessageConfiguration::default()));
}

#[test]
fn file_parts_are_read_by_either_name() {
    let read = |file: Value| {
        let mut part = json!({"kind": "file", "file": file});
        content::read_part(&mut part);
        serde_json::from_value::<Part>(part).unwrap()
    };
    for file in [
        json!({"bytes": "aGk=", "mimeType": "text/plain", "name": "a.txt"}),
        json!({"fileWithBytes": "aGk=", "mimeType": "text/plain", "name": "a.txt"}),
    ] {
        assert_eq!(read(file), Part::raw(&b"hi"[..], "text/plain", "a.txt"));
    }
    for file in [json!({"uri": "https://x"}), json!({"fileWithUri": "https://x"})] {
        assert_eq!(read(file), Part::url("https://x"));
    }
    assert_eq!(read(json!({"bytes": ""})).content, PartContent::Raw(Vec::new().into()));
}

#[test]
fn file_that_is_null_is_none() {
    let task = r#"{"kind": "task", "id": "t", "contextId": "c", "status": {"state": "completed"}, "artifacts": [
        {"artifactId": "a", "parts": [{"kind": "text", "text": "hi", "file": null}]}]}"#;
    let task: Task = read_result(task).unwrap();
    assert_eq!(task.artifacts[0].parts, [Part::text("hi")]);
}

#[test]
fn data_is_unwrapped_only_when_marked_and_nothing_else_is_in_it() {
    let read = |data: Value, metadata: Value| {
        let mut part = json!({"kind": "data", "data": data, "metadata": metadata});
        content::read_part(&mut part);
        part
    };
    let marked = json!({"data_part_compat": true});
    assert_eq!(read(json!({"value": 1}), marked.clone()), json!({"data": 1}));
    assert_eq!(
        read(json!({"value": 1}), json!({"data_part_compat": true, "x": 1})),
        json!({"data": 1, "metadata": {"x": 1}})
    );
    let both = json!({"value": 1, "more": 2});
    assert_eq!(read(both.clone(), marked.clone()), json!({"data": both, "metadata": marked}));
    assert_eq!(read(json!({"value": 1}), json!({})), json!({"data": {"value": 1}, "metadata": {}}));
}

#[test]
fn every_state_has_its_old_name() {
    for (old, new) in [
        ("submitted", TaskState::Submitted),
        ("working", TaskState::Working),
        ("input-required", TaskState::InputRequired),
        ("completed", TaskState::Completed),
        ("canceled", TaskState::Canceled),
        ("failed", TaskState::Failed),
        ("rejected", TaskState::Rejected),
        ("auth-required", TaskState::AuthRequired),
        ("unknown", TaskState::Unspecified),
        ("paused", TaskState::Unknown("TASK_STATE_PAUSED".to_owned())),
    ] {
        let task = json!({"kind": "task", "id": "t", "contextId": "c", "status": {"state": old}});
        let read: Task = read_result(&task.to_string()).unwrap();
        assert_eq!(read.status.state, new);
        assert_eq!(write_result(METHOD_GET_TASK, &read).unwrap(), task);
    }
}

#[test]
fn kinds_are_inferred_from_what_is_there() {
    let event = |value: Value| read_event(&value.to_string()).unwrap();
    let status = TaskStatusUpdateEvent::new("t", "c", TaskStatus::new(TaskState::Working));
    let bare =
        json!({"taskId": "t", "contextId": "c", "status": {"state": "working"}, "final": true});
    assert_eq!(event(bare), (status.into(), true));
    let chunk = TaskArtifactUpdateEvent::new("t", "c", Artifact::new("a", vec![Part::text("x")]));
    let bare = json!({"taskId": "t", "contextId": "c", "artifact": {"artifactId": "a", "parts": [{"kind": "text", "text": "x"}]}});
    assert_eq!(event(bare), (chunk.into(), false));
    let task = Task::new("t", "c", TaskStatus::new(TaskState::Completed));
    let bare = json!({"id": "t", "contextId": "c", "status": {"state": "completed"}});
    assert_eq!(event(bare.clone()), (task.clone().into(), false));
    let answer: SendMessageResponse = read_result(&bare.to_string()).unwrap();
    assert_eq!(answer, SendMessageResponse::Task(task));
    let said = Message::agent("m", vec![Part::text("x")]);
    let bare = json!({"messageId": "m", "role": "agent", "parts": [{"text": "x"}]});
    assert_eq!(event(bare.clone()), (said.clone().into(), false));
    let answer: SendMessageResponse = read_result(&bare.to_string()).unwrap();
    assert_eq!(answer, SendMessageResponse::Message(said));
    for odd in [json!({}), json!([]), json!(null), json!({"kind": "new"}), json!({"kind": 1})] {
        read_event(&odd.to_string()).unwrap_err();
    }
}

#[test]
fn events_are_written_with_their_kind_and_only_a_status_says_final() {
    let status = TaskStatusUpdateEvent::new("t", "c", TaskStatus::new(TaskState::InputRequired));
    let event = StreamResponse::from(status);
    let written = write_event(&event, true).unwrap();
    assert_eq!(
        written,
        json!({"kind": "status-update", "taskId": "t", "contextId": "c", "status": {"state": "input-required"}, "final": true})
    );
    assert_eq!(read_event(&written.to_string()).unwrap(), (event.clone(), true));
    assert_eq!(write_event(&event, false).unwrap()["final"], json!(false));
    let task = Task::new("t", "c", TaskStatus::new(TaskState::Completed));
    assert_eq!(write_event(&task.into(), true).unwrap().get("final"), None);
}

#[test]
fn webhooks_are_nested_and_named_by_their_task() {
    let mut config = TaskPushNotificationConfig::new("https://h").with_task("t");
    config.id = Some("p".into());
    config.authentication = Some(AuthenticationInfo::bearer("c"));
    let nested = json!({"taskId": "t", "pushNotificationConfig":
        {"id": "p", "url": "https://h", "authentication": {"schemes": ["Bearer"], "credentials": "c"}}});
    assert_eq!(write_params(METHOD_CREATE_PUSH_CONFIG, &config).unwrap(), nested);
    let read: TaskPushNotificationConfig = read_result(&nested.to_string()).unwrap();
    assert_eq!(read, config);

    let request = GetTaskPushNotificationConfigRequest::new("t", "p");
    let reference = json!({"id": "t", "pushNotificationConfigId": "p"});
    assert_eq!(write_params(METHOD_GET_PUSH_CONFIG, &request).unwrap(), reference);
    let read: GetTaskPushNotificationConfigRequest =
        read_params(METHOD_GET_PUSH_CONFIG, reference).unwrap();
    assert_eq!(read, request);
    let read: GetTaskPushNotificationConfigRequest =
        read_params(METHOD_GET_PUSH_CONFIG, json!({"id": "t"})).unwrap();
    assert_eq!(read, GetTaskPushNotificationConfigRequest::new("t", "t"));

    let mut request = ListTaskPushNotificationConfigsRequest::new("t");
    request.page_size = 5;
    assert_eq!(write_params(METHOD_LIST_PUSH_CONFIGS, &request).unwrap(), json!({"id": "t"}));
    let page = ListTaskPushNotificationConfigsResponse::new(vec![config]);
    let list = write_result(METHOD_LIST_PUSH_CONFIGS, &page).unwrap();
    assert_eq!(list, json!([nested]));
    let read: ListTaskPushNotificationConfigsResponse = read_result(&list.to_string()).unwrap();
    assert_eq!(read, page);
}

#[test]
fn webhook_without_a_scheme_has_no_authentication() {
    let nested = json!({"taskId": "t", "pushNotificationConfig": {"url": "https://h", "authentication": {"schemes": []}}});
    let read: TaskPushNotificationConfig = read_params(METHOD_CREATE_PUSH_CONFIG, nested).unwrap();
    assert_eq!(read, TaskPushNotificationConfig::new("https://h").with_task("t"));
}

#[test]
fn methods_are_translated_both_ways() {
    for (new, old) in METHODS {
        assert_eq!((method_name(new), method_from_name(old)), (Some(old), Some(new)));
    }
    assert_eq!(method_name("ListTasks"), None);
    let mut request = GetTaskRequest::new("t");
    request.history_length = Some(0);
    let least = json!({"id": "t", "historyLength": 1});
    assert_eq!(write_params(METHOD_GET_TASK, &request).unwrap(), least);
    let mut request = CancelTaskRequest::new("t");
    request.tenant = Some("acme".to_owned());
    assert_eq!(write_params(METHOD_CANCEL_TASK, &request).unwrap(), json!({"id": "t"}));
}

#[test]
fn errors_keep_their_code_where_there_is_one() {
    for kind in [A2aErrorKind::TaskNotFound, A2aErrorKind::UnsupportedOperation] {
        let error = RpcError::of(kind, "x");
        assert_eq!(write_error(error.clone()), error);
        assert_eq!(read_error(METHOD_GET_TASK, error.clone()), error);
    }
    assert_eq!(write_error(RpcError::of(A2aErrorKind::VersionNotSupported, "x")).code, -32600);
    let ended = RpcError::new(-32602, "Task t is in terminal state: completed");
    assert_eq!(read_error(METHOD_SEND_MESSAGE, ended.clone()), ended);
    let read = read_error(METHOD_SUBSCRIBE_TO_TASK, ended);
    assert_eq!(read.kind(), Some(A2aErrorKind::UnsupportedOperation));
}

#[test]
fn errors_name_the_place_by_the_names_of_1_0() {
    let params = json!({"message": {"messageId": "m", "role": "user", "parts": [{"kind": "file", "file": {"bytes": "%"}}]}});
    let error = read_params::<SendMessageRequest>(METHOD_SEND_MESSAGE, params).unwrap_err();
    assert!(error.to_string().starts_with("`message.parts[0].raw`"), "{error}");
}

fn old_card() -> Value {
    json!({
        "name": "Old", "description": "d", "version": "2", "url": "https://old.example/rpc",
        "protocolVersion": "0.3.0", "preferredTransport": "JSONRPC",
        "additionalInterfaces": [
            {"url": "https://old.example/rpc", "transport": "JSONRPC"},
            {"url": "https://old.example/rest", "transport": "HTTP+JSON"}],
        "capabilities": {"streaming": true, "stateTransitionHistory": true},
        "supportsAuthenticatedExtendedCard": true,
        "security": [{"k": [], "o": ["r"]}],
        "securitySchemes": {
            "k": {"type": "apiKey", "in": "header", "name": "X-Key"},
            "b": {"type": "http", "scheme": "bearer"},
            "o": {"type": "oauth2", "flows": {
                "password": {"tokenUrl": "https://t", "scopes": {}},
                "clientCredentials": {"tokenUrl": "https://t", "scopes": {}}}},
            "m": {"type": "mutualTLS"}},
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "s", "name": "S", "description": "d", "tags": [], "security": [{"k": []}]}]
    })
}

#[test]
fn old_card_becomes_a_new_one() {
    let card = serde_json::to_value(read_card(&old_card().to_string()).unwrap()).unwrap();
    let interface = |url: &str, binding: &str| json!({"url": url, "protocolBinding": binding, "protocolVersion": "0.3.0"});
    assert_eq!(
        card,
        json!({
            "name": "Old", "description": "d", "version": "2",
            "supportedInterfaces": [
                interface("https://old.example/rpc", "JSONRPC"), interface("https://old.example/rest", "HTTP+JSON")],
            "capabilities": {"streaming": true, "extendedAgentCard": true},
            "securityRequirements": [{"schemes": {"k": {}, "o": {"list": ["r"]}}}],
            "securitySchemes": {
                "k": {"apiKeySecurityScheme": {"location": "header", "name": "X-Key"}},
                "b": {"httpAuthSecurityScheme": {"scheme": "bearer"}},
                "o": {"oauth2SecurityScheme": {"flows": {"clientCredentials": {"tokenUrl": "https://t", "scopes": {}}}}},
                "m": {"mtlsSecurityScheme": {}}},
            "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
            "skills": [{"id": "s", "name": "S", "description": "d", "tags": [],
                "securityRequirements": [{"schemes": {"k": {}}}]}]
        })
    );
}

#[test]
fn old_card_is_written_again_without_what_1_0_has_no_place_for() {
    let mut expected = old_card();
    expected["capabilities"] = json!({"streaming": true});
    expected["additionalInterfaces"].as_array_mut().unwrap().remove(0);
    let flows = expected["securitySchemes"]["o"]["flows"].as_object_mut().unwrap();
    flows.remove("password");
    assert_eq!(write_card(&read_card(&old_card().to_string()).unwrap()).unwrap(), expected);
}

#[test]
fn interfaces_of_1_0_win_in_a_card_that_is_both() {
    let mut both = old_card();
    both["supportedInterfaces"] = json!([{"url": "https://new.example", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"}]);
    both["securitySchemes"] =
        json!({"k": {"apiKeySecurityScheme": {"location": "header", "name": "X"}}});
    let card = read_card(&both.to_string()).unwrap();
    assert_eq!(card.supported_interfaces.len(), 1);
    assert_eq!(card.supported_interfaces[0].url, "https://new.example");
    assert_eq!(card.capabilities.extended_agent_card, None);
    assert_eq!(card.security_schemes.len(), 1);
}

#[test]
fn card_without_defaults_speaks_json_rpc_0_3() {
    let card =
        read_card(r#"{"name": "n", "url": "https://x", "supportedInterfaces": []}"#).unwrap();
    assert_eq!(
        card.supported_interfaces,
        [crate::AgentInterface::new("https://x", "JSONRPC", "0.3.0")]
    );
    assert_eq!(read_card(r#"{"name": "n"}"#).unwrap().supported_interfaces, []);
}

/// JSON of any shape with the names that matter here.
fn wild() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-z-]{0,8}".prop_map(Value::from),
        prop_oneof![
            Just("task"),
            Just("message"),
            Just("status-update"),
            Just("apiKey"),
            Just("oauth2")
        ]
        .prop_map(Value::from),
    ];
    let name = prop_oneof![
        Just("kind"),
        Just("status"),
        Just("state"),
        Just("message"),
        Just("parts"),
        Just("file"),
        Just("bytes"),
        Just("data"),
        Just("metadata"),
        Just("data_part_compat"),
        Just("value"),
        Just("configuration"),
        Just("pushNotificationConfig"),
        Just("authentication"),
        Just("schemes"),
        Just("url"),
        Just("security"),
        Just("securitySchemes"),
        Just("skills"),
        Just("type"),
        Just("flows"),
        Just("capabilities"),
        Just("additionalInterfaces"),
        Just("supportedInterfaces"),
        Just("id"),
        Just("taskId"),
        Just("messageId"),
        Just("artifact"),
        Just("configs"),
        Just("task"),
    ];
    leaf.prop_recursive(5, 64, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map(name.clone().prop_map(str::to_owned), inner, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn nothing_panics(value in wild()) {
        for (method, _) in METHODS {
            let _ = read_params::<Value>(method, value.clone());
            let _ = write_params(method, &value);
            let _ = write_result(method, &value);
        }
        let written = value.to_string();
        let _ = read_result::<Task>(&written);
        let _ = read_result::<SendMessageResponse>(&written);
        let _ = read_result::<TaskPushNotificationConfig>(&written);
        let _ = read_result::<ListTaskPushNotificationConfigsResponse>(&written);
        let _ = read_event(&written);
        let _ = read_card(&written);
    }

    #[test]
    fn messages_come_back(text in "\\PC{0,20}", bytes: Vec<u8>, number: i64) {
        let parts = vec![
            Part::text(text.clone()),
            Part::new(PartContent::Raw(bytes.into())),
            Part::data(json!([number, text])),
        ];
        let task = {
            let mut task = Task::new("t", "c", TaskStatus::new(TaskState::Working));
            task.history.push(Message::agent("m", parts.clone()));
            task.artifacts.push(Artifact::new("a", parts));
            task
        };
        let written = write_result(METHOD_GET_TASK, &task).unwrap();
        prop_assert_eq!(read_result::<Task>(&written.to_string()).unwrap(), task);
    }
}
