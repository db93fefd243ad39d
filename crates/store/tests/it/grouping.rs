//! Many writers, one commit; a failure is its own.

use std::collections::HashSet;
use std::time::Duration;

use futures::future::join_all;
use volcanic_agent_core::{Accepted, Commit, InboundId, SessionStore as _, StoreError};

use crate::fixture::{Fixture, chat, prompt, shown, step, user};

#[tokio::test]
async fn two_hundred_writers_share_few_commits_and_all_land() {
    let fixture = Fixture::new();
    let before = fixture.store.stats();
    let accepts = (0..200).map(|number| fixture.store.accept(prompt("1", &format!("k{number}"))));
    let accepted: HashSet<_> = join_all(accepts)
        .await
        .into_iter()
        .map(|accepted| match accepted.unwrap() {
            Accepted::New(InboundId(id)) => id,
            Accepted::AlreadyThere => panic!("every key is new"),
        })
        .collect();
    assert_eq!(accepted.len(), 200);
    let after = fixture.store.stats();
    assert_eq!(after.writes - before.writes, 200);
    assert!(after.commits - before.commits < 100, "{after:?}");
    let kept: HashSet<_> = fixture.crashed().waiting_keys(&chat("1")).await.into_iter().collect();
    assert_eq!(kept, (0..200).map(|number| format!("k{number}")).collect());
}

#[tokio::test]
async fn writers_beyond_the_queue_wait_for_a_place() {
    let fixture = Fixture::new();
    let accepts = (0..3000).map(|number| {
        fixture.store.accept(prompt(&format!("{}", number % 7), &format!("k{number}")))
    });
    assert!(
        join_all(accepts)
            .await
            .into_iter()
            .all(|accepted| matches!(accepted, Ok(Accepted::New(_))))
    );
    assert_eq!(fixture.store.targets_with_work().await.unwrap().len(), 7);
}

#[tokio::test]
async fn failing_work_does_not_hurt_its_neighbours() {
    let fixture = Fixture::new();
    let id = fixture.accept(prompt("1", "k")).await;
    fixture.store.commit(Commit { consume: vec![id], ..step("1", vec![user("k")]) }).await.unwrap();
    let before = fixture.store.stats().commits;
    // The one in the middle writes an entry and an outbox item before it finds its prompt consumed.
    let commits = (0..21).map(|number| {
        let consume = if number % 2 == 1 { vec![id] } else { vec![] };
        let outbox = vec![shown(&format!("o{number}"))];
        fixture.store.commit(Commit {
            consume,
            outbox,
            ..step("1", vec![user(&format!("k{number}"))])
        })
    });
    let results = join_all(commits).await;
    assert!(fixture.store.stats().commits - before < 20, "some of them shared a commit");
    for (number, result) in results.iter().enumerate() {
        match result {
            Ok(_) => assert_eq!(number % 2, 0),
            Err(error) => {
                assert!(number % 2 == 1 && matches!(error, StoreError::Taken { .. }), "{error:?}");
            }
        }
    }
    let after = fixture.crashed();
    let entries = after.store.entries(&chat("1")).await.unwrap();
    let places: Vec<_> = entries.iter().map(|entry| entry.seq).collect();
    assert_eq!(places, (1..=12).collect::<Vec<_>>());
    let mut shown = Vec::new();
    for _ in 0..21 {
        let item = after.store.next_outbox(&chat("1")).await.unwrap();
        shown.extend(item.map(|item| item.key));
    }
    let expected: Vec<_> = (0..21).step_by(2).map(|number| format!("o{number}")).collect();
    assert_eq!(shown, expected);
}

#[tokio::test(start_paused = true)]
async fn idle_store_lets_paused_time_run_and_a_busy_one_holds_it() {
    let fixture = Fixture::new();
    let began = tokio::time::Instant::now();
    let accepted =
        tokio::time::timeout(Duration::from_secs(1), fixture.store.accept(prompt("1", "k"))).await;
    assert!(accepted.is_ok(), "a commit takes no test time");
    assert_eq!(began.elapsed(), Duration::ZERO);
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert_eq!(fixture.waiting_keys(&chat("1")).await, ["k"]);
}

#[tokio::test]
async fn closed_store_has_written_what_it_accepted_and_refuses_more() {
    let fixture = Fixture::new();
    let accepts =
        join_all((0..50).map(|number| fixture.store.accept(prompt("1", &format!("k{number}")))));
    let closing = fixture.store.clone();
    let (accepted, ()) = tokio::join!(accepts, async move { closing.close().await });
    assert!(accepted.iter().all(Result::is_ok));
    assert!(fixture.store.accept(prompt("1", "late")).await.is_err());
    assert!(fixture.store.entries(&chat("1")).await.is_err());
    fixture.store.close().await;
    let log = fixture.folder.path().join("state.db-wal");
    assert!(!log.exists(), "a closed database is one file");
    let reopened =
        volcanic_store::Store::open(&fixture.path(), std::sync::Arc::new(fixture.clock.clone()))
            .unwrap();
    assert_eq!(reopened.waiting(&chat("1")).await.unwrap().len(), 50);
}

#[test]
fn store_outlives_the_runtime_it_was_used_in() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let first = runtime();
    let fixture = first.block_on(async {
        let fixture = Fixture::new();
        fixture.accept(prompt("1", "a")).await;
        fixture
    });
    drop(first);
    let keys = runtime().block_on(async {
        fixture.accept(prompt("1", "b")).await;
        fixture.waiting_keys(&chat("1")).await
    });
    assert_eq!(keys, ["a", "b"]);
}
