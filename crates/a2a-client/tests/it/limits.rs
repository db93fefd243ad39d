//! What takes too long or is too much. In memory, where time is the test's.

use std::{sync::Arc, time::Duration};

use axum::{Router, body::Body, http::StatusCode, response::IntoResponse as _, routing::post};
use futures::{StreamExt as _, stream};
use serde_json::json;
use volcanic_a2a_client::{ClientConfig, ClientError};
use volcanic_net::{InMemory, Transport};

use crate::agent::{Script, card, connect_with, entry, result, task};

fn memory(router: Router) -> Arc<dyn Transport> {
    Arc::new(InMemory::new(router))
}

/// An agent whose calls are answered by a router of their own.
fn router(calls: Router) -> Router {
    calls.fallback(|| async { card(&json!({})) })
}

#[tokio::test(start_paused = true)]
async fn slow_answer_ends_after_the_call_timeout() {
    let calls = Router::new().route("/a2a", post(std::future::pending::<StatusCode>));
    let config = ClientConfig::default();
    let agent =
        connect_with(&entry("http://a.example"), memory(router(calls)), &config).await.unwrap();
    let start = tokio::time::Instant::now();
    let error = agent.get_task(&"t1".into(), None).await.unwrap_err();
    assert_eq!(start.elapsed(), Duration::from_mins(1));
    assert_eq!(error.to_string(), "Agent \"travel-bot\" did not answer in time.");
    assert!(error.is_transient() && error.may_have_arrived());
}

#[tokio::test(start_paused = true)]
async fn body_that_never_ends_counts_against_the_same_limit() {
    let body = || {
        Body::from_stream(
            stream::once(async { Ok::<_, StatusBroken>("{") }).chain(stream::pending()),
        )
    };
    let calls = Router::new().route("/a2a", post(move || async move { body() }));
    let config = ClientConfig::default();
    let agent =
        connect_with(&entry("http://a.example"), memory(router(calls)), &config).await.unwrap();
    let start = tokio::time::Instant::now();
    let error = agent.get_task(&"t1".into(), None).await.unwrap_err();
    assert!(matches!(error, ClientError::TimedOut { .. }), "{error:?}");
    assert_eq!(start.elapsed(), Duration::from_mins(1));
}

type StatusBroken = std::convert::Infallible;

#[tokio::test(start_paused = true)]
async fn slow_card_ends_after_its_own_timeout() {
    let silent = Router::new().fallback(std::future::pending::<StatusCode>);
    let config = ClientConfig::new(Duration::from_secs(3), 100);
    let start = tokio::time::Instant::now();
    let entry = entry("http://a.example");
    let error = connect_with(&entry, memory(silent), &config).await.unwrap_err();
    assert!(matches!(error, ClientError::TimedOut { .. }), "{error:?}");
    assert_eq!(start.elapsed(), Duration::from_secs(3));
}

#[tokio::test]
async fn oversized_answer_is_named_as_such() {
    let script = Script::new(|seen| {
        let mut big = task("t1", "COMPLETED");
        big["metadata"] = json!({"x": "y".repeat(1000)});
        result(seen, &big)
    });
    let mut config = ClientConfig { answer_limit: 1000, ..ClientConfig::default() };
    let agent =
        connect_with(&entry("http://a.example"), memory(script.router()), &config).await.unwrap();
    let error = agent.get_task(&"t1".into(), None).await.unwrap_err();
    assert_eq!(error.too_large(), Some(1000));
    assert_eq!(error.to_string(), "The answer of agent \"travel-bot\" is larger than 1000 bytes.");
    config.answer_limit = 2000;
    let agent =
        connect_with(&entry("http://a.example"), memory(script.router()), &config).await.unwrap();
    agent.get_task(&"t1".into(), None).await.unwrap();
}

#[tokio::test]
async fn compressed_answer_is_not_unpacked() {
    let calls = Router::new().route(
        "/a2a",
        post(|| async {
            ([("content-encoding", "gzip")], vec![0x1f_u8, 0x8b, 8, 0]).into_response()
        }),
    );
    let config = ClientConfig::default();
    let agent =
        connect_with(&entry("http://a.example"), memory(router(calls)), &config).await.unwrap();
    let error = agent.get_task(&"t1".into(), None).await.unwrap_err();
    assert!(matches!(error, ClientError::Unexpected { .. }), "{error:?}");
}
