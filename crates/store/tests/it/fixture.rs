//! A store in a folder of its own, and short ways to write what goes into it.

use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use tempfile::TempDir;
use volcanic_agent_core::{
    Accepted, Block, Commit, EntryBody, InboundId, NewEntry, NewOutbox, NewPrompt, Origin,
    PromptKey, SessionStore as _, SourceRef, StopReason, TargetId, ToolCall, ToolReply, Usage,
};
use volcanic_base::ManualClock;
use volcanic_store::Store;

pub(crate) struct Fixture {
    pub(crate) folder: TempDir,
    pub(crate) clock: ManualClock,
    pub(crate) store: Store,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let clock = ManualClock::at(start());
        let store = Store::open(&folder.path().join("state.db"), Arc::new(clock.clone())).unwrap();
        Self { folder, clock, store }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("state.db")
    }

    /// What the next process finds when this one is gone without a word: the files as they are now, elsewhere.
    pub(crate) fn crashed(&self) -> Self {
        let folder = TempDir::new().unwrap();
        for name in ["state.db", "state.db-wal"] {
            std::fs::copy(self.folder.path().join(name), folder.path().join(name)).unwrap();
        }
        let clock = self.clock.clone();
        let store = Store::open(&folder.path().join("state.db"), Arc::new(clock.clone())).unwrap();
        Self { folder, clock, store }
    }

    pub(crate) async fn accept(&self, prompt: NewPrompt) -> InboundId {
        match self.store.accept(prompt).await.unwrap() {
            Accepted::New(id) => id,
            Accepted::AlreadyThere => panic!("the prompt was there already"),
        }
    }

    pub(crate) async fn waiting_keys(&self, target: &TargetId) -> Vec<String> {
        let waiting = self.store.waiting(target).await.unwrap();
        waiting.into_iter().map(|prompt| prompt.prompt.key.as_str().to_owned()).collect()
    }

    pub(crate) async fn bodies(&self, target: &TargetId) -> Vec<EntryBody> {
        self.store.entries(target).await.unwrap().into_iter().map(|entry| entry.body).collect()
    }
}

pub(crate) fn start() -> Timestamp {
    "2026-11-30T09:15:00.123456789Z".parse().unwrap()
}

pub(crate) fn chat(name: &str) -> TargetId {
    TargetId::new(name)
}

pub(crate) fn prompt(target: &str, key: &str) -> NewPrompt {
    NewPrompt {
        target: chat(target),
        key: PromptKey::new(key),
        origin: Origin::Owner,
        hops: 0,
        source: None,
        text: format!("text of {key}"),
    }
}

pub(crate) fn user(key: &str) -> EntryBody {
    EntryBody::User {
        text: format!("text of {key}"),
        origin: Origin::Delivery,
        key: PromptKey::new(key),
        hops: 2,
        source: Some(SourceRef::new("77")),
    }
}

pub(crate) fn answer(text: &str) -> EntryBody {
    EntryBody::Assistant {
        blocks: vec![Block::Text { text: text.to_owned() }],
        stop: StopReason::Stop,
        model: "scripted".to_owned(),
        usage: Usage::default(),
    }
}

pub(crate) fn call(id: &str) -> EntryBody {
    let arguments = Ok(serde_json::json!({ "action": "send", "agent": "travel-bot" }));
    EntryBody::Assistant {
        blocks: vec![Block::ToolCall(ToolCall {
            id: id.to_owned(),
            name: "a2a".to_owned(),
            arguments,
            replay: None,
        })],
        stop: StopReason::ToolUse,
        model: "scripted".to_owned(),
        usage: Usage::default(),
    }
}

pub(crate) fn tool(id: &str, text: &str) -> EntryBody {
    EntryBody::Tool(ToolReply {
        call_id: id.to_owned(),
        name: "a2a".to_owned(),
        text: text.to_owned(),
        is_error: false,
        settles: true,
    })
}

pub(crate) fn settling(body: EntryBody, key: &str) -> NewEntry {
    NewEntry { body, delivery_key: Some(PromptKey::new(key)) }
}

pub(crate) fn step(target: &str, entries: Vec<EntryBody>) -> Commit {
    let entries = entries.into_iter().map(NewEntry::plain).collect();
    Commit { target: chat(target), consume: Vec::new(), entries, outbox: Vec::new() }
}

pub(crate) fn shown(key: &str) -> NewOutbox {
    NewOutbox {
        key: key.to_owned(),
        body: format!("body of {key}"),
        source: Some(SourceRef::new("12")),
    }
}
