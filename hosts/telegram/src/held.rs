//! Another program holds the lock of the state, so nothing can be written, an answer as little as a question: people are
//! told past the outbox, once for each such time.

use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::api::{ApiError, BotClient};
use crate::markdown::FormattedText;

/// What they are told.
const HELD: &str = "Another program on my machine holds the lock of my state.db (a backup, or a database shell). I cannot \
    take anything on until it lets go; then I go on by myself. What you write meanwhile is not lost.";

/// Between attempts at those who could not be told.
const RETRY: Duration = Duration::from_secs(10);

/// Tells the people of `chats` whenever `held` says that such a time has begun, until `stop`.
pub(crate) async fn tell_held(
    mut held: watch::Receiver<bool>,
    api: BotClient,
    chats: Vec<i64>,
    stop: CancellationToken,
) {
    let work = async {
        // An error says that there is no store any more.
        while held.wait_for(|held| *held).await.is_ok() {
            let over = async { held.wait_for(|held| !*held).await.is_ok() };
            tokio::pin!(over);
            // It may be over while it is told.
            let is_over = tokio::select! {
                biased;
                is_over = &mut over => is_over,
                () = tell(&api, &chats) => over.await,
            };
            if !is_over {
                return;
            }
        }
    };
    tokio::select! {
        biased;
        () = stop.cancelled() => {}
        () = work => {}
    }
}

async fn tell(api: &BotClient, chats: &[i64]) {
    let text = FormattedText::plain(HELD);
    let mut left = chats.to_vec();
    loop {
        let mut pause = RETRY;
        let mut failed = Vec::new();
        for chat in left {
            let Err(error) = api.send_text(chat, &text, None).await else { continue };
            tracing::warn!(chat.id = chat, %error, "it could not be told that the state is locked");
            match error {
                ApiError::RateLimited(asked) => {
                    pause = pause.max(asked);
                    failed.push(chat);
                }
                ApiError::NotReached(_) => failed.push(chat),
                // It may have arrived, or never will.
                _ => {}
            }
        }
        if failed.is_empty() {
            return;
        }
        left = failed;
        tokio::time::sleep(pause).await;
    }
}
