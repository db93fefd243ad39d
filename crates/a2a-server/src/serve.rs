//! Connections: a listener, a router, and an orderly end.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::Router;
use http::{HeaderValue, Request, header};
use hyper::service::{Service as _, service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

/// A connection over HTTP/2 is asked this often whether anybody is still there, and given up after so long a silence.
const PING_INTERVAL: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(15);

/// How a listener treats its connections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServeConfig {
    /// Connections at a time; more wait in the listener's backlog.
    pub max_connections: usize,
    /// How long a request's head may take.
    pub header_timeout: Duration,
    /// Streams one HTTP/2 connection may hold.
    pub max_streams: u32,
    /// How long open requests may take to end after the stop was asked for.
    pub grace: Duration,
    /// The pause after the listener failed to accept, for example for want of descriptors.
    pub accept_pause: Duration,
}

impl Default for ServeConfig {
    fn default() -> Self {
        Self {
            max_connections: 1024,
            header_timeout: Duration::from_secs(15),
            max_streams: 128,
            grace: Duration::from_secs(5),
            accept_pause: Duration::from_millis(200),
        }
    }
}

/// How serving ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServeEnd {
    /// Connections that did not end within the grace period and were dropped.
    pub dropped: usize,
}

/// Serves `router` with [`ServeConfig::default`] until `cancel`; see [`serve_with`].
pub async fn serve(listener: TcpListener, router: Router, cancel: CancellationToken) -> ServeEnd {
    serve_with(ServeConfig::default(), listener, router, cancel).await
}

/// Serves `router` over HTTP/1.1 and HTTP/2 until `cancel`.
///
/// Then no connection is accepted any more, idle ones close, and requests that are under way may end within the grace
/// period. Streams must watch the same token to end in time.
pub async fn serve_with(
    config: ServeConfig,
    listener: TcpListener,
    router: Router,
    cancel: CancellationToken,
) -> ServeEnd {
    let places = Arc::new(Semaphore::new(config.max_connections));
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            () = cancel.cancelled() => break,
            Some(ended) = connections.join_next() => log_end(ended),
            (accepted, place) = accept(&listener, &places) => match accepted {
                Ok((stream, peer)) => {
                    connections.spawn(connection(
                        config.clone(), stream, peer, router.clone(), place, cancel.clone(),
                    ));
                }
                Err(error) => {
                    tracing::warn!(%error, "failed to accept a connection");
                    tokio::time::sleep(config.accept_pause).await;
                }
            },
        }
    }
    drop(listener);
    drain(connections, config.grace).await
}

/// Waits for a free place first, so that connections beyond the limit stay in the backlog.
async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> (std::io::Result<(TcpStream, SocketAddr)>, Option<OwnedSemaphorePermit>) {
    // The semaphore is never closed; without a permit the connection would merely go uncounted.
    let place = Arc::clone(places).acquire_owned().await.ok();
    (listener.accept().await, place)
}

async fn connection(
    config: ServeConfig,
    stream: TcpStream,
    peer: SocketAddr,
    router: Router,
    _place: Option<OwnedSemaphorePermit>,
    cancel: CancellationToken,
) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, %peer, "failed to set nodelay");
    }
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(config.header_timeout);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(config.max_streams)
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_TIMEOUT);
    let began = CancellationToken::new();
    let routes = TowerToHyperService::new(router);
    let service = {
        let began = began.clone();
        service_fn(move |request| {
            began.cancel();
            routes.call(with_host(request))
        })
    };
    let serving = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(serving);
    let ended = tokio::select! {
        biased;
        ended = serving.as_mut() => ended,
        () = cancel.cancelled() => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
        () = silence(&began, config.header_timeout) => return,
    };
    if let Err(error) = ended {
        tracing::debug!(%error, %peer, "connection ended");
    }
}

/// HTTP/2 names the host in the URI. Routes look for it in one place.
fn with_host<B>(mut request: Request<B>) -> Request<B> {
    let authority =
        request.uri().authority().and_then(|at| HeaderValue::from_str(at.as_str()).ok());
    if let Some(host) = authority {
        request.headers_mut().insert(header::HOST, host);
    }
    request
}

/// Completes if no request has begun by then. The builder tells HTTP/1 from HTTP/2 by the first bytes, and has no limit
/// of its own on how long those may take.
async fn silence(began: &CancellationToken, limit: Duration) {
    if tokio::time::timeout(limit, began.cancelled()).await.is_ok() {
        std::future::pending::<()>().await;
    }
}

async fn drain(mut connections: JoinSet<()>, grace: Duration) -> ServeEnd {
    let all = async {
        while let Some(ended) = connections.join_next().await {
            log_end(ended);
        }
    };
    if tokio::time::timeout(grace, all).await.is_ok() {
        return ServeEnd { dropped: 0 };
    }
    let dropped = connections.len();
    tracing::warn!(dropped, "connections did not end in time");
    connections.shutdown().await;
    ServeEnd { dropped }
}

fn log_end(ended: Result<(), tokio::task::JoinError>) {
    // The text of a panic may hold whatever was at hand, so it is shown nowhere.
    if let Err(error) = ended {
        tracing::error!(panicked = error.is_panic(), "connection task failed");
    }
}
