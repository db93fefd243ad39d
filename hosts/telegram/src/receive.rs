//! The receive loop: updates are on disk before Telegram forgets them, and handled from there.
//!
//! One commit keeps a batch of raw updates and the next offset; only the poll after it acknowledges them. A crash at any
//! point repeats work at most, and every step of that work has a key that makes a repeat harmless.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt as _;
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use volcanic_agent_core::StoreError;
use volcanic_base::{Backoff, Chance};
use volcanic_store::{ReceivedUpdate, Store};

use crate::api::{ApiError, BotClient};

/// How many updates are taken from disk at a time.
const BATCH: u32 = 100;

/// How many updates a poll asks for: as many as Telegram gives.
const POLLED: u8 = 100;

/// Does what an update asks for.
#[async_trait]
pub trait UpdateHandler: Send + Sync + std::fmt::Debug {
    /// Handles one update, marking it as handled in the store at the end. It returns soon: what takes long is only begun.
    /// After a crash or an error it is called again for the same update.
    ///
    /// # Errors
    /// [`StoreError`] when the store failed; the update is handled again a moment later.
    async fn handle(&self, update: &ReceivedUpdate) -> Result<(), StoreError>;
}

/// Pauses of the receive loop.
#[derive(Debug, Clone)]
pub struct ReceivePauses {
    /// After a poll that failed; the last one repeats.
    pub retry: Vec<Duration>,
    /// Added to the length of a poll after another instance was noticed, so that the two do not oust each other for ever.
    pub conflict: Duration,
    /// After a failure of the store.
    pub store: Duration,
}

impl Default for ReceivePauses {
    fn default() -> Self {
        Self {
            retry: [1, 2, 5, 10, 30].map(Duration::from_secs).to_vec(),
            conflict: Duration::from_secs(5),
            store: Duration::from_secs(1),
        }
    }
}

/// Why the receive loop ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReceiveEnd {
    /// It was asked to.
    Stopped,
    /// Telegram does not accept the token.
    TokenRefused,
}

/// The receive loop.
#[derive(Debug)]
pub struct Receiver {
    /// Where updates come from.
    pub api: BotClient,
    /// Where they are kept.
    pub store: Store,
    /// What is done with them.
    pub handler: Arc<dyn UpdateHandler>,
    /// Spreads the pauses.
    pub chance: Arc<Chance>,
    /// Pauses.
    pub pauses: ReceivePauses,
}

impl Receiver {
    /// Handles what an earlier process left, then polls until `stop`.
    ///
    /// The update that is being handled when `stop` comes is finished; a poll is dropped, which acknowledges nothing.
    pub async fn run(self, stop: CancellationToken) -> ReceiveEnd {
        let mut backoff = Backoff::new(self.pauses.retry.clone(), 0.1);
        let mut hinted_conflict = false;
        let mut hinted_idle = false;
        let mut limit = POLLED;
        loop {
            self.handle_waiting(&stop).await;
            let Some(offset) = self.until_read(&stop).await else { return ReceiveEnd::Stopped };
            let began = Instant::now();
            let polled = tokio::select! {
                biased;
                () = stop.cancelled() => return ReceiveEnd::Stopped,
                polled = self.api.updates(offset, limit) => polled,
            };
            let pause = match polled {
                Ok(updates) => {
                    hinted_conflict = false;
                    limit = POLLED;
                    let is_worth_it = if updates.is_empty() {
                        began.elapsed() >= self.api.poll_length() / 2
                    } else {
                        self.keep(&updates, &stop).await
                    };
                    if is_worth_it {
                        backoff.reset();
                        hinted_idle = false;
                        continue;
                    }
                    // The same would come again at once, and again.
                    let pause = backoff.next(&self.chance);
                    if !std::mem::replace(&mut hinted_idle, true) {
                        tracing::warn!(
                            updates = updates.len(),
                            "the Bot API answers at once with nothing that can be used; it is asked less often"
                        );
                    }
                    pause
                }
                Err(error @ ApiError::TooLarge(_)) if limit > 1 => {
                    tracing::warn!(%error, "updates are asked for one by one");
                    limit = 1;
                    continue;
                }
                Err(ApiError::Token) => {
                    tracing::error!("Telegram does not accept the bot's token");
                    return ReceiveEnd::TokenRefused;
                }
                Err(ApiError::Conflict) => {
                    let pause = self.api.poll_length() + self.pauses.conflict;
                    if !std::mem::replace(&mut hinted_conflict, true) {
                        tracing::error!(
                            pause_s = pause.as_secs(),
                            "another instance polls with this bot's token: stop it, or give it a bot of its own"
                        );
                    }
                    pause
                }
                Err(ApiError::RateLimited(pause)) => pause,
                Err(error) => {
                    let pause = backoff.next(&self.chance);
                    tracing::warn!(%error, pause_ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX), "poll failed");
                    pause
                }
            };
            if is_stopped_within(pause, &stop).await {
                return ReceiveEnd::Stopped;
            }
        }
    }

    /// Reads the offset until the store gives it; `None` when asked to stop.
    async fn until_read(&self, stop: &CancellationToken) -> Option<Option<i64>> {
        loop {
            match self.store.telegram_offset().await {
                Ok(offset) => return Some(offset),
                Err(error) => tracing::error!(%error, "the update offset cannot be read"),
            }
            if is_stopped_within(self.pauses.store, stop).await {
                return None;
            }
        }
    }

    /// Keeps a batch, or gives up when asked to stop: then it comes again at the next start. Says whether there was
    /// anything new in it.
    async fn keep(&self, updates: &[Value], stop: &CancellationToken) -> bool {
        let with_ids: Vec<(i64, String)> = updates
            .iter()
            .filter_map(|update| {
                let id = update.get("update_id").and_then(Value::as_i64)?;
                Some((id, update.to_string()))
            })
            .collect();
        let dropped = updates.len() - with_ids.len();
        let Some(next) = with_ids.iter().map(|(id, _)| id.saturating_add(1)).max() else {
            return false;
        };
        if dropped > 0 {
            tracing::error!(dropped, "updates without an id were dropped");
        }
        loop {
            match self.store.record_updates(with_ids.clone(), next).await {
                Ok(new) => {
                    tracing::debug!(new, "updates received");
                    return new > 0;
                }
                Err(error) => tracing::error!(%error, "received updates cannot be kept"),
            }
            if is_stopped_within(self.pauses.store, stop).await {
                return false;
            }
        }
    }

    async fn handle_waiting(&self, stop: &CancellationToken) {
        loop {
            let waiting = match self.store.updates_to_handle(BATCH).await {
                Ok(waiting) if waiting.is_empty() => return,
                Ok(waiting) => waiting,
                Err(error) => {
                    tracing::error!(%error, "waiting updates cannot be read");
                    Vec::new()
                }
            };
            let mut failed = waiting.is_empty();
            for update in &waiting {
                if stop.is_cancelled() {
                    return;
                }
                if let Err(error) = self.handle(update).await {
                    tracing::error!(update.id = update.update_id, %error, "an update cannot be handled now");
                    failed = true;
                    break;
                }
            }
            if failed && is_stopped_within(self.pauses.store, stop).await {
                return;
            }
        }
    }

    /// Handles one update. One that makes the handler panic is put aside: it would do so for ever and block the rest.
    async fn handle(&self, update: &ReceivedUpdate) -> Result<(), StoreError> {
        let handled = AssertUnwindSafe(self.handler.handle(update)).catch_unwind().await;
        if let Ok(handled) = handled {
            return handled;
        }
        tracing::error!(
            update.id = update.update_id,
            "an update was put aside because it cannot be handled"
        );
        self.store.update_handled(update.update_id, None).await.map(drop)
    }
}

async fn is_stopped_within(pause: Duration, stop: &CancellationToken) -> bool {
    tokio::select! {
        biased;
        () = stop.cancelled() => true,
        () = tokio::time::sleep(pause) => false,
    }
}
