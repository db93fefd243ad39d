//! The bot as a whole: what is started in which order, and how it ends.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use volcanic_a2a_server::{push_router, serve};
use volcanic_a2a_tool::{SessionDelivery, Wake};
use volcanic_a2a_watch::{WatchConfig, WatchDeps, WatchHandle};
use volcanic_agent_core::{Model, SessionStore, TargetId};
use volcanic_base::{Backoff, Chance, Clock, ConfinedDir, DirLock, SystemClock};
use volcanic_host::{
    BOT_STATE, BOT_WORKSPACES, ClientSettings, DATABASE, HostEnvironment, WatchPushes,
    agent_transport, build_model, key_resolver, open_listener, private_folder,
};
use volcanic_store::Store;

use crate::api::{ApiError, BotClient};
use crate::chats::{ChatDeps, ChatTokens, Chats, target_of};
use crate::command::MENU;
use crate::config::BotConfig;
use crate::held::{tell_held, tell_unwritable};
use crate::intake::Intake;
use crate::receive::{ReceiveEnd, ReceivePauses, Receiver};

/// How long a poll waits for updates. Shorter than what middle boxes cut.
const POLL: Duration = Duration::from_secs(30);
/// How long runs may go on after a stop was asked for. Longer ones are left for the next process.
const RUN_GRACE: Duration = Duration::from_secs(2);
/// How long sending may go on after that. Container engines kill after ten seconds in all.
const SEND_GRACE: Duration = Duration::from_secs(5);
/// How long the remaining tasks may take to end.
const END_GRACE: Duration = Duration::from_secs(2);
/// Pauses between attempts to reach Telegram at start.
const GREETING_PAUSES: [u64; 5] = [1, 2, 5, 15, 30];
/// Telegram's outage must not keep watches from being followed, so it ends no start. A token that is wrong does.
const TOKEN_REFUSED: &str = "Telegram does not accept the bot's token (Telegram__BotToken)";

/// Runs the bot until `stop`.
///
/// # Errors
/// When something it cannot work without fails, each with what it was and what to do.
pub async fn run_bot(
    config: BotConfig,
    environment: HostEnvironment,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let home = Home::open(&config)?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let chance = Arc::new(Chance::from_os());
    let model = build_model(&config.model, &config.openai)?;
    let api = BotClient::new(&config.token, &config.api_url, POLL)?;
    let listener = match &config.server {
        Some(server) => Some(open_listener(server.listen).await?),
        None => None,
    };
    let store = Store::open(&home.state.join(DATABASE), Arc::clone(&clock))?;
    let parts = Parts { config, environment, home, clock, chance, model, api, store };
    let Some(running) = parts.start(listener, &stop).await? else {
        return Ok(());
    };
    let ended = {
        let receiving = running.receive(&stop);
        tokio::pin!(receiving);
        tokio::select! {
            ended = &mut receiving => ended,
            // What waits for the lock of another process waits no longer.
            () = stop.cancelled() => {
                running.store.hurry();
                receiving.await
            }
        }
    };
    running.shut_down().await;
    ended
}

/// The folders, and the lock that makes this process their only user.
#[derive(Debug)]
struct Home {
    state: PathBuf,
    workspaces: BTreeMap<i64, PathBuf>,
    _lock: DirLock,
}

impl Home {
    fn open(config: &BotConfig) -> anyhow::Result<Self> {
        let state = config.home.join(BOT_STATE);
        make_folder(&state)?;
        let folder = ConfinedDir::open(&state)?;
        let lock =
            folder.try_lock().with_context(|| format!("failed to lock {}", state.display()))?;
        let Some(lock) = lock else {
            bail!(
                "another volcanic-telegram runs on {}; stop it, or set VOLCANIC_HOME to another folder",
                state.display()
            );
        };
        let mut workspaces = BTreeMap::new();
        for user in &config.allowed_users {
            let workspace = config.home.join(BOT_WORKSPACES).join(user.to_string());
            make_folder(&workspace)?;
            workspaces.insert(*user, workspace);
        }
        Ok(Self { state, workspaces, _lock: lock })
    }
}

fn make_folder(path: &Path) -> anyhow::Result<()> {
    private_folder(path)
        .with_context(|| format!("failed to make the folder {} (VOLCANIC_HOME)", path.display()))
}

/// What is there before anything runs.
struct Parts {
    config: BotConfig,
    environment: HostEnvironment,
    home: Home,
    clock: Arc<dyn Clock>,
    chance: Arc<Chance>,
    model: Arc<dyn Model>,
    api: BotClient,
    store: Store,
}

/// What runs.
struct Running {
    api: BotClient,
    store: Store,
    chance: Arc<Chance>,
    chats: Arc<Chats>,
    tokens: ChatTokens,
    /// Ends the watches and the listener.
    agents: CancellationToken,
    tracker: TaskTracker,
    _home: Home,
}

impl Parts {
    /// Starts everything; `None` when the stop came first.
    async fn start(
        self,
        listener: Option<tokio::net::TcpListener>,
        stop: &CancellationToken,
    ) -> anyhow::Result<Option<Running>> {
        let tracker = TaskTracker::new();
        let agents = CancellationToken::new();
        let tokens = ChatTokens {
            sessions: CancellationToken::new(),
            drain: CancellationToken::new(),
            stop: CancellationToken::new(),
        };
        // The watches deliver into sessions, and the sessions' tool uses the watches; the wake-up is tied last. What is
        // delivered before is found by the session itself, which looks when it begins.
        let opened = Arc::new(OnceLock::new());
        let watches = match self.config.client.clone() {
            Some(settings) => {
                let wake = wake_through(Arc::clone(&opened));
                Some((self.start_watches(&settings, wake, &tracker, &agents)?, settings))
            }
            None => None,
        };
        self.log_halves(watches.is_some());
        let people: Vec<i64> = self.home.workspaces.keys().copied().collect();
        let (api, end) = (self.api.clone(), agents.clone());
        tracker.spawn(tell_held(self.store.held(), api.clone(), people.clone(), end.clone()));
        tracker.spawn(tell_unwritable(self.store.unwritable(), api, people, end));
        if let Some(listener) = listener {
            let router = match &watches {
                Some((watches, _)) => push_router(Arc::new(WatchPushes::new(watches.clone()))),
                None => axum::Router::new(),
            };
            let cancel = agents.clone();
            tracker.spawn(async move {
                let end = serve(listener, router, cancel).await;
                tracing::info!(dropped = end.dropped, "listener closed");
            });
        }
        let deps = ChatDeps {
            store: self.store.clone(),
            api: self.api.clone(),
            model: self.model,
            clock: self.clock,
            chance: Arc::clone(&self.chance),
            watches: watches.clone(),
            time_zone: self.config.time_zone,
            shell_env: self.environment.shell,
            outputs: self.home.state.join("outputs"),
        };
        if let Some((watches, _)) = &watches {
            // Before the sessions: a run that goes on finds the watches of the tasks it knows. While they cannot be read
            // this takes as long as it takes.
            let restored = tokio::select! {
                biased;
                () = stop.cancelled() => false,
                () = watches.restore() => true,
            };
            if !restored {
                agents.cancel();
                end_tasks(&tracker).await;
                self.store.close().await;
                return Ok(None);
            }
        }
        let chats = Arc::new(Chats::open(self.home.workspaces.clone(), &deps, &tracker, &tokens)?);
        // The cell is set here and nowhere else, so it is empty.
        let _ = opened.set(Arc::clone(&chats));
        // What was delivered while they opened woke nobody, and may have come after a session's first look.
        for chat in chats.iter() {
            chat.session().wake();
        }
        let (api, store, chance) = (self.api, self.store, self.chance);
        Ok(Some(Running { api, store, chance, chats, tokens, agents, tracker, _home: self.home }))
    }

    fn start_watches(
        &self,
        settings: &ClientSettings,
        wake: Wake,
        tracker: &TaskTracker,
        cancel: &CancellationToken,
    ) -> anyhow::Result<WatchHandle> {
        let store: Arc<dyn SessionStore> = Arc::new(self.store.clone());
        let workspaces = self.home.workspaces.iter();
        let conversations =
            workspaces.map(|(chat, workspace)| (target_of(*chat), workspace.clone()));
        let config = WatchConfig {
            push_base: self.config.server.as_ref().and_then(|server| server.public_url.clone()),
            ..settings.watches(self.model.as_ref())
        };
        let deps = WatchDeps {
            store: Arc::new(self.store.clone()),
            transport: agent_transport(self.config.ca_file.as_deref())?,
            keys: key_resolver(
                self.environment.agent_keys.clone(),
                self.home.state.join("secrets"),
            ),
            clock: Arc::clone(&self.clock),
            chance: Arc::clone(&self.chance),
            delivery: Arc::new(SessionDelivery::new(store, conversations, wake)),
        };
        Ok(volcanic_a2a_watch::spawn(config, deps, tracker, cancel.clone()))
    }

    fn log_halves(&self, client: bool) {
        let public_url = self.config.server.as_ref().map(|server| server.public_url.as_ref());
        match (client, public_url) {
            (false, _) => tracing::info!("A2A client: off"),
            (true, Some(Some(url))) => tracing::info!(
                "A2A client: on, agents in each chat's .volcanic/a2a/agents.json, watches poll (or push at {url})"
            ),
            (true, _) => {
                tracing::info!(
                    "A2A client: on, agents in each chat's .volcanic/a2a/agents.json, watches poll"
                );
            }
        }
        if let Some(server) = &self.config.server {
            tracing::info!(address = %server.listen, "A2A server: on, takes pushes for watches");
        }
        for warning in self.config.warnings() {
            tracing::warn!("{warning}");
        }
    }
}

fn wake_through(opened: Arc<OnceLock<Arc<Chats>>>) -> Wake {
    Arc::new(move |target: &TargetId| {
        if let Some(chats) = opened.get() {
            chats.wake(target);
        }
    })
}

impl Running {
    /// Takes messages until `stop`.
    async fn receive(&self, stop: &CancellationToken) -> anyhow::Result<()> {
        if let Err(Greeting::TokenRefused) = self.greet(stop).await {
            bail!(TOKEN_REFUSED);
        }
        let receiver = Receiver {
            api: self.api.clone(),
            store: self.store.clone(),
            handler: Arc::new(Intake::new(self.store.clone(), Arc::clone(&self.chats))),
            chance: Arc::clone(&self.chance),
            pauses: ReceivePauses::default(),
        };
        match receiver.run(stop.clone()).await {
            ReceiveEnd::Stopped => Ok(()),
            ReceiveEnd::TokenRefused => bail!(TOKEN_REFUSED),
        }
    }

    /// Prepares the bot at Telegram, as often as it takes.
    async fn greet(&self, stop: &CancellationToken) -> Result<(), Greeting> {
        let mut backoff = Backoff::new(GREETING_PAUSES.map(Duration::from_secs).to_vec(), 0.1);
        let work = async {
            loop {
                match self.introduce().await {
                    Ok(name) => {
                        tracing::info!(bot = %name, chats = self.chats.iter().count(), "the bot takes messages");
                        return Ok(());
                    }
                    Err(ApiError::Token) => return Err(Greeting::TokenRefused),
                    Err(error) => tracing::warn!(%error, "Telegram is not ready for the bot"),
                }
                tokio::time::sleep(backoff.next(&self.chance)).await;
            }
        };
        tokio::select! {
            biased;
            () = stop.cancelled() => Ok(()),
            greeted = work => greeted,
        }
    }

    async fn introduce(&self) -> Result<String, ApiError> {
        let name = self.api.user_name().await?;
        // Neither is worth waiting for: without the first, polling says what is wrong; the second is a convenience.
        if let Err(error) = self.api.delete_webhook().await {
            tracing::warn!(%error, "a webhook of earlier times could not be taken back");
        }
        if let Err(error) = self.api.set_commands(&MENU).await {
            tracing::warn!(%error, "the menu could not be set");
        }
        Ok(name)
    }

    /// Ends everything in order: short runs may finish, the rest stays for the next process; then what is ready is sent.
    async fn shut_down(self) {
        tracing::info!("stopping");
        self.store.hurry();
        let idle = async {
            for chat in self.chats.iter() {
                chat.session().wait_idle().await;
            }
        };
        if tokio::time::timeout(RUN_GRACE, idle).await.is_err() {
            tracing::info!("runs that go on are left for the next start");
        }
        self.tokens.sessions.cancel();
        self.agents.cancel();
        self.tokens.drain.cancel();
        self.tracker.close();
        if tokio::time::timeout(SEND_GRACE, self.tracker.wait()).await.is_err() {
            tracing::warn!("messages that could not be sent are left for the next start");
            self.tokens.stop.cancel();
            end_tasks(&self.tracker).await;
        }
        self.store.close().await;
        tracing::info!("stopped");
    }
}

async fn end_tasks(tracker: &TaskTracker) {
    tracker.close();
    if tokio::time::timeout(END_GRACE, tracker.wait()).await.is_err() {
        tracing::warn!(tasks = tracker.len(), "some tasks did not end");
    }
}

/// Why there was no greeting.
enum Greeting {
    TokenRefused,
}
