//! The client that reaches the network.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};

use crate::{
    CallKind, GuardPolicy, NetBody, NetError, RootCertificates, Transport,
    connector::{DialConfig, Dialer},
    pool::{Pool, PoolConfig},
};

/// How a [`NetClient`] reaches out.
#[derive(Debug, Clone)]
pub struct NetConfig {
    /// Where requests may go. A single request can be stricter, never laxer.
    pub policy: GuardPolicy,
    /// How long resolving, connecting and TLS may take together.
    pub connect_timeout: Duration,
    /// How long an address may keep silent before the next address of the same host is tried beside it.
    pub address_delay: Duration,
    /// How long an unused connection is kept. Many servers close theirs after five seconds; being earlier avoids
    /// sending into one that is just closing, which would leave the fate of the request unknown.
    pub idle_timeout: Duration,
    /// How often an HTTP/2 connection in use is pinged, so that one that died on the way is noticed.
    pub ping_interval: Duration,
    /// How long the answer to such a ping may take before the connection is given up.
    pub ping_timeout: Duration,
    /// The certificates that servers are checked against.
    pub roots: RootCertificates,
}

impl Default for NetConfig {
    fn default() -> Self {
        Self {
            policy: GuardPolicy::Open,
            connect_timeout: Duration::from_secs(10),
            address_delay: Duration::from_millis(300),
            idle_timeout: Duration::from_secs(4),
            ping_interval: Duration::from_secs(30),
            ping_timeout: Duration::from_secs(15),
            roots: RootCertificates::System,
        }
    }
}

/// The client that reaches the network. Clones share connections.
#[derive(Debug, Clone)]
pub struct NetClient {
    policy: GuardPolicy,
    open: Pools,
    public_only: Pools,
}

/// Connections of one policy. They are never shared between policies: one that was opened freely must not serve a
/// request that is guarded.
#[derive(Debug, Clone)]
struct Pools {
    calls: Pool,
    streams: Pool,
}

impl NetClient {
    /// Creates a client; nothing is connected yet.
    ///
    /// # Errors
    ///
    /// [`NetError::Certificates`] if the configured certificates cannot be used.
    #[expect(clippy::needless_pass_by_value, reason = "a config is built in place and given away")]
    pub fn new(config: NetConfig) -> Result<Self, NetError> {
        let NetConfig { policy, .. } = config;
        let tls = config.roots.tls_config()?;
        let pools = |policy| Pools::new(&config, policy, &tls);
        Ok(Self {
            policy,
            open: pools(GuardPolicy::Open),
            public_only: pools(GuardPolicy::PublicOnly),
        })
    }

    fn pool(&self, policy: GuardPolicy, kind: CallKind) -> &Pool {
        let pools = match policy {
            GuardPolicy::Open => &self.open,
            GuardPolicy::PublicOnly => &self.public_only,
        };
        match kind {
            CallKind::Call => &pools.calls,
            CallKind::Stream => &pools.streams,
        }
    }
}

impl Pools {
    fn new(config: &NetConfig, policy: GuardPolicy, tls: &rustls::ClientConfig) -> Self {
        let dial = DialConfig {
            policy,
            timeout: config.connect_timeout,
            address_delay: config.address_delay,
        };
        let keep = PoolConfig {
            idle_timeout: config.idle_timeout,
            ping_interval: config.ping_interval,
            ping_timeout: config.ping_timeout,
        };
        let pool = || Pool::new(Dialer::new(dial, tls.clone()), keep);
        Self { calls: pool(), streams: pool() }
    }
}

impl Transport for NetClient {
    // As the macro would have it, but for its second place for the request, which would make each call's box too large to
    // be quick.
    fn send<'s, 'f>(
        &'s self,
        request: Request<Bytes>,
        kind: CallKind,
    ) -> BoxFuture<'f, Result<Response<NetBody>, NetError>>
    where
        's: 'f,
    {
        let asked = request.extensions().get::<GuardPolicy>().copied().unwrap_or_default();
        let pool = self.pool(self.policy.max(asked), kind);
        Box::pin(async move { pool.send(&request).await })
    }
}

/// A shared client is a transport too.
#[async_trait]
impl<T: Transport + ?Sized> Transport for Arc<T> {
    async fn send(
        &self,
        request: Request<Bytes>,
        kind: CallKind,
    ) -> Result<Response<NetBody>, NetError> {
        (**self).send(request, kind).await
    }
}
