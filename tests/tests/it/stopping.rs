use serde_json::json;
use volcanic_a2a_watch::WatchState;
use volcanic_agent_core::{AbortEnd, ScriptedReply};

use crate::assistant::{Home, Setup, call, says, send};
use crate::remote::{Remote, until, within};

const RESULT: &str = "[A2A result from \"bot\", task T1 (completed)]\nContext: C1\nfinished: it";
const LEFT: &str = "error: The run was stopped. The message to agent \"bot\" goes on its way, and what comes of it will be \
                    delivered to this conversation.";

#[tokio::test]
async fn stop_of_a_turn_leaves_the_task_watched_and_its_result_is_delivered_later() {
    let remote = Remote::new().await;
    let steps = [send("hold it"), says("It is there.")];
    let assistant = Home::with(&remote).start(Setup::default(), steps).await;
    assistant.accept("m1", "go").await;
    remote.wait_received(1).await;
    assistant.wait_watches(&[WatchState::Attended]).await;
    let end = within(assistant.session().abort()).await.unwrap();
    assert_eq!(end, AbortEnd { was_running: true, waiting: 0 });
    assistant.wait_watches(&[WatchState::Watching]).await;
    let stopped = [
        "owner: go",
        r#"call: {"action":"send","agent":"bot","message":"hold it"}"#,
        LEFT,
        "failed: stopped by the owner (aborted: true, last: true)",
    ];
    assert_eq!(assistant.transcript(&remote).await, stopped);
    remote.release("it");
    let transcript = assistant.wait_line(&remote, "It is there.").await;
    let delivered = format!("delivery: {RESULT}");
    assert_eq!(
        transcript,
        [&stopped[..], &[delivered.as_str(), "assistant: It is there."]].concat()
    );
    assert_eq!(remote.texts(), ["hold it"]);
    assistant.wait_watches(&[]).await;
}

#[tokio::test]
async fn stopped_send_that_its_agent_cannot_be_reached_for_is_told() {
    let remote = Remote::new().await;
    let home = Home::with(&remote);
    // Takes connections and says nothing.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = silent.local_addr().unwrap();
    home.write_agents(&format!(r#"[{{"name": "bot", "url": "http://{address}/"}}]"#));
    let steps = [send("hold it"), says("It did not leave.")];
    let assistant = home.start(Setup::default(), steps).await;
    assistant.accept("m1", "go").await;
    let (connection, _) = within(silent.accept()).await.unwrap();
    within(assistant.session().abort()).await.unwrap();
    drop((connection, silent));
    let transcript = assistant.wait_line(&remote, "It did not leave.").await;
    assert_eq!(transcript[2], LEFT);
    assert!(
        transcript[4].starts_with(
            "delivery: [A2A result from \"bot\" (not sent)]\nA message to agent \"bot\" was not sent: Could not reach"
        ),
        "{transcript:#?}"
    );
    assert_eq!(transcript.len(), 6, "{transcript:#?}");
}

#[tokio::test]
async fn stop_of_a_delivered_run_shows_its_text() {
    let remote = Remote::new().await;
    let steps = [send("hold it"), says("It runs."), ScriptedReply::hang().into()];
    let assistant = Home::with(&remote).start(Setup::at_once(), steps).await;
    assistant.say("go").await;
    remote.release("it");
    until(async || assistant.model.steps_left() == 0).await;
    within(assistant.session().abort()).await.unwrap();
    let shown = format!(
        "The assistant could not answer about this (stopped by the owner). Here it is as it came:\n\n{RESULT}"
    );
    assert_eq!(assistant.screen(&remote).await, ["It runs.", shown.as_str()]);
}

#[tokio::test]
async fn new_conversation_still_gets_the_result_of_the_old_one() {
    let remote = Remote::new().await;
    let steps = [send("hold it"), says("It runs."), says("It is there.")];
    let assistant = Home::with(&remote).start(Setup::at_once(), steps).await;
    assistant.say("go").await;
    within(assistant.session().reset()).await.unwrap();
    remote.release("it");
    let transcript = assistant.wait_line(&remote, "It is there.").await;
    assert_eq!(transcript, [format!("delivery: {RESULT}").as_str(), "assistant: It is there."]);
    assert_eq!(assistant.screen(&remote).await, ["It runs.", "It is there."]);
}

#[tokio::test]
async fn new_conversation_right_after_a_crash_still_shows_what_was_delivered() {
    let remote = Remote::new().await;
    let home = Home::with(&remote);
    let steps = [send("hold it"), says("It runs."), ScriptedReply::hang().into()];
    let assistant = home.start(Setup::at_once(), steps).await;
    assistant.say("go").await;
    remote.release("it");
    until(async || assistant.model.steps_left() == 0).await;
    assistant.kill().await;
    let assistant = home.start(Setup::default(), [ScriptedReply::hang()]).await;
    within(assistant.session().reset()).await.unwrap();
    let shown = format!(
        "The assistant could not answer about this (stopped by the owner). Here it is as it came:\n\n{RESULT}"
    );
    assert_eq!(assistant.screen(&remote).await, ["It runs.", shown.as_str()]);
    assert_eq!(assistant.transcript(&remote).await, [""; 0]);
}

#[tokio::test]
async fn end_of_the_process_during_a_send_never_says_that_it_was_not_sent() {
    let remote = Remote::new().await;
    let home = Home::with(&remote);
    // The tool and the registry hear of the end at the same moment, so it takes a few rounds to see both orders.
    for round in 0..10 {
        let text = format!("hold {round}");
        let steps = [call(json!({"action": "send", "agent": "bot", "message": text}))];
        let assistant = home.start(Setup::default(), steps).await;
        assistant.accept(&text, "go").await;
        remote.wait_received(round + 1).await;
        assistant.stop().await;
        let assistant = home.start(Setup::default(), [says("resumed"), says("delivered")]).await;
        remote.release(&round.to_string());
        let transcript = assistant.wait_line(&remote, &format!("finished: {round}")).await;
        let told = &transcript[round * 7 + 2];
        assert!(
            told == LEFT || told.starts_with("error: This call was interrupted by a restart"),
            "{told}"
        );
        assistant.stop().await;
    }
    assert_eq!(remote.texts(), (0..10).map(|round| format!("hold {round}")).collect::<Vec<_>>());
}
