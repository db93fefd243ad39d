//! The "typing" line while a run goes on.

use std::time::Duration;

use tokio::sync::broadcast::{self, error::RecvError};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use volcanic_agent_core::{SessionEvent, SessionHandle};

use crate::api::{ApiError, BotClient};

/// Pauses and limits of the "typing" line.
#[derive(Debug, Clone)]
pub(crate) struct TypingPauses {
    /// Between two refreshes. Telegram shows it for five seconds.
    pub(crate) refresh: Duration,
    /// The longest it is kept up for one run, so that a stuck run does not look busy for ever.
    pub(crate) limit: Duration,
    /// The longest one refresh may take.
    pub(crate) call: Duration,
}

impl Default for TypingPauses {
    fn default() -> Self {
        Self {
            refresh: Duration::from_secs(4),
            limit: Duration::from_mins(15),
            call: Duration::from_secs(5),
        }
    }
}

/// One chat's "typing" line.
#[derive(Debug)]
pub(crate) struct Typing {
    /// The chat.
    pub(crate) chat: i64,
    /// Where it is shown.
    pub(crate) api: BotClient,
    /// Whose runs it shows.
    pub(crate) session: SessionHandle,
    /// Pauses and limits.
    pub(crate) pauses: TypingPauses,
}

impl Typing {
    /// Shows "typing" during each run, until `stop` or the session's end.
    pub(crate) async fn run(self, stop: CancellationToken) {
        let mut events = self.session.subscribe();
        let work = async {
            loop {
                match events.recv().await {
                    Ok(SessionEvent::RunStarted { .. }) => self.show(&mut events).await,
                    Ok(_) | Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => return,
                }
            }
        };
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            () = work => {}
        }
    }

    /// Keeps it up until the run ends.
    async fn show(&self, events: &mut broadcast::Receiver<SessionEvent>) {
        let end = Instant::now() + self.pauses.limit;
        let mut next = Instant::now();
        while Instant::now() < end {
            match timeout_at(next.min(end), events.recv()).await {
                Ok(
                    Ok(
                        SessionEvent::Answered { .. }
                        | SessionEvent::RunFailed { .. }
                        | SessionEvent::RunAborted { .. }
                        | SessionEvent::Idle,
                    )
                    | Err(RecvError::Closed),
                ) => return,
                Ok(Ok(_) | Err(RecvError::Lagged(_))) => {}
                Err(_) if !self.session.is_running() => return,
                Err(_) => next = Instant::now() + self.refresh().await,
            }
        }
    }

    /// Refreshes once and says when to do it again. A failure is nobody's concern.
    async fn refresh(&self) -> Duration {
        match timeout(self.pauses.call, self.api.send_typing(self.chat)).await {
            Ok(Err(ApiError::RateLimited(pause))) => pause.max(self.pauses.refresh),
            Ok(Ok(()) | Err(_)) | Err(_) => self.pauses.refresh,
        }
    }
}
