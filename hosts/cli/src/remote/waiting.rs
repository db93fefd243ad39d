//! Waiting for an agent, as long as the user wants to.

use std::future::pending;

use anyhow::{Context as _, Result};
use tokio::{
    signal::unix::{SignalKind, signal},
    task::JoinSet,
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

use super::Live;

/// What waiting came to.
pub(super) enum Waited<T> {
    /// What was waited for.
    Done(T),
    /// The time was up.
    TimeIsUp,
    /// Ctrl-C, or a request to end.
    Interrupted,
}

/// Somebody who may want to leave. It is listened for as long as this is kept, so that nothing is missed between two
/// waits.
pub(super) struct Leave {
    wanted: CancellationToken,
    /// The one task, which ends with this.
    _listening: JoinSet<()>,
}

impl Leave {
    /// Listens to Ctrl-C and to requests to end.
    ///
    /// # Errors
    /// When the system does not allow that.
    pub(super) fn listen() -> Result<Self> {
        let listen = |kind| signal(kind).context("failed to listen to signals");
        let (mut interrupt, mut terminate) =
            (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?);
        let wanted = CancellationToken::new();
        let heard = wanted.clone();
        let mut listening = JoinSet::new();
        listening.spawn(async move {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            heard.cancel();
        });
        Ok(Self { wanted, _listening: listening })
    }

    /// Does the work until it is done, the time is up or somebody wants to leave; meanwhile it is said what is waited
    /// for.
    pub(super) async fn bounded<T>(
        &self,
        live: &Live,
        deadline: Option<Instant>,
        work: impl Future<Output = T>,
    ) -> Waited<T> {
        let waited = tokio::select! {
            biased;
            done = work => Waited::Done(done),
            () = self.wanted.cancelled() => Waited::Interrupted,
            () = passed(deadline) => Waited::TimeIsUp,
            never = live.tick() => match never {},
        };
        live.clear();
        waited
    }
}

async fn passed(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => pending().await,
    }
}
