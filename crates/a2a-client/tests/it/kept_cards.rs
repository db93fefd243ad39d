//! Asking whether a card has changed, over sockets.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{
    http::StatusCode,
    response::{IntoResponse as _, Response},
};
use http::{HeaderName, HeaderValue};
use serde_json::json;
use volcanic_a2a_client::{
    AgentEntry, ClientConfig, ClientError, KeySource, RemoteAgent, plain_keys,
};
use volcanic_base::Secret;

use crate::agent::{LIMIT, Running, Script, Seen, card, connect, keyed, network};

const MODIFIED: &str = "Mon, 30 Nov 2026 12:00:00 GMT";

async fn again(agent: &RemoteAgent, entry: &AgentEntry) -> Result<RemoteAgent, ClientError> {
    let config = ClientConfig::default();
    let connecting = agent.reconnect(entry, network(), plain_keys(), &config);
    tokio::time::timeout(LIMIT, connecting).await.unwrap()
}

/// An agent whose card has these headers, and which says that it has not changed to whoever repeats one of its
/// validators.
fn agent(headers: &'static [(&'static str, &'static str)]) -> Script {
    Script::new(|_| StatusCode::NO_CONTENT.into_response()).with_card(move |seen| {
        let told = |asked: &str, told: &str| {
            let ours = headers.iter().find(|(name, _)| *name == told);
            ours.is_some_and(|(_, value)| seen.header(asked) == Some(value))
        };
        let is_known = told("if-none-match", "etag") || told("if-modified-since", "last-modified");
        if is_known {
            return StatusCode::NOT_MODIFIED.into_response();
        }
        with_headers(card(&json!({})).into_response(), headers)
    })
}

fn with_headers(mut response: Response, headers: &[(&'static str, &'static str)]) -> Response {
    for (name, value) in headers {
        let name = HeaderName::from_static(name);
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// The validators that came with each request for the card.
fn asked(script: &Script) -> Vec<(Option<String>, Option<String>)> {
    let header = |seen: &Seen, name: &str| seen.header(name).map(str::to_owned);
    let seen = script.seen();
    let asked =
        seen.iter().map(|seen| (header(seen, "if-none-match"), header(seen, "if-modified-since")));
    asked.collect()
}

#[tokio::test]
async fn unchanged_card_is_not_sent_again() {
    for (headers, expected) in [
        (&[("etag", "W/\"1\"")][..], (Some("W/\"1\"".to_owned()), None)),
        (&[("last-modified", MODIFIED)][..], (None, Some(MODIFIED.to_owned()))),
        (
            &[("etag", "\"a\""), ("last-modified", MODIFIED)][..],
            (Some("\"a\"".to_owned()), Some(MODIFIED.to_owned())),
        ),
    ] {
        let script = agent(headers);
        let running = Running::start(&script).await;
        let mut agent = connect(&running.entry()).await.unwrap();
        for _ in 0..2 {
            agent = again(&agent, &running.entry()).await.unwrap();
            assert_eq!(agent.card().name, "Test agent");
        }
        assert_eq!(asked(&script), [(None, None), expected.clone(), expected]);
    }
}

#[tokio::test]
async fn changed_card_takes_the_place_of_the_old_one() {
    let version = Arc::new(AtomicUsize::new(0));
    let script = Script::new(|_| StatusCode::NO_CONTENT.into_response()).with_card(move |_| {
        let number = version.fetch_add(1, Ordering::SeqCst);
        let mut response = card(&json!({"name": format!("Version {number}")})).into_response();
        let etag = HeaderValue::from_str(&format!("\"{number}\"")).unwrap();
        response.headers_mut().insert("etag", etag);
        response
    });
    let running = Running::start(&script).await;
    let first = connect(&running.entry()).await.unwrap();
    let second = again(&first, &running.entry()).await.unwrap();
    let third = again(&second, &running.entry()).await.unwrap();
    assert_eq!(
        (first.card().name.as_str(), third.card().name.as_str()),
        ("Version 0", "Version 2")
    );
    let tags: Vec<_> = asked(&script).into_iter().map(|(tag, _)| tag).collect();
    assert_eq!(tags, [None, Some("\"0\"".to_owned()), Some("\"1\"".to_owned())]);
}

#[tokio::test]
async fn card_is_asked_for_whole_when_there_is_nothing_to_ask_by() {
    for headers in [&[][..], &[("etag", "\"1\""), ("cache-control", "no-store")][..]] {
        let script = agent(headers);
        let running = Running::start(&script).await;
        let first = connect(&running.entry()).await.unwrap();
        again(&first, &running.entry()).await.unwrap();
        assert_eq!(asked(&script), [(None, None), (None, None)]);
    }
}

#[tokio::test]
async fn card_that_has_not_changed_is_an_error_if_nobody_asked_that() {
    let script = agent(&[]).with_card(|_| StatusCode::NOT_MODIFIED.into_response());
    let running = Running::start(&script).await;
    let error = connect(&running.entry()).await.unwrap_err();
    let text = "The card of agent \"travel-bot\" cannot be used: the agent says that it has not changed, but was not asked.";
    assert_eq!(error.to_string(), text);
}

#[tokio::test]
async fn kept_card_serves_no_other_entry_key_or_origin() {
    let script = agent(&[("etag", "\"1\"")]);
    let (running, other) = (Running::start(&script).await, Running::start(&script).await);
    let first = connect(&keyed(running.entry())).await.unwrap();
    let other_key = KeySource::Plain(Secret::new("k_another_1a2b3c"));
    let mut described = keyed(running.entry());
    described.description = Some("Another".to_owned());
    for entry in [
        running.entry(),
        AgentEntry { key: Some(other_key), ..running.entry() },
        keyed(other.entry()),
        described,
    ] {
        again(&first, &entry).await.unwrap();
    }
    assert_eq!(asked(&script), vec![(None, None); 5]);
    // The same entry, whose key is another one by now.
    let config = ClientConfig::default();
    let resolved = Arc::new(|_: &KeySource| Ok(Secret::new("k_renewed_4d5e6f")));
    first.reconnect(&keyed(running.entry()), network(), resolved, &config).await.unwrap();
    assert_eq!(asked(&script), vec![(None, None); 6]);
    again(&first, &keyed(running.entry())).await.unwrap();
    assert_eq!(asked(&script)[6], (Some("\"1\"".to_owned()), None));
}

#[tokio::test(start_paused = true)]
async fn card_counts_as_long_as_the_agent_says() {
    let transport = |headers: &'static [(&'static str, &'static str)]| {
        Arc::new(volcanic_net::InMemory::new(agent(headers).router()))
    };
    for (headers, minutes) in [
        (&[][..], 60),
        (&[("cache-control", "max-age=600")][..], 10),
        (&[("cache-control", "no-cache")][..], 1),
    ] {
        let entry = crate::agent::entry("http://a.example");
        let config = ClientConfig::default();
        let agent = RemoteAgent::connect(&entry, transport(headers), plain_keys(), &config);
        let agent = agent.await.unwrap();
        tokio::time::advance(Duration::from_secs(minutes * 60 - 1)).await;
        assert!(agent.is_card_fresh(), "{headers:?}");
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(!agent.is_card_fresh(), "{headers:?}");
    }
}
