//! Work that is handed to a remote agent and comes back.

use serde_json::json;
use volcanic_agent_core::{Origin, SessionStore as _};

use crate::bot::{OWNER, Port, World};
use crate::remote::Remote;

async fn world_with(remote: &Remote, wait_seconds: u32) -> World {
    let mut world = World::new().await;
    world.set("A2AClient__Enabled", "true");
    world.set("A2AClient__WaitSeconds", wait_seconds.to_string());
    world.set_agents(&json!([{"name": "demo", "url": remote.url()}]));
    world
}

#[tokio::test]
async fn a_task_is_delegated_and_answered() {
    let remote = Remote::start().await;
    let world = world_with(&remote, 20).await;
    let bot = world.start();
    world.says("ask demo: echo good morning");
    let answer = world.sees_text("echo: good morning").await;
    assert!(answer.text.contains("is completed."), "{}", answer.text);
    let received = remote.received();
    assert_eq!(received.len(), 1);
    assert_eq!((received[0].text.as_str(), received[0].hops), ("echo good morning", 1));
    assert!(
        world
            .log()
            .contains("A2A client: on, agents in each chat's .volcanic/a2a/agents.json, watches")
    );
    assert!(bot.terminate().await.success());
    // The outcome came as the tool's result, so it is not delivered once more.
    assert_eq!(world.prompts().await.len(), 1);
    world.check_manners();
}

#[tokio::test]
async fn a_question_is_answered_from_the_chat() {
    let remote = Remote::start().await;
    let world = world_with(&remote, 20).await;
    let _bot = world.start();
    world.says("ask demo: book a table");
    world.sees_text("Which day?").await;
    let task = remote.received()[0].task_id.clone();
    world.says(&format!("reply demo {task}: Friday"));
    world.sees_text("Booked a table for Friday.").await;
    assert_eq!(remote.received().len(), 2);
}

#[tokio::test]
async fn files_of_a_task_lie_in_the_workspace() {
    let remote = Remote::start().await;
    let world = world_with(&remote, 20).await;
    let _bot = world.start();
    world.says("ask demo: report nothing new");
    world.sees_text("inbox/a2a/demo/report.txt").await;
    let saved = std::fs::read_to_string(world.workspace().join("inbox/a2a/demo/report.txt"));
    assert_eq!(saved.expect("saved"), "nothing new\n");
}

#[tokio::test]
async fn a2a_command_lists_agents_and_watches() {
    let remote = Remote::start_with_key("key-of-the-remote-1234").await;
    let world = world_with(&remote, 0).await;
    world.set_agents(&json!([
        {"name": "demo", "url": remote.url(), "key": "key-of-the-remote-1234"},
        {"name": "Bad Name", "url": remote.url()},
    ]));
    let _bot = world.start();
    world.says("/a2a");
    let before = world.sees_text("Agents:").await.text;
    assert!(before.contains(&format!("- demo: {} (key ****1234)", remote.url())), "{before}");
    assert!(before.contains("skipped:") && before.contains("No watches."), "{before}");
    world.says("ask demo: slow 60s work");
    world.sees_text("still running").await;
    world.says("/a2a");
    let after = world.sees_text("Watches:").await.text;
    let task = remote.received()[0].task_id.clone();
    let watch = after.split_once(&format!("- demo: task {task}\n")).map(|(_, watch)| watch);
    let watch = watch.unwrap_or_else(|| panic!("{after}"));
    for part in ["  watching (", "s, next check in ", "\n  last: working"] {
        assert!(watch.contains(part), "{part} is missing in {watch}");
    }
    world.says("/status");
    world.sees_text("Watched tasks: 1").await;
    assert!(!world.texts().concat().contains("key-of-the-remote-1234"));
    assert!(!world.log().contains("key-of-the-remote-1234"));
}

#[tokio::test]
async fn a2a_command_says_when_the_client_is_off() {
    let world = World::new().await;
    let _bot = world.start();
    world.says("/a2a");
    world.sees_text("The A2A client is off").await;
    assert!(
        !world.workspace().join(".volcanic").exists(),
        "a first start wrote into the workspace"
    );
}

/// The main job: a long task, a crash while it is watched, and one delivery all the same.
#[tokio::test]
async fn result_delivery_goes_to_chat_with_timestamp_header() {
    let remote = Remote::start().await;
    let mut world = world_with(&remote, 0).await;
    world.set("Telegram__TimeZone", "Europe/Berlin");
    let bot = world.start();
    let asked = world.says("ask demo: slow 2s the answer is 42");
    world.sees_text("still running").await;
    bot.kill().await;
    remote.finished().await;
    let bot = world.start();
    let news = world.sees_text("News from demo: finished: the answer is 42").await;
    // It replies to the message that began the work.
    assert_eq!(news.reply_to, Some(asked));
    assert!(bot.terminate().await.success());
    // A third process finds nothing left to deliver.
    let bot = world.start();
    world.says("ls");
    world.sees(|message| message.id > news.id).await;
    assert_eq!(world.count("finished: the answer is 42"), 1, "{:#?}", world.texts());
    assert!(bot.terminate().await.success());
    let delivered: Vec<String> = world
        .prompts()
        .await
        .into_iter()
        .filter_map(|(origin, text)| (origin == Origin::Delivery).then_some(text))
        .collect();
    assert_eq!(delivered.len(), 1, "{delivered:#?}");
    let task = remote.received()[0].task_id.clone();
    let context = remote.received()[0].context_id.clone();
    let shape = format!(
        "^\\[\\d{{4}}-\\d\\d-\\d\\d \\d\\d:\\d\\d \\+0[12]:00 Europe/Berlin, [A-Z][a-z]{{2}}\\]\n\
         \\[A2A result from \"demo\", task {task} \\(completed\\)\\]\nContext: {context}\nfinished: the answer is 42$"
    );
    assert!(
        regex::Regex::new(&shape).expect("valid").is_match(&delivered[0]),
        "{:?}",
        delivered[0]
    );
    assert_eq!(remote.received().len(), 1, "the message was sent again");
    world.check_manners();
}

#[tokio::test]
async fn a_push_brings_the_result_at_once() {
    let remote = Remote::start().await;
    let mut world = world_with(&remote, 0).await;
    let port = Port::reserve();
    let base = format!("http://{}", port.address);
    world.set("A2A__Enabled", "true");
    world.set("A2A__Listen", port.address.to_string());
    world.set("A2A__PublicUrl", base.clone());
    let _bot = world.start();
    world.says("ask demo: slow 2s pushed");
    world.sees_text("still running").await;
    world.says("/a2a");
    world.sees_text("watching (push) for").await;
    world.sees_text("News from demo: finished: pushed").await;
    // Not by the first poll, 15 seconds later.
    assert!(world.log().contains("found_by=\"push\""), "{}", world.log());
    assert!(world.log().contains(&format!("push at {base}")), "{}", world.log());
    world.check_manners();
}

#[tokio::test]
async fn an_outcome_waits_while_its_chat_is_not_allowed() {
    let remote = Remote::start().await;
    let mut world = world_with(&remote, 0).await;
    let bot = world.start();
    world.says("ask demo: slow 1s patience");
    world.sees_text("still running").await;
    bot.kill().await;
    remote.finished().await;
    world.set("TELEGRAM_ALLOWED_USER_IDS", "5");
    let bot = world.start();
    world.api.user_says(5, "/help");
    world.api.await_message(5, crate::bot::LIMIT, |_| true).await.expect("answered");
    assert!(bot.terminate().await.success());
    assert_eq!(world.count("patience"), 0);
    world.set("TELEGRAM_ALLOWED_USER_IDS", OWNER.to_string());
    let _bot = world.start();
    world.sees_text("News from demo: finished: patience").await;
    assert_eq!(world.api.sent_to(5).len(), 1);
}

#[tokio::test]
async fn nobody_calls_agents_before_the_watches_are_read_and_a_stop_does_not_wait_for_it() {
    let remote = Remote::start().await;
    let world = world_with(&remote, 0).await;
    let bot = world.start();
    world.says("/help");
    world.sees_text("/stop").await;
    assert!(bot.terminate().await.success());
    // A run that an earlier process left to be begun.
    let store = crate::bot::open_store(&world.state());
    let prompt = volcanic_agent_core::NewPrompt {
        target: volcanic_agent_core::TargetId::new(OWNER.to_string()),
        key: volcanic_agent_core::PromptKey::new("left"),
        origin: Origin::Owner,
        hops: 0,
        source: None,
        text: "ask demo: echo early".to_owned(),
    };
    store.accept(prompt).await.expect("kept");
    store.close().await;
    let state = rusqlite::Connection::open(world.state()).expect("opened");
    state.execute_batch("ALTER TABLE watches RENAME TO hidden").expect("hidden");
    let bot = world.start();
    let logged = async {
        while world.log().matches("the watches could not be read").count() < 2 {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(crate::bot::LIMIT, logged).await.expect("logged");
    assert!(remote.received().is_empty(), "an agent was called");
    let asked = tokio::time::Instant::now();
    assert!(bot.terminate().await.success(), "{}", world.log());
    assert!(asked.elapsed().as_secs() < 9, "it took {:?}", asked.elapsed());
    assert!(remote.received().is_empty(), "an agent was called");
    state.execute_batch("ALTER TABLE hidden RENAME TO watches").expect("back");
    let _bot = world.start();
    world.sees_text("echo: early").await;
    assert_eq!(remote.received().len(), 1);
}
