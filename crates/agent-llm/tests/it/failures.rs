//! Replies that fail, and how.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use volcanic_agent_core::{Block, Model, ModelErrorKind, ModelEvent, PartialReply, Usage};
use volcanic_agent_llm::{OpenAiConfig, openai_chat};
use volcanic_base::Secret;

use crate::server::{Answer, KEY, Server, ask, chunk, collect, failure, finish, prompt};

fn text(text: &str) -> PartialReply {
    PartialReply { blocks: vec![Block::Text { text: text.to_owned() }], usage: Usage::default() }
}

#[tokio::test]
async fn stream_without_an_end_is_truncated_and_keeps_what_came() {
    let server = Server::start([Answer::stream(&[chunk(&json!({ "content": "Hal" }))])]).await;
    let (error, partial) = failure(&ask(&server).await);
    assert_eq!((error.kind, error.kind.is_transient()), (ModelErrorKind::Truncated, true));
    assert_eq!(partial, text("Hal"));
}

#[tokio::test]
async fn done_line_without_a_finish_reason_is_truncated() {
    let server =
        Server::start([Answer::stream(&[chunk(&json!({ "content": "Hal" }))]).done()]).await;
    assert_eq!(failure(&ask(&server).await).0.kind, ModelErrorKind::Truncated);
}

#[tokio::test]
async fn broken_connection_is_truncated_and_keeps_what_came() {
    let arrived = Arc::new(Notify::new());
    let answer = Answer::stream(&[chunk(&json!({ "content": "Hal" }))]).then_break(&arrived);
    let server = Server::start([answer]).await;
    let mut stream = server.model().stream(prompt("hi"), CancellationToken::new()).await;
    assert_eq!(stream.next().await, Some(ModelEvent::Start { response_id: None }));
    arrived.notify_one();
    let rest: Vec<ModelEvent> = stream.collect().await;
    let (error, partial) = failure(&rest);
    assert_eq!(error.kind, ModelErrorKind::Truncated, "{error}");
    assert_eq!(partial, text("Hal"));
}

#[tokio::test]
async fn rate_limit_carries_the_wait() {
    let body =
        r#"{"error":{"type":"requests","code":"rate_limit_exceeded","message":"Slow down"}}"#;
    let server = Server::start([Answer::body(429, body).header("retry-after", "7")]).await;
    let (error, partial) = failure(&ask(&server).await);
    assert_eq!(error.kind, ModelErrorKind::RateLimited);
    assert_eq!((error.status, error.retry_after), (Some(429), Some(Duration::from_secs(7))));
    assert_eq!(error.message, "the provider is asked too often (429): Slow down");
    assert_eq!(partial, PartialReply::default());
}

#[tokio::test]
async fn spent_quota_is_not_worth_another_attempt() {
    let body =
        r#"{"error":{"type":"insufficient_quota","message":"You exceeded your current quota"}}"#;
    let server = Server::start([Answer::body(429, body).header("retry-after", "7")]).await;
    let (error, _) = failure(&ask(&server).await);
    assert_eq!((error.kind, error.kind.is_transient()), (ModelErrorKind::Quota, false));
}

#[tokio::test]
async fn refused_key_shows_nowhere() {
    let body = format!(r#"{{"error":{{"message":"Incorrect API key provided: {KEY}"}}}}"#);
    let server = Server::start([Answer::body(401, &body)]).await;
    let (error, _) = failure(&ask(&server).await);
    assert_eq!((error.kind, error.status), (ModelErrorKind::Auth, Some(401)));
    assert_eq!(error.message, "the provider refused the key (401)");
}

#[tokio::test]
async fn echoed_key_is_blotted_out() {
    let body = format!(r#"{{"error":{{"message":"bad request by {KEY}"}}}}"#);
    let server = Server::start([Answer::body(400, &body)]).await;
    let (error, _) = failure(&ask(&server).await);
    assert_eq!(error.message, "the provider refused the request (400): bad request by ***");
}

#[tokio::test]
async fn error_in_mid_stream_is_classified_and_keeps_what_came() {
    let overloaded = json!({ "error": { "type": "overloaded_error", "message": "Overloaded" } });
    let server =
        Server::start([Answer::stream(&[chunk(&json!({ "content": "Hal" })), overloaded])]).await;
    let (error, partial) = failure(&ask(&server).await);
    assert_eq!((error.kind, error.status), (ModelErrorKind::Overloaded, None));
    assert_eq!(error.message, "the provider has trouble: Overloaded");
    assert_eq!(partial, text("Hal"));
}

#[tokio::test]
async fn reply_that_a_gateway_ends_with_an_error_fails() {
    let server =
        Server::start([
            Answer::stream(&[chunk(&json!({ "content": "Hal" })), finish("error")]).done()
        ])
        .await;
    let (error, partial) = failure(&ask(&server).await);
    assert_eq!(error.kind, ModelErrorKind::Overloaded);
    assert_eq!(partial, text("Hal"));
}

#[tokio::test]
async fn unknown_reason_to_end_is_a_failure_not_an_answer() {
    let answer =
        Answer::stream(&[chunk(&json!({ "content": "Hal" })), finish("recitation")]).done();
    let server = Server::start([answer]).await;
    let (error, _) = failure(&ask(&server).await);
    assert_eq!((error.kind, error.kind.is_transient()), (ModelErrorKind::BadRequest, false));
    assert!(error.message.contains("recitation"), "{}", error.message);
}

#[tokio::test]
async fn frame_that_is_no_json_fails() {
    let answer =
        Answer::stream(&[chunk(&json!({ "content": "Hal" }))]).raw("data: {oops\n\n").done();
    let server = Server::start([answer]).await;
    let (error, _) = failure(&ask(&server).await);
    assert_eq!(error.kind, ModelErrorKind::Transport);
}

#[tokio::test]
async fn cancel_ends_the_reply_and_the_connection() {
    let answer = Answer::stream(&[chunk(&json!({ "content": "Hal" }))]).then_silence();
    let server = Server::start([answer]).await;
    let cancel = CancellationToken::new();
    let mut stream = server.model().stream(prompt("hi"), cancel.clone()).await;
    assert_eq!(stream.next().await, Some(ModelEvent::Start { response_id: None }));
    let delta = ModelEvent::TextDelta { block: 0, text: "Hal".to_owned() };
    assert_eq!(stream.next().await, Some(delta));
    cancel.cancel();
    let rest: Vec<ModelEvent> = stream.collect().await;
    let (error, partial) = failure(&rest);
    assert_eq!((rest.len(), error.kind, partial), (1, ModelErrorKind::Aborted, text("Hal")));
    server.answers_ended(1).await;
}

#[tokio::test]
async fn cancel_before_anything_came_sends_nothing() {
    let server = Server::start([]).await;
    let cancel = CancellationToken::new();
    cancel.cancel();
    let events = collect(&*server.model(), prompt("hi"), cancel).await;
    let (error, partial) = failure(&events);
    assert_eq!((error.kind, partial), (ModelErrorKind::Aborted, PartialReply::default()));
    assert_eq!(server.requests().len(), 0);
}

#[tokio::test]
async fn dropped_stream_closes_the_connection() {
    let answer = Answer::stream(&[chunk(&json!({ "content": "Hal" }))]).then_silence();
    let server = Server::start([answer]).await;
    let mut stream = server.model().stream(prompt("hi"), CancellationToken::new()).await;
    stream.next().await.unwrap();
    drop(stream);
    server.answers_ended(1).await;
}

#[tokio::test]
async fn silent_stream_ends_at_the_idle_limit() {
    let answer = Answer::stream(&[chunk(&json!({ "content": "Hal" }))]).then_silence();
    let server = Server::start([answer]).await;
    // The real limit is minutes; this one is scaled down.
    let config = OpenAiConfig { idle_timeout: Duration::from_millis(200), ..server.config() };
    let model = openai_chat(config).unwrap();
    let events = collect(&*model, prompt("hi"), CancellationToken::new()).await;
    let (error, partial) = failure(&events);
    assert_eq!(error.kind, ModelErrorKind::Transport);
    assert_eq!(error.message, "the answer fell silent for 0.2 s");
    assert_eq!(partial, text("Hal"));
    server.answers_ended(1).await;
}

#[tokio::test]
async fn server_that_never_answers_ends_at_the_header_limit() {
    // Takes connections and says nothing.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let config = OpenAiConfig {
        header_timeout: Duration::from_millis(200),
        ..OpenAiConfig::new(url, Some(Secret::new(KEY)), "test-1")
    };
    let model = openai_chat(config).unwrap();
    let events = collect(&*model, prompt("hi"), CancellationToken::new()).await;
    let (error, _) = failure(&events);
    assert_eq!(error.kind, ModelErrorKind::Transport);
    assert_eq!(error.message, "no answer began within 0.2 s");
}

#[tokio::test]
async fn unreachable_server_is_named_without_its_address() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let config = OpenAiConfig::new(format!("http://127.0.0.1:{port}/v1"), None, "test-1");
    let model = openai_chat(config).unwrap();
    let events = collect(&*model, prompt("hi"), CancellationToken::new()).await;
    let (error, _) = failure(&events);
    assert_eq!(error.kind, ModelErrorKind::Transport);
    assert!(error.message.starts_with("the provider cannot be reached: "), "{}", error.message);
    assert!(!error.message.contains("/v1"), "{}", error.message);
}

#[tokio::test]
async fn redirect_is_refused_and_the_key_goes_nowhere() {
    let other = Server::start([]).await;
    let location: &'static str =
        Box::leak(format!("http://{}/v1/chat/completions", other.host()).into());
    let server = Server::start([Answer::body(307, "").header("location", location)]).await;
    let (error, _) = failure(&ask(&server).await);
    assert_eq!((error.kind, error.status), (ModelErrorKind::BadRequest, Some(307)));
    assert_eq!(other.requests().len(), 0);
}

#[tokio::test]
async fn page_instead_of_a_stream_hints_at_the_base_url() {
    let server =
        Server::start([Answer::body(200, "<html>").header("content-type", "text/html")]).await;
    let (error, _) = failure(&ask(&server).await);
    assert_eq!(error.kind, ModelErrorKind::BadRequest);
    assert!(error.message.contains("base URL"), "{}", error.message);
}

#[tokio::test]
async fn model_goes_on_after_a_failure() {
    let fine = Answer::stream(&[chunk(&json!({ "content": "ok" })), finish("stop")]).done();
    let server = Server::start([Answer::body(503, "busy"), fine]).await;
    let model: &dyn Model = &*server.model();
    let events = collect(model, prompt("hi"), CancellationToken::new()).await;
    assert_eq!(failure(&events).0.kind, ModelErrorKind::Overloaded);
    let events = collect(model, prompt("hi"), CancellationToken::new()).await;
    assert!(matches!(events.last(), Some(ModelEvent::Done { .. })), "{events:?}");
}
