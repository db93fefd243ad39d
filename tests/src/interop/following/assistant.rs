//! The half of an assistant that follows tasks: a registry on a real store, with a route for pushes.

use std::{
    collections::{HashMap, HashSet},
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::{Context as _, Result, bail, ensure};
use async_trait::async_trait;
use tokio::{net::TcpListener, task::JoinSet, time::sleep};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use url::Url;
use volcanic_a2a_client::{ClientConfig, plain_keys};
use volcanic_a2a_server::{PushReceiver, push_router, serve};
use volcanic_a2a_tool::SessionDelivery;
use volcanic_a2a_watch::{
    SendEnd, SendOrder, WatchConfig, WatchDeps, WatchHandle, WatchSource, WatchState,
    WatchStore as _, WatchTarget, WatchView,
};
use volcanic_agent_core::{SessionStore as _, TargetId};
use volcanic_base::{Chance, SystemClock};
use volcanic_net::{NetClient, NetConfig};
use volcanic_store::Store;

use super::{FollowJob, Source, Trouble};

/// What the pauses are, for people.
pub(super) const PAUSES: &str = "\
a poll after 0.25, 0.5, 1, 2 and 5 s, a stream opened again after 17, 83 and 250 ms, a task gone after 10 s. The slow read \
beside pushes and a stream's hold are 10 and 5 s, but a minute where only the push or the stream may find the end. A cell \
may hold a stream per task.";

/// The slow read and the hold where neither may be what finds the end.
const OUT_OF_THE_WAY: Duration = Duration::from_mins(1);

/// The slow read where it is to be seen that a broken agent does not push.
const SOON: Duration = Duration::from_secs(4);

/// A slow read that is due in less than this may be the one after the registration.
const READS_SOON: Duration = Duration::from_millis(500);

/// How long everything may take to end in order.
const GRACE: Duration = Duration::from_secs(20);

const TARGET: &str = "owner";

/// A task that was handed over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HandedOver {
    pub(super) word: String,
    pub(super) task: String,
    pub(super) context: String,
}

pub(super) struct Assistant {
    watches: WatchHandle,
    store: Store,
    workspace: PathBuf,
    process: (TaskTracker, CancellationToken),
    pushes: Arc<Pushes>,
    pub(super) push_base: Option<Url>,
}

/// The route for pushes; counts those that were taken.
#[derive(Debug)]
struct Pushes {
    watches: WatchHandle,
    taken: AtomicUsize,
}

#[async_trait]
impl PushReceiver for Pushes {
    async fn on_push(&self, watch_id: &str, token: &str, body: &[u8]) -> bool {
        let is_taken = self.watches.on_push(watch_id, token, body).await;
        self.taken.fetch_add(usize::from(is_taken), Ordering::SeqCst);
        is_taken
    }
}

impl Assistant {
    /// Starts one whose `peer` is the agent behind `proxy`.
    pub(super) async fn start(job: FollowJob, proxy: SocketAddr, folder: &Path) -> Result<Self> {
        let workspace = folder.join("workspace");
        let settings = workspace.join(".volcanic/a2a");
        std::fs::create_dir_all(&settings)?;
        let kind = if job.row.source == Source::Poll { "quiet" } else { "open" };
        let mut entry =
            serde_json::json!({ "name": "peer", "url": format!("http://{proxy}/{kind}") });
        if let Some(binding) = job.column.wanted_binding() {
            entry["binding"] = binding.into();
        }
        std::fs::write(settings.join("agents.json"), serde_json::json!([entry]).to_string())?;

        let store = Store::open(&folder.join("state/state.db"), Arc::new(SystemClock))?;
        let (tracker, stop) = (TaskTracker::new(), CancellationToken::new());
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let push_base = (job.row.source == Source::Push)
            .then(|| listener.local_addr())
            .transpose()?
            .map(|address| Url::parse(&format!("http://{address}")))
            .transpose()?;
        let target = TargetId::new(TARGET);
        let known = [(target, workspace.clone())];
        let wake = Arc::new(|_: &TargetId| {});
        let deps = WatchDeps {
            store: Arc::new(store.clone()),
            transport: Arc::new(NetClient::new(NetConfig::default())?),
            keys: plain_keys(),
            clock: Arc::new(SystemClock),
            chance: Arc::new(Chance::from_os()),
            delivery: Arc::new(SessionDelivery::new(Arc::new(store.clone()), known, wake)),
        };
        let config = config(job, push_base.clone());
        let watches = volcanic_a2a_watch::spawn(config, deps, &tracker, stop.child_token());
        let pushes = Arc::new(Pushes { watches: watches.clone(), taken: AtomicUsize::new(0) });
        let routes = push_router(Arc::clone(&pushes) as Arc<dyn PushReceiver>);
        tracker.spawn(serve(listener, routes, stop.child_token()));
        watches.restore().await;
        Ok(Self { watches, store, workspace, process: (tracker, stop), pushes, push_base })
    }

    /// Sends the words, all at once, and hands each task over at once. The words end with the task's own.
    pub(super) async fn send_all(&self, words: &[(String, String)]) -> Result<Vec<HandedOver>> {
        let mut sending = JoinSet::new();
        for (text, word) in words.iter().cloned() {
            let watches = self.watches.clone();
            let order = SendOrder {
                target: WatchTarget::new(TARGET),
                workspace: self.workspace.clone(),
                agent: "peer".to_owned(),
                text,
                parts: Vec::new(),
                context_id: None,
                task_id: None,
                hops: 0,
                source_ref: None,
                unattended: None,
            };
            sending.spawn(async move {
                let sent = watches.send(order, Duration::ZERO, CancellationToken::new()).await;
                match sent.context("a message could not be sent")? {
                    SendEnd::HandedOver { task_id, context_id, .. } => Ok(HandedOver {
                        word,
                        task: task_id.to_string(),
                        context: context_id.map(|id| id.to_string()).unwrap_or_default(),
                    }),
                    other => bail!("a task was not handed over: {other:?}"),
                }
            });
        }
        let mut handed_over = Vec::new();
        while let Some(sent) = sending.join_next().await {
            handed_over.push(sent.context("a send panicked")??);
        }
        Ok(handed_over)
    }

    /// Waits until every task is followed by the source, and was read since.
    pub(super) async fn until_followed(&self, source: Source, tasks: usize) {
        let wanted = match source {
            Source::Push => WatchSource::Push,
            Source::Subscribe => WatchSource::Subscribe,
            Source::Poll => WatchSource::Poll,
        };
        // A watch that has just registered is about to read.
        let reads_soon = |view: &WatchView| {
            view.source == WatchSource::Push && view.next_check_in < Some(READS_SOON)
        };
        let rests = |view: &WatchView| {
            view.source == wanted
                && !reads_soon(view)
                && view.state == WatchState::Watching
                && view.next_check_at.is_some()
                && view.last_seen.as_deref() == Some("working")
        };
        // Never all at once, if there are many: some are being read at any time.
        let mut seen = HashSet::new();
        while seen.len() < tasks {
            let views = self.watches.watches(None).await;
            seen.extend(views.into_iter().filter(rests).map(|view| view.task_id));
            // The registry tells nobody that a watch rests; a look is the question.
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits until nothing is followed any more, neither in memory nor on disk.
    pub(super) async fn until_over(&self) -> Result<()> {
        while !self.watches.watches(None).await.is_empty() || !self.store.live().await?.is_empty() {
            sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    /// What stands in the conversation.
    pub(super) async fn conversation(&self) -> Result<Vec<String>> {
        let prompts = self.store.waiting(&TargetId::new(TARGET)).await?;
        Ok(prompts.into_iter().map(|prompt| prompt.prompt.text).collect())
    }

    /// What is followed still, for people.
    pub(super) async fn left(&self) -> String {
        let views = self.watches.watches(None).await;
        let mut counts: HashMap<String, usize> = HashMap::new();
        for view in views {
            let seen = view.last_seen.unwrap_or_default();
            let what = format!("{} {}, last: {seen}", view.source.as_str(), view.state.as_str());
            *counts.entry(what).or_default() += 1;
        }
        format!("{counts:?}")
    }

    /// How many pushes were taken.
    pub(super) fn pushes(&self) -> usize {
        self.pushes.taken.load(Ordering::SeqCst)
    }

    /// Ends as a host does.
    pub(super) async fn stop(self) -> Result<()> {
        let (tracker, stop) = self.process;
        stop.cancel();
        tracker.close();
        let ended = tokio::time::timeout(GRACE, tracker.wait()).await;
        self.store.close().await;
        ensure!(ended.is_ok(), "the registry did not end in {GRACE:?}");
        Ok(())
    }
}

fn config(job: FollowJob, push_base: Option<Url>) -> WatchConfig {
    let config = WatchConfig::new(ClientConfig::default(), 1 << 20).scaled(1.0 / 60.0);
    let mut config = WatchConfig {
        push_base,
        streams_per_origin: config.streams_per_origin.max(job.tasks),
        ..config
    };
    if matches!(job.row.trouble, Trouble::None | Trouble::Delayed) {
        config.stream_hold = OUT_OF_THE_WAY;
        config.safety_read = if job.is_broken { SOON } else { OUT_OF_THE_WAY };
    }
    config
}
