//! `volcanic chat` in a pipe.

use std::{path::PathBuf, time::Duration};

use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::odd_agent::{Answer, Odd};
use crate::world::{SOON, World, shows, signal, task_in, until};

#[tokio::test]
async fn a_quick_task_is_answered_once_and_sent_once() {
    let world = World::new();
    let remote = world.remote().await;
    let mut chat = world.chat(10);
    chat.say("ask demo: echo plum").await.unwrap();
    shows(&mut chat, "echo: plum").await;
    let (status, lines) = chat.finish(SOON).await.unwrap();
    assert!(status.success(), "{status}");
    assert_eq!(lines.iter().filter(|line| line.contains("plum")).count(), 1, "{lines:?}");
    assert_eq!(remote.received("plum"), 1);
    assert!(world.watches().await.is_empty());
}

#[tokio::test]
async fn the_end_of_the_input_waits_for_all_that_was_said() {
    let world = World::new();
    let remote = world.remote().await;
    let mut chat = world.chat(10);
    for line in ["ask demo: echo plum", "", "ask demo: slow 1s pear", "ask demo: echo fig"] {
        chat.say(line).await.unwrap();
    }
    let (status, lines) = chat.finish(SOON).await.unwrap();
    assert!(status.success(), "{status}");
    let wanted = ["echo: plum", "finished: pear", "echo: fig"];
    let answers: Vec<_> = lines.iter().filter(|line| wanted.contains(&line.as_str())).collect();
    assert_eq!(answers, wanted, "in the order they were said: {lines:?}");
    assert_eq!(remote.journal().len(), 3);
}

#[tokio::test]
async fn a_first_start_writes_nothing_into_the_workspace() {
    let world = World::new();
    let mut chat = world.chat(1);
    chat.say("hello").await.unwrap();
    shows(&mut chat, "I am the scripted assistant").await;
    chat.say("/a2a").await.unwrap();
    shows(&mut chat, "No agents.").await;
    assert!(chat.finish(SOON).await.unwrap().0.success());
    assert_eq!(world.workspace_files(), Vec::<PathBuf>::new());
    assert!(world.path("home/cli").is_dir(), "the state is where it belongs");
}

#[tokio::test]
async fn commands_are_answered_and_quit_leaves_although_there_is_more_to_read() {
    let world = World::new();
    let _remote = world.remote().await;
    let mut chat = world.chat(10);
    for (line, shown) in [
        ("/help", "/quit    leave"),
        ("/a2a", "demo"),
        ("/status", "Nothing is running."),
        ("/stop", "Nothing is running."),
        ("/new", "A new conversation."),
        ("/nonsense now", "There is no command /nonsense now. /help lists them."),
    ] {
        chat.say(line).await.unwrap();
        shows(&mut chat, shown).await;
    }
    chat.say("/quit").await.unwrap();
    assert!(chat.ended_within(SOON).await);
    assert!(chat.finish(SOON).await.unwrap().0.success());
}

#[tokio::test]
async fn a_stopped_run_ends_and_its_task_is_followed_all_the_same() {
    let world = World::new();
    let remote = world.remote().await;
    let mut chat = world.chat(60);
    chat.say("ask demo: slow 2s plum").await.unwrap();
    // The remote has it, so the run waits for it.
    until(|| remote.received("plum") == 1).await;
    chat.say("/status").await.unwrap();
    shows(&mut chat, "Running: a2a.").await;
    chat.say("/stop").await.unwrap();
    shows(&mut chat, "(stopped; a task that was started is followed on: /a2a)").await;
    chat.say("/status").await.unwrap();
    shows(&mut chat, "Nothing is running.").await;
    // The send goes on without the run; its watch is there once the remote has answered.
    let watches = world.until_watched().await;
    assert_eq!(watches.len(), 1, "{watches:?}");
    // A new start asks at once, where this one would only after a pause.
    let (status, lines) = chat.finish(SOON).await.unwrap();
    assert!(status.success(), "{status}");
    let farewell = "1 task is followed on; start a chat here again to hear of it.";
    assert_eq!(lines.last().unwrap(), farewell);
    let task = watches[0]["taskId"].as_str().unwrap();
    world.run(&["status", "demo", task, "--wait", "15s"]).await.check(0, &[]);
    let mut again = world.chat(60);
    shows(&mut again, "News from demo: finished: plum").await;
    assert_eq!(remote.received("plum"), 1);
}

#[tokio::test]
async fn a_stop_says_nothing_of_tasks_that_the_run_did_not_wait_for() {
    let world = World::new();
    let _remote = world.remote().await;
    let mut chat = world.chat(0);
    chat.say("ask demo: slow 60s plum").await.unwrap();
    shows(&mut chat, "will be delivered").await;
    chat.say("/stop").await.unwrap();
    shows(&mut chat, "Nothing is running.").await;
    signal(&chat, "TERM").await;
    let (status, lines) = chat.finish(SOON).await.unwrap();
    assert!(status.success(), "{status}");
    assert!(lines.last().unwrap().starts_with("1 task is followed on;"), "{lines:?}");
}

#[tokio::test]
async fn a_new_conversation_says_first_that_the_old_run_was_stopped() {
    let world = World::new();
    let remote = world.remote().await;
    let mut chat = world.chat(60);
    chat.say("ask demo: slow 30s plum").await.unwrap();
    until(|| remote.received("plum") == 1).await;
    chat.say("/new").await.unwrap();
    shows(&mut chat, "A new conversation.").await;
    assert!(chat.seen().iter().any(|line| line == "(stopped)"), "{:?}", chat.seen());
}

#[tokio::test]
async fn a_long_task_is_handed_over_and_its_result_arrives_by_itself() {
    let world = World::new();
    let remote = world.remote().await;
    let mut chat = world.chat(0);
    chat.say("ask demo: slow 1s plum").await.unwrap();
    shows(&mut chat, "will be delivered").await;
    shows(&mut chat, "News from demo: finished: plum").await;
    let (_, lines) = chat.finish(SOON).await.unwrap();
    assert_eq!(lines.iter().filter(|line| line.contains("finished: plum")).count(), 1, "{lines:?}");
    assert_eq!(remote.received("plum"), 1);
    assert!(world.watches().await.is_empty());
}

#[tokio::test]
async fn sigterm_and_sigint_end_it_in_order_and_an_unfinished_run_is_taken_up() {
    tokio::join!(ends_in_order_by("TERM"), ends_in_order_by("INT"));
}

#[tokio::test]
async fn a_plain_reply_that_comes_after_a_signal_is_told_by_the_next_chat() {
    let world = World::new();
    let moment = CancellationToken::new();
    let late = moment.clone();
    let odd = Odd::start(false, move |_, _| {
        let parts = json!([{ "text": "a plum" }]);
        let reply = json!({ "messageId": "r-1", "role": "ROLE_AGENT", "parts": parts });
        Answer::Late(late.clone(), json!({ "message": reply }))
    });
    let odd = odd.await;
    world.knows(&odd.url);
    let mut chat = world.chat(60);
    chat.say("ask demo: what is it?").await.unwrap();
    until(|| odd.methods() == ["SendMessage"]).await;
    signal(&chat, "TERM").await;
    assert!(!chat.ended_within(Duration::from_secs(1)).await, "it stays for the answer");
    moment.cancel();
    let (status, lines) = chat.finish(SOON).await.unwrap();
    assert!(status.success(), "{status}: {lines:?}");
    let mut again = world.chat(60);
    shows(&mut again, "News from demo").await;
    let (_, lines) = again.finish(SOON).await.unwrap();
    let news: Vec<_> = lines.iter().filter(|line| line.starts_with("News")).collect();
    assert_eq!(news, ["News from demo: a plum"], "{lines:?}");
    assert_eq!(odd.methods(), ["SendMessage"]);
}

async fn ends_in_order_by(name: &str) {
    let world = World::new();
    let rules = "delay_ms = 250\n[[rule]]\nsay = \"one two three four five six seven done\"\n";
    world.write("workspace/slow.toml", rules);
    let start = || {
        let program = world.program("the chat");
        program.args(["chat", "--model", "scripted:slow.toml"]).start().unwrap()
    };
    let mut chat = start();
    chat.say("go").await.unwrap();
    loop {
        chat.say("/status").await.unwrap();
        if shows(&mut chat, ".").await.contains("The model is writing.") {
            break;
        }
    }
    signal(&chat, name).await;
    assert!(chat.ended_within(SOON).await);
    let (status, lines) = chat.finish(SOON).await.unwrap();
    assert!(status.success(), "{name}: {status}");
    assert!(!lines.iter().any(|line| line.contains("done")), "{name}: {lines:?}");

    let mut again = start();
    shows(&mut again, "seven done").await;
    let (_, lines) = again.finish(SOON).await.unwrap();
    assert_eq!(lines.iter().filter(|line| line.contains("done")).count(), 1, "{lines:?}");
}

#[tokio::test]
async fn a_question_is_answered_in_the_chat() {
    let world = World::new();
    let remote = world.remote().await;
    let mut chat = world.chat(10);
    chat.say("ask demo: book a boat").await.unwrap();
    let task = task_in(&shows(&mut chat, " is input-required.").await).unwrap().to_owned();
    chat.say(&format!("reply demo {task}: Monday")).await.unwrap();
    shows(&mut chat, "Booked a boat for Monday.").await;
    let journal = remote.journal();
    assert_eq!(journal[1]["taskId"], task.as_str());
    assert_eq!(journal[1]["contextId"], journal[0]["contextId"]);
}

#[tokio::test]
async fn bytes_that_are_no_text_and_lines_without_end_do_not_end_the_chat() {
    use std::process::Stdio;
    use tokio::{io::AsyncWriteExt as _, process::Command, time::timeout};

    let world = World::new();
    let mut child = Command::new(crate::world::VOLCANIC)
        .args(["chat", "--model", "scripted"])
        .env_clear()
        .env("VOLCANIC_HOME", world.path("home"))
        .current_dir(world.workspace())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut bytes = b"write note: caf\xe9\r\n".to_vec();
    bytes.resize(bytes.len() + (2 << 20), b'x');
    bytes.extend(b"\nread note");
    let writing = async {
        input.write_all(&bytes).await.unwrap();
        drop(input);
    };
    let (output, ()) = tokio::join!(timeout(SOON, child.wait_with_output()), writing);
    let output = output.unwrap().unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{shown}");
    assert!(shown.contains("That line is over 1 MiB"), "{shown}");
    assert!(shown.contains("caf\u{fffd}"), "{shown}");
}
