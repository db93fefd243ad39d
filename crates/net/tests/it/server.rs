//! Small servers to call.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{Router, serve::Listener};
use bytes::Bytes;
use http::Request;
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use volcanic_net::{CallKind, NetBody, NetClient, NetConfig, NetError, Transport as _};

/// The longest that anything here may take.
pub(crate) const LIMIT: Duration = Duration::from_secs(20);

/// A running server; it ends when dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    /// Connections taken so far.
    pub(crate) connections: Arc<AtomicUsize>,
    _tasks: JoinSet<()>,
}

impl Server {
    pub(crate) async fn router(router: Router) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let counting = Counting { listener, connections: Arc::clone(&connections) };
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { axum::serve(counting, router).await.unwrap() });
        Self { address, connections, _tasks: tasks }
    }

    /// Handles each connection with `handle`.
    pub(crate) async fn raw<F>(handle: impl Fn(TcpStream) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&connections);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut open = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                count.fetch_add(1, Ordering::SeqCst);
                open.spawn(handle(stream));
            }
        });
        Self { address, connections, _tasks: tasks }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

struct Counting {
    listener: TcpListener,
    connections: Arc<AtomicUsize>,
}

impl Listener for Counting {
    type Io = TcpStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (TcpStream, SocketAddr) {
        let accepted = Listener::accept(&mut self.listener).await;
        self.connections.fetch_add(1, Ordering::SeqCst);
        accepted
    }

    fn local_addr(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

pub(crate) fn client() -> NetClient {
    NetClient::new(NetConfig::default()).unwrap()
}

pub(crate) fn get(url: &str) -> Request<Bytes> {
    Request::get(url).body(Bytes::new()).unwrap()
}

/// Sends as a call, under the limit.
pub(crate) async fn send(
    client: &NetClient,
    request: Request<Bytes>,
) -> Result<http::Response<NetBody>, NetError> {
    tokio::time::timeout(LIMIT, client.send(request, CallKind::Call)).await.unwrap()
}
