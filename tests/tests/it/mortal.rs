//! The real store behind a door that can close for good: at a chosen write, before it or after it.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use jiff::Timestamp;
use tokio::sync::watch;
use tokio::time::Instant;
use volcanic_a2a_types::MessageId;
use volcanic_a2a_watch::{SendRecord, WatchId, WatchRecord, WatchStore, WatchStoreError};
use volcanic_agent_core::{
    Accepted, Commit, Entry, NewPrompt, Origin, OutboxId, OutboxItem, Prompt, PromptKey,
    SessionStore, StoreError, TargetId,
};
use volcanic_store::Store;

/// When and how a process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// It dies right before its n-th write, from 0.
    Before(u64),
    /// It dies right after it: it is on disk, and nobody hears of it.
    After(u64),
    /// It is told to stop when the write begins, and goes on until it has.
    Told(u64),
}

/// A store whose process may die. After that no call on it ever ends.
#[derive(Debug, Clone)]
pub(crate) struct MortalStore {
    store: Store,
    life: Arc<Life>,
}

#[derive(Debug)]
struct Life {
    writes: AtomicU64,
    /// How many deliveries are still refused.
    refusals: AtomicU64,
    /// When deliveries were refused.
    refused: Mutex<Vec<Instant>>,
    end: Option<End>,
    over: watch::Sender<bool>,
}

impl MortalStore {
    pub(crate) fn new(store: Store, end: Option<End>) -> Self {
        let life = Life {
            writes: AtomicU64::new(0),
            refusals: AtomicU64::new(0),
            refused: Mutex::default(),
            end,
            over: watch::Sender::new(false),
        };
        Self { store, life: Arc::new(life) }
    }

    /// The store behind the door, for what only hosts ask of it.
    pub(crate) fn whole(&self) -> &Store {
        &self.store
    }

    /// Refuses so many deliveries from now on.
    pub(crate) fn refuse(&self, times: u64) {
        self.life.refusals.store(times, Ordering::SeqCst);
    }

    /// When deliveries were refused.
    pub(crate) fn refused(&self) -> Vec<Instant> {
        self.life.refused.lock().unwrap().clone()
    }

    /// Writes so far.
    pub(crate) fn writes(&self) -> u64 {
        self.life.writes.load(Ordering::SeqCst)
    }

    /// Waits for the moment at which the process dies or is to stop.
    pub(crate) async fn over(&self) {
        let mut over = self.life.over.subscribe();
        over.wait_for(|over| *over).await.unwrap();
    }

    fn is_dead(&self) -> bool {
        !matches!(self.life.end, None | Some(End::Told(_))) && *self.life.over.borrow()
    }

    pub(crate) async fn close(&self) {
        self.store.close().await;
    }

    async fn write<T>(&self, work: impl Future<Output = T>) -> T {
        let number = self.life.writes.fetch_add(1, Ordering::SeqCst);
        if self.life.end == Some(End::Told(number)) {
            self.life.over.send_replace(true);
        }
        self.dies_if(End::Before(number)).await;
        let value = self.read(work).await;
        self.dies_if(End::After(number)).await;
        value
    }

    async fn read<T>(&self, work: impl Future<Output = T>) -> T {
        if self.is_dead() {
            std::future::pending::<()>().await;
        }
        work.await
    }

    async fn dies_if(&self, end: End) {
        if self.life.end == Some(end) {
            self.life.over.send_replace(true);
            std::future::pending::<()>().await;
        }
    }
}

#[async_trait]
impl SessionStore for MortalStore {
    async fn accept(&self, prompt: NewPrompt) -> Result<Accepted, StoreError> {
        let refusals = &self.life.refusals;
        let less = |left: u64| left.checked_sub(1);
        if prompt.origin == Origin::Delivery
            && refusals.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less).is_ok()
        {
            self.life.refused.lock().unwrap().push(Instant::now());
            let source = "the disk is full".into();
            return Err(StoreError::Failed { action: "accept a prompt", source });
        }
        self.write(self.store.accept(prompt)).await
    }

    async fn taken(
        &self,
        target: &TargetId,
        keys: Vec<PromptKey>,
    ) -> Result<Vec<PromptKey>, StoreError> {
        self.read(self.store.taken(target, keys)).await
    }

    async fn waiting(&self, target: &TargetId) -> Result<Vec<Prompt>, StoreError> {
        self.read(self.store.waiting(target)).await
    }

    async fn commit(&self, commit: Commit) -> Result<Vec<Entry>, StoreError> {
        self.write(self.store.commit(commit)).await
    }

    async fn entries(&self, target: &TargetId) -> Result<Vec<Entry>, StoreError> {
        self.read(self.store.entries(target)).await
    }

    async fn next_outbox(&self, target: &TargetId) -> Result<Option<OutboxItem>, StoreError> {
        self.write(self.store.next_outbox(target)).await
    }

    async fn outbox_sent(
        &self,
        id: OutboxId,
        message_id: Option<String>,
    ) -> Result<(), StoreError> {
        self.write(self.store.outbox_sent(id, message_id)).await
    }

    async fn outbox_retry(&self, id: OutboxId) -> Result<(), StoreError> {
        self.write(self.store.outbox_retry(id)).await
    }

    async fn outbox_failed(&self, id: OutboxId, reason: String) -> Result<(), StoreError> {
        self.write(self.store.outbox_failed(id, reason)).await
    }

    async fn targets_with_work(&self) -> Result<Vec<TargetId>, StoreError> {
        self.read(self.store.targets_with_work()).await
    }
}

#[async_trait]
impl WatchStore for MortalStore {
    async fn begin_send(
        &self,
        send: &SendRecord,
        unattended_limit: u32,
    ) -> Result<bool, WatchStoreError> {
        self.write(self.store.begin_send(send, unattended_limit)).await
    }

    async fn send_known(
        &self,
        message_id: &MessageId,
        watch: Option<&WatchRecord>,
    ) -> Result<Option<WatchRecord>, WatchStoreError> {
        self.write(self.store.send_known(message_id, watch)).await
    }

    async fn note_unsent(
        &self,
        message_id: &MessageId,
        reason: &str,
    ) -> Result<(), WatchStoreError> {
        self.write(self.store.note_unsent(message_id, reason)).await
    }

    async fn note_sought(
        &self,
        message_id: &MessageId,
        since: Timestamp,
    ) -> Result<(), WatchStoreError> {
        self.write(self.store.note_sought(message_id, since)).await
    }

    async fn note_answered(
        &self,
        message_id: &MessageId,
        answered: &str,
    ) -> Result<(), WatchStoreError> {
        self.write(self.store.note_answered(message_id, answered)).await
    }

    async fn end_send(&self, message_id: &MessageId, reason: &str) -> Result<(), WatchStoreError> {
        self.write(self.store.end_send(message_id, reason)).await
    }

    async fn add_watches(
        &self,
        watches: &[WatchRecord],
    ) -> Result<Vec<WatchRecord>, WatchStoreError> {
        self.write(self.store.add_watches(watches)).await
    }

    async fn update(
        &self,
        expected_epoch: u64,
        watch: &WatchRecord,
    ) -> Result<bool, WatchStoreError> {
        self.write(self.store.update(expected_epoch, watch)).await
    }

    async fn live(&self) -> Result<Vec<WatchRecord>, WatchStoreError> {
        self.read(self.store.live()).await
    }

    async fn open_sends(&self) -> Result<Vec<SendRecord>, WatchStoreError> {
        self.read(self.store.open_sends()).await
    }

    async fn watch(&self, id: &WatchId) -> Result<Option<WatchRecord>, WatchStoreError> {
        self.read(self.store.watch(id)).await
    }

    async fn knows_workspace(&self, workspace: &Path) -> Result<bool, WatchStoreError> {
        self.read(self.store.knows_workspace(workspace)).await
    }
}
