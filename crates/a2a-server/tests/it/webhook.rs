//! A webhook that writes down what it gets and answers as told.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use axum::{Router, body::Bytes, extract::State, http::HeaderMap, http::StatusCode, routing::post};
use serde_json::Value;
use tokio::{net::TcpListener, sync::mpsc};
use tokio_util::sync::CancellationToken;
use volcanic_a2a_server::serve;

use crate::remote::{state_of, within};

/// One call of the webhook.
pub(crate) struct Push {
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
    pub(crate) answered: u16,
}

pub(crate) struct Webhook {
    pub(crate) url: String,
    pushes: mpsc::Receiver<Push>,
    _serving: tokio::task::JoinSet<()>,
}

#[derive(Clone)]
struct Answers {
    statuses: Arc<Mutex<VecDeque<u16>>>,
    pushes: mpsc::Sender<Push>,
}

impl Webhook {
    /// Starts a webhook that answers with these statuses first, then with 200.
    pub(crate) async fn answering(statuses: &[u16]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let (sender, pushes) = mpsc::channel(100);
        let statuses = Arc::new(Mutex::new(statuses.iter().copied().collect()));
        let answers = Answers { statuses, pushes: sender };
        let router = Router::new().route("/hook", post(receive)).with_state(answers);
        let mut serving = tokio::task::JoinSet::new();
        serving.spawn(async move {
            serve(listener, router, CancellationToken::new()).await;
        });
        Self { url, pushes, _serving: serving }
    }

    pub(crate) async fn next(&mut self) -> Push {
        within(self.pushes.recv()).await.unwrap()
    }

    /// The states of the next pushes, with the status each was answered with.
    pub(crate) async fn states(&mut self, count: usize) -> Vec<String> {
        let mut states = Vec::new();
        for _ in 0..count {
            let push = self.next().await;
            states.push(format!("{} {}", state_of(&push.body["task"]), push.answered));
        }
        states
    }

    pub(crate) fn is_quiet(&mut self) -> bool {
        self.pushes.try_recv().is_err()
    }
}

async fn receive(State(answers): State<Answers>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let answered = answers.statuses.lock().unwrap().pop_front().unwrap_or(200);
    let body = serde_json::from_slice(&body).unwrap();
    answers.pushes.send(Push { headers, body, answered }).await.unwrap();
    StatusCode::from_u16(answered).unwrap()
}
