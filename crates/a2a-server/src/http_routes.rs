//! The routes of a server: its card, and JSON-RPC.

use std::{fmt, sync::Arc};

use axum::{
    Router,
    routing::{get, post},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use volcanic_a2a_types::AGENT_CARD_PATH;
use volcanic_base::{Chance, Clock};
use volcanic_net::Transport;

use crate::{
    caller::CallerAuth,
    card::{self, CardSource},
    config::ServerConfig,
    executor::Executor,
    operations::{OperationDeps, Operations},
    rpc,
    store::TaskStore,
};

/// Where JSON-RPC is spoken, below the base URL.
pub const RPC_PATH: &str = "/a2a";

/// What a server needs from its host.
#[derive(Debug, Clone)]
pub struct ServerDeps {
    /// Does the work.
    pub executor: Arc<dyn Executor>,
    /// Knows the callers.
    pub auth: Arc<dyn CallerAuth>,
    /// Keeps the tasks.
    pub store: Arc<dyn TaskStore>,
    /// Says what the agent is.
    pub card: Arc<dyn CardSource>,
    /// Tells the time of statuses.
    pub clock: Arc<dyn Clock>,
    /// Makes ids.
    pub chance: Arc<Chance>,
    /// Calls webhooks; `None` = no pushes. It decides which addresses may be reached.
    pub push: Option<Arc<dyn Transport>>,
}

/// What the routes work with.
pub(crate) struct Served {
    pub(crate) config: Arc<ServerConfig>,
    pub(crate) operations: Operations,
    pub(crate) auth: Arc<dyn CallerAuth>,
    pub(crate) card: Arc<dyn CardSource>,
}

impl fmt::Debug for Served {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Served").finish_non_exhaustive()
    }
}

/// Builds the routes of an agent: `GET /.well-known/agent-card.json` and `POST /a2a`.
///
/// Turns and pushes run on `tracker`; after `cancel` streams end and turns are told to stop. Join the tracker to see
/// the last of them end.
pub fn router(
    config: ServerConfig,
    deps: ServerDeps,
    tracker: &TaskTracker,
    cancel: CancellationToken,
) -> Router {
    let config = Arc::new(config);
    let ServerDeps { executor, auth, store, card, clock, chance, push } = deps;
    let core = OperationDeps { executor, store, clock, chance, push };
    let operations = Operations::spawn(Arc::clone(&config), core, tracker, cancel);
    let served = Arc::new(Served { config, operations, auth, card });
    Router::new()
        .route(AGENT_CARD_PATH, get(card::handle))
        .route(RPC_PATH, post(rpc::handle))
        .with_state(served)
}
