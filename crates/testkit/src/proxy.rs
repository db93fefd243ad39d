//! A recording proxy between two programs that speak HTTP/1.1: what was said on the wire, as evidence.

use std::{
    fmt::Write as _,
    io,
    net::SocketAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    task::{JoinHandle, JoinSet},
};
use tokio_util::sync::{CancellationToken, DropGuard};

/// The most bytes kept of one direction of one connection; what follows still passes.
const KEPT: usize = 4 << 20;

/// Forwards every connection to another address and keeps what went either way.
#[derive(Debug)]
pub struct RecordingProxy {
    address: SocketAddr,
    tape: Arc<Tape>,
    listening: Option<Listening>,
}

/// What all connections share.
#[derive(Debug)]
struct Tape {
    upstream: SocketAddr,
    record: Mutex<Vec<Exchange>>,
    /// Whether the next stream of events is cut in the middle of an event.
    cuts_stream: AtomicBool,
}

/// The task that accepts and forwards; it ends when this is dropped.
#[derive(Debug)]
struct Listening {
    stop: DropGuard,
    ended: JoinHandle<()>,
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
        let tape = Arc::new(Tape {
            upstream,
            record: Mutex::default(),
            cuts_stream: AtomicBool::new(false),
        });
        let listening = Some(Listening::on(listener, &tape));
        Ok(Self { address, tape, listening })
    }

    /// Stops listening and closes every connection: from now on whoever connects is refused.
    pub async fn go_down(&mut self) {
        if let Some(Listening { stop, ended }) = self.listening.take() {
            drop(stop);
            // It ends by its token; that it panicked would show in the record.
            let _ = ended.await;
        }
    }

    /// Listens again at the same address.
    ///
    /// # Errors
    /// When somebody else took the port meanwhile.
    pub async fn come_back(&mut self) -> io::Result<()> {
        if self.listening.is_none() {
            let listener = TcpListener::bind(self.address).await?;
            self.listening = Some(Listening::on(listener, &self.tape));
        }
        Ok(())
    }

    /// Cuts the next stream of events in the middle of its first event. Later streams pass whole.
    pub fn cut_next_stream(&self) {
        self.tape.cuts_stream.store(true, Ordering::SeqCst);
    }

    /// Whether a cut that was asked for is still to come.
    pub fn will_cut(&self) -> bool {
        self.tape.will_cut()
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Everything so far, a connection each.
    pub fn exchanges(&self) -> Vec<Exchange> {
        self.tape.record().clone()
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

impl Tape {
    fn will_cut(&self) -> bool {
        self.cuts_stream.load(Ordering::SeqCst)
    }

    fn record(&self) -> MutexGuard<'_, Vec<Exchange>> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a new connection.
    fn open(&self) -> usize {
        let mut record = self.record();
        record.push(Exchange::default());
        record.len() - 1
    }

    /// Keeps bytes, and returns how many of them may pass: fewer when the stream is to be cut here.
    fn keep(&self, place: usize, way: Way, bytes: &[u8]) -> usize {
        let mut record = self.record();
        let exchange = &mut record[place];
        let kept = match way {
            Way::Out => &mut exchange.request,
            Way::Back => &mut exchange.response,
        };
        let before = kept.len();
        kept.extend_from_slice(&bytes[..KEPT.saturating_sub(before).min(bytes.len())]);
        let is_cut = matches!(way, Way::Back) && self.will_cut() && event_begins(kept);
        if !is_cut {
            return bytes.len();
        }
        self.cuts_stream.store(false, Ordering::SeqCst);
        let passes = bytes.len() / 2;
        kept.truncate(before + passes);
        passes
    }
}

impl Listening {
    fn on(listener: TcpListener, tape: &Arc<Tape>) -> Self {
        let stop = CancellationToken::new();
        let accepting = accept(listener, Arc::clone(tape), stop.clone());
        #[expect(clippy::disallowed_methods, reason = "ends with the token that the proxy drops")]
        let ended = tokio::spawn(accepting);
        Self { stop: stop.drop_guard(), ended }
    }
}

async fn accept(listener: TcpListener, tape: Arc<Tape>, stop: CancellationToken) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            Some(_) = connections.join_next() => {}
            Ok((client, _)) = listener.accept() => {
                let place = tape.open();
                connections.spawn(forward(client, Arc::clone(&tape), place));
            }
        }
    }
    drop(listener);
    connections.shutdown().await;
}

async fn forward(client: TcpStream, tape: Arc<Tape>, place: usize) {
    // A peer that is down must look down: the connection just closes.
    let Ok(server) = TcpStream::connect(tape.upstream).await else { return };
    let (client_in, client_out) = client.into_split();
    let (server_in, server_out) = server.into_split();
    let out = copy(client_in, server_out, &tape, place, Way::Out);
    let back = copy(server_in, client_out, &tape, place, Way::Back);
    // A cut is one of both ways, so that neither side waits for the other.
    let _ = futures::future::try_join(out, back).await;
}

/// The connection was cut on purpose.
struct Cut;

async fn copy(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    tape: &Tape,
    place: usize,
    way: Way,
) -> Result<(), Cut> {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        let passes = tape.keep(place, way, &buffer[..read]);
        if to.write_all(&buffer[..passes]).await.is_err() {
            break;
        }
        if passes < read {
            return Err(Cut);
        }
    }
    // The other side is told; that it may be gone already is fine.
    let _ = to.shutdown().await;
    Ok(())
}

/// Whether the last answer on a connection is a stream of events that has begun its first.
fn event_begins(response: &[u8]) -> bool {
    let text = String::from_utf8_lossy(response);
    let last = text.rfind("HTTP/1.1 ").map_or("", |at| &text[at..]);
    last.contains("text/event-stream") && last.contains("data:")
}

fn contains(bytes: &[u8], needle: &str) -> bool {
    count(bytes, needle) > 0
}

fn count(bytes: &[u8], needle: &str) -> usize {
    bytes.windows(needle.len()).filter(|window| *window == needle.as_bytes()).count()
}

#[cfg(test)]
mod tests;
