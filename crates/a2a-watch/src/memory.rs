//! A [`WatchStore`] in memory, for tests.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use volcanic_a2a_types::MessageId;
use volcanic_base::Chance;

use crate::record::{MAX_ANSWERED, SendRecord, SendState, WatchId, WatchRecord, WatchState};
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
    /// Those that anything was ever kept for.
    workspaces: BTreeSet<PathBuf>,
    failing: bool,
    /// What is written is kept, and fails all the same.
    failing_late: bool,
    log: Vec<String>,
    /// Draws how long each call takes before and after what it does.
    slowness: Option<Chance>,
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

    /// From now on every call fails after it did what it does, or works again: a disk that breaks down over the last of it.
    pub fn set_failing_late(&self, failing: bool) {
        self.lock().failing_late = failing;
    }

    /// From now on every call takes up to half a minute before it does what it does, or after it has, by chance: a caller that
    /// is gone meanwhile has or has not written.
    pub fn set_slow(&self, chance: Chance) {
        self.lock().slowness = Some(chance);
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

    /// Does something as fast as the store is.
    async fn slowly<T>(
        &self,
        action: &'static str,
        work: impl FnOnce(&mut Inner) -> Result<T, WatchStoreError>,
    ) -> Result<T, WatchStoreError> {
        self.pause().await;
        let done = self.working(action).and_then(|mut inner| {
            let done = work(&mut inner)?;
            if inner.failing_late { Err(told_to_fail(action)) } else { Ok(done) }
        });
        self.pause().await;
        done
    }

    async fn pause(&self) {
        let pause = self.lock().slowness.as_ref().map(|chance| {
            let longest = if chance.fraction() < 0.5 { 0.01 } else { 30.0 };
            Duration::from_secs_f64(chance.fraction() * longest)
        });
        if let Some(pause) = pause {
            tokio::time::sleep(pause).await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn working(&self, action: &'static str) -> Result<MutexGuard<'_, Inner>, WatchStoreError> {
        let inner = self.lock();
        if inner.failing { Err(told_to_fail(action)) } else { Ok(inner) }
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

    /// Where the watch stands that follows the same task for the same conversation, or has to again.
    fn twin(&self, watch: &WatchRecord) -> Option<usize> {
        let find = |is_live: bool| {
            self.watches.iter().position(|kept| {
                is_same_task(kept, watch)
                    && (kept.state != WatchState::Done) == is_live
                    && (is_live || kept.is_behind())
            })
        };
        find(true).or_else(|| find(false))
    }

    fn keep(
        &mut self,
        watch: &WatchRecord,
        action: &'static str,
    ) -> Result<WatchRecord, WatchStoreError> {
        if let Some(known) = self.twin(watch).and_then(|at| self.watches.get(at)) {
            return Ok(known.clone());
        }
        if self.watches.iter().any(|kept| kept.id == watch.id) {
            return Err(WatchStoreError::new(action, "its id is known"));
        }
        self.log.push(watch.state.as_str().to_owned());
        self.watches.push(watch.clone());
        self.workspaces.insert(watch.workspace.clone());
        Ok(watch.clone())
    }

    /// Lets a watch that was inserted for a send take over from those that do not know where its task runs.
    fn supersede(&mut self, inserted: &WatchRecord) {
        let is_superseded = |kept: &&mut WatchRecord| {
            kept.id != inserted.id
                && kept.origin.is_empty()
                && kept.state != WatchState::Done
                && (&kept.target, &kept.agent, &kept.task_id)
                    == (&inserted.target, &inserted.agent, &inserted.task_id)
        };
        for kept in self.watches.iter_mut().filter(is_superseded) {
            kept.epoch += 1;
            kept.goes_on = false;
            if kept.state != WatchState::Claimed {
                kept.state = WatchState::Done;
            }
        }
    }

    /// A watch with what was told last of the same task.
    fn in_view_of_told(&self, send: &SendRecord, watch: &WatchRecord) -> WatchRecord {
        let is_over = |kept: &&WatchRecord| {
            kept.state == WatchState::Done
                && (kept.origin == watch.origin || kept.origin.is_empty())
                && (&kept.target, &kept.agent, &kept.task_id)
                    == (&watch.target, &watch.agent, &watch.task_id)
        };
        let mut watch = watch.clone();
        if let Some(over) = self.watches.iter().rfind(is_over) {
            watch.know_what_was_told(send, over);
        }
        watch
    }

    /// A watch with the answers that no round of it covers.
    fn with_answers(&self, watch: &WatchRecord) -> WatchRecord {
        let mut watch = watch.clone();
        let answers = self.sends.iter().filter(|send| {
            send.state == SendState::Known
                && send.task_id.as_ref() == Some(&watch.task_id)
                && (&send.target, &send.agent, &send.origin)
                    == (&watch.target, &watch.agent, &watch.origin)
        });
        let answers: Vec<_> = answers.filter_map(|send| send.answered.clone()).collect();
        let old = answers.len().saturating_sub(MAX_ANSWERED);
        if watch.is_behind() {
            for answered in answers.into_iter().skip(old) {
                watch.note_told(answered);
            }
        }
        watch
    }

    /// All of them or none.
    fn keep_all(
        &mut self,
        watches: &[WatchRecord],
        action: &'static str,
    ) -> Result<Vec<WatchRecord>, WatchStoreError> {
        let before = (self.watches.len(), self.log.len(), self.workspaces.clone());
        let kept = watches.iter().map(|watch| self.keep(watch, action)).collect();
        if Result::is_err(&kept) {
            self.watches.truncate(before.0);
            self.log.truncate(before.1);
            self.workspaces = before.2;
        }
        kept
    }
}

fn told_to_fail(action: &'static str) -> WatchStoreError {
    WatchStoreError::new(action, "the store was told to fail")
}

fn is_same_task(one: &WatchRecord, other: &WatchRecord) -> bool {
    one.target == other.target
        && one.agent == other.agent
        && one.origin == other.origin
        && one.task_id == other.task_id
}

#[async_trait]
impl WatchStore for MemoryWatchStore {
    async fn begin_send(
        &self,
        send: &SendRecord,
        unattended_limit: u32,
    ) -> Result<bool, WatchStoreError> {
        self.slowly("keep a send", |inner| {
            let is_alike = |kept: &&SendRecord| {
                kept.target == send.target && kept.unattended == send.unattended
            };
            let alike = inner.sends.iter().filter(is_alike).count();
            if send.unattended.is_some()
                && alike >= usize::try_from(unattended_limit).unwrap_or(usize::MAX)
            {
                return Ok(false);
            }
            if inner.sends.iter().any(|kept| kept.message_id == send.message_id) {
                return Err(WatchStoreError::new("keep a send", "its message id is known"));
            }
            inner.sends.push(send.clone());
            inner.workspaces.insert(send.workspace.clone());
            inner.log.push("begin_send".to_owned());
            Ok(true)
        })
        .await
    }

    async fn send_known(
        &self,
        message_id: &MessageId,
        watch: Option<&WatchRecord>,
    ) -> Result<Option<WatchRecord>, WatchStoreError> {
        const ACTION: &str = "mark a send as known";
        self.slowly(ACTION, |inner| {
            inner.send_mut(message_id, ACTION)?;
            let at = inner.log.len();
            let twin = watch.and_then(|watch| inner.twin(watch));
            let is_own = |twin: &WatchRecord| {
                watch.is_some_and(|watch| watch.id == twin.id)
                    && twin.message_id.as_ref() == Some(message_id)
            };
            let known = twin.and_then(|twin| inner.watches.get_mut(twin));
            if let Some(twin) = known.filter(|twin| !is_own(twin)) {
                twin.continuations += 1;
            }
            let send = inner.send_mut(message_id, ACTION)?.clone();
            let watch = watch.map(|watch| inner.in_view_of_told(&send, watch));
            let kept = watch.map(|watch| inner.keep(&watch, ACTION)).transpose()?;
            if let Some(inserted) = kept.as_ref().filter(|_| twin.is_none()) {
                inner.supersede(inserted);
            }
            inner.log.insert(at, "send_known".to_owned());
            let send = inner.send_mut(message_id, ACTION)?;
            send.state = SendState::Known;
            send.end_reason = None;
            Ok(kept.map(|kept| inner.with_answers(&kept)))
        })
        .await
    }

    async fn note_unsent(
        &self,
        message_id: &MessageId,
        reason: &str,
    ) -> Result<(), WatchStoreError> {
        const ACTION: &str = "note why a send did not leave";
        self.slowly(ACTION, |inner| {
            let send = inner.send_mut(message_id, ACTION)?;
            if send.state != SendState::Sending {
                return Err(WatchStoreError::new(ACTION, "it is not open"));
            }
            send.end_reason = Some(reason.to_owned());
            send.unattended = None;
            inner.log.push("note_unsent".to_owned());
            Ok(())
        })
        .await
    }

    async fn note_sought(
        &self,
        message_id: &MessageId,
        since: Timestamp,
    ) -> Result<(), WatchStoreError> {
        const ACTION: &str = "note since when a send is looked for";
        self.slowly(ACTION, |inner| {
            let send = inner.send_mut(message_id, ACTION)?;
            if send.state != SendState::Sending {
                return Err(WatchStoreError::new(ACTION, "it is not open"));
            }
            send.sought_since = Some(since);
            Ok(())
        })
        .await
    }

    async fn note_answered(
        &self,
        message_id: &MessageId,
        answered: &str,
    ) -> Result<(), WatchStoreError> {
        const ACTION: &str = "note what a send answers";
        self.slowly(ACTION, |inner| {
            let send = inner.send_mut(message_id, ACTION)?;
            if send.state != SendState::Sending {
                return Err(WatchStoreError::new(ACTION, "it is not open"));
            }
            send.answered = Some(answered.to_owned());
            Ok(())
        })
        .await
    }

    async fn end_send(&self, message_id: &MessageId, reason: &str) -> Result<(), WatchStoreError> {
        self.slowly("end a send", |inner| {
            let send = inner.send_mut(message_id, "end a send")?;
            send.state = SendState::Ended;
            send.end_reason = Some(reason.to_owned());
            inner.log.push("end_send".to_owned());
            Ok(())
        })
        .await
    }

    async fn add_watches(
        &self,
        watches: &[WatchRecord],
    ) -> Result<Vec<WatchRecord>, WatchStoreError> {
        const ACTION: &str = "keep watches";
        self.slowly(ACTION, |inner| inner.keep_all(watches, ACTION)).await
    }

    async fn update(
        &self,
        expected_epoch: u64,
        watch: &WatchRecord,
    ) -> Result<bool, WatchStoreError> {
        const ACTION: &str = "update a watch";
        self.slowly(ACTION, |inner| {
            let is_twin = |kept: &WatchRecord| {
                kept.id != watch.id && kept.state != WatchState::Done && is_same_task(kept, watch)
            };
            let is_second = watch.state != WatchState::Done && inner.watches.iter().any(is_twin);
            let Some(kept) = inner
                .watches
                .iter_mut()
                .find(|kept| kept.id == watch.id && kept.epoch == expected_epoch)
            else {
                return Ok(false);
            };
            if is_second {
                return Err(WatchStoreError::new(ACTION, "its task is followed by another watch"));
            }
            let continuations = kept.continuations;
            *kept = WatchRecord { epoch: expected_epoch + 1, continuations, ..watch.clone() };
            inner.workspaces.insert(watch.workspace.clone());
            inner.log.push(watch.state.as_str().to_owned());
            Ok(true)
        })
        .await
    }

    async fn live(&self) -> Result<Vec<WatchRecord>, WatchStoreError> {
        self.slowly("read the watches", |inner| {
            let is_live =
                |watch: &&WatchRecord| watch.state != WatchState::Done || watch.is_behind();
            let live = inner.watches.iter().filter(is_live);
            Ok(live.map(|watch| inner.with_answers(watch)).collect())
        })
        .await
    }

    async fn open_sends(&self) -> Result<Vec<SendRecord>, WatchStoreError> {
        self.slowly("read the open sends", |inner| {
            Ok(inner
                .sends
                .iter()
                .filter(|send| send.state == SendState::Sending)
                .cloned()
                .collect())
        })
        .await
    }

    async fn watch(&self, id: &WatchId) -> Result<Option<WatchRecord>, WatchStoreError> {
        self.slowly("read a watch", |inner| {
            let found = inner.watches.iter().find(|watch| watch.id == *id);
            Ok(found.map(|watch| inner.with_answers(watch)))
        })
        .await
    }

    async fn knows_workspace(&self, workspace: &Path) -> Result<bool, WatchStoreError> {
        self.slowly("look a workspace up", |inner| Ok(inner.workspaces.contains(workspace))).await
    }
}
