//! Sends a chat's outbox, in order, and keeps what became of each row.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, broadcast};
use tokio_util::sync::CancellationToken;
use volcanic_agent_core::{OutboxItem, SessionEvent, SessionStore, StoreError, TargetId};
use volcanic_base::{Backoff, Chance};

use super::body::{labelled, message_of, read_body};
use crate::api::{ApiError, BotClient};
use crate::markdown::FormattedText;

/// Pauses between attempts.
#[derive(Debug, Clone)]
pub struct SenderPauses {
    /// After a failure of Telegram or of the way to it; the last one repeats.
    pub retry: Vec<Duration>,
    /// After a failure of the store.
    pub store: Duration,
}

impl Default for SenderPauses {
    fn default() -> Self {
        Self {
            retry: [1, 2, 5, 15, 60].map(Duration::from_secs).to_vec(),
            store: Duration::from_secs(1),
        }
    }
}

/// One chat's sender.
#[derive(Debug)]
pub struct OutboxSender {
    /// The chat.
    pub chat: i64,
    /// Its conversation.
    pub target: TargetId,
    /// Where the rows are.
    pub store: Arc<dyn SessionStore>,
    /// Where they go.
    pub api: BotClient,
    /// Rings when rows came from elsewhere than the session.
    pub wake: Arc<Notify>,
    /// Spreads the pauses.
    pub chance: Arc<Chance>,
    /// Pauses between attempts.
    pub pauses: SenderPauses,
}

/// How work on one row ended.
#[derive(Debug, PartialEq, Eq)]
enum RowEnd {
    /// The row is done with, one way or the other.
    Done,
    /// The row is back in the queue; nothing more can be sent for this long.
    Later(Duration),
}

impl OutboxSender {
    /// Sends what there is and what comes, until `drain` is cancelled and nothing is left, or `stop` is.
    ///
    /// A row that is being sent when `stop` comes is sent again by the next process, marked as a possible repeat.
    pub async fn run(
        self,
        mut events: broadcast::Receiver<SessionEvent>,
        drain: CancellationToken,
        stop: CancellationToken,
    ) {
        let work = async {
            loop {
                self.send_all().await;
                if drain.is_cancelled() {
                    return;
                }
                self.wait(&mut events, &drain).await;
            }
        };
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            () = work => {}
        }
    }

    async fn wait(
        &self,
        events: &mut broadcast::Receiver<SessionEvent>,
        drain: &CancellationToken,
    ) {
        loop {
            tokio::select! {
                biased;
                () = drain.cancelled() => return,
                () = self.wake.notified() => return,
                event = events.recv() => match event {
                    Ok(SessionEvent::OutboxReady) | Err(broadcast::error::RecvError::Lagged(_)) => return,
                    Ok(_) => {}
                    // The session is gone; what is left to send comes through `wake`.
                    Err(broadcast::error::RecvError::Closed) => {
                        tokio::select! {
                            () = drain.cancelled() => {}
                            () = self.wake.notified() => {}
                        }
                        return;
                    }
                },
            }
        }
    }

    /// Sends until the queue is empty.
    async fn send_all(&self) {
        let mut backoff = Backoff::new(self.pauses.retry.clone(), 0.1);
        loop {
            let item = match self.store.next_outbox(&self.target).await {
                Ok(Some(item)) => item,
                Ok(None) => return,
                Err(error) => {
                    self.log_store("take an outbox row", &error);
                    tokio::time::sleep(self.pauses.store).await;
                    continue;
                }
            };
            match self.send_row(&item, &mut backoff).await {
                RowEnd::Done => backoff.reset(),
                RowEnd::Later(pause) => tokio::time::sleep(pause).await,
            }
        }
    }

    async fn send_row(&self, item: &OutboxItem, backoff: &mut Backoff) -> RowEnd {
        let message = read_body(&item.body);
        let reply_to = item.source.as_ref().and_then(message_of);
        let mut may_repeat = item.may_repeat;
        let mut plain = false;
        loop {
            let mut text = if may_repeat { labelled(&message) } else { message.clone() };
            if plain {
                text = FormattedText::plain(text.text);
            }
            let error = match self.api.send_text(self.chat, &text, reply_to).await {
                Ok(id) => {
                    self.until_kept(|| self.store.outbox_sent(item.id, Some(id.to_string()))).await;
                    return RowEnd::Done;
                }
                Err(error) => error,
            };
            tracing::warn!(chat.id = self.chat, row = %item.key, attempt = item.attempts + 1, %error, "message not sent");
            match error {
                // In the queue, the row counts as certainly not sent, also after a crash.
                ApiError::RateLimited(pause) if !may_repeat => {
                    self.until_kept(|| self.store.outbox_retry(item.id)).await;
                    return RowEnd::Later(pause);
                }
                ApiError::NotReached(_) | ApiError::Token | ApiError::Conflict if !may_repeat => {
                    self.until_kept(|| self.store.outbox_retry(item.id)).await;
                    return RowEnd::Later(backoff.next(&self.chance));
                }
                // An earlier attempt may have succeeded: the row stays as one that may be on the screen.
                ApiError::RateLimited(pause) => tokio::time::sleep(pause).await,
                ApiError::NotReached(_) | ApiError::Token | ApiError::Conflict => {
                    tokio::time::sleep(backoff.next(&self.chance)).await;
                }
                ApiError::Unknown(_) | ApiError::TooLarge(_) => {
                    may_repeat = true;
                    tokio::time::sleep(backoff.next(&self.chance)).await;
                }
                ApiError::Formatting(_) if !plain && !message.entities.is_empty() => plain = true,
                ApiError::Formatting(reason)
                | ApiError::Refused(reason)
                | ApiError::Closed(reason) => {
                    tracing::error!(chat.id = self.chat, row = %item.key, %reason, "message given up");
                    self.until_kept(|| self.store.outbox_failed(item.id, reason.clone())).await;
                    return RowEnd::Done;
                }
            }
        }
    }

    /// Repeats a write until the store takes it: what is on the screen must not be sent again by this process.
    async fn until_kept<F>(&self, write: impl Fn() -> F)
    where
        F: Future<Output = Result<(), StoreError>>,
    {
        while let Err(error) = write().await {
            self.log_store("keep what became of an outbox row", &error);
            tokio::time::sleep(self.pauses.store).await;
        }
    }

    fn log_store(&self, action: &'static str, error: &StoreError) {
        tracing::error!(chat.id = self.chat, action, %error, "the store failed");
    }
}
