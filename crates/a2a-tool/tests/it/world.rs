//! The tool of one conversation with everything around it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use volcanic_a2a_client::{ClientConfig, plain_keys};
use volcanic_a2a_tool::{A2aTool, A2aToolConfig, SessionDelivery};
use volcanic_a2a_watch::{MemoryWatchStore, WatchConfig, WatchDeps, WatchHandle, spawn};
use volcanic_agent_core::{
    MemoryStore, Origin, PromptKey, SessionHandle, SessionStore as _, SourceRef, TargetId,
    Tool as _, ToolContext, ToolOutput,
};
use volcanic_base::{Chance, ManualClock};
use volcanic_net::InMemory;

use crate::agent::{Agent, KEY};

pub(crate) struct World {
    pub(crate) agent: Agent,
    pub(crate) tool: Arc<A2aTool>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) session: Arc<OnceLock<SessionHandle>>,
    pub(crate) watches: WatchHandle,
    pub(crate) store: MemoryStore,
    pub(crate) records: Arc<MemoryWatchStore>,
    pub(crate) woken: Arc<Mutex<Vec<TargetId>>>,
    workspace: tempfile::TempDir,
    pub(crate) tracker: TaskTracker,
}

pub(crate) fn target() -> TargetId {
    TargetId::new("111")
}

impl World {
    pub(crate) fn new() -> Self {
        let workspace = tempfile::tempdir().unwrap();
        let agent = Agent::default();
        let clock = Arc::new(ManualClock::at("2026-11-30T12:00:00Z".parse().unwrap()));
        let store = MemoryStore::new(Arc::clone(&clock) as _);
        let records = Arc::new(MemoryWatchStore::new());
        let woken = Arc::new(Mutex::new(Vec::new()));
        let session = Arc::new(OnceLock::<SessionHandle>::new());
        let (note, wake) = (Arc::clone(&woken), Arc::clone(&session));
        let delivery = SessionDelivery::new(
            Arc::new(store.clone()),
            [(target(), workspace.path().to_owned())],
            Arc::new(move |target| {
                note.lock().unwrap().push(target.clone());
                if let Some(session) = wake.get() {
                    session.wake();
                }
            }),
        );
        let deps = WatchDeps {
            store: Arc::clone(&records) as _,
            transport: Arc::new(InMemory::new(agent.router())),
            keys: plain_keys(),
            clock: Arc::clone(&clock) as _,
            chance: Arc::new(Chance::seeded(1)),
            delivery: Arc::new(delivery),
        };
        let tracker = TaskTracker::new();
        let watches = spawn(
            WatchConfig::new(ClientConfig::default(), 1 << 20),
            deps,
            &tracker,
            CancellationToken::new(),
        );
        let config = A2aToolConfig::new(workspace.path().to_owned());
        let tool = Arc::new(A2aTool::new(config, watches.clone()));
        let world = Self {
            agent,
            tool,
            clock,
            session,
            watches,
            store,
            records,
            woken,
            workspace,
            tracker,
        };
        world.write_agents(&format!(
            r#"[{{"name": "travel-bot", "url": "http://travel.example/?secret=1", "key": "{KEY}"}}]"#
        ));
        world
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.workspace.path().to_owned()
    }

    pub(crate) fn write_agents(&self, text: &str) {
        let folder = self.workspace.path().join(".volcanic/a2a");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("agents.json"), text).unwrap();
    }

    pub(crate) async fn call(&self, arguments: Value) -> ToolOutput {
        self.call_from(Origin::Owner, arguments).await
    }

    pub(crate) async fn call_from(&self, origin: Origin, arguments: Value) -> ToolOutput {
        self.call_after(origin, "cli:1", arguments).await
    }

    /// A call of the owner's run, which is stopped after some time.
    pub(crate) async fn call_stopped_after(&self, time: Duration, arguments: Value) -> ToolOutput {
        let context = context(Origin::Owner, "cli:1");
        let cancel = context.cancel.clone();
        let stop = async {
            tokio::time::sleep(time).await;
            cancel.cancel();
        };
        tokio::join!(self.tool.call(arguments, context), stop).0
    }

    /// A call when `owner_word` is what the owner wrote last.
    pub(crate) async fn call_after(
        &self,
        origin: Origin,
        owner_word: &str,
        arguments: Value,
    ) -> ToolOutput {
        self.tool.call(arguments, context(origin, owner_word)).await
    }

    /// What waits for the model, as texts.
    pub(crate) async fn waiting(&self) -> Vec<String> {
        let waiting = self.store.waiting(&target()).await.unwrap();
        waiting.into_iter().map(|prompt| prompt.prompt.text).collect()
    }
}

fn context(origin: Origin, owner_word: &str) -> ToolContext {
    ToolContext {
        target: target(),
        call_id: "call".to_owned(),
        hops: 2,
        origin,
        source: Some(SourceRef::new("m7")),
        owner_word: PromptKey::new(owner_word),
        cancel: CancellationToken::new(),
    }
}
