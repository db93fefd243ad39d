//! `volcanic agents` and `volcanic watches`.

use serde_json::json;

use crate::world::{World, nobody, shows, task_in};

#[tokio::test]
async fn agents_are_listed_with_their_cards_and_the_unreachable_ones_as_such() {
    let world = World::new();
    let remote = world.remote().await;
    world.agents(&json!([
        { "name": "demo", "url": remote.url },
        { "name": "mine", "url": remote.url, "description": "My \u{1b}[31mown words" },
        { "name": "gone", "url": nobody().await },
        { "name": "Not A Name", "url": "http://127.0.0.1/" },
    ]));
    let text = world.run(&["agents"]).await;
    text.check(
        0,
        &["demo (http", "demo agent, streams", "  - echo: ", "gone (http", "unreachable"],
    );
    text.check(0, &["My \\u{1b}[31mown words", "skipped: "]);
    let json = world.run(&["agents", "--json"]).await.json();
    let agents = json["agents"].as_array().unwrap();
    assert_eq!(agents.len(), 3);
    assert_eq!(agents[0]["card"]["name"], "demo agent");
    assert!(agents[2]["unreachable"].as_str().unwrap().contains("Could not reach"));
    assert_eq!(json["skipped"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn no_agents_is_an_answer_that_says_where_to_write_some() {
    let world = World::new();
    world.run(&["agents"]).await.check(0, &["No agents.", ".volcanic/a2a/agents.json"]);
    assert_eq!(
        world.run(&["agents", "--json"]).await.json(),
        json!({ "agents": [], "skipped": [] })
    );
}

#[tokio::test]
async fn watches_are_shown_while_the_chat_runs_and_are_only_read() {
    let world = World::new();
    let _remote = world.remote().await;
    world.run(&["watches"]).await.check(0, &["No watches."]);
    let mut chat = world.chat(0);
    chat.say("ask demo: slow 60s plum").await.unwrap();
    let task = task_in(&shows(&mut chat, ": task ").await).unwrap().to_owned();
    shows(&mut chat, "will be delivered").await;

    let watches = world.watches().await;
    assert_eq!(watches.len(), 1, "{watches:?}");
    let watch = &watches[0];
    assert_eq!(
        (&watch["agent"], &watch["taskId"], &watch["target"]),
        (&json!("demo"), &json!(task), &json!("cli"))
    );
    assert!(watch["startedAt"].is_string() && watch["contextId"].is_string(), "{watch}");
    world.run(&["watches"]).await.check(0, &[&format!("demo: task {task} (")]);
    chat.say("/a2a").await.unwrap();
    shows(&mut chat, &task).await;

    chat.say(&format!("cancel demo {task}")).await.unwrap();
    shows(&mut chat, "canceled").await;
    assert!(world.watches().await.is_empty());
}
