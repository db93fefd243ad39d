use std::{sync::Arc, time::Duration};

use serde_json::json;
use tokio::{sync::Notify, time::Instant};
use volcanic_agent_core::{
    AbortEnd, EntryBody, ModelErrorKind, Origin, ScriptedModel, ScriptedReply, SessionError,
    SessionEvent, SessionStore, Tool, ToolOutput,
};

use crate::kit::{
    HookedStore, Kit, accept, config, deaf, echo, sequential_tool, settling, store, target, tool,
};

async fn until_tool_started(kit: &mut Kit, tool: &str) {
    kit.event(|event| matches!(event, SessionEvent::ToolStarted { name, .. } if name == tool))
        .await;
}

async fn until_delta(kit: &mut Kit) {
    kit.event(|event| matches!(event, SessionEvent::TextDelta { .. })).await;
}

#[tokio::test(start_paused = true)]
async fn stopped_reply_is_kept_apart_and_nothing_is_shown() {
    let replies = [ScriptedReply::say("Hello").then_hang(), ScriptedReply::say("Yes.")];
    let mut kit = Kit::start(replies, Vec::new());
    kit.say("a").await;
    until_delta(&mut kit).await;
    let end = kit.handle.abort().await.unwrap();
    assert_eq!(end, AbortEnd { was_running: true, waiting: 0 });
    assert_eq!(kit.lines(), ["user a", "aborted after [say Hello]: stopped by the owner"]);
    assert_eq!(kit.screen(), Vec::<String>::new());
    kit.ask("b").await;
    assert_eq!(kit.last_request(), ["user a", "user b"]);
    assert_eq!(kit.screen(), ["Yes."]);
}

#[tokio::test(start_paused = true)]
async fn stop_leaves_no_call_without_a_result() {
    let never = tool("never", |_, _| async { panic!("a call that had not begun was run") });
    let alone = sequential_tool("alone", |_, _| futures::future::pending());
    let calls = ScriptedReply::call("echo", json!({"text": "before"}))
        .and_call("alone", json!({}))
        .and_call("never", json!({}));
    let replies = [calls, ScriptedReply::say("Yes.")];
    let mut kit = Kit::start(replies, vec![echo(), alone, never]);
    kit.say("a").await;
    until_tool_started(&mut kit, "alone").await;
    let before = Instant::now();
    kit.handle.abort().await.unwrap();
    assert_eq!(before.elapsed(), Duration::from_secs(2));
    let expected = [
        "user a",
        "call echo, call alone, call never",
        "result echo: before",
        "error alone: Operation aborted",
        "error never: Operation aborted",
        "aborted after []: stopped by the owner",
    ];
    assert_eq!(kit.lines(), expected);
    kit.ask("b").await;
    let mut read = expected[..5].to_vec();
    read.push("user b");
    assert_eq!(kit.last_request(), read);
}

#[tokio::test(start_paused = true)]
async fn tool_that_ends_within_the_grace_keeps_its_result() {
    let tidy: Arc<dyn Tool> = tool("tidy", |_, context| async move {
        context.cancel.cancelled().await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        ToolOutput::text("stopped waiting; it goes on by itself")
    });
    let mut kit = Kit::start([ScriptedReply::call("tidy", json!({}))], vec![tidy]);
    kit.say("a").await;
    until_tool_started(&mut kit, "tidy").await;
    let before = Instant::now();
    kit.handle.abort().await.unwrap();
    assert_eq!(before.elapsed(), Duration::from_secs(1));
    let expected = [
        "result tidy: stopped waiting; it goes on by itself",
        "aborted after []: stopped by the owner",
    ];
    assert_eq!(kit.lines()[2..], expected);
}

#[tokio::test(start_paused = true)]
async fn waiting_prompts_stay_and_the_next_one_follows_a_stop() {
    let replies =
        [ScriptedReply::say("Hm").then_hang(), ScriptedReply::say("b"), ScriptedReply::say("c")];
    let mut kit = Kit::start(replies, Vec::new());
    kit.say("first").await;
    until_delta(&mut kit).await;
    kit.say("second").await;
    kit.say("third").await;
    let end = kit.handle.abort().await.unwrap();
    assert_eq!(end, AbortEnd { was_running: true, waiting: 2 });
    kit.idle().await;
    assert_eq!(kit.screen(), ["b", "c"]);
    kit.model.assert_finished();
}

#[tokio::test(start_paused = true)]
async fn stop_without_a_run_changes_nothing() {
    let kit = Kit::start([ScriptedReply::say("Yes.")], Vec::new());
    kit.idle().await;
    let end = kit.handle.abort().await.unwrap();
    assert_eq!(end, AbortEnd { was_running: false, waiting: 0 });
    kit.ask("a").await;
    assert_eq!(kit.lines(), ["user a", "say Yes."]);
}

#[tokio::test(start_paused = true)]
async fn stop_ends_the_wait_for_another_attempt() {
    let limited = ScriptedReply::fail(ModelErrorKind::RateLimited, "too many requests");
    let mut kit = Kit::start([limited.retry_after(Duration::from_secs(50))], Vec::new());
    kit.say("a").await;
    kit.event(|event| matches!(event, SessionEvent::Retrying { .. })).await;
    let before = Instant::now();
    kit.handle.abort().await.unwrap();
    assert_eq!(before.elapsed(), Duration::ZERO);
    let expected = ["retry after []: too many requests", "aborted after []: stopped by the owner"];
    assert_eq!(kit.lines()[1..], expected);
}

#[tokio::test(start_paused = true)]
async fn delivery_whose_run_is_stopped_is_still_shown() {
    let mut kit = Kit::start([ScriptedReply::say("So").then_hang()], Vec::new());
    accept(&kit.store, "d", Origin::Delivery, "[A2A result]").await;
    kit.handle.wake();
    until_delta(&mut kit).await;
    kit.handle.abort().await.unwrap();
    let expected = "The assistant could not answer about this (stopped by the owner). \
                    Here it is as it came:\n\n[A2A result]";
    assert_eq!(kit.screen(), [expected]);
}

#[tokio::test(start_paused = true)]
async fn outcome_that_a_stopped_run_took_from_a_tool_is_shown() {
    let replies = [ScriptedReply::call("settle", json!({})), ScriptedReply::say("So").then_hang()];
    let mut kit = Kit::start(replies, vec![settling("a2a:1:completed")]);
    kit.say("a").await;
    until_delta(&mut kit).await;
    kit.handle.abort().await.unwrap();
    let expected = "The assistant could not answer: stopped by the owner. This had come in before; here it is as it \
                    came:\n\noutcome of a2a:1:completed";
    assert_eq!(kit.screen(), [expected]);
}

#[tokio::test(start_paused = true)]
async fn reset_stops_the_run_and_forgets_the_conversation() {
    let replies = [ScriptedReply::say("Hm").then_hang(), ScriptedReply::say("Fresh.")];
    let mut kit = Kit::start(replies, Vec::new());
    kit.say("old").await;
    until_delta(&mut kit).await;
    kit.say("waits").await;
    kit.handle.reset().await.unwrap();
    kit.idle().await;
    let expected = [
        "user old",
        "aborted after [say Hm]: stopped by the owner",
        "reset",
        "user waits",
        "say Fresh.",
    ];
    assert_eq!(kit.lines(), expected);
    assert_eq!(kit.last_request(), ["user waits"]);
    assert_eq!(kit.store.entries(&target()).await.unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn reset_of_an_idle_session_is_one_commit() {
    let kit = Kit::start([ScriptedReply::say("one"), ScriptedReply::say("two")], Vec::new());
    kit.ask("a").await;
    kit.handle.reset().await.unwrap();
    kit.ask("b").await;
    assert_eq!(kit.lines(), ["user a", "say one", "reset", "user b", "say two"]);
    assert_eq!(kit.last_request(), ["user b"]);
}

#[tokio::test(start_paused = true)]
async fn shutdown_leaves_the_run_to_the_next_process() {
    let quick: Arc<dyn Tool> = tool("quick", |_, context| async move {
        context.cancel.cancelled().await;
        ToolOutput::text("just in time")
    });
    let calls = ScriptedReply::call("quick", json!({})).and_call("deaf", json!({}));
    let mut kit = Kit::start([calls], vec![quick, deaf()]);
    kit.say("a").await;
    until_tool_started(&mut kit, "deaf").await;
    kit.shut_down().await;
    assert!(matches!(kit.handle.abort().await, Err(SessionError::Closed)));
    assert!(matches!(kit.handle.reset().await, Err(SessionError::Closed)));
    kit.idle().await;
    assert_eq!(kit.screen(), Vec::<String>::new());

    let model = ScriptedModel::steps([ScriptedReply::say("Done.")]);
    let next = Kit::over(kit.store.after_crash(), model, Vec::new(), config());
    next.idle().await;
    let expected = [
        "user a",
        "call quick, call deaf",
        "result quick: just in time",
        "error deaf: This call was interrupted by a restart; its effect is unknown, check before repeating it.",
        "resumed",
        "say Done.",
    ];
    assert_eq!(next.lines(), expected);
    assert_eq!(next.screen(), ["Done."]);
}

#[tokio::test(start_paused = true)]
async fn session_ends_when_its_handles_are_gone() {
    let Kit { store, handle, cancel, .. } =
        Kit::start([ScriptedReply::say("Hm").then_hang()], Vec::new());
    accept(&store, "a", Origin::Owner, "a").await;
    let mut events = handle.subscribe();
    handle.wake();
    events.recv().await.unwrap();
    drop(handle);
    let closed = async { while events.recv().await.is_ok() {} };
    crate::kit::within(closed).await;
    assert!(!cancel.is_cancelled(), "the host's token is not the session's to cancel");
    assert_eq!(crate::kit::lines(&store), ["user a"]);
}

#[tokio::test(start_paused = true)]
async fn call_that_waits_its_turn_is_not_begun_after_a_stop() {
    let never = tool("never", |_, _| async { panic!("a call that had not begun was run") });
    let alone = sequential_tool("alone", |_, context| async move {
        context.cancel.cancelled().await;
        ToolOutput::text("ended in time")
    });
    let calls = ScriptedReply::call("alone", json!({})).and_call("never", json!({}));
    let mut kit = Kit::start([calls], vec![alone, never]);
    kit.say("a").await;
    until_tool_started(&mut kit, "alone").await;
    kit.handle.abort().await.unwrap();
    let expected = [
        "result alone: ended in time",
        "error never: Operation aborted",
        "aborted after []: stopped by the owner",
    ];
    assert_eq!(kit.lines()[2..], expected);
}

#[tokio::test(start_paused = true)]
async fn stop_between_a_reply_and_its_calls_gives_each_a_result() {
    let (store, replied) = (store(), Arc::new(Notify::new()));
    let seam = {
        let replied = Arc::clone(&replied);
        HookedStore::new(store.clone(), move |entries| {
            let is_reply = matches!(entries[0].body, EntryBody::Assistant { .. });
            let replied = Arc::clone(&replied);
            Box::pin(async move {
                if is_reply {
                    replied.notify_one();
                    // Paused time passes once the stop has reached the session.
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
            })
        })
    };
    let calls = ScriptedReply::call("echo", json!({})).and_call("echo", json!({}));
    let model = ScriptedModel::steps([calls]);
    let seams: (Arc<dyn SessionStore>, _) = (Arc::new(seam), Arc::new(model.clone()));
    let mut kit = Kit::with_seams(store, seams.0, model, seams.1, vec![echo()], config());
    kit.say("a").await;
    crate::kit::within(replied.notified()).await;
    kit.handle.abort().await.unwrap();
    let expected = [
        "user a",
        "call echo, call echo",
        "error echo: Operation aborted",
        "error echo: Operation aborted",
        "aborted after []: stopped by the owner",
    ];
    assert_eq!(kit.lines(), expected);
    assert!(!kit.events_so_far().iter().any(|line| line.starts_with("tool ")));
}
