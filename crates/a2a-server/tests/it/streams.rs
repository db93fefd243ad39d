//! Streams: their grammar, their ends, and that nobody depends on them.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use futures::FutureExt as _;
use serde_json::{Value, json};
use tokio::sync::Notify;
use volcanic_a2a_server::{
    FanoutLimits, Journal, MemoryTasks, ScriptRules, ScriptedAgent, ServerConfig, TaskRecord,
    TaskStore, TaskStoreError, TaskSummary,
};
use volcanic_a2a_types::{Artifact, Part, Task, TaskId, TaskState};
use volcanic_base::SystemClock;

use crate::remote::{Setup, answer_to, does, message, said, short, state_of, within};

fn ruled(rules: &str) -> Setup {
    let rules = ScriptRules::parse(rules).unwrap();
    let journal = Arc::new(Journal::in_memory());
    Setup::running(Arc::new(ScriptedAgent::new(rules, journal, Arc::new(SystemClock))))
}

#[tokio::test]
async fn stream_shows_the_task_then_all_that_happens_and_ends_with_it() {
    let remote = ruled("[[rule]]\nwhen = '^.*$'\nsay = 'abcdefg'\nchunks = 3").start().await;
    let mut events = remote.stream("SendStreamingMessage", message("x")).await;
    assert_eq!(
        events.rest().await,
        [
            "task SUBMITTED",
            "status WORKING",
            "artifact response abc",
            "artifact response +def",
            "artifact response +g.",
            "status COMPLETED",
        ]
    );
}

#[tokio::test]
async fn direct_answer_is_one_message_and_no_task() {
    let remote = ruled("[[rule]]\nwhen = '^(.*)$'\nreply = 'just $1'").start().await;
    let mut events = remote.stream("SendStreamingMessage", message("words")).await;
    assert_eq!(events.rest().await, ["message just words"]);
    let answer = remote.call("SendMessage", message("again")).await;
    assert_eq!(short(&answer), "message just again");
    assert!(answer["message"]["contextId"].is_string());
    assert_eq!(answer["message"].get("taskId"), None);
    assert_eq!(remote.call("ListTasks", json!({})).await["totalSize"], 0);
}

#[tokio::test]
async fn message_stream_ends_at_a_question_and_a_subscription_at_the_end() {
    let remote = Setup::default().start().await;
    let mut events = remote.stream("SendStreamingMessage", message("book a table")).await;
    let task = events.next().await.unwrap()["task"].take();
    assert_eq!(events.rest().await, ["status INPUT_REQUIRED"]);

    let mut subscription = remote.stream("SubscribeToTask", json!({"id": task["id"]})).await;
    assert_eq!(short(&subscription.next().await.unwrap()), "task INPUT_REQUIRED");

    let mut events = remote.stream("SendStreamingMessage", answer_to(&task, "Friday")).await;
    let expected = ["artifact response Booked a table for Friday..", "status COMPLETED"];
    assert_eq!(short(&events.next().await.unwrap()), "task WORKING");
    assert_eq!(events.rest().await, expected);
    assert_eq!(subscription.rest().await, ["status WORKING", expected[0], expected[1]]);
}

#[tokio::test]
async fn ended_task_cannot_be_subscribed_to() {
    let remote = Setup::default().start().await;
    let task = remote.send("echo x").await;
    assert_eq!(remote.code("SubscribeToTask", json!({"id": task["id"]})).await, -32004);
}

#[tokio::test]
async fn stream_stays_open_while_an_authorization_is_awaited() {
    let granted = Arc::new(Notify::new());
    let wait = Arc::clone(&granted);
    let remote = Setup::running(does(move |_, sink, _| {
        let granted = Arc::clone(&wait);
        async move {
            sink.auth_required("Sign in first.").await.unwrap();
            granted.notified().await;
            sink.artifact(Artifact::new("response", vec![Part::text("done")])).await.unwrap();
            sink.complete().await.unwrap();
        }
        .boxed()
    }))
    .start()
    .await;
    let mut events = remote.stream("SendStreamingMessage", message("x")).await;
    assert_eq!(short(&events.next().await.unwrap()), "task AUTH_REQUIRED");
    granted.notify_one();
    assert_eq!(events.rest().await, ["artifact response done.", "status COMPLETED"]);

    let task = remote.send("again").await;
    assert_eq!((state_of(&task), said(&task)), ("AUTH_REQUIRED", "Sign in first."));
    granted.notify_one();
    remote.wait_for(task["id"].as_str().unwrap(), "COMPLETED").await;
}

#[tokio::test]
async fn client_that_goes_away_cancels_nothing() {
    let go_on = Arc::new(Notify::new());
    let wait = Arc::clone(&go_on);
    let remote = Setup::running(does(move |_, sink, _| {
        let go_on = Arc::clone(&wait);
        async move {
            sink.working().await.unwrap();
            go_on.notified().await;
            sink.complete().await.unwrap();
        }
        .boxed()
    }))
    .start()
    .await;
    let mut events = remote.stream("SendStreamingMessage", message("x")).await;
    let first = events.next().await.unwrap()["task"].take();
    drop(events);
    let blocking = tokio::time::timeout(Duration::from_millis(200), remote.send("y")).await;
    assert!(blocking.is_err(), "the task should still have been working");
    let listed = remote.call("ListTasks", json!({"status": "TASK_STATE_WORKING"})).await;
    let ids: Vec<Value> =
        listed["tasks"].as_array().unwrap().iter().map(|task| task["id"].clone()).collect();
    assert_eq!(ids.len(), 2);
    assert!(ids.contains(&first["id"]));
    go_on.notify_one();
    go_on.notify_one();
    for id in ids {
        go_on.notify_waiters();
        within(async {
            while state_of(&remote.call("GetTask", json!({"id": id})).await) != "COMPLETED" {
                go_on.notify_waiters();
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
}

#[tokio::test]
async fn quiet_stream_shows_signs_of_life_and_ends_when_the_server_stops() {
    let config = ServerConfig { keep_alive: Duration::from_millis(20), ..ServerConfig::default() };
    let remote = Setup { config, ..Setup::default() }.start().await;
    let body = json!({"jsonrpc": "2.0", "id": "q", "method": "SendStreamingMessage", "params": message("slow 60s x")});
    let response =
        remote.post("/a2a", body.to_string(), &[("content-type", "application/json")]).await;
    assert_eq!(response.headers()["cache-control"], "no-store");
    assert_eq!(response.headers()["x-accel-buffering"], "no");
    let mut body = response.into_body();
    let mut seen = String::new();
    while !seen.contains(": keep-alive\n\n") {
        seen += std::str::from_utf8(&within(body.next_chunk()).await.unwrap().unwrap()).unwrap();
    }
    remote.stop().await;
    while let Some(chunk) = within(body.next_chunk()).await {
        chunk.expect("the stream should end in order");
    }
}

#[tokio::test]
async fn snapshot_and_later_events_make_up_the_whole_at_any_moment() {
    const PIECES: usize = 300;
    let executor = does(|_, sink, _| {
        async move {
            let piece = |number: usize| vec![Part::text(format!("{number},"))];
            sink.begin_artifact(Artifact::new("response", piece(0))).await.unwrap();
            for number in 1..PIECES {
                sink.append("response".into(), piece(number)).await.unwrap();
                tokio::task::yield_now().await;
            }
            sink.complete().await.unwrap();
        }
        .boxed()
    });
    let remote = Setup::running(executor).start().await;
    let mut first = remote.stream("SendStreamingMessage", message("x")).await;
    let mut streams = Vec::new();
    let id = first.next().await.unwrap()["task"]["id"].take();
    while streams.len() < 20 {
        let answer = remote.try_stream("SubscribeToTask", json!({"id": id})).await;
        let Some(events) = answer else { break };
        streams.push(events);
    }
    assert!(streams.len() > 3, "the task should not have ended so soon");
    let whole: Vec<String> = (0..PIECES).map(|number| format!("{number},")).collect();
    let whole = whole.concat();
    for mut events in streams {
        let snapshot = events.next().await.unwrap()["task"].take();
        let mut task: Task = serde_json::from_value(snapshot).unwrap();
        while let Some(event) = events.next().await {
            task.apply(&serde_json::from_value(event).unwrap());
        }
        assert_eq!(task.status.state, TaskState::Completed);
        let parts = task.artifacts[0].parts.iter().filter_map(Part::as_text);
        assert_eq!(parts.collect::<String>(), whole);
    }
}

#[tokio::test]
async fn continuation_that_finds_no_place_for_its_stream_leaves_the_task_as_it_was() {
    let fanout = FanoutLimits { readers: 1, ..FanoutLimits::default() };
    let config = ServerConfig { fanout, ..ServerConfig::default() };
    let remote = Setup { config, ..Setup::default() }.start().await;
    let asked = remote.send("book a table").await;
    let id = json!({"id": asked["id"]});
    let mut subscription = remote.stream("SubscribeToTask", id.clone()).await;
    let refused = remote.code("SendStreamingMessage", answer_to(&asked, "Monday")).await;
    assert_eq!(refused, -32004);
    assert_eq!(remote.call("GetTask", id).await, asked);
    let done = remote.call("SendMessage", answer_to(&asked, "Friday")).await;
    assert_eq!(state_of(&done["task"]), "COMPLETED");
    let seen = subscription.rest().await;
    assert_eq!(seen.first().map(String::as_str), Some("task INPUT_REQUIRED"));
    assert_eq!(seen.last().map(String::as_str), Some("status COMPLETED"));
}

/// Keeps tasks, except that it fails for a while.
#[derive(Debug, Default)]
struct Failing {
    tasks: MemoryTasks,
    /// Saves that work, then saves that fail.
    plan: Mutex<(usize, usize)>,
}

#[async_trait]
impl TaskStore for Failing {
    async fn load(&self, id: &TaskId) -> Result<Option<TaskRecord>, TaskStoreError> {
        self.tasks.load(id).await
    }

    async fn save(&self, record: &TaskRecord) -> Result<(), TaskStoreError> {
        let works = {
            let (good, bad) = &mut *self.plan.lock().unwrap();
            let works = *good > 0 || *bad == 0;
            if works {
                *good = good.saturating_sub(1);
            } else {
                *bad -= 1;
            }
            works
        };
        if works { self.tasks.save(record).await } else { Err(TaskStoreError::Interrupted) }
    }

    async fn summaries(&self) -> Result<Vec<TaskSummary>, TaskStoreError> {
        self.tasks.summaries().await
    }
}

#[tokio::test]
async fn task_whose_end_could_not_be_kept_fails_once_that_works_again() {
    // Working is kept; the completion, the failure in its place, and the first try to fail the orphan are not.
    let store = Failing { plan: Mutex::new((1, 3)), ..Failing::default() };
    let go_on = Arc::new(Notify::new());
    let wait = Arc::clone(&go_on);
    let executor = does(move |_, sink, _| {
        let go_on = Arc::clone(&wait);
        async move {
            sink.working().await.unwrap();
            go_on.notified().await;
            sink.complete().await.unwrap_err();
        }
        .boxed()
    });
    let remote = Setup { store: Arc::new(store), ..Setup::running(executor) }.start().await;
    let mut events = remote.stream("SendStreamingMessage", message("x")).await;
    let task = events.next().await.unwrap()["task"].take();
    let id = json!({"id": task["id"]});
    go_on.notify_one();
    within(async {
        loop {
            let answer = remote.answer("GetTask", &id).await;
            if answer["error"].is_null() && state_of(&answer["result"]) == "FAILED" {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    assert_eq!(events.rest().await, ["status FAILED"]);
}

#[tokio::test]
async fn stream_that_is_not_read_is_cut_off_with_an_error_and_the_task_goes_on() {
    let executor = does(|_, sink, _| {
        async move {
            // More than the sockets between the two can hold.
            for number in 0..400 {
                let part = Part::text("x".repeat(64 << 10));
                sink.artifact(Artifact::new(format!("a{}", number % 2), vec![part])).await.unwrap();
            }
            sink.complete().await.unwrap();
        }
        .boxed()
    });
    let fanout = FanoutLimits { task_bytes: 1 << 20, ..FanoutLimits::default() };
    let config = ServerConfig { fanout, ..ServerConfig::default() };
    let remote = Setup { config, ..Setup::running(executor) }.start().await;
    let mut slow = remote.stream("SendStreamingMessage", message("x")).await;
    let id = slow.next().await.unwrap()["task"]["id"].take();
    remote.wait_for(id.as_str().unwrap(), "COMPLETED").await;
    let last = slow.last_raw().await;
    assert_eq!(last.name.as_deref(), Some("error"));
    let error: Value = serde_json::from_str(&last.data).unwrap();
    assert_eq!((&error["id"], &error["error"]["code"]), (&json!("q"), &json!(-32603)));
}
