//! A remote agent on a loopback socket: the scripted one, and tasks that end when the test says so.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use volcanic_a2a_server::{
    CallerAuth, Executor, Journal, JournalEntry, MemoryTasks, OpenAccess, PushConfig, ScriptRules,
    ScriptedAgent, ServeConfig, ServerConfig, ServerDeps, StaticKeys, TaskSink, TaskStore, Turn,
    router, serve_with,
};
use volcanic_a2a_types::{Artifact, Part, TaskId};
use volcanic_base::{Chance, Secret, SystemClock};
use volcanic_net::{NetClient, NetConfig, Transport};

/// No test waits longer than this for anything.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Waits, but not for ever.
#[track_caller]
pub(crate) fn within<T>(what: impl Future<Output = T>) -> impl Future<Output = T> {
    let caller = std::panic::Location::caller();
    async move {
        match tokio::time::timeout(PATIENCE, what).await {
            Ok(value) => value,
            Err(late) => panic!("what {caller} waits for does not come: {late}"),
        }
    }
}

/// Waits for what only a look can tell.
#[track_caller]
pub(crate) fn until(mut there: impl AsyncFnMut() -> bool) -> impl Future<Output = ()> {
    within(async move {
        while !there().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
}

/// What a remote agent is made of.
#[derive(Clone)]
pub(crate) struct RemoteSetup {
    key: Option<String>,
    pushes: bool,
    tasks: Arc<dyn TaskStore>,
}

/// A remote agent that runs. What it received and what it holds outlive a restart.
pub(crate) struct Remote {
    setup: RemoteSetup,
    address: SocketAddr,
    agent: Arc<HoldingAgent>,
    process: (TaskTracker, CancellationToken),
}

/// Says what a held task is to do.
type Say = Option<String>;

/// The scripted agent, and beside it tasks that wait for the test:
///
/// - `hold WORD` works until [`Remote::release`], then says `finished: WORD`;
/// - `login WORD` wants a login, then works like `hold`;
/// - `gate WORD` wants a login and waits for another message.
#[derive(Debug)]
struct HoldingAgent {
    scripted: ScriptedAgent,
    journal: Arc<Journal>,
    held: watch::Sender<HashMap<String, Say>>,
    received: Mutex<Vec<Received>>,
}

/// A message that the agent received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Received {
    pub(crate) caller: String,
    pub(crate) text: String,
    pub(crate) message_id: String,
    pub(crate) task_id: String,
    pub(crate) context_id: String,
    pub(crate) hops: u32,
}

impl RemoteSetup {
    pub(crate) fn new() -> Self {
        Self { key: None, pushes: false, tasks: Arc::new(MemoryTasks::default()) }
    }

    /// Takes nobody without this key.
    pub(crate) fn with_key(mut self, key: &str) -> Self {
        self.key = Some(key.to_owned());
        self
    }

    pub(crate) fn with_pushes(mut self) -> Self {
        self.pushes = true;
        self
    }

    pub(crate) async fn start(self) -> Remote {
        let journal = Arc::new(Journal::in_memory());
        let scripted = ScriptedAgent::new(
            ScriptRules::built_in(),
            Arc::clone(&journal),
            Arc::new(SystemClock),
        );
        let agent = Arc::new(HoldingAgent {
            scripted,
            journal,
            held: watch::Sender::default(),
            received: Mutex::default(),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let process = self.serve(listener, &agent);
        Remote { setup: self, address, agent, process }
    }

    fn serve(
        &self,
        listener: TcpListener,
        agent: &Arc<HoldingAgent>,
    ) -> (TaskTracker, CancellationToken) {
        let (tracker, cancel) = (TaskTracker::new(), CancellationToken::new());
        let client =
            || Arc::new(NetClient::new(NetConfig::default()).unwrap()) as Arc<dyn Transport>;
        let auth: Arc<dyn CallerAuth> = match &self.key {
            Some(key) => {
                Arc::new(StaticKeys::new([("assistant".to_owned(), Secret::new(key.as_str()))]))
            }
            None => Arc::new(OpenAccess::loopback()),
        };
        let config = ServerConfig {
            push: PushConfig { allow_http: true, ..PushConfig::default() },
            cancel_grace: Duration::from_millis(200),
            ..ServerConfig::default()
        };
        let deps = ServerDeps {
            executor: Arc::clone(agent) as _,
            auth,
            store: Arc::clone(&self.tasks),
            card: Arc::new(ScriptedAgent::card()),
            clock: Arc::new(SystemClock),
            chance: Arc::new(Chance::from_os()),
            push: self.pushes.then(client),
        };
        let routes = router(config, deps, &tracker, cancel.clone());
        let serving = ServeConfig { grace: Duration::from_millis(500), ..ServeConfig::default() };
        tracker.spawn(serve_with(serving, listener, routes, cancel.clone()));
        (tracker, cancel)
    }
}

impl Remote {
    pub(crate) async fn new() -> Self {
        RemoteSetup::new().start().await
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Lets a held task end well.
    pub(crate) fn release(&self, word: &str) {
        self.agent.say(word, None);
    }

    /// Lets a held task ask something.
    pub(crate) fn ask(&self, word: &str, question: &str) {
        self.agent.say(word, Some(question.to_owned()));
    }

    /// What arrived, oldest first.
    pub(crate) fn received(&self) -> Vec<Received> {
        self.agent.received.lock().unwrap().clone()
    }

    /// What arrived, once there are so many.
    #[track_caller]
    pub(crate) fn wait_received(&self, count: usize) -> impl Future<Output = Vec<Received>> {
        within(async move {
            let mut held = self.agent.held.subscribe();
            loop {
                let received = self.received();
                if received.len() >= count {
                    return received;
                }
                held.changed().await.unwrap();
            }
        })
    }

    pub(crate) fn texts(&self) -> Vec<String> {
        self.received().into_iter().map(|received| received.text).collect()
    }

    /// What the scripted agent wrote down.
    pub(crate) fn journal(&self) -> Vec<JournalEntry> {
        self.agent.journal.entries()
    }

    /// The label of a task's state.
    pub(crate) async fn state(&self, task_id: &str) -> String {
        let record = self.setup.tasks.load(&TaskId::from(task_id)).await.unwrap().unwrap();
        record.task.status.state.label()
    }

    /// Goes away; connections are refused from now on.
    pub(crate) async fn stop(&self) {
        self.process.1.cancel();
        self.process.0.close();
        within(self.process.0.wait()).await;
    }

    /// Comes back where it was, with the tasks it kept.
    pub(crate) async fn start_again(&mut self) {
        let listener = within(async {
            loop {
                match TcpListener::bind(self.address).await {
                    Ok(listener) => return listener,
                    // The old listener may be on its way out still.
                    Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
                }
            }
        })
        .await;
        self.process = self.setup.serve(listener, &self.agent);
    }
}

impl HoldingAgent {
    fn say(&self, word: &str, say: Say) {
        self.held.send_modify(|held| {
            held.insert(word.to_owned(), say);
        });
    }

    /// Waits until the test says how the task goes on.
    async fn hold(&self, word: &str, sink: &TaskSink, cancel: &CancellationToken) {
        let mut held = self.held.subscribe();
        let said = held.wait_for(|held| held.contains_key(word));
        let said = match cancel.run_until_cancelled(said).await {
            Some(Ok(held)) => held.get(word).cloned().flatten(),
            Some(Err(_)) | None => return,
        };
        if let Some(question) = said {
            self.held.send_modify(|held| {
                held.remove(word);
            });
            let _ = sink.ask(&question).await;
        } else {
            let text = vec![Part::text(format!("finished: {word}"))];
            let _ = sink.artifact(Artifact::new("response", text).with_name("response")).await;
            let _ = sink.complete().await;
        }
    }
}

#[async_trait]
impl Executor for HoldingAgent {
    async fn execute(&self, turn: Turn, sink: TaskSink, cancel: CancellationToken) {
        let texts: Vec<&str> = turn.message.texts().collect();
        let text = texts.join("\n");
        self.received.lock().unwrap().push(Received {
            caller: turn.caller.name.clone(),
            text: text.clone(),
            message_id: turn.message.message_id.to_string(),
            task_id: turn.task_id.to_string(),
            context_id: turn.context_id.to_string(),
            hops: turn.hops,
        });
        self.held.send_modify(|_| {});
        if let Some(word) = text.strip_prefix("hold ") {
            let _ = sink.working().await;
            self.hold(word, &sink, &cancel).await;
        } else if let Some(word) = text.strip_prefix("login ") {
            let _ = sink.auth_required("Please log in.").await;
            self.hold(word, &sink, &cancel).await;
        } else if text.starts_with("gate ") {
            let _ = sink.auth_required("Please log in.").await;
        } else {
            self.scripted.execute(turn, sink, cancel).await;
        }
    }
}
