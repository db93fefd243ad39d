//! A remote agent in memory that does what a test says and remembers what it was asked.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

/// How calls are put off.
#[derive(Debug, Clone)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    /// Names and values.
    pub(crate) headers: Vec<(&'static str, String)>,
    /// Whether the body is an error of the protocol.
    pub(crate) speaks: bool,
    /// Whether the card is refused as well.
    pub(crate) hides: bool,
}

/// How the answer to a read comes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slowness {
    /// What comes at once, in bytes; at most all but one.
    pub(crate) begins: usize,
    /// Between two of the bytes that follow.
    pub(crate) pause: Duration,
    /// How many of those come at most.
    pub(crate) stalls_after: usize,
}

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) at: Instant,
    pub(crate) method: String,
    /// The task it is about; empty if there is none.
    pub(crate) task: String,
}

const CANCELED: &str = "TASK_STATE_CANCELED";

/// What a send does at the agent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnSend {
    /// Makes a task in this state, or continues the named one into it.
    Task(&'static str),
    /// Answers with its first task as it is.
    Known,
    /// Takes a message for its first task, but the answer never comes.
    KnownWithoutAnswer,
    /// Answers with a message.
    Reply(&'static str),
    /// Answers with a message that holds a file.
    ReplyWithFile,
    /// Makes a task that is done and holds a file.
    TaskWithFile,
    /// Makes a task, but the answer never comes.
    TaskWithoutAnswer,
    /// Does nothing, and the answer never comes.
    Nothing,
    /// Refuses with this code.
    Refuse(i64),
    /// Makes a task that fails, and answers with an internal error.
    Break,
    /// Makes a task, and answers with more of it than can be read.
    Odd,
}

#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is one switch of a test")]
struct Inner {
    on_send: Option<OnSend>,
    streams: bool,
    pushes: bool,
    unreachable: bool,
    stalls: bool,
    stalls_at: Option<&'static str>,
    /// So many reads are answered with half an answer.
    breaks_off: u32,
    refuses_pushes: bool,
    /// Every call but a send is refused so.
    refusal: Option<Refusal>,
    /// Tasks whose reads are answered slowly.
    slow: HashMap<String, Slowness>,
    /// When answers that came slowly were given up.
    given_up: Vec<Instant>,
    asked: Vec<Asked>,
    heard: Arc<Notify>,
    forgets: bool,
    refuses_cancel: bool,
    same_task: bool,
    /// What has ended stays as it is.
    is_strict: bool,
    tasks: HashMap<String, Value>,
    calls: Vec<(String, Value)>,
    keys: Vec<Option<String>>,
    cards: usize,
    /// Open streams, each with its task.
    streams_open: Vec<(String, mpsc::Sender<Bytes>)>,
    /// What makes the card longer.
    padding: String,
    before_send: Option<Box<dyn FnMut() + Send>>,
    before_read: Option<Box<dyn FnMut() + Send>>,
}

/// The agent.
#[derive(Clone, Default)]
pub(crate) struct Agent(Arc<Mutex<Inner>>);

impl Agent {
    pub(crate) fn new(on_send: OnSend) -> Self {
        let agent = Self::default();
        agent.on_send(on_send);
        agent
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap()
    }

    pub(crate) fn on_send(&self, on_send: OnSend) {
        self.lock().on_send = Some(on_send);
    }

    pub(crate) fn streams(self) -> Self {
        self.lock().streams = true;
        self
    }

    pub(crate) fn pushes(self) -> Self {
        self.lock().pushes = true;
        self
    }

    pub(crate) fn set_unreachable(&self, unreachable: bool) {
        self.lock().unreachable = unreachable;
    }

    /// Lets calls wait for an answer that never comes.
    pub(crate) fn set_stalling(&self, stalls: bool) {
        self.lock().stalls = stalls;
    }

    /// As [`Self::set_stalling`], for the calls of one method; the card's is `card`.
    pub(crate) fn stall_at(&self, method: Option<&'static str>) {
        self.lock().stalls_at = method;
    }

    /// Breaks so many answers to reads off half-way.
    pub(crate) fn break_off(&self, reads: u32) {
        self.lock().breaks_off = reads;
    }

    /// Says that it pushes, and takes no push config.
    pub(crate) fn refuse_pushes(&self) {
        self.lock().refuses_pushes = true;
    }

    /// Puts every call but a send off by so many seconds.
    pub(crate) fn set_busy(&self, busy_for: Option<u64>) {
        let refusal = |seconds: u64| Refusal {
            status: 429,
            headers: vec![("retry-after", seconds.to_string())],
            speaks: false,
            hides: false,
        };
        self.refuse(busy_for.map(refusal));
    }

    /// Refuses every call but a send so.
    pub(crate) fn refuse(&self, refusal: Option<Refusal>) {
        self.lock().refusal = refusal;
    }

    /// Answers reads of a task slowly from now on.
    pub(crate) fn answer_slowly(&self, id: &str, slowness: Slowness) {
        self.lock().slow.insert(id.to_owned(), slowness);
    }

    /// Answers reads of a task as fast as it can again.
    pub(crate) fn mend(&self, id: &str) {
        self.lock().slow.remove(id);
    }

    /// When slow answers were given up.
    pub(crate) fn given_up(&self) -> Vec<Instant> {
        self.lock().given_up.clone()
    }

    /// Every request, the card's too, which has `card` for a method.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.lock().asked.clone()
    }

    /// Waits for the first request after a moment; when it comes.
    pub(crate) async fn next_asked(&self, since: Instant) -> Instant {
        let heard = Arc::clone(&self.lock().heard);
        loop {
            let more = heard.notified();
            if let Some(next) = self.asked().iter().map(|asked| asked.at).find(|at| *at > since) {
                return next;
            }
            more.await;
        }
    }

    /// Waits until somebody holds a stream.
    pub(crate) async fn streamed(&self) {
        let heard = Arc::clone(&self.lock().heard);
        loop {
            let more = heard.notified();
            if self.open_streams() > 0 {
                return;
            }
            more.await;
        }
    }

    /// When a task was read.
    pub(crate) fn reads(&self, id: &str) -> Vec<Instant> {
        let asked = self.asked().into_iter();
        let reads = asked.filter(|asked| asked.method == "GetTask" && asked.task == id);
        reads.map(|asked| asked.at).collect()
    }

    /// Makes the card longer by this many bytes.
    pub(crate) fn pad_card(&self, bytes: usize) {
        self.lock().padding = "x".repeat(bytes);
    }

    pub(crate) fn set_forgetting(&self) {
        self.lock().forgets = true;
    }

    pub(crate) fn refuse_cancel(&self) {
        self.lock().refuses_cancel = true;
    }

    /// Takes every further message for its first task.
    pub(crate) fn same_task(&self) {
        self.lock().same_task = true;
    }

    /// Leaves a task that has ended as it is: nobody cancels it or goes on with it.
    pub(crate) fn strict(self) -> Self {
        self.lock().is_strict = true;
        self
    }

    /// The state of a task.
    pub(crate) fn state(&self, id: &str) -> String {
        self.lock().tasks[id]["status"]["state"].as_str().unwrap().to_owned()
    }

    pub(crate) fn before_send(&self, look: impl FnMut() + Send + 'static) {
        self.lock().before_send = Some(Box::new(look));
    }

    /// As [`Self::before_send`], for reads of a task.
    pub(crate) fn before_read(&self, look: impl FnMut() + Send + 'static) {
        self.lock().before_read = Some(Box::new(look));
    }

    /// Puts a task into a state, with an answer.
    pub(crate) fn set_task(&self, id: &str, state: &str, text: &str) {
        let mut inner = self.lock();
        let task = inner.tasks.entry(id.to_owned()).or_insert_with(|| task(id, "c1", state));
        task["status"] = json!({
            "state": state,
            "message": {"messageId": "s1", "role": "ROLE_AGENT", "parts": [{"text": text}]}
        });
        if state == "TASK_STATE_COMPLETED" {
            task["artifacts"] = json!([{"artifactId": "response", "parts": [{"text": text}]}]);
        }
    }

    /// Lets a task end with a text and a file.
    pub(crate) fn complete_with_file(&self, id: &str) {
        let mut inner = self.lock();
        let task = inner.tasks.get_mut(id).unwrap();
        task["status"] = json!({"state": "TASK_STATE_COMPLETED"});
        task["artifacts"] = json!([{"artifactId": "a1", "parts": file_parts()}]);
    }

    /// Puts a task to its end, unless it has ended.
    pub(crate) fn complete(&self, id: &str) {
        let is_over = self.lock().tasks[id]["status"]["state"] == CANCELED;
        if !is_over {
            self.set_task(id, "TASK_STATE_COMPLETED", "Lisbon");
        }
    }

    /// Lets the agent take the words of what it asks back.
    pub(crate) fn hush(&self, id: &str) {
        let mut inner = self.lock();
        let status = &mut inner.tasks.get_mut(id).unwrap()["status"];
        status.as_object_mut().unwrap().remove("message");
    }

    /// Lets the agent say the same in another message.
    pub(crate) fn say_anew(&self, id: &str) {
        self.lock().tasks.get_mut(id).unwrap()["status"]["message"]["messageId"] = json!("s2");
    }

    /// Makes a task one that cannot be read.
    pub(crate) fn break_task(&self, id: &str) {
        self.break_task_by(id, json!(5));
    }

    /// Makes a task one that cannot be read, by what stands there for a message.
    pub(crate) fn break_task_by(&self, id: &str, message: Value) {
        self.lock().tasks.get_mut(id).unwrap()["status"]["message"] = message;
    }

    /// Tells those who hold a stream of a task that it changed.
    pub(crate) async fn stream_status(&self, id: &str, state: &str) {
        let event = json!({"jsonrpc": "2.0", "id": "x", "result": {"statusUpdate": {
            "taskId": id, "contextId": "c1", "status": {"state": state}
        }}});
        let streams = self.lock().streams_open.clone();
        for (_, stream) in streams.iter().filter(|(task, _)| task == id) {
            let _ = stream.send(Bytes::from(format!("data: {event}\n\n"))).await;
        }
    }

    /// Sends these bytes to those who hold a stream of a task.
    pub(crate) async fn stream_bytes(&self, id: &str, bytes: &Bytes) {
        let streams = self.lock().streams_open.clone();
        for (_, stream) in streams.iter().filter(|(task, _)| task == id) {
            let _ = stream.send(bytes.clone()).await;
        }
    }

    /// Ends all streams.
    pub(crate) fn cut_streams(&self) {
        self.lock().streams_open.clear();
    }

    /// Streams that somebody listens to.
    pub(crate) fn live_streams(&self) -> usize {
        self.lock().streams_open.iter().filter(|(_, stream)| !stream.is_closed()).count()
    }

    pub(crate) fn open_streams(&self) -> usize {
        self.lock().streams_open.len()
    }

    /// The parameters of every call of a method.
    pub(crate) fn calls(&self, method: &str) -> Vec<Value> {
        self.lock()
            .calls
            .iter()
            .filter(|(name, _)| name == method)
            .map(|(_, params)| params.clone())
            .collect()
    }

    /// How often the card was asked for.
    pub(crate) fn cards(&self) -> usize {
        self.lock().cards
    }

    /// The keys that requests carried.
    pub(crate) fn keys(&self) -> Vec<Option<String>> {
        self.lock().keys.clone()
    }

    pub(crate) fn router(&self) -> Router {
        Router::new()
            .route("/.well-known/agent-card.json", get(card))
            .route("/a2a", post(rpc))
            .with_state(self.clone())
    }
}

fn task(id: &str, context: &str, state: &str) -> Value {
    json!({"id": id, "contextId": context, "status": {"state": state}, "history": []})
}

/// A text, and a file that says hello.
fn file_parts() -> Value {
    json!([{"text": "Here it is."}, {"raw": "aGVsbG8=", "filename": "plan.txt"}])
}

impl Refusal {
    fn response(&self, id: &Value) -> Response {
        let error = json!({"code": -32603, "message": "later"});
        let body = if self.speaks {
            json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string()
        } else {
            String::new()
        };
        let mut response = Response::builder().status(self.status);
        for (name, value) in &self.headers {
            response = response.header(*name, value);
        }
        response.body(Body::from(body)).unwrap()
    }
}

/// Notes when an answer that is on its way is given up.
struct OnItsWay(Agent);

impl Drop for OnItsWay {
    fn drop(&mut self) {
        self.0.lock().given_up.push(Instant::now());
    }
}

/// Sends a text a byte at a time.
fn slowly(agent: Agent, text: String, slowness: Slowness) -> Response {
    let body = async_stream::stream! {
        let _noted = OnItsWay(agent);
        let mut bytes = Bytes::from(text);
        let begins = slowness.begins.min(bytes.len() - 1);
        yield Ok::<_, std::io::Error>(bytes.split_to(begins));
        for _ in 0..slowness.stalls_after.min(bytes.len()) {
            tokio::time::sleep(slowness.pause).await;
            yield Ok(bytes.split_to(1));
        }
        if !bytes.is_empty() {
            std::future::pending::<()>().await;
        }
    };
    Body::from_stream(body).into_response()
}

async fn card(State(agent): State<Agent>) -> Response {
    if agent.lock().stalls_at == Some("card") {
        std::future::pending::<()>().await;
    }
    let mut inner = agent.lock();
    inner.cards += 1;
    inner.asked.push(Asked { at: Instant::now(), method: "card".to_owned(), task: String::new() });
    if let Some(refusal) = inner.refusal.as_ref().filter(|refusal| refusal.hides) {
        return refusal.response(&Value::Null);
    }
    if inner.unreachable {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    axum::Json(json!({
        "name": "Travel Bot", "description": "Plans trips.", "version": "1",
        "supportedInterfaces": [{"url": "/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
        "capabilities": {"streaming": inner.streams, "pushNotifications": inner.pushes},
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"], "skills": [],
        "padding": inner.padding
    }))
    .into_response()
}

async fn rpc(State(agent): State<Agent>, headers: HeaderMap, body: Bytes) -> Response {
    let request: Value = serde_json::from_slice(&body).unwrap();
    let (method, params) =
        (request["method"].as_str().unwrap().to_owned(), request["params"].clone());
    let silent = {
        let mut inner = agent.lock();
        let key = headers.get("x-api-key").map(|key| key.to_str().unwrap().to_owned());
        inner.keys.push(key);
        inner.calls.push((method.clone(), params.clone()));
        inner.heard(&method, params["id"].as_str().unwrap_or_default());
        if inner.unreachable {
            return StatusCode::SERVICE_UNAVAILABLE.into_response();
        }
        if method == "GetTask" && inner.breaks_off > 0 {
            inner.breaks_off -= 1;
            let half = [Ok("{\"jsonrpc\":"), Err(std::io::Error::other("the agent went away"))];
            return Body::from_stream(futures::stream::iter(half)).into_response();
        }
        if method == "SendMessage"
            && let Some(look) = &mut inner.before_send
        {
            look();
        }
        if method == "GetTask"
            && let Some(look) = &mut inner.before_read
        {
            look();
        }
        if let Some(refusal) = inner.refusal.as_ref().filter(|_| method != "SendMessage") {
            return refusal.response(&request["id"]);
        }
        inner.stalls
            || inner.stalls_at == Some(&*method)
            || method == "SendMessage"
                && matches!(
                    inner.on_send,
                    Some(OnSend::Nothing | OnSend::TaskWithoutAnswer | OnSend::KnownWithoutAnswer)
                )
    };
    let answer = agent.lock().answer(&method, &params);
    if silent {
        tokio::time::sleep(Duration::from_hours(1)).await;
    }
    if method == "SubscribeToTask" && answer.is_ok() {
        return stream(&agent, &request["id"], &params);
    }
    let envelope = match answer {
        Ok(result) => json!({"jsonrpc": "2.0", "id": request["id"], "result": result}),
        Err(code) => {
            json!({"jsonrpc": "2.0", "id": request["id"], "error": {"code": code, "message": "not so"}})
        }
    };
    let slowness = agent.lock().slow.get(params["id"].as_str().unwrap_or_default()).copied();
    match slowness.filter(|_| method == "GetTask") {
        Some(slowness) => slowly(agent, envelope.to_string(), slowness),
        None => axum::Json(envelope).into_response(),
    }
}

fn stream(agent: &Agent, id: &Value, params: &Value) -> Response {
    let (sender, mut receiver) = mpsc::channel::<Bytes>(8);
    let mut inner = agent.lock();
    let snapshot = inner.tasks[params["id"].as_str().unwrap()].clone();
    inner.streams_open.push((params["id"].as_str().unwrap().to_owned(), sender));
    inner.heard.notify_waiters();
    let id = id.clone();
    let body = async_stream::stream! {
        let first = json!({"jsonrpc": "2.0", "id": id, "result": {"task": snapshot}});
        yield Ok::<_, std::io::Error>(Bytes::from(format!("data: {first}\n\n")));
        while let Some(chunk) = receiver.recv().await {
            let text = String::from_utf8(chunk.to_vec()).unwrap().replace("\"id\":\"x\"", &format!("\"id\":{id}"));
            yield Ok(Bytes::from(text));
        }
    };
    ([("content-type", "text/event-stream")], Body::from_stream(body)).into_response()
}

impl Inner {
    fn heard(&mut self, method: &str, task: &str) {
        let (method, task) = (method.to_owned(), task.to_owned());
        self.asked.push(Asked { at: Instant::now(), method, task });
        self.heard.notify_waiters();
    }

    fn answer(&mut self, method: &str, params: &Value) -> Result<Value, i64> {
        let id = params["id"].as_str().unwrap_or_default().to_owned();
        if self.forgets && method != "SendMessage" {
            return Err(-32001);
        }
        match method {
            "SendMessage" => self.send(params),
            "GetTask" => {
                let mut task = self.tasks.get(&id).cloned().ok_or(-32001)?;
                if params["historyLength"] == json!(0) {
                    task.as_object_mut().unwrap().remove("history");
                }
                Ok(task)
            }
            "SubscribeToTask" => self.tasks.get(&id).cloned().ok_or(-32001),
            "CancelTask" if self.refuses_cancel => Err(-32002),
            "CancelTask" if self.is_strict && self.has_ended(&id) => {
                let task = self.tasks.get(&id).filter(|task| task["status"]["state"] == CANCELED);
                task.cloned().ok_or(-32002)
            }
            "CancelTask" => {
                let task = self.tasks.get_mut(&id).ok_or(-32001)?;
                task["status"] = json!({"state": "TASK_STATE_CANCELED"});
                Ok(task.clone())
            }
            "ListTasks" => {
                let tasks: Vec<_> = self.tasks.values().cloned().collect();
                Ok(
                    json!({"tasks": tasks, "nextPageToken": "", "pageSize": 50, "totalSize": tasks.len()}),
                )
            }
            "CreateTaskPushNotificationConfig" if self.refuses_pushes => Err(-32003),
            "CreateTaskPushNotificationConfig" => Ok(params.clone()),
            "DeleteTaskPushNotificationConfig" => Ok(Value::Null),
            _ => Err(-32601),
        }
    }

    fn send(&mut self, params: &Value) -> Result<Value, i64> {
        let message = &params["message"];
        let continued = message["taskId"].as_str().unwrap_or_default();
        match self.on_send.unwrap() {
            _ if self.is_strict && self.has_ended(continued) => Err(-32004),
            OnSend::Refuse(code) => Err(code),
            OnSend::Odd => {
                let mut task = self.work(message, "TASK_STATE_WORKING");
                task["artifacts"] = json!("odd");
                Ok(json!({"task": task}))
            }
            OnSend::Break => {
                self.work(message, "TASK_STATE_FAILED");
                Err(-32603)
            }
            OnSend::Nothing => Ok(Value::Null),
            OnSend::Known | OnSend::KnownWithoutAnswer => {
                let known = self.tasks.get_mut("t1").ok_or(-32001)?;
                known["history"].as_array_mut().unwrap().push(message.clone());
                Ok(json!({"task": known}))
            }
            OnSend::Reply(text) => Ok(json!({"message": {
                "messageId": "r1", "contextId": "c1", "role": "ROLE_AGENT", "parts": [{"text": text}]
            }})),
            OnSend::ReplyWithFile => Ok(json!({"message": {
                "messageId": "r1", "contextId": "c1", "role": "ROLE_AGENT", "parts": file_parts()
            }})),
            OnSend::TaskWithFile => {
                let id = self.work(message, "TASK_STATE_COMPLETED")["id"].clone();
                let task = self.tasks.get_mut(id.as_str().unwrap()).unwrap();
                task["artifacts"] = json!([{"artifactId": "a1", "parts": file_parts()}]);
                Ok(json!({"task": task}))
            }
            OnSend::Task(state) => Ok(json!({"task": self.work(message, state)})),
            OnSend::TaskWithoutAnswer => {
                Ok(json!({"task": self.work(message, "TASK_STATE_WORKING")}))
            }
        }
    }

    fn has_ended(&self, id: &str) -> bool {
        let ends = [CANCELED, "TASK_STATE_COMPLETED", "TASK_STATE_FAILED"];
        self.tasks
            .get(id)
            .is_some_and(|task| ends.iter().any(|end| task["status"]["state"] == *end))
    }

    fn work(&mut self, message: &Value, state: &str) -> Value {
        let id = match message["taskId"].as_str() {
            Some(id) => id.to_owned(),
            None if self.same_task => "t1".to_owned(),
            None => format!("t{}", self.tasks.len() + 1),
        };
        let work = self.tasks.entry(id.clone()).or_insert_with(|| task(&id, "c1", state));
        work["status"] = json!({"state": state});
        work["history"].as_array_mut().unwrap().push(message.clone());
        work.clone()
    }
}
