//! From a URL to an open connection: resolve, check, connect, check again, TLS, all under one time limit.

use std::{
    error::Error,
    io,
    net::{IpAddr, SocketAddr},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures::{StreamExt as _, stream::FuturesUnordered};
use http::Uri;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;
use tower::Service;

use crate::{GuardPolicy, NetError};

/// An open connection.
pub(crate) type Dialed = MaybeHttpsStream<TokioIo<TcpStream>>;

type Opening<T> = Pin<Box<dyn Future<Output = Result<T, NetError>> + Send>>;

/// An idle connection is probed after this long, so that one that died on the way is noticed.
const KEEPALIVE_TIME: Duration = Duration::from_secs(30);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEPALIVE_PROBES: u32 = 3;

/// How connections are made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DialConfig {
    pub(crate) policy: GuardPolicy,
    /// For all of it: name, connection and TLS.
    pub(crate) timeout: Duration,
    /// How long an address may keep silent before the next one is tried beside it.
    pub(crate) address_delay: Duration,
}

/// Opens connections, with TLS for `https`. Every error of it is a [`NetError`].
#[derive(Debug, Clone)]
pub(crate) struct Dialer {
    https: HttpsConnector<TcpDialer>,
    timeout: Duration,
}

impl Dialer {
    pub(crate) fn new(config: DialConfig, tls: ClientConfig) -> Self {
        let https = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_all_versions()
            .wrap_connector(TcpDialer { config });
        Self { https, timeout: config.timeout }
    }
}

impl Service<Uri> for Dialer {
    type Response = Dialed;
    type Error = NetError;
    type Future = Opening<Self::Response>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), NetError>> {
        // The dialer below is always ready.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let host = match target(&uri) {
            Ok((host, port)) => label(host, port),
            Err(error) => return Box::pin(async { Err(error) }),
        };
        let opening = self.https.call(uri);
        let timeout = self.timeout;
        Box::pin(async move {
            match tokio::time::timeout(timeout, opening).await {
                Ok(Ok(stream)) => Ok(stream),
                Ok(Err(error)) => Err(own_error(error, host)),
                Err(_) => Err(NetError::Timeout { host }),
            }
        })
    }
}

/// What is not ours comes from the TLS layer.
fn own_error(error: Box<dyn Error + Send + Sync>, host: String) -> NetError {
    match error.downcast::<NetError>() {
        Ok(own) => *own,
        Err(tls) => NetError::Tls { host, source: Arc::from(tls) },
    }
}

/// Opens plain TCP connections.
#[derive(Debug, Clone)]
struct TcpDialer {
    config: DialConfig,
}

impl Service<Uri> for TcpDialer {
    type Response = TokioIo<TcpStream>;
    type Error = NetError;
    type Future = Opening<Self::Response>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), NetError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let config = self.config;
        Box::pin(async move {
            let (host, port) = target(&uri)?;
            let addresses = resolve(host, port, config.policy).await?;
            let stream = connect_any(addresses, &label(host, port), config.address_delay).await?;
            vet(&stream, &label(host, port), config.policy)?;
            Ok(TokioIo::new(stream))
        })
    }
}

/// Host, without the brackets of an IPv6 address, and port.
fn target(uri: &Uri) -> Result<(&str, u16), NetError> {
    let default = match uri.scheme_str() {
        Some("http") => 80,
        Some("https") => 443,
        Some(_) | None => {
            return Err(NetError::Unusable { reason: "the scheme is not http or https" });
        }
    };
    let host = uri.host().unwrap_or_default();
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    if host.is_empty() {
        return Err(NetError::Unusable { reason: "the url has no host" });
    }
    Ok((host, uri.port_u16().unwrap_or(default)))
}

fn label(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

/// Looks the addresses up, once: what was checked is what is connected to.
async fn resolve(host: &str, port: u16, policy: GuardPolicy) -> Result<Vec<SocketAddr>, NetError> {
    let label = label(host, port);
    if !policy.admits_host(host) {
        return Err(NetError::Refused { host: label, address: None });
    }
    if let Ok(address) = host.parse::<IpAddr>() {
        return admit(vec![SocketAddr::new(address, port)], &label, policy);
    }
    match tokio::net::lookup_host((host, port)).await {
        Ok(found) => admit(found.collect(), &label, policy),
        Err(source) => Err(NetError::Resolve { host: label, source: Arc::new(source) }),
    }
}

/// All addresses or none: a name that has both kinds is an attack or a mistake.
fn admit(
    addresses: Vec<SocketAddr>,
    host: &str,
    policy: GuardPolicy,
) -> Result<Vec<SocketAddr>, NetError> {
    match addresses.iter().find(|address| !policy.admits(address.ip())) {
        Some(bad) => Err(NetError::Refused { host: host.to_owned(), address: Some(bad.ip()) }),
        None => Ok(addresses),
    }
}

/// Tries the addresses in order. One that is refused gives way at once; one that keeps silent is not given up, but the
/// next is tried beside it. The first connection wins.
async fn connect_any(
    addresses: Vec<SocketAddr>,
    host: &str,
    address_delay: Duration,
) -> Result<TcpStream, NetError> {
    let mut waiting = addresses.into_iter();
    let mut attempts = FuturesUnordered::new();
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no addresses");
    loop {
        attempts.extend(waiting.next().map(TcpStream::connect));
        let more = waiting.len() > 0;
        tokio::select! {
            biased;
            done = attempts.next() => match done {
                Some(Ok(stream)) => return Ok(stream),
                Some(Err(error)) => last = error,
                None => {
                    return Err(NetError::Connect { host: host.to_owned(), source: Arc::new(last) });
                }
            },
            () = tokio::time::sleep(address_delay), if more => {}
        }
    }
}

/// Checks whom the socket is really connected to, before a byte is sent, and sets it up.
fn vet(stream: &TcpStream, host: &str, policy: GuardPolicy) -> Result<(), NetError> {
    let failed = |source| NetError::Connect { host: host.to_owned(), source: Arc::new(source) };
    let peer = stream.peer_addr().map_err(failed)?.ip();
    if !policy.admits(peer) {
        return Err(NetError::Refused { host: host.to_owned(), address: Some(peer) });
    }
    stream.set_nodelay(true).map_err(failed)?;
    let keepalive = TcpKeepalive::new()
        .with_time(KEEPALIVE_TIME)
        .with_interval(KEEPALIVE_INTERVAL)
        .with_retries(KEEPALIVE_PROBES);
    SockRef::from(stream).set_tcp_keepalive(&keepalive).map_err(failed)
}

#[cfg(test)]
mod tests;
