//! Reading the card.

use axum::{
    http::StatusCode,
    response::{IntoResponse as _, Redirect},
};
use serde_json::json;
use volcanic_a2a_client::{
    AgentEntry, ClientConfig, ClientError, KeyUse, RemoteAgent, ServedCard, plain_keys,
};
use volcanic_a2a_types::CardHeaders;

use crate::agent::{
    KEY, LIMIT, Running, Script, card, connect, connect_with, connected, entry, error, keyed,
    network, result,
};

fn silent() -> Script {
    Script::new(|_| StatusCode::NO_CONTENT.into_response())
}

#[tokio::test]
async fn card_tells_what_the_agent_can_do() {
    let (running, agent) = connected(&silent()).await;
    assert_eq!(agent.name(), "travel-bot");
    assert_eq!(agent.origin(), format!("http://{}", running.address));
    assert_eq!(
        (agent.card().name.as_str(), agent.streams(), agent.pushes()),
        ("Test agent", true, true)
    );
}

#[tokio::test]
async fn card_url_itself_can_be_given() {
    let script = silent();
    let running = Running::start(&script).await;
    let url = format!("http://{}/.well-known/agent-card.json", running.address);
    connect(&entry(&url)).await.unwrap();
    assert_eq!(script.seen().len(), 1);
}

#[tokio::test]
async fn bad_cards_are_told_apart() {
    let with = |url: &str| {
        let interface = json!({"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"});
        card(&json!({"supportedInterfaces": [interface]})).into_response()
    };
    let named = "the address with a user name or a password, which cannot be called";
    for (answer, expected) in [
        (StatusCode::NOT_FOUND.into_response(), "there is none at http://"),
        ("<html>".into_response(), "it is not valid: expected value"),
        ("{}".into_response(), "it is not valid: `name`"),
        (card(&json!({"supportedInterfaces": []})).into_response(), "it names no interface"),
        (with("http://me@localhost/"), named),
        (with("http://:hush@localhost/"), named),
    ] {
        let answer = std::sync::Mutex::new(Some(answer));
        let script = silent().with_card(move |_| answer.lock().unwrap().take().unwrap());
        let running = Running::start(&script).await;
        let error = connect(&running.entry()).await.unwrap_err();
        assert!(matches!(error, ClientError::Card { .. }), "{error:?}");
        assert!(error.to_string().contains(expected), "{error}");
        assert!(!error.may_have_arrived());
    }
}

#[tokio::test]
async fn card_behind_a_key_says_so() {
    let script = silent().with_card(|_| StatusCode::UNAUTHORIZED.into_response());
    let running = Running::start(&script).await;
    let error = connect(&running.entry()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "Agent \"travel-bot\" asks for a key (401). Give it a \"key\" in its entry in .volcanic/a2a/agents.json."
    );
    let error = connect(&keyed(running.entry())).await.unwrap_err();
    let text = "The card of agent \"travel-bot\" cannot be used: it is not public (401), and no key is sent for it.";
    assert_eq!(error.to_string(), text, "the key was not rejected, it was not sent");
    assert!(matches!(error, ClientError::KeyRejected { key: KeyUse::Withheld, .. }), "{error:?}");
    assert!(error.is_transient(), "the agent may open its card");
}

#[tokio::test]
async fn redirect_of_the_card_is_not_followed() {
    let elsewhere = silent();
    let target = Running::start(&elsewhere).await;
    let url = format!("http://{}/.well-known/agent-card.json", target.address);
    let script = silent().with_card(move |_| Redirect::temporary(&url).into_response());
    let running = Running::start(&script).await;
    let error = connect(&running.entry()).await.unwrap_err();
    assert!(matches!(error, ClientError::Http { status: 307, .. }), "{error:?}");
    assert!(elsewhere.seen().is_empty());
}

#[tokio::test]
async fn oversized_card_is_refused() {
    let long = "x".repeat(1 << 20);
    let script = silent().with_card(move |_| card(&json!({"description": long})).into_response());
    let running = Running::start(&script).await;
    let error = connect(&running.entry()).await.unwrap_err();
    assert_eq!(error.too_large(), Some(1 << 20));
}

#[tokio::test]
async fn nobody_there_is_readable() {
    let running = Running::start(&silent()).await;
    let (entry, address) = (running.entry(), running.address);
    let config = ClientConfig::default();
    drop(running);
    // The port is closed as soon as the server's task is gone.
    let error = loop {
        match connect_with(&entry, network(), &config).await {
            Err(error) if error.to_string().contains("failed to connect") => break error,
            Ok(_) | Err(_) => tokio::task::yield_now().await,
        }
    };
    let text = error.to_string();
    let start = format!("Could not reach agent \"travel-bot\": failed to connect to {address}: ");
    assert!(text.starts_with(&start), "{text}");
    assert!(error.is_transient() && !error.may_have_arrived());
}

fn extended() -> Script {
    let offer = json!({"capabilities": {"extendedAgentCard": true}});
    Script::new(|seen| match seen.body["method"].as_str().unwrap() {
        "GetExtendedAgentCard" => result(seen, &card(&json!({"name": "Extended"})).0),
        _ => StatusCode::NO_CONTENT.into_response(),
    })
    .with_card(move |_| card(&offer).into_response())
}

#[tokio::test]
async fn extended_card_is_used_when_there_is_a_key() {
    let script = extended();
    let running = Running::start(&script).await;
    let agent = connect(&keyed(running.entry())).await.unwrap();
    assert_eq!(agent.card().name, "Extended");
}

#[tokio::test]
async fn extended_card_is_not_asked_for_without_a_key() {
    let script = extended();
    let (_running, agent) = connected(&script).await;
    assert_eq!((agent.card().name.as_str(), script.calls().len()), ("Test agent", 0));
}

#[tokio::test]
async fn public_card_stays_when_the_extended_one_fails() {
    let offer = json!({"capabilities": {"extendedAgentCard": true}});
    let script = Script::new(|seen| error(seen, &json!({"code": -32007, "message": "none"})))
        .with_card(move |_| card(&offer).into_response());
    let running = Running::start(&script).await;
    let agent = connect(&keyed(running.entry())).await.unwrap();
    assert_eq!((agent.card().name.as_str(), script.calls().len()), ("Test agent", 1));
}

async fn served(entry: &AgentEntry, config: &ClientConfig) -> Result<ServedCard, ClientError> {
    let keys = plain_keys();
    let reading = RemoteAgent::served_card(entry, network(), &keys, config);
    tokio::time::timeout(LIMIT, reading).await.unwrap()
}

#[tokio::test]
async fn a_card_is_had_as_it_is_served_also_if_it_is_of_no_use() {
    let script = silent().with_card(|_| {
        let headers =
            [("content-type", "text/html"), ("cache-control", "public"), ("etag", "\"1\"")];
        (headers, axum::response::AppendHeaders([("cache-control", "max-age=5")]), "{ <html>\n")
            .into_response()
    });
    let running = Running::start(&script).await;
    let card = served(&keyed(running.entry()), &ClientConfig::default()).await.unwrap();
    let headers = CardHeaders {
        content_type: Some("text/html".to_owned()),
        cache_control: Some("public, max-age=5".to_owned()),
        etag: Some("\"1\"".to_owned()),
    };
    assert_eq!(card, ServedCard { text: "{ <html>\n".to_owned(), headers });
    assert_eq!((script.seen().len(), script.seen()[0].header("x-api-key")), (1, None));
    for (status, expected) in [(404, "there is none at"), (304, "was not asked"), (500, "HTTP 500")]
    {
        let status = StatusCode::from_u16(status).unwrap();
        let script = silent().with_card(move |_| status.into_response());
        let running = Running::start(&script).await;
        let error = served(&running.entry(), &ClientConfig::default()).await.unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[tokio::test]
async fn what_a_served_card_repeats_of_a_key_is_masked() {
    let script = silent().with_card(|_| {
        let headers = [("content-type", KEY), ("cache-control", KEY), ("etag", KEY)];
        (headers, format!("{{\"name\": \"{KEY}\"}}")).into_response()
    });
    let running = Running::start(&script).await;
    for shows_secrets in [false, true] {
        let config = ClientConfig { shows_secrets, ..ClientConfig::default() };
        let ServedCard { text, headers } = served(&keyed(running.entry()), &config).await.unwrap();
        let told = [Some(text), headers.content_type, headers.cache_control, headers.etag];
        for told in told.map(Option::unwrap) {
            assert_eq!(told.contains(KEY), shows_secrets, "{told}");
        }
    }
}

#[tokio::test]
async fn an_extended_card_is_had_as_it_is_written() {
    let extended = json!({"name": "Extended", "more": [1.50], "url": "http://x/"});
    for interface in [
        json!({"url": "/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}),
        json!({"url": "/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "0.3"}),
        json!({"url": "/rest", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"}),
    ] {
        let answer = extended.clone();
        let script = Script::new(move |seen| match seen.body["method"].as_str() {
            Some("GetExtendedAgentCard" | "agent/getAuthenticatedExtendedCard") => {
                result(seen, &answer)
            }
            _ => axum::Json(answer.clone()).into_response(),
        });
        let offer = json!({"supportedInterfaces": [
            {"url": "/a2a", "protocolBinding": "GRPC", "protocolVersion": "1.0"}, interface]});
        let script = script.with_card(move |_| card(&offer).into_response());
        let running = Running::start(&script).await;
        let agent = connect(&keyed(running.entry())).await.unwrap();
        assert_eq!(agent.interface_index(), 1);
        assert_eq!(agent.extended_card_text().await.unwrap().to_value(), extended, "{interface}");
        assert_eq!(script.calls()[0].header("x-api-key"), Some(KEY));
    }
}
