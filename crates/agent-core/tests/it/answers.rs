use std::sync::Arc;

use futures::FutureExt as _;
use serde_json::json;
use tokio::sync::Notify;
use volcanic_agent_core::{
    EntryBody, Message, Origin, OutboxState, RunStatus, ScriptedModel, ScriptedReply, ScriptedStep,
    SessionActivity, SessionEvent, SessionStore as _, SourceRef, StopReason, ToolOutput,
};

use crate::kit::{Kit, accept, clock, config, echo, store, target, tool};

#[tokio::test(start_paused = true)]
async fn prompt_is_answered_in_two_commits() {
    let mut kit = Kit::start([ScriptedReply::say("Hello there.")], vec![echo()]);
    kit.ask("hi").await;
    assert_eq!(kit.lines(), ["user hi", "say Hello there."]);
    assert_eq!(kit.store.commits(), 2);
    let rows = kit.store.all_outbox(&target());
    assert_eq!(rows.len(), 1);
    assert_eq!((rows[0].item.key.as_str(), rows[0].state), ("run:hi", OutboxState::Queued));
    assert_eq!(rows[0].item.source, Some(SourceRef::new("message hi")));
    let events = [
        "started hi Owner",
        "delta Hello ",
        "delta there.",
        "outbox",
        "answered hi: Hello there.",
        "idle",
    ];
    assert_eq!(kit.events_so_far(), events);
    kit.model.assert_finished();
}

#[tokio::test(start_paused = true)]
async fn model_reads_header_system_prompt_and_tools() {
    let kit = Kit::start([ScriptedReply::say("Hello.")], vec![echo()]);
    kit.ask("hi").await;
    let request = kit.model.requests().remove(0);
    let text = "[2026-10-08 12:05 +00:00 UTC, Thu]\nhi".to_owned();
    assert_eq!(request.messages, [Message::User { text: text.clone() }]);
    assert_eq!(request.system, "Be kind.");
    assert_eq!(request.tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["echo"]);
    let entry = kit.store.all_entries(&target()).remove(0);
    let EntryBody::User { text: kept, hops, .. } = entry.body else { panic!("{entry:?}") };
    assert_eq!((kept, hops), (text, 3));
}

#[tokio::test(start_paused = true)]
async fn prompt_that_waits_at_the_start_is_answered() {
    let store = store();
    accept(&store, "k", Origin::Delivery, "news").await;
    let model = ScriptedModel::steps([ScriptedReply::say("Seen.")]);
    let kit = Kit::over(store, model, Vec::new(), config());
    kit.idle().await;
    assert_eq!(kit.lines(), ["user news", "say Seen."]);
}

#[tokio::test(start_paused = true)]
async fn prompts_that_come_during_a_run_are_kept_and_answered_in_order() {
    let (began, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let gate = {
        let (began, go) = (Arc::clone(&began), Arc::clone(&go));
        tool("gate", move |_, _| {
            let (began, go) = (Arc::clone(&began), Arc::clone(&go));
            async move {
                began.notify_one();
                go.notified().await;
                ToolOutput::text("open")
            }
        })
    };
    let kit = Kit::start(
        [
            ScriptedReply::call("gate", json!({})),
            ScriptedReply::say("one"),
            ScriptedReply::say("two"),
            ScriptedReply::say("three"),
        ],
        vec![gate],
    );
    kit.say("a").await;
    began.notified().await;
    kit.say("b").await;
    kit.say("c").await;
    let status = kit.handle.status().await.unwrap();
    assert_eq!(status.waiting, 2);
    assert_eq!(
        status.running,
        Some(RunStatus {
            key: volcanic_agent_core::PromptKey::new("a"),
            origin: Origin::Owner,
            started_at: volcanic_base::Clock::now(&clock()),
            activity: SessionActivity::Tools { names: vec!["gate".to_owned()] },
        })
    );
    go.notify_one();
    kit.idle().await;
    let expected = [
        "user a",
        "call gate",
        "result gate: open",
        "say one",
        "user b",
        "say two",
        "user c",
        "say three",
    ];
    assert_eq!(kit.lines(), expected);
    assert_eq!(kit.screen(), ["one", "two", "three"]);
    let status = kit.handle.status().await.unwrap();
    assert_eq!((status.running, status.waiting), (None, 0));
    kit.model.assert_finished();
}

#[tokio::test(start_paused = true)]
async fn prompt_accepted_at_the_end_of_a_run_is_not_lost() {
    // The second prompt comes while the model gives its last reply to the first, and nobody wakes the session.
    let store = store();
    let late = store.clone();
    let first = ScriptedStep::made(move |_| {
        let accepting = accept(&late, "b", Origin::Owner, "b");
        accepting.now_or_never().unwrap();
        ScriptedReply::say("one")
    });
    let model = ScriptedModel::steps([first, ScriptedReply::say("two").into()]);
    let kit = Kit::over(store, model, Vec::new(), config());
    kit.ask("a").await;
    assert_eq!(kit.screen(), ["one", "two"]);
}

#[tokio::test(start_paused = true)]
async fn reply_without_text_is_told() {
    let replies = [ScriptedReply::say(""), ScriptedReply::say("").stopping(StopReason::Refusal)];
    let kit = Kit::start(replies, Vec::new());
    kit.ask("a").await;
    accept(&kit.store, "d", Origin::Delivery, "[A2A result from \"x\"]").await;
    kit.handle.wake();
    kit.idle().await;
    let expected = [
        "The assistant could not answer: the model ended without an answer.",
        "The assistant could not answer about this (the model declined to answer). \
         Here it is as it came:\n\n[A2A result from \"x\"]",
    ];
    assert_eq!(kit.screen(), expected);
    assert!(kit.store.targets_with_work().await.unwrap() == [target()], "answers wait to be sent");
}

#[tokio::test(start_paused = true)]
async fn session_says_when_it_is_idle_again() {
    let mut kit = Kit::start([ScriptedReply::say("one"), ScriptedReply::say("two")], Vec::new());
    for text in ["a", "b"] {
        kit.say(text).await;
        kit.event(|event| matches!(event, SessionEvent::Answered { .. })).await;
        kit.event(|event| *event == SessionEvent::Idle).await;
        assert!(!kit.handle.is_running());
    }
}
