//! A session: one conversation's actor, which turns waiting prompts into answers.
//!
//! [`spawn`] starts one per target. Prompts come in through [`crate::SessionStore::accept`] and a [`SessionHandle::wake`];
//! each waiting prompt is one run, in the order of acceptance. A run asks the model, runs the tools it wants and asks
//! again until a reply needs no tool. Every step is committed before anybody hears of it, and what comes next is read
//! off the conversation itself (`log`), so a run goes on after a crash exactly where its last commit left it.
//!
//! Stopping ([`SessionHandle::abort`]) ends the run that is going on and nothing else: prompts that wait stay in the
//! queue and the next one starts at once. Ending the process, by its token or by force, ends no run: the next process
//! takes it up again.

mod activity;
mod actor;
mod answer;
mod batch;
mod commit;
mod config;
mod ending;
mod handle;
mod log;
mod notice;
mod replay;
mod reply;
mod run;
mod schema;
mod stop;

use std::sync::Arc;

use tokio::sync::{Notify, broadcast, mpsc, watch};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::Instrument as _;

pub use activity::{RunStatus, SessionActivity, SessionEvent, SessionStatus};
pub use answer::{Answer, AnswerFormat, AnswerKind, PlainAnswers};
pub use config::{RetryConfig, SessionConfig, SessionDeps, SessionLimits};
pub use handle::{AbortEnd, SessionError, SessionHandle};

use crate::prompt::TargetId;
use activity::Gauge;

/// Commands that may wait: people type few, and a full queue only makes the sender wait.
const COMMANDS: usize = 16;

/// What the actor, its runs and its handles share.
#[derive(Debug)]
struct Shared {
    target: TargetId,
    config: SessionConfig,
    deps: SessionDeps,
    events: broadcast::Sender<SessionEvent>,
    gauge: watch::Sender<Gauge>,
    wake: Notify,
}

impl Shared {
    /// Publishes an event. That nobody listens is fine: what matters is in the store.
    fn publish(&self, event: SessionEvent) {
        let _ = self.events.send(event);
    }
}

/// Starts the session of `target` on `tracker` and at once looks for an interrupted run and waiting prompts.
///
/// It lives until `cancel` is cancelled or every handle is gone. A run is then left as it stands, with what its tools
/// yielded within [`SessionLimits::stop_grace`] committed, and the next session of the same target goes on with it.
/// The caller sees to it that a target has one session at a time.
pub fn spawn(
    target: TargetId,
    config: SessionConfig,
    deps: SessionDeps,
    tracker: &TaskTracker,
    cancel: CancellationToken,
) -> SessionHandle {
    let (events, _) = broadcast::channel(config.limits.event_capacity.max(1));
    let (commands, inbox) = mpsc::channel(COMMANDS);
    let span = tracing::info_span!("session", session.id = %target, model = deps.model.id());
    let shared = Arc::new(Shared {
        target,
        config,
        deps,
        events,
        gauge: watch::Sender::new(Gauge::starting()),
        wake: Notify::new(),
    });
    shared.wake.notify_one();
    let actor = actor::Actor::new(Arc::clone(&shared), inbox, cancel);
    tracker.spawn(
        async move {
            let end = actor.run().await;
            tracing::info!(reason = ?end, "session ended");
        }
        .instrument(span),
    );
    SessionHandle::new(shared, commands)
}
