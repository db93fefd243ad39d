//! The agents of other people, as processes behind a recording proxy.

use std::{
    fmt,
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use anyhow::{Result, bail};
use tokio::{
    net::{TcpListener, TcpStream},
    time::{Instant, sleep},
};
use volcanic_testkit::{Process, Program, RecordingProxy};

use super::InteropPlan;

/// How long a peer may take until it listens.
const STARTING: Duration = Duration::from_secs(20);

/// Whose agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeerKind {
    /// `a2a-sdk` for Python.
    Python,
    /// `a2a-lf` for Rust.
    Rust,
}

impl PeerKind {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Python, Self::Rust];
}

impl fmt::Display for PeerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Python => "a2a-python",
            Self::Rust => "a2a-lf",
        })
    }
}

/// A running agent; everything it hears and says passes the proxy.
pub(super) struct Peer {
    pub(super) proxy: RecordingProxy,
    _process: Process,
}

impl Peer {
    /// Starts an agent, with one scenario broken if `broken` names it, and waits until it listens.
    pub(super) async fn start(
        plan: &InteropPlan,
        kind: PeerKind,
        broken: Option<&str>,
    ) -> Result<Self> {
        let port = free_port().await?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let proxy = RecordingProxy::start(address).await?;
        let program = match kind {
            PeerKind::Python => Program::new("the Python peer", &plan.python)
                .arg(plan.peers.join("a2a-python/agent.py")),
            PeerKind::Rust => Program::new("the Rust peer", &plan.rust_peer),
        };
        let process = program
            .env("PORT", port.to_string())
            .env("PUBLIC", format!("http://{}", proxy.address()))
            .env("BREAK", broken.unwrap_or_default())
            .start()?;
        await_listener(address).await?;
        Ok(Self { proxy, _process: process })
    }

    /// The base URL that goes into agents.json.
    pub(super) fn url(&self) -> String {
        format!("http://{}", self.proxy.address())
    }
}

/// A port that nothing listens on now.
pub(super) async fn free_port() -> Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?.local_addr()?.port())
}

/// Waits until somebody listens there.
pub(super) async fn await_listener(address: SocketAddr) -> Result<()> {
    let deadline = Instant::now() + STARTING;
    while TcpStream::connect(address).await.is_err() {
        if Instant::now() > deadline {
            bail!("nothing listens on {address} after {STARTING:?}");
        }
        // There is no event for a listener of another process; a connection attempt is the question.
        sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}
