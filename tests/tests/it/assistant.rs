//! An assistant wired as hosts wire it, in a runtime of its own, so that it can be killed like a process.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use jiff::tz::TimeZone;
use serde_json::Value;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use url::Url;
use volcanic_a2a_client::{ClientConfig, plain_keys};
use volcanic_a2a_server::{PushReceiver, push_router, serve};
use volcanic_a2a_tool::{A2aTool, A2aToolConfig, SessionDelivery};
use volcanic_a2a_watch::{WatchConfig, WatchDeps, WatchHandle, WatchState, WatchStore as _};
use volcanic_agent_core::{
    Accepted, Block, EntryBody, NewPrompt, Origin, PlainAnswers, PromptKey, RetryConfig,
    ScriptedModel, ScriptedReply, ScriptedStep, SessionConfig, SessionDeps, SessionHandle,
    SessionStore as _, SourceRef, TargetId,
};
use volcanic_base::{Chance, ManualClock, SystemClock};
use volcanic_net::{NetClient, NetConfig, RootCertificates, Transport};
use volcanic_store::Store;

use crate::mortal::{End, MortalStore};
use crate::remote::{Remote, within};

/// What stands before every prompt: the store's clock stands still.
const HEADER: &str = "[2026-10-08 14:05 +02:00 Europe/Berlin, Thu]\n";

/// What survives a process: its state and its workspace.
#[derive(Clone)]
pub(crate) struct Home {
    root: PathBuf,
    /// Goes away with it, unless somebody else made it.
    _folder: Option<Arc<TempDir>>,
}

/// How an assistant is started.
#[derive(Clone)]
pub(crate) struct Setup {
    /// How long `send` waits.
    pub(crate) wait: Duration,
    pub(crate) end: Option<End>,
    /// Whether a push route is served.
    pub(crate) pushes: bool,
    /// Whether the conversation may be delivered into.
    pub(crate) known: bool,
    /// Whether a session of the conversation is open.
    pub(crate) session: bool,
    /// Reaches the agents; without it, the network does.
    pub(crate) transport: Option<Arc<dyn Transport>>,
    /// When a request to the model is tried again.
    pub(crate) retry: RetryConfig,
    pub(crate) change: fn(&mut WatchConfig),
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            wait: Duration::from_secs(10),
            end: None,
            pushes: false,
            known: true,
            session: true,
            transport: None,
            retry: RetryConfig::default(),
            change: |_| {},
        }
    }
}

impl Setup {
    /// Hands every task over at once.
    pub(crate) fn at_once() -> Self {
        Self { wait: Duration::ZERO, ..Self::default() }
    }
}

/// A running assistant.
pub(crate) struct Assistant {
    runtime: Option<Runtime>,
    pub(crate) store: MortalStore,
    pub(crate) watches: WatchHandle,
    pub(crate) model: ScriptedModel,
    session: Option<SessionHandle>,
    process: (TaskTracker, CancellationToken),
    /// Kept for as long as it runs.
    _home: Home,
    /// Where pushes arrive.
    pub(crate) push_base: Option<Url>,
}

impl Home {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let home = Self { root, _folder: Some(Arc::new(folder)) };
        std::fs::create_dir_all(home.workspace().join(".volcanic/a2a")).unwrap();
        // Reading the system's roots would be most of what a short life costs.
        let root = rcgen::generate_simple_self_signed(["nobody.example".to_owned()]).unwrap();
        std::fs::write(home.roots(), root.cert.pem()).unwrap();
        home
    }

    /// A home that stands already, and stays.
    pub(crate) fn at(root: PathBuf) -> Self {
        Self { root, _folder: None }
    }

    /// A home whose `bot` is this agent.
    pub(crate) fn with(remote: &Remote) -> Self {
        let home = Self::new();
        home.write_agents(&format!(r#"[{{"name": "bot", "url": "{}"}}]"#, remote.url()));
        home
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.root.join("workspace")
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.root.join("state/state.db")
    }

    fn roots(&self) -> PathBuf {
        self.root.join("roots.pem")
    }

    pub(crate) fn write_agents(&self, text: &str) {
        std::fs::write(self.workspace().join(".volcanic/a2a/agents.json"), text).unwrap();
    }

    /// Starts an assistant that answers by steps.
    pub(crate) async fn start(
        &self,
        setup: Setup,
        steps: impl IntoIterator<Item = impl Into<ScriptedStep>>,
    ) -> Assistant {
        self.start_with(setup, ScriptedModel::steps(steps)).await
    }

    pub(crate) async fn start_with(&self, setup: Setup, model: ScriptedModel) -> Assistant {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let started = runtime.spawn(start(self.clone(), setup, model));
        let mut assistant = within(started).await.unwrap();
        assistant.runtime = Some(runtime);
        assistant
    }
}

pub(crate) fn target() -> TargetId {
    TargetId::new("111")
}

async fn start(home: Home, setup: Setup, model: ScriptedModel) -> Assistant {
    let database = home.database();
    let workspace = home.workspace();
    let clock = ManualClock::at("2026-10-08T12:05:00Z".parse().unwrap());
    let store = MortalStore::new(Store::open(&database, Arc::new(clock)).unwrap(), setup.end);
    let (tracker, stop) = (TaskTracker::new(), CancellationToken::new());
    let chance = Arc::new(Chance::from_os());
    let session: Arc<OnceLock<SessionHandle>> = Arc::default();
    let awake = Arc::clone(&session);
    let wake = Arc::new(move |_: &TargetId| {
        if let Some(session) = awake.get() {
            session.wake();
        }
    });
    let known = setup.known.then(|| (target(), workspace.clone()));
    let listener =
        if setup.pushes { Some(TcpListener::bind("127.0.0.1:0").await.unwrap()) } else { None };
    let push_base = listener
        .as_ref()
        .map(|listener| Url::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap());
    let mut config = WatchConfig {
        jitter: 0.0,
        push_base: push_base.clone(),
        ..WatchConfig::new(ClientConfig::default(), 1 << 20).scaled(0.01)
    };
    (setup.change)(&mut config);
    let transport = setup.transport.unwrap_or_else(|| {
        let roots = RootCertificates::PemFile(home.roots());
        Arc::new(NetClient::new(NetConfig { roots, ..NetConfig::default() }).unwrap())
    });
    let deps = WatchDeps {
        store: Arc::new(store.clone()),
        transport,
        keys: plain_keys(),
        clock: Arc::new(SystemClock),
        chance: Arc::clone(&chance),
        delivery: Arc::new(SessionDelivery::new(Arc::new(store.clone()), known, wake)),
    };
    let watches = volcanic_a2a_watch::spawn(config, deps, &tracker, stop.child_token());
    if let Some(listener) = listener {
        let routes = push_router(Arc::new(Pushes(watches.clone())));
        tracker.spawn(serve(listener, routes, stop.child_token()));
    }
    let tool = A2aToolConfig { wait: setup.wait, ..A2aToolConfig::new(workspace) };
    // Before the session: a run that goes on finds the watches of the tasks it knows.
    watches.restore().await;
    if setup.session {
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        let deps = SessionDeps {
            model: Arc::new(model.clone()),
            tools: vec![Arc::new(A2aTool::new(tool, watches.clone()))],
            store: Arc::new(store.clone()),
            clock: Arc::new(SystemClock),
            chance,
        };
        let config = SessionConfig {
            retry: setup.retry,
            ..SessionConfig::new("", zone, Arc::new(PlainAnswers))
        };
        let handle =
            volcanic_agent_core::spawn(target(), config, deps, &tracker, stop.child_token());
        let _ = session.set(handle);
    }
    let session = session.get().cloned();
    Assistant {
        runtime: None,
        store,
        watches,
        model,
        session,
        process: (tracker, stop),
        _home: home,
        push_base,
    }
}

#[derive(Debug)]
struct Pushes(WatchHandle);

#[async_trait]
impl PushReceiver for Pushes {
    async fn on_push(&self, watch_id: &str, token: &str, body: &[u8]) -> bool {
        self.0.on_push(watch_id, token, body).await
    }
}

impl Assistant {
    pub(crate) fn session(&self) -> &SessionHandle {
        self.session.as_ref().unwrap()
    }

    /// Puts the owner's text into the queue, as a host does.
    pub(crate) async fn accept(&self, key: &str, text: &str) -> Accepted {
        self.accept_after(0, key, text).await
    }

    /// Puts a text into the queue that came here over so many agents.
    pub(crate) async fn accept_after(&self, hops: u32, key: &str, text: &str) -> Accepted {
        let prompt = NewPrompt {
            target: target(),
            key: PromptKey::new(key),
            origin: Origin::Owner,
            hops,
            source: Some(SourceRef::new(format!("ref of {key}"))),
            text: text.to_owned(),
        };
        let accepted = self.store.accept(prompt).await.unwrap();
        self.session().wake();
        accepted
    }

    /// Says something and waits until it is answered.
    #[track_caller]
    pub(crate) fn say(&self, text: &str) -> impl Future<Output = ()> {
        within(async move {
            self.accept(&format!("t:{text}"), text).await;
            self.session().wait_idle().await;
        })
    }

    /// The conversation, a line per entry, with the remote's ids as T1, C1 and so on.
    pub(crate) async fn transcript(&self, remote: &Remote) -> Vec<String> {
        let entries = self.store.entries(&target()).await.unwrap();
        let lines = entries.iter().flat_map(|entry| lines(&entry.body));
        lines.map(|line| with_names(line, remote)).collect()
    }

    /// What waits to be answered.
    pub(crate) async fn waiting(&self, remote: &Remote) -> Vec<String> {
        let waiting = self.store.waiting(&target()).await.unwrap();
        waiting.into_iter().map(|prompt| with_names(prompt.prompt.text, remote)).collect()
    }

    /// Waits until the conversation has a line with this in it and the session rests.
    #[track_caller]
    pub(crate) fn wait_line<'a>(
        &'a self,
        remote: &'a Remote,
        part: &'a str,
    ) -> impl Future<Output = Vec<String>> {
        within(async move {
            loop {
                let transcript = self.transcript(remote).await;
                if transcript.iter().any(|line| line.contains(part)) {
                    self.session().wait_idle().await;
                    return self.transcript(remote).await;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
    }

    /// The states of the watches that are not over.
    pub(crate) async fn watch_states(&self) -> Vec<WatchState> {
        self.store.live().await.unwrap().into_iter().map(|watch| watch.state).collect()
    }

    #[track_caller]
    pub(crate) fn wait_watches(&self, states: &[WatchState]) -> impl Future<Output = ()> {
        within(async move {
            while self.watch_states().await != states {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
    }

    /// Shows everything that waits for the screen.
    pub(crate) async fn screen(&self, remote: &Remote) -> Vec<String> {
        let mut shown = Vec::new();
        while let Some(item) = self.store.next_outbox(&target()).await.unwrap() {
            self.store.outbox_sent(item.id, None).await.unwrap();
            shown.push(with_names(item.body, remote));
        }
        shown
    }

    /// Ends as a host does.
    pub(crate) async fn stop(mut self) {
        self.process.1.cancel();
        self.process.0.close();
        within(self.process.0.wait()).await;
        self.store.close().await;
        self.end_runtime().await;
    }

    /// Dies without a goodbye: every task ends where it stands.
    pub(crate) async fn kill(mut self) {
        self.end_runtime().await;
    }

    async fn end_runtime(&mut self) {
        let runtime = self.runtime.take().unwrap();
        let ended =
            tokio::task::spawn_blocking(move || runtime.shutdown_timeout(Duration::from_secs(10)));
        ended.await.unwrap();
    }
}

impl Drop for Assistant {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// A call of the tool.
pub(crate) fn call(arguments: Value) -> ScriptedStep {
    ScriptedReply::call("a2a", arguments).into()
}

/// A message for the remote.
pub(crate) fn send(message: &str) -> ScriptedStep {
    call(serde_json::json!({"action": "send", "agent": "bot", "message": message}))
}

/// A call with the id that stands behind `mark` in what the model was asked last.
pub(crate) fn call_with(
    mark: &'static str,
    arguments: impl FnOnce(&str) -> Value + Send + 'static,
) -> ScriptedStep {
    ScriptedStep::made(move |request| {
        let asked = format!("{:?}", request.messages);
        let start = asked.rfind(mark).unwrap() + mark.len();
        // All ids of the remote are UUIDs.
        ScriptedReply::call("a2a", arguments(&asked[start..start + 36]))
    })
}

/// A reply.
pub(crate) fn says(text: &str) -> ScriptedStep {
    ScriptedReply::say(text).into()
}

fn lines(body: &EntryBody) -> Vec<String> {
    match body {
        EntryBody::User { text, origin, .. } => {
            let text = text.strip_prefix(HEADER).unwrap_or_else(|| panic!("no header: {text}"));
            let who = match origin {
                Origin::Owner => "owner",
                Origin::Delivery => "delivery",
            };
            vec![format!("{who}: {text}")]
        }
        EntryBody::Assistant { blocks, .. } => blocks.iter().map(block).collect(),
        EntryBody::Tool(reply) if reply.is_error => vec![format!("error: {}", reply.text)],
        EntryBody::Tool(reply) => vec![format!("tool: {}", reply.text)],
        EntryBody::Failed { reason, aborted, last, .. } => {
            vec![format!("failed: {reason} (aborted: {aborted}, last: {last})")]
        }
        EntryBody::Resumed => vec!["resumed".to_owned()],
        EntryBody::Reset => vec!["reset".to_owned()],
    }
}

fn block(block: &Block) -> String {
    match block {
        Block::Text { text } => format!("assistant: {text}"),
        Block::Thinking { text, .. } => format!("thinking: {text}"),
        Block::ToolCall(call) => format!("call: {}", call.arguments.as_ref().unwrap()),
    }
}

fn with_names(mut text: String, remote: &Remote) -> String {
    let received = remote.received();
    let mut contexts: Vec<&str> = received.iter().map(|one| one.context_id.as_str()).collect();
    let mut tasks: Vec<&str> = received.iter().map(|one| one.task_id.as_str()).collect();
    dedup(&mut contexts);
    dedup(&mut tasks);
    for (number, id) in (1..).zip(tasks) {
        text = text.replace(id, &format!("T{number}"));
    }
    for (number, id) in (1..).zip(contexts) {
        text = text.replace(id, &format!("C{number}"));
    }
    text
}

fn dedup(ids: &mut Vec<&str>) {
    let mut seen = std::collections::HashSet::new();
    ids.retain(|id| seen.insert(*id));
}
