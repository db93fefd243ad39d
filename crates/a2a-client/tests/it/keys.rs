//! Where the key goes, and where it does not.

use std::sync::Arc;

use axum::{
    http::StatusCode,
    response::{IntoResponse as _, Redirect},
};
use serde_json::{Value, json};
use volcanic_a2a_client::{
    AgentEntry, ClientConfig, ClientError, KeyError, KeyResolver, KeySource, RemoteAgent,
};
use volcanic_base::Secret;

use crate::agent::{
    KEY, Running, Script, Seen, card, connect, connected, error, keyed, network, result, task,
};

fn working() -> Script {
    Script::new(|seen| result(seen, &task("t1", "WORKING")))
}

/// The one call an agent with these security schemes gets.
async fn call_under(schemes: Value) -> Seen {
    let script = working()
        .with_card(move |_| card(&json!({"securitySchemes": schemes.clone()})).into_response());
    let running = Running::start(&script).await;
    let agent = connect(&keyed(running.entry())).await.unwrap();
    agent.get_task(&"t1".into(), None).await.unwrap();
    for seen in script.seen().iter().filter(|seen| seen.path != "/a2a") {
        assert!(!format!("{:?}", seen.headers).contains(KEY), "the card is public: {seen:?}");
    }
    script.calls()[0].clone()
}

#[tokio::test]
async fn key_goes_where_the_card_says() {
    let bearer = json!({"b": {"httpAuthSecurityScheme": {"scheme": "Bearer"}}});
    let named =
        json!({"n": {"apiKeySecurityScheme": {"location": "header", "name": "X-Agent-Key"}}});
    assert_eq!(call_under(bearer).await.header("authorization"), Some(&*format!("Bearer {KEY}")));
    assert_eq!(call_under(named).await.header("x-agent-key"), Some(KEY));
    assert_eq!(call_under(json!({})).await.header("x-api-key"), Some(KEY));
}

#[tokio::test]
async fn agent_that_is_named_in_the_query_of_its_address_is_called_by_that_name() {
    const NAME: &str = "fe096781-5601-53d2-b2f6-0d3403f7e9ca";
    let script = Script::new(|seen| result(seen, &task("t1", "WORKING"))).with_card(|_| {
        let interface = json!({
            "url": format!("/a2a/{NAME}?key={KEY}"), "protocolBinding": "JSONRPC", "protocolVersion": "1.0",
            "tenant": NAME
        });
        card(&json!({"description": NAME, "supportedInterfaces": [interface]})).into_response()
    });
    let running = Running::start(&script).await;
    let mut entry = keyed(running.entry());
    entry.url.set_query(Some(&format!("assistant_id={NAME}")));
    let agent = connect(&entry).await.unwrap();
    agent.get_task(&"t1".into(), None).await.unwrap();
    let call = script.calls().remove(0);
    let params = json!({"id": "t1", "tenant": NAME});
    // A key in it is still taken out: which header it belongs into is for us to say.
    assert_eq!((call.path, call.query), (format!("/a2a/{NAME}"), "key=***".to_owned()));
    assert_eq!(call.body["params"], params);
    let shown = format!("{:?}", agent.card());
    assert!(!shown.contains(NAME) && shown.contains("/a2a/***"), "{shown}");
}

#[tokio::test]
async fn extended_card_with_another_address_of_a_name_in_the_query_is_not_used() {
    const NAME: &str = "fe096781-5601-53d2-b2f6-0d3403f7e9ca";
    let served = |path: &str| {
        let interface = json!({
            "url": format!("/a2a/{NAME}{path}"), "protocolBinding": "JSONRPC", "protocolVersion": "1.0"
        });
        let capabilities = json!({"extendedAgentCard": true});
        card(&json!({"capabilities": capabilities, "supportedInterfaces": [interface]})).0
    };
    let script = Script::new(move |seen| match seen.body["method"].as_str() {
        Some("GetExtendedAgentCard") => result(seen, &served("/more")),
        _ => result(seen, &task("t1", "WORKING")),
    })
    .with_card(move |_| axum::Json(served("")).into_response());
    let running = Running::start(&script).await;
    let mut entry = keyed(running.entry());
    entry.url.set_query(Some(&format!("assistant_id={NAME}")));
    let agent = connect(&entry).await.unwrap();
    agent.get_task(&"t1".into(), None).await.unwrap();
    let paths: Vec<_> = script.calls().into_iter().map(|seen| seen.path).collect();
    assert_eq!(paths, [format!("/a2a/{NAME}"), format!("/a2a/{NAME}")]);
}

#[tokio::test]
async fn rejected_key_is_readable() {
    for status in [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN] {
        let script = Script::new(move |_| (status, "no").into_response());
        let running = Running::start(&script).await;
        let agent = connect(&keyed(running.entry())).await.unwrap();
        let error = agent.get_task(&"t1".into(), None).await.unwrap_err();
        let code = status.as_u16();
        let advice = "Check the \"key\" in its entry in .volcanic/a2a/agents.json.";
        let text = format!("Agent \"travel-bot\" rejected the key ({code}). {advice}");
        assert_eq!(error.to_string(), text);
        assert!(!error.is_transient() && !error.may_have_arrived());
    }
    let script = Script::new(|_| StatusCode::UNAUTHORIZED.into_response());
    let (_running, agent) = connected(&script).await;
    let error = agent.get_task(&"t1".into(), None).await.unwrap_err();
    let text = "Agent \"travel-bot\" asks for a key (401). Give it a \"key\" in its entry in .volcanic/a2a/agents.json.";
    assert_eq!(error.to_string(), text);
}

#[tokio::test]
async fn redirect_takes_the_key_nowhere() {
    for code in [301_u16, 302, 303, 307, 308] {
        let elsewhere = working();
        let target = Running::start(&elsewhere).await;
        let url = format!("http://{}/a2a", target.address);
        let script = Script::new(move |_| {
            let mut response = Redirect::temporary(&url).into_response();
            *response.status_mut() = StatusCode::from_u16(code).unwrap();
            response
        });
        let running = Running::start(&script).await;
        let agent = connect(&keyed(running.entry())).await.unwrap();
        let error = agent.get_task(&"t1".into(), None).await.unwrap_err();
        assert!(matches!(error, ClientError::Http { .. }), "{error:?}");
        assert!(error.to_string().ends_with("a redirect, which is not followed."), "{error}");
        assert!(elsewhere.seen().is_empty(), "{code}");
    }
}

#[tokio::test]
async fn key_goes_to_another_origin_only_when_listed() {
    let api = working();
    let api_running = Running::start(&api).await;
    let origin = format!("http://{}", api_running.address);
    let interface = json!({"supportedInterfaces": [
        {"url": format!("{origin}/a2a"), "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]});
    let script = working().with_card(move |_| card(&interface).into_response());
    let running = Running::start(&script).await;
    let mut entry = keyed(running.entry());
    let error = connect(&entry).await.unwrap_err();
    assert!(
        matches!(&error, ClientError::Untrusted { origin: found, .. } if *found == origin),
        "{error:?}"
    );
    assert!(api.seen().is_empty());

    entry.trusted_origins = vec![origin];
    let agent = connect(&entry).await.unwrap();
    agent.get_task(&"t1".into(), None).await.unwrap();
    assert_eq!(api.calls()[0].header("x-api-key"), Some(KEY));
    assert_eq!(agent.origin(), format!("http://{}", running.address));
}

#[tokio::test]
async fn headers_of_the_entry_go_along_to_the_own_origin() {
    let script = working();
    let running = Running::start(&script).await;
    let gateway = KeySource::Plain(Secret::new("gate"));
    let entry = AgentEntry {
        headers: vec![(http::HeaderName::from_static("x-gateway"), gateway)],
        ..running.entry()
    };
    connect(&entry).await.unwrap().get_task(&"t1".into(), None).await.unwrap();
    let seen: Vec<_> =
        script.seen().iter().map(|seen| seen.header("x-gateway").map(str::to_owned)).collect();
    assert_eq!(seen, [Some("gate".to_owned()), Some("gate".to_owned())]);
}

#[tokio::test]
async fn key_that_cannot_be_had_stops_before_anything_is_sent() {
    let script = working();
    let running = Running::start(&script).await;
    let entry = AgentEntry { key: Some(KeySource::Env("A2A_KEY_X".to_owned())), ..running.entry() };
    let keys: KeyResolver = Arc::new(|_| Err(KeyError::new("A2A_KEY_X is not set")));
    let error =
        RemoteAgent::connect(&entry, network(), keys, &ClientConfig::default()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "The key of agent \"travel-bot\" cannot be used: A2A_KEY_X is not set."
    );
    assert!(script.seen().is_empty());
}

#[tokio::test]
async fn agent_that_repeats_the_key_is_not_believed() {
    let script = Script::new(|seen| {
        let key = seen.header("x-api-key").unwrap().to_owned();
        if seen.body["params"]["id"] == "t1" {
            let mut task = task("t1", "COMPLETED");
            task["status"]["message"] =
                json!({"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": key}]});
            result(seen, &task)
        } else {
            error(
                seen,
                &json!({"code": -32603, "message": format!("key {key} is odd"), "data": key}),
            )
        }
    });
    let running = Running::start(&script).await;
    let agent = connect(&keyed(running.entry())).await.unwrap();
    let task = agent.get_task(&"t1".into(), None).await.unwrap();
    assert_eq!(agent.outcome_of(task, 100).answer, "***");
    let error = agent.get_task(&"t2".into(), None).await.unwrap_err();
    assert_eq!(error.to_string(), "Agent \"travel-bot\" refused: key *** is odd (-32603)");
    assert!(!format!("{error:?} {agent:?} {:?}", keyed(running.entry())).contains(KEY));
}
