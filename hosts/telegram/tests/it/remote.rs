//! A remote agent in the test process, which outlives the bots that call it.

use std::sync::Arc;

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use volcanic_a2a_server::{
    CallerAuth, Journal, JournalEntry, MemoryTasks, OpenAccess, PushConfig, ScriptRules,
    ScriptedAgent, ServerConfig, ServerDeps, StaticKeys, TaskStore, router, serve,
};
use volcanic_base::{Chance, Secret, SystemClock};
use volcanic_net::{NetClient, NetConfig};

use crate::bot::LIMIT;

/// The running agent. Its built-in rules: `echo`, `report`, `book`, `slow 5s …`, `fail`.
pub(crate) struct Remote {
    url: String,
    journal: Arc<Journal>,
    tasks: Arc<MemoryTasks>,
    stop: CancellationToken,
}

impl Remote {
    pub(crate) async fn start() -> Self {
        Self::start_with(Arc::new(OpenAccess::loopback())).await
    }

    /// One that wants `key`.
    pub(crate) async fn start_with_key(key: &str) -> Self {
        Self::start_with(Arc::new(StaticKeys::new([("bot".to_owned(), Secret::new(key))]))).await
    }

    async fn start_with(auth: Arc<dyn CallerAuth>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/", listener.local_addr().expect("an address"));
        let journal = Arc::new(Journal::in_memory());
        let tasks = Arc::new(MemoryTasks::default());
        let clock = Arc::new(SystemClock);
        let agent =
            ScriptedAgent::new(ScriptRules::built_in(), Arc::clone(&journal), clock.clone());
        let deps = ServerDeps {
            executor: Arc::new(agent),
            auth,
            store: tasks.clone(),
            card: Arc::new(ScriptedAgent::card()),
            clock,
            chance: Arc::new(Chance::from_os()),
            push: Some(Arc::new(NetClient::new(NetConfig::default()).expect("a client"))),
        };
        let config = ServerConfig {
            push: PushConfig { allow_http: true, ..PushConfig::default() },
            ..ServerConfig::default()
        };
        let (tracker, stop) = (TaskTracker::new(), CancellationToken::new());
        let app = router(config, deps, &tracker, stop.clone());
        tracker.spawn(serve(listener, app, stop.clone()));
        Self { url, journal, tasks, stop }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The messages it received.
    pub(crate) fn received(&self) -> Vec<JournalEntry> {
        self.journal.entries()
    }

    /// Waits until all its tasks have ended.
    pub(crate) async fn finished(&self) {
        let ended = async {
            loop {
                let tasks = self.tasks.summaries().await.expect("tasks");
                if !tasks.is_empty() && tasks.iter().all(|task| task.state.is_terminal()) {
                    return;
                }
                // There is no event to wait for: the store is asked until it says so.
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(LIMIT, ended).await.expect("the remote's tasks end");
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
