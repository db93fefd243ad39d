//! The store of watches in memory answers every sequence of calls as the real one does.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use volcanic_a2a_types::{ContextId, MessageId, TaskId};
use volcanic_a2a_watch::{
    MemoryWatchStore, SendRecord, SendState, WatchId, WatchRecord, WatchSource, WatchState,
    WatchStore, WatchStoreError, WatchTarget,
};
use volcanic_base::{ManualClock, Secret};
use volcanic_store::Store;

const SEQUENCES: u32 = 96;

/// One call on a store. Small numbers stand for messages, watches and tasks.
#[derive(Debug, Clone)]
enum Op {
    Begin { message: u8, unsent: bool },
    Known { message: u8, watch: Option<Given> },
    Unsent { message: u8 },
    Sought { message: u8 },
    Answered { message: u8 },
    End { message: u8 },
    AddAll(Vec<Given>),
    Update { expected: u64, watch: Given },
    Live,
    Open,
    Watch { id: u8 },
    Knows { workspace: u8 },
    Restart,
}

/// A watch to be written.
#[derive(Debug, Clone, Copy)]
struct Given {
    id: u8,
    task: u8,
    state: u8,
    /// Decides what nothing else here does.
    salt: u8,
}

fn given() -> impl Strategy<Value = Given> {
    (0..4_u8, 0..3_u8, 0..4_u8, any::<u8>()).prop_map(|(id, task, state, salt)| Given {
        id,
        task,
        state,
        salt,
    })
}

fn op() -> impl Strategy<Value = Op> {
    let message = || 0..4_u8;
    prop_oneof![
        4 => (message(), any::<bool>()).prop_map(|(message, unsent)| Op::Begin { message, unsent }),
        4 => (message(), option::weighted(0.7, given())).prop_map(|(message, watch)| Op::Known { message, watch }),
        3 => message().prop_map(|message| Op::Unsent { message }),
        2 => message().prop_map(|message| Op::Sought { message }),
        2 => message().prop_map(|message| Op::Answered { message }),
        3 => message().prop_map(|message| Op::End { message }),
        6 => vec(given(), 0..4).prop_map(Op::AddAll),
        8 => (0..3_u64, given()).prop_map(|(expected, watch)| Op::Update { expected, watch }),
        2 => Just(Op::Live),
        2 => Just(Op::Open),
        2 => (0..4_u8).prop_map(|id| Op::Watch { id }),
        1 => (0..4_u8).prop_map(|workspace| Op::Knows { workspace }),
        1 => Just(Op::Restart),
    ]
}

#[derive(Debug, PartialEq)]
enum Told {
    Done,
    Kept(Vec<WatchRecord>),
    Sends(Vec<SendRecord>),
    Is(bool),
    Failed,
}

async fn run(store: &dyn WatchStore, op: &Op) -> Told {
    try_run(store, op).await.unwrap_or(Told::Failed)
}

async fn try_run(store: &dyn WatchStore, op: &Op) -> Result<Told, WatchStoreError> {
    Ok(match op {
        Op::Begin { message, unsent } => {
            Told::Is(store.begin_send(&send(*message, *unsent), 2).await?)
        }
        Op::Known { message, watch } => {
            let watch = watch.map(record);
            let kept = store.send_known(&message_id(*message), watch.as_ref()).await?;
            Told::Kept(kept.into_iter().collect())
        }
        Op::Unsent { message } => {
            store.note_unsent(&message_id(*message), "refused").await?;
            Told::Done
        }
        Op::Sought { message } => {
            store.note_sought(&message_id(*message), start()).await?;
            Told::Done
        }
        Op::Answered { message } => {
            store.note_answered(&message_id(*message), "input-required#answered").await?;
            Told::Done
        }
        Op::End { message } => {
            store.end_send(&message_id(*message), "lost").await?;
            Told::Done
        }
        Op::AddAll(watches) => {
            let watches: Vec<_> = watches.iter().copied().map(record).collect();
            Told::Kept(store.add_watches(&watches).await?)
        }
        Op::Update { expected, watch } => Told::Is(store.update(*expected, &record(*watch)).await?),
        Op::Live => Told::Kept(store.live().await?),
        Op::Open => Told::Sends(store.open_sends().await?),
        Op::Watch { id } => Told::Kept(store.watch(&watch_id(*id)).await?.into_iter().collect()),
        Op::Knows { workspace: number } => {
            Told::Is(store.knows_workspace(&workspace(*number)).await?)
        }
        Op::Restart => Told::Done,
    })
}

fn start() -> Timestamp {
    "2026-11-30T09:15:00.123456789Z".parse().unwrap()
}

fn message_id(number: u8) -> MessageId {
    MessageId::new(format!("message {number}"))
}

fn watch_id(number: u8) -> WatchId {
    WatchId::new(format!("watch {number}"))
}

fn workspace(number: u8) -> PathBuf {
    PathBuf::from(format!("/somewhere/{number}"))
}

fn send(number: u8, unsent: bool) -> SendRecord {
    SendRecord {
        message_id: message_id(number),
        target: WatchTarget::new("chat"),
        workspace: workspace(number),
        agent: "bot".to_owned(),
        origin: "https://bot.example".to_owned(),
        context_id: number.is_multiple_of(2).then(|| ContextId::new("c")),
        task_id: number.is_multiple_of(3).then(|| TaskId::new("t")),
        hops: u32::from(number),
        source_ref: number.is_multiple_of(2).then(|| "7".to_owned()),
        started_at: start(),
        state: SendState::Sending,
        end_reason: unsent.then(|| "no such agent".to_owned()),
        unattended: number.is_multiple_of(2).then(|| "owner".to_owned()),
        sought_since: None,
        answered: None,
    }
}

fn record(given: Given) -> WatchRecord {
    let Given { id, task, state, salt } = given;
    let (even, third) = (salt.is_multiple_of(2), salt.is_multiple_of(3));
    WatchRecord {
        id: watch_id(id),
        target: WatchTarget::new(if salt < 240 { "chat" } else { "another chat" }),
        workspace: workspace(salt % 4),
        agent: "bot".to_owned(),
        origin: if salt % 5 == 4 { String::new() } else { "https://bot.example".to_owned() },
        task_id: TaskId::new(format!("task {task}")),
        context_id: even.then(|| ContextId::new("c")),
        push_token: third.then(|| Secret::new("token")),
        source: [WatchSource::Push, WatchSource::Subscribe, WatchSource::Poll]
            [usize::from(salt % 3)],
        started_at: start() + Duration::from_secs(salt.into()),
        state: [WatchState::Attended, WatchState::Watching, WatchState::Claimed, WatchState::Done]
            [usize::from(state)],
        epoch: u64::from(salt % 2),
        round: u32::from(salt % 5),
        told: (0..salt % 3).map(|number| format!("state {number}")).collect(),
        text: even.then(|| format!("text {salt}")),
        delivery_key: format!("a2a:{id}:{salt}"),
        goes_on: third,
        failures: salt.into(),
        not_found: u32::from(salt % 4),
        not_found_since: even.then(start),
        next_check_at: third.then(start),
        last_seen: even.then(|| "working".to_owned()),
        hops: u32::from(salt % 7),
        source_ref: third.then(|| "9".to_owned()),
        message_id: even.then(|| message_id(salt % 4)),
        continuations: u32::from(salt % 3),
        followed: u32::from(salt % 2),
    }
}

/// Runs a sequence on both, restarts of the real one included: what is in memory lasts as what is on disk does.
async fn both_agree(ops: &[Op]) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let open = |path: &Path| Store::open(path, Arc::new(ManualClock::at(start()))).unwrap();
    let (mut real, double) = (open(&path), MemoryWatchStore::new());
    for (step, op) in ops.iter().enumerate() {
        if matches!(op, Op::Restart) {
            real.close().await;
            real = open(&path);
        }
        assert_eq!(run(&double, op).await, run(&real, op).await, "step {step}: {op:?}");
    }
    for op in [Op::Live, Op::Open] {
        assert_eq!(run(&double, &op).await, run(&real, &op).await, "in the end: {op:?}");
    }
    for watch in double.all_watches() {
        assert_eq!(real.watch(&watch.id).await.unwrap().as_ref(), Some(&watch));
    }
    real.close().await;
}

#[test]
fn store_of_watches_in_memory_answers_as_the_real_one() {
    let config =
        ProptestConfig { cases: SEQUENCES, failure_persistence: None, ..ProptestConfig::default() };
    let mut runner =
        TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runner
        .run(&vec(op(), 1..60), |ops| {
            runtime.block_on(both_agree(&ops));
            Ok(())
        })
        .unwrap();
}
