//! `volcanic agents` and `volcanic watches`.

use std::{fs, sync::Arc};

use serde_json::json;
use volcanic_a2a_watch::{
    WatchId, WatchRecord, WatchSource, WatchState, WatchStore as _, WatchTarget,
};
use volcanic_base::{Clock as _, SystemClock};
use volcanic_store::Store;

use crate::world::{World, nobody, shows, task_in};

#[tokio::test]
async fn agents_are_listed_with_their_cards_and_the_unreachable_ones_as_such() {
    let world = World::new();
    let (remote, nobody) = (world.remote().await, nobody());
    world.agents(&json!([
        { "name": "demo", "url": remote.url },
        { "name": "mine", "url": remote.url, "description": "My \u{1b}[31mown words" },
        { "name": "gone", "url": nobody.url },
        { "name": "Not A Name", "url": "http://127.0.0.1/" },
    ]));
    let text = world.run(&["agents"]).await;
    text.check(
        0,
        &["demo (http", "demo agent, streams", "  - echo: ", "gone (http", "unreachable"],
    );
    text.check(
        0,
        &["My \\u{1b}[31mown words", "skipped: ", "): unreachable (failed to connect to "],
    );
    let json = world.run(&["agents", "--json"]).await.json();
    let agents = json["agents"].as_array().unwrap();
    assert_eq!(agents.len(), 3);
    assert_eq!(agents[0]["card"]["name"], "demo agent");
    assert!(agents[2]["unreachable"].as_str().unwrap().starts_with("failed to connect to "));
    assert_eq!(json["skipped"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn an_agent_whose_key_is_missing_is_not_called_unreachable() {
    let world = World::new();
    let nobody = nobody();
    world.agents(&json!([{ "name": "keyed", "url": nobody.url, "key": "env:A2A_KEY_GONE" }]));
    let text = world.run(&["agents"]).await;
    text.check(0, &["): not asked (", "the variable A2A_KEY_GONE is not set"]);
    assert!(!text.out.contains("unreachable"), "{text:?}");
    let agents = &world.run(&["agents", "--json"]).await.json()["agents"];
    assert!(agents[0]["notAsked"].is_string() && agents[0]["unreachable"].is_null(), "{agents}");
}

#[tokio::test]
async fn no_agents_is_an_answer_that_says_where_to_write_some() {
    let world = World::new();
    world.run(&["agents"]).await.check(0, &["No agents.", ".volcanic/a2a/agents.json"]);
    assert_eq!(
        world.run(&["agents", "--json"]).await.json(),
        json!({ "agents": [], "skipped": [], "warnings": [] })
    );
}

#[tokio::test]
async fn watches_are_shown_while_the_chat_runs_and_are_only_read() {
    let world = World::new();
    let _remote = world.remote().await;
    world.run(&["watches"]).await.check(0, &["No chat has run here yet."]);
    assert!(world.watches().await.is_empty());
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
    world.run(&["watches"]).await.check(0, &[&format!("- demo: task {task}\n  watching (")]);
    chat.say("/a2a").await.unwrap();
    shows(&mut chat, &task).await;

    chat.say(&format!("cancel demo {task}")).await.unwrap();
    shows(&mut chat, "canceled").await;
    assert!(world.watches().await.is_empty());
    world.run(&["watches"]).await.check(0, &["No watches."]);
}

#[tokio::test]
async fn watches_of_the_bot_are_shown_in_the_workspace_of_their_chat() {
    let world = World::new();
    for id in ["7", "8", "9"] {
        fs::create_dir_all(world.path(&format!("home/telegram-workspaces/{id}"))).unwrap();
    }
    let shown = async |id: &str| {
        let workspace = world.path(&format!("home/telegram-workspaces/{id}"));
        world.run(&["watches", "--workspace", workspace.to_str().unwrap()]).await
    };
    shown("7").await.check(0, &["No chat has run here yet."]);
    fs::create_dir(world.path("home/telegram")).unwrap();
    let database = world.path("home/telegram/state.db");
    let store = Store::open(&database, Arc::new(SystemClock)).unwrap();
    for id in ["7", "8"] {
        let workspace = world.path(&format!("home/telegram-workspaces/{id}"));
        let watch = WatchRecord {
            id: WatchId::new(format!("watch-{id}")),
            target: WatchTarget::new(id),
            workspace,
            agent: "demo".to_owned(),
            origin: "http://demo.example".to_owned(),
            task_id: format!("task-{id}").into(),
            context_id: None,
            push_token: None,
            source: WatchSource::Poll,
            started_at: SystemClock.now(),
            state: WatchState::Watching,
            epoch: 0,
            round: 0,
            told: Vec::new(),
            text: None,
            delivery_key: String::new(),
            goes_on: false,
            failures: 0,
            not_found: 0,
            not_found_since: None,
            next_check_at: None,
            last_seen: None,
            hops: 0,
            source_ref: None,
            message_id: None,
            continuations: 0,
            followed: 0,
        };
        store.add_watches(&[watch]).await.unwrap();
    }
    shown("7").await.check(0, &["- demo: task task-7\n  watching (poll) for 0s\n"]);
    assert!(!shown("7").await.out.contains("task-8"));
    shown("9").await.check(0, &["No watches."]);
    // The bot's state is only read, and none of the command line's is made.
    assert!(!world.path("home/cli").exists());
}
