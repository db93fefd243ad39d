//! Waiting: how long, what is shown meanwhile, and what is said when it ends early.

use std::{io, time::Duration};

use serde_json::{Value, json};
use tokio::{
    io::AsyncReadExt as _,
    time::{Instant, timeout},
};

use crate::{
    odd_agent::{Answer, Odd, task},
    pty::Pty,
    world::{SOON, World, signal_id, until},
};

const WORKING: &str = "TASK_STATE_WORKING";

#[tokio::test]
async fn the_time_of_a_send_bounds_the_call_itself_and_the_message_may_have_arrived() {
    let world = World::new();
    let odd = Odd::start(true, |_, _| Answer::Silence).await;
    let began = Instant::now();
    let text = world.run(&["send", &odd.url, "hello", "--wait", "1s"]).await;
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    assert_eq!((text.code, text.out.as_str()), (5, ""), "{text:?}");
    let look =
        format!("The message may have arrived. To look for its task: volcanic tasks {}", odd.url);
    assert!(text.err.contains("did not answer in time") && text.err.contains(&look), "{text:?}");
    let json = world.run(&["send", &odd.url, "hello", "--wait", "1s", "--json"]).await.json();
    let error = &json["error"];
    assert_eq!(
        (&error["kind"], &error["exitCode"], &error["mayHaveArrived"]),
        (&json!("timedOut"), &json!(5), &json!(true))
    );
}

#[tokio::test]
async fn a_message_that_did_not_leave_is_said_not_to_have() {
    let world = World::new();
    let silent = crate::keyed_agent::silent().await;
    let ran = world.run(&["send", &silent.url, "hello", "--wait", "1s", "--json"]).await;
    let error = &ran.json()["error"];
    assert_eq!((ran.code, &error["mayHaveArrived"]), (5, &json!(false)), "{ran:?}");
    let refusing = Odd::start(true, |_, _| Answer::Error(-32602, "no")).await;
    let ran = world.run(&["send", &refusing.url, "hello", "--json"]).await;
    let error = &ran.json()["error"];
    assert_eq!(
        (&error["kind"], &error["mayHaveArrived"]),
        (&json!("invalidParams"), &json!(false))
    );
}

#[tokio::test]
async fn a_task_whose_answer_cannot_be_read_is_asked_for_or_at_least_named() {
    let world = World::new();
    let broken = |state: &str| {
        let mut task = task(state, "");
        task["artifacts"] = json!(7);
        task
    };
    for state in [WORKING, "TASK_STATE_COMPLETED"] {
        let sent = broken(state);
        let odd = Odd::start(false, move |method, _| match method {
            "SendMessage" => Answer::Result(json!({ "task": sent })),
            _ => Answer::Result(task("TASK_STATE_COMPLETED", "done")),
        });
        let odd = odd.await;
        world.run(&["send", &odd.url, "hello"]).await.check(0, &["is completed.\ndone"]);
    }
    let over = broken("TASK_STATE_COMPLETED");
    let odd = Odd::start(false, move |method, _| match method {
        "SendMessage" => Answer::Result(json!({ "task": over })),
        _ => Answer::Result(over.clone()),
    });
    let odd = odd.await;
    let again = format!("To ask again: volcanic status {} t-1", odd.url);
    world.run(&["send", &odd.url, "hello"]).await.check(1, &["task t-1", &again]);
    let json = world.run(&["send", &odd.url, "hello", "--json"]).await.json();
    let error = &json["error"];
    assert_eq!(
        (&error["kind"], &error["taskId"], &error["mayHaveArrived"]),
        (&json!("unexpectedAnswer"), &json!("t-1"), &json!(true))
    );
}

#[tokio::test]
async fn ctrl_c_says_what_goes_on() {
    let world = World::new();
    let odd = Odd::start(true, |_, _| Answer::Silence).await;
    let sending = world.spawn(&["send", &odd.url, "hello"]);
    until(|| !odd.asked().is_empty()).await;
    signal_id(sending.id().unwrap(), "INT").await;
    let ran = World::ended(sending).await;
    assert_eq!(ran.code, 5, "{ran:?}");
    assert!(ran.err.contains("Stopped before agent \"agent\" answered."), "{ran:?}");
    assert!(ran.err.contains("The message may have arrived."), "{ran:?}");

    let odd = Odd::start(false, |method, _| {
        let task = task(WORKING, "");
        Answer::Result(if method == "GetTask" { task } else { json!({ "task": task }) })
    });
    let odd = odd.await;
    let waiting = world.spawn(&["send", &odd.url, "hello"]);
    until(|| odd.methods().contains(&"GetTask".to_owned())).await;
    signal_id(waiting.id().unwrap(), "INT").await;
    let ran = World::ended(waiting).await;
    ran.check(5, &["task t-1 (context c-1) is working."]);
    assert!(ran.err.contains(&format!("volcanic watch {} t-1", odd.url)), "{ran:?}");
}

#[tokio::test]
async fn who_does_not_wait_gets_the_task_at_once() {
    let world = World::new();
    let _remote = world.remote().await;
    let text = world.run(&["send", "demo", "slow 60s plum", "--async"]).await;
    text.check(0, &[" is working."]);
    let json = world.run(&["send", "demo", "slow 60s plum", "--no-wait", "--json"]).await;
    assert_eq!(json.code, 0, "{json:?}");
    assert!(json.json()["task"]["id"].is_string(), "{json:?}");
    // What is over by then is told as ever.
    let odd = Odd::start(true, |_, _| {
        Answer::Result(json!({ "task": task("TASK_STATE_FAILED", "no paper") }))
    });
    let odd = odd.await;
    assert_eq!(world.run(&["send", &odd.url, "x", "--async"]).await.code, 1);
    world.run(&["send", "demo", "x", "--async", "--wait", "5s"]).await.check(2, &["--wait"]);
    world.run(&["send", "demo", "x", "--async", "--stream"]).await.check(2, &["--stream"]);
}

#[tokio::test]
async fn a_stream_is_printed_and_its_outcome_told() {
    let world = World::new();
    let _remote = world.remote().await;
    let text = world.run(&["send", "demo", "slow 2s plum", "--stream"]).await;
    text.check(
        0,
        &[
            "task ",
            "working: still working",
            "  finished: plum",
            " is completed.\n(The text is above.)",
        ],
    );
    assert_eq!(text.out.matches("finished: plum").count(), 1, "{text:?}");
    let json = world.run(&["send", "demo", "echo plum", "--stream", "--json"]).await;
    let lines: Vec<Value> =
        json.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(json.code, 0, "{json:?}");
    assert!(lines.len() > 2 && lines[0]["task"].is_object(), "{json:?}");
    assert_eq!(lines.last().unwrap()["task"]["status"]["state"], "TASK_STATE_COMPLETED");
    let long = ["send", "demo", "echo plum", "--wait", "200000000000000d"];
    world.run(&long).await.check(0, &["echo: plum"]);
    let asked = world.run(&["send", "demo", "book a boat", "--stream"]).await;
    asked.check(6, &["input-required: Which day?", " is input-required.\n(The text is above.)"]);
    assert_eq!(asked.out.matches("Which day?").count(), 1, "{asked:?}");
}

#[tokio::test]
async fn streams_of_odd_agents_come_to_an_outcome_as_well() {
    let world = World::new();
    let message = json!({ "message": { "messageId": "m", "role": "ROLE_AGENT", "parts": [{ "text": "just so" }] } });
    let direct = Odd::start(true, {
        let message = message.clone();
        move |_, _| Answer::Events(vec![message.clone()])
    });
    let direct = direct.await;
    world.run(&["send", &direct.url, "x", "--stream"]).await.check(0, &["replied", "just so"]);
    let json = world.run(&["send", &direct.url, "x", "--stream", "--json"]).await;
    assert_eq!(json.json(), message, "it is told once");

    let empty = Odd::start(true, |_, _| Answer::Events(Vec::new())).await;
    let json = world.run(&["send", &empty.url, "x", "--stream", "--json"]).await;
    let error = &json.json()["error"];
    assert_eq!(
        (&error["kind"], &error["mayHaveArrived"]),
        (&json!("unexpectedAnswer"), &json!(true))
    );

    // It ends early, and the task is asked for.
    let early = Odd::start(true, |method, _| match method {
        "SendStreamingMessage" => Answer::Events(vec![json!({ "task": task(WORKING, "") })]),
        "SubscribeToTask" => Answer::Error(-32004, "not now"),
        _ => Answer::Result(task("TASK_STATE_COMPLETED", "done")),
    });
    let early = early.await;
    world.run(&["send", &early.url, "x", "--stream"]).await.check(0, &["is completed.\ndone"]);

    let plain = Odd::start(false, |_, _| {
        Answer::Result(json!({ "task": task("TASK_STATE_COMPLETED", "done") }))
    });
    let plain = plain.await;
    let ran = world.run(&["send", &plain.url, "x", "--stream"]).await;
    ran.check(0, &["is completed.\ndone"]);
    assert!(ran.err.contains("does not stream"), "{ran:?}");
    assert_eq!(plain.methods(), ["SendMessage"]);
}

#[tokio::test]
async fn an_agent_that_does_not_stream_is_asked_to_answer_at_once_also_for_a_stream() {
    let world = World::new();
    let odd = Odd::start(false, |method, _| match method {
        "SendMessage" => Answer::Result(json!({ "task": task(WORKING, "") })),
        _ => Answer::Result(task("TASK_STATE_COMPLETED", "done")),
    });
    let odd = odd.await;
    world.run(&["send", &odd.url, "x", "--stream"]).await.check(0, &["is completed.\ndone"]);
    let asked = odd.asked();
    assert_eq!(asked[0].params["configuration"]["returnImmediately"], true, "{asked:?}");
    assert_eq!(odd.methods(), ["SendMessage", "GetTask"]);

    let streams = Odd::start(true, |_, _| {
        Answer::Events(vec![json!({ "task": task("TASK_STATE_COMPLETED", "done") })])
    });
    let streams = streams.await;
    world.run(&["send", &streams.url, "x", "--stream"]).await.check(0, &["is completed."]);
    let configuration = &streams.asked()[0].params["configuration"];
    assert_ne!(configuration["returnImmediately"], true, "{configuration}");
}

#[tokio::test]
async fn the_time_bounds_the_first_look_at_a_task_as_well() {
    let world = World::new();
    let odd = Odd::start(true, |_, _| Answer::Silence).await;
    let silent = crate::keyed_agent::silent().await;
    for url in [&odd.url, &silent.url] {
        for (command, option) in [("watch", "--timeout"), ("status", "--wait")] {
            let began = Instant::now();
            let arguments = [command, url, "t-1", option, "1s", "--json"];
            let ran = world.run_with(&arguments, &[("A2AClient__CardTimeoutSeconds", "60")]).await;
            assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
            let error = &ran.json()["error"];
            assert_eq!((ran.code, &error["kind"]), (5, &json!("timedOut")), "{ran:?}");
        }
    }
    // No time at all is for how the task stands.
    let odd = Odd::start(true, |_, _| Answer::Result(task(WORKING, ""))).await;
    for (command, option) in [("watch", "--timeout"), ("status", "--wait")] {
        let ran = world.run(&[command, &odd.url, "t-1", option, "0s"]).await;
        ran.check(5, &["task t-1 (context c-1) is working."]);
    }
    assert_eq!(odd.methods(), ["GetTask", "GetTask"]);
}

#[tokio::test]
async fn the_history_is_shown_when_it_is_asked_for() {
    let world = World::new();
    let _remote = world.remote().await;
    let asked = world.run(&["send", "demo", "book a boat"]).await;
    assert!(!asked.out.contains("History"), "{asked:?}");
    let task = asked.task();
    let ran = world.run(&["send", "demo", "book a car", "--history", "1"]).await;
    ran.check(6, &["Which day?\nHistory:\nuser:\n  book a car\n"]);
    let ran = world.run(&["cancel", "demo", ran.task()]).await;
    ran.check(0, &["is canceled."]);
    assert!(!ran.out.contains("History"), "{ran:?}");
    world.run(&["send", "demo", "Monday", "--task", task]).await.check(0, &[]);
    let ran = world.run(&["status", "demo", task, "--history", "9"]).await;
    ran.check(0, &["History:\nuser:\n  book a boat\n", "agent:\n  Which day?", "user:\n  Monday"]);
    assert!(!world.run(&["status", "demo", task]).await.out.contains("History"));
}

#[tokio::test]
async fn a_terminal_shows_what_is_waited_for_and_nothing_of_it_is_left() {
    let world = World::new();
    let remote = world.remote().await;
    let mut sending = Pty::all(&world, &["send", "demo", "slow 3s plum"]);
    let is_live = |row: &String| row.contains(" s  demo: working: still working, about");
    sending.until(|rows| rows.iter().any(is_live)).await;
    let rows = sending.until(|rows| rows.iter().any(|row| row == "finished: plum")).await;
    assert!(!rows.iter().any(is_live), "{rows:#?}");
    assert!(timeout(SOON, sending.child.wait()).await.unwrap().unwrap().success());
    assert_eq!(sending.rows().len(), 3, "an id is longer than a row here: {:#?}", sending.rows());

    // A line that is too long is cut, and a remote cannot steer.
    let long = "x".repeat(200);
    let odd = Odd::start(true, move |_, _| {
        Answer::Held(vec![json!({ "task": task(WORKING, &format!("\u{1b}[2J{long}")) })])
    });
    let odd = odd.await;
    let subscribed = Pty::all(&world, &["subscribe", &odd.url, "t-1"]);
    let rows = subscribed
        .until(|rows| rows.iter().any(|row| row.contains(" s  agent: working: \\u{1b}[2Jx")))
        .await;
    let live = rows.iter().filter(|row| row.contains(" s  agent: ")).count();
    assert_eq!(live, 1, "{rows:#?}");
    drop(remote);
}

#[tokio::test]
async fn without_a_terminal_nothing_is_shown_but_the_outcome() {
    let world = World::new();
    let _remote = world.remote().await;
    let ran = world.run_with(&["send", "demo", "slow 2s plum"], &[("TERM", "xterm")]).await;
    ran.check(0, &["finished: plum"]);
    assert_eq!(ran.err, "", "{ran:?}");
}

#[tokio::test]
async fn a_reader_who_has_had_enough_ends_commands_quietly() {
    let world = World::new();
    let _remote = world.remote().await;
    let sent = world.run(&["send", "demo", "slow 60s plum", "--async"]).await;
    let task = sent.task();
    for arguments in [
        &["agents"][..],
        &["agents", "--json"],
        &["tasks", "demo"],
        &["status", "demo", task, "--json"],
        &["watch", "demo", task],
        &["subscribe", "demo", task, "--json"],
        &["settings"],
        &["watches"],
        &["completions", "zsh"],
    ] {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        let mut command = world.command(arguments, &[]);
        let child = command.stdout(writer).spawn().unwrap();
        // It holds the other end of the pipe as well.
        drop(command);
        let output = timeout(SOON, child.wait_with_output()).await;
        let output = output.unwrap_or_else(|_| panic!("{arguments:?} did not end")).unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), err.as_ref()), (Some(0), ""), "{arguments:?}");
    }
}

#[tokio::test]
async fn who_wants_to_leave_is_not_held_by_a_reader_that_does_not_read() {
    let world = World::new();
    let odd = Odd::start(true, |_, _| {
        Answer::Held(vec![json!({ "task": task(WORKING, &"x".repeat(1 << 20)) })])
    });
    let odd = odd.await;
    for name in ["INT", "TERM"] {
        let mut listening = world.spawn(&["subscribe", &odd.url, "t-1"]);
        let mut said = listening.stdout.take().unwrap();
        // The rest of the line is more than a pipe holds.
        said.read_exact(&mut [0]).await.unwrap();
        let left = timeout(SOON, async {
            loop {
                signal_id(listening.id().unwrap(), name).await;
                if let Ok(ended) = timeout(Duration::from_millis(200), listening.wait()).await {
                    return ended.unwrap();
                }
            }
        });
        assert_eq!(left.await.expect("it did not end").code(), Some(5), "{name}");
    }
}
