use volcanic_a2a_watch::WatchState;
use volcanic_agent_core::ScriptedReply;

use crate::assistant::{Home, Setup, says, send};
use crate::remote::{Remote, RemoteSetup, until, within};

const RESULT: &str = "[A2A result from \"bot\", task T1 (completed)]\nContext: C1\nfinished: it";

#[tokio::test]
async fn restart_in_the_middle_delivers_once() {
    let remote = Remote::new().await;
    let home = Home::with(&remote);
    let assistant = home.start(Setup::at_once(), [send("hold it"), says("It runs.")]).await;
    assistant.say("go").await;
    assistant.kill().await;
    let assistant = home.start(Setup::default(), [says("It is there.")]).await;
    remote.release("it");
    let transcript = assistant.wait_line(&remote, "It is there.").await;
    assert_eq!(
        transcript[4..],
        [format!("delivery: {RESULT}").as_str(), "assistant: It is there."]
    );
    assistant.wait_watches(&[]).await;
    assistant.kill().await;
    let assistant = home.start(Setup::default(), [says("Again?")]).await;
    within(assistant.session().wait_idle()).await;
    assert_eq!(assistant.transcript(&remote).await, transcript);
    assert_eq!(assistant.screen(&remote).await, ["It runs.", "It is there."]);
}

#[tokio::test]
async fn watch_restore_from_pending_file() {
    let remote = Remote::new().await;
    let old = Home::with(&remote);
    let assistant = old.start(Setup::at_once(), [send("hold it"), says("It runs.")]).await;
    assistant.say("go").await;
    assistant.stop().await;
    // Another machine has the workspace, and no state of it.
    let new = Home::with(&remote);
    let view = ".volcanic/a2a/pending.json";
    std::fs::copy(old.workspace().join(view), new.workspace().join(view)).unwrap();
    let assistant = new.start(Setup::default(), [says("1"), says("2"), says("3")]).await;
    remote.release("it");
    let transcript = assistant.wait_line(&remote, "finished: it").await;
    let results = transcript.iter().filter(|line| line.contains(RESULT)).count();
    assert_eq!(results, 1, "{transcript:#?}");
    assert_eq!(remote.texts(), ["hold it"]);
}

#[tokio::test]
async fn wait_that_a_kill_ends_is_taken_over_by_the_watch() {
    let remote = Remote::new().await;
    let home = Home::with(&remote);
    let assistant = home.start(Setup::default(), [send("hold it")]).await;
    assistant.accept("m1", "go").await;
    remote.wait_received(1).await;
    assistant.wait_watches(&[WatchState::Attended]).await;
    assistant.kill().await;
    remote.release("it");
    let assistant = home.start(Setup::default(), [says("I was away."), says("It is there.")]).await;
    let transcript = assistant.wait_line(&remote, "It is there.").await;
    assert_eq!(
        transcript[2..],
        [
            "error: This call was interrupted by a restart; its effect is unknown, check before repeating it.",
            "resumed",
            "assistant: I was away.",
            format!("delivery: {RESULT}").as_str(),
            "assistant: It is there.",
        ]
    );
    assert_eq!(assistant.screen(&remote).await, ["I was away.", "It is there."]);
    assert_eq!(remote.texts(), ["hold it"]);
}

#[tokio::test]
async fn delivered_run_that_a_kill_ends_is_taken_up_again() {
    let remote = Remote::new().await;
    let home = Home::with(&remote);
    let steps = [send("hold it"), says("It runs."), ScriptedReply::hang().into()];
    let assistant = home.start(Setup::at_once(), steps).await;
    assistant.say("go").await;
    remote.release("it");
    until(async || assistant.model.steps_left() == 0).await;
    assistant.kill().await;
    let assistant = home.start(Setup::default(), [says("It is there.")]).await;
    let transcript = assistant.wait_line(&remote, "It is there.").await;
    assert_eq!(
        transcript[4..],
        [format!("delivery: {RESULT}").as_str(), "resumed", "assistant: It is there."]
    );
    assert_eq!(assistant.screen(&remote).await, ["It runs.", "It is there."]);
}

#[tokio::test]
async fn restarted_remote_whose_task_was_cut_off_is_told_once() {
    let mut remote = Remote::new().await;
    let steps = [send("hold it"), says("It runs."), says("It failed.")];
    let assistant = Home::with(&remote).start(Setup::at_once(), steps).await;
    assistant.say("go").await;
    remote.stop().await;
    until(async || assistant.watches.watches(None).await[0].failures >= 2).await;
    remote.start_again().await;
    let transcript = assistant.wait_line(&remote, "It failed.").await;
    assert!(
        transcript[4]
            .starts_with("delivery: [A2A result from \"bot\", task T1 (failed)]\nContext: C1\n"),
        "{transcript:#?}"
    );
    assert_eq!(transcript.len(), 6, "{transcript:#?}");
    assistant.wait_watches(&[]).await;
}

#[tokio::test]
async fn remote_that_is_away_when_its_task_is_done_is_read_when_it_is_back() {
    let mut remote = RemoteSetup::new().start().await;
    let home = Home::with(&remote);
    let assistant = home.start(Setup::at_once(), [send("hold it"), says("It runs.")]).await;
    assistant.say("go").await;
    assistant.kill().await;
    remote.release("it");
    let task = remote.received()[0].task_id.clone();
    until(async || remote.state(&task).await == "completed").await;
    remote.stop().await;
    let assistant = home.start(Setup::default(), [says("It is there.")]).await;
    until(async || assistant.watches.watches(None).await[0].failures >= 2).await;
    remote.start_again().await;
    let transcript = assistant.wait_line(&remote, "It is there.").await;
    assert_eq!(
        transcript[4..],
        [format!("delivery: {RESULT}").as_str(), "assistant: It is there."]
    );
    assert_eq!(remote.texts(), ["hold it"]);
}
