//! The agent: a message `case 07` makes the seventh task.

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use axum::{
    Json, Router,
    extract::State,
    routing::{get, post},
};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{HostileResult, hostile_results};

/// An agent whose tasks are [`hostile_results`]. It stops when dropped.
///
/// The message `case 07` makes the seventh, which has settled whenever it is read; `now 07` makes the same, and it has
/// settled in the answer already.
#[derive(Debug)]
pub struct HostileResults {
    address: SocketAddr,
    shared: Arc<Shared>,
    _stop: DropGuard,
}

#[derive(Debug)]
struct Shared {
    results: Vec<HostileResult>,
    /// Texts that it was sent.
    sent: Mutex<Vec<String>>,
    /// Operations that it was asked for.
    asked: Mutex<Vec<String>>,
}

impl HostileResults {
    /// Listens on a free loopback port.
    ///
    /// # Errors
    /// When no port can be had.
    pub async fn start() -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            results: hostile_results(),
            sent: Mutex::default(),
            asked: Mutex::default(),
        });
        let routes = Router::new()
            .route("/.well-known/agent-card.json", get(card))
            .route("/rpc", post(rpc))
            .with_state(Arc::clone(&shared));
        let stop = CancellationToken::new();
        let serving =
            axum::serve(listener, routes).with_graceful_shutdown(stop.clone().cancelled_owned());
        #[expect(clippy::disallowed_methods, reason = "ends with the token that the agent drops")]
        tokio::spawn(serving.into_future());
        Ok(Self { address, shared, _stop: stop.drop_guard() })
    }

    /// The URL that its entry in agents.json has.
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// The texts of all messages, oldest first.
    pub fn sent(&self) -> Vec<String> {
        lock(&self.shared.sent).clone()
    }

    /// The operations that it was asked for, oldest first.
    pub fn asked(&self) -> Vec<String> {
        lock(&self.shared.asked).clone()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn card() -> Json<Value> {
    Json(json!({
        "name": "Results", "description": "Says what it likes.", "version": "1",
        "supportedInterfaces": [{"url": "/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
        "capabilities": {"streaming": false, "pushNotifications": false},
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"], "skills": [],
    }))
}

async fn rpc(State(shared): State<Arc<Shared>>, Json(request): Json<Value>) -> Json<Value> {
    let method = request["method"].as_str().unwrap_or_default();
    lock(&shared.asked).push(method.to_owned());
    let mut envelope = json!({"jsonrpc": "2.0", "id": request["id"]});
    match shared.answer(method, &request["params"]) {
        Some(result) => envelope["result"] = result,
        None => envelope["error"] = json!({"code": -32001, "message": "Task not found"}),
    }
    Json(envelope)
}

impl Shared {
    fn answer(&self, method: &str, params: &Value) -> Option<Value> {
        match method {
            "SendMessage" => {
                let text = params["message"]["parts"][0]["text"].as_str().unwrap_or_default();
                lock(&self.sent).push(text.to_owned());
                let (word, number) = text.split_once(' ')?;
                let mut task =
                    self.results.get(number.parse::<usize>().ok()?.checked_sub(1)?)?.task.clone();
                if word != "now" {
                    task = json!({
                        "id": task["id"], "contextId": task["contextId"],
                        "status": {"state": "TASK_STATE_WORKING"},
                    });
                }
                Some(json!({"task": task}))
            }
            "GetTask" => {
                let of_id = |result: &&HostileResult| result.task["id"] == params["id"];
                self.results.iter().find(of_id).map(|result| result.task.clone())
            }
            _ => None,
        }
    }
}
