//! The client that reaches the network.

use std::{
    error::Error,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderValue, Request, Response, header};
use http_body_util::Full;
use hyper::ext::on_informational;
use tokio::sync::Notify;

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

/// How many interim answers may come before the answer; servers that use them send one or two.
const MAX_INTERIM: usize = 100;

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

#[async_trait]
impl Transport for NetClient {
    async fn send(
        &self,
        mut request: Request<Bytes>,
        kind: CallKind,
    ) -> Result<Response<NetBody>, NetError> {
        let asked = request.extensions_mut().remove::<GuardPolicy>().unwrap_or_default();
        let headers = request.headers_mut();
        headers
            .entry(header::USER_AGENT)
            .or_insert(HeaderValue::from_static(concat!("volcanic/", env!("CARGO_PKG_VERSION"))));
        headers.entry(header::ACCEPT_ENCODING).or_insert(HeaderValue::from_static("identity"));
        let pool = self.pool(self.policy.max(asked), kind);
        let mut request = request.map(Full::new);
        let too_many = watch_interim(&mut request);
        tokio::select! {
            biased;
            response = pool.send(request) => response,
            () = too_many.notified() => {
                let cause: Box<dyn Error + Send + Sync> = "too many interim answers".into();
                Err(NetError::Closed { source: cause.into() })
            }
        }
    }
}

/// Counts the interim answers to a request, as there may be any number of them; notified when there are too many.
fn watch_interim<B>(request: &mut Request<B>) -> Arc<Notify> {
    let (count, too_many) = (AtomicUsize::new(0), Arc::new(Notify::new()));
    let notify = Arc::clone(&too_many);
    on_informational(request, move |_| {
        if count.fetch_add(1, Ordering::Relaxed) == MAX_INTERIM {
            notify.notify_one();
        }
    });
    too_many
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
