//! A chat completions server that says what a test tells it to and takes only what the dialect allows.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Response, StatusCode};
use axum::routing::post;
use futures::StreamExt as _;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use volcanic_agent_core::{
    Message, Model, ModelError, ModelEvent, ModelRequest, PartialReply, StopReason, Usage,
};
use volcanic_agent_llm::{OpenAiConfig, openai_chat};
use volcanic_base::Secret;

pub(crate) const KEY: &str = "sk-test-0123456789";

/// One answer of the server.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    status: u16,
    headers: Vec<(&'static str, &'static str)>,
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone)]
enum Piece {
    Bytes(String),
    /// The connection breaks, once the test says so: what was sent before has to arrive.
    Break(Arc<Notify>),
    /// Nothing more comes, and the connection stays.
    Silence,
}

impl Answer {
    /// A stream of the given `data` lines.
    pub(crate) fn stream(frames: &[Value]) -> Self {
        let answer = Self {
            status: 200,
            headers: vec![("content-type", "text/event-stream")],
            pieces: vec![],
        };
        frames.iter().fold(answer, |answer, frame| answer.raw(&format!("data: {frame}\n\n")))
    }

    /// A whole body.
    pub(crate) fn body(status: u16, body: &str) -> Self {
        Self { status, headers: vec![("content-type", "application/json")], pieces: vec![] }
            .raw(body)
    }

    pub(crate) fn raw(mut self, text: &str) -> Self {
        self.pieces.push(Piece::Bytes(text.to_owned()));
        self
    }

    pub(crate) fn done(self) -> Self {
        self.raw("data: [DONE]\n\n")
    }

    pub(crate) fn then_break(mut self, when: &Arc<Notify>) -> Self {
        self.pieces.push(Piece::Break(Arc::clone(when)));
        self
    }

    pub(crate) fn then_silence(mut self) -> Self {
        self.pieces.push(Piece::Silence);
        self
    }

    pub(crate) fn header(mut self, name: &'static str, value: &'static str) -> Self {
        self.headers.retain(|(existing, _)| *existing != name);
        self.headers.push((name, value));
        self
    }
}

/// A chunk of a streamed reply.
pub(crate) fn chunk(delta: &Value) -> Value {
    json!({
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "test-1",
        "choices": [{ "index": 0, "delta": delta, "finish_reason": null }]
    })
}

/// The chunk that says why a reply ended.
pub(crate) fn finish(reason: &str) -> Value {
    json!({
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "test-1",
        "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }]
    })
}

/// The chunk that says what a reply cost.
pub(crate) fn usage(input: u64, output: u64) -> Value {
    json!({
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "test-1", "choices": [],
        "usage": { "prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output }
    })
}

#[derive(Debug)]
struct Script {
    answers: Mutex<VecDeque<Answer>>,
    requests: Mutex<Vec<Value>>,
    complaints: Mutex<Vec<String>>,
    expects_key: bool,
    /// How many answers were given up or ended.
    ended: watch::Sender<usize>,
}

/// A running server. It fails the test that used it wrongly or left answers over.
#[derive(Debug)]
pub(crate) struct Server {
    script: Arc<Script>,
    port: u16,
    _tasks: JoinSet<()>,
}

impl Server {
    pub(crate) async fn start(answers: impl IntoIterator<Item = Answer>) -> Self {
        Self::start_with(answers, true).await
    }

    pub(crate) async fn start_with(
        answers: impl IntoIterator<Item = Answer>,
        expects_key: bool,
    ) -> Self {
        let script = Arc::new(Script {
            answers: Mutex::new(answers.into_iter().collect()),
            requests: Mutex::default(),
            complaints: Mutex::default(),
            expects_key,
            ended: watch::Sender::new(0),
        });
        let router = Router::new()
            .route("/v1/chat/completions", post(complete))
            .with_state(Arc::clone(&script));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { script, port, _tasks: tasks }
    }

    pub(crate) fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub(crate) fn config(&self) -> OpenAiConfig {
        let key = self.script.expects_key.then(|| Secret::new(KEY));
        OpenAiConfig::new(format!("http://{}/v1", self.host()), key, "test-1")
    }

    pub(crate) fn model(&self) -> Arc<dyn Model> {
        openai_chat(self.config()).unwrap()
    }

    /// The bodies that came, in order.
    pub(crate) fn requests(&self) -> Vec<Value> {
        self.script.requests.lock().unwrap().clone()
    }

    /// Waits until `count` answers have been sent whole or given up because nobody reads them.
    pub(crate) async fn answers_ended(&self, count: usize) {
        let mut ended = self.script.ended.subscribe();
        let waiting = ended.wait_for(|ended| *ended >= count);
        tokio::time::timeout(Duration::from_secs(20), waiting).await.unwrap().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(*self.script.complaints.lock().unwrap(), Vec::<String>::new());
            assert_eq!(self.script.answers.lock().unwrap().len(), 0, "answers left over");
        }
    }
}

/// Counts an answer as ended, whatever ends it.
struct Ended(Arc<Script>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.ended.send_modify(|ended| *ended += 1);
    }
}

async fn complete(
    State(script): State<Arc<Script>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    let complaint = match serde_json::from_slice::<Value>(&body) {
        Ok(request) => {
            let complaint = check(&script, &headers, &request).err();
            script.requests.lock().unwrap().push(request);
            complaint
        }
        Err(error) => Some(format!("no JSON: {error}")),
    };
    let answer = script.answers.lock().unwrap().pop_front();
    let complaint = complaint.or_else(|| answer.is_none().then(|| "unexpected request".to_owned()));
    let (Some(answer), None) = (answer, &complaint) else {
        let complaint = complaint.unwrap_or_default();
        script.complaints.lock().unwrap().push(complaint.clone());
        return Response::builder()
            .status(StatusCode::IM_A_TEAPOT)
            .body(Body::from(complaint))
            .unwrap();
    };
    let mut response = Response::builder().status(answer.status);
    for (name, value) in &answer.headers {
        response = response.header(*name, *value);
    }
    let ended = Ended(script);
    let pieces = futures::stream::iter(answer.pieces).then(move |piece| {
        let _ = &ended;
        async move {
            match piece {
                Piece::Bytes(text) => Ok(Bytes::from(text)),
                Piece::Break(when) => {
                    when.notified().await;
                    Err(io::Error::other("told to break"))
                }
                Piece::Silence => std::future::pending().await,
            }
        }
    });
    response.body(Body::from_stream(pieces)).unwrap()
}

/// What the dialect allows, as far as strict servers check it.
fn check(script: &Script, headers: &HeaderMap, request: &Value) -> Result<(), String> {
    let header = |name: &str| headers.get(name).map(|value| value.to_str().unwrap().to_owned());
    let authorization = script.expects_key.then(|| format!("Bearer {KEY}"));
    if header("authorization") != authorization {
        return Err("wrong authorization".to_owned());
    }
    if header("content-type").as_deref() != Some("application/json") {
        return Err(format!("content type {:?}", header("content-type")));
    }
    for (name, value) in request.as_object().ok_or("no object")? {
        let fits = match name.as_str() {
            "model" => value.is_string(),
            "messages" => value.as_array().is_some_and(|messages| !messages.is_empty()),
            "stream" => *value == json!(true),
            "stream_options" => *value == json!({ "include_usage": true }),
            "tools" => value.as_array().is_some_and(|tools| !tools.is_empty()),
            _ => false,
        };
        if !fits {
            return Err(format!("member {name}: {value}"));
        }
    }
    check_order(request["messages"].as_array().ok_or("no messages")?)
}

/// Every call has its result right after its message, and every result its call.
fn check_order(messages: &[Value]) -> Result<(), String> {
    let mut open: Vec<&str> = Vec::new();
    for message in messages {
        match message["role"].as_str() {
            Some("tool") => {
                let id = message["tool_call_id"].as_str().unwrap_or_default();
                let Some(position) = open.iter().position(|open| *open == id) else {
                    return Err(format!("result without a call: {id}"));
                };
                open.remove(position);
            }
            Some("system" | "user" | "assistant") if open.is_empty() => {
                for call in message["tool_calls"].as_array().into_iter().flatten() {
                    let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
                    if !serde_json::from_str::<Value>(arguments)
                        .is_ok_and(|value| value.is_object())
                    {
                        return Err(format!("arguments that are no object: {arguments}"));
                    }
                    open.push(call["id"].as_str().ok_or("a call without an id")?);
                }
            }
            role => return Err(format!("{role:?} while results are missing: {open:?}")),
        }
    }
    if open.is_empty() { Ok(()) } else { Err(format!("results are missing: {open:?}")) }
}

/// A request of one prompt.
pub(crate) fn prompt(text: &str) -> ModelRequest {
    ModelRequest {
        system: String::new(),
        messages: vec![Message::User { text: text.to_owned() }],
        tools: Vec::new(),
    }
}

/// All events of a reply. Checks what holds for every reply: one end, and it comes last.
pub(crate) async fn collect(
    model: &dyn Model,
    request: ModelRequest,
    cancel: CancellationToken,
) -> Vec<ModelEvent> {
    let reading = async { model.stream(request, cancel).await.collect::<Vec<_>>().await };
    let events = tokio::time::timeout(Duration::from_secs(20), reading).await.unwrap();
    let is_end =
        |event: &ModelEvent| matches!(event, ModelEvent::Done { .. } | ModelEvent::Failed { .. });
    assert_eq!(events.iter().filter(|event| is_end(event)).count(), 1, "{events:?}");
    assert!(is_end(events.last().unwrap()), "{events:?}");
    events
}

/// All events of the reply to one prompt.
pub(crate) async fn ask(server: &Server) -> Vec<ModelEvent> {
    collect(&*server.model(), prompt("hi"), CancellationToken::new()).await
}

/// The failure at the end of a reply, which must keep the key to itself.
#[track_caller]
pub(crate) fn failure(events: &[ModelEvent]) -> (ModelError, PartialReply) {
    let Some(ModelEvent::Failed { error, partial }) = events.last() else {
        panic!("no failure: {events:?}");
    };
    assert!(!format!("{events:?} {error}").contains("0123456789"), "the key shows");
    (error.clone(), partial.clone())
}

pub(crate) fn done(stop: StopReason, input: u64, output: u64) -> ModelEvent {
    ModelEvent::Done { stop, usage: Usage { input, output } }
}
