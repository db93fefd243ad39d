//! Reading the card.

use axum::{
    http::StatusCode,
    response::{IntoResponse as _, Redirect},
};
use serde_json::json;
use volcanic_a2a_client::{ClientConfig, ClientError};

use crate::agent::{
    Running, Script, card, connect, connect_with, connected, entry, error, keyed, network, result,
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
    for (answer, expected) in [
        (StatusCode::NOT_FOUND.into_response(), "there is none at http://"),
        ("<html>".into_response(), "it is not valid: expected value"),
        ("{}".into_response(), "it is not valid: `name`"),
        (card(&json!({"supportedInterfaces": []})).into_response(), "it names no interface"),
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
