//! The agents of other people, as processes that all cells share, and the columns that they stand in.

use std::{
    collections::HashMap,
    fmt,
    fs::File,
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use tokio::{
    net::{TcpListener, TcpStream},
    time::{Instant, sleep},
};
use volcanic_testkit::{Process, Program};

use super::{InteropPlan, wire::WireBinding};

/// How long a peer may take until it listens.
const STARTING: Duration = Duration::from_secs(30);

/// The key that the agents of the kind `keyed` want.
pub(super) const KEY: &str = "interop-right-key-1f3a";

/// Whose agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Sdk {
    /// `a2a-sdk` for Python, which speaks 1.0.
    Python,
    /// The same, of the line that speaks 0.3.
    Python03,
    /// `a2a-lf` for Rust.
    Rust,
}

/// An agent over one of its bindings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Column {
    PythonRpc,
    PythonRest,
    Python03Rpc,
    RustRpc,
    RustRest,
}

impl Column {
    pub(super) const ALL: [Self; 5] =
        [Self::PythonRpc, Self::PythonRest, Self::Python03Rpc, Self::RustRpc, Self::RustRest];

    pub(super) fn sdk(self) -> Sdk {
        match self {
            Self::PythonRpc | Self::PythonRest => Sdk::Python,
            Self::Python03Rpc => Sdk::Python03,
            Self::RustRpc | Self::RustRest => Sdk::Rust,
        }
    }

    pub(super) fn binding(self) -> WireBinding {
        match self {
            Self::PythonRpc | Self::Python03Rpc | Self::RustRpc => WireBinding::JsonRpc,
            Self::PythonRest | Self::RustRest => WireBinding::HttpJson,
        }
    }

    /// What `agents.json` says, when the first interface of the card is not the one that this column is about.
    pub(super) fn wanted_binding(self) -> Option<&'static str> {
        match self.binding() {
            WireBinding::JsonRpc => None,
            WireBinding::HttpJson => Some("HTTP+JSON"),
        }
    }

    /// What `A2A-Version` must say.
    pub(super) fn version(self) -> &'static str {
        match self.sdk() {
            Sdk::Python | Sdk::Rust => "1.0",
            Sdk::Python03 => "0.3",
        }
    }

    /// The heading in the matrix.
    pub(super) fn heading(self) -> [&'static str; 2] {
        match self {
            Self::PythonRpc => ["a2a-python 1.3.0", "JSON-RPC"],
            Self::PythonRest => ["a2a-python 1.3.0", "HTTP+JSON"],
            Self::Python03Rpc => ["a2a-python 0.3.26", "JSON-RPC"],
            Self::RustRpc => ["a2a-lf 0.4.2", "JSON-RPC"],
            Self::RustRest => ["a2a-lf 0.4.2", "HTTP+JSON"],
        }
    }
}

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [peer, binding] = self.heading();
        write!(f, "{peer} {binding}")
    }
}

/// The agents that run: each SDK's as it should be, and one that gets every scenario wrong.
pub(super) struct Peers {
    addresses: HashMap<(Sdk, bool), SocketAddr>,
    _processes: Vec<Process>,
}

impl Peers {
    /// Starts those that are asked for, and waits until they listen. What they complain about goes into `folder`.
    pub(super) async fn start(
        plan: &InteropPlan,
        wanted: impl IntoIterator<Item = (Sdk, bool)>,
        folder: &Path,
    ) -> Result<Self> {
        let mut addresses = HashMap::new();
        let mut processes = Vec::new();
        for (sdk, is_broken) in wanted {
            if addresses.contains_key(&(sdk, is_broken)) {
                continue;
            }
            let port = free_port().await?;
            let errors = folder.join(format!("{sdk:?}-{is_broken}.stderr"));
            let errors = File::create(&errors).context("failed to make the peer's log")?;
            let process = program(plan, sdk)
                .env("PORT", port.to_string())
                .env("KEY", KEY)
                .env("BREAK", if is_broken { "1" } else { "" })
                .errors_into(errors)
                .start()?;
            addresses.insert((sdk, is_broken), SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
            processes.push(process);
        }
        for address in addresses.values() {
            await_listener(*address).await?;
        }
        Ok(Self { addresses, _processes: processes })
    }

    /// Where an agent listens.
    pub(super) fn address(&self, sdk: Sdk, is_broken: bool) -> Result<SocketAddr> {
        let address = self.addresses.get(&(sdk, is_broken));
        address.copied().with_context(|| format!("the peer {sdk:?} was not started"))
    }
}

fn program(plan: &InteropPlan, sdk: Sdk) -> Program {
    match sdk {
        Sdk::Python => Program::new("the Python peer", &plan.python)
            .arg(plan.peers.join("a2a-python/agent.py")),
        Sdk::Python03 => Program::new("the Python peer of 0.3", &plan.python_03)
            .arg(plan.peers.join("a2a-python-0.3/agent.py")),
        Sdk::Rust => Program::new("the Rust peer", &plan.rust_peer),
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
