//! Following a task.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{
    body::Body,
    http::StatusCode,
    response::{IntoResponse as _, Response},
};
use futures::{StreamExt as _, stream};
use serde_json::json;
use tokio::sync::Notify;
use volcanic_a2a_client::{ClientConfig, ClientError, EventStream, TaskHint};
use volcanic_a2a_types::{
    A2aErrorKind, Message, Part, SendMessageRequest, StreamResponse, TaskState,
};
use volcanic_base::Secret;
use volcanic_net::InMemory;

use crate::agent::{
    KEY, LIMIT, Running, Script, Seen, card, connect, connect_with, connected, entry, error, event,
    event_stream, keyed, result, task,
};

fn update(task: &str, state: &str) -> serde_json::Value {
    json!({"statusUpdate": {"taskId": task, "contextId": "c9", "status": {"state": format!("TASK_STATE_{state}")}}})
}

/// Everything that comes, under the limit.
async fn all(events: EventStream) -> Vec<Result<StreamResponse, ClientError>> {
    tokio::time::timeout(LIMIT, events.collect()).await.unwrap()
}

fn states(events: &[Result<StreamResponse, ClientError>]) -> Vec<String> {
    events
        .iter()
        .map(|event| match event {
            Ok(event) => event.status().map_or("-".to_owned(), |status| status.state.label()),
            Err(error) => error.to_string(),
        })
        .collect()
}

/// What following a task gives when the agent answers so.
async fn followed(
    answer: impl Fn(&Seen) -> Response + Send + Sync + 'static,
) -> Vec<Result<StreamResponse, ClientError>> {
    let (_running, agent) = connected(&Script::new(answer)).await;
    all(agent.subscribe(&"t1".into()).await.unwrap()).await
}

#[tokio::test]
async fn events_come_in_order_until_the_agent_closes() {
    let script = Script::new(|seen| {
        let events = [
            ": hello\r\n\r\n".to_owned(),
            event(seen, &json!({"task": task("t1", "WORKING")})),
            event(seen, &update("t1", "WORKING")),
            event(seen, &update("t1", "COMPLETED")).trim_end().to_owned(),
        ];
        event_stream(Body::from(events.concat()))
    });
    let (_running, agent) = connected(&script).await;
    let events = all(agent.subscribe(&"t1".into()).await.unwrap()).await;
    assert_eq!(states(&events), ["working", "working", "completed"]);
    let call = &script.calls()[0];
    assert_eq!(call.header("accept"), Some("text/event-stream"));
    assert_eq!(
        (&call.body["method"], &call.body["params"]["id"]),
        (&json!("SubscribeToTask"), &json!("t1"))
    );
}

#[tokio::test]
async fn message_is_followed() {
    let script = Script::new(|seen| {
        let events = [
            event(seen, &json!({"task": task("t1", "WORKING")})),
            event(seen, &update("t1", "COMPLETED")),
        ];
        event_stream(Body::from(events.concat()))
    });
    let (_running, agent) = connected(&script).await;
    let said = |context: &str| {
        let message = Message::user("m1", vec![Part::text("hi")]).with_context(context);
        SendMessageRequest::new(message)
    };
    let events = all(agent.send_streaming_message(said("c1")).await.unwrap()).await;
    assert_eq!(states(&events), ["working", "completed"]);
    let call = &script.calls()[0];
    assert_eq!(
        (&call.body["method"], &call.body["params"]["message"]["messageId"]),
        (&json!("SendStreamingMessage"), &json!("m1"))
    );
    let events = all(agent.send_streaming_message(said("c2")).await.unwrap()).await;
    assert!(states(&events)[0].ends_with("it is about another context."), "{events:?}");
}

#[tokio::test]
async fn direct_reply_is_the_only_event() {
    let reply =
        json!({"message": {"messageId": "r", "role": "ROLE_AGENT", "parts": [{"text": "yo"}]}});
    let script = Script::new(move |seen| event_stream(Body::from(event(seen, &reply))));
    let (_running, agent) = connected(&script).await;
    let request = SendMessageRequest::new(Message::user("m1", vec![Part::text("hi")]));
    let events = all(agent.send_streaming_message(request).await.unwrap()).await;
    assert!(matches!(events.as_slice(), [Ok(StreamResponse::Message(_))]), "{events:?}");
}

#[tokio::test]
async fn refusal_before_the_stream_is_an_ordinary_error() {
    let refuse = Script::new(|seen| error(seen, &json!({"code": -32004, "message": "finished"})));
    let (_running, agent) = connected(&refuse).await;
    let error = agent.subscribe(&"t1".into()).await.unwrap_err();
    assert_eq!(error.rpc_kind(), Some(A2aErrorKind::UnsupportedOperation));
}

#[tokio::test]
async fn answer_that_is_no_stream_is_refused() {
    let script = Script::new(|seen| result(seen, &task("t1", "WORKING")));
    let (_running, agent) = connected(&script).await;
    let error = agent.subscribe(&"t1".into()).await.unwrap_err();
    assert!(error.to_string().ends_with("it is not a stream of events."), "{error}");
    let script = Script::new(|_| StatusCode::BAD_GATEWAY.into_response());
    let (_running, agent) = connected(&script).await;
    let error = agent.subscribe(&"t1".into()).await.unwrap_err();
    assert!(matches!(error, ClientError::Http { status: 502, .. }), "{error:?}");
}

#[tokio::test]
async fn error_in_the_stream_ends_it_with_or_without_a_name() {
    for name in ["event: error\n", ""] {
        let events = followed(move |seen| {
            let error = json!({"jsonrpc": "2.0", "id": seen.body["id"], "error": {"code": -32603, "message": "broke"}});
            let text = format!(
                "{}{name}data: {error}\n\n{}",
                event(seen, &update("t1", "WORKING")),
                event(seen, &update("t1", "COMPLETED"))
            );
            event_stream(Body::from(text))
        })
        .await;
        assert_eq!(states(&events), ["working", "Agent \"travel-bot\" refused: broke (-32603)"]);
    }
}

#[tokio::test]
async fn events_of_another_task_or_request_end_the_stream() {
    let events =
        followed(|seen| event_stream(Body::from(event(seen, &update("t2", "COMPLETED"))))).await;
    assert!(states(&events)[0].ends_with("it is about another task."), "{events:?}");
    let events = followed(|seen| {
        let mut other = seen.clone();
        other.body["id"] = json!(77);
        event_stream(Body::from(event(&other, &update("t1", "COMPLETED"))))
    })
    .await;
    assert!(states(&events)[0].ends_with("it belongs to another request."), "{events:?}");
}

#[tokio::test]
async fn stream_cut_in_the_middle_is_an_error_after_what_came() {
    let cut = Arc::new(Notify::new());
    let cutting = Arc::clone(&cut);
    let script = Script::new(move |seen| {
        let first = event(seen, &update("t1", "WORKING"));
        let cut = Arc::clone(&cutting);
        let broken = stream::once(async move {
            cut.notified().await;
            Err(std::io::Error::other("cut"))
        });
        event_stream(Body::from_stream(stream::once(async { Ok(first) }).chain(broken)))
    });
    let (_running, agent) = connected(&script).await;
    let mut events = agent.subscribe(&"t1".into()).await.unwrap();
    let first = tokio::time::timeout(LIMIT, events.next()).await.unwrap().unwrap().unwrap();
    assert_eq!(first.status().unwrap().state, TaskState::Working);
    cut.notify_one();
    let rest = all(events).await;
    assert_eq!(rest.len(), 1);
    let error = rest[0].as_ref().unwrap_err();
    assert!(matches!(error, ClientError::Unreachable { .. }), "{error:?}");
    assert!(error.is_transient());
}

#[tokio::test]
async fn key_in_an_event_is_masked() {
    let script = Script::new(|seen| {
        let key = seen.header("x-api-key").unwrap();
        let mut update = update("t1", "WORKING");
        update["statusUpdate"]["metadata"] = json!({"key": key});
        event_stream(Body::from(event(seen, &update)))
    });
    let running = Running::start(&script).await;
    let agent = connect(&keyed(running.entry())).await.unwrap();
    let events = all(agent.subscribe(&"t1".into()).await.unwrap()).await;
    let shown = format!("{events:?}");
    assert!(shown.contains("***") && !shown.contains(KEY), "{shown}");
}

#[tokio::test]
async fn secret_of_an_earlier_call_is_masked_as_long_as_the_stream_is_there() {
    const TOKEN: &str = "t_planted_8d14be";
    let script = Script::new(|seen| {
        let mut update = update("t1", "WORKING");
        update["statusUpdate"]["metadata"] = json!({"token": TOKEN});
        event_stream(Body::from(event(seen, &update)))
    });
    let (_running, agent) = connected(&script).await;
    let task = "t1".into();
    let concealing = |secret: &str| agent.clone().concealing(Some(&Secret::new(secret)));
    let (first, second) = (concealing(TOKEN), concealing(TOKEN));
    let events = first.subscribe(&task).await.unwrap();
    let hints = second.subscribe_for_hints(&task).await.unwrap();
    drop((first, second));
    for other in 0..100 {
        drop(concealing(&format!("token number {other}")));
    }
    let shown = format!("{:?} {:?}", all(events).await, hints.collect::<Vec<_>>().await);
    assert!(shown.matches("***").count() == 2 && !shown.contains(TOKEN), "{shown}");
}

/// Follows in memory what `body` gives, under `config`.
async fn in_memory(
    config: &ClientConfig,
    body: impl Fn(&Seen) -> Body + Send + Sync + 'static,
) -> EventStream {
    let script = Script::new(move |seen| event_stream(body(seen)));
    let transport = Arc::new(InMemory::new(script.router()));
    let agent = connect_with(&entry("http://a.example"), transport, config).await.unwrap();
    agent.subscribe(&"t1".into()).await.unwrap()
}

fn then_silence(text: String) -> Body {
    Body::from_stream(stream::once(async { Ok::<_, Infallible>(text) }).chain(stream::pending()))
}

#[tokio::test(start_paused = true)]
async fn silence_between_events_is_waited_out() {
    let config = ClientConfig::default();
    let mut events =
        in_memory(&config, |seen| then_silence(event(seen, &update("t1", "WORKING")))).await;
    events.next().await.unwrap().unwrap();
    tokio::time::timeout(Duration::from_hours(24), events.next()).await.unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn silence_inside_an_event_ends_the_stream() {
    let config = ClientConfig::default();
    let mut events = in_memory(&config, |_| then_silence("data: {\"json".to_owned())).await;
    let start = tokio::time::Instant::now();
    let error = events.next().await.unwrap().unwrap_err();
    assert!(matches!(error, ClientError::TimedOut { .. }), "{error:?}");
    assert_eq!(start.elapsed(), Duration::from_mins(1));
    assert!(events.next().await.is_none());
}

#[tokio::test]
async fn bombs_are_refused() {
    let config = ClientConfig {
        answer_limit: 1000,
        comment_limit: 100,
        stream_limit: 4000,
        ..ClientConfig::default()
    };
    for (piece, limit) in
        [("data: xxxxxxxx", 1000), ("data: x\n", 1000), (": xxxx", 100), (": x\n\n", 100)]
    {
        let endless = move |_: &Seen| {
            Body::from_stream(stream::repeat_with(move || Ok::<_, Infallible>(piece.to_owned())))
        };
        let mut events = in_memory(&config, endless).await;
        let next = tokio::time::timeout(LIMIT, events.next()).await.unwrap();
        let error = next.unwrap().unwrap_err();
        assert_eq!(error.too_large(), Some(limit), "{piece:?}: {error}");
    }
}

#[tokio::test]
async fn agent_without_streaming_says_so_on_its_card() {
    let script = Script::new(|seen| result(seen, &task("t1", "WORKING")))
        .with_card(|_| card(&json!({"capabilities": {}})).into_response());
    let (_running, agent) = connected(&script).await;
    assert_eq!((agent.streams(), agent.pushes()), (false, false));
}

#[tokio::test]
async fn a_hint_is_told_of_an_event_however_large_it_is() {
    let large = |size: usize| {
        let text = json!([{"text": "x".repeat(size)}]);
        let artifact = json!({"artifactId": "a", "parts": text});
        json!({"artifactUpdate": {"taskId": "t1", "contextId": "c9", "artifact": artifact}})
    };
    let script = Script::new(move |seen| {
        let events = [
            event(seen, &update("t1", "WORKING")),
            event(seen, &large(60_000)),
            event(seen, &large(70_000)),
            event(seen, &large(10_000_000)),
            event(seen, &update("t1", "COMPLETED")),
            event(seen, &update("t2", "COMPLETED")),
            event(seen, &update("t1", "COMPLETED")),
        ];
        event_stream(Body::from(events.concat()))
    });
    let (_running, agent) = connected(&script).await;
    let hints = agent.subscribe_for_hints(&"t1".into()).await.unwrap();
    let hints: Vec<_> = tokio::time::timeout(LIMIT, hints.collect()).await.unwrap();
    let shown: Vec<String> = hints
        .iter()
        .map(|hint: &Result<TaskHint, ClientError>| match hint {
            Ok(TaskHint::Event(StreamResponse::ArtifactUpdate(_))) => "artifact".to_owned(),
            Ok(TaskHint::Event(event)) => event.status().unwrap().state.label(),
            Ok(TaskHint::Large) => "large".to_owned(),
            Err(error) => error.to_string(),
        })
        .collect();
    let other =
        "Agent \"travel-bot\" gave an answer that cannot be used: it is about another task.";
    assert_eq!(shown, ["working", "artifact", "large", "large", "completed", other]);
}
