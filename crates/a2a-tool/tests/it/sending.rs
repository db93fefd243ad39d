use serde_json::json;
use volcanic_a2a_watch::WatchState;
use volcanic_agent_core::Origin;

use crate::agent::KEY;
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
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
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
async fn send_unknown_agent_error_names_the_configured_ones() {
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
    assert_eq!(output.text, "Agent \"travel-bot\" rejected the key (401).");
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
    tokio::time::sleep(std::time::Duration::from_hours(1)).await;
    assert!(world.waiting().await.is_empty());
    assert_eq!(world.records.all_watches()[0].state, WatchState::Done);
}

#[tokio::test(start_paused = true)]
async fn status_of_a_running_task_says_that_its_result_comes_by_itself() {
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
