use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio_util::sync::CancellationToken;
use volcanic_a2a_watch::WatchState;
use volcanic_agent_core::{
    EntryBody, NewPrompt, Origin, PlainAnswers, PromptKey, ScriptedModel, ScriptedReply,
    SessionConfig, SessionDeps, SessionStore as _, spawn,
};
use volcanic_base::Chance;

use crate::world::{World, target};

/// Opens the conversation with a model that follows a script.
fn open(world: &World, script: impl IntoIterator<Item = ScriptedReply>) -> ScriptedModel {
    let model = ScriptedModel::steps(script);
    let deps = SessionDeps {
        model: Arc::new(model.clone()),
        tools: vec![Arc::clone(&world.tool) as _],
        store: Arc::new(world.store.clone()),
        clock: Arc::clone(&world.clock) as _,
        chance: Arc::new(Chance::seeded(2)),
    };
    let config = SessionConfig::new("", jiff::tz::TimeZone::UTC, Arc::new(PlainAnswers));
    let session = spawn(target(), config, deps, &world.tracker, CancellationToken::new());
    assert!(world.session.set(session).is_ok());
    model
}

async fn say(world: &World, key: &str, text: &str) {
    let prompt = NewPrompt {
        target: target(),
        key: PromptKey::new(key),
        origin: Origin::Owner,
        hops: 0,
        source: None,
        text: text.to_owned(),
    };
    world.store.accept(prompt).await.unwrap();
    world.session.get().unwrap().wake();
    world.session.get().unwrap().wait_idle().await;
}

fn a2a(action: &str, more: &serde_json::Value) -> ScriptedReply {
    let mut arguments = json!({"action": action, "agent": "travel-bot"});
    arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    ScriptedReply::call("a2a", arguments)
}

/// What the screen shows, oldest first.
fn shown(world: &World) -> Vec<String> {
    world.store.all_outbox(&target()).into_iter().map(|row| row.item.body).collect()
}

#[tokio::test(start_paused = true)]
async fn long_task_is_handed_over_and_its_result_answered_in_a_turn_of_its_own() {
    let world = World::new();
    let model = open(
        &world,
        [
            a2a("send", &json!({"message": "slow"})),
            ScriptedReply::say("It will take a while."),
            ScriptedReply::say("You go to Lisbon."),
        ],
    );
    say(&world, "cli:1", "plan a trip").await;
    assert_eq!(shown(&world), ["It will take a while."]);
    world.agent.complete("t1", "Lisbon");
    tokio::time::sleep(Duration::from_mins(1)).await;
    world.session.get().unwrap().wait_idle().await;
    assert_eq!(shown(&world), ["It will take a while.", "You go to Lisbon."]);
    let delivered = world
        .store
        .all_entries(&target())
        .into_iter()
        .filter_map(|entry| match entry.body {
            EntryBody::User { text, origin: Origin::Delivery, .. } => Some(text),
            _ => None,
        })
        .collect::<Vec<_>>();
    assert_eq!(
        delivered,
        [
            "[2026-11-30 12:00 +00:00 UTC, Mon]\n[A2A result from \"travel-bot\", task t1 (completed)]\nContext: c1\nLisbon"
        ]
    );
    assert_eq!(world.records.all_watches()[0].state, WatchState::Done);
    model.assert_finished();
}

#[tokio::test(start_paused = true)]
async fn question_is_answered_in_the_same_turn_and_nothing_is_delivered_besides() {
    let world = World::new();
    let model = open(
        &world,
        [
            a2a("send", &json!({"message": "ask"})),
            a2a("send", &json!({"message": "May", "taskId": "t1"})),
            ScriptedReply::say("You go to Lisbon in May."),
        ],
    );
    say(&world, "cli:1", "plan a trip").await;
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert_eq!(shown(&world), ["You go to Lisbon in May."]);
    let states: Vec<_> = world.records.all_watches().iter().map(|watch| watch.state).collect();
    assert_eq!(states, [WatchState::Done, WatchState::Done]);
    assert!(world.woken.lock().unwrap().is_empty());
    model.assert_finished();
}

#[tokio::test(start_paused = true)]
async fn stopped_turn_leaves_its_task_watched() {
    let world = World::new();
    let model = open(
        &world,
        [a2a("send", &json!({"message": "slow"})), ScriptedReply::say("Lisbon it is.")],
    );
    let saying = say(&world, "cli:1", "plan a trip");
    let stopping = async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        world.session.get().unwrap().abort().await.unwrap();
    };
    tokio::join!(saying, stopping);
    world.agent.complete("t1", "Lisbon");
    tokio::time::sleep(Duration::from_mins(1)).await;
    world.session.get().unwrap().wait_idle().await;
    assert_eq!(shown(&world).last().map(String::as_str), Some("Lisbon it is."));
    model.assert_finished();
}
