//! Answers that are failures: statuses, redirects, errors of the protocol, and what cannot be read.

use std::panic::{self, AssertUnwindSafe};

use axum::{
    body::Body,
    http::StatusCode,
    response::{IntoResponse as _, Response},
};
use futures::{FutureExt as _, StreamExt as _};
use http::HeaderName;
use serde_json::{Value, json};
use volcanic_a2a_client::{AgentBinding, AgentEntry, ClientConfig, KeySource, RemoteAgent};
use volcanic_a2a_types::{
    AuthenticationInfo, ListTasksRequest, Message, Part, SendMessageRequest,
    TaskPushNotificationConfig,
};
use volcanic_base::Secret;

use super::{Key, Nothing, Path, path, seen};
use crate::agent::{
    KEY, Running, Script, Seen, card, connect_with, error, event_stream, keyed, network, result,
    task,
};

pub(super) static PATHS: [Path; 24] = [
    path("401", Nothing("the status alone is told"), |config| Box::pin(status(config, 401))),
    path("403", Nothing("the status alone is told"), |config| Box::pin(status(config, 403))),
    path("404", Nothing("the status alone is told"), |config| Box::pin(status(config, 404))),
    path("429", Nothing("status and pause are told"), |config| Box::pin(status(config, 429))),
    path("500", Nothing("the status alone is told"), |config| Box::pin(status(config, 500))),
    path("redirect", Nothing("where it leads is not told"), |config| Box::pin(status(config, 307))),
    path("card that is not there", Nothing("the status alone is told"), |config| {
        Box::pin(connecting(config, |_| echo(404)))
    }),
    path("card that wants a login", Nothing("the status alone is told"), |config| {
        Box::pin(connecting(config, |_| echo(401)))
    }),
    path("card that is not JSON", Nothing("where it breaks off is told"), |config| {
        Box::pin(connecting(config, |_| KEY.into_response()))
    }),
    path("card with a member of another type", Key, |config| {
        Box::pin(connecting(config, |_| card(&json!({"capabilities": KEY})).into_response()))
    }),
    path("card whose interface has an odd address", Key, |config| {
        Box::pin(connecting(config, |_| interface(&format!("file:///{KEY}"), "JSONRPC", "1.0")))
    }),
    path("card whose interface has a query", Nothing("a query is not told"), |config| {
        Box::pin(connecting(config, |_| {
            interface(&format!("file:///x?key={KEY}"), "JSONRPC", "1.0")
        }))
    }),
    path("card that speaks something else", Key, |config| {
        Box::pin(connecting(config, |_| interface("/a2a", KEY, KEY)))
    }),
    path("error of the protocol", Key, |config| Box::pin(refused(config, "message"))),
    path("data of an error", Key, |config| Box::pin(refused(config, "data"))),
    path("reason in an error's details", Key, |config| Box::pin(refused(config, "reason"))),
    path("metadata in an error's details", Key, |config| Box::pin(refused(config, "metadata"))),
    path("error of the protocol over HTTP+JSON", Key, |config| {
        Box::pin(async move {
            let script = Script::new(|_| {
                let body = json!({"error": {"code": 404, "status": "NOT_FOUND", "message": KEY, "details": [{
                    "@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "TASK_NOT_FOUND",
                    "domain": "a2a-protocol.org", "metadata": {"taskId": KEY}}]}});
                (StatusCode::NOT_FOUND, axum::Json(body)).into_response()
            })
            .with_card(|_| interface("/rest", "HTTP+JSON", "1.0"));
            let (_running, agent) = connected(&script, &config, |entry| AgentEntry {
                binding: Some(AgentBinding::HttpJson),
                ..entry
            })
            .await;
            seen::result(&agent.get_task(&"t1".into(), None).await)
        })
    }),
    path("result of another type", Key, |config| {
        Box::pin(call(config, |seen| result(seen, &json!(KEY))))
    }),
    path("state that is all that can be read", Key, |config| {
        Box::pin(call(config, |seen| {
            result(
                seen,
                &json!({"id": "t1", "status": {"state": KEY, "timestamp": []}, "artifacts": KEY}),
            )
        }))
    }),
    path("answer that is not JSON", Nothing("what is not understood is not told"), |config| {
        Box::pin(call(config, |_| format!("<html>{KEY}").into_response()))
    }),
    path("task that is another one", Nothing("the other id is not told"), |config| {
        Box::pin(call(config, |seen| result(seen, &task(KEY, "WORKING"))))
    }),
    path("what is told before a panic", Key, |config| Box::pin(panicking(config))),
    path("webhook that is refused with its token", Key, |config| Box::pin(webhook(config))),
];

/// Further secrets than the key, each sent and said back.
#[tokio::test]
async fn everything_secret_that_is_sent_is_masked_in_what_comes_back() {
    const HEADER: &str = "gate_planted_77aa01";
    const QUERY: &str = "query_planted_55bb02";
    for shows_secrets in [true, false] {
        let config = ClientConfig { shows_secrets, ..ClientConfig::default() };
        let script = Script::new(|seen| {
            let said = format!("{:?} {}", seen.headers, seen.query);
            error(seen, &json!({"code": -32603, "message": said}))
        })
        .with_card(|seen| {
            let url = format!("/a2a?{}", seen.query);
            interface(&url, "JSONRPC", "1.0")
        });
        let (_running, agent) = connected(&script, &config, |mut entry| {
            let gate = Secret::new(format!("Bearer {HEADER}"));
            entry.headers = vec![(HeaderName::from_static("x-gate"), KeySource::Plain(gate))];
            entry.url.set_query(Some(&format!("token={QUERY}")));
            entry
        })
        .await;
        let said = seen::result(&agent.get_task(&"t1".into(), None).await);
        for secret in [KEY, HEADER, QUERY] {
            assert_eq!(seen::is_spelled(&said, secret), shows_secrets, "{secret}: {said}");
        }
    }
}

async fn connected(
    script: &Script,
    config: &ClientConfig,
    change: impl Fn(AgentEntry) -> AgentEntry,
) -> (Running, RemoteAgent) {
    let running = Running::start(script).await;
    let entry = change(keyed(running.entry()));
    let agent = connect_with(&entry, network(), config).await.unwrap();
    (running, agent)
}

/// An answer with the key in reason, headers and body.
fn echo(status: u16) -> Response {
    let mut response = Response::new(Body::from(format!("{{\"error\":\"{KEY}\"}}")));
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    for name in ["location", "www-authenticate", "retry-after", "x-key", "set-cookie"] {
        response.headers_mut().insert(name, format!("/{KEY}?key={KEY}").parse().unwrap());
    }
    let reason = hyper::ext::ReasonPhrase::from_static(b"k_planted_3f9c2a");
    response.extensions_mut().insert(reason);
    response
}

fn interface(url: &str, binding: &str, version: &str) -> Response {
    let interface = json!({"url": url, "protocolBinding": binding, "protocolVersion": version});
    card(&json!({"supportedInterfaces": [interface]})).into_response()
}

async fn status(config: ClientConfig, status: u16) -> String {
    call(config, move |_| echo(status)).await
}

async fn connecting(
    config: ClientConfig,
    card: impl Fn(&Seen) -> Response + Send + Sync + 'static,
) -> String {
    let script = Script::new(|_| StatusCode::NOT_FOUND.into_response()).with_card(card);
    let running = Running::start(&script).await;
    let error = connect_with(&keyed(running.entry()), network(), &config).await.unwrap_err();
    seen::error(&error)
}

/// Every operation, each answered in the same way.
async fn call(
    config: ClientConfig,
    answer: impl Fn(&Seen) -> Response + Send + Sync + 'static,
) -> String {
    let (_running, agent) = connected(&Script::new(answer), &config, |entry| entry).await;
    let id = "t1".into();
    let message = || SendMessageRequest::new(Message::user("m1", vec![Part::text("hi")]));
    let mut seen = seen::result(&agent.get_task(&id, None).await.map(|_| ()));
    seen += &seen::result(&agent.cancel_task(&id).await.map(|_| ()));
    seen += &seen::result(&agent.list_tasks(ListTasksRequest::default()).await);
    seen += &seen::result(&agent.extended_card().await.map(|_| ()));
    seen += &seen::result(&agent.delete_push_config(&id, &"p1".into()).await);
    for opened in [agent.subscribe(&id).await, agent.send_streaming_message(message()).await] {
        match opened {
            Ok(mut events) => seen += &seen::result(&events.next().await.unwrap()),
            Err(error) => seen += &seen::error(&error),
        }
    }
    seen
}

async fn refused(config: ClientConfig, place: &'static str) -> String {
    call(config, move |seen| {
        let mut info = json!({"@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": "X", "domain": "a2a-protocol.org", "metadata": {}});
        let mut refusal = json!({"code": -32603, "message": "no"});
        match place {
            "message" => refusal["message"] = json!(format!("the key {KEY} is odd")),
            "data" => refusal["data"] = json!([{"odd": {"key": [KEY]}}]),
            "reason" => info["reason"] = json!(KEY),
            _ => info["metadata"] = json!({"key": KEY}),
        }
        if info["reason"] != "X" || info["metadata"] != json!({}) {
            refusal["data"] = json!([info]);
        }
        let body: Value = json!({"jsonrpc": "2.0", "id": seen.body["id"], "error": refusal});
        if seen.header("accept").is_some_and(|accept| accept.contains("event-stream")) {
            event_stream(Body::from(format!("event: {KEY}\nid: {KEY}\ndata: {body}\n\n")))
        } else {
            axum::Json(body).into_response()
        }
    })
    .await
}

/// Whoever panics over what an agent said has nothing else to say.
async fn panicking(config: ClientConfig) -> String {
    let script = Script::new(|seen| {
        error(seen, &json!({"code": -32603, "message": format!("the key {KEY} is odd")}))
    });
    let (_running, agent) = connected(&script, &config, |entry| entry).await;
    let call = async {
        let refusal = agent.get_task(&"t1".into(), None).await.unwrap_err();
        panic::panic_any(format!("unexpected: {refusal} {refusal:?}"));
    };
    let panic = AssertUnwindSafe(call).catch_unwind().await.unwrap_err();
    *panic.downcast::<String>().unwrap()
}

/// The token of a webhook is as secret as the key; here it is the same.
async fn webhook(config: ClientConfig) -> String {
    let script = Script::new(|seen| {
        let said = format!("no: {}", seen.body["params"]);
        error(seen, &json!({"code": -32602, "message": said, "data": [seen.body["params"]]}))
    });
    let running = Running::start(&script).await;
    let agent = connect_with(&running.entry(), network(), &config).await.unwrap();
    let mut webhook = TaskPushNotificationConfig::new("https://hook.example/");
    webhook.task_id = Some("t1".into());
    webhook.token = Some(KEY.into());
    let refusal = agent.create_push_config(webhook.clone()).await.unwrap_err();
    webhook.token = None;
    webhook.authentication = Some(AuthenticationInfo::bearer(KEY));
    seen::error(&refusal) + &seen::error(&agent.create_push_config(webhook).await.unwrap_err())
}
