//! The registry: one actor that owns every send and every watch of a process.

mod asking;
mod attending;
mod calls;
mod claiming;
mod clocks;
mod closing;
mod concealing;
mod context;
mod flushing;
mod following;
mod handle;
mod importing;
mod jobs;
mod listing;
mod origins;
mod reading;
mod recovering;
mod refusing;
mod restoring;
mod sending;
mod settling;
mod stopping;
mod streaming;
mod tasks;
mod tickets;
mod view;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Weak};

use futures::StreamExt as _;
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::time::{DelayQueue, delay_queue};
use tracing::Instrument as _;
use volcanic_a2a_types::{MessageId, TaskId};

pub use context::WatchDeps;
pub use handle::WatchHandle;

use crate::config::WatchConfig;
use crate::machine::{Availability, Hint, Watch, WatchEffect, WatchEvent};
use crate::record::{WatchId, WatchTarget};
use closing::OpenSend;
use context::Context;
use following::Watches;
use handle::Command;
use jobs::{JobEnd, Owner};
use origins::Origins;
use streaming::HeldStream;
use view::Views;

/// Starts the registry. It ends when `cancel` is cancelled, after its running writes, or when every handle is gone.
#[expect(clippy::needless_pass_by_value, reason = "every actor here is given a token of its own")]
pub fn spawn(
    config: WatchConfig,
    deps: WatchDeps,
    tracker: &TaskTracker,
    cancel: CancellationToken,
) -> WatchHandle {
    let (sender, commands) = mpsc::channel(config.queue.max(1));
    let patience = config.store_retry;
    let context = Arc::new(Context::new(config, deps, cancel.child_token()));
    let registry = Registry {
        context,
        commands,
        watches: Watches::default(),
        timers: DelayQueue::new(),
        jobs: JobQueue::default(),
        views: Views::default(),
        open_sends: HashSet::new(),
        kept_sends: Vec::new(),
        flushes: 0,
        origins: Origins::default(),
        origins_at: None,
        is_beginning: false,
        last_stream: 0,
        restoring: None,
    };
    tracker.spawn(registry.run().instrument(tracing::info_span!("watches")));
    WatchHandle::new(sender, patience)
}

/// A watch and what hangs on it.
struct Followed {
    watch: Watch,
    timer: Option<delay_queue::Key>,
    stream: Option<HeldStream>,
    /// The send that goes on waiting once its continuation is on disk.
    continuing: Option<settling::Waiting>,
    /// Alive while the holder of a ticket may still tell the outcome; `None` when there is no ticket.
    telling: Option<Weak<()>>,
    /// Calls that need the watch once it rests.
    waiting: VecDeque<Command>,
}

impl Followed {
    fn new(watch: Watch) -> Self {
        Self {
            watch,
            timer: None,
            stream: None,
            continuing: None,
            telling: None,
            waiting: VecDeque::new(),
        }
    }

    /// Whether the watch is held only until the registry hears of a ticket that is used up already.
    fn is_told(&self) -> bool {
        self.telling.as_ref().is_some_and(|telling| telling.strong_count() == 0)
    }

    /// Whether a call that wants the watch should wait a moment.
    fn is_busy(&self) -> bool {
        match self.watch.availability() {
            Availability::Busy => true,
            Availability::Held => self.is_told(),
            Availability::Free | Availability::Kept | Availability::Over => false,
        }
    }
}

/// What a timer is for.
#[derive(Debug, Clone)]
enum Timer {
    Watch(WatchId),
    View,
    /// An origin may be called again.
    Origins,
    /// What earlier processes left is to be read again.
    Restore,
}

#[derive(Default)]
struct JobQueue {
    set: JoinSet<JobEnd>,
    /// What hangs on a job, so that one that panics leaves nothing waiting for ever.
    owners: HashMap<tokio::task::Id, Owner>,
}

impl JobQueue {
    fn own(&mut self, job: &AbortHandle, owner: Owner) {
        self.owners.insert(job.id(), owner);
    }
}

struct Registry {
    context: Arc<Context>,
    commands: mpsc::Receiver<Command>,
    watches: Watches,
    timers: DelayQueue<Timer>,
    jobs: JobQueue,
    views: Views,
    /// Sends of this process that are still open in the store, so that a restore leaves them alone.
    open_sends: HashSet<MessageId>,
    /// Outcomes of sends that wait for a conversation that is not known.
    kept_sends: Vec<OpenSend>,
    /// Counts what became known, so that an outcome that was just being refused is not left behind.
    flushes: u64,
    origins: Origins,
    /// The timer of the next origin that may be called again.
    origins_at: Option<(Timestamp, delay_queue::Key)>,
    /// Whether calls are begun just now.
    is_beginning: bool,
    last_stream: u64,
    /// Who waits for the watches of earlier processes to be read. Until they are here nobody may act on their tasks.
    restoring: Option<Vec<oneshot::Sender<()>>>,
}

/// Why the loop ended.
#[derive(Debug)]
enum Stopped {
    Cancelled,
    NoHandles,
}

impl Registry {
    async fn run(mut self) {
        let stopped = self.run_loop().await;
        self.commands.close();
        let grace = self.context.config.shutdown_grace;
        self.context.stop.cancel();
        self.refuse_waiting().await;
        let drained = tokio::time::timeout(grace, async {
            while let Some(ended) = self.jobs.set.join_next_with_id().await {
                if let Ok((job, end)) = ended {
                    self.jobs.owners.remove(&job);
                    self.on_late_job(end);
                }
            }
        })
        .await;
        let dropped = self.jobs.set.len();
        self.jobs.set.shutdown().await;
        self.forget_lost_views();
        self.views.write_now(&self.watches).await;
        if drained.is_err() {
            tracing::warn!(jobs = dropped, "jobs of the registry were dropped at shutdown");
        }
        tracing::info!(reason = ?stopped, watches = self.watches.len(), "registry stopped");
    }

    async fn run_loop(&mut self) -> Stopped {
        let mut clock_check = tokio::time::interval(self.context.config.clock_check);
        clock_check.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut lead = self.context.clock.lead();
        let stop = self.context.stop.clone();
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return Stopped::Cancelled,
                Some(ended) = self.jobs.set.join_next_with_id() => self.on_joined(ended),
                command = self.commands.recv(), if self.restoring.is_none() => match command {
                    Some(command) => self.on_command(command),
                    None => return Stopped::NoHandles,
                },
                Some(expired) = self.timers.next() => self.on_timer(expired.into_inner()),
                _ = clock_check.tick() => lead = self.check_clocks(lead),
            }
        }
    }

    fn now(&self) -> Timestamp {
        self.context.clock.now()
    }

    fn on_joined(&mut self, ended: Result<(tokio::task::Id, JobEnd), tokio::task::JoinError>) {
        match ended {
            Ok((job, end)) => {
                self.jobs.owners.remove(&job);
                self.on_job(end);
            }
            Err(error) => {
                let owner = self.jobs.owners.remove(&error.id());
                // A listener that nobody needs any more is stopped that way.
                if !error.is_cancelled() {
                    // Its text may hold what a remote said, or a key.
                    tracing::error!("a job of the registry failed");
                    self.on_broken_job(owner);
                }
            }
        }
    }

    fn on_command(&mut self, command: Command) {
        match command {
            Command::Send(send) => {
                self.flush(&send.order.target.clone());
                self.begin_send(send);
            }
            Command::Ask(ask) => {
                // What is kept of the very task is told by who asks for it.
                self.flush_but(&ask.query.target.clone(), Some(&ask.query.task_id.clone()));
                self.begin_ask(ask);
            }
            Command::Agents { workspace, reply } => self.begin_agents(workspace, reply),
            Command::Push { id, digest, reply } => {
                // A caller that is gone needs no answer.
                let _ = reply.send(self.on_push(&id, &digest));
            }
            Command::Watches { target, reply } => {
                let _ = reply.send(self.list(target.as_ref()));
            }
            Command::Restore { reply } => self.begin_restore(reply),
            Command::Flush { target } => self.flush(&target),
        }
    }

    fn on_timer(&mut self, timer: Timer) {
        match timer {
            Timer::Watch(id) => {
                if let Some(followed) = self.watches.get_mut(&id) {
                    followed.timer = None;
                }
                self.feed(&id, WatchEvent::Due);
            }
            Timer::View => self.begin_views(),
            Timer::Origins => self.on_origins_open(),
            Timer::Restore => self.spawn_restore(),
        }
    }

    fn on_push(&mut self, id: &WatchId, digest: &[u8; 32]) -> bool {
        let token =
            self.watches.get(id).and_then(|followed| followed.watch.record().push_token.as_ref());
        // An unknown watch takes the same path, against a digest that no token has.
        let expected: [u8; 32] = match token {
            Some(token) => Sha256::digest(token.expose().as_bytes()).into(),
            None => Sha256::digest(self.context.deps.chance.token().as_bytes()).into(),
        };
        let matches = bool::from(expected.ct_eq(digest));
        if matches {
            self.feed(id, WatchEvent::Hinted(Hint::Push));
        }
        matches
    }

    /// Gives a watch an event and carries its effect out.
    fn feed(&mut self, id: &WatchId, event: WatchEvent) {
        let now = self.now();
        let Some(followed) = self.watches.get_mut(id) else { return };
        let effect = followed.watch.on_event(event, now, &self.context.config);
        self.carry_out(id, effect);
    }

    fn carry_out(&mut self, id: &WatchId, effect: Option<WatchEffect>) {
        if self.context.stop.is_cancelled() {
            return self.carry_out_last(id, effect.as_ref());
        }
        if matches!(effect, Some(WatchEffect::Wait(_))) && self.could_stream(id) {
            return self.feed(id, WatchEvent::Place);
        }
        let Some(followed) = self.watches.get_mut(id) else { return };
        if effect.is_some() {
            // Whatever happens now ends with a new timer.
            if let Some(timer) = followed.timer.take() {
                self.timers.try_remove(&timer);
            }
        }
        if matches!(effect, Some(WatchEffect::Write | WatchEffect::End)) {
            // What is shown of a watch changes with what is kept of it.
            self.views.changed(&followed.watch.record().workspace);
        }
        match effect {
            Some(WatchEffect::Wait(pause)) => {
                let jitter =
                    pause.mul_f64(self.context.config.jitter * self.context.deps.chance.fraction());
                followed.timer = Some(self.timers.insert(Timer::Watch(id.clone()), pause + jitter));
            }
            Some(WatchEffect::Read | WatchEffect::Subscribe) => self.wait_for_turn(id),
            Some(WatchEffect::End) => self.end(id),
            Some(WatchEffect::Deliver) => {
                self.watches.tells(id);
                self.spawn_watch_job(id, &WatchEffect::Deliver);
            }
            Some(job) => self.spawn_watch_job(id, &job),
            None => {}
        }
        self.drop_unused_stream(id);
        self.arm_view();
        self.serve_waiting(id);
    }

    fn end(&mut self, id: &WatchId) {
        let Some(followed) = self.watches.remove(id) else { return };
        self.spawn_unregister(followed.watch.record());
        if let Some(held) = followed.stream {
            self.drop_stream(held);
        }
        for command in followed.waiting {
            self.serve(command);
        }
    }

    /// Lets the next waiting call have the watch, if it rests.
    fn serve_waiting(&mut self, id: &WatchId) {
        while let Some(followed) = self.watches.get_mut(id) {
            if followed.is_busy() {
                return;
            }
            let Some(command) = followed.waiting.pop_front() else { return };
            self.serve(command);
        }
    }

    /// Takes up a call that waited for a watch.
    fn serve(&mut self, command: Command) {
        match command {
            Command::Send(send) => self.begin_send(send),
            Command::Ask(ask) => self.begin_ask(ask),
            other => self.on_command(other),
        }
    }

    /// The live watch of a conversation's task; the newest one if the agent moved and has the same task elsewhere.
    fn watch_of(&self, target: &WatchTarget, agent: &str, task_id: &TaskId) -> Option<WatchId> {
        self.watches
            .of_target(target)
            .filter(|(_, followed)| {
                let record = followed.watch.record();
                record.agent == agent && record.task_id == *task_id
            })
            .max_by_key(|(id, followed)| (followed.watch.record().started_at, *id))
            .map(|(id, _)| id.clone())
    }
}
