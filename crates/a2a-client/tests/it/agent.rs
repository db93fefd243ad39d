//! A remote agent that answers as a test says and notes what it was asked.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, Method, StatusCode, Uri},
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinSet};
use url::Url;
use volcanic_a2a_client::{
    AgentEntry, AgentName, ClientConfig, ClientError, KeySource, RemoteAgent, plain_keys,
};
use volcanic_base::Secret;
use volcanic_net::{NetClient, NetConfig, Transport};

/// The longest that anything here may take.
pub(crate) const LIMIT: Duration = Duration::from_secs(20);

const CARD_PATH: &str = "/.well-known/agent-card.json";

/// A key that must never be seen where it does not belong.
pub(crate) const KEY: &str = "k_planted_3f9c2a";

/// One request as the agent saw it.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) verb: String,
    pub(crate) path: String,
    /// Empty if there is none.
    pub(crate) query: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

impl Seen {
    /// Verb, path and query in a line, and the body, where there is one.
    pub(crate) fn told(&self) -> String {
        let mark = if self.query.is_empty() { "" } else { "?" };
        let body = if self.body.is_null() { String::new() } else { format!(" {}", self.body) };
        format!("{} {}{mark}{}{body}", self.verb, self.path, self.query)
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

type Answer = Arc<dyn Fn(&Seen) -> Response + Send + Sync>;

/// What the agent does; shared with its router.
#[derive(Clone)]
pub(crate) struct Script {
    card: Arc<dyn Fn(&Seen) -> Response + Send + Sync>,
    answer: Answer,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Script {
    /// An agent with an ordinary card that answers every call with `answer`.
    pub(crate) fn new(answer: impl Fn(&Seen) -> Response + Send + Sync + 'static) -> Self {
        Self {
            card: Arc::new(|_| card(&json!({})).into_response()),
            answer: Arc::new(answer),
            seen: Arc::default(),
        }
    }

    /// The same with another card.
    pub(crate) fn with_card(
        mut self,
        card: impl Fn(&Seen) -> Response + Send + Sync + 'static,
    ) -> Self {
        self.card = Arc::new(card);
        self
    }

    /// Everything it was asked, cards among it.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// The calls it got.
    pub(crate) fn calls(&self) -> Vec<Seen> {
        self.seen().into_iter().filter(|seen| seen.path != CARD_PATH).collect()
    }

    pub(crate) fn router(&self) -> Router {
        Router::new().fallback(handle).with_state(self.clone())
    }
}

async fn handle(
    State(script): State<Script>,
    verb: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let mut body: Value = serde_json::from_slice(&body).unwrap_or_default();
    // The order of members means nothing, and whether it is kept depends on who else is built.
    body.sort_all_objects();
    let (path, query) = (uri.path().to_owned(), uri.query().unwrap_or_default().to_owned());
    let seen = Seen { verb: verb.to_string(), path, query, headers, body };
    script.seen.lock().unwrap().push(seen.clone());
    if seen.path == CARD_PATH {
        (script.card)(&seen)
    } else if ["/a2a", "/rest/"].iter().any(|start| seen.path.starts_with(start)) {
        (script.answer)(&seen)
    } else {
        StatusCode::NOT_FOUND.into_response()
    }
}

/// A card whose interface is relative, with `more` members over it.
pub(crate) fn card(more: &Value) -> axum::Json<Value> {
    let mut card = json!({
        "name": "Test agent", "description": "For tests", "version": "1",
        "supportedInterfaces": [{"url": "/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
        "capabilities": {"streaming": true, "pushNotifications": true},
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"], "skills": []
    });
    for (name, value) in more.as_object().unwrap() {
        card[name] = value.clone();
    }
    axum::Json(card)
}

/// The answer of a call that worked.
pub(crate) fn result(seen: &Seen, result: &Value) -> Response {
    axum::Json(json!({"jsonrpc": "2.0", "id": seen.body["id"], "result": result})).into_response()
}

/// The answer of a call that did not.
pub(crate) fn error(seen: &Seen, error: &Value) -> Response {
    axum::Json(json!({"jsonrpc": "2.0", "id": seen.body["id"], "error": error})).into_response()
}

/// A task as agents write it.
pub(crate) fn task(id: &str, state: &str) -> Value {
    json!({"id": id, "contextId": "c1", "status": {"state": format!("TASK_STATE_{state}")}})
}

/// A stream of events that begins with these bytes and goes on with what `rest` gives.
pub(crate) fn event_stream(body: Body) -> Response {
    ([("content-type", "text/event-stream; charset=utf-8")], body).into_response()
}

/// One event with a result.
pub(crate) fn event(seen: &Seen, result: &Value) -> String {
    format!("data: {}\n\n", json!({"jsonrpc": "2.0", "id": seen.body["id"], "result": result}))
}

/// The agent behind a real socket; it ends when dropped.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    _tasks: JoinSet<()>,
}

impl Running {
    pub(crate) async fn start(script: &Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = script.router();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { address, _tasks: tasks }
    }

    pub(crate) fn entry(&self) -> AgentEntry {
        entry(&format!("http://{}", self.address))
    }
}

pub(crate) fn entry(url: &str) -> AgentEntry {
    AgentEntry::new(AgentName::new("travel-bot").unwrap(), Url::parse(url).unwrap())
}

/// The same entry with the key.
pub(crate) fn keyed(entry: AgentEntry) -> AgentEntry {
    AgentEntry { key: Some(KeySource::Plain(Secret::new(KEY))), ..entry }
}

pub(crate) fn network() -> Arc<dyn Transport> {
    Arc::new(NetClient::new(NetConfig::default()).unwrap())
}

pub(crate) async fn connect(entry: &AgentEntry) -> Result<RemoteAgent, ClientError> {
    connect_with(entry, network(), &ClientConfig::default()).await
}

pub(crate) async fn connect_with(
    entry: &AgentEntry,
    transport: Arc<dyn Transport>,
    config: &ClientConfig,
) -> Result<RemoteAgent, ClientError> {
    let connecting = RemoteAgent::connect(entry, transport, plain_keys(), config);
    tokio::time::timeout(LIMIT, connecting).await.unwrap()
}

/// Starts the agent and connects to it.
pub(crate) async fn connected(script: &Script) -> (Running, RemoteAgent) {
    let running = Running::start(script).await;
    let agent = connect(&running.entry()).await.unwrap();
    (running, agent)
}
