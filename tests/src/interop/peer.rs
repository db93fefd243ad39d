//! The agents of other people, as processes that all cells share, and the columns that they stand in.

use std::{
    collections::HashMap,
    fmt,
    fs::File,
    io,
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use tokio::{
    net::{TcpListener, TcpSocket, TcpStream},
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
    _processes: Vec<(Process, Port)>,
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
            let port = Port::reserve()?;
            addresses.insert((sdk, is_broken), port.address());
            let errors = folder.join(format!("{sdk:?}-{is_broken}.stderr"));
            let process = spawn_peer(plan, sdk, is_broken, &port, None, &errors)?;
            processes.push((process, port));
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

/// Starts an agent and waits until it listens. With `store` it keeps its tasks there, if its SDK can.
pub(super) async fn start_peer(
    plan: &InteropPlan,
    sdk: Sdk,
    is_broken: bool,
    port: &Port,
    store: Option<&Path>,
    errors: &Path,
) -> Result<Process> {
    let process = spawn_peer(plan, sdk, is_broken, port, store, errors)?;
    await_listener(port.address()).await?;
    Ok(process)
}

fn spawn_peer(
    plan: &InteropPlan,
    sdk: Sdk,
    is_broken: bool,
    port: &Port,
    store: Option<&Path>,
    errors: &Path,
) -> Result<Process> {
    let errors = File::options().append(true).create(true).open(errors);
    let program = program(plan, sdk)
        .env("PORT", port.address().port().to_string())
        .env("KEY", KEY)
        .env("BREAK", if is_broken { "1" } else { "" })
        .env("STORE", store.map(Path::as_os_str).unwrap_or_default())
        .errors_into(errors.context("failed to make the peer's log")?);
    Ok(program.start()?)
}

fn program(plan: &InteropPlan, sdk: Sdk) -> Program {
    // What both Python agents have in common.
    let shared = plan.peers.join("python");
    match sdk {
        Sdk::Python => Program::new("the Python peer", &plan.python)
            .arg(plan.peers.join("a2a-python/agent.py"))
            .env("PYTHONPATH", shared),
        Sdk::Python03 => Program::new("the Python peer of 0.3", &plan.python_03)
            .arg(plan.peers.join("a2a-python-0.3/agent.py"))
            .env("PYTHONPATH", shared),
        Sdk::Rust => Program::new("the Rust peer", &plan.rust_peer),
    }
}

/// A loopback port that nobody else is given as long as this lives: it is bound, and only whoever names it can listen there.
#[derive(Debug)]
pub(super) struct Port {
    address: SocketAddr,
    _bound: TcpSocket,
}

impl Port {
    /// Takes a free port.
    pub(super) fn reserve() -> io::Result<Self> {
        let bound = TcpSocket::new_v4()?;
        bound.set_reuseaddr(true)?;
        bound.bind((Ipv4Addr::LOCALHOST, 0).into())?;
        Ok(Self { address: bound.local_addr()?, _bound: bound })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Listens there.
    pub(super) fn listen(&self) -> io::Result<TcpListener> {
        let socket = TcpSocket::new_v4()?;
        socket.set_reuseaddr(true)?;
        socket.bind(self.address)?;
        socket.listen(1024)
    }
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
