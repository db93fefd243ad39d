use volcanic_a2a_watch::{WatchState, WatchTarget};
use volcanic_agent_core::{
    ModelErrorKind, ScriptedModel, ScriptedReply, ScriptedStep, SessionStore as _, SourceRef,
};

use crate::assistant::{Home, Setup, says, send, target};
use crate::remote::{Remote, until, within};

const RESULT: &str = "[A2A result from \"bot\", task T1 (completed)]\nContext: C1\nfinished: it";

#[tokio::test]
async fn watch_no_live_session_delivered_on_next_session_start() {
    let remote = Remote::new().await;
    let home = Home::with(&remote);
    let assistant = home.start(Setup::at_once(), [send("hold it"), says("It runs.")]).await;
    assistant.say("go").await;
    assistant.stop().await;
    let nobody = Setup { session: false, ..Setup::default() };
    let assistant = home.start(nobody, [] as [ScriptedStep; 0]).await;
    remote.release("it");
    assistant.wait_watches(&[]).await;
    assert_eq!(assistant.waiting(&remote).await, [RESULT]);
    assistant.stop().await;
    let assistant = home.start(Setup::default(), [says("It is there.")]).await;
    let transcript = assistant.wait_line(&remote, "It is there.").await;
    assert_eq!(
        transcript[4..],
        [format!("delivery: {RESULT}").as_str(), "assistant: It is there."]
    );
    assert_eq!(assistant.screen(&remote).await, ["It runs.", "It is there."]);
}

#[tokio::test]
async fn result_for_a_conversation_that_is_not_allowed_waits_until_it_is() {
    let remote = Remote::new().await;
    let home = Home::with(&remote);
    let assistant = home.start(Setup::at_once(), [send("hold it"), says("It runs.")]).await;
    assistant.say("go").await;
    assistant.stop().await;
    remote.release("it");
    let barred = Setup { known: false, session: false, ..Setup::default() };
    let assistant = home.start(barred, [] as [ScriptedStep; 0]).await;
    assistant.wait_watches(&[WatchState::Claimed]).await;
    assistant.watches.flush(WatchTarget::new("111")).await;
    assert_eq!(assistant.waiting(&remote).await, [""; 0]);
    assistant.stop().await;
    let assistant = home.start(Setup::default(), [says("It is there.")]).await;
    let transcript = assistant.wait_line(&remote, "It is there.").await;
    assert_eq!(
        transcript[4..],
        [format!("delivery: {RESULT}").as_str(), "assistant: It is there."]
    );
    assistant.wait_watches(&[]).await;
}

#[tokio::test]
async fn delivered_run_whose_model_fails_shows_the_framed_text_itself() {
    let remote = Remote::new().await;
    let fails = ScriptedReply::fail(ModelErrorKind::Quota, "the quota is used up").into();
    let steps = [send("hold it"), says("It runs."), fails];
    let assistant = Home::with(&remote).start(Setup::at_once(), steps).await;
    assistant.say("go").await;
    remote.release("it");
    let transcript = assistant.wait_line(&remote, "failed: ").await;
    assert_eq!(
        transcript[4..],
        [
            format!("delivery: {RESULT}").as_str(),
            "failed: the quota is used up (aborted: false, last: true)"
        ]
    );
    let shown = format!(
        "The assistant could not answer about this (the quota is used up). Here it is as it came:\n\n{RESULT}"
    );
    assert_eq!(assistant.screen(&remote).await, ["It runs.", shown.as_str()]);
}

#[tokio::test]
async fn delivery_belongs_to_the_message_that_started_its_task() {
    let remote = Remote::new().await;
    let assistant =
        Home::with(&remote).start(Setup::at_once(), [send("hold it"), says("1"), says("2")]).await;
    assistant.accept("m1", "go").await;
    within(assistant.session().wait_idle()).await;
    remote.release("it");
    assistant.wait_line(&remote, "assistant: 2").await;
    let mut sources = Vec::new();
    while let Some(item) = assistant.store.next_outbox(&target()).await.unwrap() {
        sources.push(item.source.unwrap());
    }
    assert_eq!(sources, [SourceRef::new("ref of m1"), SourceRef::new("ref of m1")]);
}

#[tokio::test]
async fn results_that_arrive_during_a_run_wait_for_its_end_in_their_order() {
    let remote = Remote::new().await;
    // The model goes on only when both results are in the queue.
    let (open, gate) = std::sync::mpsc::channel::<()>();
    let waits = ScriptedStep::made(move |_| {
        gate.recv().unwrap();
        ScriptedReply::say("Both run.")
    });
    let model = ScriptedModel::steps([
        ScriptedReply::call(
            "a2a",
            serde_json::json!({"action": "send", "agent": "bot", "message": "hold a"}),
        )
        .into(),
        send("hold b"),
        waits,
        says("First."),
        says("Second."),
    ]);
    let assistant = Home::with(&remote).start_with(Setup::at_once(), model).await;
    assistant.accept("m1", "go").await;
    remote.wait_received(2).await;
    remote.release("a");
    until(async || !assistant.waiting(&remote).await.is_empty()).await;
    remote.release("b");
    until(async || assistant.waiting(&remote).await.len() >= 2).await;
    open.send(()).unwrap();
    let transcript = assistant.wait_line(&remote, "Second.").await;
    let told: Vec<_> = transcript[5..].iter().map(String::as_str).collect();
    assert_eq!(
        told,
        [
            "assistant: Both run.",
            "delivery: [A2A result from \"bot\", task T1 (completed)]\nContext: C1\nfinished: a",
            "assistant: First.",
            "delivery: [A2A result from \"bot\", task T2 (completed)]\nContext: C2\nfinished: b",
            "assistant: Second.",
        ]
    );
}
