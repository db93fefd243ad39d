//! The listener that agents push to.

use std::net::SocketAddr;

use async_trait::async_trait;
use tokio::net::TcpListener;
use volcanic_a2a_server::PushReceiver;
use volcanic_a2a_watch::WatchHandle;

/// Hands pushes to the watches.
#[derive(Debug)]
pub(crate) struct WatchPushes {
    watches: WatchHandle,
}

impl WatchPushes {
    /// For these watches.
    pub(crate) fn new(watches: WatchHandle) -> Self {
        Self { watches }
    }
}

#[async_trait]
impl PushReceiver for WatchPushes {
    async fn on_push(&self, watch_id: &str, token: &str, body: &[u8]) -> bool {
        self.watches.on_push(watch_id, token, body).await
    }
}

/// An error while the listener is opened.
#[derive(Debug, thiserror::Error)]
#[error("failed to listen on {address} (A2A__Listen)")]
pub(crate) struct ListenError {
    address: SocketAddr,
    #[source]
    source: std::io::Error,
}

/// Opens the listener.
///
/// # Errors
/// [`ListenError`], which names the address.
pub(crate) async fn open_listener(address: SocketAddr) -> Result<TcpListener, ListenError> {
    TcpListener::bind(address).await.map_err(|source| ListenError { address, source })
}
