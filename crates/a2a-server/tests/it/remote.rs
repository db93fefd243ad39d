//! A server on a loopback socket, and a small JSON-RPC client for it.

use std::{
    fmt,
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{HeaderMap, Request, Response, StatusCode};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use volcanic_a2a_server::{
    CallerAuth, Executor, Journal, MemoryTasks, OpenAccess, ScriptRules, ScriptedAgent,
    ServeConfig, ServerConfig, ServerDeps, TaskSink, TaskStore, Turn, router, serve_with,
};
use volcanic_a2a_types::{SseDecoder, SseEvent, SseLimits};
use volcanic_base::{Chance, SystemClock};
use volcanic_net::{CallKind, NetBody, NetClient, NetConfig, Transport};

/// No test waits longer than this for anything.
const PATIENCE: Duration = Duration::from_secs(20);

/// Waits, but not for ever.
pub(crate) async fn within<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, what).await.expect("this should not take so long")
}

/// What a test server is made of.
pub(crate) struct Setup {
    pub(crate) config: ServerConfig,
    pub(crate) executor: Arc<dyn Executor>,
    pub(crate) auth: Arc<dyn CallerAuth>,
    pub(crate) store: Arc<dyn TaskStore>,
    pub(crate) pushes: bool,
}

/// A server that runs.
pub(crate) struct Remote {
    pub(crate) base: String,
    pub(crate) cancel: CancellationToken,
    client: NetClient,
    key: Option<String>,
    tracker: TaskTracker,
}

impl Default for Setup {
    fn default() -> Self {
        let journal = Arc::new(Journal::in_memory());
        Self {
            config: ServerConfig::default(),
            executor: scripted(journal),
            auth: Arc::new(OpenAccess::loopback()),
            store: Arc::new(MemoryTasks::default()),
            pushes: false,
        }
    }
}

/// The scripted agent with its built-in rules.
pub(crate) fn scripted(journal: Arc<Journal>) -> Arc<dyn Executor> {
    let rules = ScriptRules::built_in();
    Arc::new(ScriptedAgent::new(rules, journal, Arc::new(SystemClock)))
}

impl Setup {
    pub(crate) fn running(executor: Arc<dyn Executor>) -> Self {
        Self { executor, ..Self::default() }
    }

    pub(crate) async fn start(self) -> Remote {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let (tracker, cancel) = (TaskTracker::new(), CancellationToken::new());
        let client = NetClient::new(NetConfig::default()).unwrap();
        let deps = ServerDeps {
            executor: self.executor,
            auth: self.auth,
            store: self.store,
            card: Arc::new(ScriptedAgent::card()),
            clock: Arc::new(SystemClock),
            chance: Arc::new(Chance::seeded(1)),
            push: self.pushes.then(|| Arc::new(client.clone()) as Arc<dyn Transport>),
        };
        let router = router(self.config, deps, &tracker, cancel.clone());
        let config = ServeConfig { grace: Duration::from_secs(2), ..ServeConfig::default() };
        tracker.spawn(serve_with(config, listener, router, cancel.clone()));
        Remote { base, cancel, client, key: None, tracker }
    }
}

impl Remote {
    /// The same server, called with a key.
    pub(crate) fn with_key(&self, key: &str) -> Self {
        Self {
            base: self.base.clone(),
            cancel: self.cancel.clone(),
            client: self.client.clone(),
            key: Some(key.to_owned()),
            tracker: self.tracker.clone(),
        }
    }

    /// Stops the server and everything it runs.
    pub(crate) async fn stop(&self) {
        self.cancel.cancel();
        self.tracker.close();
        within(self.tracker.wait()).await;
    }

    pub(crate) async fn get(&self, path: &str, headers: &[(&str, &str)]) -> Response<NetBody> {
        let mut request = Request::get(format!("{}{path}", self.base));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Bytes::new()).unwrap();
        within(self.client.send(request, CallKind::Call)).await.unwrap()
    }

    /// Posts a body as it is.
    pub(crate) async fn post(
        &self,
        path: &str,
        body: impl Into<Bytes>,
        headers: &[(&str, &str)],
    ) -> Response<NetBody> {
        let mut request = Request::post(format!("{}{path}", self.base));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(key) = &self.key {
            request = request.header("x-api-key", key);
        }
        let request = request.body(body.into()).unwrap();
        within(self.client.send(request, CallKind::Stream)).await.unwrap()
    }

    /// Calls a method and gives the whole answer back.
    pub(crate) async fn answer(&self, method: &str, params: &Value) -> Value {
        let response = self.rpc(method, params).await;
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["content-type"], "application/json");
        json_of(response).await
    }

    /// Calls a method that works.
    #[track_caller]
    pub(crate) fn call<'r>(&'r self, method: &'r str, params: Value) -> BoxFuture<'r, Value> {
        let caller = std::panic::Location::caller();
        Box::pin(async move {
            let mut answer = self.answer(method, &params).await;
            assert!(answer.get("error").is_none(), "{method} at {caller}: {answer}");
            answer["result"].take()
        })
    }

    /// Calls a method that fails; the code of the error.
    pub(crate) async fn code(&self, method: &str, params: Value) -> i64 {
        let answer = self.answer(method, &params).await;
        answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("{method}: {answer}"))
    }

    /// Calls a method that streams.
    pub(crate) async fn stream(&self, method: &str, params: Value) -> Events {
        self.try_stream(method, params).await.expect("a stream")
    }

    /// Calls a method that streams, unless it is answered otherwise.
    pub(crate) async fn try_stream(&self, method: &str, params: Value) -> Option<Events> {
        let response = self.rpc(method, &params).await;
        if response.headers()["content-type"] != "text/event-stream" {
            return None;
        }
        let (large, max_comment) = (1 << 24, 1 << 16);
        let limits = SseLimits { max_event: large, max_line: large, max_comment, max_kept: large };
        Some(Events { body: response.into_body(), decoder: SseDecoder::new(limits) })
    }

    async fn rpc(&self, method: &str, params: &Value) -> Response<NetBody> {
        let body = json!({"jsonrpc": "2.0", "id": "q", "method": method, "params": params});
        let headers = [("content-type", "application/json"), ("a2a-version", "1.0")];
        self.post("/a2a", body.to_string(), &headers).await
    }

    /// Sends a text and waits for the task to settle.
    pub(crate) async fn send(&self, text: &str) -> Value {
        self.call("SendMessage", message(text)).await["task"].take()
    }

    /// Sends a text and does not wait.
    pub(crate) async fn begin(&self, text: &str) -> Value {
        let mut params = message(text);
        params["configuration"]["returnImmediately"] = true.into();
        self.call("SendMessage", params).await["task"].take()
    }

    /// Reads a task until it is in a state, for those that nothing else tells of.
    pub(crate) async fn wait_for(&self, id: &str, state: &str) -> Value {
        within(async {
            loop {
                let task = self.call("GetTask", json!({"id": id})).await;
                if state_of(&task) == state {
                    return task;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
        .await
    }
}

/// The events of a stream.
pub(crate) struct Events {
    body: NetBody,
    decoder: SseDecoder,
}

impl Events {
    /// The result of the next event; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        let event = self.next_raw().await?;
        assert_eq!(event.name, None, "{}", event.data);
        let mut answer: Value = serde_json::from_str(&event.data).unwrap();
        assert_eq!(answer["id"], "q");
        Some(answer["result"].take())
    }

    /// The last event, as it came.
    pub(crate) async fn last_raw(&mut self) -> SseEvent<'static> {
        let mut last = None;
        while let Some(event) = self.next_raw().await {
            last = Some(event);
        }
        last.unwrap()
    }

    async fn next_raw(&mut self) -> Option<SseEvent<'static>> {
        within(async {
            loop {
                if let Some(event) = self.decoder.next_event().unwrap() {
                    return Some(event.into_owned());
                }
                self.decoder.push(self.body.next_chunk().await?.unwrap());
            }
        })
        .await
    }

    /// All events up to the end, each in short.
    pub(crate) async fn rest(&mut self) -> Vec<String> {
        let mut all = Vec::new();
        while let Some(event) = self.next().await {
            all.push(short(&event));
        }
        all
    }
}

/// An event in short: what it is, and what matters in it.
pub(crate) fn short(event: &Value) -> String {
    let (kind, body) = event.as_object().unwrap().iter().next().unwrap();
    match kind.as_str() {
        "task" => format!("task {}", state_of(body)),
        "statusUpdate" => format!("status {}", state_of(body)),
        "artifactUpdate" => {
            let artifact = &body["artifact"];
            let sign = if body["append"] == true { "+" } else { "" };
            let end = if body["lastChunk"] == true { "." } else { "" };
            let text = artifact["parts"][0]["text"].as_str().unwrap_or("bytes");
            format!("artifact {} {sign}{text}{end}", artifact["artifactId"].as_str().unwrap())
        }
        "message" => format!("message {}", body["parts"][0]["text"].as_str().unwrap()),
        other => panic!("{other}"),
    }
}

/// The state of a task or status event, without its prefix.
pub(crate) fn state_of(task: &Value) -> &str {
    let state = task["status"]["state"].as_str().unwrap();
    state.strip_prefix("TASK_STATE_").unwrap()
}

/// The text of a status message.
pub(crate) fn said(task: &Value) -> &str {
    task["status"]["message"]["parts"][0]["text"].as_str().unwrap_or("nothing")
}

/// The text of the answer.
pub(crate) fn response_of(task: &Value) -> String {
    let artifacts = task["artifacts"].as_array().unwrap();
    let response = artifacts.iter().find(|artifact| artifact["artifactId"] == "response").unwrap();
    let parts = response["parts"].as_array().unwrap();
    parts.iter().map(|part| part["text"].as_str().unwrap()).collect()
}

/// The parameters that send a text.
pub(crate) fn message(text: &str) -> Value {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let id = format!("m{}", NEXT.fetch_add(1, Ordering::Relaxed));
    json!({"message": {"messageId": id, "role": "ROLE_USER", "parts": [{"text": text}]}})
}

/// The parameters that send a text into a task.
pub(crate) fn answer_to(task: &Value, text: &str) -> Value {
    let mut params = message(text);
    params["message"]["taskId"] = task["id"].clone();
    params["message"]["contextId"] = task["contextId"].clone();
    params
}

pub(crate) async fn json_of(response: Response<NetBody>) -> Value {
    let body = within(response.into_body().collect(1 << 24)).await.unwrap();
    serde_json::from_slice(&body).unwrap()
}

pub(crate) fn header<'h>(headers: &'h HeaderMap, name: &str) -> &'h str {
    headers.get(name).map_or("", |value| value.to_str().unwrap())
}

/// An executor made of a closure.
struct Does<F>(F);

/// Makes an executor of a closure.
pub(crate) fn does<F>(closure: F) -> Arc<dyn Executor>
where
    F: Fn(Turn, TaskSink, CancellationToken) -> BoxFuture<'static, ()> + Send + Sync + 'static,
{
    Arc::new(Does(closure))
}

impl<F> fmt::Debug for Does<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Does")
    }
}

#[async_trait]
impl<F> Executor for Does<F>
where
    F: Fn(Turn, TaskSink, CancellationToken) -> BoxFuture<'static, ()> + Send + Sync,
{
    async fn execute(&self, turn: Turn, sink: TaskSink, cancel: CancellationToken) {
        (self.0)(turn, sink, cancel).await;
    }
}
