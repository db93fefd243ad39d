//! Waiting for an agent, as long as the user wants to.

use std::future::pending;

use tokio::{
    signal::unix::{SignalKind, signal},
    time::{Instant, sleep_until},
};

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

/// Does the work until it is done, the time is up or somebody wants to leave; meanwhile it is said what is waited for.
pub(super) async fn bounded<T>(
    live: &Live,
    deadline: Option<Instant>,
    work: impl Future<Output = T>,
) -> Waited<T> {
    let waited = tokio::select! {
        biased;
        done = work => Waited::Done(done),
        () = interrupted() => Waited::Interrupted,
        () = passed(deadline) => Waited::TimeIsUp,
        never = live.tick() => match never {},
    };
    live.clear();
    waited
}

async fn passed(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => pending().await,
    }
}

/// Returns when the user, or the system, wants us to end. If that cannot be heard of, the signals do what they always do.
async fn interrupted() {
    let kinds = [SignalKind::interrupt(), SignalKind::terminate()];
    let [Ok(mut interrupt), Ok(mut terminate)] = kinds.map(signal) else {
        return pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}
