//! A registry that reaches its agent over a real socket, in real time, with pauses scaled down.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use volcanic_a2a_client::{ClientConfig, plain_keys};
use volcanic_a2a_types::TaskId;
use volcanic_a2a_watch::{
    Delivery, DeliveryEnd, DeliveryError, MemoryWatchStore, ResultDelivery, WatchConfig, WatchDeps,
    WatchHandle, WatchId, WatchRecord, WatchSource, WatchState, WatchStore as _, WatchTarget,
    spawn,
};
use volcanic_base::{Chance, Clock as _, SystemClock};
use volcanic_net::{NetClient, NetConfig};

/// No test waits longer than this for anything.
pub(super) const PATIENCE: Duration = Duration::from_mins(1);

/// What a pause is multiplied with: five minutes become 0.6 s.
pub(super) const SCALE: f64 = 0.002;

/// Where outcomes go: every text, by the key it came under.
#[derive(Debug)]
struct Inbox {
    workspace: PathBuf,
    delivered: Mutex<HashMap<String, Vec<String>>>,
    changed: Notify,
}

#[async_trait]
impl ResultDelivery for Inbox {
    async fn deliver(&self, delivery: &Delivery) -> Result<DeliveryEnd, DeliveryError> {
        let (key, text) = (delivery.key.clone(), delivery.text.clone());
        self.delivered.lock().unwrap().entry(key).or_default().push(text);
        self.changed.notify_waiters();
        Ok(DeliveryEnd::Delivered)
    }

    async fn told(
        &self,
        _: &WatchTarget,
        mut keys: Vec<String>,
    ) -> Result<Vec<String>, DeliveryError> {
        keys.retain(|key| self.delivered.lock().unwrap().contains_key(key));
        Ok(keys)
    }

    fn workspace_for(&self, _: &WatchTarget) -> Option<PathBuf> {
        Some(self.workspace.clone())
    }

    fn known_targets(&self) -> Vec<WatchTarget> {
        vec![WatchTarget::new("chat")]
    }
}

/// A watch as an earlier process left it.
fn record(task: String, workspace: &Path, url: &str) -> WatchRecord {
    WatchRecord {
        id: WatchId::new(format!("watch-of-{task}")),
        target: WatchTarget::new("chat"),
        workspace: workspace.to_owned(),
        agent: "bot".to_owned(),
        origin: url.trim_end_matches('/').to_owned(),
        task_id: TaskId::from(task),
        context_id: None,
        push_token: None,
        source: WatchSource::Poll,
        started_at: SystemClock.now(),
        state: WatchState::Watching,
        epoch: 0,
        round: 0,
        told: Vec::new(),
        text: None,
        delivery_key: String::new(),
        goes_on: false,
        failures: 0,
        not_found: 0,
        not_found_since: None,
        next_check_at: None,
        last_seen: None,
        hops: 0,
        source_ref: None,
        message_id: None,
        continuations: 0,
        followed: 0,
    }
}

/// A registry that follows tasks of one agent.
pub(super) struct Wired {
    pub(super) watches: WatchHandle,
    pub(super) store: Arc<MemoryWatchStore>,
    inbox: Arc<Inbox>,
    workspace: TempDir,
    process: (TaskTracker, CancellationToken),
}

impl Wired {
    /// Follows these tasks of the agent at `url`, whose origin that is.
    pub(super) async fn follow(
        url: &str,
        tasks: impl IntoIterator<Item = String>,
        net: NetConfig,
        change: impl FnOnce(&mut WatchConfig),
    ) -> Self {
        let workspace = tempfile::tempdir().unwrap();
        let folder = workspace.path().join(".volcanic/a2a");
        std::fs::create_dir_all(&folder).unwrap();
        let agents = serde_json::json!([{"name": "bot", "url": url, "key": "k_secret_0123"}]);
        std::fs::write(folder.join("agents.json"), agents.to_string()).unwrap();
        let store = Arc::new(MemoryWatchStore::new());
        let records: Vec<_> =
            tasks.into_iter().map(|task| record(task, workspace.path(), url)).collect();
        store.add_watches(&records).await.unwrap();
        let mut config = WatchConfig::new(ClientConfig::default(), 1 << 20).scaled(SCALE);
        config.view_gap = Duration::from_hours(24);
        change(&mut config);
        let inbox = Arc::new(Inbox {
            workspace: workspace.path().to_owned(),
            delivered: Mutex::default(),
            changed: Notify::new(),
        });
        let deps = WatchDeps {
            store: Arc::clone(&store) as _,
            transport: Arc::new(NetClient::new(net).unwrap()),
            keys: plain_keys(),
            clock: Arc::new(SystemClock),
            chance: Arc::new(Chance::from_os()),
            delivery: Arc::clone(&inbox) as _,
        };
        let process = (TaskTracker::new(), CancellationToken::new());
        let watches = spawn(config, deps, &process.0, process.1.clone());
        watches.restore().await;
        Self { watches, store, inbox, workspace, process }
    }

    /// Waits until so many outcomes are delivered, and returns their texts by key.
    pub(super) async fn wait_delivered(&self, count: usize) -> HashMap<String, Vec<String>> {
        let delivered = async {
            loop {
                let changed = self.inbox.changed.notified();
                let delivered = self.inbox.delivered.lock().unwrap().clone();
                if delivered.len() >= count {
                    return delivered;
                }
                changed.await;
            }
        };
        let end = tokio::time::timeout(PATIENCE, delivered).await;
        end.unwrap_or_else(|_| {
            let delivered = self.inbox.delivered.lock().unwrap().len();
            panic!("{delivered} of {count} are delivered; the others: {:?}", self.left())
        })
    }

    fn left(&self) -> Vec<(String, WatchState)> {
        let all = self.store.all_watches().into_iter();
        let left = all.filter(|watch| watch.state != WatchState::Done);
        left.map(|watch| (watch.task_id.to_string(), watch.state)).collect()
    }

    /// Ends in good order, and returns everything that was delivered.
    pub(super) async fn end(self) -> HashMap<String, Vec<String>> {
        self.process.1.cancel();
        self.process.0.close();
        tokio::time::timeout(PATIENCE, self.process.0.wait()).await.unwrap();
        drop(self.workspace);
        self.inbox.delivered.lock().unwrap().clone()
    }
}

/// Reads a request: its head, in lower case, and its body, null without one. `bytes` holds what came beyond.
pub(super) async fn read_request(
    from: &mut (impl AsyncRead + Unpin),
    bytes: &mut Vec<u8>,
) -> io::Result<Option<(String, Value)>> {
    loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
            let length = head.split("content-length: ").nth(1);
            let length = length.and_then(|rest| rest.split("\r\n").next());
            let length = length.map_or(0, |length| length.parse().unwrap());
            if bytes.len() >= end + 4 + length {
                let body: Vec<u8> = bytes.drain(..end + 4 + length).skip(end + 4).collect();
                return Ok(Some((head, serde_json::from_slice(&body).unwrap_or_default())));
            }
        }
        if from.read_buf(bytes).await? == 0 {
            return Ok(None);
        }
    }
}
