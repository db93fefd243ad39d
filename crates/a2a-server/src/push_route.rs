//! Where remote agents push to: the inbound half of push notifications.

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use axum::{
    Router,
    body::{Body, Bytes, to_bytes},
    extract::{Path, State},
    routing::post,
};
use http::{HeaderMap, StatusCode};
use volcanic_a2a_types::NOTIFICATION_TOKEN_HEADER;

use crate::caller::bearer_token;

/// The most a push may weigh. Its content is never trusted, so nothing large is needed.
const MAX_PUSH_BODY: usize = 64 << 10;
/// How long that little may take to arrive. Anybody may call this route, so nobody may hold a connection with it.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// Headers that carry the token of a push configuration; agents differ.
const TOKEN_HEADERS: [&str; 2] = [NOTIFICATION_TOKEN_HEADER, "A2A-Notification-Token"];

/// Takes pushes for the watches of this process.
#[async_trait]
pub trait PushReceiver: Send + Sync + fmt::Debug {
    /// Says whether `token` fits the watch, and if so takes note that its task should be looked at. It must return
    /// quickly, compare in constant time, and treat `body` as a hint from a stranger.
    async fn on_push(&self, watch_id: &str, token: &str, body: &[u8]) -> bool;
}

/// Builds the route `POST /a2a/push/{watchId}`.
///
/// A push that was taken is answered with 202; an unknown watch, a wrong token and a missing one are all 404. One with a body
/// that is too large or too slow is answered with 413 or 408, and is a hint all the same, without its body.
pub fn push_router(receiver: Arc<dyn PushReceiver>) -> Router {
    Router::new().route("/a2a/push/{watch_id}", post(receive)).with_state(receiver)
}

async fn receive(
    State(receiver): State<Arc<dyn PushReceiver>>,
    Path(watch_id): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> StatusCode {
    let Some(token) = token(&headers) else { return StatusCode::NOT_FOUND };
    let read = tokio::time::timeout(BODY_TIMEOUT, to_bytes(body, MAX_PUSH_BODY)).await;
    let (body, refusal) = match read {
        Ok(Ok(body)) => (body, None),
        Ok(Err(_)) => (Bytes::new(), Some(StatusCode::PAYLOAD_TOO_LARGE)),
        Err(_) => (Bytes::new(), Some(StatusCode::REQUEST_TIMEOUT)),
    };
    // Whoever sends the whole task with its files gives the same hint, and may not try again with less.
    let is_taken = receiver.on_push(&watch_id, token, &body).await;
    refusal.unwrap_or(if is_taken { StatusCode::ACCEPTED } else { StatusCode::NOT_FOUND })
}

fn token(headers: &HeaderMap) -> Option<&str> {
    let named = TOKEN_HEADERS.iter().filter_map(|name| headers.get(*name));
    let named = named.map(http::HeaderValue::as_bytes).find(|value| !value.is_empty());
    std::str::from_utf8(named.or_else(|| bearer_token(headers))?).ok()
}
