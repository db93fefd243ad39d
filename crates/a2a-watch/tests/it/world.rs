//! A registry with everything around it: an agent, a store, a conversation, a workspace.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use volcanic_a2a_client::{ClientConfig, plain_keys};
use volcanic_a2a_types::TaskId;
use volcanic_a2a_watch::{
    Delivery, DeliveryEnd, DeliveryError, MemoryWatchStore, ResultDelivery, SendEnd, SendError,
    SendOrder, TaskQuery, WatchConfig, WatchDeps, WatchHandle, WatchState, WatchTarget, spawn,
};
use volcanic_base::{Chance, Clock};
use volcanic_net::InMemory;

use crate::agent::Agent;

/// Longer than anything takes in paused time.
const PATIENCE: Duration = Duration::from_hours(24 * 7);

/// A wall clock that goes with tokio's.
#[derive(Debug)]
struct PausedClock {
    start: Mutex<Timestamp>,
    at: Instant,
    /// How long the machine slept.
    asleep: Mutex<Duration>,
}

impl Clock for PausedClock {
    fn now(&self) -> Timestamp {
        *self.start.lock().unwrap() + self.since_boot()
    }

    fn since_boot(&self) -> Duration {
        self.at.elapsed() + *self.asleep.lock().unwrap()
    }
}

/// Something that happens when the conversation is used.
type Look = Box<dyn FnMut() + Send>;

/// A conversation: keeps what is delivered, once per key.
#[derive(Default)]
pub(crate) struct Chat {
    delivered: Mutex<Vec<Delivery>>,
    taken: Mutex<HashSet<String>>,
    attempts: Mutex<u32>,
    known: Mutex<bool>,
    /// How often it breaks down before it works.
    breakdowns: Mutex<u32>,
    before_deliver: Mutex<Option<Look>>,
    changed: Notify,
    workspace: Mutex<PathBuf>,
}

impl std::fmt::Debug for Chat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Chat").field("taken", &self.taken).finish_non_exhaustive()
    }
}

impl Chat {
    pub(crate) fn set_known(&self, known: bool) {
        *self.known.lock().unwrap() = known;
    }

    /// Breaks down so often when it is used next.
    pub(crate) fn break_down(&self, times: u32) {
        *self.breakdowns.lock().unwrap() = times;
    }

    pub(crate) fn before_deliver(&self, look: impl FnMut() + Send + 'static) {
        *self.before_deliver.lock().unwrap() = Some(Box::new(look));
    }

    fn may_break_down(&self) {
        let is_broken = {
            let mut breakdowns = self.breakdowns.lock().unwrap();
            let is_broken = *breakdowns > 0;
            *breakdowns = breakdowns.saturating_sub(1);
            is_broken
        };
        assert!(!is_broken, "told to break down");
    }

    /// Takes a key as a committed tool result does.
    pub(crate) fn commit(&self, key: &str) {
        assert!(self.taken.lock().unwrap().insert(key.to_owned()), "{key} is taken");
    }

    /// As [`Self::commit`], unless the key is taken.
    pub(crate) fn try_commit(&self, key: &str) {
        self.taken.lock().unwrap().insert(key.to_owned());
    }

    /// All keys that something entered the conversation under.
    pub(crate) fn taken(&self) -> Vec<String> {
        self.taken.lock().unwrap().iter().cloned().collect()
    }

    pub(crate) fn delivered(&self) -> Vec<Delivery> {
        self.delivered.lock().unwrap().clone()
    }

    pub(crate) fn attempts(&self) -> u32 {
        *self.attempts.lock().unwrap()
    }

    /// Waits until `count` texts are in.
    #[track_caller]
    pub(crate) fn wait_for(&self, count: usize) -> impl Future<Output = Vec<Delivery>> {
        self.until(move |chat| (chat.delivered().len() >= count).then(|| chat.delivered()))
    }

    pub(crate) async fn until<T>(&self, look: impl Fn(&Self) -> Option<T>) -> T {
        let found = async {
            loop {
                let changed = self.changed.notified();
                if let Some(found) = look(self) {
                    return found;
                }
                changed.await;
            }
        };
        tokio::time::timeout(PATIENCE, found).await.expect("nothing was delivered in a week")
    }
}

#[async_trait]
impl ResultDelivery for Chat {
    async fn deliver(&self, delivery: &Delivery) -> Result<DeliveryEnd, DeliveryError> {
        *self.attempts.lock().unwrap() += 1;
        self.may_break_down();
        if let Some(look) = &mut *self.before_deliver.lock().unwrap() {
            look();
        }
        let known = *self.known.lock().unwrap();
        if known && self.taken.lock().unwrap().insert(delivery.key.clone()) {
            self.delivered.lock().unwrap().push(delivery.clone());
        }
        self.changed.notify_waiters();
        Ok(if known { DeliveryEnd::Delivered } else { DeliveryEnd::NotNow })
    }

    async fn told(
        &self,
        _: &WatchTarget,
        mut keys: Vec<String>,
    ) -> Result<Vec<String>, DeliveryError> {
        let taken = self.taken.lock().unwrap();
        keys.retain(|key| taken.contains(key));
        Ok(keys)
    }

    fn workspace_for(&self, _: &WatchTarget) -> Option<PathBuf> {
        Some(self.workspace.lock().unwrap().clone())
    }

    fn known_targets(&self) -> Vec<WatchTarget> {
        self.may_break_down();
        vec![WatchTarget::new("chat")]
    }
}

/// Everything together.
pub(crate) struct World {
    pub(crate) agent: Agent,
    pub(crate) store: Arc<MemoryWatchStore>,
    pub(crate) chat: Arc<Chat>,
    pub(crate) watches: WatchHandle,
    workspace: tempfile::TempDir,
    clock: Arc<PausedClock>,
    config: WatchConfig,
    process: (TaskTracker, CancellationToken),
    seed: u64,
}

impl World {
    pub(crate) fn new(agent: Agent) -> Self {
        Self::with(agent, |_| {})
    }

    pub(crate) fn with(agent: Agent, change: impl FnOnce(&mut WatchConfig)) -> Self {
        let workspace = tempfile::tempdir().unwrap();
        let mut config = WatchConfig::new(ClientConfig::default(), 1 << 20);
        config.jitter = 0.0;
        change(&mut config);
        let clock = Arc::new(PausedClock {
            start: Mutex::new("2026-11-30T12:00:00Z".parse().unwrap()),
            at: Instant::now(),
            asleep: Mutex::default(),
        });
        let chat = Arc::new(Chat::default());
        chat.set_known(true);
        *chat.workspace.lock().unwrap() = workspace.path().to_owned();
        let store = Arc::new(MemoryWatchStore::new());
        let process = (TaskTracker::new(), CancellationToken::new());
        let watches = start(&config, &agent, &store, &chat, &clock, &process, 1);
        let world =
            Self { agent, store, chat, watches, workspace, clock, config, process, seed: 1 };
        world.write_agents(
            r#"[{"name": "travel-bot", "url": "http://travel.example/", "key": "k_secret_0123"}]"#,
        );
        world
    }

    /// Changes what the next process is told.
    pub(crate) fn configure(&mut self, change: impl FnOnce(&mut WatchConfig)) {
        change(&mut self.config);
    }

    /// Ends the process without a goodbye and starts another on the same store.
    pub(crate) async fn crash(&mut self) {
        self.stop_hard().await;
        self.restart().await;
    }

    /// Ends the process without a goodbye: nothing that runs goes on.
    pub(crate) async fn stop_hard(&mut self) {
        // The store fails from here on, as it would for a process that is gone.
        self.store.set_failing(true);
        self.process.1.cancel();
        self.process.0.close();
        self.process.0.wait().await;
        self.store.set_failing(false);
    }

    /// Sends something, and ends the process without a goodbye before there is an answer.
    pub(crate) async fn lose_in_flight(&mut self, order: SendOrder) {
        let sending = self.watches.send(order, Duration::from_mins(1), CancellationToken::new());
        assert!(tokio::time::timeout(Duration::from_secs(5), sending).await.is_err());
        self.stop_hard().await;
    }

    pub(crate) async fn restart(&mut self) {
        self.start_without_restore();
        self.watches.restore().await;
    }

    pub(crate) fn start_without_restore(&mut self) {
        self.process = (TaskTracker::new(), CancellationToken::new());
        self.seed += 1;
        self.watches = start(
            &self.config,
            &self.agent,
            &self.store,
            &self.chat,
            &self.clock,
            &self.process,
            self.seed,
        );
    }

    /// Begins to end the process in good order when it is cancelled.
    pub(crate) fn ending(&self) -> CancellationToken {
        self.process.1.clone()
    }

    /// Leaves a send at once: its caller hears that it goes on its way.
    pub(crate) async fn leave(&self, order: SendOrder) {
        let cancel = CancellationToken::new();
        cancel.cancel();
        let end = self.watches.send(order, Duration::from_mins(1), cancel).await;
        assert!(matches!(end, Ok(SendEnd::Left)), "{end:?}");
    }

    /// Ends the process in good order.
    pub(crate) async fn shut_down(&mut self) {
        self.process.1.cancel();
        self.process.0.close();
        tokio::time::timeout(PATIENCE, self.process.0.wait()).await.unwrap();
    }

    pub(crate) fn write_agents(&self, text: &str) {
        let folder = self.workspace.path().join(".volcanic/a2a");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("agents.json"), text).unwrap();
    }

    pub(crate) fn agents(&self) -> String {
        std::fs::read_to_string(self.workspace.path().join(".volcanic/a2a/agents.json")).unwrap()
    }

    /// Moves the workspace elsewhere, where the next process finds it.
    pub(crate) fn move_workspace(&mut self) {
        let elsewhere = tempfile::tempdir().unwrap();
        std::fs::rename(self.workspace.path(), elsewhere.path()).unwrap();
        *self.chat.workspace.lock().unwrap() = elsewhere.path().to_owned();
        self.workspace = elsewhere;
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.workspace.path().to_owned()
    }

    pub(crate) fn pending(&self) -> Option<serde_json::Value> {
        let bytes = std::fs::read(self.workspace.path().join(".volcanic/a2a/pending.json")).ok()?;
        Some(serde_json::from_slice(&bytes).unwrap())
    }

    pub(crate) fn order(&self, text: &str) -> SendOrder {
        SendOrder {
            target: WatchTarget::new("chat"),
            workspace: self.workspace(),
            agent: "travel-bot".to_owned(),
            text: text.to_owned(),
            parts: Vec::new(),
            context_id: None,
            task_id: None,
            hops: 0,
            source_ref: Some("m7".to_owned()),
            unattended: None,
        }
    }

    pub(crate) async fn send(&self, order: SendOrder, wait: u64) -> Result<SendEnd, SendError> {
        let sending = self.watches.send(order, Duration::from_secs(wait), CancellationToken::new());
        tokio::time::timeout(PATIENCE, sending).await.unwrap()
    }

    /// Sends something that goes on after the wait.
    #[track_caller]
    pub(crate) fn hand_over(&self) -> impl Future<Output = TaskId> {
        let order = self.order("plan a trip");
        async move {
            match self.send(order, 0).await {
                Ok(SendEnd::HandedOver { task_id, .. }) => task_id,
                other => panic!("{other:?}"),
            }
        }
    }

    pub(crate) fn query(&self, task_id: &str) -> TaskQuery {
        TaskQuery {
            target: WatchTarget::new("chat"),
            workspace: self.workspace(),
            agent: "travel-bot".to_owned(),
            task_id: task_id.into(),
        }
    }

    /// The states of all kept watches.
    pub(crate) fn states(&self) -> Vec<WatchState> {
        self.store.all_watches().iter().map(|watch| watch.state).collect()
    }

    /// Lets time pass until the kept watches have these states.
    pub(crate) async fn reach(&self, states: &[WatchState]) {
        let reached = async {
            while self.states() != states {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        let end = tokio::time::timeout(PATIENCE, reached).await;
        assert!(end.is_ok(), "{:?} instead of {states:?}", self.states());
    }

    /// Lets time pass until somebody holds a stream.
    pub(crate) async fn reach_stream(&self) {
        let end = tokio::time::timeout(PATIENCE, self.agent.streamed()).await;
        assert!(end.is_ok(), "no stream was opened; asked were {:?}", self.agent.asked());
    }

    /// Waits until every watch has ended.
    pub(crate) async fn reach_ends(&self) {
        let reached = async {
            while self.states().iter().any(|state| *state != WatchState::Done) {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        let end = tokio::time::timeout(PATIENCE, reached).await;
        assert!(end.is_ok(), "{:?} have not all ended", self.states());
    }

    /// Lets the machine sleep.
    pub(crate) fn sleep(&self, seconds: u64) {
        *self.clock.asleep.lock().unwrap() += Duration::from_secs(seconds);
    }

    /// Sets the wall clock ahead.
    pub(crate) fn set_ahead(&self, seconds: u64) {
        *self.clock.start.lock().unwrap() += Duration::from_secs(seconds);
    }

    /// Sets the wall clock back.
    pub(crate) fn set_back(&self, seconds: u64) {
        *self.clock.start.lock().unwrap() -= Duration::from_secs(seconds);
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Lets time pass.
    pub(crate) async fn pass(&self, seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }
}

fn start(
    config: &WatchConfig,
    agent: &Agent,
    store: &Arc<MemoryWatchStore>,
    chat: &Arc<Chat>,
    clock: &Arc<PausedClock>,
    process: &(TaskTracker, CancellationToken),
    seed: u64,
) -> WatchHandle {
    let deps = WatchDeps {
        store: Arc::clone(store) as _,
        transport: Arc::new(InMemory::new(agent.router())),
        keys: plain_keys(),
        clock: Arc::clone(clock) as _,
        chance: Arc::new(Chance::seeded(seed)),
        delivery: Arc::clone(chat) as _,
    };
    spawn(config.clone(), deps, &process.0, process.1.clone())
}
