//! Received updates.

use std::time::Duration;

use volcanic_agent_core::{Accepted, SessionStore as _};
use volcanic_store::ReceivedUpdate;

use crate::fixture::{Fixture, chat, prompt, start};

fn raw(update_id: i64) -> (i64, String) {
    (update_id, format!(r#"{{"update_id":{update_id}}}"#))
}

fn received(update_id: i64) -> ReceivedUpdate {
    ReceivedUpdate { update_id, raw: raw(update_id).1, received_at: start() }
}

#[tokio::test]
async fn updates_and_offset_are_kept_together() {
    let fixture = Fixture::new();
    assert_eq!(fixture.store.telegram_offset().await.unwrap(), None);
    assert_eq!(fixture.store.record_updates(vec![raw(7), raw(8)], 9).await.unwrap(), 2);
    let after = fixture.crashed();
    assert_eq!(after.store.telegram_offset().await.unwrap(), Some(9));
    assert_eq!(after.store.updates_to_handle(10).await.unwrap(), [received(7), received(8)]);
    assert_eq!(after.store.updates_to_handle(1).await.unwrap(), [received(7)]);
}

#[tokio::test]
async fn repeated_update_is_not_new_and_not_handled_twice() {
    let fixture = Fixture::new();
    fixture.store.record_updates(vec![raw(7)], 8).await.unwrap();
    fixture.store.update_handled(7, None).await.unwrap();
    assert_eq!(fixture.store.record_updates(vec![raw(7), raw(8)], 9).await.unwrap(), 1);
    assert_eq!(fixture.store.updates_to_handle(10).await.unwrap(), [received(8)]);
}

#[tokio::test]
async fn handled_update_and_its_prompt_are_one_commit() {
    let fixture = Fixture::new();
    fixture.store.record_updates(vec![raw(7), raw(8)], 9).await.unwrap();
    let before = fixture.store.stats().commits;
    let accepted = fixture.store.update_handled(7, Some(prompt("42", "tg:42:1"))).await.unwrap();
    assert!(matches!(accepted, Some(Accepted::New(_))));
    assert_eq!(fixture.store.stats().commits, before + 1);
    let after = fixture.crashed();
    assert_eq!(after.store.updates_to_handle(10).await.unwrap(), [received(8)]);
    assert_eq!(after.waiting_keys(&chat("42")).await, ["tg:42:1"]);
    let again = after.store.update_handled(8, Some(prompt("42", "tg:42:1"))).await.unwrap();
    assert_eq!(again, Some(Accepted::AlreadyThere));
    assert_eq!(after.store.updates_to_handle(10).await.unwrap(), []);
}

#[tokio::test]
async fn album_is_one_prompt_of_several_updates() {
    let fixture = Fixture::new();
    fixture.store.record_updates(vec![raw(7), raw(8), raw(9)], 10).await.unwrap();
    fixture.store.updates_handled(vec![7, 8], Some(prompt("42", "tg:42:1"))).await.unwrap();
    assert_eq!(fixture.store.updates_to_handle(10).await.unwrap(), [received(9)]);
    assert_eq!(fixture.store.waiting(&chat("42")).await.unwrap().len(), 1);
}

#[tokio::test]
async fn ids_that_start_over_after_quiet_days_are_new_again() {
    let fixture = Fixture::new();
    fixture.store.record_updates(vec![raw(900), raw(901)], 902).await.unwrap();
    fixture.store.update_handled(900, None).await.unwrap();
    fixture.clock.advance(Duration::from_hours(49));
    assert_eq!(fixture.store.record_updates(vec![raw(900), raw(901)], 5).await.unwrap(), 1);
    assert_eq!(fixture.store.telegram_offset().await.unwrap(), Some(5));
    let ids: Vec<_> = fixture
        .store
        .updates_to_handle(10)
        .await
        .unwrap()
        .iter()
        .map(|update| update.update_id)
        .collect();
    assert_eq!(ids, [901, 900], "what waits unhandled is never forgotten");
}
