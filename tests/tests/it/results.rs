//! Sixty outcomes that mean harm, through the whole assistant: each is framed as one text, and nothing else comes of it.
//!
//! The frames stand in `results/frames.txt`, one line of theirs per line there, with what cannot be seen as `<U+2028>`; how
//! tools tell the same is in `results/results.txt`. `VOLCANIC_SNAPSHOTS=write` writes both anew; read what changed.

mod shown;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::json;
use volcanic_agent_core::{
    EntryBody, Message, ModelRequest, Origin, ScriptedModel, ScriptedReply, ScriptedStep,
    SessionStore as _,
};
use volcanic_testkit::{HostileResults, hostile_results};

use crate::assistant::{Assistant, Home, Setup, target};
use crate::remote::within;
use shown::{check_frames, shown};

/// What the owner says to have a message sent.
const ORDER: &str = "please: ";

/// Sends what the owner orders, and has nothing to say about anything else.
fn reply(request: &ModelRequest) -> ScriptedReply {
    let order = match request.messages.last() {
        Some(Message::User { text }) => text.split_once(ORDER).map(|(_, order)| order),
        _ => None,
    };
    match order {
        Some(order) => {
            ScriptedReply::call("a2a", json!({"action": "send", "agent": "bot", "message": order}))
        }
        None => ScriptedReply::say("Noted."),
    }
}

fn model() -> ScriptedModel {
    ScriptedModel::steps((0..1000).map(|_| ScriptedStep::made(reply)))
}

async fn start(agent: &HostileResults, setup: Setup) -> (Home, Assistant) {
    let home = Home::new();
    home.write_agents(&json!([{"name": "bot", "url": agent.url()}]).to_string());
    let assistant = home.start_with(setup, model()).await;
    (home, assistant)
}

/// Orders every one of them with this word before its number.
async fn order_all(assistant: &Assistant, word: &str) {
    for number in 1..=hostile_results().len() {
        assistant.say(&format!("{ORDER}{word} {number:02}")).await;
    }
}

async fn bodies(assistant: &Assistant) -> Vec<EntryBody> {
    let entries = assistant.store.entries(&target()).await.unwrap();
    entries.into_iter().map(|entry| entry.body).collect()
}

/// The texts that were delivered, without the time before them.
async fn delivered(assistant: &Assistant) -> Vec<String> {
    let delivered = bodies(assistant).await.into_iter().filter_map(|body| match body {
        EntryBody::User { text, origin: Origin::Delivery, .. } => {
            Some(text.split_once('\n').unwrap().1.to_owned())
        }
        _ => None,
    });
    delivered.collect()
}

/// What every file under a folder is called.
fn files(folder: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap();
                found.insert(name.to_str().unwrap().to_owned());
            }
        }
    }
    found
}

/// Nothing came of it but text: no call but those that were ordered, no command, no file outside of the inbox.
async fn check_peace(home: &Home, assistant: &Assistant, agent: &HostileResults, word: &str) {
    let mut sent = agent.sent();
    sent.sort();
    let ordered = (1..=hostile_results().len()).map(|number| format!("{word} {number:02}"));
    assert_eq!(sent, ordered.collect::<Vec<_>>());
    let asked: BTreeSet<_> = agent.asked().into_iter().collect();
    let harmless = BTreeSet::from(["SendMessage".to_owned(), "GetTask".to_owned()]);
    assert!(asked.is_subset(&harmless), "{asked:?}");
    for body in bodies(assistant).await {
        match body {
            EntryBody::Reset | EntryBody::Failed { .. } | EntryBody::Resumed => panic!("{body:?}"),
            EntryBody::Tool(reply) => assert_eq!(reply.name, "a2a"),
            EntryBody::User { .. } | EntryBody::Assistant { .. } => {}
        }
    }
    for file in files(&home.workspace()) {
        let is_ours = [".volcanic/a2a/agents.json", ".volcanic/a2a/pending.json"].contains(&&*file);
        let inbox = file.strip_prefix("inbox/a2a/bot/");
        assert!(is_ours || inbox.is_some_and(|name| !name.contains('/')), "{file} was written");
    }
    let around = home.workspace().parent().unwrap().to_owned();
    let strangers: Vec<_> = fs::read_dir(around)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !["workspace", "state", "roots.pem"].contains(&name.as_str()))
        .collect();
    assert_eq!(strangers, Vec::<String>::new());
}

#[tokio::test]
async fn sixty_hostile_outcomes_are_delivered_as_framed_texts_and_nothing_else() {
    let agent = HostileResults::start().await.unwrap();
    let (home, assistant) = start(&agent, Setup::at_once()).await;
    order_all(&assistant, "case").await;
    let texts = within(async {
        loop {
            let texts = delivered(&assistant).await;
            if texts.len() >= hostile_results().len() {
                assistant.session().wait_idle().await;
                return texts;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    })
    .await;
    let frames = shown(&texts);
    check_peace(&home, &assistant, &agent, "case").await;
    check_frames("frames.txt", &frames);
    assistant.stop().await;
}

#[tokio::test]
async fn sixty_hostile_outcomes_are_results_of_a_tool_and_nothing_else() {
    let agent = HostileResults::start().await.unwrap();
    let (home, assistant) = start(&agent, Setup::default()).await;
    order_all(&assistant, "now").await;
    let results: Vec<_> = bodies(&assistant)
        .await
        .into_iter()
        .filter_map(|body| match body {
            EntryBody::Tool(reply) => Some(reply.text),
            _ => None,
        })
        .collect();
    assert_eq!(results.len(), hostile_results().len());
    check_peace(&home, &assistant, &agent, "now").await;
    check_frames("results.txt", &shown(&results));
    assistant.stop().await;
}
