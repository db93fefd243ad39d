//! The store in memory answers every sequence of calls as the real one does.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use volcanic_agent_core::{
    Accepted, Block, Commit, Entry, EntryBody, InboundId, MemoryStore, NewEntry, NewOutbox,
    NewPrompt, Origin, OutboxId, OutboxItem, Prompt, PromptKey, SessionStore, SourceRef,
    StopReason, StoreError, TargetId, ToolCall, ToolReply, Usage,
};
use volcanic_base::ManualClock;
use volcanic_store::Store;

const SEQUENCES: u32 = 48;

/// One call on a store. Small numbers stand for targets, keys and places in the order of acceptance.
#[derive(Debug, Clone)]
enum Op {
    Accept { target: u8, key: u8 },
    Waiting { target: u8 },
    Commit { target: u8, consume: Vec<u8>, entries: Vec<(u8, Option<u8>)>, outbox: Vec<u8> },
    Entries { target: u8 },
    Next { target: u8 },
    Sent { item: u8 },
    Retry { item: u8 },
    Failed { item: u8 },
    Targets,
    Restart,
}

fn op() -> impl Strategy<Value = Op> {
    let target = || 0..2_u8;
    let key = || 0..6_u8;
    let commit = (
        target(),
        prop_oneof![3 => vec(0..1_u8, 0..1), 3 => vec(0..8_u8, 1), 1 => vec(0..8_u8, 2..3)],
        vec((0..7_u8, option::weighted(0.2, key())), 0..3),
        vec(key(), 0..3),
    );
    prop_oneof![
        4 => (target(), key()).prop_map(|(target, key)| Op::Accept { target, key }),
        2 => target().prop_map(|target| Op::Waiting { target }),
        6 => commit.prop_map(|(target, consume, entries, outbox)| Op::Commit { target, consume, entries, outbox }),
        2 => target().prop_map(|target| Op::Entries { target }),
        5 => target().prop_map(|target| Op::Next { target }),
        2 => (0..6_u8).prop_map(|item| Op::Sent { item }),
        2 => (0..6_u8).prop_map(|item| Op::Retry { item }),
        1 => (0..6_u8).prop_map(|item| Op::Failed { item }),
        1 => Just(Op::Targets),
        1 => Just(Op::Restart),
    ]
}

/// An answer without what each store makes up by itself: ids are told by place or by key.
#[derive(Debug, PartialEq)]
enum Told {
    Accepted { new: bool },
    Waiting(Vec<(Option<usize>, NewPrompt, jiff::Timestamp)>),
    Entries(Vec<Entry>),
    Item(Option<(TargetId, String, String, Option<SourceRef>, u32, bool)>),
    Done,
    Targets(Vec<TargetId>),
    TakenKey(String),
    TakenPrompt(Option<usize>),
    Failed,
}

/// A store and the ids it gave.
struct Subject {
    store: Box<dyn SessionStore>,
    accepted: Vec<InboundId>,
    items: Vec<OutboxId>,
}

impl Subject {
    fn new(store: impl SessionStore + 'static) -> Self {
        Self { store: Box::new(store), accepted: Vec::new(), items: Vec::new() }
    }

    /// The id at a place; a place that is not taken gets an id that nobody has.
    fn prompt(&self, place: u8) -> InboundId {
        self.accepted.get(usize::from(place)).copied().unwrap_or(InboundId(i64::MAX))
    }

    fn item(&self, place: u8) -> OutboxId {
        self.items.get(usize::from(place)).copied().unwrap_or(OutboxId(i64::MAX))
    }

    fn place(&self, id: InboundId) -> Option<usize> {
        self.accepted.iter().position(|known| *known == id)
    }

    async fn run(&mut self, op: &Op) -> Told {
        match self.try_run(op).await {
            Ok(told) => told,
            Err(StoreError::Taken { key, .. }) => match key.parse() {
                Ok(id) => Told::TakenPrompt(self.place(InboundId(id))),
                Err(_) => Told::TakenKey(key),
            },
            Err(_) => Told::Failed,
        }
    }

    async fn try_run(&mut self, op: &Op) -> Result<Told, StoreError> {
        Ok(match op {
            Op::Accept { target, key } => match self.store.accept(prompt(*target, *key)).await? {
                Accepted::New(id) => {
                    self.accepted.push(id);
                    Told::Accepted { new: true }
                }
                Accepted::AlreadyThere => Told::Accepted { new: false },
            },
            Op::Waiting { target } => {
                let waiting = self.store.waiting(&name(*target)).await?;
                let told =
                    |Prompt { id, prompt, accepted_at }| (self.place(id), prompt, accepted_at);
                Told::Waiting(waiting.into_iter().map(told).collect())
            }
            Op::Commit { target, consume, entries, outbox } => {
                let commit = Commit {
                    target: name(*target),
                    consume: consume.iter().map(|place| self.prompt(*place)).collect(),
                    entries: entries.iter().map(|(kind, settles)| entry(*kind, *settles)).collect(),
                    outbox: outbox.iter().map(|key| shown(*key)).collect(),
                };
                Told::Entries(self.store.commit(commit).await?)
            }
            Op::Entries { target } => Told::Entries(self.store.entries(&name(*target)).await?),
            Op::Next { target } => {
                let item = self.store.next_outbox(&name(*target)).await?;
                if let Some(item) = &item
                    && !self.items.contains(&item.id)
                {
                    self.items.push(item.id);
                }
                let told =
                    |OutboxItem { target, key, body, source, attempts, may_repeat, id: _ }| {
                        (target, key, body, source, attempts, may_repeat)
                    };
                Told::Item(item.map(told))
            }
            Op::Sent { item } => {
                self.store.outbox_sent(self.item(*item), Some("5".to_owned())).await?;
                Told::Done
            }
            Op::Retry { item } => {
                self.store.outbox_retry(self.item(*item)).await?;
                Told::Done
            }
            Op::Failed { item } => {
                self.store.outbox_failed(self.item(*item), "blocked".to_owned()).await?;
                Told::Done
            }
            Op::Targets => Told::Targets(self.store.targets_with_work().await?),
            Op::Restart => Told::Done,
        })
    }
}

fn name(target: u8) -> TargetId {
    TargetId::new(format!("chat {target}"))
}

fn key(key: u8) -> PromptKey {
    PromptKey::new(format!("key {key}"))
}

fn prompt(target: u8, number: u8) -> NewPrompt {
    NewPrompt {
        target: name(target),
        key: key(number),
        origin: if number.is_multiple_of(2) { Origin::Owner } else { Origin::Delivery },
        hops: u32::from(number),
        source: (number.is_multiple_of(3)).then(|| SourceRef::new("7")),
        text: format!("text {number}"),
    }
}

fn entry(kind: u8, settles: Option<u8>) -> NewEntry {
    let assistant = |blocks| EntryBody::Assistant {
        blocks,
        stop: StopReason::Stop,
        model: "scripted".to_owned(),
        usage: Usage::default(),
    };
    let call = ToolCall {
        id: "c".to_owned(),
        name: "a2a".to_owned(),
        arguments: Ok(serde_json::json!({"action": "agents"})),
        replay: None,
    };
    let body = match kind {
        0 => EntryBody::User {
            text: "hi".to_owned(),
            origin: Origin::Owner,
            key: PromptKey::new("k"),
            hops: 0,
            source: None,
        },
        1 => assistant(vec![Block::Text { text: "ho".to_owned() }]),
        2 => assistant(vec![Block::ToolCall(call)]),
        3 => EntryBody::Tool(ToolReply {
            call_id: "c".to_owned(),
            name: "a2a".to_owned(),
            text: "none".to_owned(),
            is_error: false,
            settles: settles.is_some(),
        }),
        4 => EntryBody::Failed {
            blocks: Vec::new(),
            reason: "down".to_owned(),
            aborted: false,
            last: settles.is_none(),
        },
        5 => EntryBody::Resumed,
        _ => EntryBody::Reset,
    };
    NewEntry { body, delivery_key: settles.map(key) }
}

fn shown(key: u8) -> NewOutbox {
    NewOutbox {
        key: format!("out {key}"),
        body: format!("body {key}"),
        source: Some(SourceRef::new("9")),
    }
}

/// Runs a sequence on both, restarts included.
async fn both_agree(ops: &[Op]) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let clock = ManualClock::at("2026-11-30T09:15:00.123456789Z".parse().unwrap());
    let open = |path: &Path| Store::open(path, Arc::new(clock.clone())).unwrap();
    let mut store = open(&path);
    let mut memory = MemoryStore::new(Arc::new(clock.clone()));
    let mut real = Subject::new(store.clone());
    let mut double = Subject::new(memory.clone());
    for (step, op) in ops.iter().enumerate() {
        clock.advance(Duration::from_secs(1));
        if matches!(op, Op::Restart) {
            store.close().await;
            store = open(&path);
            memory = memory.after_crash();
            real.store = Box::new(store.clone());
            double.store = Box::new(memory.clone());
        }
        let (real, double) = (real.run(op).await, double.run(op).await);
        assert_eq!(double, real, "step {step}: {op:?}");
    }
    store.close().await;
}

#[test]
fn store_in_memory_answers_as_the_real_one() {
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
