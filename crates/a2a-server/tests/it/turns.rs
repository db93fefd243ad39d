//! Turns: what begins one, what ends one, and what is refused.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::FutureExt as _;
use serde_json::{Value, json};
use tokio::sync::Notify;
use volcanic_a2a_server::{ServerConfig, SinkError};
use volcanic_a2a_types::Part;

use crate::remote::{
    Remote, Setup, answer_to, does, message, response_of, said, short, state_of, within,
};

#[tokio::test]
async fn question_is_asked_and_answered_in_one_task() {
    let remote = Setup::default().start().await;
    let asked = remote.send("book a table").await;
    assert_eq!((state_of(&asked), said(&asked)), ("INPUT_REQUIRED", "Which day?"));
    let mut by_task_alone = message("Friday");
    by_task_alone["message"]["taskId"] = asked["id"].clone();
    let done = remote.call("SendMessage", by_task_alone).await["task"].take();
    assert_eq!(done["id"], asked["id"]);
    assert_eq!(done["contextId"], asked["contextId"]);
    assert_eq!(
        (state_of(&done), response_of(&done).as_str()),
        ("COMPLETED", "Booked a table for Friday.")
    );
    let said: Vec<&str> = done["history"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["parts"][0]["text"].as_str().unwrap())
        .collect();
    assert_eq!(said, ["book a table", "Which day?", "Friday"]);
    let short_history = json!({"id": done["id"], "historyLength": 1});
    let short_history = remote.call("GetTask", short_history).await;
    assert_eq!(short_history["history"].as_array().unwrap().len(), 1);
    assert_eq!(short_history["history"][0]["parts"][0]["text"], "Friday");
}

#[tokio::test]
async fn continuation_that_does_not_fit_is_refused_and_leaves_no_message() {
    let remote = Setup::default().start().await;
    let asked = remote.send("book a table").await;
    let mut elsewhere = answer_to(&asked, "Friday");
    elsewhere["message"]["contextId"] = "elsewhere".into();
    assert_eq!(remote.code("SendMessage", elsewhere).await, -32602);
    let unknown = json!({"id": "00000000-0000-0000-0000-000000000000", "contextId": null});
    assert_eq!(remote.code("SendMessage", answer_to(&unknown, "x")).await, -32001);
    let task = remote.call("GetTask", json!({"id": asked["id"]})).await;
    assert_eq!(task, asked);

    let ended = remote.send("echo x").await;
    assert_eq!(remote.code("SendMessage", answer_to(&ended, "more")).await, -32004);
    let mut next = message("echo y");
    next["message"]["contextId"] = ended["contextId"].clone();
    let next = remote.call("SendMessage", next).await["task"].take();
    assert_eq!(next["contextId"], ended["contextId"]);
    assert_ne!(next["id"], ended["id"]);
}

#[tokio::test]
async fn of_two_racing_continuations_one_wins_and_the_other_leaves_nothing() {
    let remote = Setup::default().start().await;
    for _ in 0..10 {
        let asked = remote.send("book a table").await;
        let answers = ["Monday", "Friday"].map(|day| {
            let params = answer_to(&asked, day);
            let remote = &remote;
            async move { remote.answer("SendMessage", &params).await }
        });
        let answers = futures::future::join_all(answers).await;
        let lost: Vec<&Value> =
            answers.iter().filter(|answer| answer["error"]["code"] == -32004).collect();
        assert_eq!(lost.len(), 1, "{answers:?}");
        let task = remote.call("GetTask", json!({"id": asked["id"]})).await;
        assert_eq!(task["history"].as_array().unwrap().len(), 3);
    }
}

/// A server whose turns last until they are let go.
async fn held() -> (Remote, Arc<Notify>) {
    let go_on = Arc::new(Notify::new());
    let wait = Arc::clone(&go_on);
    let executor = does(move |_, sink, cancel| {
        let go_on = Arc::clone(&wait);
        async move {
            sink.working().await.unwrap();
            let _ = cancel.run_until_cancelled(go_on.notified()).await;
            let _ = sink.complete().await;
        }
        .boxed()
    });
    (Setup::running(executor).start().await, go_on)
}

#[tokio::test]
async fn one_turn_runs_in_a_context_at_a_time() {
    let (remote, go_on) = held().await;
    let task = remote.begin("first").await;
    assert_eq!(state_of(&task), "WORKING");
    let mut second = message("second");
    second["message"]["contextId"] = task["contextId"].clone();
    let answer = remote.answer("SendMessage", &second).await;
    assert_eq!(answer["error"]["code"], -32004);
    assert!(answer["error"]["message"].as_str().unwrap().starts_with("Context busy"), "{answer}");
    assert_eq!(remote.code("SendMessage", answer_to(&task, "more")).await, -32004);
    go_on.notify_one();
    remote.wait_for(task["id"].as_str().unwrap(), "COMPLETED").await;
    second["configuration"]["returnImmediately"] = true.into();
    remote.call("SendMessage", second).await;
}

#[tokio::test]
async fn canceled_task_stays_canceled_and_frees_its_context() {
    let (remote, _go_on) = held().await;
    let task = remote.begin("x").await;
    let id = json!({"id": task["id"]});
    let canceled = remote.call("CancelTask", id.clone()).await;
    assert_eq!(state_of(&canceled), "CANCELED");
    assert_eq!(remote.call("CancelTask", id.clone()).await, canceled);
    assert_eq!(remote.call("GetTask", id).await, canceled, "a late completion changes nothing");
    let mut next = message("next");
    next["message"]["contextId"] = task["contextId"].clone();
    next["configuration"]["returnImmediately"] = true.into();
    remote.call("SendMessage", next).await;

    let remote = Setup::default().start().await;
    let ended = remote.send("echo x").await;
    assert_eq!(remote.code("CancelTask", json!({"id": ended["id"]})).await, -32002);
    let asked = remote.send("book a table").await;
    let canceled = remote.call("CancelTask", json!({"id": asked["id"]})).await;
    assert_eq!(state_of(&canceled), "CANCELED");
    assert_eq!(remote.code("SendMessage", answer_to(&asked, "Friday")).await, -32004);
}

#[tokio::test]
async fn cancel_ends_a_wait_and_drops_an_executor_that_does_not_listen() {
    let config =
        ServerConfig { cancel_grace: Duration::from_millis(20), ..ServerConfig::default() };
    let executor = does(|_, sink, _| {
        async move {
            sink.working().await.unwrap();
            std::future::pending::<()>().await;
        }
        .boxed()
    });
    let remote = Setup { config, ..Setup::running(executor) }.start().await;
    let waiting = remote.send("x");
    let canceling = async {
        let listed = within(async {
            loop {
                let listed = remote.call("ListTasks", json!({})).await;
                if listed["totalSize"] == 1 {
                    return listed;
                }
                tokio::task::yield_now().await;
            }
        });
        let id = listed.await["tasks"][0]["id"].take();
        remote.call("CancelTask", json!({"id": id})).await
    };
    let (waited, _) = futures::join!(waiting, canceling);
    assert_eq!(state_of(&waited), "CANCELED");
}

#[tokio::test]
async fn executor_that_breaks_or_says_nothing_fails_the_task() {
    let executor = does(|turn, sink, _| {
        async move {
            match turn.user_texts()[0].as_str() {
                "panic early" => panic!("secret reason"),
                "panic late" => {
                    sink.working().await.unwrap();
                    panic!("secret reason")
                }
                _ => {}
            }
        }
        .boxed()
    });
    let remote = Setup::running(executor).start().await;
    for (text, reason) in [
        ("panic early", "The run failed unexpectedly."),
        ("panic late", "The run failed unexpectedly."),
        ("return", "The run ended without a result."),
    ] {
        let task = remote.send(text).await;
        assert_eq!((state_of(&task), said(&task)), ("FAILED", reason));
    }
    let mut events = remote.stream("SendStreamingMessage", message("panic late")).await;
    assert_eq!(events.rest().await, ["task WORKING", "status FAILED"]);
}

#[tokio::test]
async fn nothing_is_taken_after_the_end_of_a_turn() {
    let refused = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&refused);
    let done = Arc::new(Notify::new());
    let tell = Arc::clone(&done);
    let executor = does(move |_, sink, _| {
        let (count, tell) = (Arc::clone(&count), Arc::clone(&tell));
        async move {
            sink.complete().await.unwrap();
            for late in [
                sink.working().await,
                sink.fail("late").await,
                sink.ask("late").await,
                sink.reply(vec![Part::text("late")]).await,
            ] {
                assert!(matches!(late, Err(SinkError::Closed)));
                count.fetch_add(1, Ordering::SeqCst);
            }
            tell.notify_one();
        }
        .boxed()
    });
    let remote = Setup::running(executor).start().await;
    let task = remote.send("x").await;
    within(done.notified()).await;
    assert_eq!(refused.load(Ordering::SeqCst), 4);
    let later = remote.call("GetTask", json!({"id": task["id"]})).await;
    assert_eq!(
        (short(&json!({"task": later})).as_str(), said(&later)),
        ("task COMPLETED", "nothing")
    );
}

#[tokio::test]
async fn work_that_came_through_too_many_agents_fails_at_once() {
    let remote = Setup::default().start().await;
    for (request, message_hops, state) in [
        (Some(json!(4)), None, "FAILED"),
        (Some(json!(3)), Some(json!(9)), "COMPLETED"),
        (Some(json!(3.0)), None, "COMPLETED"),
        (None, Some(json!(4.0)), "FAILED"),
        (Some(json!("many")), None, "FAILED"),
        (None, None, "COMPLETED"),
    ] {
        let mut params = message("echo x");
        if let Some(hops) = &request {
            params["metadata"] = json!({"volcanic.hops": hops});
        }
        if let Some(hops) = &message_hops {
            params["message"]["metadata"] = json!({"volcanic.hops": hops});
        }
        let task = remote.call("SendMessage", params).await["task"].take();
        assert_eq!(state_of(&task), state, "{request:?} {message_hops:?}");
    }
}

#[tokio::test]
async fn turns_beyond_the_limit_are_told_to_come_back() {
    let config = ServerConfig { max_running: 1, ..ServerConfig::default() };
    let remote = Setup { config, ..Setup::default() }.start().await;
    remote.begin("slow 60s x").await;
    let body =
        json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": message("echo x")});
    let response =
        remote.post("/a2a", body.to_string(), &[("content-type", "application/json")]).await;
    assert_eq!(
        (response.status().as_u16(), &response.headers()["retry-after"]),
        (503, &"1".parse().unwrap())
    );
}
