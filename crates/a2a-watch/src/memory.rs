//! A [`WatchStore`] in memory, for tests.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use volcanic_a2a_types::MessageId;

use crate::record::{SendRecord, SendState, WatchId, WatchRecord, WatchState};
use crate::store::{WatchStore, WatchStoreError};

/// Keeps everything in memory; can be told to fail, and survives a registry the way a disk does.
#[derive(Debug, Default)]
pub struct MemoryWatchStore {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    sends: Vec<SendRecord>,
    watches: Vec<WatchRecord>,
    failing: bool,
    log: Vec<String>,
}

impl MemoryWatchStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// From now on every call fails, or works again.
    pub fn set_failing(&self, failing: bool) {
        self.lock().failing = failing;
    }

    /// All sends, oldest first.
    pub fn sends(&self) -> Vec<SendRecord> {
        self.lock().sends.clone()
    }

    /// All watches, done ones included, oldest first.
    pub fn all_watches(&self) -> Vec<WatchRecord> {
        self.lock().watches.clone()
    }

    /// Every write in order, as `begin_send`, `send_known`, `note_unsent`, `end_send` or the state a watch was written with.
    pub fn log(&self) -> Vec<String> {
        self.lock().log.clone()
    }

    /// Puts a watch in as it is, as if an earlier process had left it.
    pub fn put_watch(&self, watch: WatchRecord) {
        self.lock().watches.push(watch);
    }

    /// Puts a send in as it is, as if an earlier process had left it.
    pub fn put_send(&self, send: SendRecord) {
        self.lock().sends.push(send);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn working(&self, action: &'static str) -> Result<MutexGuard<'_, Inner>, WatchStoreError> {
        let inner = self.lock();
        if inner.failing {
            Err(WatchStoreError::new(action, "the store was told to fail"))
        } else {
            Ok(inner)
        }
    }
}

impl Inner {
    fn send_mut(
        &mut self,
        id: &MessageId,
        action: &'static str,
    ) -> Result<&mut SendRecord, WatchStoreError> {
        self.sends
            .iter_mut()
            .find(|send| send.message_id == *id)
            .ok_or_else(|| WatchStoreError::new(action, "no such send"))
    }

    fn keep(&mut self, watch: &WatchRecord) -> WatchRecord {
        let known = self.watches.iter().find(|kept| {
            kept.state != WatchState::Done
                && kept.target == watch.target
                && kept.agent == watch.agent
                && kept.origin == watch.origin
                && kept.task_id == watch.task_id
        });
        if let Some(known) = known {
            return known.clone();
        }
        self.log.push(watch.state.as_str().to_owned());
        self.watches.push(watch.clone());
        watch.clone()
    }
}

#[async_trait]
impl WatchStore for MemoryWatchStore {
    async fn begin_send(&self, send: &SendRecord) -> Result<(), WatchStoreError> {
        let mut inner = self.working("keep a send")?;
        if inner.sends.iter().any(|kept| kept.message_id == send.message_id) {
            return Err(WatchStoreError::new("keep a send", "its message id is known"));
        }
        inner.sends.push(send.clone());
        inner.log.push("begin_send".to_owned());
        Ok(())
    }

    async fn send_known(
        &self,
        message_id: &MessageId,
        watch: Option<&WatchRecord>,
    ) -> Result<Option<WatchRecord>, WatchStoreError> {
        let mut inner = self.working("mark a send as known")?;
        inner.send_mut(message_id, "mark a send as known")?.state = SendState::Known;
        inner.log.push("send_known".to_owned());
        Ok(watch.map(|watch| inner.keep(watch)))
    }

    async fn note_unsent(
        &self,
        message_id: &MessageId,
        reason: &str,
    ) -> Result<(), WatchStoreError> {
        const ACTION: &str = "note why a send did not leave";
        let mut inner = self.working(ACTION)?;
        let send = inner.send_mut(message_id, ACTION)?;
        if send.state != SendState::Sending {
            return Err(WatchStoreError::new(ACTION, "it is not open"));
        }
        send.end_reason = Some(reason.to_owned());
        inner.log.push("note_unsent".to_owned());
        Ok(())
    }

    async fn end_send(&self, message_id: &MessageId, reason: &str) -> Result<(), WatchStoreError> {
        let mut inner = self.working("end a send")?;
        let send = inner.send_mut(message_id, "end a send")?;
        send.state = SendState::Ended;
        send.end_reason = Some(reason.to_owned());
        inner.log.push("end_send".to_owned());
        Ok(())
    }

    async fn add_watch(&self, watch: &WatchRecord) -> Result<WatchRecord, WatchStoreError> {
        Ok(self.working("keep a watch")?.keep(watch))
    }

    async fn add_watches(
        &self,
        watches: &[WatchRecord],
    ) -> Result<Vec<WatchRecord>, WatchStoreError> {
        let mut inner = self.working("keep watches")?;
        Ok(watches.iter().map(|watch| inner.keep(watch)).collect())
    }

    async fn update(
        &self,
        expected_epoch: u64,
        watch: &WatchRecord,
    ) -> Result<bool, WatchStoreError> {
        let mut inner = self.working("update a watch")?;
        let Some(kept) = inner
            .watches
            .iter_mut()
            .find(|kept| kept.id == watch.id && kept.epoch == expected_epoch)
        else {
            return Ok(false);
        };
        *kept = WatchRecord { epoch: expected_epoch + 1, ..watch.clone() };
        inner.log.push(watch.state.as_str().to_owned());
        Ok(true)
    }

    async fn live(&self) -> Result<Vec<WatchRecord>, WatchStoreError> {
        let inner = self.working("read the watches")?;
        Ok(inner.watches.iter().filter(|watch| watch.state != WatchState::Done).cloned().collect())
    }

    async fn open_sends(&self) -> Result<Vec<SendRecord>, WatchStoreError> {
        let inner = self.working("read the open sends")?;
        Ok(inner.sends.iter().filter(|send| send.state == SendState::Sending).cloned().collect())
    }

    async fn watch(&self, id: &WatchId) -> Result<Option<WatchRecord>, WatchStoreError> {
        Ok(self.working("read a watch")?.watches.iter().find(|watch| watch.id == *id).cloned())
    }

    async fn knows_workspace(&self, workspace: &Path) -> Result<bool, WatchStoreError> {
        let inner = self.working("look a workspace up")?;
        Ok(inner.sends.iter().any(|send| send.workspace == workspace)
            || inner.watches.iter().any(|watch| watch.workspace == workspace))
    }
}
