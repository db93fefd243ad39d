//! Connections to hosts: opened when needed, and used again while they are good.
//!
//! An HTTP/1 connection has no task of its own ([`Connection`]). It is driven by whoever waits for the answer, in the same
//! task: handing each piece of an answer from one task to another took as long as reading it. It follows that an exchange
//! that is given up closes its connection, and that nobody watches a connection that lies idle: it is looked at before it is
//! used again, and closed after a while. An HTTP/2 connection carries many exchanges, so it has a task.

use std::{
    cmp::Ordering,
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use bytes::Bytes;
use http::{
    HeaderName, HeaderValue, Request, Response, Uri,
    header::{ACCEPT_ENCODING, USER_AGENT},
    uri::{Authority, Scheme},
};
use http_body_util::Full;
use hyper::client::conn::http2;
use hyper_util::{
    client::legacy::connect::Connection as _,
    rt::{TokioExecutor, TokioIo, TokioTimer},
};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep_until},
};
use tower::Service as _;

use crate::{
    NetBody, NetError,
    connector::{Dialed, Dialer},
    http1::Connection,
};

mod answer;

pub(crate) use answer::Answer;

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

impl Place {
    /// Places are compared as they are written. Authorities fold case, character by character, which took longer than the
    /// rest of finding a connection; in URLs hosts are in lower case, and one that is not is a place of its own.
    fn written(&self) -> (&str, &str) {
        (self.1.as_str(), self.0.as_str())
    }
}

impl PartialEq for Place {
    fn eq(&self, other: &Self) -> bool {
        self.written() == other.written()
    }
}

impl Ord for Place {
    fn cmp(&self, other: &Self) -> Ordering {
        self.written().cmp(&other.written())
    }
}

impl PartialOrd for Place {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// An HTTP/1 connection.
struct Line {
    connection: Connection<TokioIo<Dialed>>,
    /// What requests say in `Host`; `None` if that cannot be said.
    host: Option<HeaderValue>,
}

/// A way to send one request.
enum Way {
    /// Boxed, since it is large and changes hands with each call.
    Alone(Box<Line>),
    Shared(http2::SendRequest<Body>),
}

/// Connections that wait to be used again.
struct Shelf {
    idle_timeout: Duration,
    /// In order rather than hashed: there are few, and names of hosts are soon told apart.
    places: Mutex<BTreeMap<Place, Kept>>,
    /// The tasks of HTTP/2 connections, and the one that throws old connections away. They end with the pool.
    tasks: Mutex<JoinSet<()>>,
}

/// What is kept for one host.
#[derive(Default)]
struct Kept {
    /// The one that came back last is at the end, and is used first.
    idle: Vec<(Instant, Box<Line>)>,
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
    pub(crate) async fn send(
        &self,
        request: &Request<Bytes>,
    ) -> Result<Response<NetBody>, NetError> {
        let place = match (request.uri().scheme(), request.uri().authority()) {
            (Some(scheme), Some(authority)) => Place(scheme.clone(), authority.clone()),
            (_, None) | (None, _) => {
                return Err(NetError::Unusable { reason: "the url is not absolute" });
            }
        };
        loop {
            let (way, is_new) = match self.shelf.take(&place).await {
                Some(way) => (way, false),
                // Boxed, since it is large and rare: every call would carry the room for it.
                None => (Box::pin(self.dial(request.uri(), &place)).await?, true),
            };
            let mut sender = match way {
                Way::Alone(line) => return self.send_over(line, request, place).await,
                Way::Shared(sender) => sender,
            };
            let mut request = request.clone().map(Full::new);
            for (name, value) in defaults() {
                request.headers_mut().entry(name).or_insert(value);
            }
            match Box::pin(sender.try_send_request(request)).await {
                Ok(response) => return Ok(response.map(NetBody::new)),
                Err(mut failed) => {
                    let has_left = failed.take_message().is_none();
                    if has_left || is_new {
                        return Err(NetError::closed(failed.into_error()));
                    }
                }
            }
        }
    }

    async fn send_over(
        &self,
        mut line: Box<Line>,
        request: &Request<Bytes>,
        place: Place,
    ) -> Result<Response<NetBody>, NetError> {
        let Line { connection, host } = &mut *line;
        let sent = connection.exchange(request, host.as_ref(), &defaults()).await;
        let (response, rest) = sent.map_err(NetError::closed)?;
        let home = (Arc::clone(&self.shelf), place);
        Ok(response.map(|()| NetBody::of_answer(Answer::new(rest, line, home))))
    }

    async fn dial(&self, uri: &Uri, place: &Place) -> Result<Way, NetError> {
        tracing::debug!(host = place.1.host(), "connecting");
        let stream = self.dialer.clone().call(uri.clone()).await?;
        if !stream.connected().is_negotiated_h2() {
            let connection = Connection::new(TokioIo::new(stream));
            return Ok(Way::Alone(Box::new(Line { connection, host: host_of(uri) })));
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

/// What requests say of us unless they say it themselves. Nothing here unpacks an answer.
fn defaults() -> [(HeaderName, HeaderValue); 2] {
    const AGENT: HeaderValue =
        HeaderValue::from_static(concat!("volcanic/", env!("CARGO_PKG_VERSION")));
    [(USER_AGENT, AGENT), (ACCEPT_ENCODING, HeaderValue::from_static("identity"))]
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

impl Shelf {
    /// Takes a kept connection that can be used.
    async fn take(&self, place: &Place) -> Option<Way> {
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
            if line.connection.is_quiet().await {
                return Some(Way::Alone(line));
            }
        }
    }

    /// Keeps a connection whose exchange is over.
    fn put_back(self: &Arc<Self>, place: &Place, line: Box<Line>) {
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

    fn places(&self) -> MutexGuard<'_, BTreeMap<Place, Kept>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("dialer", &self.dialer).finish_non_exhaustive()
    }
}
