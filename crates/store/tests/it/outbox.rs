//! The outbox: one flight per item and process, a label once an end is unknown.

use std::future::Future as _;
use std::pin::pin;
use std::task::{Context, Waker};

use volcanic_agent_core::{Commit, NewOutbox, OutboxId, OutboxItem, SessionStore as _, SourceRef};

use crate::fixture::{Fixture, answer, chat, shown, step};

async fn show(fixture: &Fixture, keys: &[&str]) {
    let outbox = keys.iter().copied().map(shown).collect();
    fixture.store.commit(Commit { outbox, ..step("1", vec![answer("a")]) }).await.unwrap();
}

async fn next(fixture: &Fixture) -> Option<OutboxItem> {
    fixture.store.next_outbox(&chat("1")).await.unwrap()
}

async fn next_key(fixture: &Fixture) -> Option<String> {
    next(fixture).await.map(|item| item.key)
}

fn column(fixture: &Fixture, column: &str, id: OutboxId) -> Option<String> {
    let connection = rusqlite::Connection::open(fixture.path()).unwrap();
    let sql = format!("SELECT {column} FROM outbox WHERE id = ?1");
    connection.query_row(&sql, [id.0], |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn items_are_taken_oldest_first_each_once() {
    let fixture = Fixture::new();
    show(&fixture, &["b", "a"]).await;
    let first = next(&fixture).await.unwrap();
    let expected = OutboxItem {
        id: first.id,
        target: chat("1"),
        key: "b".to_owned(),
        body: "body of b".to_owned(),
        source: Some(SourceRef::new("12")),
        attempts: 0,
        may_repeat: false,
    };
    assert_eq!(first, expected);
    assert_eq!(next_key(&fixture).await.as_deref(), Some("a"));
    assert_eq!(next(&fixture).await, None);
    assert_eq!(fixture.store.next_outbox(&chat("2")).await.unwrap(), None);
}

#[tokio::test]
async fn item_under_a_known_key_changes_nothing() {
    let fixture = Fixture::new();
    show(&fixture, &["a"]).await;
    let other = NewOutbox { body: "other".to_owned(), ..shown("a") };
    fixture
        .store
        .commit(Commit { outbox: vec![other], ..step("1", vec![answer("b")]) })
        .await
        .unwrap();
    assert_eq!(next(&fixture).await.unwrap().body, "body of a");
    assert_eq!(next(&fixture).await, None);
    assert_eq!(fixture.bodies(&chat("1")).await, [answer("a"), answer("b")]);
}

#[tokio::test]
async fn sent_item_keeps_the_id_on_the_screen_and_never_comes_back() {
    let fixture = Fixture::new();
    show(&fixture, &["a"]).await;
    let item = next(&fixture).await.unwrap();
    fixture.store.outbox_sent(item.id, Some("9001".to_owned())).await.unwrap();
    assert_eq!(next(&fixture).await, None);
    assert_eq!(column(&fixture, "message_id", item.id).as_deref(), Some("9001"));
    assert_eq!(next(&fixture.crashed()).await, None);
}

#[tokio::test]
async fn given_up_item_keeps_its_reason_and_never_comes_back() {
    let fixture = Fixture::new();
    show(&fixture, &["a"]).await;
    let item = next(&fixture).await.unwrap();
    fixture.store.outbox_failed(item.id, "the bot was blocked".to_owned()).await.unwrap();
    assert_eq!(column(&fixture, "reason", item.id).as_deref(), Some("the bot was blocked"));
    assert_eq!(next(&fixture.crashed()).await, None);
}

#[tokio::test]
async fn item_put_back_keeps_its_place_without_a_label() {
    let fixture = Fixture::new();
    show(&fixture, &["a", "b"]).await;
    let item = next(&fixture).await.unwrap();
    fixture.store.outbox_retry(item.id).await.unwrap();
    let again = next(&fixture).await.unwrap();
    assert_eq!(again, OutboxItem { attempts: 1, ..item });
}

#[tokio::test]
async fn item_in_flight_when_the_process_ended_may_repeat_from_then_on() {
    let fixture = Fixture::new();
    show(&fixture, &["a", "b"]).await;
    let item = next(&fixture).await.unwrap();
    let after = fixture.crashed();
    let labelled = OutboxItem { attempts: 1, may_repeat: true, ..item.clone() };
    assert_eq!(next(&after).await, Some(labelled));
    assert_eq!(next_key(&after).await.as_deref(), Some("b"));
    assert_eq!(next(&after).await, None);
    // That this attempt certainly failed says nothing about the first one.
    after.store.outbox_retry(item.id).await.unwrap();
    assert_eq!(next(&after).await, Some(OutboxItem { attempts: 2, may_repeat: true, ..item }));
}

#[tokio::test]
async fn only_an_item_in_flight_here_can_be_ended() {
    let fixture = Fixture::new();
    show(&fixture, &["a"]).await;
    assert!(fixture.store.outbox_sent(OutboxId(99), None).await.is_err());
    let item = next(&fixture).await.unwrap();
    let after = fixture.crashed();
    assert!(after.store.outbox_sent(item.id, None).await.is_err());
    fixture.store.outbox_sent(item.id, None).await.unwrap();
    assert!(fixture.store.outbox_retry(item.id).await.is_err());
    assert_eq!(next(&fixture).await, None);
}

#[tokio::test]
async fn end_of_an_item_may_be_repeated_by_who_does_not_know_whether_it_was_kept() {
    let fixture = Fixture::new();
    show(&fixture, &["a", "b"]).await;
    let item = next(&fixture).await.unwrap();
    for _ in 0..2 {
        fixture.store.outbox_retry(item.id).await.unwrap();
    }
    let item = next(&fixture).await.unwrap();
    assert_eq!((item.key.as_str(), item.may_repeat), ("a", false));
    for _ in 0..2 {
        fixture.store.outbox_sent(item.id, None).await.unwrap();
    }
    let item = next(&fixture).await.unwrap();
    for _ in 0..2 {
        fixture.store.outbox_failed(item.id, "no".to_owned()).await.unwrap();
    }
    assert!(fixture.store.outbox_sent(item.id, None).await.is_err(), "it has another end");
    assert_eq!(next(&fixture).await, None);
}

#[tokio::test]
async fn item_taken_for_a_caller_that_went_away_is_taken_again_without_a_label() {
    let fixture = Fixture::new();
    show(&fixture, &["a", "b"]).await;
    let target = chat("1");
    {
        let mut taking = pin!(fixture.store.next_outbox(&target));
        let waiting = taking.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(waiting.is_pending());
        // The next write is answered after the taking was committed.
        show(&fixture, &["c"]).await;
    }
    let item = next(&fixture).await.unwrap();
    assert_eq!((item.key.as_str(), item.attempts, item.may_repeat), ("a", 1, false));
    assert_eq!(next_key(&fixture).await.as_deref(), Some("b"));
    assert_eq!(next_key(&fixture).await.as_deref(), Some("c"));
    assert_eq!(next(&fixture).await, None);
}
