use serde_json::{Value, json};

use crate::{
    AgentCard, Artifact, GetTaskRequest, ListTasksRequest, Message, OAuthFlows, Part, Role,
    SecurityScheme, SendMessageRequest, SendMessageResponse, StreamResponse, Task,
    TaskArtifactUpdateEvent, TaskState, TaskStatusUpdateEvent,
};

fn read<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, String> {
    let from_text =
        serde_json::from_str::<T>(&value.to_string()).map_err(|error| error.to_string());
    let from_value = serde_json::from_value::<T>(value);
    assert_eq!(from_text.is_ok(), from_value.is_ok(), "text and value must read alike");
    from_text
}

#[track_caller]
fn check_error<T: serde::de::DeserializeOwned + std::fmt::Debug>(value: Value, start: &str) {
    let error = read::<T>(value).unwrap_err();
    assert!(error.starts_with(start), "{error}");
}

#[test]
fn unknown_members_survive_at_every_level() {
    let whole = json!({
        "id": "t", "contextId": "c", "x-task": 1,
        "status": {
            "state": "TASK_STATE_WORKING", "x-status": {"a": null},
            "message": {
                "messageId": "m", "role": "ROLE_AGENT", "x-message": [true],
                "parts": [{"text": "hi", "x-part": "p"}]
            }
        },
        "artifacts": [{"artifactId": "a", "parts": [{"data": {"n": 1}}], "x-artifact": false}]
    });
    let task: Task = read(whole.clone()).unwrap();
    assert_eq!(task.extra, *json!({"x-task": 1}).as_object().unwrap());
    assert_eq!(serde_json::to_value(&task).unwrap(), whole);

    let status = json!({"taskId": "t", "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}, "final": true});
    let event: TaskStatusUpdateEvent = read(status.clone()).unwrap();
    assert_eq!(serde_json::to_value(&event).unwrap(), status);

    let artifact = json!({"taskId": "t", "contextId": "c", "artifact": {"artifactId": "a", "parts": []}, "index": 3});
    let event: TaskArtifactUpdateEvent = read(artifact.clone()).unwrap();
    assert_eq!(serde_json::to_value(&event).unwrap(), artifact);
}

#[test]
fn null_and_empty_read_as_absent() {
    let message: Message = read(json!({
        "messageId": "m", "contextId": "", "taskId": null, "role": "ROLE_USER", "parts": [{"text": "x"}],
        "metadata": null, "extensions": [], "referenceTaskIds": null
    }))
    .unwrap();
    assert_eq!(message, Message::user("m", vec![Part::text("x")]));
    assert_eq!(
        serde_json::to_value(&message).unwrap(),
        json!({"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "x"}]})
    );
}

#[test]
fn presence_of_numbers_and_switches_is_kept() {
    let request: ListTasksRequest =
        read(json!({"historyLength": 0, "includeArtifacts": false})).unwrap();
    assert_eq!((request.history_length, request.include_artifacts), (Some(0), Some(false)));
    assert_eq!(
        serde_json::to_value(&request).unwrap(),
        json!({"historyLength": 0, "includeArtifacts": false})
    );
    assert_eq!(serde_json::to_value(ListTasksRequest::default()).unwrap(), json!({}));
}

#[test]
fn whole_numbers_are_read_as_peers_write_them() {
    for (value, expected) in [(json!(5), 5), (json!(5.0), 5), (json!("5"), 5), (json!(-1), -1)] {
        let request: GetTaskRequest = read(json!({"id": "t", "historyLength": value})).unwrap();
        assert_eq!(request.history_length, Some(expected));
    }
    for value in [json!(1.5), json!("x"), json!(1_u64 << 40), json!(1e300), json!(true), json!([1])]
    {
        check_error::<GetTaskRequest>(
            json!({"id": "t", "historyLength": value}),
            "`historyLength`: ",
        );
    }
}

#[test]
fn names_in_snake_case_are_read() {
    let message: Message = read(json!({
        "message_id": "m", "context_id": "c", "task_id": "t", "role": 1, "parts": [{"text": "x"}],
        "reference_task_ids": ["r"]
    }))
    .unwrap();
    let mut expected = Message::user("m", vec![Part::text("x")]).with_context("c").with_task("t");
    expected.reference_task_ids.push("r".into());
    assert_eq!(message, expected);
}

#[test]
fn missing_members_are_named_with_their_place() {
    check_error::<Task>(json!({"status": {}}), "`id`: required but missing");
    check_error::<Task>(json!({"id": ""  , "status": {}}), "`id`: required but missing");
    check_error::<Task>(json!({"id": null, "status": {}}), "`id`: required but missing");
    check_error::<Task>(json!({"id": "t"}), "`status`: required but missing");
    check_error::<Task>(
        json!({"id": "t", "status": {}, "history": [{"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "a"}, {"raw": 5}]}]}),
        "`history[0].parts[1].raw`: invalid type",
    );
    check_error::<Task>(
        json!({"id": "t", "status": {}, "artifacts": [{}]}),
        "`artifacts[0].artifactId`: required",
    );
    check_error::<StreamResponse>(
        json!({"statusUpdate": {"taskId": "t", "status": {}}}),
        "`statusUpdate.contextId`: required but missing",
    );
    check_error::<Task>(json!("t"), "invalid type");
}

#[test]
fn member_given_twice_is_refused() {
    let error = serde_json::from_str::<GetTaskRequest>(r#"{"id":"a","id":"b"}"#).unwrap_err();
    assert!(error.to_string().starts_with("`id`: given twice"), "{error}");
    let error =
        serde_json::from_str::<Message>(r#"{"contextId":null,"context_id":"b"}"#).unwrap_err();
    assert!(error.to_string().starts_with("`contextId`: given twice"), "{error}");
}

#[test]
fn sent_message_needs_parts_and_a_reported_one_does_not() {
    let bare = json!({"messageId": "m", "role": "ROLE_USER"});
    assert_eq!(read::<Message>(bare.clone()).unwrap().parts, []);
    check_error::<SendMessageRequest>(
        json!({"message": bare}),
        "`message.parts`: required but missing or empty",
    );
    check_error::<SendMessageRequest>(json!({"message": null}), "`message`: required but missing");
    let artifact: Artifact = read(json!({"artifactId": "a"})).unwrap();
    assert_eq!(serde_json::to_value(&artifact).unwrap(), json!({"artifactId": "a", "parts": []}));
}

#[test]
fn unsaid_state_is_unspecified_and_not_written() {
    let task: Task = read(json!({"id": "t", "status": {"state": null}})).unwrap();
    assert_eq!(task.status.state, TaskState::Unspecified);
    assert_eq!(serde_json::to_value(&task).unwrap(), json!({"id": "t", "status": {}}));
    assert_eq!(
        read::<Message>(json!({"messageId": "m", "role": ""})).unwrap_err().split(':').next(),
        Some("`role`")
    );
    assert_eq!(
        read::<Message>(json!({"messageId": "m", "role": "ROLE_TOOL"})).unwrap().role,
        Role::Unknown("ROLE_TOOL".to_owned())
    );
}

#[test]
fn exactly_one_member_of_a_choice() {
    let message = json!({"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "x"}]});
    let task = json!({"id": "t", "status": {}});
    let answer: SendMessageResponse =
        read(json!({"task": null, "message": message, "new": 1})).unwrap();
    assert!(matches!(answer, SendMessageResponse::Message(_)));
    check_error::<SendMessageResponse>(
        json!({"message": message, "task": task}),
        "only one of `message` and `task` may be given",
    );
    check_error::<SendMessageResponse>(
        json!({"task": null}),
        "exactly one of `task`, `message` is needed",
    );
    check_error::<StreamResponse>(
        json!({"id": "t"}),
        "exactly one of `task`, `message`, `statusUpdate`, `artifactUpdate`",
    );
}

#[test]
fn unknown_ways_to_authenticate_survive_in_a_card() {
    let mut card = AgentCard::new("n", "d", "1");
    let scheme = json!({"quantumSecurityScheme": {"qubits": 3}});
    card.security_schemes.insert("q".to_owned(), read(scheme.clone()).unwrap());
    let flows = json!({"oauth2SecurityScheme": {"flows": {"telepathy": {}}}});
    card.security_schemes.insert("o".to_owned(), read(flows.clone()).unwrap());
    assert!(matches!(card.security_schemes["q"], SecurityScheme::Unknown(_)));
    let SecurityScheme::OAuth2(oauth) = &card.security_schemes["o"] else { panic!("not OAuth") };
    assert!(matches!(oauth.flows, OAuthFlows::Unknown(_)));
    assert_eq!(
        serde_json::to_value(&card).unwrap()["securitySchemes"],
        json!({"q": scheme, "o": flows})
    );
}

#[test]
fn card_forgives_what_is_left_out() {
    let card: AgentCard = read(json!({"name": "n"})).unwrap();
    assert_eq!(card, AgentCard::new("n", "", ""));
    let schemes = json!({"oauth2SecurityScheme": {}, "apiKeySecurityScheme": null});
    let odd = json!({"name": "n", "skills": [{}], "signatures": [{}], "securitySchemes": {"o": schemes, "e": {}}});
    assert_eq!(read::<AgentCard>(odd).unwrap().security_schemes.len(), 2);
    check_error::<AgentCard>(json!({"description": "d"}), "`name`: required but missing");
    check_error::<AgentCard>(
        json!({"name": "n", "supportedInterfaces": [{"url": "u"}]}),
        "`supportedInterfaces[0].protocolBinding`: required but missing",
    );
}

#[test]
fn nesting_without_end_is_an_error_and_no_crash() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for part in [format!(r#"{{"data":{deep}}}"#), format!(r#"{{"text":"t","extra":{deep}}}"#)] {
        let error = serde_json::from_str::<Part>(&part).unwrap_err().to_string();
        assert!(error.contains("recursion limit exceeded"), "{error}");
    }
    // Nobody keeps the unknown members of a request, so their depth costs nothing.
    let request = format!(r#"{{"id":"t","unknown":{deep}}}"#);
    assert_eq!(serde_json::from_str::<GetTaskRequest>(&request).unwrap(), GetTaskRequest::new("t"));
}
