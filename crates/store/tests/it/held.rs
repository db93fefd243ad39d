//! Another process holds the lock of the database: what is to be written waits, and says so.

use std::time::Duration;

use rusqlite::Connection;
use tokio::{task::JoinSet, time::timeout};
use volcanic_agent_core::{SessionStore as _, StoreError};
use volcanic_store::{Store, StoreOpenError};

use crate::fixture::{Fixture, chat, prompt};

/// Nothing takes that long; what is waited for is an event.
const SOON: Duration = Duration::from_secs(20);

/// Another connection that holds the lock until it is dropped.
fn hold(fixture: &Fixture) -> Connection {
    let other = Connection::open(fixture.path()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    other
}

#[tokio::test]
async fn writing_waits_for_the_lock_of_another_process_says_so_once_and_loses_nothing() {
    let fixture = Fixture::new();
    let other = hold(&fixture);
    let mut held = fixture.store.held();
    let store = fixture.store.clone();
    let mut writing = JoinSet::new();
    writing.spawn(async move { store.accept(prompt("c", "a")).await });
    timeout(SOON, held.wait_for(|held| *held)).await.expect("it is told").unwrap();
    // Longer than any statement waits for a lock by itself: what fails by then would have failed.
    assert!(timeout(Duration::from_secs(6), held.changed()).await.is_err(), "it is told once");
    assert!(writing.try_join_next().is_none());
    // Reading goes on.
    assert_eq!(fixture.waiting_keys(&chat("c")).await, Vec::<String>::new());
    drop(other);
    timeout(SOON, held.wait_for(|held| !*held)).await.expect("it is over").unwrap();
    let written = timeout(SOON, writing.join_next()).await.expect("it goes on");
    written.unwrap().unwrap().unwrap();
    assert_eq!(fixture.waiting_keys(&chat("c")).await, ["a"]);
}

#[tokio::test]
async fn lock_that_is_never_given_back_does_not_keep_a_store_from_closing() {
    let fixture = Fixture::new();
    let _other = hold(&fixture);
    let mut held = fixture.store.held();
    let store = fixture.store.clone();
    let mut writing = JoinSet::new();
    writing.spawn(async move { store.accept(prompt("c", "a")).await });
    timeout(SOON, held.wait_for(|held| *held)).await.expect("it is told").unwrap();
    timeout(SOON, fixture.store.close()).await.expect("it closes");
    let refused = timeout(SOON, writing.join_next()).await.expect("it ends").unwrap().unwrap();
    assert!(matches!(refused, Err(StoreError::Failed { .. })), "{refused:?}");
}

#[tokio::test]
async fn store_that_is_held_when_it_is_opened_names_the_file_and_what_to_do() {
    let fixture = Fixture::new();
    let _other = hold(&fixture);
    let clock = std::sync::Arc::new(fixture.clock.clone());
    let path = fixture.path();
    let opened = tokio::task::spawn_blocking(move || Store::open(&path, clock)).await.unwrap();
    let error = opened.unwrap_err();
    assert!(
        matches!(&error, StoreOpenError::Held { path } if *path == fixture.path()),
        "{error:?}"
    );
    assert!(error.to_string().contains("wait for it to end"), "{error}");
}
