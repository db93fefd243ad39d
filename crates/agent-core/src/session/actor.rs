//! The task that owns a session: it starts looks for work, one at a time, and answers commands meanwhile.

use std::{collections::VecDeque, sync::Arc};

use tokio::{
    sync::{mpsc, oneshot},
    task::{JoinError, JoinSet},
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::{
    Shared,
    activity::SessionEvent,
    run::{RunEnd, Runner},
    stop::{RunStop, StopCause},
};
use crate::store::StoreError;

/// What handles ask of the actor.
#[derive(Debug)]
pub(super) enum Command {
    /// Stop the run; answered with whether there was one, and how many prompts wait as far as that is known.
    Abort(oneshot::Sender<(bool, Option<usize>)>),
    /// Begin the conversation anew.
    Reset(oneshot::Sender<Result<(), StoreError>>),
}

/// Why a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SessionEnd {
    /// Its token was cancelled.
    Cancelled,
    /// Every handle is gone.
    Abandoned,
}

/// What a job did.
#[derive(Debug)]
enum JobEnd {
    Looked(RunEnd),
    Reset,
}

/// A session's actor.
#[derive(Debug)]
pub(super) struct Actor {
    shared: Arc<Shared>,
    inbox: mpsc::Receiver<Command>,
    cancel: CancellationToken,
    /// Parent of every run's token; also cancelled when the handles are gone, which must not reach the host's token.
    runs: CancellationToken,
    /// The runner, while no job has it.
    runner: Option<Runner>,
    /// At most one job: a session does one thing at a time.
    jobs: JoinSet<(Runner, JobEnd)>,
    stop: Option<RunStop>,
    /// The owner stopped a run whose end could not be written; the next look ends it.
    stop_stands: bool,
    /// Jobs that panicked since the last one that did not.
    panics: u32,
    /// How often the session had been asked to look when the current look began.
    seen: u64,
    aborts: Vec<oneshot::Sender<(bool, Option<usize>)>>,
    resets: VecDeque<oneshot::Sender<Result<(), StoreError>>>,
    /// When to look again after the store failed.
    recheck: Option<Instant>,
}

impl Actor {
    pub(super) fn new(
        shared: Arc<Shared>,
        inbox: mpsc::Receiver<Command>,
        cancel: CancellationToken,
    ) -> Self {
        Self {
            runner: Some(Runner::new(Arc::clone(&shared))),
            shared,
            inbox,
            runs: cancel.child_token(),
            cancel,
            jobs: JoinSet::new(),
            stop: None,
            stop_stands: false,
            panics: 0,
            seen: 0,
            aborts: Vec::new(),
            resets: VecDeque::new(),
            recheck: None,
        }
    }

    /// Works until the session is to end, then waits for the job that is going on.
    pub(super) async fn run(mut self) -> SessionEnd {
        let shared = Arc::clone(&self.shared);
        let end = loop {
            let recheck = self.recheck;
            tokio::select! {
                biased;
                () = self.cancel.cancelled() => break SessionEnd::Cancelled,
                Some(job) = self.jobs.join_next() => self.on_job_ended(job),
                command = self.inbox.recv() => match command {
                    Some(command) => self.on_command(command),
                    None => break SessionEnd::Abandoned,
                },
                () = shared.wake.notified() => self.advance(),
                () = sleep_until(recheck.unwrap_or_else(Instant::now)), if recheck.is_some() => {
                    self.on_recheck();
                }
            }
        };
        self.runs.cancel();
        // Bounded: a run ends within its grace, and the store's patience is finite.
        while self.jobs.join_next().await.is_some() {}
        shared.gauge.send_modify(|gauge| {
            gauge.running = None;
            gauge.busy = false;
            gauge.closed = true;
        });
        end
    }

    fn on_command(&mut self, command: Command) {
        match command {
            Command::Abort(reply) => match &self.stop {
                Some(stop) => {
                    stop.abort();
                    self.aborts.push(reply);
                }
                None => {
                    let _ = reply.send((false, None));
                }
            },
            Command::Reset(reply) => {
                if let Some(stop) = &self.stop {
                    stop.abort();
                }
                self.resets.push_back(reply);
                self.advance();
            }
        }
    }

    fn on_recheck(&mut self) {
        self.recheck = None;
        self.shared.gauge.send_modify(|gauge| gauge.asked += 1);
        self.advance();
    }

    fn on_job_ended(&mut self, job: Result<(Runner, JobEnd), JoinError>) {
        let aborted = self.stop.take().is_some_and(|stop| stop.cause() == Some(StopCause::Aborted));
        let (runner, end) = match job {
            Ok(ended) => {
                self.panics = 0;
                ended
            }
            // Its text may hold whatever was at hand, so it is shown nowhere; the process's hook tells where it was.
            Err(_) => (Runner::new(Arc::clone(&self.shared)), self.on_panic()),
        };
        self.runner = Some(runner);
        self.shared.gauge.send_modify(|gauge| {
            gauge.busy = false;
            gauge.running = None;
        });
        let (mut was_running, mut waiting) = (false, None);
        match end {
            JobEnd::Looked(RunEnd::Nothing) => self.settle(),
            JobEnd::Looked(RunEnd::StoreFailed { in_run }) => {
                was_running = in_run;
                self.stop_stands = aborted && in_run;
                self.recheck = Some(Instant::now() + self.shared.config.limits.store_recheck);
                self.settle();
            }
            JobEnd::Looked(RunEnd::Aborted { ended_run, waiting: count }) => {
                (was_running, waiting) = (ended_run, count);
            }
            // It came to its end before it noticed.
            JobEnd::Looked(RunEnd::Finished) => was_running = true,
            JobEnd::Looked(RunEnd::Suspended) | JobEnd::Reset => {}
        }
        for reply in self.aborts.drain(..) {
            let _ = reply.send((was_running, waiting));
        }
        self.advance();
    }

    /// A bug in this crate, in a model or in a host. A new runner reads what is on disk, which counts as a resumption, so
    /// that a run that always panics is given up in the end. What panics even then is left alone for a while.
    fn on_panic(&mut self) -> JobEnd {
        tracing::error!("run panicked");
        self.panics += 1;
        if self.panics <= self.shared.config.resume_limit + 1 {
            return JobEnd::Looked(RunEnd::Finished);
        }
        self.panics = 0;
        JobEnd::Looked(RunEnd::StoreFailed { in_run: true })
    }

    /// Notes that nothing was left of what had been asked for when the look began.
    fn settle(&mut self) {
        let seen = self.seen;
        self.shared.gauge.send_modify(|gauge| gauge.settled = seen);
        if self.resets.is_empty() && self.shared.gauge.borrow().is_idle() {
            self.shared.publish(SessionEvent::Idle);
        }
    }

    /// Starts the next job if there is reason for one and none is going on.
    fn advance(&mut self) {
        let Some(mut runner) = self.runner.take() else { return };
        if let Some(reply) = self.resets.pop_front() {
            self.shared.gauge.send_modify(|gauge| gauge.busy = true);
            let job = async move {
                let end = runner.reset().await;
                let _ = reply.send(end);
                (runner, JobEnd::Reset)
            };
            self.jobs.spawn(job.in_current_span());
            return;
        }
        if self.shared.gauge.borrow().is_idle() {
            self.runner = Some(runner);
            return;
        }
        self.shared.gauge.send_modify(|gauge| {
            gauge.busy = true;
            self.seen = gauge.asked;
        });
        self.recheck = None;
        let stop = RunStop::new(&self.runs);
        if std::mem::take(&mut self.stop_stands) {
            stop.abort();
        }
        self.stop = Some(stop.clone());
        let job = async move {
            let end = runner.run_next(&stop).await;
            (runner, JobEnd::Looked(end))
        };
        self.jobs.spawn(job.in_current_span());
    }
}
