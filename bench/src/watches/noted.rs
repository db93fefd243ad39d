//! Notes when things are on disk: the store and the delivery as they ship, with a look at what comes back from them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use async_trait::async_trait;
use jiff::Timestamp;
use tokio::sync::oneshot;
use volcanic_a2a_tool::SessionDelivery;
use volcanic_a2a_types::{MessageId, TaskId};
use volcanic_a2a_watch::{
    Delivery, DeliveryEnd, DeliveryError, ResultDelivery, SendRecord, WatchId, WatchRecord,
    WatchState, WatchStore, WatchStoreError, WatchTarget,
};
use volcanic_store::Store;

/// The store, and which tasks are on disk as followed by the registry alone.
#[derive(Debug)]
pub(crate) struct NotedStore {
    store: Store,
    followed: Mutex<HashMap<TaskId, Followed>>,
}

#[derive(Debug)]
enum Followed {
    Already,
    Awaited(oneshot::Sender<()>),
}

impl NotedStore {
    pub(crate) fn new(store: Store) -> Self {
        Self { store, followed: Mutex::default() }
    }

    /// Waits until the hand-over of a task is on disk. Once per task.
    pub(crate) async fn handed_over(&self, task: &TaskId) {
        let waits = {
            let mut followed = self.followed();
            match followed.remove(task) {
                Some(Followed::Already) => None,
                Some(Followed::Awaited(_)) | None => {
                    let (told, waits) = oneshot::channel();
                    followed.insert(task.clone(), Followed::Awaited(told));
                    Some(waits)
                }
            }
        };
        if let Some(waits) = waits {
            let _ = waits.await;
        }
    }

    fn note(&self, task: &TaskId) {
        let mut followed = self.followed();
        if let Some(Followed::Awaited(told)) = followed.remove(task) {
            let _ = told.send(());
        } else {
            followed.insert(task.clone(), Followed::Already);
        }
    }

    fn followed(&self) -> MutexGuard<'_, HashMap<TaskId, Followed>> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl WatchStore for NotedStore {
    async fn begin_send(&self, send: &SendRecord, limit: u32) -> Result<bool, WatchStoreError> {
        self.store.begin_send(send, limit).await
    }

    async fn send_known(
        &self,
        message_id: &MessageId,
        watch: Option<&WatchRecord>,
    ) -> Result<Option<WatchRecord>, WatchStoreError> {
        let kept = self.store.send_known(message_id, watch).await;
        // A new watch that nobody waits for is handed over by this.
        if let (Ok(Some(kept)), Some(given)) = (&kept, watch)
            && kept.id == given.id
            && kept.state == WatchState::Watching
        {
            self.note(&kept.task_id);
        }
        kept
    }

    async fn note_unsent(&self, id: &MessageId, reason: &str) -> Result<(), WatchStoreError> {
        self.store.note_unsent(id, reason).await
    }

    async fn note_sought(&self, id: &MessageId, since: Timestamp) -> Result<(), WatchStoreError> {
        self.store.note_sought(id, since).await
    }

    async fn note_answered(&self, id: &MessageId, answered: &str) -> Result<(), WatchStoreError> {
        self.store.note_answered(id, answered).await
    }

    async fn end_send(&self, id: &MessageId, reason: &str) -> Result<(), WatchStoreError> {
        self.store.end_send(id, reason).await
    }

    async fn add_watches(
        &self,
        given: &[WatchRecord],
    ) -> Result<Vec<WatchRecord>, WatchStoreError> {
        self.store.add_watches(given).await
    }

    async fn update(&self, expected: u64, watch: &WatchRecord) -> Result<bool, WatchStoreError> {
        self.store.update(expected, watch).await
    }

    async fn live(&self) -> Result<Vec<WatchRecord>, WatchStoreError> {
        self.store.live().await
    }

    async fn open_sends(&self) -> Result<Vec<SendRecord>, WatchStoreError> {
        WatchStore::open_sends(&self.store).await
    }

    async fn watch(&self, id: &WatchId) -> Result<Option<WatchRecord>, WatchStoreError> {
        self.store.watch(id).await
    }

    async fn knows_workspace(&self, workspace: &Path) -> Result<bool, WatchStoreError> {
        self.store.knows_workspace(workspace).await
    }
}

/// The delivery, and how long after its push each outcome was accepted, in nanoseconds.
#[derive(Debug)]
pub(crate) struct NotedDelivery {
    delivery: SessionDelivery,
    taken: Arc<Mutex<Vec<u64>>>,
}

impl NotedDelivery {
    pub(crate) fn new(delivery: SessionDelivery, taken: Arc<Mutex<Vec<u64>>>) -> Self {
        Self { delivery, taken }
    }
}

#[async_trait]
impl ResultDelivery for NotedDelivery {
    async fn deliver(&self, delivery: &Delivery) -> Result<DeliveryEnd, DeliveryError> {
        let end = self.delivery.deliver(delivery).await;
        let accepted_at = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        if let (Ok(DeliveryEnd::Delivered), Ok(accepted_at), Some(pushed_at)) =
            (&end, accepted_at, pushed_at(&delivery.text))
        {
            let took = accepted_at.as_nanos().saturating_sub(pushed_at);
            let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
            taken.push(u64::try_from(took).unwrap_or(u64::MAX));
        }
        end
    }

    async fn told(
        &self,
        target: &WatchTarget,
        keys: Vec<String>,
    ) -> Result<Vec<String>, DeliveryError> {
        self.delivery.told(target, keys).await
    }

    fn workspace_for(&self, target: &WatchTarget) -> Option<PathBuf> {
        self.delivery.workspace_for(target)
    }

    fn known_targets(&self) -> Vec<WatchTarget> {
        self.delivery.known_targets()
    }
}

/// When the push left, as the agent wrote it into the outcome.
fn pushed_at(text: &str) -> Option<u128> {
    text.split_once("pushed at ")?.1.split_once(' ')?.0.parse().ok()
}
