use std::time::Duration;

use serde_json::json;
use volcanic_a2a_tool::SessionDelivery;
use volcanic_a2a_watch::{Delivery, DeliveryEnd, ResultDelivery as _, WatchTarget};
use volcanic_agent_core::{Commit, EntryBody, NewEntry, Origin, PromptKey, SessionStore as _};

use crate::world::{World, target};

#[tokio::test(start_paused = true)]
async fn result_is_delivered_once_with_hops_and_source_and_wakes_the_session() {
    let world = World::new();
    world.call(json!({"action": "send", "agent": "travel-bot", "message": "slow"})).await;
    world.agent.complete("t1", "Lisbon");
    tokio::time::sleep(Duration::from_mins(1)).await;
    let waiting = world.store.waiting(&target()).await.unwrap();
    let [prompt] = waiting.as_slice() else { panic!("{waiting:?}") };
    assert_eq!(
        prompt.prompt.text,
        "[A2A result from \"travel-bot\", task t1 (completed)]\nContext: c1\nLisbon"
    );
    assert_eq!((prompt.prompt.origin, prompt.prompt.hops), (Origin::Delivery, 2));
    assert_eq!(prompt.prompt.source.as_ref().unwrap().as_str(), "m7");
    assert_eq!(*world.woken.lock().unwrap(), [target()]);
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert_eq!(world.waiting().await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn store_that_fails_for_a_moment_only_delays_a_result() {
    let world = World::new();
    world.call(json!({"action": "send", "agent": "travel-bot", "message": "slow"})).await;
    world.store.fail_next(3);
    world.agent.complete("t1", "Lisbon");
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(world.waiting().await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn result_for_an_unknown_conversation_is_not_taken() {
    let world = World::new();
    let delivery = SessionDelivery::new(
        std::sync::Arc::new(world.store.clone()),
        [(target(), world.workspace())],
        std::sync::Arc::new(|target| panic!("{target} was woken")),
    );
    let text = Delivery {
        target: WatchTarget::new("222"),
        key: "a2a:w:completed".to_owned(),
        text: "hi".to_owned(),
        hops: 0,
        source_ref: None,
    };
    assert_eq!(delivery.deliver(&text).await.unwrap(), DeliveryEnd::NotNow);
    assert_eq!(delivery.known_targets(), [WatchTarget::new("111")]);
    assert_eq!(delivery.workspace_for(&WatchTarget::new("222")), None);
}

#[tokio::test(start_paused = true)]
async fn what_was_told_in_a_conversation_is_known_by_its_key_whoever_told_it() {
    let world = World::new();
    let delivery = SessionDelivery::new(
        std::sync::Arc::new(world.store.clone()),
        [(target(), world.workspace())],
        std::sync::Arc::new(|_| {}),
    );
    let text = Delivery {
        target: WatchTarget::new("111"),
        key: "a2a:w1:completed".to_owned(),
        text: "hi".to_owned(),
        hops: 0,
        source_ref: None,
    };
    delivery.deliver(&text).await.unwrap();
    let settling =
        NewEntry { body: EntryBody::Resumed, delivery_key: Some(PromptKey::new("a2a:w2:failed")) };
    let commit = Commit {
        target: target(),
        consume: Vec::new(),
        entries: vec![settling],
        outbox: Vec::new(),
    };
    world.store.commit(commit).await.unwrap();
    let told = |target: &str| {
        let keys = ["a2a:w1:failed", "a2a:w1:completed", "a2a:w2:failed"].map(str::to_owned);
        let (delivery, target) = (&delivery, WatchTarget::new(target));
        async move { delivery.told(&target, keys.to_vec()).await.unwrap() }
    };
    assert_eq!(told("111").await, ["a2a:w1:completed", "a2a:w2:failed"]);
    assert_eq!(told("222").await, [""; 0]);
}
