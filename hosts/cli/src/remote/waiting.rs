//! Waiting for an agent, as long as the user wants to.

use std::{
    future::pending,
    process::exit,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    signal::unix::{SignalKind, signal},
    task::{JoinSet, coop::unconstrained},
    time::{Instant, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

use super::Live;
use crate::exit::Exit;

/// How long somebody who wants to leave is kept, for a last word; less if it is asked for twice.
const PATIENCE: Duration = Duration::from_secs(5);

/// What waiting came to.
pub(super) enum Waited<T> {
    /// What was waited for.
    Done(T),
    /// The time was up.
    TimeIsUp,
    /// Ctrl-C, or a request to end.
    Interrupted,
}

/// Somebody who may want to leave. From the first wait on they are listened to for as long as this is kept, so that
/// nothing is missed between two waits.
pub(super) struct Leave {
    wanted: CancellationToken,
    /// The one task, once there is something to wait for; it ends with this.
    listening: Mutex<JoinSet<()>>,
}

impl Leave {
    /// Nobody is listened to before the first wait: until then signals do what they always do.
    pub(super) fn new() -> Self {
        Self { wanted: CancellationToken::new(), listening: Mutex::default() }
    }

    /// Listens to Ctrl-C and to requests to end, from the first time on. If the system does not allow that, they end the
    /// program.
    fn listen(&self) {
        let mut listening = self.listening.lock().unwrap_or_else(PoisonError::into_inner);
        if !listening.is_empty() {
            return;
        }
        let kinds = [SignalKind::interrupt(), SignalKind::terminate()];
        let [Ok(mut interrupt), Ok(mut terminate)] = kinds.map(signal) else { return };
        let heard = self.wanted.clone();
        listening.spawn(async move {
            let mut hear = async || {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
            };
            hear().await;
            heard.cancel();
            // Whoever reads our output may have stopped to, and a write that waits for that hears of nothing.
            let _ = timeout(PATIENCE, hear()).await;
            exit(Exit::TimedOut.code().into());
        });
    }

    /// Does the work until it is done, the time is up or somebody wants to leave; meanwhile it is said what is waited
    /// for.
    pub(super) async fn bounded<T>(
        &self,
        live: &Live,
        deadline: Option<Instant>,
        work: impl Future<Output = T>,
    ) -> Waited<T> {
        self.listen();
        // Work that finds more to do each time it is asked uses up the turn of this task: the others must not need any of it.
        let waited = tokio::select! {
            biased;
            done = work => Waited::Done(done),
            () = unconstrained(self.wanted.cancelled()) => Waited::Interrupted,
            () = unconstrained(passed(deadline)) => Waited::TimeIsUp,
            never = live.tick() => match never {},
        };
        live.clear();
        waited
    }
}

/// The moment when a wait of so long is over; none if it lies beyond all counting.
pub(super) fn after(wait: Duration) -> Option<Instant> {
    Instant::now().checked_add(wait)
}

async fn passed(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => pending().await,
    }
}
