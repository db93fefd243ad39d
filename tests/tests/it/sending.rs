use std::time::Duration;

use serde_json::json;
use volcanic_a2a_watch::{SendEnd, SendOrder, WatchState, WatchTarget};

use crate::assistant::{Home, Setup, call, call_with, says, send};
use crate::remote::{Remote, RemoteSetup, within};

const KEY: &str = "k_secret_0123456789";

#[tokio::test]
async fn send_completes_within_wait_returns_answer_and_ids() {
    let remote = Remote::new().await;
    let assistant =
        Home::with(&remote).start(Setup::default(), [send("echo ho"), says("done")]).await;
    assistant.say("go").await;
    assert_eq!(
        assistant.transcript(&remote).await,
        [
            "owner: go",
            r#"call: {"action":"send","agent":"bot","message":"echo ho"}"#,
            "tool: Agent \"bot\": task T1 (context C1) is completed.\necho: ho",
            "assistant: done",
        ]
    );
    assert_eq!(assistant.screen(&remote).await, ["done"]);
    assert_eq!(remote.texts(), ["echo ho"]);
    assistant.wait_watches(&[]).await;
    assert_eq!(assistant.waiting(&remote).await, [""; 0]);
}

#[tokio::test]
async fn send_continues_context() {
    let remote = Remote::new().await;
    let again = call_with(
        "(context ",
        |context| json!({"action": "send", "agent": "bot", "message": "echo two", "contextId": context}),
    );
    let steps = [send("echo one"), says("1"), again, says("2")];
    let assistant = Home::with(&remote).start(Setup::default(), steps).await;
    assistant.say("first").await;
    assistant.say("second").await;
    assert_eq!(
        assistant.transcript(&remote).await[6],
        "tool: Agent \"bot\": task T2 (context C1) is completed.\necho: two"
    );
    let received = remote.received();
    assert_eq!(received[0].context_id, received[1].context_id);
    assert_ne!(received[0].task_id, received[1].task_id);
}

#[tokio::test]
async fn send_input_required_returns_question() {
    let remote = Remote::new().await;
    let steps = [send("book a table"), says("Which day?")];
    let assistant = Home::with(&remote).start(Setup::default(), steps).await;
    assistant.say("book").await;
    assert_eq!(
        assistant.transcript(&remote).await[2..],
        [
            "tool: Agent \"bot\": task T1 (context C1) is input-required.\nWhich day?\n\
             Answer with action=send, agent=bot and taskId=T1.",
            "assistant: Which day?",
        ]
    );
    assistant.wait_watches(&[]).await;
    assert_eq!(assistant.waiting(&remote).await, [""; 0]);
}

#[tokio::test]
async fn send_answer_with_task_id_continues_task() {
    let remote = Remote::new().await;
    let answer = call_with(
        "taskId=",
        |task| json!({"action": "send", "agent": "bot", "message": "Friday", "taskId": task}),
    );
    let steps = [send("book a table"), says("Which day?"), answer, says("Booked.")];
    let assistant = Home::with(&remote).start(Setup::default(), steps).await;
    assistant.say("book").await;
    assistant.say("Friday").await;
    assert_eq!(
        assistant.transcript(&remote).await[6],
        "tool: Agent \"bot\": task T1 (context C1) is completed.\nBooked a table for Friday."
    );
    let received = remote.received();
    assert_eq!(received[0].task_id, received[1].task_id);
    assert_eq!(received[0].context_id, received[1].context_id);
    assert_eq!(assistant.screen(&remote).await, ["Which day?", "Booked."]);
    assistant.wait_watches(&[]).await;
}

#[tokio::test]
async fn send_to_an_agent_that_is_down_says_that_it_is_out_of_reach() {
    let remote = Remote::new().await;
    let assistant =
        Home::with(&remote).start(Setup::default(), [send("echo hi"), says("It is down.")]).await;
    remote.stop().await;
    assistant.say("go").await;
    let text = &assistant.transcript(&remote).await[2];
    let expected = "error: Could not reach agent \"bot\": failed to connect to 127.0.0.1:";
    assert!(text.starts_with(expected), "{text}");
    assistant.wait_watches(&[]).await;
    assert_eq!(assistant.waiting(&remote).await, [""; 0]);
}

#[tokio::test]
async fn outcome_is_told_and_delivered_although_its_files_cannot_be_saved() {
    let remote = Remote::new().await;
    let home = Home::with(&remote);
    std::fs::write(home.workspace().join("inbox"), "mine").unwrap();
    let unsaved =
        "The report is attached.\nFiles not saved: report.txt (`inbox` is not a directory)";
    let steps = [send("report all is well"), says("1")];
    let assistant = home.start(Setup::default(), steps).await;
    assistant.say("first").await;
    assert_eq!(
        assistant.transcript(&remote).await[2],
        format!("tool: Agent \"bot\": task T1 (context C1) is completed.\n{unsaved}")
    );
    assistant.stop().await;
    let steps = [send("report better"), says("2"), says("3")];
    let assistant = home.start(Setup::at_once(), steps).await;
    assistant.say("second").await;
    let transcript = assistant.wait_line(&remote, "assistant: 3").await;
    assert_eq!(
        transcript[8],
        format!("delivery: [A2A result from \"bot\", task T2 (completed)]\nContext: C2\n{unsaved}")
    );
    assistant.wait_watches(&[]).await;
    assert_eq!(std::fs::read_to_string(home.workspace().join("inbox")).unwrap(), "mine");
}

#[tokio::test]
async fn send_slow_task_starts_watch() {
    let remote = Remote::new().await;
    let setup = Setup { wait: Duration::from_millis(200), ..Setup::default() };
    let steps = [send("hold it"), says("It runs."), says("It is there.")];
    let assistant = Home::with(&remote).start(setup, steps).await;
    assistant.say("go").await;
    assert_eq!(assistant.watch_states().await, [WatchState::Watching]);
    let running = [
        "owner: go",
        r#"call: {"action":"send","agent":"bot","message":"hold it"}"#,
        "tool: Agent \"bot\": task T1 (context C1) is working.\nIt is still running: the result will be delivered to this \
         conversation when it is ready.",
        "assistant: It runs.",
    ];
    assert_eq!(assistant.transcript(&remote).await, running);
    remote.release("it");
    let transcript = assistant.wait_line(&remote, "It is there.").await;
    let delivered = [
        "delivery: [A2A result from \"bot\", task T1 (completed)]\nContext: C1\nfinished: it",
        "assistant: It is there.",
    ];
    assert_eq!(transcript, [running.as_slice(), &delivered].concat());
    assert_eq!(assistant.screen(&remote).await, ["It runs.", "It is there."]);
    assistant.wait_watches(&[]).await;
    assert_eq!(remote.texts(), ["hold it"]);
}

#[tokio::test]
async fn failed_task_is_told_as_failed() {
    let remote = Remote::new().await;
    let steps = [send("fail out of paper"), says("It failed.")];
    let assistant = Home::with(&remote).start(Setup::default(), steps).await;
    assistant.say("go").await;
    assert_eq!(
        assistant.transcript(&remote).await[2],
        "tool: Agent \"bot\": task T1 (context C1) is failed.\nout of paper"
    );
}

#[tokio::test]
async fn send_file_artifact_saved_to_inbox() {
    let remote = Remote::new().await;
    let home = Home::with(&remote);
    let steps = [send("report all is well"), says("1"), send("report better"), says("2")];
    let assistant = home.start(Setup::default(), steps).await;
    assistant.say("first").await;
    assistant.say("second").await;
    let transcript = assistant.transcript(&remote).await;
    assert_eq!(
        [&transcript[2], &transcript[6]],
        [
            "tool: Agent \"bot\": task T1 (context C1) is completed.\nThe report is attached.\n\
             Files: inbox/a2a/bot/report.txt",
            "tool: Agent \"bot\": task T2 (context C2) is completed.\nThe report is attached.\n\
             Files: inbox/a2a/bot/report-2.txt",
        ]
    );
    let inbox = home.workspace().join("inbox/a2a/bot");
    let read = |name| std::fs::read_to_string(inbox.join(name)).unwrap();
    assert_eq!([read("report.txt"), read("report-2.txt")], ["all is well\n", "better\n"]);
}

#[tokio::test]
async fn send_files_argument_sent_as_parts() {
    let remote = Remote::new().await;
    let home = Home::with(&remote);
    std::fs::write(home.workspace().join("notes.md"), "# hi\n").unwrap();
    let order = json!({"action": "send", "agent": "bot", "message": "look", "files": ["notes.md"]});
    let assistant = home.start(Setup::default(), [call(order), says("ok")]).await;
    assistant.say("go").await;
    assert_eq!(
        assistant.transcript(&remote).await[2],
        "tool: Agent \"bot\": task T1 (context C1) is completed.\nYou said: look\n> Files received: notes.md (5 bytes)"
    );
    let file = &remote.journal()[0].files[0];
    assert_eq!((file.name.as_deref(), file.bytes), (Some("notes.md"), 5));
    assert_eq!(file.sha256, "045d2d07c2db3b9e6cef022457ee89434045a508c2dadccf9abe182ad633c273");
}

#[tokio::test]
async fn send_unknown_agent_error() {
    let remote = Remote::new().await;
    let order = json!({"action": "send", "agent": "nobody", "message": "hi"});
    let assistant = Home::with(&remote).start(Setup::default(), [call(order), says("ok")]).await;
    assistant.say("go").await;
    assert_eq!(
        assistant.transcript(&remote).await[2],
        "error: Unknown agent \"nobody\". Configured agents: bot."
    );
}

#[tokio::test]
async fn send_401_readable_error() {
    let remote = RemoteSetup::new().with_key(KEY).start().await;
    let home = Home::new();
    let mut said = Vec::new();
    for (entry, name) in [(r#", "key": "wrong_key_0123456789""#, "wrong"), ("", "none")] {
        home.write_agents(&format!(r#"[{{"name": "bot", "url": "{}"{entry}}}]"#, remote.url()));
        let assistant = home.start(Setup::default(), [send("echo hi"), says("ok")]).await;
        assistant.say(name).await;
        said.push(assistant.transcript(&remote).await.remove(said.len() * 4 + 2));
        assistant.stop().await;
    }
    assert_eq!(
        said,
        [
            "error: Agent \"bot\" rejected the key (401). Check the \"key\" in its entry in .volcanic/a2a/agents.json.",
            "error: Agent \"bot\" asks for a key (401). Give it a \"key\" in its entry in .volcanic/a2a/agents.json."
        ]
    );
    assert!(remote.received().is_empty());
}

#[tokio::test]
async fn result_never_contains_key() {
    let remote = RemoteSetup::new().with_key(KEY).start().await;
    let home = Home::new();
    home.write_agents(&format!(
        r#"[{{"name": "bot", "url": "{}", "key": "{KEY}"}}]"#,
        remote.url()
    ));
    let steps = [
        call(json!({"action": "agents"})),
        send("echo hi"),
        send("fail it"),
        call(json!({"action": "status", "agent": "bot", "taskId": "no-such-task"})),
        says("ok"),
    ];
    let assistant = home.start(Setup::default(), steps).await;
    assistant.say("go").await;
    let transcript = assistant.transcript(&remote).await;
    assert_eq!(transcript.len(), 10, "{transcript:#?}");
    assert!(!format!("{transcript:?}{:?}", assistant.model.requests()).contains(KEY));
    assert_eq!(remote.received()[0].caller, "assistant");
}

#[tokio::test]
async fn status_returns_task() {
    let remote = Remote::new().await;
    let status =
        call_with(": task ", |task| json!({"action": "status", "agent": "bot", "taskId": task}));
    let steps = [send("report all is well"), status, says("Here it is.")];
    let assistant = Home::with(&remote).start(Setup::default(), steps).await;
    assistant.say("go").await;
    let transcript = assistant.transcript(&remote).await;
    assert_eq!(
        [&transcript[2], &transcript[4]],
        ["tool: Agent \"bot\": task T1 (context C1) is completed.\nThe report is attached.\n\
          Files: inbox/a2a/bot/report.txt"; 2]
    );
    assistant.wait_watches(&[]).await;
    assert_eq!(assistant.waiting(&remote).await, [""; 0]);
}

#[tokio::test]
async fn status_of_a_running_task_leaves_its_result_to_come_by_itself() {
    let remote = Remote::new().await;
    let status =
        call_with(": task ", |task| json!({"action": "status", "agent": "bot", "taskId": task}));
    let steps = [send("hold it"), status, says("It runs."), says("It is there.")];
    let assistant = Home::with(&remote).start(Setup::at_once(), steps).await;
    assistant.say("go").await;
    assert_eq!(
        assistant.transcript(&remote).await[4],
        "tool: Agent \"bot\": task T1 (context C1) is working.\nIts result will be delivered to this conversation when it \
         is ready."
    );
    remote.release("it");
    let transcript = assistant.wait_line(&remote, "It is there.").await;
    assert_eq!(transcript.len(), 8, "{transcript:#?}");
}

#[tokio::test]
async fn cancel_cancels_remote_and_drops_watch() {
    let remote = Remote::new().await;
    let cancel =
        call_with(": task ", |task| json!({"action": "cancel", "agent": "bot", "taskId": task}));
    let steps = [send("hold it"), says("It runs."), cancel, says("It is off.")];
    let assistant = Home::with(&remote).start(Setup::at_once(), steps).await;
    assistant.say("go").await;
    assistant.say("stop it").await;
    let text = &assistant.transcript(&remote).await[6];
    assert!(text.starts_with("tool: Agent \"bot\": task T1 (context C1) is canceled."), "{text}");
    assert_eq!(remote.state(&remote.received()[0].task_id).await, "canceled");
    assistant.wait_watches(&[]).await;
    assert_eq!(assistant.waiting(&remote).await, [""; 0]);
    assistant.model.assert_finished();
}

#[tokio::test]
async fn hops_incremented() {
    let remote = Remote::new().await;
    let home = Home::with(&remote);
    let assistant = home.start(Setup::default(), [send("echo a"), says("ok")]).await;
    assistant.say("go").await;
    let order = SendOrder {
        target: WatchTarget::new("111"),
        workspace: home.workspace(),
        agent: "bot".to_owned(),
        text: "echo b".to_owned(),
        parts: Vec::new(),
        context_id: None,
        task_id: None,
        hops: 2,
        source_ref: None,
        unattended: None,
    };
    let sent = within(assistant.watches.send(
        order,
        Duration::from_secs(5),
        tokio_util::sync::CancellationToken::new(),
    ));
    let end = sent.await;
    assert!(matches!(end, Ok(SendEnd::Settled { .. })), "{end:?}");
    assert_eq!(remote.received().iter().map(|one| one.hops).collect::<Vec<_>>(), [1, 3]);
}

#[tokio::test]
async fn hops_from_inbound_event() {
    let remote = Remote::new().await;
    let steps = [
        send("hold it"),
        says("It runs."),
        // The run that the delivery starts has the hops of the one that sent.
        send("echo on"),
        says("Passed on."),
        says("Done."),
    ];
    let assistant = Home::with(&remote).start(Setup::at_once(), steps).await;
    assistant.accept_after(2, "a2a:1", "go").await;
    assistant.wait_line(&remote, "It runs.").await;
    remote.release("it");
    assistant.wait_line(&remote, "Done.").await;
    assert_eq!(remote.received().iter().map(|one| one.hops).collect::<Vec<_>>(), [3, 3]);
}
