//! A proxy that does harm: it delays answers, cuts connections at random bytes and stops listening for a while. It keeps what
//! passed, as evidence.

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;
use volcanic_base::Chance;
use volcanic_testkit::Exchange;

use crate::interop::peer::Port;

/// The longest delay of a piece of an answer.
const DELAY: Duration = Duration::from_millis(150);

/// A connection that is cut lets at most so many bytes of an answer pass first: fewer than a tale has.
const PASSES: f64 = 1200.0;

/// The most bytes kept of one direction of one connection.
const KEPT: usize = 4 << 20;

/// Forwards to an agent and does it harm when told so. Ends when dropped.
pub(super) struct FaultyProxy {
    port: Port,
    shared: Arc<Shared>,
    listening: JoinSet<()>,
    stop: CancellationToken,
}

struct Shared {
    upstream: SocketAddr,
    record: Mutex<Vec<Exchange>>,
    chance: Chance,
    delays: AtomicBool,
    /// How many streams may still be cut…
    streams_left: AtomicUsize,
    /// …and how many other connections.
    others_left: AtomicUsize,
    cuts: AtomicUsize,
}

/// What becomes of the answer that passes.
enum Fate {
    /// It was not decided yet.
    Open,
    Spared,
    CutAfter(usize),
}

/// The connection was cut on purpose.
struct Cut;

impl FaultyProxy {
    pub(super) fn start(upstream: SocketAddr) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            upstream,
            record: Mutex::default(),
            chance: Chance::from_os(),
            delays: AtomicBool::new(false),
            streams_left: AtomicUsize::new(0),
            others_left: AtomicUsize::new(0),
            cuts: AtomicUsize::new(0),
        });
        let (listening, stop) = (JoinSet::new(), CancellationToken::new());
        let mut proxy = Self { port: Port::reserve()?, shared, listening, stop };
        proxy.come_back()?;
        Ok(proxy)
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.port.address()
    }

    /// From now on every piece of an answer comes late.
    pub(super) fn delay(&self) {
        self.shared.delays.store(true, Ordering::SeqCst);
    }

    /// Cuts so many streams and other connections from now on, each after some bytes of answers.
    pub(super) fn cut(&self, streams: usize, others: usize) {
        self.shared.streams_left.store(streams, Ordering::SeqCst);
        self.shared.others_left.store(others, Ordering::SeqCst);
    }

    /// How many connections were cut.
    pub(super) fn cuts(&self) -> usize {
        self.shared.cuts()
    }

    /// Stops listening and closes every connection; the port stays taken, so that nobody else gets it.
    pub(super) async fn go_down(&mut self) {
        self.stop.cancel();
        while self.listening.join_next().await.is_some() {}
    }

    /// Listens again.
    pub(super) fn come_back(&mut self) -> io::Result<()> {
        let listener = self.port.listen()?;
        self.stop = CancellationToken::new();
        self.listening.spawn(accept(listener, Arc::clone(&self.shared), self.stop.clone()));
        Ok(())
    }

    /// Everything that passed so far, a connection each.
    pub(super) fn exchanges(&self) -> Vec<Exchange> {
        self.shared.record().clone()
    }
}

impl Shared {
    fn record(&self) -> MutexGuard<'_, Vec<Exchange>> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, place: usize, bytes: &[u8], direction: fn(&mut Exchange) -> &mut Vec<u8>) {
        let kept = direction(&mut self.record()[place]).len();
        let room = KEPT.saturating_sub(kept).min(bytes.len());
        direction(&mut self.record()[place]).extend_from_slice(&bytes[..room]);
    }

    /// How many of the bytes of an answer may pass, when `fate` was decided before them. The first answer is cut and half of
    /// the others; a stream, which is one long answer, in any case.
    fn passes(&self, fate: &mut Fate, is_stream: bool, bytes: &[u8]) -> usize {
        let cuts_left = if is_stream { &self.streams_left } else { &self.others_left };
        if cuts_left.load(Ordering::SeqCst) == 0 {
            return bytes.len();
        }
        let is_new = !is_stream && bytes.starts_with(b"HTTP/1.1 ");
        if is_new || matches!(fate, Fate::Open) {
            let is_spared = !is_stream && self.cuts() > 0 && self.chance.fraction() < 0.5;
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a small number that is not negative"
            )]
            let after = (self.chance.fraction() * PASSES) as usize;
            *fate = if is_spared { Fate::Spared } else { Fate::CutAfter(after) };
        }
        let Fate::CutAfter(left) = fate else { return bytes.len() };
        if bytes.len() <= *left {
            *left -= bytes.len();
            return bytes.len();
        }
        let take = |left: usize| left.checked_sub(1);
        if cuts_left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take).is_err() {
            return bytes.len();
        }
        self.cuts.fetch_add(1, Ordering::SeqCst);
        *left
    }

    fn cuts(&self) -> usize {
        self.cuts.load(Ordering::SeqCst)
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>, stop: CancellationToken) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            Some(_) = connections.join_next() => {}
            Ok((client, _)) = listener.accept() => {
                let place = {
                    let mut record = shared.record();
                    record.push(Exchange::default());
                    record.len() - 1
                };
                connections.spawn(forward(client, Arc::clone(&shared), place));
            }
        }
    }
    drop(listener);
    connections.shutdown().await;
}

async fn forward(client: TcpStream, shared: Arc<Shared>, place: usize) {
    // An agent that is down must look down: the connection just closes.
    let Ok(server) = TcpStream::connect(shared.upstream).await else { return };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let (client_in, client_out) = client.into_split();
    let (server_in, server_out) = server.into_split();
    let out = copy_out(client_in, server_out, &shared, place);
    let back = copy_back(server_in, client_out, &shared, place);
    // A cut is one of both ways, and an agent that is gone leaves no connection behind.
    tokio::select! {
        _ = back => {}
        () = async { out.await; std::future::pending().await } => {}
    }
}

async fn copy_out(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, shared: &Shared, place: usize) {
    let mut buffer = vec![0; 16 << 10];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        shared.keep(place, &buffer[..read], |exchange| &mut exchange.request);
        if to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
    // The agent is told; that it may be gone already is fine.
    let _ = to.shutdown().await;
}

async fn copy_back(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    shared: &Shared,
    place: usize,
) -> Result<(), Cut> {
    let mut buffer = vec![0; 16 << 10];
    let (mut fate, mut is_stream) = (Fate::Open, false);
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        if shared.delays.load(Ordering::SeqCst) {
            tokio::time::sleep(DELAY.mul_f64(shared.chance.fraction())).await;
        }
        is_stream |= String::from_utf8_lossy(&buffer[..read]).contains("text/event-stream");
        let passes = shared.passes(&mut fate, is_stream, &buffer[..read]);
        shared.keep(place, &buffer[..passes], |exchange| &mut exchange.response);
        if to.write_all(&buffer[..passes]).await.is_err() {
            break;
        }
        if passes < read {
            return Err(Cut);
        }
    }
    let _ = to.shutdown().await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An upstream that answers every connection with so many bytes.
    async fn upstream(answer: Vec<u8>) -> (SocketAddr, JoinSet<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            while let Ok((mut connection, _)) = listener.accept().await {
                let _ = connection.read(&mut [0; 64]).await;
                let _ = connection.write_all(&answer).await;
            }
        });
        (address, serving)
    }

    async fn ask(proxy: &FaultyProxy) -> io::Result<Vec<u8>> {
        let mut connection = TcpStream::connect(proxy.address()).await?;
        connection.write_all(b"hello").await?;
        let mut answer = Vec::new();
        connection.read_to_end(&mut answer).await?;
        Ok(answer)
    }

    #[tokio::test]
    async fn streams_are_cut_as_often_as_told_and_pass_whole_after_that() {
        let answer = [b"content-type: text/event-stream\r\n".to_vec(), vec![b'x'; 3000]].concat();
        let (address, _serving) = upstream(answer.clone()).await;
        let proxy = FaultyProxy::start(address).unwrap();
        assert_eq!(ask(&proxy).await.unwrap(), answer);
        proxy.cut(2, 0);
        for _ in 0..2 {
            let cut = ask(&proxy).await.unwrap();
            assert!(cut.len() < 1300 && answer.starts_with(&cut), "{} bytes", cut.len());
        }
        assert_eq!((ask(&proxy).await.unwrap(), proxy.cuts()), (answer, 2));
    }

    #[tokio::test]
    async fn port_that_is_closed_refuses_and_opens_again_at_the_same_place() {
        let (address, _serving) = upstream(b"here".to_vec()).await;
        let mut proxy = FaultyProxy::start(address).unwrap();
        let before = proxy.address();
        proxy.go_down().await;
        let refused = ask(&proxy).await.unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        proxy.come_back().unwrap();
        assert_eq!((ask(&proxy).await.unwrap(), proxy.address()), (b"here".to_vec(), before));
        assert_eq!(proxy.exchanges().len(), 1);
    }
}
