//! The listener that agents push to while a chat runs.

use std::sync::Arc;

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use url::Url;
use volcanic_a2a_server::{push_router, serve};
use volcanic_a2a_watch::WatchHandle;
use volcanic_base::with_causes;
use volcanic_host::{ServerSettings, WatchPushes, open_listener};

/// A listener, and how others reach it.
#[derive(Debug)]
pub(crate) struct PushListener {
    listener: TcpListener,
    pub(crate) base: Url,
}

impl PushListener {
    /// Opens it, if others can reach it. One that cannot be opened is no reason not to chat: agents are asked instead.
    pub(crate) async fn open(
        settings: &ServerSettings,
        greeting: &mut Vec<String>,
    ) -> Option<Self> {
        let base = settings.public_url.clone()?;
        match open_listener(settings.listen).await {
            Ok(listener) => Some(Self { listener, base }),
            Err(error) => {
                let reason = with_causes(&error);
                greeting.push(format!("Agents cannot push, so they are asked: {reason}."));
                None
            }
        }
    }
}

/// Hands pushes to the watches until `cancel`.
pub(crate) async fn take_pushes(
    PushListener { listener, .. }: PushListener,
    watches: WatchHandle,
    cancel: CancellationToken,
) {
    let routes = push_router(Arc::new(WatchPushes::new(watches)));
    let end = serve(listener, routes, cancel).await;
    tracing::info!(dropped = end.dropped, "listener closed");
}
