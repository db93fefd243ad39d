//! A remote agent in this process that wants a key, or speaks in ways that `volcanic serve` does not.

use std::sync::Arc;

use axum::Router;
use tokio::{net::TcpListener, task::JoinSet};
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};
use volcanic_a2a_server::{
    Journal, MemoryTasks, ScriptRules, ScriptedAgent, ServerConfig, ServerDeps, StaticKeys, router,
};
use volcanic_base::{Chance, Secret, SystemClock};

/// Serves as long as it is kept.
pub(crate) struct Served {
    pub(crate) url: String,
    pub(crate) address: std::net::SocketAddr,
    _tasks: JoinSet<()>,
    _stop: DropGuard,
}

/// The scripted agent behind a key.
pub(crate) async fn with_key(key: &str) -> Served {
    let clock = Arc::new(SystemClock);
    let journal = Arc::new(Journal::in_memory());
    let deps = ServerDeps {
        executor: Arc::new(ScriptedAgent::new(ScriptRules::built_in(), journal, clock.clone())),
        auth: Arc::new(StaticKeys::new([("tester".to_owned(), Secret::new(key))])),
        store: Arc::new(MemoryTasks::default()),
        card: Arc::new(ScriptedAgent::card()),
        clock,
        chance: Arc::new(Chance::from_os()),
        push: None,
    };
    let stop = CancellationToken::new();
    let routes = router(ServerConfig::default(), deps, &TaskTracker::new(), stop.clone());
    serve(routes, stop).await
}

/// Takes every connection and never answers.
pub(crate) async fn silent() -> Served {
    let silent = || std::future::pending::<()>();
    serve(Router::new().fallback(silent), CancellationToken::new()).await
}

/// Serves any routes on a free port.
pub(crate) async fn serve(routes: Router, stop: CancellationToken) -> Served {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let _ = axum::serve(listener, routes).await;
    });
    Served { url: format!("http://{address}/"), address, _tasks: tasks, _stop: stop.drop_guard() }
}
