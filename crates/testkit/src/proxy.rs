//! A recording proxy between two programs that speak HTTP/1.1: what was said on the wire, as evidence.

use std::{
    fmt::Write as _,
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use tokio_util::sync::{CancellationToken, DropGuard};

/// The most bytes kept of one direction of one connection; what follows still passes.
const KEPT: usize = 4 << 20;

/// Forwards every connection to another address and keeps what went either way.
#[derive(Debug)]
pub struct RecordingProxy {
    address: SocketAddr,
    record: Arc<Mutex<Vec<Exchange>>>,
    _stop: DropGuard,
}

/// The bytes of one connection.
#[derive(Debug, Clone, Default)]
pub struct Exchange {
    /// From the one who connected.
    pub request: Vec<u8>,
    /// From the other side.
    pub response: Vec<u8>,
}

/// Which way bytes go.
#[derive(Debug, Clone, Copy)]
enum Way {
    Out,
    Back,
}

impl RecordingProxy {
    /// Listens on a free loopback port and forwards to `upstream`. Ends when dropped.
    ///
    /// # Errors
    /// When no port can be had.
    pub async fn start(upstream: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let record = Arc::new(Mutex::new(Vec::new()));
        let stop = CancellationToken::new();
        let accepting = accept(listener, upstream, Arc::clone(&record), stop.clone());
        #[expect(clippy::disallowed_methods, reason = "ends with the token that the proxy drops")]
        tokio::spawn(accepting);
        Ok(Self { address, record, _stop: stop.drop_guard() })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Everything so far, a connection each.
    pub fn exchanges(&self) -> Vec<Exchange> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether some connection's request side contains `needle`.
    pub fn requested(&self, needle: &str) -> bool {
        self.exchanges().iter().any(|exchange| contains(&exchange.request, needle))
    }

    /// How often `needle` went towards the upstream.
    pub fn times_requested(&self, needle: &str) -> usize {
        self.exchanges().iter().map(|exchange| count(&exchange.request, needle)).sum()
    }

    /// Whether some connection's response side contains `needle`.
    pub fn answered(&self, needle: &str) -> bool {
        self.exchanges().iter().any(|exchange| contains(&exchange.response, needle))
    }

    /// The whole record as text, for a report.
    pub fn transcript(&self) -> String {
        let mut text = String::new();
        for (number, exchange) in self.exchanges().iter().enumerate() {
            let (out, back) = (
                String::from_utf8_lossy(&exchange.request),
                String::from_utf8_lossy(&exchange.response),
            );
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "--- connection {number}, to the agent\n{out}\n--- from the agent\n{back}"
            );
        }
        text
    }
}

async fn accept(
    listener: TcpListener,
    upstream: SocketAddr,
    record: Arc<Mutex<Vec<Exchange>>>,
    stop: CancellationToken,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            Some(_) = connections.join_next() => {}
            Ok((client, _)) = listener.accept() => {
                let place = {
                    let mut record = record.lock().unwrap_or_else(PoisonError::into_inner);
                    record.push(Exchange::default());
                    record.len() - 1
                };
                connections.spawn(forward(client, upstream, Arc::clone(&record), place));
            }
        }
    }
}

async fn forward(
    client: TcpStream,
    upstream: SocketAddr,
    record: Arc<Mutex<Vec<Exchange>>>,
    place: usize,
) {
    // A peer that is down must look down: the connection just closes.
    let Ok(server) = TcpStream::connect(upstream).await else { return };
    let (client_in, client_out) = client.into_split();
    let (server_in, server_out) = server.into_split();
    let out = copy(client_in, server_out, Arc::clone(&record), place, Way::Out);
    let back = copy(server_in, client_out, record, place, Way::Back);
    futures::future::join(out, back).await;
}

async fn copy(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    record: Arc<Mutex<Vec<Exchange>>>,
    place: usize,
    way: Way,
) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        {
            let mut record = record.lock().unwrap_or_else(PoisonError::into_inner);
            let exchange = &mut record[place];
            let kept = match way {
                Way::Out => &mut exchange.request,
                Way::Back => &mut exchange.response,
            };
            let room = KEPT.saturating_sub(kept.len()).min(read);
            kept.extend_from_slice(&buffer[..room]);
        }
        if to.write_all(&buffer[..read]).await.is_err() {
            break;
        }
    }
    // The other side is told; that it may be gone already is fine.
    let _ = to.shutdown().await;
}

fn contains(bytes: &[u8], needle: &str) -> bool {
    count(bytes, needle) > 0
}

fn count(bytes: &[u8], needle: &str) -> usize {
    bytes.windows(needle.len()).filter(|window| *window == needle.as_bytes()).count()
}
