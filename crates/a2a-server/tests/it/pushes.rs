//! Pushes, both ways.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{net::TcpListener, sync::mpsc, time::Instant};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tower::ServiceExt as _;
use volcanic_a2a_server::{
    Caller, FileTasks, Journal, MemoryTasks, OperationDeps, Operations, PushConfig, PushReceiver,
    ServerConfig, push_router, serve,
};
use volcanic_a2a_types::{
    DeleteTaskPushNotificationConfigRequest, Message, Part, SendMessageConfiguration,
    SendMessageRequest, SendMessageResponse, TaskPushNotificationConfig,
};
use volcanic_base::{Chance, ConfinedDir, SystemClock};
use volcanic_net::{CallKind, NetBody, NetError, Transport};

use crate::{
    remote::{Remote, Setup, answer_to, header, message, response_of, scripted, state_of},
    webhook::Webhook,
};

/// Pauses are scaled down: what is under test is their order and their end.
fn pushing() -> Setup {
    let push = PushConfig {
        allow_http: true,
        pauses: vec![Duration::from_millis(5); 3],
        ..PushConfig::default()
    };
    let config = ServerConfig { push, ..ServerConfig::default() };
    Setup { config, pushes: true, ..Setup::default() }
}

fn with_hook(text: &str, config: Value) -> Value {
    let mut params = message(text);
    params["configuration"]["taskPushNotificationConfig"] = config;
    params
}

#[tokio::test]
async fn webhook_gets_the_whole_task_at_every_change_of_status_in_order() {
    let mut hook = Webhook::answering(&[]).await;
    let remote = pushing().start().await;
    let config = json!({"url": hook.url, "token": "t0ken", "authentication": {"scheme": "Bearer", "credentials": "cr3d"}});
    let asked = remote.call("SendMessage", with_hook("book a table", config)).await["task"].take();
    let push = hook.next().await;
    assert_eq!(header(&push.headers, "x-a2a-notification-token"), "t0ken");
    assert_eq!(header(&push.headers, "authorization"), "Bearer cr3d");
    assert_eq!(header(&push.headers, "content-type"), "application/a2a+json");
    assert_eq!(push.body["task"], asked);
    remote.call("SendMessage", answer_to(&asked, "Friday")).await;
    assert_eq!(hook.states(1).await, ["WORKING 200"]);
    let last = hook.next().await;
    assert_eq!(state_of(&last.body["task"]), "COMPLETED");
    assert_eq!(response_of(&last.body["task"]), "Booked a table for Friday.");
    assert!(hook.is_quiet());
}

#[tokio::test]
async fn failing_webhook_is_tried_again_before_the_next_push() {
    let mut hook = Webhook::answering(&[500, 503]).await;
    let remote = pushing().start().await;
    remote.call("SendMessage", with_hook("echo x", json!({"url": hook.url}))).await;
    assert_eq!(
        hook.states(4).await,
        ["WORKING 500", "WORKING 503", "WORKING 200", "COMPLETED 200"]
    );
}

#[tokio::test]
async fn push_that_is_refused_or_fails_too_often_is_given_up() {
    let mut hook = Webhook::answering(&[404, 500, 500, 500, 500]).await;
    let remote = pushing().start().await;
    let asked = remote.call("SendMessage", with_hook("echo x", json!({"url": hook.url}))).await;
    let mut states = vec!["WORKING 404".to_owned()];
    states.extend(vec!["COMPLETED 500".to_owned(); 4]);
    assert_eq!(hook.states(5).await, states);
    let id = &asked["task"]["id"];
    assert_eq!(state_of(&remote.call("GetTask", json!({"id": id})).await), "COMPLETED");
}

#[tokio::test]
async fn configurations_are_kept_read_and_removed() {
    let mut hook = Webhook::answering(&[]).await;
    let remote = pushing().start().await;
    let asked = remote.send("book a table").await;
    let task = &asked["id"];
    let own = json!({"taskId": task, "id": "own", "url": hook.url, "token": "t"});
    assert_eq!(remote.call("CreateTaskPushNotificationConfig", own.clone()).await, own);
    let named = remote
        .call("CreateTaskPushNotificationConfig", json!({"taskId": task, "url": hook.url}))
        .await;
    assert!(named["id"].as_str().is_some_and(|id| !id.is_empty()));
    let listed = remote.call("ListTaskPushNotificationConfigs", json!({"taskId": task})).await;
    assert_eq!(listed["configs"], json!([own, named]));
    let one = json!({"taskId": task, "id": "own"});
    assert_eq!(remote.call("GetTaskPushNotificationConfig", one.clone()).await, own);
    for _ in 0..2 {
        let deleted = remote.call("DeleteTaskPushNotificationConfig", one.clone()).await;
        assert_eq!(deleted, Value::Null);
    }
    assert_eq!(remote.code("GetTaskPushNotificationConfig", one).await, -32001);
    let missing = json!({"taskId": "nobody", "id": "own", "url": hook.url});
    for method in ["Create", "Get", "Delete"] {
        let method = format!("{method}TaskPushNotificationConfig");
        assert_eq!(remote.code(&method, missing.clone()).await, -32001, "{method}");
    }
    remote.call("CancelTask", json!({"id": task})).await;
    assert_eq!(hook.states(1).await, ["CANCELED 200"], "only the one that stayed is called");
}

#[tokio::test]
async fn webhooks_that_must_not_be_called_are_refused() {
    let remote = pushing().start().await;
    for url in ["ftp://x.example", "not a url", "http://user:secret@x.example/", ""] {
        let params = with_hook("echo x", json!({"url": url}));
        let answer = remote.answer("SendMessage", &params).await;
        assert_eq!(answer["error"]["code"], -32602, "{url}");
        assert!(!answer.to_string().contains("secret"), "{answer}");
    }
    let newline = json!({"url": "http://x.example", "token": "a\r\nb"});
    assert_eq!(remote.code("SendMessage", with_hook("echo x", newline)).await, -32602);
    assert_eq!(remote.call("ListTasks", json!({})).await["totalSize"], 0);

    let strict = Setup { pushes: true, ..Setup::default() }.start().await;
    let plain = with_hook("echo x", json!({"url": "http://x.example"}));
    assert_eq!(strict.code("SendMessage", plain.clone()).await, -32602);
    let without = Setup::default().start().await;
    assert_eq!(without.code("SendMessage", plain).await, -32003);
    let config = json!({"taskId": "x", "id": "y", "url": "https://x.example"});
    for method in ["CreateTaskPushNotificationConfig", "ListTaskPushNotificationConfigs"] {
        assert_eq!(without.code(method, config.clone()).await, -32003, "{method}");
    }
}

#[tokio::test]
async fn pushes_that_a_stop_cut_off_are_sent_after_the_restart() {
    let workspace = TempDir::new().unwrap();
    let start = async |setup: Setup| -> Remote {
        let root = ConfinedDir::open(workspace.path()).unwrap();
        Setup { store: Arc::new(FileTasks::new(root, "tasks", 1 << 24)), ..setup }.start().await
    };
    let mut hook = Webhook::answering(&[500]).await;
    let mut slow = pushing();
    slow.config.push.pauses = vec![Duration::from_mins(10)];
    let remote = start(slow).await;
    remote.call("SendMessage", with_hook("echo x", json!({"url": hook.url}))).await;
    let cut_off = with_hook("slow 60s x", json!({"url": hook.url, "id": "slow"}));
    let mut at_once = cut_off.clone();
    at_once["configuration"]["returnImmediately"] = true.into();
    assert_eq!(hook.states(1).await, ["WORKING 500"]);
    remote.call("SendMessage", at_once).await;
    assert_eq!(hook.states(1).await, ["WORKING 200"], "the slow task's own hook works");
    remote.stop().await;
    assert!(hook.is_quiet());

    let _remote = start(pushing()).await;
    let wanted = ["COMPLETED 200", "FAILED 200", "WORKING 200"];
    let mut states = hook.states(3).await;
    states.sort();
    if states == ["COMPLETED 200", "WORKING 200", "WORKING 200"] {
        // The stop was faster than the answer of the slow task's hook, so that it is called once more.
        states.pop();
        states.extend(hook.states(1).await);
        states.sort();
    }
    assert_eq!(states, wanted);
}

/// A network that answers as told and notes when it was asked.
#[derive(Debug)]
struct Answering {
    answers: Mutex<VecDeque<Response<NetBody>>>,
    asked: mpsc::Sender<Instant>,
}

#[async_trait]
impl Transport for Answering {
    async fn send(
        &self,
        _request: Request<Bytes>,
        _kind: CallKind,
    ) -> Result<Response<NetBody>, NetError> {
        self.asked.send(Instant::now()).await.unwrap();
        Ok(self.answers.lock().unwrap().pop_front().unwrap_or_else(|| answer(200, None)))
    }
}

fn answer(status: u16, retry_after: Option<&str>) -> Response<NetBody> {
    let mut answer = Response::builder().status(status);
    if let Some(wait) = retry_after {
        answer = answer.header("retry-after", wait);
    }
    answer.body(NetBody::new(axum::body::Body::empty())).unwrap()
}

/// A scripted agent whose webhooks are answered in this way.
fn pushing_to(
    answers: VecDeque<Response<NetBody>>,
    asked: mpsc::Sender<Instant>,
    push: PushConfig,
    tracker: &TaskTracker,
    cancel: &CancellationToken,
) -> Operations {
    let deps = OperationDeps {
        executor: scripted(Arc::new(Journal::in_memory())),
        store: Arc::new(MemoryTasks::default()),
        clock: Arc::new(SystemClock),
        chance: Arc::new(Chance::seeded(1)),
        push: Some(Arc::new(Answering { answers: Mutex::new(answers), asked })),
    };
    let config = Arc::new(ServerConfig { push, ..ServerConfig::default() });
    Operations::spawn(config, deps, tracker, cancel.clone())
}

/// A message that is declined, so that there is one push to be made.
fn rejected_with_hook(id: &str) -> SendMessageRequest {
    let mut config = TaskPushNotificationConfig::new("https://hook.example/");
    config.id = Some(id.into());
    let mut configuration = SendMessageConfiguration::default();
    configuration.task_push_notification_config = Some(config);
    let message = Message::user("m", vec![Part::text("reject")]);
    let mut request = SendMessageRequest::new(message);
    request.configuration = Some(configuration);
    request
}

#[tokio::test(start_paused = true)]
async fn webhook_may_lengthen_a_pause_within_limits_but_not_shorten_it() {
    let answers = [Some("7"), Some("0"), None, Some("99999")].map(|wait| answer(503, wait)).into();
    let (sender, mut asked) = mpsc::channel(10);
    let (tracker, cancel) = (TaskTracker::new(), CancellationToken::new());
    let push = PushConfig {
        pauses: vec![Duration::from_secs(1); 4],
        jitter: 0.0,
        max_retry_after: Duration::from_secs(20),
        ..PushConfig::default()
    };
    let operations = pushing_to(answers, sender, push, &tracker, &cancel);
    operations.send(&Caller::named("ann"), rejected_with_hook("own")).await.unwrap();
    let mut times = Vec::new();
    for _ in 0..5 {
        times.push(asked.recv().await.unwrap());
    }
    let pauses: Vec<u64> =
        times.windows(2).map(|pair| pair[1].duration_since(pair[0]).as_secs()).collect();
    assert_eq!(pauses, [7, 1, 1, 20]);
    cancel.cancel();
}

#[tokio::test(start_paused = true)]
async fn removed_webhook_is_not_called_again() {
    let (sender, mut asked) = mpsc::channel(10);
    let (tracker, cancel) = (TaskTracker::new(), CancellationToken::new());
    let answers = (0..5).map(|_| answer(503, None)).collect();
    let operations = pushing_to(answers, sender, PushConfig::default(), &tracker, &cancel);
    let ann = Caller::named("ann");
    let sent = operations.send(&ann, rejected_with_hook("own")).await.unwrap();
    asked.recv().await.unwrap();
    let SendMessageResponse::Task(task) = sent else { panic!("{sent:?}") };
    let request = DeleteTaskPushNotificationConfigRequest::new(task.id, "own");
    operations.delete_push_config(&ann, request).await.unwrap();
    let again = tokio::time::timeout(Duration::from_hours(2), asked.recv()).await;
    assert!(again.is_err(), "{again:?}");
    cancel.cancel();
}

#[tokio::test(start_paused = true)]
async fn push_whose_body_does_not_arrive_is_cut_off() {
    let stalled =
        axum::body::Body::from_stream(futures::stream::pending::<Result<Bytes, std::io::Error>>());
    let request = Request::post("/a2a/push/w1").header("a2a-notification-token", "right");
    let watch = Arc::new(OneWatch::default());
    let router = push_router(Arc::clone(&watch) as _);
    let answering = router.oneshot(request.body(stalled).unwrap());
    let answer = tokio::time::timeout(Duration::from_mins(1), answering).await;
    assert_eq!(answer.expect("the route should not wait").unwrap().status().as_u16(), 408);
    assert_eq!(watch.0.load(Ordering::SeqCst), 1, "it is a hint all the same");
}

/// Counts what it takes.
#[derive(Debug, Default)]
struct OneWatch(AtomicUsize);

#[async_trait]
impl PushReceiver for OneWatch {
    async fn on_push(&self, watch_id: &str, token: &str, body: &[u8]) -> bool {
        let is_taken = watch_id == "w1" && token == "right" && body.len() <= 64 << 10;
        self.0.fetch_add(usize::from(is_taken), Ordering::SeqCst);
        is_taken
    }
}

#[tokio::test]
async fn inbound_push_is_taken_with_the_right_token_alone() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let cancel = CancellationToken::new();
    let mut serving = tokio::task::JoinSet::new();
    let watch = Arc::new(OneWatch::default());
    serving.spawn(serve(listener, push_router(Arc::clone(&watch) as _), cancel.clone()));
    let mut remote = Setup::default().start().await;
    remote.base = base;
    for (path, name, value, status) in [
        ("/a2a/push/w1", "x-a2a-notification-token", "right", 202),
        ("/a2a/push/w1", "a2a-notification-token", "right", 202),
        ("/a2a/push/w1", "authorization", "Bearer right", 202),
        ("/a2a/push/w1", "x-a2a-notification-token", "wrong", 404),
        ("/a2a/push/w1", "authorization", "Basic right", 404),
        ("/a2a/push/w1", "x-other", "right", 404),
        ("/a2a/push/w2", "x-a2a-notification-token", "right", 404),
        ("/a2a/push/", "x-a2a-notification-token", "right", 404),
    ] {
        let response = remote.post(path, "{}", &[(name, value)]).await;
        assert_eq!(response.status().as_u16(), status, "{path} {name}: {value}");
    }
    let token = [("x-a2a-notification-token", "right")];
    assert_eq!(watch.0.load(Ordering::SeqCst), 3);
    let large = remote.post("/a2a/push/w1", vec![0; (64 << 10) + 1], &token).await;
    assert_eq!(large.status().as_u16(), 413);
    assert_eq!(watch.0.load(Ordering::SeqCst), 4, "it is a hint all the same");
    let wrong = [("x-a2a-notification-token", "wrong")];
    let large = remote.post("/a2a/push/w1", vec![0; (64 << 10) + 1], &wrong).await;
    assert_eq!((large.status().as_u16(), watch.0.load(Ordering::SeqCst)), (413, 4));
    cancel.cancel();
}
