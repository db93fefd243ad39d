//! Everything of a host that watches touch.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use async_trait::async_trait;
use cpu_time::ProcessTime;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use url::Url;
use volcanic_a2a_client::{ClientConfig, plain_keys};
use volcanic_a2a_server::{PushReceiver, push_router, serve};
use volcanic_a2a_tool::SessionDelivery;
use volcanic_a2a_watch::{SendEnd, SendOrder, WatchConfig, WatchDeps, WatchHandle, WatchTarget};
use volcanic_agent_core::TargetId;
use volcanic_base::{Chance, SystemClock};
use volcanic_net::{NetClient, NetConfig};
use volcanic_store::Store;

use crate::noted::{NotedDelivery, NotedStore};
use crate::seed::{AGENT, database, target, workspace};

/// The largest file that would be taken.
const MAX_FILE: u64 = 10 << 20;

/// The longest that the last hand-overs may take.
const LIMIT: Duration = Duration::from_mins(1);

/// What differs between runs.
pub(crate) struct Setup {
    pub(crate) home: PathBuf,
    /// Whether there is a route for pushes.
    pub(crate) pushes: bool,
    /// Between the first checks of two watches.
    pub(crate) stagger: Duration,
}

/// A running registry.
pub(crate) struct World {
    home: PathBuf,
    workspaces: usize,
    store: Store,
    noted: Arc<NotedStore>,
    watches: WatchHandle,
    taken: Arc<Mutex<Vec<u64>>>,
    push_address: String,
    /// How long the store took to open.
    opening: Duration,
    tracker: TaskTracker,
    stop: CancellationToken,
}

impl World {
    pub(crate) async fn start(setup: Setup, workspaces: usize) -> Result<Self> {
        let Setup { home, pushes, stagger } = setup;
        let began = Instant::now();
        let store = Store::open(&database(&home), Arc::new(SystemClock))?;
        let opening = began.elapsed();
        let noted = Arc::new(NotedStore::new(store.clone()));
        let conversations =
            (0..workspaces).map(|number| (TargetId::new(target(number)), workspace(&home, number)));
        let delivery =
            SessionDelivery::new(Arc::new(store.clone()), conversations, Arc::new(|_| {}));
        let taken = Arc::new(Mutex::new(Vec::new()));
        let deps = WatchDeps {
            store: Arc::<NotedStore>::clone(&noted),
            transport: Arc::new(NetClient::new(NetConfig::default())?),
            keys: plain_keys(),
            clock: Arc::new(SystemClock),
            chance: Arc::new(Chance::from_os()),
            delivery: Arc::new(NotedDelivery::new(delivery, Arc::clone(&taken))),
        };
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let push_address = listener.local_addr()?.to_string();
        let mut config = WatchConfig::new(ClientConfig::default(), MAX_FILE);
        if pushes {
            config.push_base = Some(Url::parse(&format!("http://{push_address}"))?);
        }
        // The pace that long work is followed at.
        config.poll_pauses = vec![Duration::from_mins(5)];
        config.restore_stagger = stagger;
        let (tracker, stop) = (TaskTracker::new(), CancellationToken::new());
        let watches = volcanic_a2a_watch::spawn(config, deps, &tracker, stop.child_token());
        let router = push_router(Arc::new(Pushes(watches.clone())));
        tracker.spawn(serve(listener, router, stop.child_token()));
        Ok(Self {
            home,
            workspaces,
            store,
            noted,
            watches,
            taken,
            push_address,
            opening,
            tracker,
            stop,
        })
    }

    /// Where pushes go.
    pub(crate) fn push_address(&self) -> &str {
        &self.push_address
    }

    pub(crate) fn opening(&self) -> Duration {
        self.opening
    }

    /// Takes up the watches.
    pub(crate) async fn restore(&self) {
        self.watches.restore().await;
    }

    /// How long it took from each push to its accepted prompt, in nanoseconds.
    pub(crate) fn latencies(&self) -> Vec<u64> {
        std::mem::take(&mut *self.taken.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Hands work over from so many askers at once, each beginning the next once the last is on disk. Returns how many
    /// hand-overs ended within the time after a quarter of it has passed for warming up, the nanoseconds that were counted,
    /// the commits and writes of the store in them, and the nanoseconds of processor time.
    pub(crate) async fn hand_over(&mut self, askers: usize, time: Duration) -> Result<String> {
        let stop = CancellationToken::new();
        let mut running = JoinSet::new();
        let done = Arc::new(std::sync::atomic::AtomicU64::new(0));
        for asker in 0..askers {
            let (watches, noted) = (self.watches.clone(), Arc::clone(&self.noted));
            let (home, workspaces) = (self.home.clone(), self.workspaces);
            let (stop, done) = (stop.clone(), Arc::clone(&done));
            running.spawn(async move {
                let mut round = 0;
                while !stop.is_cancelled() {
                    let at = (asker + round * askers) % workspaces;
                    round += 1;
                    let order = SendOrder {
                        target: WatchTarget::new(target(at)),
                        workspace: workspace(&home, at),
                        agent: AGENT.to_owned(),
                        text: "Find a flight to Lisbon on Friday, with a window seat.".to_owned(),
                        parts: Vec::new(),
                        context_id: None,
                        task_id: None,
                        hops: 0,
                        source_ref: Some("77".to_owned()),
                        unattended: None,
                    };
                    match watches.send(order, Duration::ZERO, CancellationToken::new()).await {
                        Ok(SendEnd::HandedOver { task_id, .. }) => {
                            noted.handed_over(&task_id).await;
                        }
                        other => bail!("a send was not handed over: {other:?}"),
                    }
                    done.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                }
                anyhow::Ok(())
            });
        }
        tokio::time::sleep(time / 4).await;
        let count = || done.load(std::sync::atomic::Ordering::Relaxed);
        let (began, before, stats) = (Instant::now(), count(), self.store.stats());
        let cpu = ProcessTime::now();
        tokio::time::sleep(time * 3 / 4).await;
        let (took, ended, after) = (began.elapsed(), count() - before, self.store.stats());
        let cpu = cpu.elapsed();
        stop.cancel();
        let ends = async {
            while let Some(asker) = running.join_next().await {
                asker?.context("an asker")?;
            }
            anyhow::Ok(())
        };
        tokio::time::timeout(LIMIT, ends).await.context("a hand-over did not end")??;
        let (commits, writes) = (after.commits - stats.commits, after.writes - stats.writes);
        Ok(format!("{ended} {} {commits} {writes} {}", took.as_nanos(), cpu.as_nanos()))
    }

    /// Ends in order.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        self.tracker.close();
        self.tracker.wait().await;
        self.store.close().await;
    }
}

/// The way of pushes to the registry, as the bot has it.
#[derive(Debug)]
struct Pushes(WatchHandle);

#[async_trait]
impl PushReceiver for Pushes {
    async fn on_push(&self, watch_id: &str, token: &str, body: &[u8]) -> bool {
        self.0.on_push(watch_id, token, body).await
    }
}
