//! Nothing can be written, an answer as little as a question: another program holds the lock of the state, or the disk is
//! full. People are told past the outbox, once for each such time.

use std::{sync::Arc, time::Duration};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::api::{ApiError, BotClient};
use crate::markdown::FormattedText;

/// What they are told of a lock.
const HELD: &str = "Another program on my machine holds the lock of my state.db (a backup, or a database shell). I cannot \
    take anything on until it lets go; then I go on by myself. What you write meanwhile is not lost.";

/// How long a disk is in trouble before that is told: what passes in a moment is tried again anyway.
const PATIENCE: Duration = Duration::from_secs(2);

/// Between attempts at those who could not be told.
const RETRY: Duration = Duration::from_secs(10);

/// Tells the people of `chats` whenever `held` says that such a time has begun, until `stop`.
pub(crate) async fn tell_held(
    held: watch::Receiver<bool>,
    api: BotClient,
    chats: Vec<i64>,
    stop: CancellationToken,
) {
    let text = |held: &bool| held.then(|| HELD.to_owned());
    until(stop, tell_times(held, text, Duration::ZERO, &api, &chats)).await;
}

/// The same of a disk that takes nothing.
pub(crate) async fn tell_unwritable(
    unwritable: watch::Receiver<Option<Arc<str>>>,
    api: BotClient,
    chats: Vec<i64>,
    stop: CancellationToken,
) {
    let text = |reason: &Option<Arc<str>>| {
        reason.as_deref().map(|reason| {
            format!(
                "My state cannot be written ({reason}). What I cannot take on until that is mended is not lost: I go on by \
                 myself then."
            )
        })
    };
    until(stop, tell_times(unwritable, text, PATIENCE, &api, &chats)).await;
}

async fn until(stop: CancellationToken, work: impl Future<Output = ()>) {
    tokio::select! {
        biased;
        () = stop.cancelled() => {}
        () = work => {}
    }
}

/// Tells once for each time in which `text_of` has something to tell, if that time lasts.
async fn tell_times<T>(
    mut state: watch::Receiver<T>,
    text_of: impl Fn(&T) -> Option<String>,
    patience: Duration,
    api: &BotClient,
    chats: &[i64],
) {
    loop {
        // An error says that there is no store any more.
        let Ok(begun) =
            state.wait_for(|state| text_of(state).is_some()).await.map(|state| text_of(&state))
        else {
            return;
        };
        let telling = async {
            tokio::time::sleep(patience).await;
            tell(api, chats, &begun.unwrap_or_default()).await;
        };
        let over = async { state.wait_for(|state| text_of(state).is_none()).await.is_ok() };
        tokio::pin!(over);
        // It may be over while it is told.
        let is_over = tokio::select! {
            biased;
            is_over = &mut over => is_over,
            () = telling => over.await,
        };
        if !is_over {
            return;
        }
    }
}

async fn tell(api: &BotClient, chats: &[i64], text: &str) {
    let text = FormattedText::plain(text);
    let mut left = chats.to_vec();
    loop {
        let mut pause = RETRY;
        let mut failed = Vec::new();
        for chat in left {
            let Err(error) = api.send_text(chat, &text, None).await else { continue };
            tracing::warn!(chat.id = chat, %error, "it could not be told that nothing can be written");
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
