//! A chat completions server in this process that answers every request with a fixed text and keeps what it was sent.

use std::sync::{Arc, Mutex};

use axum::{
    Router,
    extract::State,
    http::{HeaderMap, header::CONTENT_TYPE},
    response::IntoResponse,
    routing::post,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::keyed_agent::{Served, serve};

/// What it received: the authorization and the body.
pub(crate) type Requests = Arc<Mutex<Vec<(String, Value)>>>;

pub(crate) async fn start(answer: &str) -> (Served, Requests) {
    let requests = Requests::default();
    let state = (Arc::clone(&requests), answer.to_owned());
    let routes = Router::new().route("/v1/chat/completions", post(answer_with)).with_state(state);
    (serve(routes, CancellationToken::new()).await, requests)
}

async fn answer_with(
    State((requests, answer)): State<(Requests, String)>,
    headers: HeaderMap,
    body: String,
) -> impl IntoResponse {
    let key = headers.get("authorization").map_or("", |key| key.to_str().unwrap()).to_owned();
    requests.lock().unwrap().push((key, serde_json::from_str(&body).unwrap()));
    let chunk = |delta: Value, reason: Value| {
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": reason });
        let chunk = json!({
            "id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice],
        });
        format!("data: {chunk}\n\n")
    };
    let text = chunk(json!({ "role": "assistant", "content": answer }), Value::Null);
    let end = chunk(json!({}), json!("stop"));
    ([(CONTENT_TYPE, "text/event-stream")], format!("{text}{end}data: [DONE]\n\n"))
}
