//! A session store without a disk, for tests: as strict as the real one, and able to fail and to crash.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use volcanic_base::Clock;

use crate::{
    prompt::{InboundId, NewPrompt, Prompt, PromptKey, TargetId},
    store::{
        Accepted, Commit, Entry, EntryBody, NewOutbox, OutboxId, OutboxItem, OutboxState,
        SessionStore, StoreError,
    },
};

/// How many waiting prompts are read at once; the trait says so.
const WAITING: usize = 256;

/// A [`SessionStore`] in memory. Clones share it.
#[derive(Debug, Clone)]
pub struct MemoryStore {
    clock: Arc<dyn Clock>,
    disk: Arc<Mutex<Disk>>,
}

/// An outbox row with everything that became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryOutbox {
    /// Its id.
    pub id: OutboxId,
    /// The conversation.
    pub target: TargetId,
    /// What was to be shown.
    pub item: NewOutbox,
    /// Where it stands.
    pub state: OutboxState,
    /// How often sending was begun.
    pub attempts: u32,
    /// The host's id of what is on the screen.
    pub message_id: Option<String>,
    /// Why it was given up.
    pub reason: Option<String>,
    /// Whether it may be on the screen already: an attempt ended without a known end.
    pub may_repeat: bool,
    /// Whether this process took it, so that only it ends the flight.
    in_flight: bool,
}

#[derive(Debug, Clone, Default)]
struct Disk {
    waiting: Vec<Prompt>,
    keys: HashSet<(TargetId, PromptKey)>,
    entries: HashMap<TargetId, Vec<Entry>>,
    outbox: Vec<MemoryOutbox>,
    next_inbound: i64,
    commits: u64,
    /// How many of the coming calls that write fail.
    failures: u32,
}

impl MemoryStore {
    /// An empty store.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, disk: Arc::default() }
    }

    /// What a new process would find if this one were killed now. The copy lives on by itself.
    #[must_use]
    pub fn after_crash(&self) -> Self {
        let mut disk = self.disk().clone();
        disk.failures = 0;
        for row in &mut disk.outbox {
            row.in_flight = false;
        }
        Self { clock: Arc::clone(&self.clock), disk: Arc::new(Mutex::new(disk)) }
    }

    /// Makes the next `count` calls that write fail.
    pub fn fail_next(&self, count: u32) {
        self.disk().failures = count;
    }

    /// How many steps were committed.
    pub fn commits(&self) -> u64 {
        self.disk().commits
    }

    /// Every entry of a conversation, those before a reset too.
    pub fn all_entries(&self, target: &TargetId) -> Vec<Entry> {
        self.disk().entries.get(target).cloned().unwrap_or_default()
    }

    /// Every outbox row of a conversation, oldest first.
    pub fn all_outbox(&self, target: &TargetId) -> Vec<MemoryOutbox> {
        self.disk().outbox.iter().filter(|row| row.target == *target).cloned().collect()
    }

    fn disk(&self) -> MutexGuard<'_, Disk> {
        self.disk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn writing(&self, action: &'static str) -> Result<MutexGuard<'_, Disk>, StoreError> {
        let mut disk = self.disk();
        if disk.failures > 0 {
            disk.failures -= 1;
            return Err(failed(action, "the test made it fail"));
        }
        Ok(disk)
    }

    /// Ends the flight of an item that this process took.
    fn end(&self, id: OutboxId, change: impl FnOnce(&mut MemoryOutbox)) -> Result<(), StoreError> {
        let mut disk = self.writing("change an outbox item")?;
        match disk.outbox.iter_mut().find(|row| row.id == id && row.in_flight) {
            Some(row) => {
                row.in_flight = false;
                change(row);
                Ok(())
            }
            None => Err(failed("change an outbox item", "it is not in flight")),
        }
    }
}

#[async_trait]
impl SessionStore for MemoryStore {
    async fn accept(&self, prompt: NewPrompt) -> Result<Accepted, StoreError> {
        let mut disk = self.writing("accept a prompt")?;
        if !disk.keys.insert((prompt.target.clone(), prompt.key.clone())) {
            return Ok(Accepted::AlreadyThere);
        }
        disk.next_inbound += 1;
        let id = InboundId(disk.next_inbound);
        disk.waiting.push(Prompt { id, prompt, accepted_at: self.clock.now() });
        Ok(Accepted::New(id))
    }

    async fn taken(
        &self,
        target: &TargetId,
        mut keys: Vec<PromptKey>,
    ) -> Result<Vec<PromptKey>, StoreError> {
        let disk = self.disk();
        keys.retain(|key| disk.keys.contains(&(target.clone(), key.clone())));
        Ok(keys)
    }

    async fn waiting(&self, target: &TargetId) -> Result<Vec<Prompt>, StoreError> {
        let disk = self.disk();
        let waiting = disk.waiting.iter().filter(|prompt| prompt.prompt.target == *target);
        Ok(waiting.take(WAITING).cloned().collect())
    }

    async fn commit(&self, commit: Commit) -> Result<Vec<Entry>, StoreError> {
        let mut disk = self.writing("commit a step")?;
        disk.check(&commit)?;
        Ok(disk.write(commit, self.clock.now()))
    }

    async fn entries(&self, target: &TargetId) -> Result<Vec<Entry>, StoreError> {
        let entries = self.all_entries(target);
        let start = entries
            .iter()
            .rposition(|entry| entry.body == EntryBody::Reset)
            .map_or(0, |reset| reset + 1);
        Ok(entries[start..].to_vec())
    }

    async fn next_outbox(&self, target: &TargetId) -> Result<Option<OutboxItem>, StoreError> {
        let mut disk = self.writing("take an outbox item")?;
        let next = disk.outbox.iter_mut().find(|row| {
            row.target == *target
                && match row.state {
                    OutboxState::Queued => true,
                    OutboxState::Sending => !row.in_flight,
                    OutboxState::Sent | OutboxState::Failed => false,
                }
        });
        Ok(next.map(|row| {
            row.may_repeat |= row.state == OutboxState::Sending;
            let item = OutboxItem {
                id: row.id,
                target: row.target.clone(),
                key: row.item.key.clone(),
                body: row.item.body.clone(),
                source: row.item.source.clone(),
                attempts: row.attempts,
                may_repeat: row.may_repeat,
            };
            row.state = OutboxState::Sending;
            row.attempts += 1;
            row.in_flight = true;
            item
        }))
    }

    async fn outbox_sent(
        &self,
        id: OutboxId,
        message_id: Option<String>,
    ) -> Result<(), StoreError> {
        let is_sent = |row: &MemoryOutbox| row.id == id && row.state == OutboxState::Sent;
        if self.disk().outbox.iter().any(is_sent) {
            return Ok(());
        }
        self.end(id, |row| {
            row.state = OutboxState::Sent;
            row.message_id = message_id;
        })
    }

    async fn outbox_retry(&self, id: OutboxId) -> Result<(), StoreError> {
        self.end(id, |row| row.state = OutboxState::Queued)
    }

    async fn outbox_failed(&self, id: OutboxId, reason: String) -> Result<(), StoreError> {
        self.end(id, |row| {
            row.state = OutboxState::Failed;
            row.reason = Some(reason);
        })
    }

    async fn targets_with_work(&self) -> Result<Vec<TargetId>, StoreError> {
        let disk = self.disk();
        let waiting = disk.waiting.iter().map(|prompt| &prompt.prompt.target);
        let unsent = disk.outbox.iter().filter_map(|row| match row.state {
            OutboxState::Queued | OutboxState::Sending => Some(&row.target),
            OutboxState::Sent | OutboxState::Failed => None,
        });
        let unfinished = disk.entries.iter().filter_map(|(target, entries)| {
            entries.last().is_some_and(|last| !last.body.ends_run()).then_some(target)
        });
        let mut targets: Vec<TargetId> = waiting.chain(unsent).chain(unfinished).cloned().collect();
        targets.sort();
        targets.dedup();
        Ok(targets)
    }
}

impl Disk {
    /// What the real store refuses, in its order: keys first, then prompts.
    fn check(&self, commit: &Commit) -> Result<(), StoreError> {
        let taken = |key: String| StoreError::Taken { target: commit.target.clone(), key };
        if commit.entries.is_empty() && !commit.consume.is_empty() {
            return Err(failed("commit a step", "prompts are consumed by an entry"));
        }
        let mut settled = HashSet::new();
        for key in commit.entries.iter().filter_map(|entry| entry.delivery_key.as_ref()) {
            let known = self.keys.contains(&(commit.target.clone(), key.clone()));
            if known || !settled.insert(key) {
                return Err(taken(key.to_string()));
            }
        }
        let mut consumed = HashSet::new();
        for id in &commit.consume {
            let waits = self
                .waiting
                .iter()
                .any(|prompt| prompt.id == *id && prompt.prompt.target == commit.target);
            if !waits || !consumed.insert(id) {
                return Err(taken(id.0.to_string()));
            }
        }
        Ok(())
    }

    fn write(&mut self, commit: Commit, now: jiff::Timestamp) -> Vec<Entry> {
        let Commit { target, consume, entries, outbox } = commit;
        self.commits += 1;
        self.waiting.retain(|prompt| !consume.contains(&prompt.id));
        let kept = self.entries.entry(target.clone()).or_default();
        let before = kept.len();
        for (entry, seq) in entries.into_iter().zip(before as u64 + 1..) {
            if let Some(key) = entry.delivery_key {
                self.keys.insert((target.clone(), key));
            }
            kept.push(Entry { seq, at: now, body: entry.body });
        }
        let written = kept[before..].to_vec();
        for item in outbox {
            let known =
                self.outbox.iter().any(|row| row.target == target && row.item.key == item.key);
            if !known {
                self.outbox.push(MemoryOutbox {
                    id: OutboxId(i64::try_from(self.outbox.len()).unwrap_or(i64::MAX)),
                    target: target.clone(),
                    item,
                    state: OutboxState::Queued,
                    attempts: 0,
                    message_id: None,
                    reason: None,
                    may_repeat: false,
                    in_flight: false,
                });
            }
        }
        written
    }
}

fn failed(action: &'static str, reason: &'static str) -> StoreError {
    StoreError::Failed { action, source: reason.into() }
}
