//! A remote agent whose answers are given one by one, for what `volcanic serve` never does.

use std::{
    convert::Infallible,
    io,
    sync::{Arc, Mutex},
};

use axum::{
    Json, Router,
    body::Body,
    http::{HeaderMap, header},
    response::{IntoResponse as _, Response},
    routing::{get, post},
};
use futures::{StreamExt as _, stream};
use serde_json::{Value, json};
use tokio::task::yield_now;
use tokio_util::sync::CancellationToken;

use crate::keyed_agent::{Served, serve};

/// Serves as long as it is kept.
pub(crate) struct Odd {
    pub(crate) url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    _served: Served,
}

/// What it was asked.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) params: Value,
    pub(crate) headers: HeaderMap,
}

/// What it answers.
pub(crate) enum Answer {
    Result(Value),
    Error(i64, &'static str),
    /// Events, and then the end of the stream.
    Events(Vec<Value>),
    /// Events, and then nothing for ever.
    Held(Vec<Value>),
    /// Events, and then the connection breaks.
    Cut(Vec<Value>),
    /// A result, once this is cancelled.
    Late(CancellationToken, Value),
    Silence,
}

impl Odd {
    /// An agent that streams or not, and answers by method and by how often that was asked before.
    pub(crate) async fn start(
        streams: bool,
        answer: impl Fn(&str, usize) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let asked = Arc::new(Mutex::new(Vec::<Asked>::new()));
        let card = json!({
            "name": "odd agent",
            "description": "Does as it is told.",
            "version": "1",
            "supportedInterfaces": [
                { "url": "/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0" }
            ],
            "capabilities": { "streaming": streams },
            "defaultInputModes": [], "defaultOutputModes": [], "skills": [],
        });
        let noted = Arc::clone(&asked);
        let answer = Arc::new(answer);
        let rpc = move |headers: HeaderMap, Json(request): Json<Value>| {
            let (noted, answer) = (Arc::clone(&noted), Arc::clone(&answer));
            async move {
                let method = request["method"].as_str().unwrap().to_owned();
                let before = {
                    let mut noted = noted.lock().unwrap();
                    let before = noted.iter().filter(|asked| asked.method == method).count();
                    let params = request["params"].clone();
                    noted.push(Asked { method: method.clone(), params, headers });
                    before
                };
                respond(&request["id"], answer(&method, before)).await
            }
        };
        let routes = Router::new()
            .route("/.well-known/agent-card.json", get(move || async move { Json(card) }))
            .route("/rpc", post(rpc));
        let served = serve(routes, CancellationToken::new()).await;
        Self { url: served.url.clone(), asked, _served: served }
    }

    /// All that it was asked, in order.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// The methods that it was asked, in order.
    pub(crate) fn methods(&self) -> Vec<String> {
        self.asked().into_iter().map(|asked| asked.method).collect()
    }
}

/// A task as it answers with one.
pub(crate) fn task(state: &str, said: &str) -> Value {
    let mut status = json!({ "state": state });
    if !said.is_empty() {
        status["message"] =
            json!({ "messageId": said, "role": "ROLE_AGENT", "parts": [{ "text": said }] });
    }
    json!({ "id": "t-1", "contextId": "c-1", "status": status })
}

async fn respond(id: &Value, answer: Answer) -> Response {
    let result = |result: &Value| json!({ "jsonrpc": "2.0", "id": id, "result": result });
    let events = |events: Vec<Value>| {
        let events = events.iter().map(|event| format!("data: {}\n\n", result(event)));
        stream::iter(events.map(Ok::<_, Infallible>).collect::<Vec<_>>())
    };
    let sse = [(header::CONTENT_TYPE, "text/event-stream")];
    match answer {
        Answer::Result(value) => Json(result(&value)).into_response(),
        Answer::Error(code, message) => {
            let error = json!({ "code": code, "message": message });
            Json(json!({ "jsonrpc": "2.0", "id": id, "error": error })).into_response()
        }
        Answer::Events(list) => (sse, Body::from_stream(events(list))).into_response(),
        Answer::Held(list) => {
            (sse, Body::from_stream(events(list).chain(stream::pending()))).into_response()
        }
        Answer::Cut(list) => {
            // What is there is sent before the body is asked for more.
            let broken = stream::once(async {
                yield_now().await;
                Err(io::Error::from(io::ErrorKind::ConnectionReset))
            });
            let events = events(list).map(|event| event.map_err(|never| match never {}));
            (sse, Body::from_stream(events.chain(broken))).into_response()
        }
        Answer::Late(moment, value) => {
            moment.cancelled().await;
            Json(result(&value)).into_response()
        }
        Answer::Silence => std::future::pending().await,
    }
}
