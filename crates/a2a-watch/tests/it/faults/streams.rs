//! Streams that end, or are reset, behind every byte of theirs: over real sockets, with pauses scaled down to a
//! five-hundredth. And streams that say nothing any more, in paused time, so unscaled.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use volcanic_a2a_watch::{WatchSource, WatchState};
use volcanic_net::NetConfig;
use volcanic_testkit::{FaultSeed, drawn_below, drawn_from};

use super::wire::{Wired, read_request};
use crate::agent::{Agent, OnSend};
use crate::world::World;

/// How long a stream is at least, in bytes.
const LENGTH: usize = 4096;
/// Watches of one registry.
const BATCH: usize = 512;
/// Every so many bytes the stream is cut again and again, until the watch polls.
const EVERY: usize = 8;

/// What becomes of a task whose stream is cut.
#[derive(Debug, Clone, Copy)]
struct Plan {
    /// Behind so many bytes.
    at: usize,
    /// Whether the connection is reset.
    resets: bool,
    /// Whether every stream is cut, and the task settles when it is read after that.
    again: bool,
}

#[derive(Debug, Default)]
struct Course {
    streams: usize,
    /// Reads since the last stream was cut.
    reads: usize,
    is_settled: bool,
}

/// The agent: its tasks are named by where their streams are cut.
struct Cutter {
    plans: HashMap<String, Plan>,
    courses: Mutex<HashMap<String, Course>>,
    ends_of_lines: &'static str,
}

fn task(id: &str, state: &str) -> Value {
    let mut task =
        json!({"id": id, "contextId": "c1", "status": {"state": format!("TASK_STATE_{state}")}});
    if state == "COMPLETED" {
        task["artifacts"] =
            json!([{"artifactId": "response", "parts": [{"text": format!("end of {id}")}]}]);
    }
    task
}

/// A whole stream about a task: what it is, comments, much of an artifact, its end.
fn stream(id: &Value, task_id: &str, end: &str) -> String {
    let event = |result: Value| {
        let text = json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
        format!("event: message{end}data: {text}{end}{end}")
    };
    let update = |state: &str| json!({"statusUpdate": {"taskId": task_id, "contextId": "c1", "status": {"state": state}}});
    let piece = |text: String| {
        event(
            json!({"artifactUpdate": {"taskId": task_id, "contextId": "c1", "append": true, "artifact":
            {"artifactId": "a", "parts": [{"text": text}]}}}),
        )
    };
    let mut all = format!(": hello{end}{end}retry: 100{end}{end}");
    all += &event(json!({"task": task(task_id, "WORKING")}));
    all += &event(update("TASK_STATE_WORKING"));
    while all.len() < LENGTH - 300 {
        all += &piece("plum é 漢 ".repeat(8));
        all = all + ": " + end;
    }
    all + &event(update("TASK_STATE_COMPLETED"))
}

impl Cutter {
    /// Serves one connection for as long as it lasts.
    async fn serve(self: Arc<Self>, mut stream: TcpStream) -> std::io::Result<()> {
        stream.set_nodelay(true)?;
        let mut bytes = Vec::new();
        loop {
            let Some((_, request)) = read_request(&mut stream, &mut bytes).await? else {
                return Ok(());
            };
            let params = &request["params"];
            let answer = match request["method"].as_str() {
                None => json!({
                    "name": "Cutter", "description": "Cuts.", "version": "1", "skills": [],
                    "supportedInterfaces": [{"url": "/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
                    "capabilities": {"streaming": true},
                    "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
                }),
                Some("SubscribeToTask") => {
                    return self.cut(stream, &request["id"], params["id"].as_str().unwrap()).await;
                }
                Some(_) => {
                    let task = self.read_task(params["id"].as_str().unwrap());
                    json!({"jsonrpc": "2.0", "id": request["id"], "result": task})
                }
            };
            let answer = answer.to_string();
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
                answer.len()
            );
            stream.write_all((head + &answer).as_bytes()).await?;
        }
    }

    fn read_task(&self, id: &str) -> Value {
        let plan = self.plans[id];
        let mut courses = self.courses.lock().unwrap();
        let course = courses.entry(id.to_owned()).or_default();
        course.reads += 1;
        // The first read follows the cut; the watch polls by the second.
        course.is_settled |= plan.again && course.streams >= 3 && course.reads > 2;
        task(id, if course.is_settled { "COMPLETED" } else { "WORKING" })
    }

    /// Sends as much of a stream as is planned.
    async fn cut(&self, mut to: TcpStream, id: &Value, task_id: &str) -> std::io::Result<()> {
        let plan = self.plans[task_id];
        let head =
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        to.write_all(head.as_bytes()).await?;
        let whole = stream(id, task_id, self.ends_of_lines);
        to.write_all(&whole.as_bytes()[..plan.at.min(whole.len())]).await?;
        {
            let mut courses = self.courses.lock().unwrap();
            let course = courses.entry(task_id.to_owned()).or_default();
            course.streams += 1;
            course.reads = 0;
            course.is_settled |= !plan.again;
        }
        if plan.resets { to.set_zero_linger() } else { to.shutdown().await }
    }
}

/// Follows tasks whose streams are cut as planned, and judges what came of each.
async fn follow_cut(plans: HashMap<String, Plan>, ends_of_lines: &'static str) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let cutter = Arc::new(Cutter { plans, courses: Mutex::default(), ends_of_lines });
    let mut serving = JoinSet::new();
    serving.spawn({
        let cutter = Arc::clone(&cutter);
        async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                connections.spawn(Arc::clone(&cutter).serve(stream));
            }
        }
    });
    let tasks: Vec<_> = cutter.plans.keys().cloned().collect();
    let wired = Wired::follow(&url, tasks.clone(), NetConfig::default(), |config| {
        (config.calls_per_origin, config.streams_per_origin) = (32, BATCH);
        config.restore_stagger = Duration::ZERO;
    })
    .await;
    wired.wait_delivered(tasks.len()).await;
    let delivered = wired.end().await;
    let courses = cutter.courses.lock().unwrap();
    for (task, plan) in &cutter.plans {
        let key = format!("a2a:watch-of-{task}:completed");
        let texts = delivered.get(&key).unwrap_or_else(|| panic!("{task} {plan:?}: {delivered:?}"));
        assert_eq!(texts.len(), 1, "{task} {plan:?}: {texts:?}");
        assert!(texts[0].ends_with(&format!("\nend of {task}")), "{task} {plan:?}: {texts:?}");
        let streams = courses[task].streams;
        // After three of them that failed, the watch polls.
        assert_eq!(streams, if plan.again { 3 } else { 1 }, "{task} {plan:?}");
    }
    assert_eq!(delivered.len(), tasks.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stream_that_is_cut_behind_any_byte_loses_and_doubles_nothing() {
    let seed = FaultSeed::new();
    let length = stream(&json!("01234567-89ab-cdef-0123-456789abcdef"), "task-00000", "\r\n").len();
    assert!(length >= LENGTH, "{length}");
    for round in 0..FaultSeed::times(1) {
        let chance = seed.round(round);
        let again_from = drawn_below(&chance, EVERY);
        let offsets: Vec<_> = (0..=length).collect();
        for batch in offsets.chunks(BATCH) {
            let plans = batch.iter().map(|at| {
                let resets = drawn_below(&chance, 2) == 0;
                let plan = Plan { at: *at, resets, again: at % EVERY == again_from };
                (format!("task-{at:05}"), plan)
            });
            let ends_of_lines = *drawn_from(&chance, &["\n", "\r\n", "\r"]);
            follow_cut(plans.collect(), ends_of_lines).await;
        }
    }
}

const WORKING: OnSend = OnSend::Task("TASK_STATE_WORKING");

/// The remote is gone without a word, or says nothing of what happened.
#[tokio::test(start_paused = true)]
async fn stream_that_is_silent_hides_an_end_for_five_minutes_at_most() {
    let seed = FaultSeed::new();
    for round in 0..FaultSeed::times(50) {
        let chance = seed.round(round);
        let world = World::with(Agent::new(WORKING).streams(), |config| {
            config.view_gap = Duration::from_hours(24 * 30);
            config.jitter = 0.1;
        });
        world.hand_over().await;
        world.pass(1 + drawn_below(&chance, 1500) as u64).await;
        assert_eq!(world.watches.watches(None).await[0].source, WatchSource::Subscribe);
        if drawn_below(&chance, 2) == 0 {
            // The last thing that comes is half of an event.
            world.agent.stream_bytes("t1", &Bytes::from("data: {\"jsonrpc\": ")).await;
        }
        world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Lisbon");
        let before = world.now();
        world.chat.wait_for(1).await;
        let passed = world.now().duration_since(before).as_secs();
        // A pause may be a tenth longer.
        assert!(passed <= 330, "round {round}: {passed} s");
        world.reach(&[WatchState::Done]).await;
        assert_eq!(world.chat.attempts(), 1, "round {round}");
    }
}
