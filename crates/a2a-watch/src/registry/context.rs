//! What every job of the registry works with, and its connections to agents.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared, WeakShared};
use jiff::Timestamp;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use volcanic_a2a_client::{
    AGENTS_FILE, AgentEntry, AgentsFile, AgentsFileError, ClientError, KeyResolver, RemoteAgent,
    read_agents,
};
use volcanic_a2a_types::MessageId;
use volcanic_base::{Chance, Clock, ConfinedDir, Secret};
use volcanic_net::Transport;

use super::clocks::WatchClock;
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

type Making = BoxFuture<'static, Result<RemoteAgent, ClientError>>;

/// A connection, or the making of one.
struct Connection {
    entry: AgentEntry,
    state: ConnectionState,
    /// A call failed: card or key may have changed.
    is_doubtful: bool,
}

enum ConnectionState {
    /// Only those who wait for it keep it: what nobody waited for any more stands where it was left, its time long over.
    Making(WeakShared<Making>),
    Made(RemoteAgent),
}

impl Connection {
    /// The agent, if it is connected to.
    fn made(&self) -> Option<&RemoteAgent> {
        match &self.state {
            ConnectionState::Made(remote) => Some(remote),
            ConnectionState::Making(_) => None,
        }
    }

    /// The agent, if it is connected to and can be used as it is.
    fn usable(&self) -> Option<&RemoteAgent> {
        self.made().filter(|remote| !self.is_doubtful && remote.is_card_fresh())
    }

    /// The making of it, if somebody waits for it.
    fn making(&self) -> Option<Shared<Making>> {
        match &self.state {
            ConnectionState::Made(_) => None,
            ConnectionState::Making(making) => making.upgrade(),
        }
    }
}

/// An agent that was connected to by the entry that still holds.
struct Known {
    remote: RemoteAgent,
    is_doubtful: bool,
}

/// Files of agents are forgotten all at once when there are more.
const MAX_FILES: usize = 1024;

/// A file that changed this short a time ago may change again without looking different.
const FILE_RESTS: Duration = Duration::from_secs(2);

/// What tells one version of a file from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileVersion {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl FileVersion {
    /// The version that is there now; `None` when there is nothing to tell it by.
    fn of_agents(workspace: &Path) -> Option<Self> {
        let metadata = ConfinedDir::open(workspace).ok()?.metadata(AGENTS_FILE).ok()?;
        Some(Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        })
    }

    fn is_at_rest(&self, now: Timestamp) -> bool {
        let since = Timestamp::from_second(self.modified.0.max(self.changed.0));
        since.is_ok_and(|since| now.duration_since(since).unsigned_abs() > FILE_RESTS)
    }
}

pub(super) struct Context {
    pub(super) config: WatchConfig,
    pub(super) deps: WatchDeps,
    /// What watches live by. The wall clock of `deps` is for what others look at.
    pub(super) clock: WatchClock,
    /// Cancelled at shutdown: jobs that may be repeated end at once.
    pub(super) stop: CancellationToken,
    /// Limits the cards that are fetched for watches; callers' own do not queue behind them.
    connects: Semaphore,
    /// Limits the push configs that are brought to an origin, or taken back, at once: after a start or an outage there may be
    /// as many as watches.
    registrations: Mutex<HashMap<String, Arc<Semaphore>>>,
    connections: Mutex<HashMap<(PathBuf, String), Connection>>,
    files: Mutex<HashMap<PathBuf, (FileVersion, AgentsFile)>>,
}

impl Context {
    pub(super) fn new(config: WatchConfig, deps: WatchDeps, stop: CancellationToken) -> Self {
        let connects = Semaphore::new(config.max_connects);
        let clock = WatchClock::new(Arc::clone(&deps.clock));
        let (registrations, connections, files) = Default::default();
        Self { config, deps, clock, stop, connects, registrations, connections, files }
    }

    /// The id of a new message, made as those of watches are.
    pub(super) fn new_message_id(&self) -> MessageId {
        self.deps.chance.uuid_at(self.deps.clock.now()).to_string().into()
    }

    /// What the next push config carries, when somebody listens for pushes.
    pub(super) fn push_token(&self) -> Option<Secret> {
        let listens = self.config.push_base.is_some();
        listens.then(|| Secret::new(self.deps.chance.token()))
    }

    /// Waits for the turn of a push config at its origin, as long as a call may take.
    pub(super) async fn registration_turn(&self, origin: &str) -> Option<OwnedSemaphorePermit> {
        let turns = {
            let mut all = self.registrations.lock().unwrap_or_else(PoisonError::into_inner);
            // Those that nobody uses.
            all.retain(|_, turns| Arc::strong_count(turns) > 1);
            let new = || Arc::new(Semaphore::new(self.config.calls_per_origin));
            Arc::clone(all.entry(origin.to_owned()).or_insert_with(new))
        };
        let turn = tokio::time::timeout(self.config.client.call_timeout, turns.acquire_owned());
        turn.await.ok()?.ok()
    }

    /// Waits before something that failed here is tried again; says `false` if the registry stopped first.
    pub(super) async fn may_retry(&self) -> bool {
        tokio::select! {
            biased;
            () = self.stop.cancelled() => false,
            () = tokio::time::sleep(self.config.store_retry) => true,
        }
    }

    /// The workspace's agents as the file has them now. It is parsed again when it changed.
    pub(super) async fn file(&self, workspace: &Path) -> Result<AgentsFile, AgentsFileError> {
        let workspace = workspace.to_owned();
        let known = self.files().get(&workspace).cloned();
        let (now, path) = (self.deps.clock.now(), workspace.clone());
        let (version, file) = blocking(move || {
            let version = FileVersion::of_agents(&path);
            match known {
                Some((seen, file)) if version == Some(seen) => Ok((None, file)),
                Some(_) | None => {
                    let file = read_agents(&path)?;
                    let version = version.filter(|version| version.is_at_rest(now));
                    // What was changed while it was read is read again.
                    let version = version.filter(|_| FileVersion::of_agents(&path) == version);
                    Ok((version, file))
                }
            }
        })
        .await?;
        if let Some(version) = version {
            let mut files = self.files();
            if files.len() >= MAX_FILES {
                files.clear();
            }
            files.insert(workspace, (version, file.clone()));
        }
        Ok(file)
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

    /// A connection to the agent, the kept one while its entry is the same. Whoever needs it while it is made waits for the
    /// same.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the making to the others.
    pub(super) async fn connect(
        &self,
        workspace: &Path,
        entry: &AgentEntry,
    ) -> Result<RemoteAgent, ClientError> {
        let name = (workspace.to_owned(), entry.name.as_str().to_owned());
        let making = {
            let mut connections = self.connections();
            let same = connections.get(&name).filter(|kept| kept.entry == *entry);
            if let Some(remote) = same.and_then(Connection::usable) {
                return Ok(remote.clone());
            }
            let making = same.and_then(Connection::making);
            let known = same.and_then(|kept| {
                let remote = kept.made()?.clone();
                Some(Known { remote, is_doubtful: kept.is_doubtful })
            });
            making.unwrap_or_else(|| {
                if connections.len() >= MAX_CONNECTIONS {
                    connections.clear();
                }
                let making = self.make(entry, known).boxed().shared();
                if let Some(weak) = making.downgrade() {
                    let state = ConnectionState::Making(weak);
                    let kept = Connection { entry: entry.clone(), state, is_doubtful: false };
                    connections.insert(name.clone(), kept);
                }
                making
            })
        };
        let made = making.clone().await;
        let mut connections = self.connections();
        let same =
            |kept: &&mut Connection| kept.making().is_some_and(|current| current.ptr_eq(&making));
        if let Some(kept) = connections.get_mut(&name).filter(same) {
            match &made {
                Ok(remote) => kept.state = ConnectionState::Made(remote.clone()),
                Err(_) => {
                    connections.remove(&name);
                }
            }
        }
        made
    }

    /// As [`Self::connect`], in its turn: a start with many agents must not reach out to all of them at once.
    pub(super) async fn connect_for_watch(
        &self,
        workspace: &Path,
        entry: &AgentEntry,
    ) -> Result<RemoteAgent, ClientError> {
        let name = (workspace.to_owned(), entry.name.as_str().to_owned());
        let ready = {
            let connections = self.connections();
            let same = connections.get(&name).filter(|kept| kept.entry == *entry);
            same.and_then(Connection::usable).cloned()
        };
        if let Some(ready) = ready {
            return Ok(ready);
        }
        let _permit = self.connects.acquire().await;
        self.connect(workspace, entry).await
    }

    /// Connects. An agent that is known is only asked whether its card has changed; if it cannot say so just now, a card
    /// that is merely old is used on, as the calls themselves tell whether it still holds.
    fn make(
        &self,
        entry: &AgentEntry,
        known: Option<Known>,
    ) -> impl Future<Output = Result<RemoteAgent, ClientError>> + Send + use<> {
        let (entry, config) = (entry.clone(), self.config.client.clone());
        let (transport, keys) = (Arc::clone(&self.deps.transport), Arc::clone(&self.deps.keys));
        async move {
            let Some(Known { remote, is_doubtful }) = known else {
                return RemoteAgent::connect(&entry, transport, keys, &config).await;
            };
            match remote.reconnect(&entry, transport, keys, &config).await {
                Err(error) if error.is_transient() && !is_doubtful => {
                    tracing::debug!(agent.name = %entry.name, %error, "no newer card, the old one stays");
                    Ok(remote)
                }
                made => made,
            }
        }
    }

    /// Asks for the card again before the next call, after a failure: card or key may have changed.
    pub(super) fn forget(&self, workspace: &Path, agent: &str) {
        let mut connections = self.connections();
        let name = (workspace.to_owned(), agent.to_owned());
        match connections.get_mut(&name) {
            Some(kept) if kept.made().is_some() => kept.is_doubtful = true,
            Some(_) | None => {
                connections.remove(&name);
            }
        }
    }

    fn files(&self) -> MutexGuard<'_, HashMap<PathBuf, (FileVersion, AgentsFile)>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn connections(&self) -> MutexGuard<'_, HashMap<(PathBuf, String), Connection>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Does work that blocks, apart from what runs beside it. A panic of the work is one of the caller.
pub(super) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await.map_err(tokio::task::JoinError::try_into_panic) {
        Ok(done) => done,
        Err(Ok(panic)) => std::panic::resume_unwind(panic),
        // It never began: the runtime is ending, and with it whoever waits here.
        Err(Err(_)) => std::future::pending().await,
    }
}

/// Checks that an agent's entry points to where a task runs: nobody else is told of the task.
pub(super) fn stays_at(entry: &AgentEntry, origin: &str) -> Result<(), AgentError> {
    if entry.origin() == origin {
        return Ok(());
    }
    Err(AgentError::Moved { agent: entry.name.to_string(), origin: origin.to_owned() })
}
