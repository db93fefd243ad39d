//! `volcanic subscribe` and `watch`.

use std::{fs, iter, time::Duration};

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    odd_agent::{Answer, Odd, task},
    world::{Ran, World, signal_id},
};

const WORKING: &str = "TASK_STATE_WORKING";
const COMPLETED: &str = "TASK_STATE_COMPLETED";

/// Sends something and does not wait for it; the id of its task.
async fn begun(world: &World, text: &str) -> String {
    world.run(&["send", "demo", text, "--async"]).await.task().to_owned()
}

/// The kind of each line: the one member that it has.
fn kinds(ran: &Ran) -> Vec<String> {
    let lines = ran.out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.map(|line| line.as_object().unwrap().keys().next().unwrap().clone()).collect()
}

#[tokio::test]
async fn what_is_reported_is_printed_as_it_comes_until_the_stream_closes() {
    let world = World::new();
    let _remote = world.remote().await;
    let task = begun(&world, "slow 3s plum").await;
    let mut subscribed = world.start("subscribe", &["subscribe", "demo", &task]);
    let seen = |part: &'static str| move |line: &str| line.contains(part);
    let soon = crate::world::SOON;
    subscribed.line(soon, "the task", seen("task ")).await.unwrap();
    subscribed.line(soon, "its progress", seen("working: still working")).await.unwrap();
    let asked = world.run(&["status", "demo", &task]).await;
    asked.check(5, &[" is working."]);
    let (status, lines) = subscribed.finish(soon).await.unwrap();
    assert_eq!(status.code(), Some(0), "{lines:#?}");
    let text = lines.join("\n");
    assert!(text.contains("artifact response:\n  finished: plum\ncompleted"), "{text}");
}

#[tokio::test]
async fn every_event_is_a_line_of_json() {
    let world = World::new();
    let _remote = world.remote().await;
    let task = begun(&world, "slow 2s plum").await;
    let ran = world.run(&["subscribe", "demo", &task, "--json"]).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    let kinds = kinds(&ran);
    assert_eq!(kinds.first().unwrap(), "task");
    assert_eq!(kinds.last().unwrap(), "statusUpdate");
    assert!(kinds.iter().any(|kind| kind == "artifactUpdate"), "{kinds:?}");
    assert!(ran.out.contains("finished: plum"), "{ran:?}");
}

#[tokio::test]
async fn a_task_that_cannot_be_subscribed_to_is_told() {
    let world = World::new();
    let _remote = world.remote().await;
    let done = world.run(&["send", "demo", "echo x"]).await;
    for (task, code, kind) in [
        ("no-such-task", "-32001", "taskNotFound"),
        (done.task(), "-32004", "unsupportedOperation"),
    ] {
        world.run(&["subscribe", "demo", task]).await.check(1, &[code]);
        let json = world.run(&["subscribe", "demo", task, "--json"]).await;
        assert_eq!((json.code, &json.json()["error"]["kind"]), (1, &json!(kind)), "{json:?}");
    }
    let silent = Odd::start(false, |_, _| Answer::Silence).await;
    let ran = world.run(&["subscribe", &silent.url, "t-1"]).await;
    let hint = format!("volcanic watch {} TASK", silent.url);
    ran.check(1, &["does not say that it streams", &hint]);
    assert!(silent.asked().is_empty(), "it is not asked for what it does not offer");
}

#[tokio::test]
async fn a_subscription_ends_with_the_state_that_was_told_last() {
    let world = World::new();
    for (state, code) in
        [(WORKING, 5), (COMPLETED, 0), ("TASK_STATE_FAILED", 1), ("TASK_STATE_INPUT_REQUIRED", 6)]
    {
        let odd = Odd::start(true, move |_, _| {
            Answer::Events(vec![
                json!({ "task": task(WORKING, "") }),
                json!({ "task": task(state, "x") }),
            ])
        });
        let odd = odd.await;
        let ran = world.run(&["subscribe", &odd.url, "t-1"]).await;
        assert_eq!(ran.code, code, "{state}: {ran:?}");
        let hint = format!(
            "The stream ended before the task did. To follow it: volcanic watch {} t-1",
            odd.url
        );
        assert_eq!(ran.err.contains(&hint), code == 5, "{ran:?}");
    }
    let held = Odd::start(true, |_, _| Answer::Held(vec![json!({ "task": task(WORKING, "") })]));
    let held = held.await;
    let ran = world.run(&["subscribe", &held.url, "t-1", "--timeout", "1s"]).await;
    assert_eq!(ran.code, 5, "{ran:?}");
    assert!(ran.out.contains("task t-1 (context c-1)\nworking"), "{ran:?}");
    assert!(ran.err.contains("The time is up."), "{ran:?}");
}

#[tokio::test]
async fn a_stream_that_breaks_ends_with_what_was_wrong() {
    let world = World::new();
    let odd = Odd::start(true, |_, _| {
        Answer::Events(vec![
            json!({ "task": task(WORKING, "") }),
            json!({ "statusUpdate": { "taskId": "another", "contextId": "c", "status": { "state": WORKING } } }),
        ])
    });
    let odd = odd.await;
    let ran = world.run(&["subscribe", &odd.url, "t-1", "--json"]).await;
    assert_eq!((ran.code, kinds(&ran)), (1, vec!["task".to_owned(), "error".to_owned()]));
    assert!(ran.out.contains("unexpectedAnswer") && ran.out.contains("another task"), "{ran:?}");
}

#[tokio::test]
async fn a_task_is_watched_to_its_end_and_its_outcome_told() {
    let world = World::new();
    let _remote = world.remote().await;
    let slow = begun(&world, "slow 2s plum").await;
    let ran = world.run(&["watch", "demo", &slow]).await;
    ran.check(0, &["working: still working", " is completed.\nfinished: plum"]);
    // What is over already is told at once.
    let again = world.run(&["watch", "demo", &slow]).await;
    assert!(again.out.starts_with("Agent \"demo\": task "), "{again:?}");
    for (text, code, told) in [
        ("report all is well", 0, "Files: inbox/a2a/demo/report.txt"),
        ("fail out of paper", 1, "out of paper"),
        ("book a boat", 6, "Which day?"),
    ] {
        let ran = world.run(&["watch", "demo", &begun(&world, text).await]).await;
        assert_eq!(ran.code, code, "{ran:?}");
        assert!(ran.out.contains(told), "{ran:?}");
    }
    let json = world.run(&["watch", "demo", &slow, "--json"]).await;
    assert_eq!((json.code, kinds(&json)), (0, vec!["task".to_owned()]));
}

#[tokio::test]
async fn an_agent_that_does_not_stream_is_asked_and_changes_are_told_once() {
    let world = World::new();
    let odd = Odd::start(false, |_, n| {
        Answer::Result(match n {
            0 | 1 => task(WORKING, "one"),
            2 => task(WORKING, "two"),
            _ => task(COMPLETED, "done"),
        })
    });
    let odd = odd.await;
    let ran = world.run(&["watch", &odd.url, "t-1"]).await;
    ran.check(0, &[]);
    let wanted =
        "working: one\nworking: two\nAgent \"agent\": task t-1 (context c-1) is completed.\ndone\n";
    assert_eq!(ran.out, wanted);
    assert!(odd.methods().iter().all(|method| method == "GetTask"), "{:?}", odd.methods());

    let odd = Odd::start(false, |_, n| Answer::Result(task([WORKING, COMPLETED][n.min(1)], "x")));
    let odd = odd.await;
    let json = world.run(&["watch", &odd.url, "t-1", "--json"]).await;
    assert_eq!((json.code, kinds(&json)), (0, vec!["statusUpdate".to_owned(), "task".to_owned()]));
}

#[tokio::test]
async fn streams_that_end_early_and_passing_trouble_do_not_end_a_watch() {
    let world = World::new();
    let odd = Odd::start(true, |method, n| match (method, n) {
        ("SubscribeToTask", _) => Answer::Events(vec![json!({ "task": task(WORKING, "") })]),
        ("GetTask", 0 | 1) => Answer::Result(task(WORKING, "")),
        ("GetTask", 2) => Answer::Error(-32603, "out for lunch"),
        _ => Answer::Result(task(COMPLETED, "done")),
    });
    let odd = odd.await;
    let ran = world.run(&["watch", &odd.url, "t-1"]).await;
    ran.check(0, &["is completed.\ndone"]);
    assert!(ran.err.contains("out for lunch") && ran.err.contains("It is tried again."), "{ran:?}");
    assert_eq!(ran.out.matches("working").count(), 1, "nothing is told twice: {ran:?}");
}

#[tokio::test]
async fn a_task_that_is_lost_on_the_way_is_named() {
    let world = World::new();
    let odd = Odd::start(false, |_, n| match n {
        0 => Answer::Result(task(WORKING, "")),
        _ => Answer::Error(-32001, "no such task"),
    });
    let odd = odd.await;
    let text = world.run(&["watch", &odd.url, "t-1"]).await;
    text.check(
        1,
        &[
            "-32001",
            &format!("It is about task t-1. To ask again: volcanic status {} t-1", odd.url),
        ],
    );
}

#[tokio::test]
async fn a_watch_that_may_not_last_says_how_it_goes_on() {
    let world = World::new();
    let _remote = world.remote().await;
    let task = begun(&world, "slow 60s plum").await;
    let hint = format!("The agent works on. To follow it: volcanic watch demo {task}\n");
    let began = Instant::now();
    let ran = world.run(&["watch", "demo", &task, "--timeout", "1s"]).await;
    ran.check(5, &[" is working."]);
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    assert_eq!(ran.err, hint);

    for name in ["INT", "TERM"] {
        let mut watch = world.start("watch", &["watch", "demo", &task]);
        let working = |line: &str| line.starts_with("working");
        watch.line(crate::world::SOON, "the status", working).await.unwrap();
        signal_id(watch.id().unwrap(), name).await;
        let (status, lines) = watch.finish(crate::world::SOON).await.unwrap();
        assert_eq!(status.code(), Some(5), "{lines:#?}");
        assert!(lines.iter().any(|line| line.ends_with(" is working.")), "{lines:#?}");
    }
    world.run(&["status", "demo", &task]).await.check(5, &[" is working."]);
}

#[tokio::test]
async fn a_stream_that_stays_open_after_the_end_of_its_task_is_left() {
    let world = World::new();
    let odd = Odd::start(true, |method, _| match method {
        "GetTask" => Answer::Result(over("the answer")),
        _ => Answer::Held(vec![json!({ "task": over("the answer") })]),
    });
    let odd = odd.await;
    world.run(&["subscribe", &odd.url, "t-1"]).await.check(0, &["completed", "the answer"]);
    let ran = world.run(&["send", &odd.url, "hello", "--stream"]).await;
    ran.check(0, &["  the answer\n", "is completed.\n(The text is above.)"]);
}

#[tokio::test]
async fn a_stream_that_breaks_after_the_end_of_its_task_has_ended() {
    let world = World::new();
    for (state, code) in [(COMPLETED, 0), ("TASK_STATE_FAILED", 1), (WORKING, 3)] {
        let odd =
            Odd::start(true, move |_, _| Answer::Cut(vec![json!({ "task": task(state, "x") })]));
        let odd = odd.await;
        let ran = world.run(&["subscribe", &odd.url, "t-1", "--json"]).await;
        let wanted: &[&str] = if code == 3 { &["task", "error"] } else { &["task"] };
        assert_eq!(
            (ran.code, kinds(&ran)),
            (code, wanted.iter().map(|kind| (*kind).to_owned()).collect()),
            "{ran:?}"
        );
    }
}

#[tokio::test]
async fn what_a_task_came_to_is_asked_for_when_a_stream_begins_with_its_end() {
    let world = World::new();
    for ends in [true, false] {
        let odd = Odd::start(true, move |method, _| match method {
            "GetTask" => Answer::Result(over("the answer")),
            _ if ends => Answer::Events(vec![ended()]),
            _ => Answer::Held(vec![ended()]),
        });
        let odd = odd.await;
        let ran = world.run(&["send", &odd.url, "hello", "--stream"]).await;
        ran.check(0, &["is completed.\nthe answer"]);
        assert_eq!(odd.methods(), ["SendStreamingMessage", "GetTask"]);
    }
}

/// A completed task with its answer.
fn over(answer: &str) -> Value {
    let mut task = task("TASK_STATE_COMPLETED", "");
    task["artifacts"] = json!([{ "artifactId": "response", "parts": [{ "text": answer }] }]);
    task
}

/// The event that says so, and nothing more.
fn ended() -> Value {
    let status = json!({ "state": "TASK_STATE_COMPLETED" });
    json!({ "statusUpdate": { "taskId": "t-1", "contextId": "c-1", "status": status } })
}

#[tokio::test]
async fn what_a_task_came_to_is_told_once() {
    let world = World::new();
    let said = |state: &str| {
        let mut task = task(state, "");
        task["artifacts"] = json!([]);
        let parts = json!([{ "text": "just plums" }]);
        task["status"]["message"] =
            json!({ "messageId": "m", "role": "ROLE_AGENT", "parts": parts });
        task
    };
    let odd = Odd::start(true, move |method, count| match (method, count) {
        ("GetTask", 0) => Answer::Result(task(WORKING, "")),
        ("GetTask", _) => Answer::Result(said(COMPLETED)),
        _ => Answer::Events(vec![json!({ "task": said(COMPLETED) })]),
    });
    let odd = odd.await;
    let ran = world.run(&["watch", &odd.url, "t-1"]).await;
    ran.check(0, &[" is completed.\njust plums"]);
    assert_eq!(ran.out.matches("just plums").count(), 1, "{ran:?}");
    let json = world.run(&["watch", &odd.url, "t-1", "--json"]).await;
    assert_eq!(json.code, 0, "{json:?}");
}

#[tokio::test]
async fn files_of_a_task_that_goes_on_are_not_saved() {
    let world = World::new();
    // YQ== is a, and YWI= is ab.
    let with_file = |state: &str, file: &str| {
        let mut task = task(state, "");
        let parts = json!([{ "raw": file, "filename": "plan.txt", "mediaType": "text/plain" }]);
        task["artifacts"] = json!([{ "artifactId": "a", "parts": parts }]);
        task
    };
    let odd = Odd::start(false, move |_, n| {
        Answer::Result(match n {
            0 => with_file(WORKING, "YQ=="),
            _ => with_file(COMPLETED, "YWI="),
        })
    });
    let odd = odd.await;
    let ran = world.run(&["status", &odd.url, "t-1"]).await;
    ran.check(5, &["task t-1 (context c-1) is working."]);
    assert!(!ran.out.contains("plan.txt") && !world.path("workspace/inbox").exists(), "{ran:?}");
    let ran = world.run(&["status", &odd.url, "t-1"]).await;
    ran.check(0, &["Files: inbox/a2a/agent/plan.txt"]);
    let saved = fs::read(world.path("workspace/inbox/a2a/agent/plan.txt")).unwrap();
    assert_eq!(saved, b"ab");
}

#[tokio::test]
async fn long_names_of_very_many_artifacts_are_not_kept() {
    let world = World::new();
    let peak = async |length: usize| {
        let odd = Odd::start(true, move |_, _| {
            let begun = json!({ "task": task(WORKING, "") });
            let artifacts = (0..500).map(|n| {
                let artifact = json!({ "artifactId": format!("{n:0length$}"), "parts": [{ "text": "x" }] });
                json!({ "artifactUpdate": { "taskId": "t-1", "contextId": "c-1", "artifact": artifact } })
            });
            Answer::Events(iter::once(begun).chain(artifacts).chain([ended()]).collect())
        });
        let odd = odd.await;
        let subscribing = world.program("subscribe").args(["subscribe", &odd.url, "t-1"]);
        let ran = subscribing.measure(crate::world::SOON).await.unwrap();
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        assert_eq!(ran.out.matches("artifact 0").count(), 500);
        ran.peak
    };
    let growth = peak(60_000).await.saturating_sub(peak(10).await);
    assert!(growth < 16 << 20, "{} KiB more", growth >> 10);
}
