//! Why a run is to stop: the owner said so, or the process ends.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

/// The stop signal of one run.
#[derive(Debug, Clone)]
pub(super) struct RunStop {
    token: CancellationToken,
    aborted: CancellationToken,
}

/// What a stopped run is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StopCause {
    /// End for good.
    Aborted,
    /// Leave everything so that the next process can go on.
    Shutdown,
}

impl RunStop {
    pub(super) fn new(session: &CancellationToken) -> Self {
        Self { token: session.child_token(), aborted: CancellationToken::new() }
    }

    pub(super) fn abort(&self) {
        self.aborted.cancel();
        self.token.cancel();
    }

    /// An owner's stop stands even when the process ends right after it.
    pub(super) fn cause(&self) -> Option<StopCause> {
        if self.aborted.is_cancelled() {
            Some(StopCause::Aborted)
        } else if self.token.is_cancelled() {
            Some(StopCause::Shutdown)
        } else {
            None
        }
    }

    /// The token that model and tools get children of.
    pub(super) fn token(&self) -> &CancellationToken {
        &self.token
    }

    /// Ends `grace` after the stop.
    pub(super) async fn grace_over(&self, grace: Duration) {
        self.token.cancelled().await;
        tokio::time::sleep(grace).await;
    }
}
