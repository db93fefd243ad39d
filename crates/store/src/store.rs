//! The store as hosts hold it, and its session family.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use rusqlite::Connection;
use tokio::sync::watch;
use volcanic_agent_core::{
    Accepted, Commit, Entry, NewPrompt, OutboxId, OutboxItem, Prompt, PromptKey, SessionStore,
    StoreError, TargetId,
};
use volcanic_base::Clock;

use crate::conversation;
use crate::inbound;
use crate::open::{StoreOpenError, open_for_writing};
use crate::outbox::{self, OutboxEnd, Unclaimed};
use crate::readers::Readers;
use crate::writer::{WriteScope, Writer};

/// The state of one assistant: all its conversations, sends, watches and received updates. Clones share it.
///
/// What waits is bounded: 1,024 writes wait for the writer and their callers' own futures beyond that, a commit takes up to
/// 256 of them, and four reads run at a time. The log is not: it is written back and begun anew from 4 MiB on, but grows while
/// a reader needs its older pages or the database cannot be written, and its file stays as long as it was until closing.
///
/// Must be used within a Tokio runtime. One process at a time writes a database: the host holds the state folder's lock.
#[derive(Debug, Clone)]
pub struct Store {
    writer: Writer,
    readers: Readers,
    unclaimed: Unclaimed,
}

/// How much a store wrote, for metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreStats {
    /// Commits, each with its flush to disk.
    pub commits: u64,
    /// Writes that those commits held.
    pub writes: u64,
}

impl Store {
    /// Opens the database at `path`, or creates it (the folder with mode 0700, the file with 0600). Blocks briefly.
    ///
    /// # Errors
    /// [`StoreOpenError`], which names the file; the file is as it was.
    pub fn open(path: &Path, clock: Arc<dyn Clock>) -> Result<Self, StoreOpenError> {
        let opened = open_for_writing(path)?;
        let readers = Readers::new(path);
        Ok(Self {
            writer: Writer::new(path.to_owned(), clock, opened, readers.clone()),
            readers,
            unclaimed: Unclaimed::default(),
        })
    }

    /// Refuses new work, waits for what was accepted and closes the files. Later calls on any clone fail.
    pub async fn close(&self) {
        self.readers.close().await;
        self.writer.close().await;
    }

    /// Whether another process holds the lock of the database and what is to be written waits for it. That takes as long
    /// as the other one likes; somebody should be told. Nothing is lost, and reading goes on.
    pub fn held(&self) -> watch::Receiver<bool> {
        self.writer.held()
    }

    /// Why nothing can be written (a full disk, one that fails), from a commit that failed on until one succeeds that had
    /// something to write. Each caller learns of its own failure besides; this is for whoever tells people. It is said as
    /// well while the log cannot be written back: commits succeed then, as long as the log can grow.
    pub fn unwritable(&self) -> watch::Receiver<Option<Arc<str>>> {
        self.writer.unwritable()
    }

    /// From now on a lock that another process holds fails writes, after a moment. For the time before the end.
    pub fn hurry(&self) {
        self.writer.hurry();
    }

    /// How much was written so far.
    pub fn stats(&self) -> StoreStats {
        let (commits, writes) = self.writer.counts();
        StoreStats { commits, writes }
    }

    pub(crate) fn writer(&self) -> &Writer {
        &self.writer
    }

    pub(crate) fn readers(&self) -> &Readers {
        &self.readers
    }

    async fn end_outbox(
        &self,
        id: OutboxId,
        end: OutboxEnd,
        action: &'static str,
    ) -> Result<(), StoreError> {
        let work = move |scope: &WriteScope<'_>| outbox::end(scope, id, end);
        self.writer.write(work).await.map_err(|error| error.into_session(action))
    }
}

#[async_trait]
impl SessionStore for Store {
    async fn accept(&self, prompt: NewPrompt) -> Result<Accepted, StoreError> {
        let work = move |scope: &WriteScope<'_>| inbound::accept(scope, &prompt);
        self.writer.write(work).await.map_err(|error| error.into_session("accept a prompt"))
    }

    async fn taken(
        &self,
        target: &TargetId,
        keys: Vec<PromptKey>,
    ) -> Result<Vec<PromptKey>, StoreError> {
        let target = target.clone();
        let work = move |connection: &Connection| inbound::taken(connection, &target, keys);
        self.readers.read(work).await.map_err(|error| error.into_session("look keys up"))
    }

    async fn waiting(&self, target: &TargetId) -> Result<Vec<Prompt>, StoreError> {
        let target = target.clone();
        let work = move |connection: &Connection| inbound::waiting(connection, &target);
        self.readers
            .read(work)
            .await
            .map_err(|error| error.into_session("read the waiting prompts"))
    }

    async fn commit(&self, commit: Commit) -> Result<Vec<Entry>, StoreError> {
        let work = move |scope: &WriteScope<'_>| conversation::commit(scope, commit);
        self.writer
            .write(work)
            .await
            .map_err(|error| error.into_session("commit a step of the conversation"))
    }

    async fn entries(&self, target: &TargetId) -> Result<Vec<Entry>, StoreError> {
        let target = target.clone();
        let work = move |connection: &Connection| conversation::entries(connection, &target);
        self.readers.read(work).await.map_err(|error| error.into_session("read the conversation"))
    }

    async fn next_outbox(&self, target: &TargetId) -> Result<Option<OutboxItem>, StoreError> {
        let (target, unclaimed) = (target.clone(), self.unclaimed.clone());
        let flights = unclaimed.flights();
        let back = flights.clone();
        let work = move |scope: &WriteScope<'_>| {
            outbox::put_back(scope, &back)?;
            Ok(outbox::take(scope, &target)?.map(|item| unclaimed.guard(item)))
        };
        let taken = self
            .writer
            .write(work)
            .await
            .map_err(|error| error.into_session("take an outbox item"))?;
        self.unclaimed.forget(&flights);
        Ok(taken.and_then(outbox::ClaimGuard::claim))
    }

    async fn outbox_sent(
        &self,
        id: OutboxId,
        message_id: Option<String>,
    ) -> Result<(), StoreError> {
        self.end_outbox(id, OutboxEnd::Sent { message_id }, "mark an outbox item as sent").await
    }

    async fn outbox_retry(&self, id: OutboxId) -> Result<(), StoreError> {
        self.end_outbox(id, OutboxEnd::Queued, "put an outbox item back").await
    }

    async fn outbox_failed(&self, id: OutboxId, reason: String) -> Result<(), StoreError> {
        self.end_outbox(id, OutboxEnd::Failed { reason }, "give an outbox item up").await
    }

    async fn targets_with_work(&self) -> Result<Vec<TargetId>, StoreError> {
        self.readers
            .read(conversation::targets_with_work)
            .await
            .map_err(|error| error.into_session("read which conversations have work"))
    }
}
