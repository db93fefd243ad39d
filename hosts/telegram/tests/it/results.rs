//! Sixty outcomes of remote tasks that mean harm, in the chat: they are texts there, and nothing else comes of them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::json;
use tokio::time::Instant;
use volcanic_agent_core::{EntryBody, Origin};
use volcanic_testkit::{HostileResults, hostile_results};

use crate::bot::{LIMIT, World};

/// The looks that Markdown is rendered with.
const LOOKS: [&str; 7] =
    ["bold", "italic", "strikethrough", "code", "pre", "text_link", "blockquote"];

/// Orders every one of them, the next when the last is handed over.
async fn order_all(world: &World) {
    for number in 1..=hostile_results().len() {
        let asked = world.says(&format!("ask demo: case {number:02}"));
        world.sees(|message| message.reply_to == Some(asked) || message.id > asked).await;
    }
}

/// Waits until the bot has told of all of them.
async fn wait_told(world: &World) {
    let begun = Instant::now();
    let count = hostile_results().len();
    while world.texts().iter().filter(|text| text.starts_with("News from demo")).count() < count {
        assert!(begun.elapsed() < 2 * LIMIT, "{:#?}\n{}", world.texts().len(), world.log());
        // The journal is asked: there is one event for each message, and many of them.
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

/// The files under a folder.
fn files(folder: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).expect("listed") {
            let path = entry.expect("read").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).expect("inside");
                found.insert(name.to_str().expect("text").to_owned());
            }
        }
    }
    found
}

/// Messages are texts with the looks of Markdown, links lead to web pages, and there is no button.
#[track_caller]
fn check_chat(world: &World) {
    for call in world.api.calls() {
        let params = call.params.to_string();
        for forbidden in ["\"reply_markup\"", "\"parse_mode\""] {
            assert!(!params.contains(forbidden), "{}: {params}", call.method);
        }
        let method = call.method.to_ascii_lowercase();
        let is_harmless = ["get", "send", "edit", "setmycommands", "deletewebhook"]
            .iter()
            .any(|start| method.starts_with(start));
        assert!(is_harmless, "{}: {params}", call.method);
    }
    for message in world.api.sent_to(crate::bot::OWNER) {
        let is_raw = |c: char| {
            c.is_control() && !matches!(c, '\n' | '\t')
                || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        };
        assert!(!message.text.contains(is_raw), "{:?}", message.text);
        for entity in &message.entities {
            let kind = entity["type"].as_str().unwrap_or_default();
            assert!(LOOKS.contains(&kind), "{entity}");
            let url = entity["url"].as_str().unwrap_or("https://");
            assert!(url.starts_with("https://") || url.starts_with("http://"), "{entity}");
        }
    }
}

#[tokio::test]
async fn sixty_hostile_outcomes_bring_the_chat_texts_and_nothing_else() {
    let agent = HostileResults::start().await.expect("the agent starts");
    let mut world = World::new().await;
    world.set("A2AClient__Enabled", "true");
    world.set("A2AClient__WaitSeconds", "0");
    world.set_agents(&json!([{"name": "demo", "url": agent.url()}]));
    let bot = world.start();
    order_all(&world).await;
    assert!(bot.terminate().await.success());
    // Whatever is still followed is read at the start; nobody waits for the next look.
    let bot = world.start();
    wait_told(&world).await;
    let asked = world.says("/status");
    world.sees(|message| message.id > asked && message.text.contains("Watched tasks")).await;
    assert!(bot.terminate().await.success());
    world.check_manners();
    check_chat(&world);
    let ordered = (1..=hostile_results().len()).map(|number| format!("case {number:02}"));
    assert_eq!(agent.sent(), ordered.collect::<Vec<_>>());
    let harmless = ["SendMessage", "GetTask"];
    assert!(agent.asked().iter().all(|asked| harmless.contains(&asked.as_str())));
    let mut delivered = 0;
    for entry in world.entries().await {
        match entry.body {
            EntryBody::User { origin: Origin::Delivery, .. } => delivered += 1,
            EntryBody::User { origin: Origin::Owner, .. } | EntryBody::Assistant { .. } => {}
            EntryBody::Tool(reply) => assert_eq!(reply.name, "a2a", "{}", reply.text),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(delivered, hostile_results().len());
    for file in files(&world.workspace()) {
        let is_ours = [".volcanic/a2a/agents.json", ".volcanic/a2a/pending.json"].contains(&&*file);
        let inbox = file.strip_prefix("inbox/a2a/demo/");
        assert!(is_ours || inbox.is_some_and(|name| !name.contains('/')), "{file} was written");
    }
}
