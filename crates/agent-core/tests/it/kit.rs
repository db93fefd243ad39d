//! A session with its surroundings, and its conversation in short lines.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use futures::future::BoxFuture;
use jiff::tz::TimeZone;
use serde_json::{Value, json};
use tokio::sync::broadcast;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use volcanic_agent_core::{
    Accepted, Block, Commit, Entry, EntryBody, MemoryStore, Message, Model, NewPrompt, Origin,
    OutboxId, OutboxItem, PlainAnswers, Prompt, PromptKey, ScriptedModel, ScriptedStep,
    SessionConfig, SessionDeps, SessionEvent, SessionHandle, SessionStore, SourceRef, StoreError,
    TargetId, Tool, ToolContext, ToolOutput, ToolSpec, spawn,
};
use volcanic_base::{Chance, ManualClock};

/// Longer than any wait in these tests; with paused time it costs nothing.
const PATIENCE: Duration = Duration::from_hours(2);

pub(crate) fn target() -> TargetId {
    TargetId::new("chat")
}

pub(crate) fn clock() -> ManualClock {
    ManualClock::at("2026-10-08T12:05:00Z".parse().unwrap())
}

pub(crate) fn store() -> MemoryStore {
    MemoryStore::new(Arc::new(clock()))
}

pub(crate) fn config() -> SessionConfig {
    SessionConfig::new("Be kind.", TimeZone::UTC, Arc::new(PlainAnswers))
}

/// A session that runs.
pub(crate) struct Kit {
    pub(crate) store: MemoryStore,
    pub(crate) model: ScriptedModel,
    pub(crate) handle: SessionHandle,
    pub(crate) events: broadcast::Receiver<SessionEvent>,
    pub(crate) cancel: CancellationToken,
    tracker: TaskTracker,
}

impl Kit {
    /// A session over an empty store.
    pub(crate) fn start(
        steps: impl IntoIterator<Item = impl Into<ScriptedStep>>,
        tools: Vec<Arc<dyn Tool>>,
    ) -> Self {
        Self::over(store(), ScriptedModel::steps(steps), tools, config())
    }

    pub(crate) fn over(
        store: MemoryStore,
        model: ScriptedModel,
        tools: Vec<Arc<dyn Tool>>,
        config: SessionConfig,
    ) -> Self {
        let seam = Arc::new(store.clone());
        Self::with_seams(store, seam, model.clone(), Arc::new(model), tools, config)
    }

    /// A session that reaches store and model through seams of the test's own.
    pub(crate) fn with_seams(
        store: MemoryStore,
        seam: Arc<dyn SessionStore>,
        scripted: ScriptedModel,
        model: Arc<dyn Model>,
        tools: Vec<Arc<dyn Tool>>,
        config: SessionConfig,
    ) -> Self {
        let (tracker, cancel) = (TaskTracker::new(), CancellationToken::new());
        let (clock, chance) = (Arc::new(clock()), Arc::new(Chance::seeded(1)));
        let deps = SessionDeps { model, tools, store: seam, clock, chance };
        let handle = spawn(target(), config, deps, &tracker, cancel.clone());
        let events = handle.subscribe();
        Self { store, model: scripted, handle, events, cancel, tracker }
    }

    /// Accepts a line of the owner under the key `text` and wakes the session.
    pub(crate) async fn say(&self, text: &str) {
        accept(&self.store, text, Origin::Owner, text).await;
        self.handle.wake();
    }

    /// Says a line and waits for the end of everything.
    pub(crate) async fn ask(&self, text: &str) {
        self.say(text).await;
        self.idle().await;
    }

    pub(crate) async fn idle(&self) {
        within(self.handle.wait_idle()).await;
    }

    /// Waits for an event, past all others.
    pub(crate) async fn event(&mut self, wanted: impl Fn(&SessionEvent) -> bool) -> SessionEvent {
        within(async {
            loop {
                let event = self.events.recv().await.unwrap();
                if wanted(&event) {
                    return event;
                }
            }
        })
        .await
    }

    /// The events that came so far, in short lines.
    pub(crate) fn events_so_far(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        while let Ok(event) = self.events.try_recv() {
            lines.push(event_line(&event));
        }
        lines
    }

    /// The conversation in short lines.
    pub(crate) fn lines(&self) -> Vec<String> {
        lines(&self.store)
    }

    /// What is to be shown, oldest first.
    pub(crate) fn screen(&self) -> Vec<String> {
        screen(&self.store)
    }

    /// The messages of the latest request in short lines.
    pub(crate) fn last_request(&self) -> Vec<String> {
        let requests = self.model.requests();
        requests.last().unwrap().messages.iter().map(message_line).collect()
    }

    /// Ends the process in good order.
    pub(crate) async fn shut_down(&self) {
        self.cancel.cancel();
        self.tracker.close();
        within(self.tracker.wait()).await;
    }
}

pub(crate) async fn accept(store: &MemoryStore, key: &str, origin: Origin, text: &str) {
    let prompt = NewPrompt {
        target: target(),
        key: PromptKey::new(key),
        origin,
        hops: 3,
        source: Some(SourceRef::new(format!("message {key}"))),
        text: text.to_owned(),
    };
    store.accept(prompt).await.unwrap();
}

pub(crate) async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, work).await.expect("it never happened")
}

pub(crate) fn lines(store: &MemoryStore) -> Vec<String> {
    store.all_entries(&target()).iter().map(entry_line).collect()
}

pub(crate) fn screen(store: &MemoryStore) -> Vec<String> {
    store.all_outbox(&target()).into_iter().map(|row| row.item.body).collect()
}

fn entry_line(entry: &Entry) -> String {
    match &entry.body {
        EntryBody::User { text, .. } => format!("user {}", text.lines().nth(1).unwrap_or(text)),
        EntryBody::Assistant { blocks, .. } => blocks_line(blocks),
        EntryBody::Tool(reply) => {
            format!("{} {}: {}", mark(reply.is_error), reply.name, reply.text)
        }
        EntryBody::Failed { blocks, reason, aborted, last } => {
            let end = match (aborted, last) {
                (true, _) => "aborted",
                (false, true) => "failed",
                (false, false) => "retry",
            };
            format!("{end} after [{}]: {reason}", blocks_line(blocks))
        }
        EntryBody::Resumed => "resumed".to_owned(),
        EntryBody::Reset => "reset".to_owned(),
    }
}

fn message_line(message: &Message) -> String {
    match message {
        Message::User { text } => format!("user {}", text.lines().nth(1).unwrap_or(text)),
        Message::Assistant { blocks } => blocks_line(blocks),
        Message::Tool(reply) => format!("{} {}: {}", mark(reply.is_error), reply.name, reply.text),
    }
}

fn mark(is_error: bool) -> &'static str {
    if is_error { "error" } else { "result" }
}

fn blocks_line(blocks: &[Block]) -> String {
    let parts: Vec<String> = blocks
        .iter()
        .map(|block| match block {
            Block::Text { text } => format!("say {text}"),
            Block::Thinking { text, .. } => format!("think {text}"),
            Block::ToolCall(call) => format!("call {}", call.name),
        })
        .collect();
    parts.join(", ")
}

fn event_line(event: &SessionEvent) -> String {
    match event {
        SessionEvent::RunStarted { key, origin } => format!("started {key} {origin:?}"),
        SessionEvent::TextDelta { text } => format!("delta {text}"),
        SessionEvent::ToolStarted { name, summary } => format!("tool {name} {summary}"),
        SessionEvent::ToolEnded { name, is_error } => format!("ended {name} {is_error}"),
        SessionEvent::Retrying { attempt, wait, reason } => {
            format!("retrying {attempt} in {} s: {reason}", wait.as_secs())
        }
        SessionEvent::Answered { key, text } => format!("answered {key}: {text}"),
        SessionEvent::RunFailed { reason } => format!("failed: {reason}"),
        SessionEvent::RunAborted { key } => format!("aborted {key}"),
        SessionEvent::OutboxReady => "outbox".to_owned(),
        SessionEvent::Idle => "idle".to_owned(),
        other => panic!("an event without a line: {other:?}"),
    }
}

type Call = dyn Fn(Value, ToolContext) -> BoxFuture<'static, ToolOutput> + Send + Sync;

/// A tool made of a closure; its one argument is an optional text.
#[derive(Clone)]
pub(crate) struct TestTool {
    name: &'static str,
    sequential: bool,
    call: Arc<Call>,
}

/// A tool that does what the closure says.
pub(crate) fn tool<F>(
    name: &'static str,
    call: impl Fn(Value, ToolContext) -> F + Send + Sync + 'static,
) -> Arc<dyn Tool>
where
    F: Future<Output = ToolOutput> + Send + 'static,
{
    let call: Arc<Call> = Arc::new(move |arguments, context| Box::pin(call(arguments, context)));
    Arc::new(TestTool { name, sequential: false, call })
}

/// Like [`tool`], but its calls run one after the other.
pub(crate) fn sequential_tool<F>(
    name: &'static str,
    call: impl Fn(Value, ToolContext) -> F + Send + Sync + 'static,
) -> Arc<dyn Tool>
where
    F: Future<Output = ToolOutput> + Send + 'static,
{
    let call: Arc<Call> = Arc::new(move |arguments, context| Box::pin(call(arguments, context)));
    Arc::new(TestTool { name, sequential: true, call })
}

/// A tool that says its argument again.
pub(crate) fn echo() -> Arc<dyn Tool> {
    tool("echo", |arguments, _| async move {
        ToolOutput::text(arguments["text"].as_str().unwrap_or("nothing"))
    })
}

/// A tool whose result settles a delivery.
pub(crate) fn settling(key: &'static str) -> Arc<dyn Tool> {
    tool("settle", move |_, _| async move { outcome(key) })
}

/// A result that settles a delivery.
pub(crate) fn outcome(key: &str) -> ToolOutput {
    let text = format!("outcome of {key}");
    ToolOutput { delivery_key: Some(PromptKey::new(key)), ..ToolOutput::text(text) }
}

/// A tool that hears nothing and never ends.
pub(crate) fn deaf() -> Arc<dyn Tool> {
    tool("deaf", |_, _| futures::future::pending())
}

impl fmt::Debug for TestTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TestTool").field(&self.name).finish()
    }
}

#[async_trait]
impl Tool for TestTool {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: self.name.to_owned(),
            description: "for tests".to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {"text": {"type": "string"}},
                "additionalProperties": false,
            }),
        }
    }

    fn is_sequential(&self) -> bool {
        self.sequential
    }

    async fn call(&self, arguments: Value, context: ToolContext) -> ToolOutput {
        (self.call)(arguments, context).await
    }
}

type Hook = dyn Fn(&[Entry]) -> BoxFuture<'static, ()> + Send + Sync;

/// A store that waits for a hook after each of its commits, before the session hears of it.
pub(crate) struct HookedStore {
    inner: MemoryStore,
    after_commit: Box<Hook>,
    /// Commits whose success the session never hears of.
    unsure: AtomicU32,
}

impl HookedStore {
    pub(crate) fn new(
        inner: MemoryStore,
        after_commit: impl Fn(&[Entry]) -> BoxFuture<'static, ()> + Send + Sync + 'static,
    ) -> Self {
        Self { inner, after_commit: Box::new(after_commit), unsure: AtomicU32::new(0) }
    }

    /// A store that writes each of the first `count` commits and then says that it failed, as a disk does whose flush
    /// fails after the bytes have reached it.
    pub(crate) fn unsure(inner: MemoryStore, count: u32) -> Self {
        let store = Self::new(inner, |_| Box::pin(std::future::ready(())));
        store.unsure.store(count, Ordering::Relaxed);
        store
    }
}

impl fmt::Debug for HookedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HookedStore").field(&self.inner).finish()
    }
}

#[async_trait]
impl SessionStore for HookedStore {
    async fn accept(&self, prompt: NewPrompt) -> Result<Accepted, StoreError> {
        self.inner.accept(prompt).await
    }

    async fn taken(
        &self,
        target: &TargetId,
        keys: Vec<PromptKey>,
    ) -> Result<Vec<PromptKey>, StoreError> {
        self.inner.taken(target, keys).await
    }

    async fn waiting(&self, target: &TargetId) -> Result<Vec<Prompt>, StoreError> {
        self.inner.waiting(target).await
    }

    async fn commit(&self, commit: Commit) -> Result<Vec<Entry>, StoreError> {
        let entries = self.inner.commit(commit).await?;
        (self.after_commit)(&entries).await;
        let left = |left: u32| left.checked_sub(1);
        if self.unsure.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left).is_ok() {
            return Err(StoreError::Failed { action: "flush", source: "the disk".into() });
        }
        Ok(entries)
    }

    async fn entries(&self, target: &TargetId) -> Result<Vec<Entry>, StoreError> {
        self.inner.entries(target).await
    }

    async fn next_outbox(&self, target: &TargetId) -> Result<Option<OutboxItem>, StoreError> {
        self.inner.next_outbox(target).await
    }

    async fn outbox_sent(
        &self,
        id: OutboxId,
        message_id: Option<String>,
    ) -> Result<(), StoreError> {
        self.inner.outbox_sent(id, message_id).await
    }

    async fn outbox_retry(&self, id: OutboxId) -> Result<(), StoreError> {
        self.inner.outbox_retry(id).await
    }

    async fn outbox_failed(&self, id: OutboxId, reason: String) -> Result<(), StoreError> {
        self.inner.outbox_failed(id, reason).await
    }

    async fn targets_with_work(&self) -> Result<Vec<TargetId>, StoreError> {
        self.inner.targets_with_work().await
    }
}
