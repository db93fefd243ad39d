use std::time::Duration;

use serde_json::json;
use volcanic_a2a_watch::WatchState;

use crate::assistant::{Home, Setup, call_with, says, send};
use crate::remote::{Remote, until};

#[tokio::test]
async fn watch_agent_removed_ends_watch() {
    let remote = Remote::new().await;
    let home = Home::with(&remote);
    let steps = [send("hold it"), says("It runs."), says("It is gone.")];
    let assistant = home.start(Setup::at_once(), steps).await;
    assistant.say("go").await;
    home.write_agents("[]");
    let transcript = assistant.wait_line(&remote, "It is gone.").await;
    assert_eq!(
        transcript[4..],
        [
            "delivery: [A2A result from \"bot\", task T1 (stopped)]\nContext: C1\n\
             Agent \"bot\" was removed from agents.json, so task T1 is no longer followed.",
            "assistant: It is gone.",
        ]
    );
    assistant.wait_watches(&[]).await;
}

#[tokio::test]
async fn half_edited_file_ends_no_watch() {
    let remote = Remote::new().await;
    let home = Home::with(&remote);
    let steps = [send("hold it"), says("It runs."), says("It is there.")];
    // What counts as removed after a moment would count here, if a broken file were taken for an empty one.
    let assistant = home.start(Setup::at_once(), steps).await;
    assistant.say("go").await;
    let entry =
        std::fs::read_to_string(home.workspace().join(".volcanic/a2a/agents.json")).unwrap();
    home.write_agents("[{\"name\": ");
    until(async || assistant.watches.watches(None).await[0].failures >= 3).await;
    home.write_agents(&entry);
    remote.release("it");
    let transcript = assistant.wait_line(&remote, "It is there.").await;
    assert_eq!(
        transcript[4],
        "delivery: [A2A result from \"bot\", task T1 (completed)]\nContext: C1\nfinished: it"
    );
}

#[tokio::test]
async fn watch_timeout_delivers_notice() {
    let remote = Remote::new().await;
    let steps = [send("hold it"), says("It runs."), says("No answer.")];
    let setup = Setup {
        change: |config| config.watch_timeout = Duration::from_secs(1),
        ..Setup::at_once()
    };
    let assistant = Home::with(&remote).start(setup, steps).await;
    assistant.say("go").await;
    let transcript = assistant.wait_line(&remote, "No answer.").await;
    assert_eq!(
        transcript[4],
        "delivery: [A2A result from \"bot\", task T1 (no result)]\nContext: C1\n\
         Agent \"bot\" gave no result for task T1 within 1s; you can check it with action=status."
    );
    assistant.wait_watches(&[]).await;
}

#[tokio::test]
async fn delivered_question_is_answered_and_its_outcome_delivered_too() {
    let remote = Remote::new().await;
    let answer = call_with(
        "taskId=",
        |task| json!({"action": "send", "agent": "bot", "message": "hold it", "taskId": task}),
    );
    let steps =
        [send("hold it"), says("It runs."), says("Which?"), answer, says("On it."), says("Done.")];
    let assistant = Home::with(&remote).start(Setup::at_once(), steps).await;
    assistant.say("go").await;
    remote.ask("it", "Which one?");
    assistant.wait_line(&remote, "assistant: Which?").await;
    assistant.wait_watches(&[]).await;
    assistant.say("the red one").await;
    remote.release("it");
    let transcript = assistant.wait_line(&remote, "Done.").await;
    assert_eq!(
        transcript[4..],
        [
            "delivery: [A2A question from \"bot\", task T1 (input-required)]\nContext: C1\nWhich one?\n\
             Answer with action=send, agent=bot and taskId=T1.",
            "assistant: Which?",
            "owner: the red one",
            transcript[7].as_str(),
            "tool: Agent \"bot\": task T1 (context C1) is working.\nIt is still running: the result will be delivered to \
             this conversation when it is ready.",
            "assistant: On it.",
            "delivery: [A2A result from \"bot\", task T1 (completed)]\nContext: C1\nfinished: it",
            "assistant: Done.",
        ]
    );
    assistant.wait_watches(&[]).await;
}

#[tokio::test]
async fn login_is_told_once_and_the_outcome_after_it() {
    let remote = Remote::new().await;
    let steps = [send("login it"), says("Please log in."), says("Done.")];
    let assistant = Home::with(&remote).start(Setup::default(), steps).await;
    assistant.say("go").await;
    assert_eq!(
        assistant.transcript(&remote).await[2],
        "tool: Agent \"bot\": task T1 (context C1) is auth-required.\nPlease log in.\n\
         Answer with action=send, agent=bot and taskId=T1."
    );
    assistant.wait_watches(&[WatchState::Watching]).await;
    remote.release("it");
    let transcript = assistant.wait_line(&remote, "Done.").await;
    assert_eq!(
        transcript[4..],
        [
            "delivery: [A2A result from \"bot\", task T1 (completed)]\nContext: C1\nfinished: it",
            "assistant: Done.",
        ]
    );
    assistant.wait_watches(&[]).await;
}

#[tokio::test]
async fn busy_context_names_the_task_that_is_watched() {
    let remote = Remote::new().await;
    let again = call_with(
        "(context ",
        |context| json!({"action": "send", "agent": "bot", "message": "more", "contextId": context}),
    );
    let steps = [send("hold it"), says("It runs."), again, says("Later.")];
    let assistant = Home::with(&remote).start(Setup::at_once(), steps).await;
    assistant.say("go").await;
    assistant.say("and more").await;
    assert_eq!(
        assistant.transcript(&remote).await[6],
        "error: Agent \"bot\" is still busy with task T1 in that context. Its result will be delivered to this \
         conversation by itself; send again after that."
    );
    assert_eq!(assistant.watch_states().await, [WatchState::Watching]);
    assert_eq!(remote.texts(), ["hold it"]);
}
