//! The half that others call, as far as there is one: where it listens, and the way of pushes to watches.

use std::net::SocketAddr;

use async_trait::async_trait;
use tokio::net::TcpListener;
use url::Url;
use volcanic_a2a_server::PushReceiver;
use volcanic_a2a_watch::WatchHandle;

/// Settings of the A2A server half.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerSettings {
    /// How others reach this assistant; nobody pushes without it.
    pub public_url: Option<Url>,
    /// Where it listens.
    pub listen: SocketAddr,
}

/// Hands pushes to the watches.
#[derive(Debug)]
pub struct WatchPushes {
    watches: WatchHandle,
}

impl WatchPushes {
    /// For these watches.
    pub fn new(watches: WatchHandle) -> Self {
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
pub struct ListenError {
    address: SocketAddr,
    #[source]
    source: std::io::Error,
}

/// Opens the listener.
///
/// # Errors
/// [`ListenError`], which names the address.
pub async fn open_listener(address: SocketAddr) -> Result<TcpListener, ListenError> {
    TcpListener::bind(address).await.map_err(|source| ListenError { address, source })
}
