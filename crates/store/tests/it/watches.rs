//! Sends and watches.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::future::join_all;
use tempfile::TempDir;
use volcanic_a2a_types::{ContextId, MessageId, TaskId};
use volcanic_a2a_watch::{
    SendRecord, SendState, WatchId, WatchRecord, WatchSource, WatchState, WatchStore as _,
    WatchTarget,
};
use volcanic_agent_core::SessionStore as _;
use volcanic_base::Secret;
use volcanic_store::{Store, StoreOpenError};

use crate::fixture::{Fixture, prompt, start};

fn send(message: &str) -> SendRecord {
    SendRecord {
        message_id: MessageId::new(message),
        target: WatchTarget::new("42"),
        workspace: PathBuf::from("/home/ada/work"),
        agent: "travel-bot".to_owned(),
        origin: "https://travel.example".to_owned(),
        context_id: None,
        task_id: None,
        hops: 0,
        source_ref: None,
        started_at: start(),
        state: SendState::Sending,
        end_reason: None,
        unattended: None,
        sought_since: None,
        answered: None,
    }
}

fn watch(id: &str, task: &str) -> WatchRecord {
    WatchRecord {
        id: WatchId::new(id),
        target: WatchTarget::new("42"),
        workspace: PathBuf::from("/home/ada/work"),
        agent: "travel-bot".to_owned(),
        origin: "https://travel.example".to_owned(),
        task_id: TaskId::new(task),
        context_id: None,
        push_token: None,
        source: WatchSource::Poll,
        started_at: start(),
        state: WatchState::Attended,
        epoch: 0,
        round: 0,
        told: Vec::new(),
        text: None,
        delivery_key: String::new(),
        goes_on: false,
        failures: 0,
        not_found: 0,
        not_found_since: None,
        next_check_at: None,
        last_seen: None,
        hops: 0,
        source_ref: None,
        message_id: None,
        continuations: 0,
        followed: 0,
    }
}

/// Every field away from its default, each differently.
fn full_watch() -> WatchRecord {
    WatchRecord {
        id: WatchId::new("w-full"),
        target: WatchTarget::new("43"),
        workspace: PathBuf::from(OsStr::from_bytes(b"/home/ada/not utf-8 \xff")),
        agent: "news".to_owned(),
        origin: "http://127.0.0.1:9000".to_owned(),
        task_id: TaskId::new("task 'quoted'"),
        context_id: Some(ContextId::new("context")),
        push_token: Some(Secret::new("push token")),
        source: WatchSource::Push,
        started_at: start(),
        state: WatchState::Claimed,
        epoch: 7,
        round: 2,
        told: vec!["auth-required".to_owned(), "moved".to_owned()],
        text: Some("[A2A result from \"news\"]\n\u{1F30B}".to_owned()),
        delivery_key: "a2a:w-full:completed:2".to_owned(),
        goes_on: true,
        failures: 3,
        not_found: 1,
        not_found_since: Some(start() + Duration::from_secs(1)),
        next_check_at: Some(start() + Duration::from_secs(2)),
        last_seen: Some("working".to_owned()),
        hops: 4,
        source_ref: Some("tg 9".to_owned()),
        message_id: Some(MessageId::new("m-full")),
        continuations: 3,
        followed: 2,
    }
}

/// Keeps one watch, and returns the one that follows its task then.
async fn add(store: &Store, watch: &WatchRecord) -> WatchRecord {
    store.add_watches(std::slice::from_ref(watch)).await.unwrap().remove(0)
}

async fn find(store: &Store, id: &str) -> Option<WatchRecord> {
    store.watch(&WatchId::new(id)).await.unwrap()
}

#[tokio::test]
async fn every_field_of_a_send_survives_a_crash() {
    let fixture = Fixture::new();
    let full = SendRecord {
        context_id: Some(ContextId::new("c")),
        task_id: Some(TaskId::new("t")),
        hops: 5,
        source_ref: Some("tg 8".to_owned()),
        unattended: Some("tg 7".to_owned()),
        sought_since: Some(start()),
        answered: Some("input-required#answered".to_owned()),
        ..send("m1")
    };
    fixture.store.begin_send(&full, 20).await.unwrap();
    fixture.store.begin_send(&send("m0"), 20).await.unwrap();
    assert_eq!(fixture.crashed().store.open_sends().await.unwrap(), [full, send("m0")]);
}

#[tokio::test]
async fn every_field_of_a_watch_survives_a_crash() {
    let fixture = Fixture::new();
    assert_eq!(add(&fixture.store, &full_watch()).await, full_watch());
    let after = fixture.crashed();
    assert_eq!(find(&after.store, "w-full").await, Some(full_watch()));
    assert_eq!(after.store.live().await.unwrap(), [full_watch()]);
}

#[tokio::test]
async fn known_message_id_is_refused_before_anything_leaves() {
    let fixture = Fixture::new();
    fixture.store.begin_send(&send("m1"), 20).await.unwrap();
    assert!(fixture.store.begin_send(&send("m1"), 20).await.is_err());
    fixture.store.end_send(&MessageId::new("m1"), "refused").await.unwrap();
    assert!(fixture.store.begin_send(&send("m1"), 20).await.is_err());
    assert_eq!(fixture.store.open_sends().await.unwrap(), []);
}

#[tokio::test]
async fn known_send_and_its_watch_are_one_commit() {
    let fixture = Fixture::new();
    fixture.store.begin_send(&send("m1"), 20).await.unwrap();
    let before = fixture.store.stats().commits;
    let kept =
        fixture.store.send_known(&MessageId::new("m1"), Some(&watch("w1", "t1"))).await.unwrap();
    assert_eq!(kept, Some(watch("w1", "t1")));
    assert_eq!(fixture.store.stats().commits, before + 1);
    let after = fixture.crashed();
    assert_eq!(after.store.open_sends().await.unwrap(), []);
    assert_eq!(after.store.live().await.unwrap(), [watch("w1", "t1")]);
}

#[tokio::test]
async fn known_send_that_is_noted_again_counts_nothing() {
    let fixture = Fixture::new();
    fixture.store.begin_send(&send("m1"), 20).await.unwrap();
    // As by who does not know whether it was kept.
    for _ in 0..2 {
        let message_id = Some(MessageId::new("m1"));
        let given = WatchRecord { message_id, ..watch("w1", "t1") };
        let kept = fixture.store.send_known(&MessageId::new("m1"), Some(&given)).await.unwrap();
        assert_eq!(kept, Some(given));
    }
}

#[tokio::test]
async fn message_that_lost_its_hold_of_a_watch_counts_beside_it() {
    let fixture = Fixture::new();
    let message_id = Some(MessageId::new("m1"));
    let known = WatchRecord { message_id, ..watch("w1", "t1") };
    add(&fixture.store, &known).await;
    fixture.store.begin_send(&send("m2"), 20).await.unwrap();
    let kept = fixture.store.send_known(&MessageId::new("m2"), Some(&known)).await.unwrap();
    assert_eq!(kept, Some(WatchRecord { continuations: known.continuations + 1, ..known }));
}

#[tokio::test]
async fn send_answered_by_a_message_has_no_watch() {
    let fixture = Fixture::new();
    fixture.store.begin_send(&send("m1"), 20).await.unwrap();
    assert_eq!(fixture.store.send_known(&MessageId::new("m1"), None).await.unwrap(), None);
    assert_eq!(fixture.store.open_sends().await.unwrap(), []);
    assert_eq!(fixture.store.live().await.unwrap(), []);
}

#[tokio::test]
async fn unknown_send_cannot_become_known_and_keeps_no_watch() {
    let fixture = Fixture::new();
    assert!(
        fixture.store.send_known(&MessageId::new("m1"), Some(&watch("w1", "t1"))).await.is_err()
    );
    assert!(fixture.store.end_send(&MessageId::new("m1"), "reason").await.is_err());
    assert_eq!(fixture.store.live().await.unwrap(), []);
}

#[tokio::test]
async fn live_watch_of_the_same_task_is_kept_and_returned() {
    let fixture = Fixture::new();
    let first = WatchRecord { state: WatchState::Watching, failures: 2, ..watch("w1", "t1") };
    add(&fixture.store, &first).await;
    fixture.store.begin_send(&send("m1"), 20).await.unwrap();
    let kept =
        fixture.store.send_known(&MessageId::new("m1"), Some(&watch("w2", "t1"))).await.unwrap();
    let first = WatchRecord { continuations: 1, ..first };
    assert_eq!(kept, Some(first.clone()));
    assert_eq!(add(&fixture.store, &watch("w3", "t1")).await, first);
    assert_eq!(fixture.store.open_sends().await.unwrap(), []);
    assert_eq!(fixture.store.live().await.unwrap(), [first]);
}

#[tokio::test]
async fn task_is_followed_apart_by_conversation_agent_and_origin() {
    let fixture = Fixture::new();
    let watches = [
        watch("w1", "t1"),
        WatchRecord { target: WatchTarget::new("43"), ..watch("w2", "t1") },
        WatchRecord { agent: "other".to_owned(), ..watch("w3", "t1") },
        WatchRecord { origin: "https://other.example".to_owned(), ..watch("w4", "t1") },
        watch("w5", "t2"),
    ];
    for given in &watches {
        assert_eq!(add(&fixture.store, given).await, *given);
    }
    assert_eq!(fixture.store.live().await.unwrap(), watches);
}

#[tokio::test]
async fn several_watches_are_kept_in_one_commit() {
    let fixture = Fixture::new();
    add(&fixture.store, &watch("w1", "t1")).await;
    let before = fixture.store.stats().commits;
    let kept = fixture.store.add_watches(&[watch("w2", "t1"), watch("w3", "t2")]).await.unwrap();
    assert_eq!(kept, [watch("w1", "t1"), watch("w3", "t2")]);
    assert_eq!(fixture.store.stats().commits, before + 1);
    assert_eq!(fixture.crashed().store.live().await.unwrap(), kept);
}

#[tokio::test]
async fn done_watch_is_a_tombstone_and_its_task_can_be_followed_anew() {
    let fixture = Fixture::new();
    add(&fixture.store, &watch("w1", "t1")).await;
    let done = WatchRecord { state: WatchState::Done, ..watch("w1", "t1") };
    assert!(fixture.store.update(0, &done).await.unwrap());
    assert_eq!(fixture.store.live().await.unwrap(), []);
    assert_eq!(find(&fixture.store, "w1").await, Some(WatchRecord { epoch: 1, ..done.clone() }));
    assert_eq!(add(&fixture.store, &watch("w2", "t1")).await, watch("w2", "t1"));
    let back = WatchRecord { state: WatchState::Watching, ..done };
    assert!(fixture.store.update(1, &back).await.is_err(), "two live watches of one task");
    assert_eq!(fixture.store.live().await.unwrap(), [watch("w2", "t1")]);
}

#[tokio::test]
async fn update_writes_every_field_with_the_next_epoch() {
    let fixture = Fixture::new();
    add(&fixture.store, &watch("w-full", "t1")).await;
    let given = WatchRecord { epoch: 99, ..full_watch() };
    assert!(fixture.store.update(0, &given).await.unwrap());
    assert_eq!(
        find(&fixture.store, "w-full").await,
        Some(WatchRecord { epoch: 1, continuations: 0, ..full_watch() })
    );
}

#[tokio::test]
async fn update_under_another_epoch_writes_nothing() {
    let fixture = Fixture::new();
    add(&fixture.store, &WatchRecord { epoch: 3, ..watch("w1", "t1") }).await;
    let claimed = WatchRecord { state: WatchState::Claimed, ..watch("w1", "t1") };
    for epoch in [0, 2, 4, u64::MAX >> 2] {
        assert!(!fixture.store.update(epoch, &claimed).await.unwrap(), "{epoch}");
    }
    assert!(!fixture.store.update(0, &watch("unknown", "t1")).await.unwrap());
    assert_eq!(
        fixture.store.live().await.unwrap(),
        [WatchRecord { epoch: 3, ..watch("w1", "t1") }]
    );
}

#[tokio::test]
async fn one_of_many_racing_claims_wins() {
    let fixture = Fixture::new();
    add(&fixture.store, &watch("w1", "t1")).await;
    let claims: Vec<_> = (0..20)
        .map(|number| WatchRecord {
            state: WatchState::Claimed,
            text: Some(format!("text {number}")),
            ..watch("w1", "t1")
        })
        .collect();
    let results = join_all(claims.iter().map(|claim| fixture.store.update(0, claim))).await;
    let winners: Vec<_> =
        results.into_iter().map(Result::unwrap).zip(&claims).filter(|(won, _)| *won).collect();
    assert_eq!(winners.len(), 1);
    assert_eq!(
        find(&fixture.store, "w1").await,
        Some(WatchRecord { epoch: 1, ..winners[0].1.clone() })
    );
}

#[tokio::test]
async fn workspace_is_known_for_ever_once_something_was_kept_for_it() {
    let fixture = Fixture::new();
    let (home, other) = (Path::new("/home/ada/work"), Path::new("/home/ada/other"));
    assert!(!fixture.store.knows_workspace(home).await.unwrap());
    fixture.store.begin_send(&send("m1"), 20).await.unwrap();
    fixture.store.end_send(&MessageId::new("m1"), "refused").await.unwrap();
    assert!(fixture.store.knows_workspace(home).await.unwrap());
    assert!(!fixture.store.knows_workspace(other).await.unwrap());
    let done =
        WatchRecord { workspace: other.to_owned(), state: WatchState::Done, ..watch("w1", "t1") };
    add(&fixture.store, &done).await;
    assert!(fixture.store.knows_workspace(other).await.unwrap());
}

#[tokio::test]
async fn reading_command_sees_what_the_writer_committed_and_cannot_write() {
    let fixture = Fixture::new();
    let reader = Store::open_read_only(&fixture.path()).unwrap();
    assert_eq!(reader.watches().await.unwrap(), []);
    fixture.store.begin_send(&send("m1"), 20).await.unwrap();
    add(&fixture.store, &full_watch()).await;
    assert_eq!(reader.watches().await.unwrap(), [full_watch()]);
    assert_eq!(reader.open_sends().await.unwrap(), [send("m1")]);
    // The reader counts no start: what this process has in flight stays its own.
    fixture.accept(prompt("1", "k")).await;
    assert_eq!(fixture.store.targets_with_work().await.unwrap().len(), 1);
}

#[tokio::test]
async fn reading_command_works_on_a_closed_store() {
    let fixture = Fixture::new();
    add(&fixture.store, &watch("w1", "t1")).await;
    fixture.store.close().await;
    let reader = Store::open_read_only(&fixture.path()).unwrap();
    assert_eq!(reader.watches().await.unwrap(), [watch("w1", "t1")]);
}

#[test]
fn reading_command_creates_nothing() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("state.db");
    assert!(matches!(Store::open_read_only(&path).unwrap_err(), StoreOpenError::Missing { .. }));
    std::fs::write(&path, "").unwrap();
    assert!(matches!(
        Store::open_read_only(&path).unwrap_err(),
        StoreOpenError::Older { found: 0, known: 5, .. }
    ));
    assert_eq!(std::fs::read(&path).unwrap(), b"");
}

#[tokio::test]
async fn push_token_is_in_no_debug_output() {
    let fixture = Fixture::new();
    add(&fixture.store, &full_watch()).await;
    let debug = format!("{:?} {:?}", fixture.store, fixture.store.live().await.unwrap());
    assert!(!debug.contains("push token"), "{debug}");
}

#[tokio::test]
async fn messages_without_a_word_of_the_owner_are_bounded_and_those_that_did_not_leave_not_counted()
{
    let fixture = Fixture::new();
    let unattended = |message: &str, after: &str| SendRecord {
        unattended: Some(after.to_owned()),
        ..send(message)
    };
    let begin = async |record: &SendRecord| fixture.store.begin_send(record, 2).await.unwrap();
    assert!(begin(&unattended("m1", "a")).await);
    assert!(begin(&unattended("m2", "a")).await);
    assert!(!begin(&unattended("m3", "a")).await, "two are as many as may be");
    assert!(begin(&send("m4")).await, "the owner's own count nothing");
    assert!(begin(&unattended("m5", "b")).await, "the owner wrote");
    fixture.store.note_unsent(&MessageId::new("m2"), "refused").await.unwrap();
    let after = fixture.crashed();
    assert!(after.store.begin_send(&unattended("m6", "a"), 2).await.unwrap());
    assert!(!after.store.begin_send(&unattended("m7", "a"), 2).await.unwrap());
}

#[tokio::test]
async fn message_that_leads_to_a_watched_task_is_counted_at_its_watch_whatever_is_written_there() {
    let fixture = Fixture::new();
    add(&fixture.store, &watch("w1", "t1")).await;
    fixture.store.begin_send(&send("m1"), 20).await.unwrap();
    let kept = fixture.store.send_known(&MessageId::new("m1"), Some(&watch("w2", "t1"))).await;
    let counted = WatchRecord { continuations: 1, ..watch("w1", "t1") };
    assert_eq!(kept.unwrap(), Some(counted.clone()));
    // A write that was on its way meanwhile knows nothing of it, be it the last one.
    let done = WatchRecord { state: WatchState::Done, ..watch("w1", "t1") };
    assert!(fixture.store.update(0, &done).await.unwrap());
    let after = fixture.crashed();
    let behind = WatchRecord { state: WatchState::Done, epoch: 1, ..counted };
    assert_eq!(after.store.live().await.unwrap(), std::slice::from_ref(&behind));
    // Nor is the task followed by a second watch.
    assert_eq!(add(&after.store, &watch("w3", "t1")).await, behind);
    let followed = WatchRecord { followed: 1, ..behind };
    assert!(after.store.update(1, &followed).await.unwrap());
    assert_eq!(after.store.live().await.unwrap(), []);
}

#[tokio::test]
async fn time_since_when_a_send_is_looked_for_survives_a_crash_and_closed_ones_have_none() {
    let fixture = Fixture::new();
    fixture.store.begin_send(&send("m1"), 20).await.unwrap();
    fixture.store.note_sought(&MessageId::new("m1"), start()).await.unwrap();
    let after = fixture.crashed();
    assert_eq!(after.store.open_sends().await.unwrap()[0].sought_since, Some(start()));
    after.store.end_send(&MessageId::new("m1"), "lost").await.unwrap();
    assert!(after.store.note_sought(&MessageId::new("m1"), start()).await.is_err());
}

#[tokio::test]
async fn question_that_a_send_answers_survives_a_crash_and_closed_ones_have_none() {
    let fixture = Fixture::new();
    fixture.store.begin_send(&send("m1"), 20).await.unwrap();
    fixture.store.note_answered(&MessageId::new("m1"), "input-required#answered").await.unwrap();
    let after = fixture.crashed();
    let answered = after.store.open_sends().await.unwrap()[0].answered.clone();
    assert_eq!(answered.as_deref(), Some("input-required#answered"));
    after.store.end_send(&MessageId::new("m1"), "lost").await.unwrap();
    assert!(after.store.note_answered(&MessageId::new("m1"), "x").await.is_err());
}

#[tokio::test]
async fn watch_of_a_send_ends_those_of_its_task_that_know_no_origin_in_the_same_commit() {
    let fixture = Fixture::new();
    let lost = |id: &str, task: &str, state| WatchRecord {
        origin: String::new(),
        state,
        ..watch(id, task)
    };
    let claimed = WatchRecord {
        text: Some("text".to_owned()),
        goes_on: true,
        ..lost("w2", "t2", WatchState::Claimed)
    };
    let other_task = lost("w3", "t3", WatchState::Watching);
    let imported = [lost("w1", "t1", WatchState::Watching), claimed.clone(), other_task.clone()];
    fixture.store.add_watches(&imported).await.unwrap();
    for (message, id, task) in [("m1", "w4", "t1"), ("m2", "w5", "t2")] {
        fixture.store.begin_send(&send(message), 20).await.unwrap();
        let before = fixture.store.stats().commits;
        let (message, given) = (MessageId::new(message), watch(id, task));
        assert_eq!(fixture.store.send_known(&message, Some(&given)).await.unwrap(), Some(given));
        assert_eq!(fixture.store.stats().commits, before + 1);
    }
    let after = fixture.crashed();
    let claimed = WatchRecord { goes_on: false, epoch: 1, ..claimed };
    assert_eq!(
        after.store.live().await.unwrap(),
        [claimed, other_task, watch("w4", "t1"), watch("w5", "t2")]
    );
    let done = find(&after.store, "w1").await.unwrap();
    assert_eq!((done.state, done.epoch), (WatchState::Done, 1));
}

/// A message to task `t1` that is known to have answered something, beside the watch that follows it.
async fn answer(store: &Store, message: &str, answered: &str, watch: &WatchRecord) -> WatchRecord {
    let answer = SendRecord { task_id: Some(TaskId::new("t1")), ..send(message) };
    assert!(store.begin_send(&answer, 20).await.unwrap());
    store.note_answered(&answer.message_id, answered).await.unwrap();
    store.send_known(&answer.message_id, Some(watch)).await.unwrap().unwrap()
}

#[tokio::test]
async fn watch_that_is_far_behind_comes_with_the_questions_that_were_answered_last() {
    let fixture = Fixture::new();
    add(&fixture.store, &watch("w1", "t1")).await;
    for number in 0..40 {
        let (message, answered) = (format!("m{number}"), format!("answered#{number}"));
        answer(&fixture.store, &message, &answered, &watch("w2", "t1")).await;
    }
    let last: Vec<_> = (8..40).map(|number| format!("answered#{number}")).collect();
    assert_eq!(fixture.store.live().await.unwrap()[0].told, last);
}

#[tokio::test]
async fn watch_that_is_behind_comes_with_the_questions_that_its_messages_answered() {
    let fixture = Fixture::new();
    let kept = add(&fixture.store, &watch("w1", "t1")).await;
    let counted = answer(&fixture.store, "m1", "answered#a", &watch("w2", "t1")).await;
    assert_eq!((counted.continuations, counted.told), (1, vec!["answered#a".to_owned()]));
    // What is written meanwhile does not know of it.
    assert!(fixture.store.update(kept.epoch, &kept).await.unwrap());
    let after = fixture.crashed();
    let live = after.store.live().await.unwrap();
    assert_eq!(live[0].told, ["answered#a"]);
    assert_eq!(find(&after.store, "w1").await.unwrap().told, ["answered#a"]);
    // A round that covers it has it on its own record, if it still matters.
    let followed = WatchRecord { followed: 1, told: Vec::new(), ..live[0].clone() };
    assert!(after.store.update(live[0].epoch, &followed).await.unwrap());
    assert_eq!(after.store.live().await.unwrap()[0].told, [""; 0]);
}

#[tokio::test]
async fn watch_of_a_message_knows_what_was_told_of_its_task_while_that_was_on_its_way() {
    let fixture = Fixture::new();
    let told = vec!["completed".to_owned(), "completed#d".to_owned(), "answered#a".to_owned()];
    let over = WatchRecord { told, state: WatchState::Done, ..watch("w1", "t1") };
    add(&fixture.store, &over).await;
    let known = |message: &'static str, task: Option<&'static str>, seen: &'static str| {
        let sent = SendRecord { task_id: task.map(TaskId::new), ..send(message) };
        let last_seen = Some(seen.to_owned());
        let given = WatchRecord { last_seen, state: WatchState::Done, ..watch(message, "t1") };
        let store = fixture.store.clone();
        async move {
            assert!(store.begin_send(&sent, 20).await.unwrap());
            if message == "m4" {
                store.note_sought(&sent.message_id, start()).await.unwrap();
            }
            store.send_known(&sent.message_id, Some(&given)).await.unwrap();
            find(&store, message).await.unwrap().told
        }
    };
    let news = ["completed#d", "answered#a"];
    assert_eq!(known("m1", None, "working").await, news);
    assert_eq!(known("m2", Some("t1"), "working").await, [""; 0], "it went to the task by name");
    assert_eq!(known("m3", None, "completed").await, [""; 0], "that is its answer");
    add(&fixture.store, &WatchRecord { id: WatchId::new("w2"), ..over }).await;
    assert_eq!(known("m4", Some("t1"), "completed").await, news, "it was lost, and found there");
}
