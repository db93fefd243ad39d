use std::time::Duration;

use serde_json::{Value, json};
use volcanic_a2a_watch::WatchState;
use volcanic_agent_core::Origin;

use crate::agent::{KEY, Mood};
use crate::world::World;

#[tokio::test(start_paused = true)]
async fn send_completes_within_wait_and_settles_its_watch_when_committed() {
    let world = World::new();
    let output =
        world.call(json!({"action": "send", "agent": "travel-bot", "message": "go"})).await;
    assert_eq!(output.text, "Agent \"travel-bot\": task t1 (context c1) is completed.\nLisbon");
    let watch = world.records.all_watches()[0].clone();
    assert_eq!(output.delivery_key.unwrap().as_str(), format!("a2a:{}:completed", watch.id));
    assert_eq!(watch.state, WatchState::Attended);
    output.on_committed.unwrap()();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(world.records.all_watches()[0].state, WatchState::Done);
    assert!(world.waiting().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn send_slow_task_says_that_its_result_will_be_delivered() {
    let world = World::new();
    let output =
        world.call(json!({"action": "send", "agent": "travel-bot", "message": "slow"})).await;
    assert_eq!(
        output.text,
        "Agent \"travel-bot\": task t1 (context c1) is working.\nIt is still running: the result will be delivered to \
         this conversation when it is ready."
    );
    assert!(output.delivery_key.is_none() && !output.is_error);
}

#[tokio::test(start_paused = true)]
async fn question_says_how_to_answer_it() {
    let world = World::new();
    let output =
        world.call(json!({"action": "send", "agent": "travel-bot", "message": "ask"})).await;
    assert_eq!(
        output.text,
        "Agent \"travel-bot\": task t1 (context c1) is input-required.\nWhen?\nAnswer with action=send, \
         agent=travel-bot and taskId=t1."
    );
    output.on_committed.unwrap()();
    let answer = json!({"action": "send", "agent": "travel-bot", "message": "May", "taskId": "t1"});
    let output = world.call(answer).await;
    assert!(output.text.contains("is completed"), "{}", output.text);
    let sent = world.agent.sent()[1].clone();
    assert_eq!((&sent["taskId"], &sent["contextId"]), (&json!("t1"), &json!("c1")));
}

#[tokio::test(start_paused = true)]
async fn send_file_artifact_saved_to_inbox() {
    let world = World::new();
    let output =
        world.call(json!({"action": "send", "agent": "travel-bot", "message": "file"})).await;
    assert!(
        output.text.ends_with("\nFiles: inbox/a2a/travel-bot/itinerary.txt"),
        "{}",
        output.text
    );
    let saved =
        std::fs::read(world.workspace().join("inbox/a2a/travel-bot/itinerary.txt")).unwrap();
    assert_eq!(saved, b"hello");
}

#[tokio::test(start_paused = true)]
async fn send_files_argument_sent_as_parts() {
    let world = World::new();
    std::fs::write(world.workspace().join("notes.md"), "# hi").unwrap();
    let call =
        json!({"action": "send", "agent": "travel-bot", "message": "go", "files": ["notes.md"]});
    world.call(call).await;
    let sent = &world.agent.sent()[0]["parts"][1];
    assert_eq!(
        (&sent["raw"], &sent["filename"], &sent["mediaType"]),
        (&json!("IyBoaQ=="), &json!("notes.md"), &json!("text/markdown"))
    );
}

#[tokio::test(start_paused = true)]
async fn file_that_cannot_be_attached_stops_the_send() {
    let world = World::new();
    for path in ["missing.txt", "../outside", ".volcanic/a2a/agents.json"] {
        let call =
            json!({"action": "send", "agent": "travel-bot", "message": "go", "files": [path]});
        let output = world.call(call).await;
        assert!(output.is_error && output.text.starts_with("Could not attach"), "{}", output.text);
    }
    assert!(world.agent.sent().is_empty());
}

#[tokio::test(start_paused = true)]
async fn send_unknown_agent_error() {
    let world = World::new();
    let output = world.call(json!({"action": "send", "agent": "nobody", "message": "hi"})).await;
    assert_eq!(output.text, "Unknown agent \"nobody\". Configured agents: travel-bot.");
    assert!(output.is_error);
}

#[tokio::test(start_paused = true)]
async fn send_401_readable_error() {
    let world = World::new();
    world.write_agents(
        r#"[{"name": "travel-bot", "url": "http://travel.example/", "key": "wrong-key-1234"}]"#,
    );
    let output =
        world.call(json!({"action": "send", "agent": "travel-bot", "message": "hi"})).await;
    let advice = "Check the \"key\" in its entry in .volcanic/a2a/agents.json.";
    let text = format!("Agent \"travel-bot\" rejected the key (401). {advice}");
    assert_eq!(output.text, text);
    assert!(output.is_error);
}

#[tokio::test(start_paused = true)]
async fn result_never_contains_key() {
    let world = World::new();
    let output =
        world.call(json!({"action": "send", "agent": "travel-bot", "message": "leak"})).await;
    assert!(output.is_error && output.text.contains("refused"), "{}", output.text);
    assert!(!output.text.contains(KEY), "{}", output.text);
}

#[tokio::test(start_paused = true)]
async fn hops_incremented() {
    let world = World::new();
    world.call(json!({"action": "send", "agent": "travel-bot", "message": "go"})).await;
    assert_eq!(world.agent.sent()[0]["metadata"]["volcanic.hops"], 3);
}

#[tokio::test(start_paused = true)]
async fn delivered_turns_send_twenty_times_until_the_owner_speaks() {
    let world = World::new();
    let send = json!({"action": "send", "agent": "travel-bot", "message": "go"});
    for _ in 0..20 {
        assert!(!world.call_from(Origin::Delivery, send.clone()).await.is_error);
    }
    let output = world.call_from(Origin::Delivery, send.clone()).await;
    assert!(output.is_error && output.text.starts_with("Nothing was sent"), "{}", output.text);
    assert_eq!(world.agent.sent().len(), 20);
    assert!(!world.call_after(Origin::Delivery, "cli:2", send).await.is_error);
}

#[tokio::test(start_paused = true)]
async fn cancel_tells_the_canceled_task_and_ends_its_watch() {
    let world = World::new();
    world.call(json!({"action": "send", "agent": "travel-bot", "message": "slow"})).await;
    let output =
        world.call(json!({"action": "cancel", "agent": "travel-bot", "taskId": "t1"})).await;
    assert!(
        output.text.starts_with("Agent \"travel-bot\": task t1 (context c1) is canceled."),
        "{}",
        output.text
    );
    output.on_committed.unwrap()();
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert!(world.waiting().await.is_empty());
    assert_eq!(world.records.all_watches()[0].state, WatchState::Done);
}

#[tokio::test(start_paused = true)]
async fn status_returns_task() {
    let world = World::new();
    world.call(json!({"action": "send", "agent": "travel-bot", "message": "slow"})).await;
    let output =
        world.call(json!({"action": "status", "agent": "travel-bot", "taskId": "t1"})).await;
    assert!(output.text.contains("is working"), "{}", output.text);
    assert!(
        output.text.ends_with("delivered to this conversation when it is ready."),
        "{}",
        output.text
    );
    let output =
        world.call(json!({"action": "status", "agent": "travel-bot", "taskId": "t9"})).await;
    assert_eq!(output.text, "Agent \"travel-bot\" refused: no such task (-32001)");
}

fn send(message: &str) -> Value {
    json!({"action": "send", "agent": "travel-bot", "message": message})
}

fn about(action: &str) -> Value {
    json!({"action": action, "agent": "travel-bot", "taskId": "t1"})
}

#[track_caller]
fn check_error(output: &volcanic_agent_core::ToolOutput, text: &str) {
    assert_eq!(output.text, text);
    assert!(output.is_error);
}

#[tokio::test(start_paused = true)]
async fn unknown_agent_of_an_empty_file_is_told_as_such() {
    let world = World::new();
    world.write_agents("[]");
    let output = world.call(json!({"action": "status", "agent": "no\nbody", "taskId": "t1"})).await;
    check_error(&output, "Unknown agent \"no\\u{a}body\". No agents are configured.");
}

#[tokio::test(start_paused = true)]
async fn busy_context_names_the_watched_task_and_touches_no_watch() {
    let world = World::new();
    world.call(send("slow")).await;
    world.agent.set_mood(Mood::Busy);
    let mut again = send("more");
    again["contextId"] = json!("c1");
    check_error(
        &world.call(again.clone()).await,
        "Agent \"travel-bot\" is still busy with task t1 in that context. Its result will be delivered to this \
         conversation by itself; send again after that.",
    );
    let states = || world.records.all_watches().iter().map(|watch| watch.state).collect::<Vec<_>>();
    assert_eq!(states(), [WatchState::Watching]);
    again["contextId"] = json!("c2");
    check_error(
        &world.call(again).await,
        "Agent \"travel-bot\" refused: context busy, retry when the current task ends (-32004)",
    );
    assert_eq!(states(), [WatchState::Watching]);
}

#[tokio::test(start_paused = true)]
async fn send_without_an_answer_is_told_as_unknown_and_not_repeated() {
    let world = World::new();
    world.agent.set_mood(Mood::Silent);
    let output = world.call(send("go")).await;
    check_error(
        &output,
        "Agent \"travel-bot\" did not answer in time. Agent \"travel-bot\" may or may not have received the message; it is \
         not sent again by itself, and no task of it is followed.",
    );
    output.on_committed.unwrap()();
    tokio::time::sleep(Duration::from_hours(24)).await;
    assert_eq!(world.agent.sent().len(), 1);
    assert!(world.waiting().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn stopped_run_is_told_that_its_message_goes_on_its_way() {
    let world = World::new();
    for mood in [Mood::Well, Mood::Silent] {
        world.agent.set_mood(mood);
        check_error(
            &world.call_stopped_after(Duration::from_secs(5), send("slow")).await,
            "The run was stopped. The message to agent \"travel-bot\" goes on its way, and what comes of it will be \
             delivered to this conversation.",
        );
    }
    world.agent.set_mood(Mood::Well);
    world.agent.complete("t1", "Lisbon");
    tokio::time::sleep(Duration::from_mins(2)).await;
    let told = world.waiting().await;
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told.iter().any(|text| text.ends_with("\nLisbon")), "{told:?}");
    assert!(told.iter().any(|text| text.contains("(outcome unknown)")), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn answer_to_a_task_nobody_watches_carries_its_context_too() {
    let world = World::new();
    world.call(send("ask")).await.on_committed.unwrap()();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(world.records.all_watches()[0].state, WatchState::Done);
    let mut answer = send("May");
    answer["taskId"] = json!("t1");
    assert!(!world.call(answer).await.is_error);
    let sent = world.agent.sent()[1].clone();
    assert_eq!((&sent["taskId"], &sent["contextId"]), (&json!("t1"), &json!("c1")));
}

#[tokio::test(start_paused = true)]
async fn login_is_told_like_a_question() {
    let world = World::new();
    let output = world.call(send("login")).await;
    assert_eq!(
        output.text,
        "Agent \"travel-bot\": task t1 (context c1) is auth-required.\nWhen?\nAnswer with action=send, agent=travel-bot and \
         taskId=t1."
    );
}

#[tokio::test(start_paused = true)]
async fn refused_cancel_carries_the_outcome() {
    let world = World::new();
    world.call(send("slow")).await;
    world.agent.complete("t1", "Lisbon");
    world.agent.set_mood(Mood::Stubborn);
    let output = world.call(about("cancel")).await;
    assert_eq!(
        output.text,
        "It was not canceled. Agent \"travel-bot\" refused: it is over already (-32002)\nAgent \"travel-bot\": task t1 \
         (context c1) is completed.\nLisbon"
    );
    output.on_committed.unwrap()();
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert!(world.waiting().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn cancel_that_does_not_get_through_says_that_the_task_is_still_watched() {
    let world = World::new();
    world.call(send("slow")).await;
    for (mood, reason) in
        [(Mood::Away, "answered with HTTP 503."), (Mood::Silent, "did not answer in time.")]
    {
        world.agent.set_mood(mood);
        check_error(
            &world.call(about("cancel")).await,
            &format!("Agent \"travel-bot\" {reason} The task is still watched."),
        );
    }
}

#[tokio::test(start_paused = true)]
async fn attachments_over_the_limit_stop_the_send() {
    let world = World::new();
    for name in ["one", "two"] {
        std::fs::write(world.workspace().join(name), vec![0; 6 << 20]).unwrap();
    }
    let mut call = send("go");
    call["files"] = json!(["one", "two"]);
    check_error(
        &world.call(call).await,
        "Could not attach the files: together they are larger than 10485760 bytes.",
    );
    assert!(world.agent.sent().is_empty());
}

#[tokio::test(start_paused = true)]
async fn files_that_cannot_be_saved_are_named_below_the_text_and_saved_by_a_later_status() {
    let world = World::new();
    let inbox = world.workspace().join("inbox");
    std::fs::write(&inbox, "mine").unwrap();
    let output = world.call(send("file")).await;
    assert_eq!(
        output.text,
        "Agent \"travel-bot\": task t1 (context c1) is completed.\nHere it is.\nFiles not saved: itinerary.txt (`inbox` is \
         not a directory)"
    );
    std::fs::remove_file(inbox).unwrap();
    let output = world.call(about("status")).await;
    assert!(output.text.ends_with("\nHere it is.\nFiles: inbox/a2a/travel-bot/itinerary.txt"));
}

#[tokio::test(start_paused = true)]
async fn arguments_that_do_not_fit_send_nothing() {
    let world = World::new();
    for (arguments, part) in [
        (json!({"action": "snd", "agent": "travel-bot", "message": "hi"}), "Did you mean `send`?"),
        (json!({"action": "send", "agent": "travel-bot", "message": 5}), "`message` is a number"),
        (
            json!({"action": "send", "agent": "travel-bot", "message": "hi", "task_id": "t1"}),
            "`taskId`",
        ),
    ] {
        let output = world.call(arguments).await;
        assert!(output.is_error && output.text.contains(part), "{}", output.text);
    }
    assert!(world.agent.sent().is_empty());
}

#[tokio::test(start_paused = true)]
async fn agent_that_fails_inside_may_have_acted_on_the_message() {
    let world = World::new();
    check_error(
        &world.call(send("break")).await,
        "Agent \"travel-bot\" refused: it broke (-32603). Agent \"travel-bot\" may or may not have received the message; it \
         is not sent again by itself, and no task of it is followed.",
    );
    assert_eq!(world.agent.sent().len(), 1);
}
