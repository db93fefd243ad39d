//! Connections to hosts: opened when needed, and used again while they are good.
//!
//! An HTTP/1 connection has no task of its own. It is driven by whoever waits for the answer, in the same task: handing
//! each piece of an answer from one task to another took as long as reading it. It follows that an exchange that is
//! given up closes its connection, and that nobody watches a connection that lies idle: it is looked at before it is used
//! again, and closed after a while. An HTTP/2 connection carries many exchanges, so it has a task.

use std::{
    collections::HashMap,
    fmt,
    future::poll_fn,
    hash::{Hash, Hasher},
    pin::{Pin, pin},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use bytes::Bytes;
use http::{
    HeaderValue, Request, Response, Uri,
    header::{Entry, HOST},
    uri::{Authority, PathAndQuery, Scheme},
};
use http_body_util::Full;
use hyper::{
    body::Incoming,
    client::conn::{TrySendError, http1, http2},
};
use hyper_util::{
    client::legacy::connect::Connection as _,
    rt::{TokioExecutor, TokioTimer},
};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep_until},
};
use tower::Service as _;

use crate::{
    NetBody, NetError,
    connector::{Dialed, Dialer},
};

mod answer;
mod quiet;

use answer::Answer;
use quiet::Quiet;

/// How many idle connections to one host are kept; what comes back beyond that is closed. A burst of calls should find
/// them all again, and a host does not hold more of our sockets than that.
const MAX_IDLE: usize = 128;

type Body = Full<Bytes>;

/// Connections of one policy and one kind of exchange. Clones share them.
#[derive(Clone)]
pub(crate) struct Pool {
    dialer: Dialer,
    multiplex: http2::Builder<TokioExecutor>,
    shelf: Arc<Shelf>,
}

/// How long connections are kept, and how their life is checked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PoolConfig {
    pub(crate) idle_timeout: Duration,
    pub(crate) ping_interval: Duration,
    pub(crate) ping_timeout: Duration,
}

/// Whom a connection leads to.
#[derive(Clone, Eq)]
struct Place(Scheme, Authority);

/// Places are compared as they are written. Authorities fold case, character by character, which took longer than the rest
/// of finding a connection; in URLs hosts are in lower case, and one that is not is a place of its own.
impl PartialEq for Place {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0 && self.1.as_str() == other.1.as_str()
    }
}

impl Hash for Place {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write(self.1.as_str().as_bytes());
        state.write_u8(u8::from(self.0 == Scheme::HTTPS));
    }
}

/// An HTTP/1 connection: how to ask, and what must be polled for anything to happen.
struct Line {
    sender: http1::SendRequest<Body>,
    connection: Open,
    /// Wakes whoever waits for either.
    quiet: Quiet,
    /// What requests say in `Host`; `None` if that cannot be said.
    host: Option<HeaderValue>,
}

/// Boxed, since it is large and changes hands with each call.
type Open = Box<http1::Connection<Dialed, Body>>;

/// A way to send one request.
enum Way {
    Alone(Line),
    Shared(http2::SendRequest<Body>),
}

/// Connections that wait to be used again.
struct Shelf {
    idle_timeout: Duration,
    places: Mutex<HashMap<Place, Kept>>,
    /// The tasks of HTTP/2 connections, and the one that throws old connections away. They end with the pool.
    tasks: Mutex<JoinSet<()>>,
}

/// What is kept for one host.
#[derive(Default)]
struct Kept {
    /// The one that came back last is at the end, and is used first.
    idle: Vec<(Instant, Line)>,
    /// Since when it was not asked for again, and how to use it.
    shared: Option<(Instant, http2::SendRequest<Body>)>,
}

impl Pool {
    pub(crate) fn new(dialer: Dialer, config: PoolConfig) -> Self {
        let mut multiplex = http2::Builder::new(TokioExecutor::new());
        multiplex
            .timer(TokioTimer::new())
            .keep_alive_interval(config.ping_interval)
            .keep_alive_timeout(config.ping_timeout);
        let shelf = Shelf {
            idle_timeout: config.idle_timeout,
            places: Mutex::default(),
            tasks: Mutex::default(),
        };
        Self { dialer, multiplex, shelf: Arc::new(shelf) }
    }

    /// Sends a request and waits for the head of the answer. A kept connection that turns out to be closed before
    /// anything of the request was written makes room for the next one.
    pub(crate) async fn send(&self, request: Request<Body>) -> Result<Response<NetBody>, NetError> {
        let uri = request.uri().clone();
        let place = match (uri.scheme(), uri.authority()) {
            (Some(scheme), Some(authority)) => Place(scheme.clone(), authority.clone()),
            (_, None) | (None, _) => {
                return Err(NetError::Unusable { reason: "the url is not absolute" });
            }
        };
        let mut request = request;
        while let Some(way) = self.shelf.take(&place) {
            match self.send_over(way, request, &uri, &place).await {
                Ok(response) => return Ok(response),
                Err(mut failed) => match failed.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(NetError::closed(failed.into_error())),
                },
            }
        }
        // Boxed, since it is large and rare: every call would carry the room for it.
        let way = Box::pin(self.dial(&uri, &place)).await?;
        self.send_over(way, request, &uri, &place)
            .await
            .map_err(|failed| NetError::closed(failed.into_error()))
    }

    async fn send_over(
        &self,
        way: Way,
        mut request: Request<Body>,
        uri: &Uri,
        place: &Place,
    ) -> Result<Response<NetBody>, TrySendError<Request<Body>>> {
        match way {
            Way::Shared(mut sender) => {
                *request.uri_mut() = uri.clone();
                Ok(sender.try_send_request(request).await?.map(NetBody::new))
            }
            Way::Alone(line) => {
                address(&mut request, uri, line.host.as_ref());
                let (response, line) = line.exchange(request).await?;
                let home = (Arc::clone(&self.shelf), place.clone());
                Ok(response.map(|incoming| NetBody::new(Answer::new(incoming, line, home))))
            }
        }
    }

    async fn dial(&self, uri: &Uri, place: &Place) -> Result<Way, NetError> {
        tracing::debug!(host = place.1.host(), "connecting");
        let stream = self.dialer.clone().call(uri.clone()).await?;
        if !stream.connected().is_negotiated_h2() {
            let (sender, connection) =
                http1::Builder::new().handshake(stream).await.map_err(NetError::closed)?;
            let connection = Box::new(connection);
            let line = Line { sender, connection, quiet: Quiet::default(), host: host_of(uri) };
            return Ok(Way::Alone(line));
        }
        let (sender, connection) =
            self.multiplex.handshake(stream).await.map_err(NetError::closed)?;
        self.shelf.spawn(async move {
            // How it ended, whoever uses it is told.
            let _ = connection.await;
        });
        Ok(Way::Shared(self.shelf.share(place, sender)))
    }
}

/// Writes the target as HTTP/1 wants it: the path, and the host in a header of its own.
fn address(request: &mut Request<Body>, uri: &Uri, host: Option<&HeaderValue>) {
    let path = uri.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
    *request.uri_mut() = path.into();
    if let (Entry::Vacant(place), Some(host)) = (request.headers_mut().entry(HOST), host) {
        place.insert(host.clone());
    }
}

/// The host as a header names it: with the port, unless that goes without saying.
fn host_of(uri: &Uri) -> Option<HeaderValue> {
    let host = uri.host().unwrap_or_default();
    let default = if uri.scheme() == Some(&Scheme::HTTPS) { 443 } else { 80 };
    match uri.port_u16() {
        Some(port) if port != default => HeaderValue::try_from(format!("{host}:{port}")).ok(),
        Some(_) | None => HeaderValue::from_str(host).ok(),
    }
}

impl Line {
    /// Sends a request and drives the connection until the head of the answer is there. `None` in place of the line if
    /// the connection has ended by then.
    async fn exchange(
        self,
        request: Request<Body>,
    ) -> Result<(Response<Incoming>, Option<Self>), TrySendError<Request<Body>>> {
        let Self { mut sender, connection, quiet, host } = self;
        let mut connection = Some(connection);
        let mut response = pin!(sender.try_send_request(request));
        let response = poll_fn(|context| {
            quiet.poll(context, |context| {
                // How it ended, the answer knows too.
                connection.take_if(|open| Pin::new(open).poll(context).is_ready());
                response.as_mut().poll(context)
            })
        })
        .await?;
        Ok((response, connection.map(|connection| Self { sender, connection, quiet, host })))
    }

    /// Lets the connection notice what has happened to it, and says whether it can be used.
    fn is_usable(&mut self) -> bool {
        let open = &mut self.connection;
        let is_open = self.quiet.look(|context| Pin::new(open).poll(context)).is_pending();
        is_open && self.sender.is_ready()
    }
}

impl Shelf {
    /// Takes a kept connection that can be used.
    fn take(&self, place: &Place) -> Option<Way> {
        loop {
            let mut line = {
                let mut places = self.places();
                let kept = places.get_mut(place)?;
                if let Some((used_at, sender)) = &mut kept.shared {
                    if sender.is_ready() {
                        *used_at = Instant::now();
                        return Some(Way::Shared(sender.clone()));
                    }
                    kept.shared = None;
                }
                let (idle_since, line) = kept.idle.pop()?;
                if idle_since.elapsed() >= self.idle_timeout {
                    // So are all before it.
                    kept.idle.clear();
                    return None;
                }
                line
            };
            if line.is_usable() {
                return Some(Way::Alone(line));
            }
        }
    }

    /// Keeps a connection whose exchange is over.
    fn put_back(self: &Arc<Self>, place: &Place, line: Line) {
        let mut places = self.places();
        let is_first = places.is_empty();
        let kept = places.entry(place.clone()).or_default();
        if kept.idle.len() < MAX_IDLE {
            kept.idle.push((Instant::now(), line));
        }
        drop(places);
        if is_first {
            self.clean_up_from_now_on();
        }
    }

    /// Keeps an HTTP/2 connection for all to use, unless another was opened meanwhile; returns the one that is kept.
    fn share(
        self: &Arc<Self>,
        place: &Place,
        sender: http2::SendRequest<Body>,
    ) -> http2::SendRequest<Body> {
        let mut places = self.places();
        let is_first = places.is_empty();
        let kept = places.entry(place.clone()).or_default();
        let sender = match kept.shared.take() {
            Some((_, other)) if other.is_ready() => other,
            Some(_) | None => sender,
        };
        kept.shared = Some((Instant::now(), sender.clone()));
        drop(places);
        if is_first {
            self.clean_up_from_now_on();
        }
        sender
    }

    /// Throws connections away that were idle for too long, until there are none left.
    fn clean_up_from_now_on(self: &Arc<Self>) {
        let shelf = Arc::downgrade(self);
        let first = Instant::now() + self.idle_timeout;
        self.spawn(async move {
            let mut next = first;
            loop {
                sleep_until(next).await;
                match Weak::upgrade(&shelf).and_then(|shelf| shelf.drop_old()) {
                    Some(at) => next = at,
                    None => return,
                }
            }
        });
    }

    /// Drops what is too old and says when the next one will be; `None` if nothing is left.
    fn drop_old(&self) -> Option<Instant> {
        let mut places = self.places();
        let is_old = |at: Instant| at.elapsed() >= self.idle_timeout;
        for kept in places.values_mut() {
            kept.idle.retain(|(since, _)| !is_old(*since));
            kept.shared.take_if(|(used_at, sender)| is_old(*used_at) || sender.is_closed());
        }
        places.retain(|_, kept| !kept.idle.is_empty() || kept.shared.is_some());
        let oldest = |kept: &Kept| {
            let idle = kept.idle.iter().map(|(since, _)| *since);
            idle.chain(kept.shared.iter().map(|(used_at, _)| *used_at)).min()
        };
        Some(places.values().filter_map(oldest).min()? + self.idle_timeout)
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }

    fn places(&self) -> MutexGuard<'_, HashMap<Place, Kept>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("dialer", &self.dialer).finish_non_exhaustive()
    }
}
