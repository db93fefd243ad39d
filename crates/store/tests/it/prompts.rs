//! Accepting and waiting.

use std::time::Duration;

use volcanic_agent_core::{
    Accepted, Commit, NewEntry, NewPrompt, Origin, Prompt, PromptKey, SessionStore as _, SourceRef,
    StoreError,
};

use crate::fixture::{Fixture, answer, chat, prompt, settling, shown, start, step, tool, user};

#[tokio::test]
async fn accepted_prompt_waits_as_it_was_given() {
    let fixture = Fixture::new();
    let given = NewPrompt {
        target: chat("42"),
        key: PromptKey::new("a2a:w1:completed"),
        origin: Origin::Delivery,
        hops: 3,
        source: Some(SourceRef::new("msg 9")),
        text: "  line\n\u{1F30B} 'quoted' \"too\"\0".to_owned(),
    };
    let id = fixture.accept(given.clone()).await;
    let waiting = fixture.store.waiting(&chat("42")).await.unwrap();
    assert_eq!(waiting, [Prompt { id, prompt: given, accepted_at: start() }]);
}

#[tokio::test]
async fn prompts_wait_in_order_of_acceptance_and_apart_by_target() {
    let fixture = Fixture::new();
    for (target, key) in [("1", "z"), ("2", "m"), ("1", "a"), ("1", "k")] {
        fixture.accept(prompt(target, key)).await;
        fixture.clock.set(start() - Duration::from_mins(1));
    }
    assert_eq!(fixture.waiting_keys(&chat("1")).await, ["z", "a", "k"]);
    assert_eq!(fixture.waiting_keys(&chat("2")).await, ["m"]);
    assert_eq!(fixture.waiting_keys(&chat("3")).await, [""; 0]);
}

#[tokio::test]
async fn second_prompt_under_a_key_changes_nothing() {
    let fixture = Fixture::new();
    fixture.accept(prompt("1", "k")).await;
    let other = NewPrompt { text: "other".to_owned(), ..prompt("1", "k") };
    assert_eq!(fixture.store.accept(other).await.unwrap(), Accepted::AlreadyThere);
    let waiting = fixture.store.waiting(&chat("1")).await.unwrap();
    assert_eq!(waiting.len(), 1);
    assert_eq!(waiting[0].prompt.text, "text of k");
    fixture.accept(prompt("2", "k")).await;
}

#[tokio::test]
async fn key_of_a_consumed_prompt_stays_taken_after_a_restart() {
    let fixture = Fixture::new();
    let id = fixture.accept(prompt("1", "k")).await;
    let consume = Commit { consume: vec![id], ..step("1", vec![user("k")]) };
    fixture.store.commit(consume).await.unwrap();
    assert_eq!(fixture.waiting_keys(&chat("1")).await, [""; 0]);
    let after = fixture.crashed();
    assert_eq!(after.store.accept(prompt("1", "k")).await.unwrap(), Accepted::AlreadyThere);
    assert_eq!(after.waiting_keys(&chat("1")).await, [""; 0]);
}

#[tokio::test]
async fn at_most_256_prompts_are_read_at_once() {
    let fixture = Fixture::new();
    for number in 0..260 {
        fixture.accept(prompt("1", &format!("k{number}"))).await;
    }
    let waiting = fixture.waiting_keys(&chat("1")).await;
    assert_eq!(waiting.len(), 256);
    assert_eq!((waiting[0].as_str(), waiting[255].as_str()), ("k0", "k255"));
}

#[tokio::test]
async fn prompt_is_consumed_once_and_the_second_step_writes_nothing() {
    let fixture = Fixture::new();
    let id = fixture.accept(prompt("1", "k")).await;
    let consume = Commit { consume: vec![id], ..step("1", vec![user("k")]) };
    fixture.store.commit(consume.clone()).await.unwrap();
    let again = Commit { outbox: vec![shown("o")], ..consume };
    let error = fixture.store.commit(again).await.unwrap_err();
    let taken_key = match error {
        StoreError::Taken { target, key } if target == chat("1") => key,
        other => panic!("{other:?}"),
    };
    assert_eq!(taken_key, id.0.to_string());
    assert_eq!(fixture.bodies(&chat("1")).await, [user("k")]);
    assert_eq!(fixture.store.next_outbox(&chat("1")).await.unwrap(), None);
}

#[tokio::test]
async fn prompt_of_another_conversation_cannot_be_consumed() {
    let fixture = Fixture::new();
    let id = fixture.accept(prompt("1", "k")).await;
    let foreign = Commit { consume: vec![id], ..step("2", vec![user("k")]) };
    assert!(matches!(fixture.store.commit(foreign).await, Err(StoreError::Taken { .. })));
    assert_eq!(fixture.waiting_keys(&chat("1")).await, ["k"]);
    assert_eq!(fixture.bodies(&chat("2")).await, []);
}

#[tokio::test]
async fn prompts_are_not_consumed_without_an_entry() {
    let fixture = Fixture::new();
    let id = fixture.accept(prompt("1", "k")).await;
    let empty = Commit { consume: vec![id], ..step("1", vec![]) };
    assert!(matches!(fixture.store.commit(empty).await, Err(StoreError::Failed { .. })));
    assert_eq!(fixture.waiting_keys(&chat("1")).await, ["k"]);
}

#[tokio::test]
async fn outcome_settled_by_a_tool_result_is_not_accepted_again() {
    let fixture = Fixture::new();
    let entries = vec![settling(tool("c1", "done"), "a2a:w1:completed")];
    fixture.store.commit(Commit { entries, ..step("1", vec![]) }).await.unwrap();
    assert_eq!(
        fixture.store.accept(prompt("1", "a2a:w1:completed")).await.unwrap(),
        Accepted::AlreadyThere
    );
    assert_eq!(fixture.waiting_keys(&chat("1")).await, [""; 0]);
    fixture.accept(prompt("1", "a2a:w1:auth-required")).await;
}

#[tokio::test]
async fn tool_result_loses_against_an_outcome_that_was_accepted_before() {
    let fixture = Fixture::new();
    fixture.accept(prompt("1", "a2a:w1:completed")).await;
    let entries = vec![
        NewEntry::plain(tool("c0", "other")),
        settling(tool("c1", "done"), "a2a:w1:completed"),
    ];
    let late = Commit { entries, outbox: vec![shown("o")], ..step("1", vec![]) };
    let error = fixture.store.commit(late).await.unwrap_err();
    assert_eq!(error.to_string(), "`a2a:w1:completed` is in conversation `1` already");
    assert_eq!(fixture.bodies(&chat("1")).await, []);
    assert_eq!(fixture.store.next_outbox(&chat("1")).await.unwrap(), None);
    assert_eq!(fixture.waiting_keys(&chat("1")).await, ["a2a:w1:completed"]);
}

#[tokio::test]
async fn two_results_of_one_step_cannot_settle_one_outcome() {
    let fixture = Fixture::new();
    let entries = vec![settling(tool("c1", "done"), "k"), settling(tool("c2", "done"), "k")];
    let step = Commit { entries, ..step("1", vec![]) };
    assert!(matches!(fixture.store.commit(step).await, Err(StoreError::Taken { .. })));
    assert_eq!(fixture.bodies(&chat("1")).await, []);
}

#[tokio::test]
async fn targets_with_work_have_prompts_items_or_an_open_run() {
    let fixture = Fixture::new();
    fixture.accept(prompt("waits", "k")).await;
    fixture
        .store
        .commit(Commit { outbox: vec![shown("o")], ..step("unsent", vec![answer("a")]) })
        .await
        .unwrap();
    fixture
        .store
        .commit(Commit { outbox: vec![shown("o")], ..step("in flight", vec![answer("a")]) })
        .await
        .unwrap();
    fixture.store.next_outbox(&chat("in flight")).await.unwrap().unwrap();
    fixture.store.commit(step("open", vec![answer("earlier"), user("k")])).await.unwrap();
    fixture.store.commit(step("idle", vec![user("k"), answer("a")])).await.unwrap();
    fixture
        .store
        .commit(Commit { outbox: vec![shown("o")], ..step("sent", vec![answer("a")]) })
        .await
        .unwrap();
    let item = fixture.store.next_outbox(&chat("sent")).await.unwrap().unwrap();
    fixture.store.outbox_sent(item.id, None).await.unwrap();
    fixture
        .store
        .commit(Commit { outbox: vec![shown("o")], ..step("given up", vec![answer("a")]) })
        .await
        .unwrap();
    let item = fixture.store.next_outbox(&chat("given up")).await.unwrap().unwrap();
    fixture.store.outbox_failed(item.id, "blocked".to_owned()).await.unwrap();
    let targets = fixture.store.targets_with_work().await.unwrap();
    assert_eq!(targets, [chat("in flight"), chat("open"), chat("unsent"), chat("waits")]);
}

#[tokio::test]
async fn keys_of_prompts_and_of_settled_deliveries_are_taken_in_their_conversation_alone() {
    let fixture = Fixture::new();
    let id = fixture.accept(prompt("1", "k")).await;
    let consume = Commit { consume: vec![id], ..step("1", vec![user("k")]) };
    fixture.store.commit(consume).await.unwrap();
    let entries = vec![settling(tool("c1", "done"), "a2a:w1:completed")];
    fixture.store.commit(Commit { entries, ..step("1", Vec::new()) }).await.unwrap();
    fixture.accept(prompt("2", "other")).await;
    let after = fixture.crashed();
    let keys: Vec<_> =
        ["other", "a2a:w1:completed", "a2a:w1", "k"].into_iter().map(PromptKey::new).collect();
    let taken = after.store.taken(&chat("1"), keys).await.unwrap();
    assert_eq!(taken, [PromptKey::new("a2a:w1:completed"), PromptKey::new("k")]);
}
