//! What every job of the registry works with, and its connections to agents.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use volcanic_a2a_client::{
    AgentEntry, AgentsFile, AgentsFileError, ClientError, KeyResolver, RemoteAgent, read_agents,
};
use volcanic_base::{Chance, Clock};
use volcanic_net::Transport;

use crate::config::WatchConfig;
use crate::delivery::ResultDelivery;
use crate::order::AgentError;
use crate::store::WatchStore;

/// What the registry is given.
#[derive(Clone)]
pub struct WatchDeps {
    /// Keeps sends and watches.
    pub store: Arc<dyn WatchStore>,
    /// Reaches the agents.
    pub transport: Arc<dyn Transport>,
    /// Resolves the `key` of an agent's entry.
    pub keys: KeyResolver,
    /// Reads the wall clock.
    pub clock: Arc<dyn Clock>,
    /// Makes ids, tokens and jitter.
    pub chance: Arc<Chance>,
    /// Puts outcomes into conversations.
    pub delivery: Arc<dyn ResultDelivery>,
}

impl std::fmt::Debug for WatchDeps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WatchDeps").field("store", &self.store).finish_non_exhaustive()
    }
}

/// Connections are dropped all at once when there are more: only an edited file makes them many.
const MAX_CONNECTIONS: usize = 1024;

pub(super) struct Context {
    pub(super) config: WatchConfig,
    pub(super) deps: WatchDeps,
    /// Cancelled at shutdown: jobs that may be repeated end at once.
    pub(super) stop: CancellationToken,
    /// Limits the reads of watches; callers' own calls do not queue behind them.
    pub(super) reads: Semaphore,
    connections: Mutex<HashMap<(PathBuf, String), (AgentEntry, RemoteAgent)>>,
}

impl Context {
    pub(super) fn new(config: WatchConfig, deps: WatchDeps, stop: CancellationToken) -> Self {
        let reads = Semaphore::new(config.max_reads);
        Self { config, deps, stop, reads, connections: Mutex::default() }
    }

    /// The workspace's agents as the file has them now.
    pub(super) async fn file(&self, workspace: &Path) -> Result<AgentsFile, AgentsFileError> {
        let workspace = workspace.to_owned();
        match tokio::task::spawn_blocking(move || read_agents(&workspace)).await {
            Ok(read) => read,
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }

    /// The agent's entry as the file has it now.
    pub(super) async fn entry(
        &self,
        workspace: &Path,
        agent: &str,
    ) -> Result<AgentEntry, AgentError> {
        let file = self.file(workspace).await.map_err(AgentError::File)?;
        if let Some(entry) = file.agent(agent) {
            return Ok(entry.clone());
        }
        let agent = agent.to_owned();
        Err(match file.skipped_agent(&agent) {
            Some(reason) => AgentError::Skipped { reason: reason.to_owned(), agent },
            None => AgentError::Unknown {
                known: file.agents.iter().map(|entry| entry.name.as_str().to_owned()).collect(),
                agent,
            },
        })
    }

    /// A connection to the agent, the kept one while its entry is the same.
    pub(super) async fn connect(
        &self,
        workspace: &Path,
        entry: &AgentEntry,
    ) -> Result<RemoteAgent, ClientError> {
        let name = (workspace.to_owned(), entry.name.as_str().to_owned());
        if let Some((kept, remote)) = self.connections().get(&name)
            && kept == entry
        {
            return Ok(remote.clone());
        }
        let remote = RemoteAgent::connect(
            entry,
            Arc::clone(&self.deps.transport),
            Arc::clone(&self.deps.keys),
            &self.config.client,
        )
        .await?;
        let mut connections = self.connections();
        if connections.len() >= MAX_CONNECTIONS {
            connections.clear();
        }
        connections.insert(name, (entry.clone(), remote.clone()));
        Ok(remote)
    }

    /// The agent's connection by name, through its entry.
    pub(super) async fn remote(
        &self,
        workspace: &Path,
        agent: &str,
    ) -> Result<RemoteAgent, AgentError> {
        let entry = self.entry(workspace, agent).await?;
        self.connect(workspace, &entry).await.map_err(AgentError::Client)
    }

    /// Drops a connection after a failure: card or key may have changed.
    pub(super) fn forget(&self, workspace: &Path, agent: &str) {
        self.connections().remove(&(workspace.to_owned(), agent.to_owned()));
    }

    fn connections(
        &self,
    ) -> std::sync::MutexGuard<'_, HashMap<(PathBuf, String), (AgentEntry, RemoteAgent)>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
