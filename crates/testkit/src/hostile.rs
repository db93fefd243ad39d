//! Remote agents that mean harm, over real sockets.
//!
//! Each does one bad thing, and for the rest what a friendly agent does, so that what a test sees comes of that one
//! thing. What is endless or huge is made while it is sent and never held. Requests are read strictly: what a well-behaved
//! client would not send is a complaint.

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio::{
    io::AsyncReadExt as _,
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use tokio_util::sync::{CancellationToken, DropGuard};

mod card;
mod content;
mod dialect;
mod request;
mod streams;
mod tasks;
mod trick;
mod wire;

use dialect::Dialect;
use wire::{Answer, Then};

pub use request::HostileHeard;
pub use trick::{
    CardFault, HostilePlace, HostileProtocol, HostileTrick, StreamFault, TaskFault, WireFault,
};
pub use wire::FORGED_TEXT;

/// A remote agent that means harm. It stops when dropped.
#[derive(Debug)]
pub struct HostileAgent {
    address: SocketAddr,
    shared: Arc<Shared>,
    _stop: DropGuard,
}

#[derive(Debug)]
struct Shared {
    base: String,
    trick: HostileTrick,
    protocol: HostileProtocol,
    sent: AtomicU64,
    connections: AtomicU64,
    heard: Mutex<Heard>,
}

#[derive(Debug, Default)]
struct Heard {
    requests: Vec<HostileHeard>,
    complaints: Vec<String>,
}

impl HostileAgent {
    /// Listens on a free loopback port and speaks A2A 1.0 over JSON-RPC.
    ///
    /// # Errors
    /// When no port can be had.
    pub async fn start(trick: HostileTrick) -> io::Result<Self> {
        Self::start_over(HostileProtocol::JsonRpc, trick).await
    }

    /// The same over another protocol.
    ///
    /// # Errors
    /// When no port can be had.
    pub async fn start_over(protocol: HostileProtocol, trick: HostileTrick) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            base: format!("http://{address}/"),
            trick,
            protocol,
            sent: AtomicU64::new(0),
            connections: AtomicU64::new(0),
            heard: Mutex::default(),
        });
        let stop = CancellationToken::new();
        let accepting = accept(listener, Arc::clone(&shared), stop.clone());
        #[expect(clippy::disallowed_methods, reason = "ends with the token that the agent drops")]
        tokio::spawn(accepting);
        Ok(Self { address, shared, _stop: stop.drop_guard() })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL that its entry in agents.json has.
    pub fn url(&self) -> &str {
        &self.shared.base
    }

    /// What it was asked, oldest first.
    pub fn heard(&self) -> Vec<HostileHeard> {
        self.shared.heard().requests.clone()
    }

    /// The operations that it was asked for, and `card`, oldest first.
    pub fn asked(&self) -> Vec<String> {
        self.shared.heard().requests.iter().map(|heard| heard.asks.clone()).collect()
    }

    /// What a well-behaved client would not have sent.
    pub fn complaints(&self) -> Vec<String> {
        self.shared.heard().complaints.clone()
    }

    /// How many bytes left it; what the system buffers counts.
    pub fn sent(&self) -> u64 {
        self.shared.sent.load(Ordering::Relaxed)
    }

    /// How many connections it took.
    pub fn connections(&self) -> u64 {
        self.shared.connections.load(Ordering::Relaxed)
    }
}

impl Shared {
    fn heard(&self) -> std::sync::MutexGuard<'_, Heard> {
        // Nothing panics while it is held.
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves one connection until it has nothing more to do on it.
    async fn serve(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        loop {
            let read = request::read(&mut stream, self.protocol).await;
            let (heard, complaints) = match read {
                Ok(Some(read)) => read,
                Ok(None) => return Ok(()),
                Err(error) => {
                    self.heard().complaints.push(error.to_string());
                    return Err(error);
                }
            };
            {
                let mut all = self.heard();
                all.requests.push(heard.clone());
                all.complaints.extend(complaints);
            }
            match self.answer(&heard, &mut stream).await? {
                Then::Next => {}
                Then::Close => return Ok(()),
                Then::Reset => return stream.set_zero_linger(),
                Then::Hold => {
                    // Until the client goes; it has nothing more to say.
                    while stream.read(&mut [0; 1024]).await? > 0 {}
                    return Ok(());
                }
            }
        }
    }

    async fn answer(&self, heard: &HostileHeard, stream: &mut TcpStream) -> io::Result<Then> {
        let (place, answer) = self.plan(heard);
        match &self.trick {
            HostileTrick::Wire(spoilt, fault) if *spoilt == place => {
                answer.send_spoilt(fault, stream, &self.sent).await
            }
            _ => answer.send(stream, &self.sent).await,
        }
    }

    fn plan(&self, heard: &HostileHeard) -> (HostilePlace, Answer) {
        let dialect = Dialect::new(self.protocol);
        let streams = matches!(
            self.trick,
            HostileTrick::NoneStreaming
                | HostileTrick::Stream(_)
                | HostileTrick::Wire(HostilePlace::Stream, _)
        );
        // Such a task is at work until somebody has followed it.
        let is_slow = streams && !self.heard().requests.iter().any(HostileHeard::is_stream);
        match heard.asks.as_str() {
            "" => {
                let none = content::Content::of("nothing here\n");
                (HostilePlace::Call, Answer::json("404 Not Found", none))
            }
            "card" => {
                let fault = match &self.trick {
                    HostileTrick::Card(fault) => Some(fault),
                    _ => None,
                };
                let card = card::card(&self.base, self.protocol, streams, fault);
                (HostilePlace::Card, Answer::json("200 OK", card))
            }
            _ if heard.is_stream() => {
                let fault = match &self.trick {
                    HostileTrick::Stream(fault) => Some(fault),
                    _ => None,
                };
                let events = streams::stream(dialect, heard, fault);
                (HostilePlace::Stream, Answer::events(events))
            }
            _ => {
                let is_sent = heard.asks == "SendMessage";
                let (fault, is_slow) = match &self.trick {
                    HostileTrick::Stream(StreamFault::LongTask(size)) if !is_slow => {
                        (Some(&TaskFault::LongLine(*size)), false)
                    }
                    HostileTrick::Task(fault) => (Some(fault), is_slow),
                    HostileTrick::Watched(_) if is_sent => (None, true),
                    HostileTrick::Watched(fault) => (Some(fault), false),
                    _ => (None, is_slow),
                };
                let status = tasks::status(self.protocol, fault);
                let said = tasks::answer(dialect, heard, is_slow, fault);
                (HostilePlace::Call, Answer::json(status, said))
            }
        }
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>, stop: CancellationToken) {
    let mut serving = JoinSet::new();
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            Some(_) = serving.join_next() => {}
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else { break };
                shared.connections.fetch_add(1, Ordering::Relaxed);
                let shared = Arc::clone(&shared);
                // A client that goes away in the middle is what is wanted.
                serving.spawn(async move { drop(shared.serve(stream).await) });
            }
        }
    }
}
